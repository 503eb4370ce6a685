//! `results.csv`: one row per finished cell, by variant and then seed; and what a reader of it must know.
//!
//! Numbers stand here as the reports hold them; only `table` rounds.

use std::collections::BTreeMap;
use std::path::Path;

use super::cell::Cell;
use super::report::Report;

/// A cell that is done.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    /// The cell.
    pub(crate) cell: &'a Cell,
    /// Its report.
    pub(crate) report: Report,
}

const HEADER: &str = "variant,seed,metric,best_epoch,validation,test,seconds,rows_per_second,peak_memory_bytes,\
                      parameters,cell";

/// The text of `results.csv`, in the order of `results`. Cells' folders are relative to `study`.
pub(crate) fn csv(results: &[Finished<'_>], study: &Path) -> String {
    let mut text = format!("{HEADER}\n");
    for Finished { cell, report } in results {
        let folder = cell.folder.strip_prefix(study).unwrap_or(&cell.folder);
        let fields = [
            quoted(&cell.variant),
            cell.seed.to_string(),
            quoted(&report.metric.name),
            report.best.epoch.to_string(),
            report.best.validation.to_string(),
            report.best.test.to_string(),
            report.cost.seconds.to_string(),
            report.cost.train_rows_per_second.to_string(),
            report.cost.peak_memory_bytes.to_string(),
            report.parameters.to_string(),
            quoted(&folder.display().to_string()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// What a reader must know about results that do not come from one program.
pub(crate) fn notes(results: &[Finished<'_>]) -> Vec<String> {
    let mut commits = BTreeMap::new();
    for Finished { report, .. } in results {
        *commits.entry(report.program.commit.as_str()).or_insert(0) += 1;
    }
    if commits.len() < 2 {
        return Vec::new();
    }
    let parts: Vec<String> = commits
        .iter()
        .map(|(commit, cells)| format!("{cells} by {}", commit.get(..12).unwrap_or(commit)))
        .collect();
    vec![format!("Note: the cells were computed by different commits of `fet` ({}).", parts.join(", "))]
}

/// A field as RFC 4180 wants it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A cell and its report, as a run would leave them.
    pub(crate) fn finished(
        variant: &str,
        seed: u64,
        metric: (&str, &str),
        test: f64,
        commit: &str,
    ) -> (Cell, Report) {
        let cell = Cell {
            variant: variant.into(),
            seed,
            sets: Vec::new(),
            resolved: json!({}),
            study: "runs/x".into(),
            folder: format!("runs/x/cells/c{seed}").into(),
        };
        let report = json!({
            "experiment": {}, "program": {"version": "1", "commit": commit},
            "metric": {"name": metric.0, "direction": metric.1}, "seed": seed, "parameters": 7,
            "best": {"epoch": 3 + seed, "validation": 0.5, "test": test},
            "cost": {"seconds": 10.0 + seed as f64, "train_rows_per_second": 100.0, "peak_memory_bytes": 5},
        });
        (cell, serde_json::from_value(report).expect("a report"))
    }

    #[test]
    fn rows_are_quoted_and_unrounded() {
        let accuracy = ("accuracy", "maximise");
        let cells = [finished("A, \"b\"", 0, accuracy, 0.1 + 0.2, "x"), finished("C", 1, accuracy, 1.0, "x")];
        let results: Vec<_> =
            cells.iter().map(|(cell, report)| Finished { cell, report: report.clone() }).collect();
        let expected = format!(
            "{HEADER}\n\"A, \"\"b\"\"\",0,accuracy,3,0.5,0.30000000000000004,10,100,5,7,cells/c0\n\
             C,1,accuracy,4,0.5,1,11,100,5,7,cells/c1\n"
        );
        assert_eq!(csv(&results, Path::new("runs/x")), expected);
        assert_eq!(notes(&results), Vec::<String>::new());
    }

    #[test]
    fn results_of_two_programs_are_said_to_be() {
        let rmse = ("rmse", "minimise");
        let cells = [
            finished("A", 0, rmse, 0.5, "aaaaaaaaaaaaaaaa"),
            finished("A", 1, rmse, 0.5, "bb"),
            finished("B", 2, rmse, 0.5, "bb"),
        ];
        let results: Vec<_> =
            cells.iter().map(|(cell, report)| Finished { cell, report: report.clone() }).collect();
        let notes = notes(&results);
        assert!(notes[0].contains("1 by aaaaaaaaaaaa, 2 by bb"), "{notes:?}");
    }
}
