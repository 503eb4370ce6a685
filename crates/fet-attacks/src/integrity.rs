//! What a secondary can do to the model: plant a backdoor, or fail.

mod backdoor;
mod faulty;

pub use backdoor::BackdoorSettings;
pub use faulty::{Fault, FaultyPartySettings};

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{Arena, AttackError, Run, Trained, View};
use fet_core::data::{Matrix, PartyTable};
use fet_core::message::Round;
use fet_core::registry::Violation;

/// Keeps what the model makes of test rows: that of the last time they were evaluated, which is the best epoch's.
#[derive(Debug, Default)]
struct Outputs(std::collections::BTreeMap<usize, Vec<f32>>);

impl View for Outputs {
    fn predicted(&mut self, round: Round, rows: &[usize], outputs: &Matrix<f32>) {
        if matches!(round, Round::Test { .. }) {
            self.0.extend(rows.iter().enumerate().map(|(at, &row)| (row, outputs.row(at).to_vec())));
        }
    }
}

/// A run, and its outputs for test rows.
fn outputs(arena: &mut dyn Arena, run: Run) -> Result<(Outputs, Box<dyn Trained>), AttackError> {
    let view = Arc::new(Mutex::new(Outputs::default()));
    let trained = arena.train(Run { view: Some(view.clone()), ..run })?;
    let found = std::mem::take(&mut *view.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((found, trained))
}

/// A party's features, which an attack has as numbers ([`fet_federation::data::in_numbers`]).
fn numbers(table: &PartyTable) -> Result<&Matrix<f32>, AttackError> {
    let rule = "must be one whose tables hold numbers alone for this attack";
    table
        .features
        .numbers()
        .ok_or_else(|| AttackError::Refused(Violation::new("data", rule, "typed columns")))
}

/// Other features for some of a party's records.
fn overwritten(features: &Matrix<f32>, records: &[usize], values: impl Fn(usize) -> Vec<f32>) -> Matrix<f32> {
    let columns = features.columns();
    let mut all = features.values().to_vec();
    for (place, &record) in records.iter().enumerate() {
        all[record * columns..(record + 1) * columns].copy_from_slice(&values(place)[..columns]);
    }
    Matrix::new(columns, all)
}
