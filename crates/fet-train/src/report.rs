//! What a run leaves behind for people and programs to read: `report.json`.
//!
//! Everything but `cost` is the same, bit for bit, for the same seed, device and data.

use serde::{Deserialize, Serialize};

use crate::federation::Traffic;
use crate::trainer::{EpochReport, Phases, Trainer};
use fet_core::objective::Metric;
use fet_core::privacy::Spent;

/// The version of the program's results: the same settings, seed, data and device give the same figures, but for
/// rounding, in every program with this number. Whoever changes a result raises it, and says so under "Changed
/// results" in CHANGELOG.md; runs that were made before are then made anew.
pub const RESULTS_VERSION: u32 = 2;

/// The report of a finished run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which program made it.
    pub program: Program,
    /// Every setting, with its default filled in.
    pub experiment: serde_json::Value,
    /// What was read, as checksums.
    pub data: DataRecord,
    /// The seed.
    pub seed: u64,
    /// The device.
    pub device: String,
    /// What is odd about the data, though it could be used.
    pub warnings: Vec<String>,
    /// What `validation` and `test` are.
    pub metric: Metric,
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
    /// Privacy spent; nothing where no other party takes part.
    pub privacy: Option<Spent>,
    /// Bytes of payload a deployment would have sent, over all parties together.
    pub traffic: Traffic,
    /// The same for each secondary.
    pub traffic_by_party: Vec<PartyTraffic>,
    /// Time and memory.
    pub cost: Cost,
}

/// Which program made a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: String,
    /// [`RESULTS_VERSION`].
    pub results: u32,
}

/// What a run was computed from, besides its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataRecord {
    /// Checksum of the files that the settings of the data name.
    pub files: String,
    /// Checksum of which rows were trained on, validated on and tested on: runs that share it can be compared row
    /// by row.
    pub split: String,
}

/// Bytes of payload between the primary and one secondary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartyTraffic {
    /// The secondary's name.
    pub party: String,
    /// From the primary.
    pub sent: u64,
    /// To the primary.
    pub received: u64,
}

/// Rows of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// Trained on.
    pub train: usize,
    /// Validated on.
    pub validation: usize,
    /// Tested on.
    pub test: usize,
}

/// The epoch that counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Best {
    /// Counted from 1.
    pub epoch: usize,
    /// Its validation metric, the best of all epochs.
    pub validation: f64,
    /// Its test metric: the result of the run.
    pub test: f64,
}

/// Time and memory: what differs between runs of the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
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

impl PartyTraffic {
    /// Each secondary of a trainer.
    pub fn of(trainer: &Trainer) -> Vec<Self> {
        let federation = trainer.federation();
        let of = |(index, traffic): (usize, &Traffic)| Self {
            party: federation.name(index).to_string(),
            sent: traffic.sent,
            received: traffic.received,
        };
        federation.traffic_by_party().iter().enumerate().map(of).collect()
    }
}

impl Rows {
    /// The rows of a trainer's split.
    pub fn of(trainer: &Trainer) -> Self {
        let split = trainer.split();
        Self { train: split.train.len(), validation: split.validation.len(), test: split.test.len() }
    }
}

impl Best {
    /// The best epoch so far; nothing before the first.
    pub fn of(trainer: &Trainer) -> Option<Self> {
        let progress = trainer.progress();
        let epoch = &progress.epochs[progress.best?];
        Some(Self { epoch: epoch.epoch, validation: epoch.validation, test: epoch.test? })
    }
}
