//! The trainer's contribution to a report; `fet-eval` defines the records themselves.

pub use fet_eval::records::{
    Best, Cost, DataRecord, PartyTraffic, Program, RESULTS_VERSION, Report, Rows, TableDigest,
};

use crate::trainer::Trainer;

/// Returns the bytes to and from each secondary.
pub fn traffic_by_party(trainer: &Trainer) -> Vec<PartyTraffic> {
    let federation = trainer.federation();
    let party_traffic = |(index, traffic): (usize, &fet_eval::records::Traffic)| PartyTraffic {
        party: federation.name(index).to_string(),
        sent: traffic.sent,
        received: traffic.received,
    };
    federation.traffic_by_party().iter().enumerate().map(party_traffic).collect()
}

/// Returns the digests of the secondaries' tables, as each secondary reported them.
pub fn tables(trainer: &Trainer) -> Vec<TableDigest> {
    let digest = |(index, digest): (usize, &Option<[u8; 32]>)| TableDigest {
        party: trainer.federation().name(index).to_string(),
        digest: digest.as_ref().map(|digest| fet_io::hex(digest)),
    };
    trainer.progress().tables.secondaries.iter().enumerate().map(digest).collect()
}

/// Returns the rows of a trainer's split.
pub fn rows(trainer: &Trainer) -> Rows {
    let split = trainer.split();
    Rows { train: split.train.len(), validation: split.validation.len(), test: split.test.len() }
}

/// Returns the best epoch so far; `None` before the first epoch.
pub fn best(trainer: &Trainer) -> Option<Best> {
    let progress = trainer.progress();
    let epoch = &progress.epochs[progress.best?];
    Some(Best { epoch: epoch.epoch, validation: epoch.validation, test: epoch.test? })
}
