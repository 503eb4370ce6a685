//! Privacy loss of releases that secondaries make once.

use serde::{Deserialize, Serialize};

use super::privacy::Randomness;
use crate::nullable;

/// Releases of a run, their privacy loss and its assumptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRecord {
    /// Name of the kind of release.
    pub kind: String,
    /// True if the releases contain noise alone, as the control of a release.
    pub noise_only: bool,
    /// δ.
    pub delta: f64,
    /// Neighbouring relation of a secondary's tables.
    pub neighbouring: TableRelation,
    /// Source of the noise.
    pub randomness: Randomness,
    /// Release of each secondary.
    pub parties: Vec<PartyRelease>,
    /// ε for a person with one record in the table of every secondary. `None` if the loss is unbounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon_of_person: Option<f64>,
    /// Largest ε of a secondary's release if 0, 1, … other secondaries collude with the primary. Infinite if
    /// the loss is unbounded.
    #[serde(deserialize_with = "nullable::all_infinite")]
    pub epsilon_by_colluding: Vec<f64>,
    /// Comparison with the same method on the primary's own columns, which decided if the model uses the releases; `None` without
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateRecord>,
    /// Data of the primary that the secondaries learned; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of_primary: String,
    /// Description of the protected records.
    pub statement: String,
    /// Assumptions of the guarantee, one sentence each.
    pub assumptions: Vec<String>,
}

/// Comparison of a method with and without the columns of the releases on the validation rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateRecord {
    /// True if the model uses the releases.
    pub used: bool,
    /// Metric without the releases.
    #[serde(deserialize_with = "nullable::nan")]
    pub alone: f64,
    /// Metric with the releases.
    #[serde(deserialize_with = "nullable::nan")]
    pub released: f64,
    /// Improvement by the releases.
    #[serde(deserialize_with = "nullable::nan")]
    pub gain: f64,
    /// Standard error of the improvement over the rows. Infinite if the rows are too few for one.
    #[serde(deserialize_with = "nullable::infinite")]
    pub error: f64,
}

/// Release of one secondary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyRelease {
    /// Name of the secondary.
    pub party: String,
    /// ε. `None` if the loss is unbounded.
    #[serde(deserialize_with = "nullable::given")]
    pub epsilon: Option<f64>,
    /// Noise of sums, in units of their sensitivity.
    pub noise_multiplier: f64,
    /// Standard deviation of the noise on one count, in records.
    pub noise_of_count: f64,
    /// Randomised symbols, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeRecord>,
    /// Number of released integers, of eight bytes each.
    pub values: usize,
}

/// Symbols by randomised response.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRecord {
    /// Number of symbols.
    pub symbols: usize,
    /// Probability of the true symbol.
    pub truth: f64,
    /// ε of the symbols, without that of the sums.
    pub epsilon: f64,
    /// ε of symbols and sums for the columns of a record that is known to be in the table. Infinite if the loss is
    /// unbounded.
    #[serde(deserialize_with = "nullable::infinite")]
    pub epsilon_of_columns: f64,
}

/// Neighbouring relation of a secondary's tables, which must be indistinguishable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableRelation {
    /// One record is added or removed.
    AddRemove,
    /// One record is added, removed, or replaced with its key.
    Record,
    /// The columns of one record are replaced, while its key stays.
    Features,
}

impl GateRecord {
    fn sentence(self, noise_only: bool) -> String {
        let Self { used, alone, released, gain, error } = self;
        let shown = format!(
            "on the validation rows the metric is {alone:.4} without the releases and {released:.4} with them (gain {gain:+.4}, \
             standard error {error:.4})"
        );
        match used {
            true => format!("{shown}: the model uses them"),
            false if noise_only => format!("{shown}: the model uses the primary's own columns alone"),
            false => format!(
                "{shown}: the model uses the primary's own columns alone, and the ε of the releases is spent; the metric without \
                 this choice is that of `train.gate = false`"
            ),
        }
    }
}

impl ReleaseRecord {
    /// Returns the largest ε of a secondary's release, or infinity if a loss is unbounded.
    pub fn epsilon(&self) -> f64 {
        self.parties.iter().map(|party| party.epsilon.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    }

    /// Returns the data of the primary that the secondaries learned, in a sentence.
    pub fn primary_sentence(&self) -> String {
        let learned = if self.of_primary.is_empty() { "No data left the primary" } else { &self.of_primary };
        format!("{learned}.")
    }

    /// Returns the privacy loss in sentences, for people.
    pub fn sentences(&self) -> Vec<String> {
        let shown = |epsilon: Option<f64>| {
            epsilon
                .filter(|epsilon| epsilon.is_finite())
                .map_or("no bound on ε".to_string(), |epsilon| format!("ε = {epsilon:.4}"))
        };
        let mut all: Vec<String> = self
            .parties
            .iter()
            .map(|party| {
                let loss =
                    if self.noise_only { "noise alone, ε = 0".to_string() } else { shown(party.epsilon) };
                let truth = party.code.filter(|_| !self.noise_only).map_or(String::new(), |code| {
                    format!("; a symbol of {} is true with a probability of {:.3}", code.symbols, code.truth)
                });
                format!(
                    "\"{}\" released {} numbers once (`{}`): {loss}, δ = {}{truth}",
                    party.party, party.values, self.kind, self.delta
                )
            })
            .collect();
        if self.noise_only {
            all.extend(self.gate.map(|gate| gate.sentence(self.noise_only)));
            return all;
        }
        let of_columns = self.parties.iter().filter_map(|party| Some(party.code?.epsilon_of_columns));
        if self.neighbouring != TableRelation::Features
            && self.parties.iter().any(|party| party.code.is_some())
        {
            all.push(format!(
                "the columns of a record that is known to be in a table: {}, δ = {}",
                shown(Some(of_columns.fold(0.0, f64::max))),
                self.delta
            ));
        }
        if self.parties.len() > 1 {
            all.push(format!(
                "a person with one record in every table: {}, δ = {}",
                shown(self.epsilon_of_person),
                self.delta
            ));
        }
        // A single secondary has no other party to collude with.
        if self.parties.len() > 1 {
            let by = self.epsilon_by_colluding.iter().enumerate();
            let by: Vec<String> =
                by.map(|(count, &epsilon)| format!("{} with {count}", shown(Some(epsilon)))).collect();
            all.push(format!("by the secondaries that collude with the primary: {}", by.join(", ")));
        }
        all.extend(self.gate.map(|gate| gate.sentence(self.noise_only)));
        if self.randomness == Randomness::Experiment {
            all.push(
                "the noise follows from the experiment's seed, so that the run repeats: anyone who knows the seed can subtract \
                 it; with `train.randomness = \"own\"` each secondary draws its seed from the operating system"
                    .to_string(),
            );
        }
        all
    }
}
