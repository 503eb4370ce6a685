//! Tests of the charts and tables for each task.

use fet_eval::records::Report;
use fet_eval::{Group, Groups};

use super::super::super::results::tests::{ACCURACY, RMSE};
use super::super::super::summary::tests::{pair, study};
use super::*;

fn made(metric: Metric, change: impl Fn(&mut Report)) -> Vec<Detail> {
    let (grid, cells, mut reports) = study(&[(0, 0, metric, 0.5), (0, 1, metric, 0.75), (2, 0, metric, 0.5)]);
    reports.iter_mut().for_each(change);
    let results = pair(&cells, &reports);
    details(&StudySummary::new(&grid, &cells, &results))
}

fn titles(detail: &Detail) -> Vec<&str> {
    detail.charts.iter().map(|chart| chart.title.as_str()).collect()
}

#[test]
fn each_task_has_its_charts() {
    let classes = made(ACCURACY, |_| {});
    assert_eq!(
        classes.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["A", "C|x"],
        "B has no result"
    );
    assert_eq!(titles(&classes[0]), ["Confusion matrix", "Calibration"]);
    // With each of two seeds, one row of class "no" is predicted correctly and one is predicted as "yes".
    for part in ["no → yes: 2<", "yes → yes: 4<", "predicted class", "true class"] {
        assert!(classes[0].charts[0].wide.contains(part), "{part} in {}", classes[0].charts[0].wide);
    }
    assert!(classes[0].charts[0].caption.contains("the sum over 2 seeds"));
    assert!(!classes[1].charts[0].caption.contains("seed"), "one seed needs no word");
    // For each seed, two rows have the prediction 0.5, and one of them belongs to class 1.
    assert!(classes[0].charts[1].wide.contains("predicted 0.500, observed 0.500, 4 rows"));
    assert!(classes[0].charts[1].wide.contains("thin") && !classes[1].charts[1].wide.contains("thin"));

    let numbers = made(RMSE, |_| {});
    assert_eq!(titles(&numbers[0]), ["Residuals"]);
    // The residuals are 0.5, 0, -1 and 0.
    let caption = &numbers[0].charts[0].caption;
    assert!(caption.contains("the mean over 2 seeds") && caption.contains("50 %: 0.000"), "{caption}");
    assert!(caption.contains("25.00 % below and 25.00 % above"), "{caption}");
    for chart in classes.iter().chain(&numbers).flat_map(|one| &one.charts) {
        for svg in [&chart.wide, &chart.narrow] {
            assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
        }
    }
}

#[test]
fn groups_are_a_table() {
    let with_groups = |report: &mut Report| {
        let scores = report.evaluation.test.clone();
        let groups = vec![Group { name: "north".into(), rows: 3, scores }];
        report.evaluation.groups = Some(Groups { column: "region".into(), groups, others: None });
    };
    let details = made(ACCURACY, with_groups);
    let table = details[0].groups.as_ref().expect("a table");
    assert_eq!(
        (table.title.as_str(), table.header[..4].join("; ")),
        ("By region", "region; seeds; rows; accuracy, %".into())
    );
    assert_eq!(table.rows[0][..4], ["north", "2", "3.0", "62.50 ± 17.68"]);
    assert!(made(ACCURACY, |_| {})[0].groups.is_none());
}
