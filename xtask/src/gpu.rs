//! `gpu`: the tests that compare devices, including a GPU, and the benchmarks on the GPU.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::bench;
use crate::check::cargo_with_devices;
use crate::libtorch;
use crate::workspace::{Workspace, exit_code};

/// Arguments of `gpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Alternate with the authors' program on the GPU too: a checkout of github.com/Xtra-Computing/FeT.
    #[arg(long, value_name = "CHECKOUT")]
    against: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
It runs the golden figures, the equivalence of devices, the contracts of plug-ins and what is computed in two ways, all with
the device `libtorch-cuda`, then the benchmarks. Without a GPU it fails. FET_GOLDEN names the folder of golden figures; without
it, theirs are left out.";

/// Parts of the names of the tests that run on every device.
const TESTS: [&str; 5] = ["golden", "equivalence", "contract", "transformations", "evaluated"];
const DEVICE: &str = "libtorch-cuda";

/// `cargo xtask gpu`.
pub(crate) fn gpu(arguments: &Arguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    match libtorch::folder(&workspace.target)? {
        Some(folder) if libtorch::has_cuda(&folder) => {}
        Some(folder) => bail!(
            "the LibTorch in {} lacks CUDA; `cargo xtask libtorch --cuda` fetches LibTorch with CUDA",
            folder.display()
        ),
        None => bail!("LibTorch is not set up; `cargo xtask libtorch --cuda` fetches it"),
    }
    let mut tests = cargo_with_devices(
        &workspace,
        &["test", "--release", "--package", "fet", "--package", "fet-e2e", "--test", "suite", "--test", "it"],
    )?;
    tests.arg("--").args(TESTS).env("FET_REQUIRE", required(env::var("FET_REQUIRE").ok().as_deref()));
    let status = tests.status().context("cannot run cargo")?;
    if !status.success() {
        return Ok(exit_code(status));
    }
    let mut benches = cargo_with_devices(
        &workspace,
        &["bench", "--package", "fet-e2e", "--bench", "summary", "--", DEVICE],
    )?;
    let status = benches.status().context("cannot run cargo")?;
    match &arguments.against {
        Some(checkout) if status.success() => bench::against(&workspace, checkout, &["--device", DEVICE]),
        _ => Ok(exit_code(status)),
    }
}

/// Returns the list of test requirements that must be met.
fn required(before: Option<&str>) -> String {
    before
        .into_iter()
        .chain(["libtorch", "gpu"])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_required_beside_what_was_before() {
        assert_eq!(required(None), "libtorch,gpu");
        assert_eq!(required(Some("")), "libtorch,gpu");
        assert_eq!(required(Some("golden")), "golden,libtorch,gpu");
    }
}
