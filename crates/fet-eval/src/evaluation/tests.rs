//! Small cases computed by hand.

use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::bootstrap::BootstrapMethod;

fn evaluation(
    metric: Metric,
    task: Task,
    truth: &[f64],
    output: &[f64],
    groups: Option<(&str, &[String])>,
) -> Evaluation {
    let rows = Predictions::new(task, truth, output).expect("right");
    Evaluation::compute(metric, &rows, &rows, groups, &mut ChaCha8Rng::seed_from_u64(1))
}

#[test]
fn classes_have_a_matrix_and_a_curve() {
    // The predicted class is 1 from 0.5: rows 1 and 3 are wrong.
    let (truth, output) = ([0.0, 0.0, 1.0, 1.0], [0.1, 0.52, 0.9, 0.48]);
    let validation = Predictions::new(Task::Binary, &[1.0], &[0.9]).expect("right");
    let test = Predictions::new(Task::Binary, &truth, &output).expect("right");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let found = Evaluation::compute(Metric::Accuracy, &validation, &test, None, &mut rng);
    assert_eq!(found.validation.get(Metric::Accuracy), Some(1.0));
    assert_eq!(found.test.get(Metric::Accuracy), Some(0.5));
    assert_eq!(
        found.confusion.as_ref().map(|matrix| &matrix.cells),
        Some(&vec![vec![1.0, 1.0], vec![1.0, 1.0]])
    );
    // Bins of 1/15: (7/15, 8/15] contains 0.48 and 0.52.
    let bin = |predicted, observed, weight| Bin { predicted, observed, weight };
    assert_eq!(found.calibration, [bin(0.1, 0.0, 1.0), bin(0.5, 0.5, 2.0), bin(0.9, 1.0, 1.0)]);
    assert_eq!((&found.residuals, &found.groups), (&None, &None));
    let Estimate::Interval(interval) = &found.interval else { panic!("{found:?}") };
    assert_eq!((interval.estimate, interval.resamples, interval.alpha), (0.5, 2_000, 0.05));
    assert!(interval.lower < 0.5 && interval.upper > 0.5, "{interval:?}");
    assert_eq!(found.interval.half_width(), Some((interval.upper - interval.lower) / 2.0));
    assert_eq!(
        Evaluation::compute(Metric::Accuracy, &validation, &test, None, &mut ChaCha8Rng::seed_from_u64(1)),
        found
    );
}

#[test]
fn calibrates_the_predicted_class_of_several() {
    let three = Task::Multiclass { classes: 3 };
    // Class 2 with 0.7, correct; class 0 with 0.6, wrong.
    let found = evaluation(Metric::Accuracy, three, &[2.0, 1.0], &[0.1, 0.2, 0.7, 0.6, 0.2, 0.2], None);
    let curve: Vec<(f64, f64)> = found.calibration.iter().map(|bin| (bin.predicted, bin.observed)).collect();
    assert_eq!(curve, [(0.6, 0.0), (0.7, 1.0)]);
    let cells = found.confusion.expect("few classes").cells;
    assert_eq!(cells, [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);

    let many = Task::Multiclass { classes: CONFUSION_CLASSES + 1 };
    let sure: Vec<f64> =
        (0..2 * many.classes()).map(|at| f64::from(u8::from(at % many.classes() == 0))).collect();
    let found = evaluation(Metric::AucRoc, many, &[0.0, 0.0], &sure, None);
    assert_eq!(found.confusion, None);
    assert_eq!(found.calibration.len(), 1);
    let Estimate::Undefined(reason) = &found.interval else { panic!("{found:?}") };
    assert!(reason.contains("class 0 has every row"), "{reason}");
}

#[test]
fn residuals_are_counted_between_their_quantiles() {
    // Residuals 0, 1, .., 200: the ends are 0.005 · 200 = 1 and 199, a bin is 198 / 30 = 6.6 wide.
    let output: Vec<f64> = (0..=200).map(f64::from).collect();
    let found = evaluation(Metric::Rmse, Task::Regression, &vec![0.0; 201], &output, None);
    let residuals = found.residuals.expect("finite");
    assert_eq!((residuals.lower, residuals.upper), (1.0, 199.0));
    // The variance of 0, 1, .., 200 is (201² − 1) / 12.
    assert_eq!((residuals.mean, residuals.deviation), (100.0, (40_400.0 / 12.0_f64).sqrt()));
    assert_eq!((residuals.below, residuals.above, residuals.counts.len()), (1.0, 1.0, 30));
    // 1 to 7, then 8 to 14; the last bin starts at 1 + 29 · 6.6 = 192.4: 193 to 199.
    assert_eq!((residuals.counts[0], residuals.counts[1], residuals.counts[29]), (7.0, 7.0, 7.0));
    assert_eq!(residuals.counts.iter().sum::<f64>(), 199.0);
    let quantiles: Vec<(f64, f64)> = residuals.quantiles.iter().map(|one| (one.share, one.value)).collect();
    let expect =
        [(0.01, 2.0), (0.05, 10.0), (0.25, 50.0), (0.5, 100.0), (0.75, 150.0), (0.95, 190.0), (0.99, 198.0)];
    assert_eq!(quantiles, expect);
    assert_eq!((found.confusion, found.calibration), (None, Vec::new()));

    // Predicted minus true.
    let found = evaluation(Metric::Rmse, Task::Regression, &[5.0, 5.0], &[3.0, 3.0], None);
    let residuals = found.residuals.expect("finite");
    assert_eq!((residuals.lower, residuals.upper, residuals.counts), (-2.0, -2.0, vec![2.0]));
    let found = evaluation(Metric::Rmse, Task::Regression, &[1e308, 0.0], &[-1e308, 0.0], None);
    assert_eq!(found.residuals, None);
    assert!(matches!(found.interval, Estimate::Undefined(_)), "{found:?}");
}

#[test]
fn bins_sum_weights() {
    let rows = Predictions::new(Task::Regression, &[0.0, 0.0, 0.0], &[1.0, 1.0, 9.0]).expect("right");
    let rows = rows.weighted(&[2.0, 0.5, 0.0]).expect("right");
    let residuals = Residuals::from_predictions(&rows).expect("finite");
    assert_eq!((residuals.upper, residuals.counts), (1.0, vec![2.5]));
}

#[test]
fn scores_the_largest_groups_and_pools_the_others() {
    // Group b has 3 rows, group a has 2, and the other groups have 1 each. The error of a row is its number.
    let mut names: Vec<String> = ["b", "a", "b", "a", "b"].map(String::from).to_vec();
    names.extend((0..LARGEST).map(|number| format!("c{number:02}")));
    let output: Vec<f64> = (0..names.len()).map(|row| row as f64).collect();
    let truth = vec![0.0; names.len()];
    let found = evaluation(Metric::Mae, Task::Regression, &truth, &output, Some(("region", &names)));
    let groups = found.groups.expect("groups");
    let told = |group: &Group| (group.name.clone(), group.rows, group.scores.get(Metric::Mae));
    assert_eq!(groups.column, "region");
    assert_eq!(groups.groups.len(), LARGEST);
    assert_eq!(told(&groups.groups[0]), ("b".into(), 3, Some(2.0)));
    assert_eq!(told(&groups.groups[1]), ("a".into(), 2, Some(2.0)));
    assert_eq!(told(&groups.groups[2]), ("c00".into(), 1, Some(5.0)));
    assert!(groups.groups[2].scores.reason(Metric::R2).is_some_and(|reason| reason.contains("2 rows")));
    // c28 and c29: rows 33 and 34.
    let others = groups.others.expect("two more");
    assert_eq!((others.groups, others.rows, others.scores.get(Metric::Mae)), (2, 2, Some(33.5)));
    let few = evaluation(Metric::Mae, Task::Regression, &truth[..2], &output[..2], Some(("g", &names[..2])));
    assert_eq!(few.groups.expect("groups").others, None);
}

#[test]
fn refuses_incomplete_evaluations() {
    let names = vec!["g".to_string(); 4];
    let number =
        evaluation(Metric::Rmse, Task::Regression, &[1.0, 2.0, 3.0, 4.0], &[1.5, 2.0, 2.0, 4.0], None);
    let classes = evaluation(
        Metric::Accuracy,
        Task::Binary,
        &[0.0, 1.0, 0.0, 1.0],
        &[0.2, 0.7, 0.6, 0.9],
        Some(("c", &names)),
    );
    let none = Evaluation::undefined(Task::Binary, "the model diverged");
    for evaluation in [&number, &classes, &none] {
        let json = serde_json::to_value(evaluation).expect("plain data");
        assert_eq!(serde_json::from_value::<Evaluation>(json.clone()).expect("whole"), *evaluation);
        let fields: Vec<String> = json.as_object().expect("a record").keys().cloned().collect();
        assert_eq!(fields.len(), 7, "{fields:?}");
        for field in fields {
            let mut changed = json.clone();
            changed.as_object_mut().expect("a record").remove(&field);
            let error = serde_json::from_value::<Evaluation>(changed).expect_err(&field).to_string();
            assert!(error.contains(&format!("missing field `{field}`")), "{error}");
        }
    }
    assert_eq!(none.test.reason(Metric::Brier), Some("the model diverged"));
    let Estimate::Interval(interval) = number.interval else { panic!("{number:?}") };
    assert_eq!(interval.method, BootstrapMethod::Bca, "few rows");
}
