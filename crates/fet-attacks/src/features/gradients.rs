//! `gradient-reconstruction`: a secondary predicts another party's features of a row from the gradients that
//! it received for the row. The primary computes these gradients from the blocks of all parties, its own
//! columns and the label.

use std::collections::BTreeSet;

use fet_core::attack::{
    About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Setting, Target, Trained,
};
use fet_core::data::{Matrix, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reconstruction::{Errors, Model, Parts, measure};
use crate::tools::gradients::{GradientRecorder, Received};
use crate::tools::join_columns;

/// Candidate inputs of the decoder: the number of first gradients of a row to add, and true to use only their
/// directions.
const WAYS: [(usize, bool); 4] = [(1, false), (1, true), (3, false), (3, true)];

/// Settings of `gradient-reconstruction`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GradientReconstructionSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of the attacked secondary, from 1; 0 for the primary.
    pub target: usize,
    /// Share of training rows for which the attacker knows the other party's features.
    #[schemars(range(min = 0.05, max = 0.95))]
    pub known: f64,
}

impl Default for GradientReconstructionSettings {
    fn default() -> Self {
        Self { party: 1, target: 0, known: 0.5 }
    }
}

impl Recipe<dyn Attack> for GradientReconstructionSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.target == self.party {
            let rule = "must be a party other than `party`, or 0 for the primary";
            return Err(Violation::new("target", rule, self.target));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(GradientReconstruction(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<GradientReconstructionSettings>(
        "gradient-reconstruction",
        "another party's features from the gradients that a secondary receives",
    )
}

struct GradientReconstruction(GradientReconstructionSettings);

impl Attack for GradientReconstruction {
    fn about(&self) -> About {
        About { attacker: Attacker::Secondary, target: Target::Features, party: self.0.party }
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        if self.0.target > setting.secondaries {
            let rule = format!("must be 0 to {}, the number of secondaries", setting.secondaries);
            return Err(Violation::new("target", rule, self.0.target));
        }
        Ok(())
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let party = self.0.party;
        let (received, trained) = GradientRecorder::default().train(environment, party)?;
        let rows: BTreeSet<usize> = received.iter().map(|one| one.row).collect();
        let rows: Vec<usize> = rows.into_iter().collect();
        if rows.is_empty() {
            return Ok(vec![measure("error of the median column", 1.0, 1.0)]);
        }
        let gradients = WAYS.map(|(first, unit)| added(&received, &rows, first, unit));
        let own = join_columns(&trained.features(party, &rows)?, &trained.keys(party, &rows)?);
        let (truth, records) = self.truth(trained.as_ref(), &rows)?;
        let parts = Parts::draw(&records, self.0.known, environment.setting().seed);
        let labelled = join_columns(&own, &labels(environment, &rows));
        let errors = |known: &Matrix<f32>| {
            let mut ways = vec![known.clone()];
            ways.extend(gradients.iter().map(|gradients| join_columns(gradients, known)));
            let best = Errors::measure_best(&ways, &truth, &parts);
            (best, Errors::measure(Model::Ridge, known, &truth, &parts))
        };
        let ((with, without), (labelled, label)) = (errors(&own), errors(&labelled));
        Ok(vec![
            measure("error of the median column", with.median, without.median),
            measure("error of the worst column", with.worst, without.worst),
            // Gradients reveal labels, and labels correlate with features. This measure shows the leakage
            // beyond the labels.
            measure("error of the median column, labels known", labelled.median, label.median),
        ])
    }
}

impl GradientReconstruction {
    /// Returns the attacked features of each row, and the record that they belong to.
    fn truth(
        &self,
        trained: &dyn Trained,
        rows: &[usize],
    ) -> Result<(Matrix<f32>, Vec<Option<usize>>), AttackError> {
        if self.0.target > 0 {
            let records = trained.nearest(self.0.target, rows)?;
            return Ok((trained.features(self.0.target, rows)?, records));
        }
        // The key columns come first and are not attacked, because the linker can disclose them.
        let (all, keys) = (trained.own_columns(rows), trained.keys(self.0.party, rows)?.columns());
        let features: Vec<f32> =
            (0..all.rows()).flat_map(|row| all.row(row).iter().skip(keys).copied()).collect();
        let columns = all.columns().saturating_sub(keys);
        Ok((Matrix::new(columns, features), rows.iter().map(|&row| Some(row)).collect()))
    }
}

/// Returns the sum of the first gradients of each row, or of their directions.
fn added(received: &[Received], rows: &[usize], first: usize, unit: bool) -> Matrix<f32> {
    let width = received.first().map_or(0, |one| one.sum.len());
    let mut values = vec![0.0f32; rows.len() * width];
    for one in received.iter().filter(|one| one.before < first) {
        let Ok(place) = rows.binary_search(&one.row) else { continue };
        let length = one.sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = if unit && length > 0.0 { 1.0 / length } else { 1.0 };
        let line = &mut values[place * width..(place + 1) * width];
        line.iter_mut().zip(&one.sum).for_each(|(sum, &g)| *sum += (scale * g) as f32);
    }
    Matrix::new(width, values)
}

/// Returns the labels of rows: one column per class, or the number.
fn labels(environment: &dyn AttackEnvironment, rows: &[usize]) -> Matrix<f32> {
    let (data, classes) = (environment.data(), environment.setting().classes);
    let label = |&row: &usize| data.labels[row];
    if environment.setting().task == Task::Regression {
        return Matrix::new(1, rows.iter().map(|row| label(row) as f32).collect());
    }
    let one_hot = |row: &usize| {
        let class = label(row) as usize;
        (0..classes).map(move |other| f32::from(u8::from(other == class)))
    };
    Matrix::new(classes, rows.iter().flat_map(one_hot).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_first_gradients_of_a_row_or_their_directions() {
        let one = |row, before, sum: [f64; 2]| Received { row, before, sum: sum.to_vec(), norm: 0.0 };
        let received = [one(7, 0, [3.0, 4.0]), one(3, 0, [0.0, 2.0]), one(7, 1, [8.0, 6.0])];
        let check = |first, unit, expected: [f32; 4]| {
            let found = added(&received, &[3, 7], first, unit);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(found.values().iter().zip(&expected).all(near), "{found:?}");
        };
        check(1, false, [0.0, 2.0, 3.0, 4.0]);
        check(2, false, [0.0, 2.0, 11.0, 10.0]);
        check(2, true, [0.0, 1.0, 1.4, 1.4]);
    }
}
