//! The report of a run: `report.json`.
//!
//! Everything but `cost` is the same, bit for bit, for the same seed, device and data. Reports are made by `fet run`;
//! whether one belongs to a certain experiment is for its readers to decide.

use crate::{Evaluation, Metric};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attack::AttackRecord;
use super::privacy::{LabelPrivacy, Spent};
use crate::nullable;

/// The report of a finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Which program made it.
    pub program: Program,
    /// Every setting, with its default filled in.
    pub experiment: Value,
    /// What was read, as checksums.
    pub data: DataRecord,
    /// The seed.
    pub seed: u64,
    /// The device.
    pub device: String,
    /// What is odd about the data, though it could be used.
    pub warnings: Vec<String>,
    /// What `validation` and `test` of epochs are: the main metric.
    pub metric: Metric,
    /// What the classes are called, in the order of their indices; empty for a regression.
    pub class_names: Vec<String>,
    /// How many rows each part has.
    pub rows: Rows,
    /// How many parties helped the primary.
    pub secondaries: usize,
    /// Trained parameters of all parties together.
    pub parameters: usize,
    /// What each epoch gave.
    pub epochs: Vec<EpochReport>,
    /// The epoch with the best validation metric.
    pub best: Best,
    /// What the model of that epoch reached by every metric, and where it is wrong.
    pub evaluation: Evaluation,
    /// Privacy spent; nothing where no other party takes part.
    #[serde(deserialize_with = "nullable::given")]
    pub privacy: Option<Spent>,
    /// What the others can learn of the training labels; nothing where no other party takes part.
    #[serde(deserialize_with = "nullable::given")]
    pub labels: Option<LabelPrivacy>,
    /// What an attack found; nothing where the experiment names none.
    #[serde(deserialize_with = "nullable::given")]
    pub attack: Option<AttackRecord>,
    /// Bytes of payload a deployment would have sent, over all parties together.
    pub traffic: Traffic,
    /// The same for each secondary.
    pub traffic_by_party: Vec<PartyTraffic>,
    /// Time and memory.
    pub cost: Cost,
}

/// Which program made a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: String,
    /// [`RESULTS_VERSION`](super::RESULTS_VERSION).
    pub results: u32,
}

/// What a run was computed from, besides its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// Checksum of the files that the settings of the data name.
    pub files: String,
    /// Checksum of which rows were trained on, validated on and tested on: runs that share it can be compared row
    /// by row.
    pub split: String,
    /// Digests of the secondaries' tables, in their order.
    pub tables: Vec<TableDigest>,
}

/// The table of a secondary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDigest {
    /// The secondary's name.
    pub party: String,
    /// A digest of its table, keyed with a secret of that party: two runs of the same party have the same digest if and only if
    /// it has the same table in both. Nothing for a party that never joined.
    #[serde(deserialize_with = "nullable::given")]
    pub digest: Option<String>,
}

/// Rows of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Trained on.
    pub train: usize,
    /// Validated on.
    pub validation: usize,
    /// Tested on.
    pub test: usize,
}

/// What an epoch gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: usize,
    /// The step size.
    pub learning_rate: f64,
    /// Mean training loss over the epoch's batches.
    #[serde(deserialize_with = "nullable::nan")]
    pub train_loss: f64,
    /// Validation metric after the epoch; may be NaN.
    #[serde(deserialize_with = "nullable::nan")]
    pub validation: f64,
    /// Test metric after the epoch; computed only where the validation metric is the best so far.
    #[serde(deserialize_with = "nullable::given")]
    pub test: Option<f64>,
    /// Bytes of payload that the epoch sent, its evaluations included.
    pub traffic: Traffic,
}

/// The epoch that counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Counted from 1.
    pub epoch: usize,
    /// Its validation metric, the best of all epochs.
    pub validation: f64,
    /// Its test metric: the result of the run; may be NaN.
    #[serde(deserialize_with = "nullable::nan")]
    pub test: f64,
}

/// Bytes of payload between the primary and one secondary, or all of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// From the primary.
    pub sent: u64,
    /// To the primary.
    pub received: u64,
}

/// Bytes of payload between the primary and one secondary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyTraffic {
    /// The secondary's name.
    pub party: String,
    /// From the primary.
    pub sent: u64,
    /// To the primary.
    pub received: u64,
}

/// Time and memory: what differs between runs of the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// From the start of the program to the end of training; of a run that was interrupted, up to its last
    /// checkpoint too.
    pub seconds: f64,
    /// Loading, scaling, linking and building models, before the first step.
    pub setup_seconds: f64,
    /// Training rows per second, evaluation not counted.
    pub train_rows_per_second: f64,
    /// Where the seconds of this process went.
    pub phases: Phases,
    /// The most memory the process held; 0 where the system does not say.
    pub peak_memory_bytes: u64,
}

/// Seconds spent in each phase since the trainer was made.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Training: the secondaries encode.
    pub encode: f64,
    /// Training: representations become a memory, and its gradient becomes theirs.
    pub aggregate: f64,
    /// Training: the primary decodes, forward and backward.
    pub decode: f64,
    /// Training: the secondaries go back through their encoders and step.
    pub learn: f64,
    /// Training: the primary steps.
    pub step: f64,
    /// Validation and test, all phases together.
    pub evaluate: f64,
}

impl Traffic {
    /// What has been sent since the meter stood at `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent - earlier.sent, received: self.received - earlier.received }
    }
}
