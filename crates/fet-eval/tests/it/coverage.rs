//! Coverage of intervals and sets on data with known truth. Seeds are fixed; each test states its α.

use fet_eval::bootstrap::{BootstrapError, BootstrapMethod, BootstrapSettings, bootstrap, bootstrap_of};
use fet_eval::conformal::{Bounds, ClassBound, Conformal};
use fet_eval::{ChaCha8Rng, Coverage, Covered, Metric, Predictions, Task};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Fails if a binomial of probability `p` is as far off as `hits` of `trials` with probability below 1e-3
/// (two-sided).
#[track_caller]
pub(crate) fn check_binomial(hits: u64, trials: u64, p: f64) {
    let binomial = Binomial::new(p, trials).expect("a binomial");
    let above = if hits == 0 { 1.0 } else { 1.0 - binomial.cdf(hits - 1) };
    let tail = binomial.cdf(hits).min(above);
    assert!(tail > 0.5e-3, "{hits} of {trials}, not {p}: tail {tail}");
}

/// Returns the number of `TRIALS` intervals of the mean of `rows` exponential numbers that cover the truth,
/// 1.
fn mean_hits(method: BootstrapMethod, rows: usize, alpha: f64) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let hits = (0..TRIALS).filter(|_| {
        let values: Vec<f64> = (0..rows).map(|_| Exp1.sample(&mut rng)).collect();
        let mean = |counts: &[f64]| {
            let sum: f64 = values.iter().zip(counts).map(|(value, count)| value * count).sum();
            Some(sum / counts.iter().sum::<f64>())
        };
        let settings = BootstrapSettings { resamples: 300, alpha, method };
        let interval = bootstrap_of(rows, mean, settings, &mut rng).expect("an interval");
        (interval.lower..=interval.upper).contains(&1.0)
    });
    hits.count() as u64
}

const TRIALS: u64 = 500;

/// Bootstrap coverage is correct only asymptotically. The mean of 100 exponential numbers is still skewed: at
/// α = 0.2 the test allows a true coverage 0.02 from nominal, and then a binomial of 500 trials at α = 1e-3.
#[test]
fn bootstrap_intervals_cover_the_truth() {
    for method in [BootstrapMethod::Percentile, BootstrapMethod::Bca] {
        let hits = mean_hits(method, 100, 0.2);
        check_binomial(hits, TRIALS, (hits as f64 / TRIALS as f64).clamp(0.78, 0.82));
    }
    check_binomial(mean_hits(BootstrapMethod::Percentile, 100, 0.5), TRIALS, 0.5);
}

#[test]
fn bootstrap_reports_its_method() {
    let truth: Vec<f64> = (0..40).map(|row| f64::from(row % 2)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let output: Vec<f64> = truth.iter().map(|y| (0.3 * y + rng.random_range(0.0..0.7f64)).min(1.0)).collect();
    let rows = Predictions::new(Task::Binary, &truth, &output).expect("right");
    let with = |rows: &Predictions<'_>, metric, seed| {
        bootstrap(rows, metric, BootstrapSettings::default(), &mut ChaCha8Rng::seed_from_u64(seed))
    };
    for metric in Metric::for_task(Task::Binary) {
        let interval = with(&rows, metric, 1).expect("an interval");
        assert!(
            interval.lower < interval.estimate && interval.estimate < interval.upper,
            "{metric}: {interval:?}"
        );
        assert_eq!(Some(interval.estimate), rows.scores().get(metric));
        assert_eq!((interval.method, interval.undefined), (BootstrapMethod::Bca, 0));
        assert_eq!(with(&rows, metric, 1).as_ref(), Ok(&interval));
        assert_ne!(with(&rows, metric, 2), Ok(interval));
    }
    // Equal weights change no result.
    let twos = vec![2.0; 40];
    let weighted = with(&rows.weighted(&twos).expect("right"), Metric::Brier, 1).expect("an interval");
    assert!((weighted.lower - with(&rows, Metric::Brier, 1).expect("an interval").lower).abs() < 1e-12);
    // Every resample of perfect predictions is perfect: BCa then corrects nothing.
    let perfect = Predictions::new(Task::Binary, &truth, &truth).expect("right");
    let interval = with(&perfect, Metric::Accuracy, 1).expect("an interval");
    assert_eq!((interval.lower, interval.upper, interval.method), (1.0, 1.0, BootstrapMethod::Percentile));
}

#[test]
fn refuses_rows_without_a_bootstrap() {
    let mut lonely = vec![0.0; 30];
    lonely[0] = 1.0;
    let rows = Predictions::new(Task::Binary, &lonely, &lonely).expect("right");
    let rng = || ChaCha8Rng::seed_from_u64(1);
    let error = bootstrap(&rows, Metric::AucRoc, BootstrapSettings::default(), &mut rng())
        .expect_err("often undefined");
    assert!(
        matches!(error, BootstrapError::OftenUndefined { undefined: 600..900, resamples: 2_000 }),
        "{error}"
    );
    let error =
        bootstrap(&rows, Metric::Rmse, BootstrapSettings::default(), &mut rng()).expect_err("another task");
    assert!(error.to_string().contains("not a metric of the task"), "{error}");
    for (rows, resamples, alpha, expect) in [
        (9, 1, 0.1, "not 1 and 0.1"),
        (9, 9, 0.0, "not 9 and 0"),
        (1, 9, 0.1, "at least 2 rows"),
        (9, 9, 0.1, "undefined"),
    ] {
        let settings = BootstrapSettings { resamples, alpha, method: BootstrapMethod::Auto };
        let error = bootstrap_of(rows, |_| None, settings, &mut rng()).expect_err(expect);
        assert!(error.to_string().contains(expect), "{error}");
    }
}

/// Repeats one calibration with one test row 2,000 times. Without ties in the scores, coverage is exactly k /
/// (n + 1) over the n rows that calibrate the bound of the test row; a binomial test at α = 1e-3 detects other
/// rates. `table` returns truths and outputs for a number of rows.
#[track_caller]
fn check_conformal(
    task: Task,
    rows: usize,
    alpha: f64,
    table: impl Fn(usize, &mut ChaCha8Rng) -> (Vec<f64>, Vec<f64>),
) {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let (mut hits, mut exact, trials) = (0, 0.0, 2_000);
    for _ in 0..trials {
        let (truth, output) = table(rows, &mut rng);
        let conformal =
            Conformal::new(&Predictions::new(task, &truth, &output).expect("right"), alpha, &mut rng)
                .expect("calibrated");
        let (truth, output) = table(1, &mut rng);
        let test = Predictions::new(task, &truth, &output).expect("right");
        hits += u64::from(conformal.covers(&test, 0));
        let calibrating = match &conformal.bounds {
            Bounds::Classes(classes) => classes[test.class(0)].rows,
            Bounds::Width(_) | Bounds::Scaled { .. } | Bounds::AllClasses(_) => conformal.rows,
        };
        // Without a bound the row is always covered.
        let rank = fet_eval::conformal::rank(calibrating, alpha).unwrap_or(calibrating + 1);
        let probability = rank as f64 / (calibrating + 1) as f64;
        assert!(probability >= 1.0 - alpha && probability <= 1.0 - alpha + 1.0 / (calibrating + 1) as f64);
        exact += probability / trials as f64;
    }
    check_binomial(hits, trials, exact);
}

#[test]
fn conformal_intervals_and_sets_cover_the_truth() {
    let number = |rows: usize, rng: &mut ChaCha8Rng| {
        let output: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..9.0)).collect();
        // The noise grows with the prediction. Constant and scaled intervals cover the truth on average.
        let noise = |p: &f64, rng: &mut ChaCha8Rng| -> f64 {
            let z: f64 = StandardNormal.sample(rng);
            z * (1.0 + p)
        };
        (output.iter().map(|p| p + noise(p, rng)).collect(), output)
    };
    check_conformal(Task::Regression, 39, 0.1, number);
    check_conformal(Task::Regression, 50, 0.25, number);
    check_conformal(Task::Regression, 400, 0.1, number);
    let classes = |rows: usize, rng: &mut ChaCha8Rng| {
        let (mut truth, mut output) = (vec![], vec![]);
        for _ in 0..rows {
            let parts: [f64; 3] = std::array::from_fn(|_| Exp1.sample(rng));
            let sum: f64 = parts.iter().sum();
            output.extend(parts.map(|part| part / sum));
            let draw = rng.random_range(0.0..1.0);
            // The truth is drawn from squared probabilities: the model is miscalibrated, but the sets still
            // cover the truth.
            let squares: f64 = parts.iter().map(|part| part * part).sum();
            let reach = |class: usize| parts[..=class].iter().map(|part| part * part).sum::<f64>() / squares;
            truth.push((0..3).find(|class| draw < reach(*class)).unwrap_or(2) as f64);
        }
        (truth, output)
    };
    check_conformal(Task::Multiclass { classes: 3 }, 39, 0.1, classes);
    let binary = |rows: usize, rng: &mut ChaCha8Rng| {
        let output: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..1.0)).collect();
        (output.iter().map(|p| f64::from(u8::from(rng.random_range(0.0..1.0) < *p))).collect(), output)
    };
    check_conformal(Task::Binary, 29, 0.3, binary);
}

/// Returns the least probability of a group's number of covered rows, over both sides of the binomial and
/// over all groups, times the number of groups (Bonferroni).
fn worst(groups: &[Covered], stated: f64) -> f64 {
    let tail = |group: &Covered| {
        let binomial = Binomial::new(stated, group.rows as u64).expect("a binomial");
        let covered = group.covered as u64;
        let above = if covered == 0 { 1.0 } else { 1.0 - binomial.cdf(covered - 1) };
        (2.0 * binomial.cdf(covered).min(above)).min(1.0)
    };
    groups.iter().map(tail).fold(1.0, f64::min) * groups.len() as f64
}

/// The standard deviation of the residuals grows tenfold over the predictions. With many calibration rows the
/// coverage of every decile is the stated one, within a binomial test at α = 1e-3 over all deciles and both
/// sides. Intervals of constant width fail the same test.
#[test]
fn scaled_intervals_cover_every_decile() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut table = |rows: usize| {
        let output: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..9.0)).collect();
        let truth =
            output.iter().map(|p| p + (1.0 + p) * Distribution::<f64>::sample(&StandardNormal, &mut rng));
        (truth.collect::<Vec<f64>>(), output)
    };
    let (truth, output) = table(20_000);
    let validation = Predictions::new(Task::Regression, &truth, &output).expect("right");
    let (truth, output) = table(4_000);
    let test = Predictions::new(Task::Regression, &truth, &output).expect("right");
    for alpha in [0.1, 0.3] {
        let deciles = |conformal: &Conformal| -> Vec<Covered> {
            let coverage = Coverage::new(conformal, &test);
            coverage.deciles.iter().map(|decile| decile.covered).collect()
        };
        let scaled = Conformal::new(&validation, alpha, &mut ChaCha8Rng::seed_from_u64(6)).expect("right");
        let scaled = deciles(&scaled);
        let constant = deciles(&Conformal::constant(&validation, alpha).expect("right"));
        assert!(worst(&scaled, 1.0 - alpha) > 1e-3, "{scaled:?}");
        assert!(worst(&constant, 1.0 - alpha) < 1e-9, "{constant:?}");
        if alpha == 0.1 {
            let width = |all: &[Covered]| all.iter().filter_map(|decile| decile.size).sum::<f64>();
            assert!(width(&scaled) < 0.95 * width(&constant), "the intervals are shorter on average");
        }
    }
}

/// With 300 validation rows too, the intervals of the largest tenth of the predictions cover about as stated.
/// A draw of validation rows has a standard deviation of at most 0.1, so the mean over 200 draws is within
/// 0.023 of its expectation at α = 1e-3. The spread is fitted to 150 rows, which costs up to 0.02.
#[test]
fn few_validation_rows_suffice_for_scaled_intervals() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut top = [0.0; 2];
    for _ in 0..200 {
        let mut table = |rows: usize| {
            let output: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..9.0)).collect();
            let truth =
                output.iter().map(|p| p + (1.0 + p) * Distribution::<f64>::sample(&StandardNormal, &mut rng));
            (truth.collect::<Vec<f64>>(), output)
        };
        let (truth, output) = table(300);
        let validation = Predictions::new(Task::Regression, &truth, &output).expect("right");
        let (truth, output) = table(1_000);
        let test = Predictions::new(Task::Regression, &truth, &output).expect("right");
        let scaled = Conformal::new(&validation, 0.1, &mut ChaCha8Rng::seed_from_u64(10)).expect("right");
        let constant = Conformal::constant(&validation, 0.1).expect("right");
        for (sum, conformal) in top.iter_mut().zip([&scaled, &constant]) {
            let coverage = Coverage::new(conformal, &test);
            *sum += coverage.deciles.last().and_then(|decile| decile.covered.share()).expect("rows") / 200.0;
        }
    }
    let [scaled, constant] = top;
    assert!((scaled - 0.9).abs() < 0.043, "{scaled}");
    assert!(constant < 0.75, "{constant}");
}

/// One row of twenty has class 1, and the model gives it a low probability. The sets cover both classes as
/// stated, within a binomial test at α = 1e-3. One bound for all classes covers few rows of class 1.
#[test]
fn sets_cover_a_rare_class() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut table = |rows: usize| {
        let (mut truth, mut output) = (vec![], vec![]);
        for _ in 0..rows {
            let class = f64::from(u8::from(rng.random_range(0.0..1.0) < 0.05));
            let noise: f64 = StandardNormal.sample(&mut rng);
            truth.push(class);
            output.push(1.0 / (1.0 + (3.0 - 1.5 * class - noise).exp()));
        }
        (truth, output)
    };
    let (truth, output) = table(40_000);
    let validation = Predictions::new(Task::Binary, &truth, &output).expect("right");
    let (truth, output) = table(8_000);
    let test = Predictions::new(Task::Binary, &truth, &output).expect("right");
    let conformal = Conformal::new(&validation, 0.1, &mut ChaCha8Rng::seed_from_u64(8)).expect("right");
    let found = Coverage::new(&conformal, &test);
    assert!(worst(&found.classes, 0.9) > 1e-3, "{found:?}");
    assert!(found.shortfall(&conformal) > 1e-3, "{}", found.shortfall(&conformal));

    // The bound of earlier versions: the score of the true class over all rows together.
    let mut scores: Vec<f64> =
        (0..validation.rows()).map(|row| 1.0 - validation.probability(row, validation.class(row))).collect();
    scores.sort_by(f64::total_cmp);
    let bound = scores[fet_eval::conformal::rank(scores.len(), 0.1).expect("enough rows") - 1];
    let pooled = ClassBound { rows: scores.len(), bound: Some(bound) };
    let pooled = Conformal { bounds: Bounds::Classes(vec![pooled; 2]), ..conformal };
    let found = Coverage::new(&pooled, &test);
    assert!((found.all.share().expect("rows") - 0.9).abs() < 0.02, "{found:?}");
    assert!(found.classes[1].share().expect("rows") < 0.3 && worst(&found.classes, 0.9) < 1e-9, "{found:?}");
    assert!(found.shortfall(&pooled) < 1e-9);
}
