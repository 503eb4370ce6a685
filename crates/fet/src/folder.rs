//! The files in the folder of a run.

/// The report of a finished run.
pub(crate) const REPORT: &str = "report.json";
/// The model of its best epoch.
pub(crate) const MODEL: &str = "model.safetensors";
/// The folder with one folder for each secondary.
pub(crate) const PARTIES: &str = "parties";
/// The predictions for its validation and test rows.
pub(crate) const PREDICTIONS: &str = "predictions.csv";
/// What the model is, for people.
pub(crate) const CARD: &str = "model-card.md";
/// Where the run found its data files beside those of `FET_DATA`; it is no part of a report.
pub(crate) const DATA_FOLDER: &str = "data-folder";
/// The primary's state while the run goes on.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
