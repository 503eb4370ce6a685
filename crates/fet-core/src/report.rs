//! What a run leaves behind for people and programs to read: `report.json`.
//!
//! The records themselves are in `fet-records`; here are the parts of a report that a trainer knows.

pub use fet_records::{Best, Cost, DataRecord, PartyTraffic, Program, RESULTS_VERSION, Report, Rows};

use crate::trainer::Trainer;

/// The bytes to and from each secondary.
pub fn traffic_by_party(trainer: &Trainer) -> Vec<PartyTraffic> {
    let federation = trainer.federation();
    let parties = federation.parties().iter().zip(federation.traffic_by_party());
    let of = |(party, traffic): (&crate::secondary::Secondary, &fet_records::Traffic)| PartyTraffic {
        party: party.name().to_string(),
        sent: traffic.sent,
        received: traffic.received,
    };
    parties.map(of).collect()
}

/// The rows of a trainer's split.
pub fn rows(trainer: &Trainer) -> Rows {
    let split = trainer.split();
    Rows { train: split.train.len(), validation: split.validation.len(), test: split.test.len() }
}

/// The best epoch so far; nothing before the first.
pub fn best(trainer: &Trainer) -> Option<Best> {
    let progress = trainer.progress();
    let epoch = &progress.epochs[progress.best?];
    Some(Best { epoch: epoch.epoch, validation: epoch.validation, test: epoch.test? })
}
