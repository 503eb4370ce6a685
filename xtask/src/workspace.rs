//! Where the workspace and its build folder lie, and how xtask calls `cargo`.
//!
//! It knows nothing about what is built, nor of LibTorch; the commands say that.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The workspace, as `cargo metadata` sees it from the current folder.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// The build folder; `CARGO_TARGET_DIR` moves it.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo.
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

    /// A call of cargo in the workspace's root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo.current_dir(&self.root).args(arguments);
        cargo
    }
}

/// The exit code of a finished child, to be passed on; a child that a signal ended counts as interrupted.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().map_or(130, |code| u8::try_from(code).unwrap_or(1)))
}

/// The cargo that started xtask, so that a toolchain chosen with `cargo +name` stays chosen.
fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
