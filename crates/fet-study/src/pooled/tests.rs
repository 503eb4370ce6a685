//! Small cases computed by hand.

use fet_eval::records::Report;
use fet_eval::{Confusion, Group, Groups, Others, Quantile};

use super::super::results::tests::{ACCURACY, RMSE, finished};
use super::super::summary::StudySummary;
use super::super::summary::tests::{pair, study};
use super::*;

/// Calls `look` with the first variant's row. Entry i of `changes` modifies the report of seed i.
fn look<T>(metric: Metric, changes: &[&dyn Fn(&mut Report)], look: impl FnOnce(&Row<'_>) -> T) -> T {
    let given: Vec<_> = (0..changes.len() as u64).map(|seed| (0, seed, metric, 0.5)).collect();
    let (grid, cells, mut reports) = study(&given);
    reports.iter_mut().zip(changes).for_each(|(report, change)| change(report));
    let results = pair(&cells, &reports);
    look(&StudySummary::new(&grid, &cells, &results).rows[0])
}

fn bin(predicted: f64, observed: f64, weight: f64) -> Bin {
    Bin { predicted, observed, weight }
}

#[test]
fn metrics_are_by_seed_and_undefined_ones_have_a_reason() {
    let none = |report: &mut Report| report.evaluation = Evaluation::undefined(fet_eval::Task::Binary, "why");
    let other = |report: &mut Report| report.evaluation = finished(0, 2, RMSE, 0.5).1.evaluation;
    let (found, halves) =
        look(ACCURACY, &[&|_| {}, &none, &other], |row| (metric(row, ACCURACY), half_widths(row)));
    assert_eq!((found.values, found.undefined), (vec![(0.into(), 0.5)], vec![(1.into(), "why".to_string())]));
    assert_eq!(
        (halves.values, halves.undefined),
        (vec![(0.into(), 0.25), (2.into(), 0.25)], vec![(1.into(), "why".to_string())])
    );
}

#[test]
fn matrices_are_summed() {
    let cells = |cells: [[f64; 2]; 2]| {
        move |report: &mut Report| {
            report.evaluation.confusion = Some(Confusion { cells: cells.map(|row| row.to_vec()).to_vec() });
        }
    };
    let (one, two) = (cells([[1.0, 2.0], [3.0, 4.0]]), cells([[10.0, 0.0], [0.0, 1.0]]));
    let sum = vec![vec![11.0, 2.0], vec![3.0, 5.0]];
    let names = vec!["no".to_string(), "yes".to_string()];
    assert_eq!(look(ACCURACY, &[&one, &two], |row| confusion(&row.reports())), Some((names, sum)));
    let renamed = |report: &mut Report| report.class_names[1] = "perhaps".into();
    assert_eq!(look(ACCURACY, &[&one, &renamed], |row| confusion(&row.reports())), None, "other classes");
    let unnamed = |report: &mut Report| report.class_names.clear();
    let names = look(ACCURACY, &[&unnamed], |row| confusion(&row.reports())).expect("a matrix").0;
    assert_eq!(names, ["0", "1"]);
    assert_eq!(look(RMSE, &[&|_| {}], |row| confusion(&row.reports())), None);
}

#[test]
fn calibration_curves_are_of_all_rows() {
    let bins = |bins: &'static [(f64, f64, f64)]| {
        move |report: &mut Report| {
            report.evaluation.calibration = bins.iter().map(|&(p, o, w)| bin(p, o, w)).collect();
        }
    };
    // 0 is in the first bin, 0.1 in the second, 0.25 and 0.26 in (3/15, 4/15], and 1 in the last.
    let one = bins(&[(0.0, 0.5, 2.0), (0.1, 1.0, 1.0), (0.25, 0.0, 1.0)]);
    let two = bins(&[(0.26, 1.0, 3.0), (1.0, 1.0, 4.0)]);
    let found = look(ACCURACY, &[&one, &two], |row| calibration(&row.reports())).expect("a curve");
    let both = bin((0.25 + 3.0 * 0.26) / 4.0, 0.75, 4.0);
    assert_eq!(found.all, [bin(0.0, 0.5, 2.0), bin(0.1, 1.0, 1.0), both, bin(1.0, 1.0, 4.0)]);
    let seeds = [vec![(0.0, 0.5), (0.1, 1.0), (0.25, 0.0)], vec![(0.26, 1.0), (1.0, 1.0)]];
    assert_eq!(found.seeds, seeds);
    assert_eq!(look(RMSE, &[&|_| {}], |row| calibration(&row.reports())), None);
}

#[test]
fn spreads_residuals_over_common_bins() {
    let of = |lower: f64, upper: f64, counts: &'static [f64], below: f64, median: f64| {
        move |report: &mut Report| {
            let quantiles = vec![Quantile { share: 0.5, value: median }];
            report.evaluation.residuals = Some(Residuals {
                mean: 0.0,
                deviation: 1.0,
                lower,
                upper,
                counts: counts.to_vec(),
                below,
                above: 0.0,
                quantiles,
            });
        }
    };
    // The common bins have width 0.1, from 0 to 3. The first seed has half of its rows between 0 and 1 and a
    // quarter between 1 and 2. The second seed has all rows at 3.
    let (one, two) = (of(0.0, 2.0, &[2.0, 1.0], 1.0, 0.25), of(3.0, 3.0, &[5.0], 0.0, 3.0));
    let found = look(RMSE, &[&one, &two], |row| residuals(&row.reports())).expect("residuals");
    assert_eq!(found.bins.len(), 30);
    assert_eq!((found.bins[0].0.0, found.bins[29].0.1), (0.0, 3.0));
    for (at, expect) in
        [(0, 0.5 / 10.0 / 2.0), (9, 0.5 / 10.0 / 2.0), (10, 0.25 / 10.0 / 2.0), (25, 0.0), (29, 0.5)]
    {
        assert!((found.bins[at].1 - expect).abs() < 1e-12, "{at}: {:?}", found.bins[at]);
    }
    let all = found.bins.iter().map(|bin| bin.1).sum::<f64>() + found.outside.0 + found.outside.1;
    assert!((all - 1.0).abs() < 1e-12, "{all}");
    assert_eq!((found.outside, found.quantiles), ((0.125, 0.0), vec![(0.5, 1.625)]));
    let same = look(RMSE, &[&two], |row| residuals(&row.reports())).expect("residuals");
    assert_eq!(same.bins, [((3.0, 3.0), 1.0)]);
    assert_eq!(look(ACCURACY, &[&|_| {}], |row| residuals(&row.reports())), None);
}

#[test]
fn matches_groups_by_name() {
    let group = |name: &str, rows: usize, test: f64| Group {
        name: name.into(),
        rows,
        scores: finished(0, 0, ACCURACY, test).1.evaluation.test,
    };
    let one = |report: &mut Report| {
        let groups = vec![group("a", 3, 0.5), group("b", 2, 0.25)];
        report.evaluation.groups = Some(Groups { column: "region".into(), groups, others: None });
    };
    let two = |report: &mut Report| {
        let others = Others { groups: 4, rows: 5, scores: group("", 0, 1.0).scores };
        let groups = vec![group("b", 9, 0.75)];
        report.evaluation.groups = Some(Groups { column: "region".into(), groups, others: Some(others) });
    };
    let found = look(ACCURACY, &[&one, &two, &|_| {}], groups).expect("groups");
    let told = |group: &GroupOver| (group.name.clone(), group.rows.clone(), group.values(ACCURACY));
    assert_eq!(found.column, "region");
    assert_eq!(
        found.groups.iter().map(told).collect::<Vec<_>>(),
        [("b".into(), vec![2.0, 9.0], vec![0.25, 0.75]), ("a".into(), vec![3.0], vec![0.5])]
    );
    assert_eq!(found.others.as_ref().map(told), Some((String::new(), vec![5.0], vec![1.0])));
    assert_eq!(look(ACCURACY, &[&|_| {}], groups), None);
}
