//! Files of a problem's folder: tables, experiment and README.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::BenchmarkError;
use crate::problem::{PreparedTable, Problem, Role};
use crate::problems::Entry;
use crate::table::Table;

/// Name of the experiment's file.
const EXPERIMENT: &str = "experiment.toml";
/// Name of the description's file.
const README: &str = "README.md";

/// File with its name and content.
pub(crate) type File = (String, Vec<u8>);

/// Refuses a folder that exists already.
pub(crate) fn check_absent(out: &Path) -> Result<(), BenchmarkError> {
    let refuse = |problem: String| Err(BenchmarkError::File { path: out.to_path_buf(), problem });
    if fs::symlink_metadata(out).is_ok() {
        return refuse("this exists already. Name another folder with --out, or remove this one".into());
    }
    match parent(out) {
        folder if folder.is_dir() => Ok(()),
        folder => refuse(format!("the folder {} does not exist. Create it first", folder.display())),
    }
}

/// Returns the folder that holds `out`.
fn parent(out: &Path) -> &Path {
    out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns all files of a problem. The full tables must have the declared number of rows and checksum.
pub(crate) fn files(
    entry: &Entry,
    tables: Vec<Table>,
    rows: Option<usize>,
) -> Result<Vec<File>, BenchmarkError> {
    let mut files = Vec::new();
    for (declared, table) in entry.problem.tables.iter().zip(tables) {
        debug_assert_eq!(declared.file, table.file(), "tables have the order of the declaration");
        let bytes = table.to_csv();
        let is_whole = rows.is_none() || declared.role == Role::Secondary;
        if is_whole && !declared.sha256.is_empty() {
            check(declared, &table, &bytes)?;
        }
        files.push((declared.file.clone(), bytes));
    }
    let experiment =
        rows.map_or_else(|| entry.experiment.to_string(), |rows| adapted(entry.experiment, rows));
    files.push((EXPERIMENT.into(), experiment.into_bytes()));
    files.push((README.into(), readme(&entry.problem, rows).into_bytes()));
    Ok(files)
}

/// Minimum number of rows for the batches and epochs of the whole problem.
const MANY: usize = 20_000;

/// Returns an experiment with smaller batches and more epochs, so that few rows still give about 1,000 steps.
fn adapted(experiment: &str, rows: usize) -> String {
    let (batch, epochs, patience) = match rows {
        MANY.. => return experiment.to_string(),
        3_000.. => (128, 40, 12),
        _ => (32, 40, 12),
    };
    let line = |line: &str| {
        let number = |name: &str| line.strip_prefix(name)?.strip_prefix(" = ")?.parse::<usize>().ok();
        match (number("batch_size"), number("epochs"), number("early_stopping")) {
            (Some(given), _, _) => format!("batch_size = {}\n", given.min(batch)),
            (_, Some(given), _) => format!("epochs = {}\n", given.max(epochs)),
            (_, _, Some(given)) => format!("early_stopping = {}\n", given.max(patience)),
            _ => format!("{line}\n"),
        }
    };
    experiment.lines().map(line).collect()
}

/// Checks a prepared table against its declaration.
fn check(declared: &PreparedTable, table: &Table, bytes: &[u8]) -> Result<(), BenchmarkError> {
    let found = fet_io::hex(&fet_io::sha256(bytes));
    if found == declared.sha256 && table.rows.len() == declared.rows {
        return Ok(());
    }
    Err(BenchmarkError::Checksum {
        place: format!("{} ({} rows, expected {})", declared.file, table.rows.len(), declared.rows),
        found,
        expected: declared.sha256.clone(),
        advice: "The program prepares other tables than those of the benchmark; please report this",
    })
}

/// Writes all files into a new folder. On failure the folder does not exist.
pub(crate) fn write(out: &Path, files: &[File]) -> Result<(), BenchmarkError> {
    let name = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = parent(out).join(format!(".{name}.{}.part", std::process::id()));
    let written = fill(&temporary, files).and_then(|()| {
        check_absent(out)?;
        let failed = |error| BenchmarkError::File {
            path: out.into(),
            problem: format!("cannot be written ({error})"),
        };
        fs::rename(&temporary, out).map_err(failed)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&temporary);
    }
    written
}

fn fill(folder: &Path, files: &[File]) -> Result<(), BenchmarkError> {
    let failed = |path: &Path, error: std::io::Error| BenchmarkError::File {
        path: path.into(),
        problem: format!("cannot be written ({error})"),
    };
    fs::create_dir(folder).map_err(|error| failed(folder, error))?;
    for (name, bytes) in files {
        let path = folder.join(name);
        fet_io::write(&path, bytes).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Returns the description of a problem.
fn readme(problem: &Problem, rows: Option<usize>) -> String {
    let mut text = format!("# {}\n\n{}.\n\n", problem.name, problem.summary);
    let _ = writeln!(text, "`fet data get {}` wrote this folder.", problem.name);
    if let Some(rows) = rows {
        let _ = writeln!(text, "With `--rows {rows}` it drew that number of the primary's rows.");
    }
    let parts = [
        ("Question", &problem.question),
        ("Label", &problem.label),
        ("Keys", &problem.keys),
        ("Split", &problem.split),
        ("Control", &problem.control),
        ("Preparation", &problem.preparation),
    ];
    for (title, content) in parts {
        let _ = write!(text, "\n## {title}\n\n{}\n", content.trim());
    }
    text +=
        "\n## Tables\n\n| file | party | rows | content | source | licence |\n|---|---|---|---|---|---|\n";
    for table in &problem.tables {
        let party = match table.role {
            Role::Primary => "primary",
            Role::Secondary => "other party",
            Role::Truth => "true records, for comparison only",
        };
        let count = match rows {
            Some(rows) if table.role != Role::Secondary => rows.min(table.rows),
            _ => table.rows,
        };
        let count = if count == 0 { "as in your files".to_string() } else { count.to_string() };
        let _ = writeln!(
            text,
            "| `{}` | {party} | {count} | {} | {} | {} |",
            table.file, table.content, table.source, table.licence
        );
    }
    if !problem.packages.is_empty() {
        text += "\n## Packages\n\n| file | SHA-256 | licence |\n|---|---|---|\n";
        for package in &problem.packages {
            let _ = writeln!(text, "| {} | `{}` | {} |", package.file, package.sha256, package.licence);
        }
    }
    text += "\n## Commands\n\n```sh\nfet data check experiment.toml\nfet worth experiment.toml --quick\nfet study experiment.toml\n```\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_smaller_batches_and_more_epochs() {
        let text = "[train]\nbatch_size = 512\nepochs = 10\nearly_stopping = 4\nset = [\"train.epochs=2\"]\n";
        for (rows, expected) in [(20_000, [512, 10, 4]), (6_000, [128, 40, 12]), (1_000, [32, 40, 12])] {
            let [batch, epochs, patience] = expected;
            let train = format!("batch_size = {batch}\nepochs = {epochs}\nearly_stopping = {patience}\n");
            assert_eq!(
                adapted(text, rows),
                format!("[train]\n{train}set = [\"train.epochs=2\"]\n"),
                "{rows}"
            );
        }
    }

    #[test]
    fn a_failed_write_leaves_no_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("new");
        let files = vec![("a.csv".to_string(), b"a\n1\n".to_vec()), ("missing/\0".to_string(), Vec::new())];
        write(&out, &files).expect_err("a name with a zero");
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);
        write(&out, &files[..1]).expect("written");
        assert_eq!(fs::read(out.join("a.csv")).expect("there"), b"a\n1\n");
        let error = check_absent(&out).expect_err("taken").to_string();
        assert!(error.contains("exists already") && error.contains("--out"), "{error}");
        write(&out, &files[..1]).expect_err("taken");
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 1, "no temporary folder is left");
        check_absent(&place.path().join("a/b")).expect_err("no folder");
    }
}
