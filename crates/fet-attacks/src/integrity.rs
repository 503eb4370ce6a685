//! Attacks of a secondary on the model: planting a backdoor, and failing.

mod backdoor;
mod faulty;

pub use backdoor::BackdoorSettings;
pub use faulty::{Fault, FaultyPartySettings};

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{AttackEnvironment, AttackError, PrimaryObserver, Run, Trained};
use fet_core::data::{Matrix, PartyTable};
use fet_core::message::Round;
use fet_core::registry::Violation;

/// Observer of the model's outputs for test rows. It keeps the outputs of the last test evaluation, which
/// belong to the best epoch.
#[derive(Debug, Default)]
struct Outputs(std::collections::BTreeMap<usize, Vec<f32>>);

impl PrimaryObserver for Outputs {
    fn predicted(&mut self, round: Round, rows: &[usize], outputs: &Matrix<f32>) {
        if matches!(round, Round::Test { .. }) {
            self.0.extend(rows.iter().enumerate().map(|(at, &row)| (row, outputs.row(at).to_vec())));
        }
    }
}

/// Trains a run and returns its outputs for test rows.
fn outputs(
    environment: &mut dyn AttackEnvironment,
    run: Run,
) -> Result<(Outputs, Box<dyn Trained>), AttackError> {
    let observer = Arc::new(Mutex::new(Outputs::default()));
    let trained = environment.train(Run { observer: Some(observer.clone()), ..run })?;
    let found = std::mem::take(&mut *observer.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((found, trained))
}

/// Returns a party's features as numbers ([`fet_federation::data::in_numbers`]).
fn numbers(table: &PartyTable) -> Result<&Matrix<f32>, AttackError> {
    let rule = "must be a kind with only numeric tables for this attack";
    table
        .features
        .numbers()
        .ok_or_else(|| AttackError::Refused(Violation::new("data", rule, "typed columns")))
}

/// Returns a copy of a party's features with other values for some records.
fn overwritten(features: &Matrix<f32>, records: &[usize], values: impl Fn(usize) -> Vec<f32>) -> Matrix<f32> {
    let columns = features.columns();
    let mut all = features.values().to_vec();
    for (place, &record) in records.iter().enumerate() {
        all[record * columns..(record + 1) * columns].copy_from_slice(&values(place)[..columns]);
    }
    Matrix::new(columns, all)
}
