//! `libtorch`: sets LibTorch up in `<target>/libtorch`, and gives its location to the other commands.
//!
//! LibTorch is PyTorch's C++ library; the feature `libtorch` of `fet` links it. The set-up takes the files
//! for a CPU, or with `--cuda` for an NVIDIA GPU, from the wheels on PyPI. It compiles nothing and changes
//! only the build folder.

mod unpack;
mod wheels;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use self::wheels::{Build, HOW_TO_USE_ANOTHER};
use crate::output::{answer, shell_quoted};
use crate::workspace::Workspace;

/// Arguments of `libtorch`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Include CUDA for an NVIDIA GPU, the device `libtorch-cuda` (downloads 3.7 GB and unpacks 6 GB).
    #[arg(long)]
    cuda: bool,
    /// Repeat a complete set-up.
    #[arg(long)]
    force: bool,
    /// Keep the downloaded wheels.
    #[arg(long)]
    keep_downloads: bool,
    /// Print the environment for plain cargo, as in: eval "$(cargo xtask libtorch --print-env)".
    #[arg(long, conflicts_with_all = ["cuda", "force", "keep_downloads"])]
    print_env: bool,
}

const AFTER_HELP: &str = "\
It downloads 900 MB with pip, for Linux on x86-64, and keeps 500 MB in the build folder (with --cuda: 3.7 GB and 6 GB).
The same command continues an interrupted set-up. A LibTorch with CUDA takes precedence over one for a CPU.
If the environment variable LIBTORCH names an installed LibTorch (2.9.0, with its `lib` and `include`), the commands
use that LibTorch unchanged and fetch nothing.";

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// `cargo xtask libtorch`.
pub(crate) fn libtorch(arguments: &Arguments) -> Result<ExitCode> {
    let target = Workspace::find()?.target;
    if arguments.print_env {
        let Some(folder) = folder(&target)? else {
            bail!("LibTorch is not set up; `cargo xtask libtorch` fetches it");
        };
        answer(exports(&environment_of(&folder, None)));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = given()? {
        answer(format!("LIBTORCH is set: using {} unchanged.", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let build = if arguments.cuda { Build::Cuda } else { Build::Cpu };
    let folder = target.join(build.folder());
    if unpack::is_complete(build, &folder) && !arguments.force {
        answer(format!("LibTorch {} is already set up in {}.", wheels::VERSION, folder.display()));
    } else {
        set_up(build, &target, &folder, arguments.keep_downloads)?;
    }
    let cuda = target.join(Build::Cuda.folder());
    if !arguments.cuda && unpack::is_complete(Build::Cuda, &cuda) {
        answer(format!(
            "The LibTorch with CUDA in {} is used instead, until that folder is removed.",
            cuda.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    answer(if arguments.cuda { NEXT_WITH_CUDA } else { NEXT });
    Ok(ExitCode::SUCCESS)
}

const NEXT: &str = "\
Next: `cargo xtask test` and `cargo xtask check` now include it, and
      `cargo xtask ablate --device libtorch` trains on it.
      With plain cargo: eval \"$(cargo xtask libtorch --print-env)\", then --features fet/libtorch.";

const NEXT_WITH_CUDA: &str = "\
Next: `cargo xtask gpu` checks and times the GPU, and `cargo xtask ablate --device libtorch-cuda` trains on it.
      All commands of the workspace use this LibTorch from now on.";

/// Returns the folder of the LibTorch in use, if any: the folder in LIBTORCH, otherwise the set-up of `cargo
/// xtask libtorch`, preferably with CUDA.
pub(crate) fn folder(target: &Path) -> Result<Option<PathBuf>> {
    if let Some(given) = given()? {
        return Ok(Some(given));
    }
    let own = |build: Build| {
        let folder = target.join(build.folder());
        unpack::is_complete(build, &folder).then(|| folder.join(build.inside()))
    };
    Ok(own(Build::Cuda).or_else(|| own(Build::Cpu)))
}

/// Returns true if a LibTorch has CUDA.
pub(crate) fn has_cuda(folder: &Path) -> bool {
    folder.join("lib/libtorch_cuda.so").exists()
}

/// Returns the environment with which cargo and `fet` find LibTorch, or `None` without LibTorch.
pub(crate) fn environment(target: &Path) -> Result<Option<Vec<(String, String)>>> {
    let library_path = env::var(LIBRARY_PATH).ok();
    Ok(folder(target)?.map(|folder| environment_of(&folder, library_path.as_deref())))
}

/// Returns a cargo command in the workspace's root. If LibTorch is set up, cargo and its child processes find
/// it.
pub(crate) fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Command> {
    let mut cargo = workspace.cargo(arguments);
    cargo.envs(environment(&workspace.target)?.unwrap_or_default());
    Ok(cargo)
}

fn environment_of(folder: &Path, library_path: Option<&str>) -> Vec<(String, String)> {
    let lib = folder.join("lib").display().to_string();
    let library_path = match library_path.filter(|path| !path.is_empty()) {
        Some(path) if path.split(':').next() == Some(&lib) => path.to_string(),
        Some(path) => format!("{lib}:{path}"),
        None => lib,
    };
    // Waiting threads must not spin, because the parties' threads need the cores.
    let variables = [
        ("LIBTORCH", folder.display().to_string()),
        (LIBRARY_PATH, library_path),
        ("OMP_WAIT_POLICY", "passive".to_string()),
    ];
    variables.map(|(name, value)| (name.to_string(), value)).to_vec()
}

/// Returns the folder in LIBTORCH, if set.
fn given() -> Result<Option<PathBuf>> {
    let Some(folder) = env::var_os("LIBTORCH").filter(|folder| !folder.is_empty()) else { return Ok(None) };
    let folder = PathBuf::from(folder);
    for needed in ["lib", "include"] {
        if !folder.join(needed).is_dir() {
            bail!("LIBTORCH must name a LibTorch folder, but {} contains no `{needed}`", folder.display());
        }
    }
    // LIBTORCH is relative to the current folder, but cargo runs in the workspace's root.
    folder.canonicalize().map(Some).context("cannot resolve LIBTORCH")
}

fn set_up(build: Build, target: &Path, folder: &Path, keep_downloads: bool) -> Result<()> {
    check_platform(env::consts::OS, env::consts::ARCH)?;
    let downloads = target.join("libtorch-download");
    let wheels = wheels::fetch(build.wheels(), &downloads)?;
    let bytes = unpack::unpack(build, &wheels, folder)?;
    if !keep_downloads {
        fs::remove_dir_all(&downloads).with_context(|| format!("cannot remove {}", downloads.display()))?;
    }
    let megabytes = bytes / 1_000_000;
    answer(format!("LibTorch {} is set up in {} ({megabytes} MB).", wheels::VERSION, folder.display()));
    Ok(())
}

fn check_platform(os: &str, arch: &str) -> Result<()> {
    if (os, arch) != ("linux", "x86_64") {
        bail!(
            "LibTorch can be fetched only for Linux on x86-64, but this is {os} on {arch}; {HOW_TO_USE_ANOTHER}"
        );
    }
    Ok(())
}

/// Formats the environment for a shell. An existing library path of the shell follows ours.
fn exports(environment: &[(String, String)]) -> String {
    let export = |(name, value): &(String, String)| {
        let rest = if name == LIBRARY_PATH { "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" } else { "" };
        format!("export {name}={}{rest}", shell_quoted(value))
    };
    environment.iter().map(export).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_path_is_prefixed_once() {
        let check = |before: Option<&str>, after: &str| {
            let environment = environment_of(Path::new("/t/libtorch"), before);
            assert_eq!(environment[0], ("LIBTORCH".into(), "/t/libtorch".into()));
            assert_eq!(environment[1], ("LD_LIBRARY_PATH".into(), after.into()), "{before:?}");
        };
        check(None, "/t/libtorch/lib");
        check(Some(""), "/t/libtorch/lib");
        check(Some("/a:/b"), "/t/libtorch/lib:/a:/b");
        check(Some("/t/libtorch/lib:/a"), "/t/libtorch/lib:/a");
    }

    #[test]
    fn other_platforms_are_told_what_to_do() {
        assert!(check_platform("linux", "x86_64").is_ok());
        for (os, arch) in [("macos", "aarch64"), ("linux", "aarch64"), ("windows", "x86_64")] {
            let message = check_platform(os, arch).expect_err("refused").to_string();
            assert!(message.contains(os) && message.contains("LIBTORCH"), "{message}");
        }
    }

    #[test]
    fn exports_are_for_a_shell() {
        let expected = "export LIBTORCH='/a b'\n\
            export LD_LIBRARY_PATH='/a b/lib'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n\
            export OMP_WAIT_POLICY=passive";
        assert_eq!(exports(&environment_of(Path::new("/a b"), None)), expected);
    }
}
