//! Settings of a mechanism that clips and adds Gaussian noise, and quantities that depend only on these
//! settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::privacy::{Learning, Neighbouring};
use fet_core::registry::Violation;

/// Settings of `gaussian` and `discrete-gaussian` (paper, section 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseSettings {
    /// C, the maximum L2 norm of one row's clipped block, summed over the parties: each of |A| parties clips
    /// its own block to C/|A|.
    #[schemars(range(min = 1e-6, max = 1_000_000))]
    pub clip: f64,
    /// σ, the noise multiplier: the noise on the sum has the standard deviation σ·C. Computed from
    /// `target_epsilon` unless that is 0.
    #[schemars(range(min = 1e-6, max = 1_000_000))]
    pub noise: f64,
    /// Target ε of the whole run, which determines σ; with 0, `noise` is σ.
    #[schemars(range(min = 0, max = 20), extend("x-rule" = "at least 0.001 unless it is 0"))]
    pub target_epsilon: f64,
    /// δ, the probability that the bound ε fails: well below one divided by the number of records.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub delta: f64,
    /// Neighbouring relation: the pairs of data sets that ε makes indistinguishable.
    pub neighbouring: Neighbouring,
    /// Treatment of the secondaries' models, which learn from the protected records, in ε.
    pub learning: Learning,
    /// q, the probability that a secondary uses a record in a release, drawn independently for each record
    /// and release; 1 uses all records.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub sample_rate: f64,
    /// True if ε takes the sampling of records by `sample_rate` into account (amplification by subsampling).
    pub amplification: bool,
    /// Maximum number of rows of a release for which one record may be a neighbour; 0 for no limit.
    pub max_occurrences: usize,
    /// t, the number of secondaries that may collude with the primary; the noise of the other secondaries
    /// must suffice for ε. 0 for none.
    pub colluding: usize,
}

impl Default for NoiseSettings {
    fn default() -> Self {
        Self {
            clip: 1.0,
            noise: 4.0,
            target_epsilon: 0.0,
            delta: 1e-5,
            neighbouring: Neighbouring::Replace,
            learning: Learning::Counted,
            sample_rate: 1.0,
            amplification: false,
            max_occurrences: 0,
            colluding: 0,
        }
    }
}

impl NoiseSettings {
    /// Checks settings that depend on each other.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let target = self.target_epsilon;
        if !(target == 0.0 || target >= 1e-3) {
            return Err(Violation::new("target_epsilon", "must be at least 0.001 unless it is 0", target));
        }
        if self.learning == Learning::Counted && self.max_occurrences > 0 {
            let rule = "must be 0 if `learning` is \"counted\": a record affects every row through the \
                weights it trained. A limit needs \"frozen\"";
            return Err(Violation::new("max_occurrences", rule, self.max_occurrences));
        }
        if !self.amplification {
            return Ok(());
        }
        let refuse = |rule: &str| Err(Violation::new("amplification", rule, true));
        match (self.learning, self.neighbouring) {
            (Learning::Counted, _) => refuse(
                "must be false if `learning` is \"counted\": a record that is not drawn still affects \
                 rows through the weights it trained",
            ),
            // A replaced record is drawn or not under either key. The pair of mixtures that the accountant
            // composes does not dominate this case (Lebeda, Regehr, Kamath, Steinke 2024).
            (_, Neighbouring::Replace | Neighbouring::Record) => refuse(
                "must be false unless `neighbouring` is \"add-remove\": the bound for sampling is proved for a record that is \
                 added or removed, not for one that is replaced",
            ),
            (_, Neighbouring::AddRemove) => Ok(()),
        }
    }

    /// Returns the number of rows of a release that change with one record, if a record serves at most
    /// `limit` rows. A replaced record leaves up to `limit` rows and joins up to `limit` others.
    pub(super) fn rows_of(&self, limit: usize) -> usize {
        match self.neighbouring {
            Neighbouring::Record | Neighbouring::Replace => limit.saturating_mul(2),
            Neighbouring::AddRemove => limit,
        }
    }

    /// Returns the standard deviation of one party's noise, in units of σ·C: the full noise, or the share in
    /// a sum over `active` parties that suffices without the colluding parties.
    pub(super) fn share(&self, active: usize, summed: bool) -> f64 {
        let shares = if summed { active.saturating_sub(self.colluding).max(1) } else { 1 };
        1.0 / (shares as f64).sqrt()
    }

    /// Returns the largest distance, in units of C, between the shares of neighbouring data sets for one row,
    /// over all shares of a release together. It covers one party, or all parties if a record is replaced in
    /// every secondary.
    pub(super) fn sensitivity_of_shares(&self, active: usize) -> f64 {
        let one = 2.0 / active as f64;
        match self.neighbouring {
            Neighbouring::Replace => one * (active as f64).sqrt(),
            Neighbouring::AddRemove | Neighbouring::Record => one,
        }
    }

    /// Returns the largest distance, in units of C, between the sums of neighbouring data sets for one row.
    pub(super) fn sensitivity(&self, active: usize) -> f64 {
        match self.neighbouring {
            Neighbouring::Replace => 2.0,
            // The next nearest record replaces a removed one: the block of one party moves by up to 2C/|A|.
            Neighbouring::AddRemove | Neighbouring::Record => 2.0 / active as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair of tables in `add-remove` is a pair in `record`, and each pair in `record` is a pair in
    /// `replace`. The stronger relation therefore never costs less, for any number of parties and any limit
    /// of occurrences.
    #[test]
    fn a_stronger_relation_never_costs_less() {
        let relations = [Neighbouring::AddRemove, Neighbouring::Record, Neighbouring::Replace];
        let cost = |neighbouring, active: usize, limit: usize| {
            let settings = NoiseSettings { neighbouring, ..NoiseSettings::default() };
            let rows = (settings.rows_of(limit) as f64).sqrt();
            [settings.sensitivity(active) * rows, settings.sensitivity_of_shares(active) * rows]
        };
        for active in 1..=100 {
            for limit in [1, 2, 7, 1000] {
                for pair in relations.windows(2) {
                    let (weak, strong) = (cost(pair[0], active, limit), cost(pair[1], active, limit));
                    assert!(weak[0] <= strong[0] && weak[1] <= strong[1], "{pair:?}, {active}, {limit}");
                }
            }
        }
        // A party's block moves within a ball of radius C/|A|.
        let settings = NoiseSettings { neighbouring: Neighbouring::AddRemove, ..NoiseSettings::default() };
        assert_eq!([1, 2, 4].map(|active| settings.sensitivity(active)), [2.0, 1.0, 0.5]);
    }
}
