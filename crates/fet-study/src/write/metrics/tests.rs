//! Tests of the table of metrics and of its notes.

use fet_eval::Evaluation;
use fet_eval::records::Report;

use super::super::super::results::tests::{ACCURACY, RMSE};
use super::super::super::summary::tests::{pair, study};
use super::*;

fn look<T>(
    cells: &[(usize, u64, Metric, f64)],
    change: impl Fn(&mut [Report]),
    look: impl FnOnce(&StudySummary<'_>) -> T,
) -> T {
    let (grid, cells, mut reports) = study(cells);
    change(&mut reports);
    let results = pair(&cells, &reports);
    look(&StudySummary::new(&grid, &cells, &results))
}

#[test]
fn every_metric_has_a_column_and_the_main_metric_an_interval() {
    let cells = [(0, 0, ACCURACY, 0.5), (0, 1, ACCURACY, 0.75), (1, 0, ACCURACY, 0.5)];
    let (table, notes) = look(&cells, |_| {}, |summary| (table(summary).expect("a table"), notes(summary)));
    assert_eq!(
        table.header,
        [
            "variant",
            "accuracy, %",
            "95 % by test rows",
            "balanced accuracy, %",
            "macro F1",
            "AUC ROC",
            "AUC PR",
            "log loss",
            "Brier score",
            "calibration error, %"
        ]
    );
    // The half width is 0.25 in each cell; 0.5 and 0.75 have standard deviation 0.25 / √2. Of the four rows
    // (0, 0, 1, 1) with predictions (1/4, 1/2, 1/2, 1), three are correct. The AUC is 3.5 of 4 pairs; the
    // Brier score is (1/16 + 1/4 + 1/4) / 4.
    let row = &table.rows[0].fields;
    assert_eq!(row[..4], ["A", "62.50 ± 17.68", "± 25.00", "75.00 ± 0.00"]);
    assert_eq!((row[5].as_str(), row[8].as_str()), ("0.8750 ± 0.0000", "0.1406 ± 0.0000"));
    assert_eq!(table.rows[1].fields[1..3], ["50.00", "± 25.00"]);
    assert!(table.rows[2].fields[1..].iter().all(|field| field == UNDEFINED), "no result");
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("another seed") && notes[1].contains("other test rows"), "{notes:?}");
    assert!(notes[1].contains("interval of the accuracy from 2000 resamples"), "{notes:?}");
}

#[test]
fn names_undefined_figures() {
    let cells = [(0, 0, ACCURACY, 0.5), (0, 1, ACCURACY, 0.75), (1, 0, ACCURACY, 0.5)];
    let undefined = |reports: &mut [Report]| {
        for report in &mut reports[1..] {
            report.evaluation = Evaluation::undefined(fet_eval::Task::Binary, "the model diverged");
        }
    };
    let (table, notes) =
        look(&cells, undefined, |summary| (table(summary).expect("a table"), notes(summary)));
    assert_eq!(table.rows[0].fields[1..3], ["50.00 (n = 1)", "± 25.00 (n = 1)"]);
    assert!(table.rows[1].fields[1..].iter().all(|field| field == UNDEFINED), "{table:?}");
    let notes = notes.join("\n");
    for part in [
        "–: accuracy is undefined in 2 of 3 cells (A, seed 1: the model diverged).",
        "–: AUC PR is undefined in 2 of 3 cells",
        "–: the interval is undefined in 2 of 3 cells",
    ] {
        assert!(notes.contains(part), "{part:?} is not in {notes}");
    }
}

#[test]
fn mixed_metrics_have_no_main_one() {
    let cells = [(0, 0, ACCURACY, 0.5), (1, 0, RMSE, 0.5)];
    let (table, notes) = look(&cells, |_| {}, |summary| (table(summary).expect("a table"), notes(summary)));
    assert_eq!(table.header.len(), 1 + 5 + 8);
    assert!(!table.header.iter().any(|title| title == INTERVAL), "{table:?}");
    assert_eq!((table.rows[0].fields[1].as_str(), table.rows[1].fields[1].as_str()), (UNDEFINED, "0.500"));
    assert_eq!(notes.len(), 1, "metrics of another task are not listed: {notes:?}");
    assert!(look(&[], |_| {}, |summary| super::table(summary).is_none() && super::notes(summary).is_empty()));
}

#[test]
fn programs_get_every_seed() {
    let cells = [(0, 0, ACCURACY, 0.5), (0, 1, ACCURACY, 0.75)];
    let undefined = |reports: &mut [Report]| {
        reports[1].evaluation = Evaluation::undefined(fet_eval::Task::Binary, "why");
    };
    let (metrics, interval) =
        look(&cells, undefined, |summary| (json(summary, &summary.rows[0]), interval_json(&summary.rows[0])));
    let expect =
        serde_json::json!({"mean": 0.5, "std": null, "n": 1, "seeds": {"0": 0.5}, "undefined": {"1": "why"}});
    assert_eq!(metrics["accuracy"], expect);
    assert_eq!(metrics.as_object().map(Map::len), Some(8));
    assert_eq!((&interval["mean"], &interval["undefined"]["1"]), (&Value::from(0.25), &Value::from("why")));
}
