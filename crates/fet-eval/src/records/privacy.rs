//! Privacy loss of a run in a report, and the enums of a guarantee that are also settings.
//!
//! `fet-core` and `fet-privacy` compute the figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// Privacy loss and its assumptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// ε. `None` if the loss is unbounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// Description of the protected records and the assumptions.
    pub statement: String,
    /// Details of the guarantee. `None` without a guarantee.
    #[serde(deserialize_with = "nullable::given")]
    pub guarantee: Option<Guarantee>,
}

/// Privacy loss of the primary's training labels through the messages that other parties receive, and its
/// assumptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelPrivacy {
    /// ε for one training label. `None` if the loss is unbounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// Protection of the labels.
    pub mechanism: String,
    /// Description of the scope, the assumptions and the exclusions of the figure.
    pub statement: String,
}

impl LabelPrivacy {
    /// Returns the guarantee in a sentence.
    pub fn sentence(&self) -> String {
        let epsilon = self.epsilon.map_or("no bound".to_string(), |epsilon| format!("ε = {epsilon:.4}"));
        format!("Privacy of the training labels: {epsilon}, δ = {}. {}", self.delta, self.statement)
    }
}

/// Derivation of a privacy loss.
///
/// The struct is flat, because its fields are those of the report's JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// Name of the privacy mechanism.
    pub mechanism: String,
    /// Clipping norm C.
    pub clip: f64,
    /// σ: noise on the sum of all parties, in units of C.
    pub noise: f64,
    /// Noise in units of the sensitivity of the release with the fewest parties.
    pub noise_multiplier: f64,
    /// Neighbouring relation of data sets.
    pub neighbouring: Neighbouring,
    /// Treatment of the models' learning.
    pub learning: Learning,
    /// Maximum number of rows of a release that can change with one record.
    pub occurrences: usize,
    /// Share of records in each release.
    pub sample_rate: f64,
    /// True if ε includes amplification by sampling.
    pub amplification: bool,
    /// True if secure aggregation disclosed only sums.
    pub secure_sum: bool,
    /// Number of colluding secondaries that the noise allows for.
    pub colluding: usize,
    /// Number of releases.
    pub releases: u64,
    /// ε if secure aggregation failed and the primary saw the share of each party in a release. `None`
    /// without secure aggregation, or if the loss is unbounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon_if_sum_fails: Option<f64>,
    /// ε if 0, 1, … secondaries collude with the primary, at least up to 1. Colluding secondaries subtract
    /// their own noise from the sums. Infinite if the loss is unbounded; empty without secure aggregation.
    #[serde(deserialize_with = "nullable::all_infinite")]
    pub epsilon_by_colluding: Vec<f64>,
    /// Source of the noise.
    pub randomness: Randomness,
    /// ε by Rényi divergences, for comparison; infinite if the loss is unbounded.
    #[serde(deserialize_with = "nullable::infinite")]
    pub epsilon_by_rdp: f64,
    /// ε after each epoch; infinite if the loss is unbounded.
    #[serde(deserialize_with = "nullable::all_infinite")]
    pub epsilon_by_epoch: Vec<f64>,
    /// Assumptions of the guarantee, one sentence each.
    pub assumptions: Vec<String>,
}

impl Guarantee {
    /// Returns a sentence with ε by the number of colluding secondaries, or `None` without secure
    /// aggregation.
    pub fn collusion(&self) -> Option<String> {
        let figure = |(colluding, epsilon): (usize, &f64)| match epsilon.is_finite() {
            true => format!("{epsilon:.4} with {colluding}"),
            false => format!("unbounded with {colluding}"),
        };
        let all: Vec<String> = self.epsilon_by_colluding.iter().enumerate().map(figure).collect();
        (!all.is_empty())
            .then(|| format!("ε by the secondaries that collude with the primary: {}", all.join(", ")))
    }
}

/// Source of the parties' private randomness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Randomness {
    /// The experiment's seed, which the report contains. Runs are reproducible, but anyone with the seed can
    /// subtract the noise.
    #[default]
    Experiment,
    /// A secret seed of each party, from the operating system.
    Own,
}

/// Neighbouring relation: pairs of data sets that must be indistinguishable. Each variant states the
/// sensitivity of a row's sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbouring {
    /// One record replaced in every secondary at once: 2C.
    Replace,
    /// One record of one secondary added or removed: C.
    AddRemove,
    /// One record of one secondary added, removed or replaced, by the tight bound: 2C/|A|.
    Record,
}

/// Treatment of the secondaries' learning in the privacy guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learning {
    /// The models learn, and through them a record can change every row of every later release. ε counts all
    /// of these changes.
    Counted,
    /// The models learn, but ε counts only the direct part of the records in each release, as in the paper.
    /// This is not a guarantee against an attacker that exploits the learning.
    Assumed,
    /// The models keep their initial weights, and every row is released once for the whole run. ε counts the
    /// entire release.
    Frozen,
}
