//! Findings of `fet worth`: the content of `worth.json`.

use fet_eval::Metric;

use super::checks::Checks;
use super::verdict::{Answer, MethodResult};

/// File of the best experiment.
pub(super) const RECOMMENDED: &str = "recommended.toml";

/// Everything that the command found.
#[derive(Debug, serde::Serialize)]
pub(super) struct Worth {
    /// Metric of all figures.
    pub(super) metric: Metric,
    /// Number of labelled rows in each part.
    pub(super) label_rows: fet_eval::records::Rows,
    /// Number of splits.
    pub(super) splits: usize,
    /// True if all runs have the same split, as with a split by time: they then differ only in their seeds.
    pub(super) same_split: bool,
    /// True for the quick form.
    pub(super) quick: bool,
    /// True if the folder has the best experiment, because the command wrote the experiment that it changes.
    pub(super) has_recommended: bool,
    /// Ambiguity of the links to each other table, one sentence each; empty for an experiment file.
    pub(super) links: Vec<String>,
    /// Warnings of the runs about the data.
    pub(super) warnings: Vec<String>,
    /// Metric on the test rows of a constant prediction, the mean or the class shares of the training rows; `None` if
    /// the metric is undefined for it.
    pub(super) constant: Option<f64>,
    /// Result of each method.
    pub(super) results: Vec<MethodResult>,
    /// Best methods and the verdict.
    pub(super) answer: Answer,
    /// Checks of the best method.
    pub(super) checks: Checks,
}
