//! `site`: the guides as a site. The crate `fet-site` makes it; its feature `book` has mdBook compiled, which takes minutes, and
//! nothing else in the workspace needs it.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, exit_code};

/// `cargo xtask site`.
pub(crate) fn site() -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut cargo = workspace.cargo(&["run", "--release", "-p", "fet-site", "--features", "book", "--"]);
    let status = cargo.arg(workspace.target.join("site")).status().context("cannot run cargo")?;
    Ok(exit_code(status))
}
