//! The report of a run: `report.json`.
//!
//! For the same seed, device and data, all fields except `cost` are identical, bit for bit. `fet run` writes
//! reports; readers decide if a report belongs to an experiment.

use std::collections::BTreeMap;

use crate::{Coverage, Evaluation, Metric};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attack::AttackRecord;
use super::privacy::{LabelPrivacy, Spent};
use super::release::ReleaseRecord;
use crate::nullable;

/// Report of a finished run.
///
/// The struct is flat, because its fields are those of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Program that wrote the report.
    pub program: Program,
    /// All settings, including defaults.
    pub experiment: Value,
    /// Checksums of the data.
    pub data: DataRecord,
    /// Seed of the run.
    pub seed: u64,
    /// Device of the run.
    pub device: String,
    /// Warnings about unusual data.
    pub warnings: Vec<String>,
    /// Main metric: the metric of `validation` and `test` in epochs.
    pub metric: Metric,
    /// Names of the classes in the order of their indices; empty for a regression.
    pub class_names: Vec<String>,
    /// Number of rows in each part.
    pub rows: Rows,
    /// Number of secondaries.
    pub secondaries: usize,
    /// Number of trained parameters of all parties together.
    pub parameters: usize,
    /// Settings that the best epoch's model fitted to the validation rows, by path; empty for most methods.
    pub fitted: BTreeMap<String, f64>,
    /// Results of each epoch.
    pub epochs: Vec<EpochReport>,
    /// Epoch with the best validation metric.
    pub best: Best,
    /// Evaluation of the best epoch's model: all metrics, interval and errors.
    pub evaluation: Evaluation,
    /// Main metric on the test rows of a constant prediction: the mean of the training labels, or the shares of their
    /// classes. `None` if the metric is undefined for it.
    #[serde(deserialize_with = "nullable::given")]
    pub constant: Option<f64>,
    /// Coverage of the intervals or sets of classes on the test rows. `None` if the predictions of the
    /// validation rows are not finite.
    #[serde(deserialize_with = "nullable::given")]
    pub coverage: Option<Coverage>,
    /// Privacy loss of the records. `None` without other parties.
    #[serde(deserialize_with = "nullable::given")]
    pub privacy: Option<Spent>,
    /// Releases that the secondaries made once, and their privacy loss. `None` if the experiment has no release.
    #[serde(deserialize_with = "nullable::given")]
    pub release: Option<ReleaseRecord>,
    /// Privacy loss of the training labels. `None` without other parties.
    #[serde(deserialize_with = "nullable::given")]
    pub labels: Option<LabelPrivacy>,
    /// Result of the attack. `None` if the experiment has no attack.
    #[serde(deserialize_with = "nullable::given")]
    pub attack: Option<AttackRecord>,
    /// Bytes of payload that a deployment would have sent, over all parties together.
    pub traffic: Traffic,
    /// Bytes of payload of each secondary.
    pub traffic_by_party: Vec<PartyTraffic>,
    /// Time and memory.
    pub cost: Cost,
}

/// Program that wrote a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Version of the program.
    pub version: String,
    /// Commit of the build, if known.
    pub commit: String,
    /// [`RESULTS_VERSION`](super::RESULTS_VERSION).
    pub results: u32,
}

/// Checksums of a run's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// Checksum of the files named in the data settings.
    pub files: String,
    /// Checksum of the split. Runs with the same checksum can be compared row by row.
    pub split: String,
    /// Digests of the secondaries' tables, in the order of the secondaries.
    pub tables: Vec<TableDigest>,
}

/// Digest of a secondary's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDigest {
    /// Name of the secondary.
    pub party: String,
    /// Digest keyed with a secret of the secondary. Two runs of the same party have equal digests if and only
    /// if its table is the same. `None` if the party never joined.
    #[serde(deserialize_with = "nullable::given")]
    pub digest: Option<String>,
}

/// Number of rows in each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Number of training rows.
    pub train: usize,
    /// Number of validation rows.
    pub validation: usize,
    /// Number of test rows.
    pub test: usize,
}

/// Results of an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochReport {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Learning rate.
    pub learning_rate: f64,
    /// Mean training loss over the epoch's batches.
    #[serde(deserialize_with = "nullable::nan")]
    pub train_loss: f64,
    /// Validation metric after the epoch; can be NaN.
    #[serde(deserialize_with = "nullable::nan")]
    pub validation: f64,
    /// Test metric after the epoch, computed only if the validation metric is the best so far.
    #[serde(deserialize_with = "nullable::given")]
    pub test: Option<f64>,
    /// Bytes of payload sent in the epoch, including its evaluations.
    pub traffic: Traffic,
}

/// Best epoch, which gives the result of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Validation metric, the best of all epochs.
    pub validation: f64,
    /// Test metric, the result of the run; can be NaN.
    #[serde(deserialize_with = "nullable::nan")]
    pub test: f64,
}

/// Bytes of payload between the primary and one or all secondaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Bytes from the primary.
    pub sent: u64,
    /// Bytes to the primary.
    pub received: u64,
}

/// Bytes of payload between the primary and one secondary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyTraffic {
    /// Name of the secondary.
    pub party: String,
    /// Bytes from the primary.
    pub sent: u64,
    /// Bytes to the primary.
    pub received: u64,
}

/// Time and memory, which differ between runs with the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Seconds from the start of the program to the end of training. A resumed run adds the time up to its
    /// last checkpoint.
    pub seconds: f64,
    /// Seconds before the first step: loading, scaling, linking and building models.
    pub setup_seconds: f64,
    /// Training rows per second, without evaluation.
    pub train_rows_per_second: f64,
    /// Seconds of this process by phase.
    pub phases: Phases,
    /// Peak memory of the process; 0 if the system does not report it.
    pub peak_memory_bytes: u64,
}

/// Seconds spent in each phase since the trainer was created.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Training: forward pass of the secondaries' encoders.
    pub encode: f64,
    /// Training: aggregation of representations to a memory, and the gradient of each representation from the
    /// memory's gradient.
    pub aggregate: f64,
    /// Training: forward and backward pass of the primary's decoder.
    pub decode: f64,
    /// Training: backward pass and optimiser step of the secondaries.
    pub learn: f64,
    /// Training: optimiser step of the primary.
    pub step: f64,
    /// Validation and test, all phases together.
    pub evaluate: f64,
}

impl Traffic {
    /// Returns the traffic since the earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent - earlier.sent, received: self.received - earlier.received }
    }
}
