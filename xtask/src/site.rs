//! `site`: builds the guides as a site. The crate `fet-site` implements it. Its feature `book` compiles
//! mdBook, which takes minutes and which only this command needs.

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
