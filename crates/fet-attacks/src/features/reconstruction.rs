//! `reconstruction`: the primary knows the features of some training rows, as if they had leaked. It fits a
//! decoder on all messages for these rows and on its own columns, and predicts the features of the other
//! rows.
//!
//! If the primary receives only sums, and the schedule varies the parties in them, the attack tries two
//! primaries and reports the better one. One follows the protocol; the other withholds gradients. Without
//! gradients the secondaries' models never change, and the sums over different parties are linear equations
//! for each party's part.

use std::collections::BTreeSet;

use fet_core::attack::{
    About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Target, Trained,
};
use fet_core::data::Matrix;
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::network::{Loss, Network};
use crate::tools::ridge::Decoder;
use crate::tools::transcript::{ObservedRows, Transcript};
use crate::tools::{by_record, join_columns, scaling};

/// Settings of `reconstruction`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReconstructionSettings {
    /// Number of the attacked secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Share of training rows whose features the attacker knows.
    #[schemars(range(min = 0.05, max = 0.95))]
    pub known: f64,
    /// Decoder that predicts features from the messages to the primary.
    pub model: Model,
}

/// Decoder that predicts features from the messages to the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Ridge regression on the inputs and on random features of the inputs.
    #[default]
    Ridge,
    /// Network with one hidden layer.
    Network,
}

impl Default for ReconstructionSettings {
    fn default() -> Self {
        Self { party: 1, known: 0.5, model: Model::Ridge }
    }
}

impl Recipe<dyn Attack> for ReconstructionSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Reconstruction(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<ReconstructionSettings>(
        "reconstruction",
        "a secondary's features from all that the primary receives, given some of them",
    )
}

struct Reconstruction(ReconstructionSettings);

impl Attack for Reconstruction {
    fn about(&self) -> About {
        About { attacker: Attacker::Primary, target: Target::Features, party: self.0.party }
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let party = self.0.party;
        let (seen, trained) = Transcript::train(environment, party)?;
        let (solvable, seed) = (seen.differ && environment.setting().learning, environment.setting().seed);
        let mut found = self.measure_errors(seed, seen, trained.as_ref())?;
        drop(trained);
        let mut others = Vec::new();
        if solvable {
            let (seen, trained) =
                Transcript::record(environment, party, Run { withhold: true, ..Run::default() })?;
            let withheld = self.measure_errors(seed, seen, trained.as_ref())?;
            for (who, reached) in [("sent", &found), ("withheld", &withheld)] {
                let name = format!("error of the median column, gradients {who}");
                others.push(measure(&name, reached.with.median, reached.without.median));
            }
            if withheld.with.median < found.with.median {
                found = withheld;
            }
        }
        let ReconstructionErrors { with, without, alone } = found;
        let mut measures = vec![
            measure("error of the median column", with.median, without.median),
            measure("error of the worst column", with.worst, without.worst),
            measure("error of the worst 1 % of records", with.records, without.records),
            measure("error of the median column without own columns", alone.median, 1.0),
        ];
        measures.append(&mut others);
        Ok(measures)
    }
}

pub(super) fn measure(name: &str, found: f64, before: f64) -> Measure {
    Measure::new(name, found, before.min(1.0), 0.0)
}

/// Reconstruction errors of a primary.
struct ReconstructionErrors {
    /// Errors with the messages and the primary's own columns.
    with: Errors,
    /// Errors with only the primary's own columns.
    without: Errors,
    /// Errors with only the messages.
    alone: Errors,
}

impl Reconstruction {
    /// Returns the errors of a decoder on the messages of a run.
    fn measure_errors(
        &self,
        seed: u64,
        mut seen: ObservedRows,
        trained: &dyn Trained,
    ) -> Result<ReconstructionErrors, AttackError> {
        // A frozen run releases the rows of all parts. The attack uses only training rows, as in other runs.
        let training: BTreeSet<usize> = trained.rows()[0].iter().copied().collect();
        let kept: Vec<usize> = (0..seen.rows.len()).filter(|&at| training.contains(&seen.rows[at])).collect();
        seen.values = seen.values.select_rows(&kept);
        let rows: Vec<usize> = kept.iter().map(|&at| seen.rows[at]).collect();
        let truth = trained.features(self.0.party, &rows)?;
        let own = trained.own_columns(&rows);
        let records = trained.nearest(self.0.party, &rows)?;
        let parts = Parts::draw(&records, self.0.known, seed);
        Ok(ReconstructionErrors {
            with: Errors::measure(self.0.model, &join_columns(&seen.values, &own), &truth, &parts),
            without: Errors::measure(self.0.model, &own, &truth, &parts),
            alone: Errors::measure(self.0.model, &seen.values, &truth, &parts),
        })
    }
}

/// Places of rows: known rows for fitting, known rows for selection, and attacked rows.
pub(super) struct Parts {
    fit: Vec<usize>,
    select: Vec<usize>,
    hidden: Vec<usize>,
}

impl Parts {
    /// Divides rows by record: rows of the same record are in the same part, because knowledge of one row is
    /// knowledge of all.
    pub(super) fn draw(records: &[Option<usize>], known: f64, seed: u64) -> Self {
        let mut order = by_record(records, &mut stream(seed, 0, Purpose::Attack, 1));
        let known = (order.len() as f64 * known).round() as usize;
        let hidden = order.split_off(known.min(order.len()));
        let select = order.split_off(order.len() - order.len() / 5);
        Self { fit: order.concat(), select: select.concat(), hidden: hidden.concat() }
    }
}

/// Squared errors relative to predicting the mean of the known rows: 0 is a full reconstruction, 1 is none.
pub(super) struct Errors {
    /// Median over non-constant columns.
    pub(super) median: f64,
    /// Minimum over non-constant columns: the column that is reconstructed best.
    pub(super) worst: f64,
    /// 1 % quantile of the error of a record over all columns.
    records: f64,
}

impl Errors {
    pub(super) fn measure(model: Model, inputs: &Matrix<f32>, truth: &Matrix<f32>, parts: &Parts) -> Self {
        let part = |rows: &[usize]| (inputs.select_rows(rows), truth.select_rows(rows));
        let (fit, select, hidden) = (part(&parts.fit), part(&parts.select), part(&parts.hidden));
        if fit.0.rows() == 0 || select.0.rows() == 0 || hidden.0.rows() == 0 {
            return Self { median: 1.0, worst: 1.0, records: 1.0 };
        }
        let found = match model {
            Model::Ridge => Decoder::fit((&fit.0, &fit.1), (&select.0, &select.1)).predict(&hidden.0),
            Model::Network => {
                Network::fit(Loss::Squares, (&fit.0, &fit.1), Some((&select.0, &select.1))).predict(&hidden.0)
            }
        };
        let means: Vec<f64> = scaling(&fit.1).into_iter().map(|(mean, _)| mean).collect();
        Self::between(&found, &hidden.1, &means)
    }

    /// Selects the input with which a ridge decoder predicts the selection rows best.
    pub(super) fn measure_best(ways: &[Matrix<f32>], truth: &Matrix<f32>, parts: &Parts) -> Self {
        let (fit, select) = (truth.select_rows(&parts.fit), truth.select_rows(&parts.select));
        if fit.rows() == 0 || select.rows() == 0 {
            return Self { median: 1.0, worst: 1.0, records: 1.0 };
        }
        let missed = |inputs: &&Matrix<f32>| {
            let select = (&inputs.select_rows(&parts.select), &select);
            Decoder::fit((&inputs.select_rows(&parts.fit), &fit), select).error(select.0, select.1)
        };
        let missed = ways.iter().map(|inputs| (missed(&inputs), inputs));
        match missed.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, best)) => Self::measure(Model::Ridge, best, truth, parts),
            None => Self { median: 1.0, worst: 1.0, records: 1.0 },
        }
    }

    fn between(found: &Matrix<f32>, truth: &Matrix<f32>, means: &[f64]) -> Self {
        let columns = means.len();
        let (mut wrong, mut spread) = (vec![0.0; columns], vec![0.0; columns]);
        let mut records = Vec::with_capacity(truth.rows());
        for row in 0..truth.rows() {
            let (mut missed, mut varied) = (0.0, 0.0);
            for (column, (&y, &guess)) in truth.row(row).iter().zip(found.row(row)).enumerate() {
                let (error, away) = (f64::from(y - guess).powi(2), (f64::from(y) - means[column]).powi(2));
                wrong[column] += error;
                spread[column] += away;
                missed += error;
                varied += away;
            }
            records.push(if varied > 1e-9 { missed / varied } else { 1.0 });
        }
        let shares = wrong.iter().zip(&spread).filter(|(_, spread)| **spread > 1e-9);
        let mut shares: Vec<f64> = shares.map(|(wrong, spread)| wrong / spread).collect();
        shares.sort_by(f64::total_cmp);
        records.sort_by(f64::total_cmp);
        Self {
            median: shares.get(shares.len() / 2).copied().unwrap_or(1.0),
            worst: shares.first().copied().unwrap_or(1.0),
            records: records.get(records.len() / 100).copied().unwrap_or(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_record_are_in_one_part() {
        let records: Vec<Option<usize>> = (0..60).map(|row| (row % 7 != 6).then_some(row % 20)).collect();
        let Parts { fit, select, hidden } = Parts::draw(&records, 0.5, 3);
        assert_eq!(fit.len() + select.len() + hidden.len(), 60);
        let seen =
            |rows: &[usize]| -> BTreeSet<usize> { rows.iter().filter_map(|&row| records[row]).collect() };
        for (a, b) in [(&fit, &hidden), (&fit, &select), (&select, &hidden)] {
            assert!(!b.is_empty() && seen(a).is_disjoint(&seen(b)), "{a:?} {b:?}");
        }
    }

    #[test]
    fn errors_are_shares_of_the_spread() {
        let truth = Matrix::new(2, vec![1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0]);
        let half = Matrix::new(2, truth.values().iter().map(|y| y / 2.0).collect());
        let errors = Errors::between(&half, &truth, &[0.0, 0.0]);
        // The second column is constant.
        assert_eq!((errors.median, errors.worst, errors.records), (0.25, 0.25, 0.25));
        let errors = Errors::between(&truth, &truth, &[0.0, 0.0]);
        assert_eq!((errors.median, errors.worst, errors.records), (0.0, 0.0, 0.0));
    }
}
