//! The trainer's contribution to a report; `fet-eval` defines the records themselves.

pub use fet_eval::records::{
    Best, Cost, DataRecord, PartyTraffic, Program, RESULTS_VERSION, Report, Rows, TableDigest,
};

use fet_eval::{Metric, Predictions, Task};

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

/// Returns the main metric on the test rows of a constant prediction: the mean of the training labels, or the shares of
/// their classes. These are the best constants for the squared error and the log loss. Returns `None` before the first
/// epoch, or if the metric is undefined for a constant.
pub fn constant(trainer: &Trainer) -> Option<f64> {
    let [_, tested] = trainer.evaluated()?;
    constant_score(trainer.objective().scored(), &trainer.training_labels(), &tested.truth, trainer.metric())
}

fn constant_score(task: Task, training: &[f64], truth: &[f64], metric: Metric) -> Option<f64> {
    let rows = training.len().max(1) as f64;
    let share = |class: usize| training.iter().filter(|label| **label == class as f64).count() as f64 / rows;
    let one: Vec<f64> = match task {
        Task::Regression => vec![training.iter().map(|label| label / rows).sum()],
        Task::Binary => vec![share(1)],
        Task::Multiclass { classes } => (0..classes).map(share).collect(),
    };
    let output = one.repeat(truth.len());
    let score = Predictions::new(task, truth, &output).ok()?.score(metric).ok()?;
    Some(score).filter(|score| score.is_finite())
}

/// Returns the best epoch so far; `None` before the first epoch.
pub fn best(trainer: &Trainer) -> Option<Best> {
    let progress = trainer.progress();
    let epoch = &progress.epochs[progress.best?];
    Some(Best { epoch: epoch.epoch, validation: epoch.validation, test: epoch.test? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the training labels is 2, and the test labels are 4 and 6: RMSE √((4 + 16) / 2).
    #[test]
    fn a_constant_follows_from_the_training_labels_alone() {
        let of =
            |task, training: &[f64], truth: &[f64], metric| constant_score(task, training, truth, metric);
        let rmse = of(Task::Regression, &[1.0, 3.0], &[4.0, 6.0], Metric::Rmse).expect("defined");
        assert!((rmse - 10f64.sqrt()).abs() < 1e-12, "{rmse}");
        // One of four training rows has class 1, so class 0 is predicted: one of three test rows has it.
        let labels = [0.0, 0.0, 1.0, 0.0];
        assert_eq!(of(Task::Binary, &labels, &[1.0, 1.0, 0.0], Metric::Accuracy), Some(1.0 / 3.0));
        assert_eq!(of(Task::Binary, &labels, &[1.0, 1.0, 0.0], Metric::AucRoc), Some(0.5));
        assert_eq!(of(Task::Binary, &labels, &[1.0, 1.0], Metric::AucRoc), None, "one class");
        let three = Task::Multiclass { classes: 3 };
        assert_eq!(of(three, &[2.0, 2.0, 1.0], &[2.0, 0.0], Metric::Accuracy), Some(0.5));
    }
}
