//! Result of `fet explain`: scores, and losses of the metric by column, key and party.

use fet_eval::Metric;
use fet_eval::importance::Importance;
use fet_eval::shapley::Shapley;
use serde::Serialize;

/// File of an explanation in the folder of its run.
pub(super) const FILE: &str = "explanation.json";
/// Number of orders drawn for more than eight parties; each order is also used in reverse.
pub(super) const PAIRS: usize = 32;

/// Reliance of a model on its columns, keys and parties.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Explanation {
    /// Metric of all scores.
    pub metric: Metric,
    /// Number of test rows.
    pub rows: usize,
    /// Number of shuffles of each column.
    pub repeats: usize,
    /// Scores to compare the losses with.
    pub anchors: Anchors,
    /// Permutation losses of columns, in descending order.
    pub columns: Vec<ColumnImportance>,
    /// Permutation losses of keys as model inputs, the primary's first. The links do not change.
    pub keys: Vec<KeysImportance>,
    /// Reliance on the secondaries; `None` without secondaries.
    pub parties: Option<PartyReliance>,
}

/// Scores of the same metric on the same rows.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Anchors {
    /// Score of the model with all inputs.
    pub with_all: f64,
    /// Score of the model without any secondary; `None` without secondaries.
    pub without_parties: Option<f64>,
    /// Score of the mean of the training labels, or of their class frequencies; `None` if the metric is
    /// undefined for it.
    pub training_mean: Option<f64>,
    /// Score of a model trained without other parties, if the user gave one.
    pub control: Option<Control>,
}

/// Finished run of the primary alone.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Control {
    /// Folder of the run, as the user wrote it.
    pub run: String,
    /// Method of the run.
    pub method: String,
    /// Score of the run.
    pub score: f64,
}

/// Permutation loss of a column.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ColumnImportance {
    /// Party that holds the column.
    pub party: String,
    /// Name of the column, or its number if it is unnamed.
    pub column: String,
    /// Loss of the metric when the column is shuffled.
    pub importance: Importance,
}

/// Permutation loss of all keys of a party together.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KeysImportance {
    /// Party that holds the keys.
    pub party: String,
    /// Loss of the metric when the party's model sees the keys of other records.
    pub importance: Importance,
}

/// Reliance on the secondaries.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PartyReliance {
    /// Names of the secondaries.
    pub names: Vec<String>,
    /// Score of the metric without each secondary.
    pub without: Vec<f64>,
    /// Loss of that score compared with the score of all parties.
    pub reliance: Vec<f64>,
    /// Shapley values: the mean gain from each party over all orders in which parties join.
    pub shapley: Shapley,
}
