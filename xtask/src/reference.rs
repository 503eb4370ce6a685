//! `reference`: writes the reference of settings, `docs/reference`. The command `fet` generates the pages,
//! because it knows all plug-ins.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, exit_code};

/// Folder of the pages, in the repository.
const FOLDER: &str = "docs/reference";

/// `cargo xtask reference`.
pub(crate) fn reference() -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut cargo = workspace.cargo(&["run", "--release", "-p", "fet", "--", "manual", "--markdown", FOLDER]);
    let status = cargo.status().context("cannot run cargo")?;
    Ok(exit_code(status))
}
