//! Wheels of LibTorch: their list, downloading them with pip, and checking them.
//!
//! Each wheel is pinned by the SHA-256 of its bytes, so that the program always links the same libraries.
//! Another module unpacks the wheels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::output::Failed;

pub(super) const HOW_TO_USE_ANOTHER: &str = "to use an installed LibTorch 2.9.0 instead, set the environment variable \
                                  LIBTORCH to its folder (the folder with `lib` and `include`)";

/// Version of LibTorch that torch-sys 0.22 requires.
pub(super) const VERSION: &str = "2.9.0";

/// Wheel on PyPI.
#[derive(Debug)]
pub(super) struct Wheel {
    /// Requirement for pip.
    pub(super) requirement: &'static str,
    /// Prefix of the file name.
    pub(super) prefix: &'static str,
    /// SHA-256 of the whole file, in hexadecimal.
    pub(super) sha256: &'static str,
    /// Files to unpack with their destinations. A name that ends in a slash is a folder with all its
    /// contents.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// Variant of the set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    /// CPU only.
    Cpu,
    /// CPU and NVIDIA GPU. Folders are as in the wheels, because the libraries search them for each other.
    Cuda,
}

impl Build {
    /// Returns the wheels of the variant.
    pub(super) fn wheels(self) -> &'static [Wheel] {
        match self {
            Self::Cpu => &WHEELS,
            Self::Cuda => &CUDA_WHEELS,
        }
    }

    /// Returns the variant's folder in the build folder.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Cpu => "libtorch",
            Self::Cuda => "libtorch-cuda",
        }
    }

    /// Returns the libraries that must exist, in addition to the folders unpacked as a whole.
    pub(super) fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &[],
            Self::Cuda => &[
                "torch/lib/libtorch.so",
                "torch/lib/libtorch_cpu.so",
                "torch/lib/libtorch_cuda.so",
                "torch/lib/libc10.so",
                "torch/lib/libc10_cuda.so",
            ],
        }
    }

    /// Returns the subfolder that contains `lib` and `include`: the value for LIBTORCH.
    pub(super) fn inside(self) -> &'static str {
        match self {
            Self::Cpu => "",
            Self::Cuda => "torch",
        }
    }
}

/// Wheels for a CPU. The wheel on PyPI is built with CUDA, so that its CPU library loads two small CUDA
/// libraries, which it never calls without a GPU.
const WHEELS: [Wheel; 3] = [
    Wheel {
        requirement: "torch==2.9.0",
        prefix: "torch-2.9.0-",
        sha256: "51de31219c97c51cf4bf2be94d622e3deb5dcc526c6dc00e97c17eaec0fc1d67",
        files: &[
            ("torch/lib/libtorch_cpu.so", "lib/libtorch_cpu.so"),
            ("torch/lib/libc10.so", "lib/libc10.so"),
            ("torch/lib/libgomp.so.1", "lib/libgomp.so.1"),
            ("torch/include/", "include/"),
        ],
    },
    Wheel {
        requirement: "nvidia-cuda-cupti-cu12==12.8.90",
        prefix: "nvidia_cuda_cupti_cu12-12.8.90-",
        sha256: "ea0cb07ebda26bb9b29ba82cda34849e73c166c18162d3913575b0c9db9a6182",
        files: &[("nvidia/cuda_cupti/lib/libcupti.so.12", "lib/libcupti.so.12")],
    },
    Wheel {
        requirement: "nvidia-cuda-runtime-cu12==12.8.90",
        prefix: "nvidia_cuda_runtime_cu12-12.8.90-",
        sha256: "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90",
        files: &[("nvidia/cuda_runtime/lib/libcudart.so.12", "lib/libcudart.so.12")],
    },
];

/// Wheels for a GPU: all libraries that the wheel of torch requires.
const CUDA_WHEELS: [Wheel; 16] = [
    Wheel {
        requirement: "torch==2.9.0",
        prefix: "torch-2.9.0-",
        sha256: "51de31219c97c51cf4bf2be94d622e3deb5dcc526c6dc00e97c17eaec0fc1d67",
        files: &[("torch/lib/", "torch/lib/"), ("torch/include/", "torch/include/")],
    },
    Wheel {
        requirement: "nvidia-cuda-nvrtc-cu12==12.8.93",
        prefix: "nvidia_cuda_nvrtc_cu12-12.8.93-",
        sha256: "a7756528852ef889772a84c6cd89d41dfa74667e24cca16bb31f8f061e3e9994",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cuda-runtime-cu12==12.8.90",
        prefix: "nvidia_cuda_runtime_cu12-12.8.90-",
        sha256: "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cuda-cupti-cu12==12.8.90",
        prefix: "nvidia_cuda_cupti_cu12-12.8.90-",
        sha256: "ea0cb07ebda26bb9b29ba82cda34849e73c166c18162d3913575b0c9db9a6182",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cudnn-cu12==9.10.2.21",
        prefix: "nvidia_cudnn_cu12-9.10.2.21-",
        sha256: "949452be657fa16687d0930933f032835951ef0892b37d2d53824d1a84dc97a8",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cublas-cu12==12.8.4.1",
        prefix: "nvidia_cublas_cu12-12.8.4.1-",
        sha256: "8ac4e771d5a348c551b2a426eda6193c19aa630236b418086020df5ba9667142",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cufft-cu12==11.3.3.83",
        prefix: "nvidia_cufft_cu12-11.3.3.83-",
        sha256: "4d2dd21ec0b88cf61b62e6b43564355e5222e4a3fb394cac0db101f2dd0d4f74",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-curand-cu12==10.3.9.90",
        prefix: "nvidia_curand_cu12-10.3.9.90-",
        sha256: "b32331d4f4df5d6eefa0554c565b626c7216f87a06a4f56fab27c3b68a830ec9",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cusolver-cu12==11.7.3.90",
        prefix: "nvidia_cusolver_cu12-11.7.3.90-",
        sha256: "4376c11ad263152bd50ea295c05370360776f8c3427b30991df774f9fb26c450",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cusparse-cu12==12.5.8.93",
        prefix: "nvidia_cusparse_cu12-12.5.8.93-",
        sha256: "1ec05d76bbbd8b61b06a80e1eaf8cf4959c3d4ce8e711b65ebd0443bb0ebb13b",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cusparselt-cu12==0.7.1",
        prefix: "nvidia_cusparselt_cu12-0.7.1-",
        sha256: "f1bb701d6b930d5a7cea44c19ceb973311500847f81b634d802b7b539dc55623",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-nccl-cu12==2.27.5",
        prefix: "nvidia_nccl_cu12-2.27.5-",
        sha256: "ad730cf15cb5d25fe849c6e6ca9eb5b76db16a80f13f425ac68d8e2e55624457",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-nvshmem-cu12==3.3.20",
        prefix: "nvidia_nvshmem_cu12-3.3.20-",
        sha256: "d00f26d3f9b2e3c3065be895e3059d6479ea5c638a3f38c9fec49b1b9dd7c1e5",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-nvtx-cu12==12.8.90",
        prefix: "nvidia_nvtx_cu12-12.8.90-",
        sha256: "5b17e2001cc0d751a5bc2c6ec6d26ad95913324a4adb86788c944f8ce9ba441f",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-nvjitlink-cu12==12.8.93",
        prefix: "nvidia_nvjitlink_cu12-12.8.93-",
        sha256: "81ff63371a7ebd6e6451970684f916be2eab07321b73c9d244dc2b4da7f73b88",
        files: &[("nvidia/", "nvidia/")],
    },
    Wheel {
        requirement: "nvidia-cufile-cu12==1.13.1.3",
        prefix: "nvidia_cufile_cu12-1.13.1.3-",
        sha256: "1d069003be650e131b21c932ec3d8969c1715379251f8d23a1860554b1cb24fc",
        files: &[("nvidia/", "nvidia/")],
    },
];

/// Downloads missing `wheels` to `folder` and checks all of them. Returns the wheels with their paths.
///
/// Downloads damaged wheels again, but not intact wheels.
pub(super) fn fetch(wheels: &'static [Wheel], folder: &Path) -> Result<Vec<(&'static Wheel, PathBuf)>> {
    check_pip()?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut missing = Vec::new();
    for wheel in wheels {
        match find(folder, wheel)? {
            Some(path) if sha256(&path)? == wheel.sha256 => {
                eprintln!("{} was downloaded before", wheel.requirement);
            }
            Some(path) => {
                eprintln!("{} is damaged; fetching it again", path.display());
                fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                missing.push(wheel);
            }
            None => missing.push(wheel),
        }
    }
    if !missing.is_empty() {
        download(folder, &missing)?;
    }
    wheels.iter().map(|wheel| Ok((wheel, checked(folder, wheel)?))).collect()
}

fn checked(folder: &Path, wheel: &Wheel) -> Result<PathBuf> {
    let Some(path) = find(folder, wheel)? else {
        bail!(Failed(format!("pip stored no {} in {}", wheel.requirement, folder.display())));
    };
    let found = sha256(&path)?;
    if found != wheel.sha256 {
        bail!(Failed(format!(
            "{} is not the pinned wheel: its SHA-256 is {found}, not {}; {HOW_TO_USE_ANOTHER}",
            path.display(),
            wheel.sha256
        )));
    }
    Ok(path)
}

fn check_pip() -> Result<()> {
    let mut call = Command::new("python3");
    call.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    match call.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("python3 lacks pip, which is needed to fetch LibTorch; {HOW_TO_USE_ANOTHER}"),
        Err(_) => bail!("cannot find python3, which is needed to fetch LibTorch; {HOW_TO_USE_ANOTHER}"),
    }
}

fn download(folder: &Path, wheels: &[&Wheel]) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"]);
    pip.args(["--only-binary=:all:", "--python-version", "3.11", "--dest"]).arg(folder);
    // pip refuses a wheel for an older Linux unless the call names that platform too.
    for platform in
        ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]
    {
        pip.args(["--platform", platform]);
    }
    pip.args(wheels.iter().map(|wheel| wheel.requirement));
    if !pip.status().context("cannot run pip")?.success() {
        bail!(Failed(format!(
            "pip could not fetch LibTorch; run the same command to try again; {HOW_TO_USE_ANOTHER}"
        )));
    }
    Ok(())
}

fn find(folder: &Path, wheel: &Wheel) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(wheel.prefix) && name.ends_with(".whl")
    };
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).find(is_it))
}

fn sha256(path: &Path) -> Result<String> {
    let sum = fet_io::sha256_of_file(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(fet_io::hex(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_found_and_hashed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(find(folder.path(), &WHEELS[0]).expect("readable").is_none());
        let path = folder.path().join("torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl");
        fs::write(&path, "abc").expect("written");
        fs::write(folder.path().join("torch-2.9.0-cp311.whl.part"), "").expect("written");
        assert_eq!(find(folder.path(), &WHEELS[0]).expect("readable"), Some(path.clone()));
        // The test vector "abc" of FIPS 180-4.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).expect("readable"), expected);
        let message = checked(folder.path(), &WHEELS[0]).expect_err("not the pinned wheel").to_string();
        assert!(message.contains(expected) && message.contains("pinned"), "{message}");
    }
}
