//! What a run's releases cost, as it stands in a report, and the two words of a guarantee that are settings as well.
//!
//! How the figures are computed is for `fet-core` and `fet-privacy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// A privacy loss, with what it assumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// ε; nothing where the loss is not bounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// What the figure assumes and what it protects, in words.
    pub statement: String,
    /// How it came about; nothing where there is no guarantee.
    #[serde(deserialize_with = "nullable::given")]
    pub guarantee: Option<Guarantee>,
}

/// What other parties can learn of the primary's training labels from what they receive, with what that assumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelPrivacy {
    /// ε for one training label; nothing where the loss is not bounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// The protection.
    pub mechanism: String,
    /// What the figure covers, what it assumes and what it leaves out, in words.
    pub statement: String,
}

/// How a privacy loss came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// The mechanism.
    pub mechanism: String,
    /// C.
    pub clip: f64,
    /// σ: the noise on the sum of all parties, in units of C.
    pub noise: f64,
    /// The noise in units of the sensitivity of the release in which the fewest parties took part.
    pub noise_multiplier: f64,
    /// Which data sets are indistinguishable.
    pub neighbouring: Neighbouring,
    /// What became of the models' learning.
    pub learning: Learning,
    /// How many rows of a release may change where one record does.
    pub occurrences: usize,
    /// The share of records in each release.
    pub sample_rate: f64,
    /// Whether ε counts on that.
    pub amplification: bool,
    /// Whether only sums became known.
    pub secure_sum: bool,
    /// How many colluding secondaries are provided for.
    pub colluding: usize,
    /// How many releases were counted.
    pub releases: u64,
    /// ε if the sums failed to hide the parts and the primary saw every party's share of a release by itself; nothing where
    /// no sum hides them, or where the loss is not bounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon_if_sum_fails: Option<f64>,
    /// ε if 0, 1, … secondaries collude with the primary, at least up to 1: they take their own noise off the sums. Infinite where
    /// it is not bounded; empty where no sum hides the parts.
    #[serde(deserialize_with = "nullable::all_infinite")]
    pub epsilon_by_colluding: Vec<f64>,
    /// What the noise follows from.
    pub randomness: Randomness,
    /// ε by Rényi divergences, for comparison; infinite where it is not bounded.
    #[serde(deserialize_with = "nullable::infinite")]
    pub epsilon_by_rdp: f64,
    /// ε after each epoch; infinite where it is not bounded.
    #[serde(deserialize_with = "nullable::all_infinite")]
    pub epsilon_by_epoch: Vec<f64>,
    /// What must hold, one sentence each.
    pub assumptions: Vec<String>,
}

impl Guarantee {
    /// ε by the number of colluding secondaries, in words; nothing where no sum hides the parts.
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

/// What the parties' private randomness follows from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Randomness {
    /// The experiment's seed, which its report prints: a run repeats, and whoever knows the seed can subtract the noise.
    #[default]
    Experiment,
    /// Each party's own secret seed, from the operating system.
    Own,
}

/// Which data sets are to be indistinguishable, and how far apart their sums can be for one row.
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

/// What the guarantee makes of the secondaries' models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learning {
    /// They learn, and a record may through them change every row of every later release. All of it is counted.
    Counted,
    /// They learn, and ε is that of the records' direct part in each release, as in the paper: that the models have
    /// learned from the record is not counted. It is no guarantee against an attacker that exploits this.
    Assumed,
    /// They keep their initial weights, and every row is released once for the whole run. All of it is counted.
    Frozen,
}
