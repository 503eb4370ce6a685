//! Program that a study's folder belongs to. A folder never mixes the results of two programs.
//!
//! The folder of a program other than `fet` has a file with the program's name. Another version of the same program computes its
//! cells again in the same folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use fet_eval::records::ProgramIdentity;
use serde::{Deserialize, Serialize};

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

/// Returns the name of a program; `None` is `fet`.
pub(crate) fn name(program: Option<&ProgramIdentity>) -> &str {
    program.map_or(FET, |program| &program.name)
}

/// Checks that no other program has results in the folder `study`.
pub(crate) fn check(study: &Path, program: Option<&ProgramIdentity>) -> Result<()> {
    let Some(owner) = owner(study)? else { return Ok(()) };
    let own = name(program);
    ensure!(
        owner == own,
        "--out: the folder {} has results of the program `{owner}`, and this study runs `{own}`. Choose another folder with \
         `--out`, or another `name` in the file",
        study.display()
    );
    Ok(())
}

/// Records the program of a study in the folder `study`.
pub(crate) fn record(study: &Path, program: Option<&ProgramIdentity>) -> Result<()> {
    let Some(program) = program else { return Ok(()) };
    let text =
        serde_json::to_string(&Owner { name: program.name.clone() }).context("a name is plain data")?;
    write(&study.join(FILE), &format!("{text}\n"))
}

/// Returns the name of the program that owns the folder `study`, or `None` if the folder lacks cells.
fn owner(study: &Path) -> Result<Option<String>> {
    let path = study.join(FILE);
    if path.exists() {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let owner: Owner = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: must have the name of a program", path.display()))?;
        return Ok(Some(owner.name));
    }
    let has_cells = fs::read_dir(study.join("cells")).is_ok_and(|mut entries| entries.next().is_some());
    Ok(has_cells.then(|| FET.to_string()))
}
