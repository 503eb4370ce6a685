//! Program that a study's folder belongs to. A folder never mixes the results of two programs.
//!
//! The folder of a program other than `fet` has a file with the program's name. Another version of the same program computes its
//! cells again in the same folder.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use crate::output::write;

/// File with the name of a program other than `fet`, in the study's folder.
const FILE: &str = "program.json";
/// Name of `fet` as the owner of a folder.
const FET: &str = "fet";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    name: String,
}

/// Checks that all cells are of one program, and that no other program has results in the study's folder.
pub(crate) fn check(cells: &[Cell]) -> Result<()> {
    let Some(first) = cells.first() else { return Ok(()) };
    let own = name(first);
    if let Some(other) = cells.iter().find(|cell| name(cell) != own) {
        bail!(
            "{}: the program calls itself `{}`, but for {} it calls itself `{own}`; a study has one program",
            other.title(),
            name(other),
            first.title()
        );
    }
    let Some(owner) = owner(first)? else { return Ok(()) };
    ensure!(
        owner == own,
        "--out: the folder {} has results of the program `{owner}`, and this study runs `{own}`. Choose another folder with \
         `--out`, or another `name` in the file",
        first.study.display()
    );
    Ok(())
}

/// Records the program of the cell's study in the study's folder.
pub(crate) fn record(cell: &Cell) -> Result<()> {
    let Some(program) = &cell.identity.program else { return Ok(()) };
    let text =
        serde_json::to_string(&Owner { name: program.name.clone() }).context("a name is plain data")?;
    write(&cell.study.join(FILE), &format!("{text}\n"))
}

/// Returns the name of the cell's program.
fn name(cell: &Cell) -> &str {
    cell.identity.program.as_ref().map_or(FET, |program| &program.name)
}

/// Returns the name of the program that owns the study's folder, or `None` if the folder has no cells.
fn owner(cell: &Cell) -> Result<Option<String>> {
    let path = cell.study.join(FILE);
    if path.exists() {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let owner: Owner = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: must have the name of a program", path.display()))?;
        return Ok(Some(owner.name));
    }
    let has_cells = fs::read_dir(cell.study.join("cells")).is_ok_and(|mut entries| entries.next().is_some());
    Ok(has_cells.then(|| FET.to_string()))
}
