//! Settings of a mechanism that clips and adds Gaussian noise, and quantities derived only from them.

use serde::{Deserialize, Serialize};

use fet_core::privacy::{Learning, Neighbouring};
use fet_core::registry::Violation;

/// Settings of `gaussian` and `discrete-gaussian`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseSettings {
    /// C: the bound on the norm of one row's block, summed over the parties; each of |A| parties clips to C/|A|.
    pub clip: f64,
    /// σ: the noise on the sum has the standard deviation σ·C; computed from `target_epsilon` if that is set.
    pub noise: f64,
    /// The target ε of the whole run, which determines the noise. 0 for none.
    pub target_epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The neighbouring relation: which data sets must be indistinguishable.
    pub neighbouring: Neighbouring,
    /// How the guarantee accounts for the secondaries' models, which learn from the records it protects.
    pub learning: Learning,
    /// The probability q that a secondary uses a record in a release, drawn independently for each.
    pub sample_rate: f64,
    /// Whether ε relies on the sampling.
    pub amplification: bool,
    /// The most rows of a release for which a record may be a neighbour; 0 for all.
    pub max_occurrences: usize,
    /// The number of secondaries that may collude with the primary.
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
    /// Checks each value separately, and related values together.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let positive = |field, value: f64| {
            let sound = (1e-6..=1e6).contains(&value);
            if sound { Ok(()) } else { Err(Violation::new(field, "must be from 1e-6 to 1e6", value)) }
        };
        positive("clip", self.clip)?;
        positive("noise", self.noise)?;
        if !(self.target_epsilon == 0.0 || (1e-3..=20.0).contains(&self.target_epsilon)) {
            let rule = "must be from 1e-3 to 20, or 0 for a noise of one's own choice";
            return Err(Violation::new("target_epsilon", rule, self.target_epsilon));
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            let rule = "must be above 0 and below 1; well below one in the number of records";
            return Err(Violation::new("delta", rule, self.delta));
        }
        if !(self.sample_rate > 0.0 && self.sample_rate <= 1.0) {
            return Err(Violation::new("sample_rate", "must be above 0 and at most 1", self.sample_rate));
        }
        if self.learning == Learning::Counted && self.max_occurrences > 0 {
            let rule = "must be 0 where `learning` is \"counted\": a record acts on every row through the weights it \
                        trained; \"frozen\" makes a limit count";
            return Err(Violation::new("max_occurrences", rule, self.max_occurrences));
        }
        if !self.amplification {
            return Ok(());
        }
        let refuse = |rule: &str| Err(Violation::new("amplification", rule, true));
        match (self.learning, self.neighbouring) {
            (Learning::Counted, _) => refuse(
                "must be false where `learning` is \"counted\": a record that is not drawn still acts through the \
                 weights it trained",
            ),
            // A record that is replaced is drawn or not under either key: the pair of mixtures that the accountant composes
            // does not dominate that (Lebeda, Regehr, Kamath, Steinke 2024).
            (_, Neighbouring::Replace | Neighbouring::Record) => refuse(
                "must be false unless `neighbouring` is \"add-remove\": the bound for sampling is proved for a record that is \
                 added or removed, not for one that is replaced",
            ),
            (_, Neighbouring::AddRemove) => Ok(()),
        }
    }

    /// The number of rows of a release that change where one record does, if a record serves at most `limit` rows: a
    /// record that is replaced leaves as many and joins as many others.
    pub(super) fn rows_of(&self, limit: usize) -> usize {
        match self.neighbouring {
            Neighbouring::Record | Neighbouring::Replace => limit.saturating_mul(2),
            Neighbouring::AddRemove => limit,
        }
    }

    /// The standard deviation of one party's noise, in units of σ·C: the whole, or the share in a sum over `active` parties
    /// that is enough without the colluding ones.
    pub(super) fn share(&self, active: usize, summed: bool) -> f64 {
        let shares = if summed { active.saturating_sub(self.colluding).max(1) } else { 1 };
        1.0 / (shares as f64).sqrt()
    }

    /// The largest distance, in units of C, between the shares of neighbouring data sets for one row, all shares of a release
    /// together: that of one party, or of all where a record is replaced in every secondary.
    pub(super) fn sensitivity_of_shares(&self, active: usize) -> f64 {
        let one = 2.0 / active as f64;
        match self.neighbouring {
            Neighbouring::Replace => one * (active as f64).sqrt(),
            Neighbouring::AddRemove | Neighbouring::Record => one,
        }
    }

    /// The largest distance, in units of C, between the sums of neighbouring data sets for one row.
    pub(super) fn sensitivity(&self, active: usize) -> f64 {
        let tight = 2.0 / active as f64;
        match self.neighbouring {
            Neighbouring::Replace => 2.0,
            // A record that leaves is replaced by the next nearest: the block moves by up to 2C/|A|.
            Neighbouring::AddRemove => tight.max(1.0),
            Neighbouring::Record => tight,
        }
    }
}
