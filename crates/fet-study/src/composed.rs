//! Composed privacy loss of all runs of a study. Each report accounts for one run, but all runs release the
//! same tables.
//!
//! Runs without sampling compose exactly, as Gaussian mechanisms: their μ² add up. If any run relies on
//! amplification by sampling, ε and δ add up instead. Every run counts, even if its releases equal those of
//! another run.

use fet_eval::records::{Guarantee, Report, TableRelation};
use statrs::distribution::{ContinuousCDF, Normal};

/// Largest ε that is printed as a number.
const LARGEST: f64 = 500.0;

/// Accumulated privacy loss of the runs that have a privacy mechanism or a release.
#[derive(Debug, Clone, Default)]
pub(crate) struct Composed {
    /// Neighbouring relations of the releases.
    relations: Vec<TableRelation>,
    runs: usize,
    /// Sum of μ² over the runs, each at the noise of the release with the fewest parties.
    squares: f64,
    sampled: bool,
    /// Sum of ε of losses without δ.
    pure: f64,
    /// Sums of ε and δ.
    sums: (f64, f64),
    /// Largest δ.
    delta: f64,
}

impl Composed {
    /// Adds the run of a report, if it has a privacy mechanism or a release.
    pub(crate) fn add(&mut self, report: &Report) {
        self.add_release(report);
        let Some(privacy) = &report.privacy else { return };
        let Some(Guarantee { noise_multiplier, releases, amplification, sample_rate, .. }) =
            privacy.guarantee
        else {
            return;
        };
        self.runs += 1;
        self.squares += releases as f64 / noise_multiplier.powi(2);
        self.sampled |= amplification && sample_rate < 1.0;
        self.sums.0 += privacy.epsilon.unwrap_or(f64::INFINITY);
        self.sums.1 += privacy.delta;
        self.delta = self.delta.max(privacy.delta);
    }

    /// Adds the releases that secondaries made once: the one with the largest loss, because each is of
    /// another table.
    fn add_release(&mut self, report: &Report) {
        let Some(release) = report.release.as_ref().filter(|release| !release.noise_only) else { return };
        let least = release.parties.iter().map(|party| party.noise_multiplier).fold(f64::INFINITY, f64::min);
        let codes = release.parties.iter().filter_map(|party| party.code.as_ref());
        if !self.relations.contains(&release.neighbouring) {
            self.relations.push(release.neighbouring);
        }
        self.runs += 1;
        self.squares += least.powi(-2);
        self.pure += codes.map(|code| code.epsilon).fold(0.0, f64::max);
        self.sums.0 += release.epsilon();
        self.sums.1 += release.delta;
        self.delta = self.delta.max(release.delta);
    }

    /// Returns a warning if more than one run has a privacy mechanism or a release.
    pub(crate) fn warning(&self) -> Option<String> {
        let (epsilon, delta) = match self.sampled {
            true => self.sums,
            false => (self.pure + epsilon(self.squares.sqrt(), self.delta), self.delta),
        };
        let epsilon = match epsilon {
            epsilon if epsilon <= LARGEST => format!("{epsilon:.4}"),
            _ => format!("more than {LARGEST}"),
        };
        if self.relations.len() > 1 {
            return Some(format!(
                "Warning: {} runs have a privacy mechanism or a release, and read the same tables. They protect different changes of \
                 a table, so that no ε covers them together.",
                self.runs
            ));
        }
        (self.runs > 1).then(|| {
            format!(
                "Warning: {} runs have a privacy mechanism or a release, and read the same tables. Their total privacy loss is ε = {epsilon} at δ = \
                 {delta:e}; the ε of each report covers only one run.",
                self.runs
            )
        })
    }
}

/// Returns the smallest ε for which a Gaussian mechanism with this μ is (ε, δ)-private.
fn epsilon(mu: f64, delta: f64) -> f64 {
    let normal = Normal::standard();
    let found = |epsilon: f64| {
        normal.cdf(mu / 2.0 - epsilon / mu) - epsilon.exp() * normal.cdf(-mu / 2.0 - epsilon / mu)
    };
    let (mut low, mut high) = (0.0, LARGEST * 1.01);
    let enough = |epsilon: f64| found(epsilon) <= delta;
    if !enough(high) {
        return f64::INFINITY;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values come from the accountant (`fet account --noise 1/μ`).
    #[test]
    fn epsilon_equals_the_accountants() {
        for (mu, expected) in [(0.5, 1.993091), (1.0, 4.377178), (2.5, 13.206712)] {
            let found = epsilon(mu, 1e-5);
            assert!((found - expected).abs() < 1e-3, "{mu}: {found}");
        }
        assert_eq!(epsilon(1e3, 1e-5), f64::INFINITY);
        assert_eq!(epsilon(f64::INFINITY, 1e-5), f64::INFINITY);
    }

    #[test]
    fn warns_if_several_runs_compose() {
        let mut five = Composed::default();
        assert_eq!(five.warning(), None);
        for _ in 0..5 {
            five.runs += 1;
            five.squares += 0.5;
            (five.sums.0, five.sums.1, five.delta) = (five.sums.0 + 3.0, five.sums.1 + 1e-5, 1e-5);
        }
        let expected = epsilon(2.5f64.sqrt(), 1e-5);
        let warning = five.warning().expect("several");
        assert!(warning.contains("5 runs") && warning.contains(&format!("ε = {expected:.4}")), "{warning}");
        five.sampled = true;
        let warning = five.warning().expect("several");
        assert!(warning.contains("ε = 15.0000 at δ = 5"), "{warning}");
        assert_eq!(Composed { runs: 1, ..five }.warning(), None);
    }

    /// ε of symbols adds to that of sums, and releases under different relations have no common ε.
    #[test]
    fn symbols_add_up_under_one_relation() {
        let mut two = Composed { runs: 2, squares: 1.0, pure: 3.0, delta: 1e-5, ..Composed::default() };
        two.relations.push(TableRelation::AddRemove);
        let expected = 3.0 + epsilon(1.0, 1e-5);
        let warning = two.warning().expect("several");
        assert!(warning.contains(&format!("ε = {expected:.4}")), "{warning}");
        two.relations.push(TableRelation::Features);
        let warning = two.warning().expect("several");
        assert!(warning.contains("no ε covers them together"), "{warning}");
    }
}
