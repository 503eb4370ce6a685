//! Tests that split-conformal intervals and sets of classes contain the true value with their stated
//! probability.

use fet_core::data::Task;
use fet_eval::Covered;
use fet_eval::conformal::{self, Bounds};
use statrs::function::beta::ln_beta;
use statrs::function::factorial::ln_binomial;

use crate::support::{experiment, flex, losses, open, square};

/// Returns the probability that at most `covered` of `tested` rows are covered, if n exchangeable rows
/// calibrated a bound of that rank.
///
/// The coverage probability of a new row follows Beta(rank, n + 1 - rank) (Vovk 2012); given this
/// probability, the number of covered rows is binomial.
pub(crate) fn at_most(covered: usize, tested: usize, rank: usize, rows: usize) -> f64 {
    let (a, b) = (rank as f64, (rows + 1 - rank) as f64);
    let of = |k: usize| {
        let shares = ln_beta(a + k as f64, b + (tested - k) as f64) - ln_beta(a, b);
        (ln_binomial(tested as u64, k as u64) + shares).exp()
    };
    (0..=covered).map(of).sum()
}

/// Tests at α = 1e-3 for each group of test rows, two-sided; the runs are deterministic. A regression is one
/// group; otherwise the rows of each class are a group.
///
/// The test would detect a bound of another rank: a bound for 80 % instead of 90 % covers 60 of 600 test rows
/// fewer, more than five standard deviations.
#[test]
fn intervals_cover_the_truth_as_stated() {
    const ALPHA: f64 = 1e-3;
    let cases =
        [(Task::Regression, 0.9), (Task::Regression, 0.5), (Task::Binary, 0.9), (Task::Multiclass, 0.8)];
    for (task, coverage) in cases {
        let experiment = experiment(&["train.epochs=2", "train.batch_size=128"]);
        let (mut trainer, _parties) = open(&experiment, square(3_000, task), &flex());
        while !trainer.is_done() {
            losses(&mut trainer);
        }
        let found = trainer.conformal(coverage).expect("validation rows");
        let [validation, test] = trainer.evaluated().expect("an epoch");
        let covered = trainer.coverage(&found).expect("an epoch");
        assert_eq!(covered.all.rows, test.rows.len());
        let groups = match &found.bounds {
            Bounds::Classes(classes) => {
                assert_eq!(found.rows, validation.rows.len());
                covered.classes.iter().zip(classes).map(|(covered, class)| (*covered, class.rows)).collect()
            }
            Bounds::Width(_) | Bounds::Scaled { .. } | Bounds::AllClasses(_) => {
                vec![(covered.all, found.rows)]
            }
        };
        for (Covered { rows: m, covered, .. }, n) in groups {
            let rank = conformal::rank(n, 1.0 - coverage).expect("enough rows");
            let (below, above) = (at_most(covered, m, rank, n), 1.0 - at_most(covered - 1, m, rank, n));
            let case = format!("{task:?}, {coverage}: {covered} of {m} test rows, {n} calibration rows");
            assert!(below > ALPHA / 2.0, "too few, {case}");
            assert!(above > ALPHA / 2.0, "too many, {case}");
        }
    }
}
