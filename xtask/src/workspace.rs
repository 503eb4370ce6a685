//! Folder of the workspace, its build folder, and calls of `cargo`.
//!
//! This module does not depend on the build's contents or on LibTorch.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Workspace, as `cargo metadata` reports it for the current folder.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// Folder of the workspace's `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Build folder, which `CARGO_TARGET_DIR` can change.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the workspace with `cargo metadata`.
    pub(crate) fn find() -> Result<Self> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1"];
        let output = Command::new(cargo_program())
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!("`cargo metadata` found no workspace here; run `cargo xtask` inside it");
        }
        serde_json::from_slice(&output.stdout).context("cannot read what `cargo metadata` printed")
    }

    /// Returns a cargo command in the workspace's root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo.current_dir(&self.root).args(arguments);
        // Build scripts such as ring's run again if these change, and Burn is compiled again after them.
        for (name, _) in env::vars_os().filter(|(name, _)| describes_package(name)) {
            cargo.env_remove(name);
        }
        cargo
    }
}

/// Returns true for the variables that cargo sets to describe the package of a program that it starts, here xtask.
fn describes_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Returns the exit code of a finished child. A child that ended by a signal counts as interrupted.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().map_or(130, |code| u8::try_from(code).unwrap_or(1)))
}

/// Returns the cargo that started xtask, to keep a toolchain chosen with `cargo +name`.
fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
