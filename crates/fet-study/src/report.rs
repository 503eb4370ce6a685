//! The report of a cell: its path, the check of its validity, and the removal of invalid reports.
//!
//! A report is valid only if its experiment, data and version of results are equal to those of the cell. The
//! records are in `fet-eval`; `program_report` completes the short report of a program other than `fet`.

use std::fs;
use std::io;
use std::path::PathBuf;

use fet_eval::records::{LabelPrivacy, Report, RunIdentity, Spent};

use super::cell::Cell;
use super::program_report;

/// Returns the report of a cell if the cell is done.
pub(crate) fn read(cell: &Cell) -> Option<Report> {
    parse(cell)?.ok().filter(|report| counts(report, &cell.identity))
}

/// Returns the report in a cell's folder or the problem with it, or `None` if the folder has no report.
fn parse(cell: &Cell) -> Option<Result<Report, String>> {
    let bytes = fs::read(path(cell)).ok()?;
    Some(match &cell.identity.program {
        None => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Some(program) => {
            program_report::complete(cell, program, &bytes).map_err(|error| format!("{error:#}"))
        }
    })
}

/// Returns true if the report belongs to the run that `identity` describes, and has a result.
fn counts(report: &Report, identity: &RunIdentity) -> bool {
    report.experiment == identity.experiment
        && report.data.files == identity.data
        && report.program.results == identity.results
        && !report.best.test.is_nan()
}

/// Returns the problem with a cell's report, if the report exists and cannot be read.
pub(crate) fn problem(cell: &Cell) -> Option<String> {
    parse(cell)?.err()
}

/// Moves an invalid report away, because `fet` refuses to overwrite it.
///
/// The folders of the run's parties move too: their ledgers count the releases of that run, and the parties
/// would refuse another run. The checkpoint is removed, because it is useless without the parties.
pub(crate) fn move_away(cell: &Cell) -> io::Result<()> {
    let path = path(cell);
    if !path.exists() {
        return Ok(());
    }
    let (parties, old) = (cell.folder.join("parties"), cell.folder.join("parties.old"));
    if parties.exists() {
        if old.exists() {
            fs::remove_dir_all(&old)?;
        }
        fs::rename(&parties, old)?;
    }
    let checkpoint = cell.folder.join("checkpoint.safetensors");
    if checkpoint.exists() {
        fs::remove_file(checkpoint)?;
    }
    fs::rename(&path, path.with_extension("old.json"))
}

/// Returns ε, or infinity if the privacy loss is unbounded.
pub(crate) fn epsilon(privacy: &Spent) -> f64 {
    privacy.epsilon.unwrap_or(f64::INFINITY)
}

/// Returns ε for one training label, or infinity if the loss is unbounded.
pub(crate) fn label_epsilon(labels: &LabelPrivacy) -> f64 {
    labels.epsilon.unwrap_or(f64::INFINITY)
}

fn path(cell: &Cell) -> PathBuf {
    cell.folder.join("report.json")
}

/// Warns about reports that this version cannot read. Their cells count as missing.
pub(crate) fn say_unreadable(missing: &[&Cell]) {
    let unreadable: Vec<_> = missing.iter().filter_map(|cell| Some((cell.title(), problem(cell)?))).collect();
    if let Some((title, problem)) = unreadable.first() {
        fet_io::note!(
            "{} of the missing cells have a report that cannot be read; the first is {title}: {problem}",
            unreadable.len()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{RMSE, finished};
    use super::*;

    #[test]
    fn only_a_report_of_the_cell_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut cell, report) = finished(0, 0, RMSE, 0.5);
        cell.folder = folder.path().into();
        let check = |text: &str, counts: bool, wrong: Option<&str>| {
            fs::write(path(&cell), text).expect("written");
            assert_eq!(read(&cell).is_some(), counts, "{text}");
            let found = problem(&cell);
            assert_eq!(found.is_some(), wrong.is_some(), "{text}: {found:?}");
            assert!(found.unwrap_or_default().contains(wrong.unwrap_or_default()), "{text}");
        };
        let whole = serde_json::to_string(&report).expect("plain data");
        check(&whole, true, None);
        let changed = |change: &dyn Fn(&mut Report)| {
            let mut other = report.clone();
            change(&mut other);
            serde_json::to_string(&other).expect("plain data")
        };
        check(&changed(&|report| report.experiment = 1.into()), false, None);
        check(&changed(&|report| report.data.files = "others".into()), false, None);
        check(&changed(&|report| report.program.results += 1), false, None);
        check(&changed(&|report| report.best.test = f64::NAN), false, None);
        check(&whole.replace("\"best\"", "\"finest\""), false, Some("unknown field `finest`"));
        check(&whole.replace("\"seconds\"", "\"time\""), false, Some("unknown field `time`"));
        check("", false, Some("EOF"));
        for round in ["first", "second"] {
            fs::write(path(&cell), "").expect("written");
            fs::create_dir(folder.path().join("parties")).expect("made");
            fs::write(folder.path().join("parties/ledger"), round).expect("written");
            fs::write(folder.path().join("checkpoint.safetensors"), round).expect("written");
            move_away(&cell).expect("moved");
            assert!(problem(&cell).is_none() && folder.path().join("report.old.json").exists());
            let old = fs::read_to_string(folder.path().join("parties.old/ledger")).expect("moved too");
            assert!(old == round && !folder.path().join("parties").exists());
            assert!(!folder.path().join("checkpoint.safetensors").exists());
        }
        move_away(&cell).expect("nothing to move");
    }
}
