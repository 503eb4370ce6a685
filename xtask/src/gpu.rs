//! `gpu`: the tests that compare devices, including a GPU, and the benchmarks on it.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::bench;
use crate::check::{cargo_with_devices, device_tests};
use crate::libtorch;
use crate::workspace::{Workspace, exit_code};

/// Arguments of `gpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Device to check: `cuda` and `wgpu` by CubeCL, or `libtorch-cuda`.
    #[arg(long, value_enum, default_value_t = GpuDevice::LibtorchCuda)]
    device: GpuDevice,
    /// Run only the tests, without the benchmarks.
    #[arg(long, conflicts_with = "against")]
    no_benchmarks: bool,
    /// Alternate with the authors' program on the GPU too: a checkout of github.com/Xtra-Computing/FeT.
    #[arg(long, value_name = "CHECKOUT")]
    against: Option<PathBuf>,
}

/// GPU devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GpuDevice {
    LibtorchCuda,
    Cuda,
    Wgpu,
}

impl GpuDevice {
    /// Name of the device in an experiment.
    fn name(self) -> &'static str {
        match self {
            Self::LibtorchCuda => "libtorch-cuda",
            Self::Cuda => "cuda",
            Self::Wgpu => "wgpu",
        }
    }

    /// Features of the program, in addition to LibTorch.
    fn features(self) -> &'static [&'static str] {
        match self {
            Self::LibtorchCuda => &[],
            Self::Cuda => &["--features", "fet/cuda"],
            Self::Wgpu => &["--features", "fet/wgpu"],
        }
    }

    /// Requirements of tests that must not be skipped.
    fn requirements(self) -> &'static [&'static str] {
        match self {
            Self::LibtorchCuda => &["libtorch", "gpu"],
            Self::Cuda => &["cuda"],
            Self::Wgpu => &["wgpu"],
        }
    }
}

const AFTER_HELP: &str = "\
It runs the golden figures, the equivalence of devices, the contracts of plug-ins and what is computed in two ways, all with
the device, then the benchmarks. Without such a device it fails. FET_GOLDEN names the folder of golden figures; without
it, theirs are left out.

`wgpu` needs a driver of Vulkan, Metal or DirectX 12. Without a GPU, Mesa's llvmpipe computes on the CPU (on Debian:
apt-get install mesa-vulkan-drivers); it shows that the device is right, and is slow.";

/// `cargo xtask gpu`.
pub(crate) fn gpu(arguments: &Arguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let device = arguments.device;
    if device == GpuDevice::LibtorchCuda {
        match libtorch::folder(&workspace.target)? {
            Some(folder) if libtorch::has_cuda(&folder) => {}
            Some(folder) => bail!(
                "the LibTorch in {} lacks CUDA; `cargo xtask libtorch --cuda` fetches LibTorch with CUDA",
                folder.display()
            ),
            None => bail!("LibTorch is not set up; `cargo xtask libtorch --cuda` fetches it"),
        }
    }
    let mut tests = device_tests(&workspace, device.features())?;
    tests.env("FET_REQUIRE", required(env::var("FET_REQUIRE").ok().as_deref(), device.requirements()));
    let status = tests.status().context("cannot run cargo")?;
    if !status.success() || arguments.no_benchmarks {
        return Ok(exit_code(status));
    }
    let mut benches =
        cargo_with_devices(&workspace, &["bench", "--package", "fet-e2e", "--bench", "summary"])?;
    // Names of cases end in the device: `hdb / cuda`.
    let cases = format!("/ {}", device.name());
    let status = benches.args(device.features()).args(["--", &cases]).status().context("cannot run cargo")?;
    match &arguments.against {
        Some(checkout) if status.success() => {
            bench::against(&workspace, checkout, device.features(), &["--device", device.name()])
        }
        _ => Ok(exit_code(status)),
    }
}

/// Returns the list of test requirements that must be met.
fn required(before: Option<&str>, parts: &[&str]) -> String {
    before
        .into_iter()
        .chain(parts.iter().copied())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_required_beside_what_was_before() {
        assert_eq!(required(None, &["libtorch", "gpu"]), "libtorch,gpu");
        assert_eq!(required(Some(""), &["wgpu"]), "wgpu");
        assert_eq!(required(Some("golden"), &["cuda"]), "golden,cuda");
    }
}
