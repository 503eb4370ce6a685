//! Labels on their way out: randomised before training, or in the gradients that are sent; and what that is worth.

use burn::tensor::{Tensor, TensorData};
use fet_core::data::Task;
use fet_core::experiment::{Batches, Experiment, TrainSettings};
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::learning_rate::Decay;
use fet_core::message::Round;
use fet_core::parameters::host;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::Violation;
use fet_core::rng::{OwnSeed, Purpose};

use super::Trainer;
use crate::prepare::PreparedPrimary;
use crate::schedule::{Schedule, Split};

impl Trainer {
    /// What the whole run tells the others about training labels; `None` if no other party takes part.
    pub fn label_privacy(&self) -> Option<LabelPrivacy> {
        (!self.federation.is_empty()).then(|| self.protection.spent(&self.exposure))
    }

    /// The gradient of the batch's mean loss with respect to the memory, as it may leave. What the aggregator makes of it
    /// for each party depends on no label.
    pub(super) fn protected(&self, gradient: Tensor<3>, round: Round) -> Tensor<3> {
        if !self.protection.changes_gradients() {
            return gradient;
        }
        let (shape, device) = (gradient.dims(), gradient.device());
        let [rows, positions, width] = shape;
        let mut values = host(gradient);
        // Of each row's own loss, whose bound does not depend on how many rows a batch has.
        values.iter_mut().for_each(|value| *value *= rows as f32);
        let mut rng = self.own.stream(Purpose::Noise, round.key());
        self.protection.gradients(&mut values, positions * width, &mut rng);
        values.iter_mut().for_each(|value| *value /= rows as f32);
        Tensor::from_data(TensorData::new(values, shape), &device)
    }
}

/// What a whole run sends that depends on training labels.
pub(super) fn exposure(
    schedule: &Schedule,
    settings: &TrainSettings,
    task: Task,
    classes: usize,
    privacy: &dyn PrivacyMechanism,
) -> Exposure {
    let classes = match task {
        Task::Regression => 1,
        Task::Binary => 2,
        Task::Multiclass => classes,
    };
    let (rows, times) = if privacy.freezes_secondaries() { (0, 0) } else { sent(schedule, settings.batches) };
    Exposure { task, classes, rows, times, steps_follow_metric: settings.decay == Decay::Plateau }
}

/// How many gradients of rows are sent, and of one row at most.
fn sent(schedule: &Schedule, batches: Batches) -> (u64, u64) {
    let (epochs, train) = (schedule.epochs() as u64, schedule.split().train.len() as u64);
    if batches == Batches::Shuffled {
        return (epochs * train, epochs);
    }
    let mut counts = vec![0u64; schedule.split().rows()];
    let batches = (0..schedule.epochs()).flat_map(|epoch| schedule.batches(epoch));
    batches.flatten().for_each(|row| counts[row] += 1);
    (counts.iter().sum(), counts.into_iter().max().unwrap_or(0))
}

/// The protection of the settings, for this exposure; the training labels are from now on what it makes of them.
pub(super) fn protect_labels(
    experiment: &Experiment,
    exposure: &Exposure,
    split: &Split,
    prepared: &mut PreparedPrimary,
    own: &OwnSeed,
) -> Result<Box<dyn LabelProtection>, Violation> {
    let mut protection = experiment.labels.build(&())?;
    protection.prepare(exposure).map_err(|violation| violation.within("labels"))?;
    let mut labels: Vec<f64> = split.train.iter().map(|&row| prepared.labels[row]).collect();
    // The same in every process that continues the run: a second draw would cost ε once more.
    protection.labels(&mut labels, &mut prepared.objective, &mut own.stream(Purpose::Labels, 0));
    for (&row, label) in split.train.iter().zip(labels) {
        prepared.labels[row] = label;
    }
    Ok(protection)
}
