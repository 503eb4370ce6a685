//! Coverage of the intervals of a paired difference on data with known truth. Seeds are fixed; each test states
//! its α.

use fet_eval::bootstrap::{BootstrapMethod, BootstrapSettings};
use fet_eval::paired::{Ends, PairedDifference, PairedError, TestedRun, bounded_settings, difference};
use fet_eval::{ChaCha8Rng, Metric, SeedableRng, Task};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::coverage::check_binomial;

/// 95 % intervals from few resamples, so that a simulation is quick.
const QUICK: BootstrapSettings =
    BootstrapSettings { resamples: 100, alpha: 0.05, method: BootstrapMethod::Percentile };

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Returns two runs whose MAE on `rows` differ by the mean of `differences`.
fn runs(seed: u64, rows: &[u64], differences: &[f64]) -> [TestedRun; 2] {
    let run = |output: Vec<f64>| TestedRun {
        seed,
        fold: 0,
        task: Task::Regression,
        rows: rows.to_vec(),
        truth: vec![0.0; rows.len()],
        output,
        fitted: 4 * rows.len(),
    };
    [run(differences.iter().map(|d| 100.0 + d).collect()), run(vec![100.0; rows.len()])]
}

fn compare(pairs: Vec<[TestedRun; 2]>, rng: &mut ChaCha8Rng) -> PairedDifference {
    let (variant, control): (Vec<_>, Vec<_>) = pairs.into_iter().map(|[a, b]| (a, b)).unzip();
    difference(&variant, &control, Metric::Mae, QUICK, rng).expect("a difference")
}

fn covers(ends: Ends, truth: f64) -> bool {
    (ends.lower..=ends.upper).contains(&truth)
}

/// Fails if `hits` of `trials` are improbable for every coverage from `low` to `high`, by a two-sided binomial
/// test at α = 1e-3.
#[track_caller]
fn check_coverage(hits: u64, trials: u64, [low, high]: [f64; 2]) {
    check_binomial(hits, trials, (hits as f64 / trials as f64).clamp(low, high));
}

/// Differences with an effect of the row (standard deviation σ₁), of the seed (σ₂) and of both together (σ₃), on
/// the same 60 rows for every seed. The interval over rows and splits must cover 95 % whichever effect is largest.
/// The interval is never narrower than that over rows, so that it may cover more: up to 99 %. The second line has
/// row and seed effects of equal size, so that neither of the two parts alone would be wide enough.
#[test]
fn intervals_cover_the_truth_if_all_seeds_share_the_test_rows() {
    let trials = 600;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let rows: Vec<u64> = (0..60).collect();
    for ([of_row, of_seed, of_both], seeds, range) in [
        ([1.0, 0.0, 0.3], 5, [0.93, 0.97]),
        ([1.0, 0.58, 0.0], 20, [0.94, 0.96]),
        ([0.2, 0.5, 0.2], 5, [0.94, 0.96]),
        ([0.0, 0.0, 1.0], 5, [0.94, 0.99]),
    ] {
        let (mut all, mut these) = (0, 0);
        for _ in 0..trials {
            let row_effects: Vec<f64> = rows.iter().map(|_| of_row * normal(&mut rng)).collect();
            let mut mean_of_seeds = 0.0;
            let mut pairs = Vec::new();
            for seed in 0..seeds {
                let seed_effect = of_seed * normal(&mut rng);
                mean_of_seeds += seed_effect / seeds as f64;
                let each = |row: &f64| 1.0 + row + seed_effect + of_both * normal(&mut rng);
                pairs.push(runs(seed, &rows, &row_effects.iter().map(each).collect::<Vec<_>>()));
            }
            let found = compare(pairs, &mut rng);
            assert!(found.same_rows && found.rows == 60 && found.pairs == seeds as usize);
            all += u64::from(covers(found.over_rows_and_splits.expect("several seeds"), 1.0));
            // The models of these runs differ by the mean of their seeds' effects.
            these += u64::from(covers(found.over_rows, 1.0 + mean_of_seeds));
        }
        check_coverage(all, trials, range);
        check_coverage(these, trials, [0.93, 0.97]);
    }
}

/// Learning problem y = b x + a + ε, for the comparison of a method with a simpler one.
struct Problem {
    slope: f64,
    constant: f64,
    /// True to compare least squares with the mean, false to compare the mean with 0.
    is_least_squares: bool,
    rows: usize,
    test: usize,
    splits: usize,
    is_cross_validation: bool,
}

impl Problem {
    fn sample(&self, rows: usize, rng: &mut ChaCha8Rng) -> Vec<[f64; 2]> {
        let row = |rng: &mut ChaCha8Rng| {
            let x = normal(rng);
            [x, self.slope * x + self.constant + normal(rng)]
        };
        (0..rows).map(|_| row(rng)).collect()
    }

    /// Returns a run of the method and a run of the simpler one.
    fn runs(&self, seed: u64, table: &[[f64; 2]], train: &[usize], test: &[usize]) -> [TestedRun; 2] {
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| {
            train.iter().map(|&row| of(&table[row])).sum::<f64>() / train.len() as f64
        };
        let (x, y) = (mean(&|row| row[0]), mean(&|row| row[1]));
        let slope = mean(&|row| (row[0] - x) * (row[1] - y)) / mean(&|row| (row[0] - x).powi(2));
        let run = |constant: f64, slope: f64| TestedRun {
            seed,
            fold: 0,
            task: Task::Regression,
            rows: test.iter().map(|&row| row as u64).collect(),
            truth: test.iter().map(|&row| table[row][1]).collect(),
            output: test.iter().map(|&row| constant + slope * (table[row][0] - x)).collect(),
            fitted: train.len(),
        };
        if self.is_least_squares { [run(y, slope), run(y, 0.0)] } else { [run(y, 0.0), run(0.0, 0.0)] }
    }

    /// Returns the expected difference over tables, training rows and test rows.
    fn truth(&self, rng: &mut ChaCha8Rng) -> f64 {
        let fitted = self.rows - self.test;
        let (train, test): (Vec<usize>, Vec<usize>) =
            ((0..fitted).collect(), (fitted..fitted + 1_000).collect());
        let one = |rng: &mut ChaCha8Rng| {
            let [a, b] = self.runs(0, &self.sample(fitted + 1_000, rng), &train, &test);
            mae(&a) - mae(&b)
        };
        (0..4_000).map(|_| one(rng)).sum::<f64>() / 4_000.0
    }

    /// Returns the runs of all splits of one table.
    fn study(&self, rng: &mut ChaCha8Rng) -> Vec<[TestedRun; 2]> {
        let table = self.sample(self.rows, rng);
        let common = shuffled(self.rows, rng);
        let pair = |split: usize| {
            let mut order = common.clone();
            if self.is_cross_validation {
                order.rotate_left(self.test * split);
            } else {
                order = shuffled(self.rows, rng);
            }
            self.runs(split as u64, &table, &order[self.test..], &order[..self.test])
        };
        (0..self.splits).map(pair).collect()
    }
}

fn mae(run: &TestedRun) -> f64 {
    run.truth.iter().zip(&run.output).map(|(y, p)| (y - p).abs()).sum::<f64>() / run.rows.len() as f64
}

fn shuffled(rows: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    (1..rows).for_each(|at| order.swap(at, rng.random_range(0..=at as u64) as usize));
    order
}

/// The truth is the expected difference of two methods over tables, training and test rows. The interval over rows
/// and splits covers it at least 94 % of the time. Student's interval over the same differences covers less than
/// 93 %, because the splits share training or test rows.
#[test]
fn intervals_cover_the_truth_if_the_splits_differ() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let folds = Problem {
        slope: 0.3,
        constant: 0.0,
        is_least_squares: true,
        rows: 100,
        test: 10,
        splits: 10,
        is_cross_validation: true,
    };
    let random = Problem { test: 20, splits: 5, is_cross_validation: false, ..folds };
    let few = Problem {
        slope: 0.0,
        constant: 0.2,
        is_least_squares: false,
        rows: 40,
        test: 8,
        splits: 20,
        is_cross_validation: false,
    };
    let trials = 1_000;
    for problem in [folds, random, few] {
        let truth = problem.truth(&mut rng);
        let degrees = problem.splits as f64 - 1.0;
        let student = StudentsT::new(0.0, 1.0, degrees).expect("degrees").inverse_cdf(0.975);
        let (mut hits, mut naive) = (0, 0);
        for _ in 0..trials {
            let pairs = problem.study(&mut rng);
            let differences: Vec<f64> = pairs.iter().map(|[a, b]| mae(a) - mae(b)).collect();
            let mean = differences.iter().sum::<f64>() / problem.splits as f64;
            let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
            naive +=
                u64::from((mean - truth).abs() <= student * (squares / degrees / (degrees + 1.0)).sqrt());
            let found = compare(pairs, &mut rng);
            assert!(!found.same_rows && (found.estimate - mean).abs() < 1e-12);
            assert!(!problem.is_cross_validation || found.rows == problem.rows, "folds test every row");
            hits += u64::from(covers(found.over_rows_and_splits.expect("several splits"), truth));
        }
        check_coverage(hits, trials, [0.94, 1.0]);
        let below = Binomial::new(0.93, trials).expect("a binomial").cdf(naive);
        assert!(below < 0.05, "Student's interval covers {naive} of {trials}");
    }
}

/// Both runs of seeds 0 to 2 on 40 rows, with a difference of 1 + seed / 10 and a row effect.
fn three_seeds() -> [Vec<TestedRun>; 2] {
    let rows: Vec<u64> = (0..40).collect();
    let pair = |seed: u64| {
        let each = |row: &u64| 1.0 + seed as f64 / 10.0 + (*row as f64 - 19.5) / 20.0;
        runs(seed, &rows, &rows.iter().map(each).collect::<Vec<_>>())
    };
    let (variant, control) = (0..3).map(pair).map(|[a, b]| (a, b)).unzip();
    [variant, control]
}

fn compared(variant: &[TestedRun], control: &[TestedRun]) -> Result<PairedDifference, PairedError> {
    let settings = bounded_settings(variant, Metric::Mae);
    difference(variant, control, Metric::Mae, settings, &mut ChaCha8Rng::seed_from_u64(1))
}

#[test]
fn pairs_runs_by_seed_and_rows_by_number() {
    let [variant, mut control] = three_seeds();
    let found = compared(&variant, &control).expect("a difference");
    assert_eq!((found.pairs, found.rows, found.resamples, found.same_rows), (3, 40, 2_000, true));
    assert!((found.estimate - 1.1).abs() < 1e-9, "{found:?}");
    // The mean of 40 rows has the standard error 0.577 / √40 = 0.0924 (with the sample variance), and the seeds
    // add 0.1 / √3 = 0.0577: √(0.0924² + 0.0577²) = 0.109.
    // Uniform row effects: 40 / 1.8 = 22 rows determine the variance, and t is 2.08 with 21 degrees of freedom.
    assert!((found.over_rows.upper - found.over_rows.lower - 2.0 * 2.08 * 0.0924).abs() < 0.02, "{found:?}");
    let ends = found.over_rows_and_splits.expect("three seeds");
    // Satterthwaite: 0.0119² / (0.00333² / 2 + 0.00854² / 21) = 16 degrees of freedom, and t is 2.12.
    assert!((ends.upper - ends.lower - 2.0 * 2.12 * 0.109).abs() < 0.02, "{ends:?}");
    assert!(!ends.contains_zero() && Ends { lower: -0.5, upper: 0.0 }.contains_zero());
    // The order of runs and rows, and runs without a partner, change nothing.
    control.reverse();
    control[0].rows.reverse();
    control.push(TestedRun { seed: 9, ..control[0].clone() });
    assert_eq!(compared(&variant, &control).expect("a difference"), found);
    let one = compared(&variant[..1], &control).expect("a difference");
    assert_eq!((one.pairs, one.over_rows_and_splits), (1, None));
}

/// Two seeds that test the same rows have the row effects in common; seeds on other rows average them.
#[test]
fn rows_that_seeds_share_count_in_each_seed() {
    let effects: Vec<f64> = (0..40).map(|row| f64::from(row % 7)).collect();
    let width = |rows: [u64; 2]| {
        let pairs = [0, 1].map(|seed| {
            let start = rows[seed as usize];
            runs(seed, &(start..start + 40).collect::<Vec<_>>(), &effects)
        });
        let found = compare(pairs.to_vec(), &mut ChaCha8Rng::seed_from_u64(3));
        found.over_rows.upper - found.over_rows.lower
    };
    let ratio = width([0, 0]) / width([0, 40]);
    // √2, with the noise of 100 resamples of either: 7 % each, so that 1 ± 0.3 is three standard errors.
    assert!((ratio / 2.0_f64.sqrt() - 1.0).abs() < 0.3, "{ratio}");
}

/// Two classifiers that differ on k of 60 rows, all in favour of one. The exact test of McNemar has p = 2 / 2^k: 0.0625
/// for five rows, and 0.0156 for seven. A bootstrap alone would exclude 0 from three rows on.
#[test]
fn few_rows_that_differ_do_not_exclude_zero() {
    let run = |wrong: usize| TestedRun {
        seed: 0,
        fold: 0,
        task: Task::Binary,
        rows: (0..60).collect(),
        truth: vec![1.0; 60],
        output: (0..60).map(|row| f64::from(u8::from(row >= wrong))).collect(),
        fitted: 100,
    };
    let exact = BootstrapSettings { method: BootstrapMethod::Bca, ..BootstrapSettings::default() };
    let cases = [(1, false), (3, false), (5, false), (7, true), (12, true)];
    for ((differing, excludes), settings) in cases.into_iter().flat_map(|case| [(case, exact), (case, QUICK)])
    {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let found = difference(&[run(2)], &[run(2 + differing)], Metric::Accuracy, settings, &mut rng);
        let found = found.expect("a difference");
        assert_eq!(!found.over_rows.contains_zero(), excludes, "{differing} rows: {found:?}");
    }
}

#[test]
fn refuses_runs_that_cannot_be_paired() {
    let [variant, control] = three_seeds();
    let check = |change: &dyn Fn(&mut TestedRun), part: &str| {
        let mut control = control.clone();
        control.iter_mut().for_each(change);
        let error = compared(&variant, &control).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    };
    check(&|run| run.seed += 10, "lack a common seed and fold");
    check(&|run| run.rows[0] = 99, "with seed 0 the two variants were tested on different rows");
    check(&|run| run.truth[3] = 1.0, "different rows");
    check(&|run| run.rows[0] = 1, "row 1 appears twice");
    check(&|run| run.output[0] = f64::NAN, "row 0 (from 0) holds NaN");
    check(&|run| run.output.truncate(3), "these rows need 40 outputs, not 3");
    check(&|run| run.rows.truncate(3), "these rows need 40 row numbers, not 3");
    let without: Vec<TestedRun> = variant.iter().map(|run| TestedRun { fitted: 0, ..run.clone() }).collect();
    let error = compared(&without, &control).expect_err("no training rows").to_string();
    assert!(error.contains("number of training rows is 0"), "{error}");
    let error = difference(&variant, &control, Metric::AucRoc, QUICK, &mut ChaCha8Rng::seed_from_u64(1));
    assert!(error.expect_err("another task").to_string().contains("not a metric of the task"));
}

/// One positive row is absent from 37 % of the resamples.
#[test]
fn refuses_an_interval_if_a_class_is_too_rare() {
    let run = |output: Vec<f64>| TestedRun {
        seed: 0,
        fold: 0,
        task: Task::Binary,
        rows: (0..30).collect(),
        truth: (0..30).map(|row| f64::from(u8::from(row == 4))).collect(),
        output,
        fitted: 100,
    };
    let scores: Vec<f64> = (0..30).map(|row| f64::from(row) / 30.0).collect();
    let error = difference(
        &[run(scores)],
        &[run(vec![0.5; 30])],
        Metric::AucRoc,
        BootstrapSettings::default(),
        &mut ChaCha8Rng::seed_from_u64(1),
    );
    let error = error.expect_err("too rare");
    assert!(
        matches!(error, PairedError::OftenUndefined { undefined: 600..900, resamples: 2_000 }),
        "{error}"
    );
}
