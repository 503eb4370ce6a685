//! The primary's labels in training, and their protection: randomised before training, or through noise on
//! the gradients that leave.

use burn::tensor::{Tensor, TensorData};
use fet_core::data::Task;
use fet_core::experiment::{Batches, Experiment, TrainSettings, Weighting, WeightingRule};
use fet_core::labels::{Exposure, LabelPrivacy};
use fet_core::learning_rate::Decay;
use fet_core::message::Round;
use fet_core::method::PrimaryBatch;
use fet_core::objective::{FittedTarget, LabelScale, Objective};
use fet_core::parameters::host;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::Violation;
use fet_core::rng::{OwnSeed, Purpose};
use fet_eval::class_weights::ClassWeights;
use sha2::{Digest, Sha256};

use super::error::RunError;
use crate::label_answers::{LabelAnswers, Replaced, classes_of};
use crate::schedule::{Schedule, Split};

/// The primary's labels, protected as the settings require.
pub(super) struct TrainingLabels {
    /// Labels in their own unit; those of training rows are already protected.
    values: Vec<f64>,
    scale: LabelScale,
    /// Weights of the rows' losses by class; `None` if all rows have equal weight.
    weights: Option<ClassWeights>,
    answers: LabelAnswers,
    /// Seed of the primary's private randomness.
    seed: OwnSeed,
}

/// The primary's labels before their protection.
pub(super) struct RecordedLabels<'a> {
    /// Labels in their own unit.
    pub(super) values: Vec<f64>,
    pub(super) objective: Objective,
    /// Transformation of an earlier run that this run continues, if there is one.
    pub(super) target: Option<FittedTarget>,
    /// Row of each record in the file, from 0; empty if the records have the order of the file.
    pub(super) file_rows: &'a [usize],
}

impl TrainingLabels {
    /// Replaces the training labels by the answers of the settings' protection, which is prepared for this
    /// exposure, and weighs the classes.
    pub(super) fn new(
        experiment: &Experiment,
        exposure: Exposure,
        split: &Split,
        recorded: RecordedLabels<'_>,
        seed: OwnSeed,
    ) -> Result<Self, RunError> {
        let RecordedLabels { mut values, mut objective, target, file_rows } = recorded;
        let answers = LabelAnswers::new(experiment, exposure)?;
        // With a release, a training sends nothing: the protection is for the labels that the secondaries received before.
        if experiment.release.is_none() {
            let replaced = Replaced { records: &split.train, file_rows };
            answers.replace(replaced, &mut values, &mut objective, &seed);
        }
        let weighting = &experiment.train.class_weights;
        let weights = match objective.task {
            Task::Regression if *weighting == Weighting::Rule(WeightingRule::None) => None,
            Task::Regression => {
                let rule = "must be \"none\" for a regression: weights need classes";
                return Err(Violation::new("train.class_weights", rule, weighting).into());
            }
            Task::Binary | Task::Multiclass => {
                let labels: Vec<usize> = split.train.iter().map(|&row| values[row] as usize).collect();
                weighting.class_weights(&labels, exposure.classes)?
            }
        };
        let setting = experiment.train.target;
        let target = match target {
            Some(earlier) => {
                earlier.check_setting(setting)?;
                earlier
            }
            // The fit sees the protected labels alone.
            None => {
                let training: Vec<f64> = split.train.iter().map(|&row| values[row]).collect();
                setting.fit(&objective, &training, &values)?
            }
        };
        let scale = LabelScale { objective, target };
        Ok(Self { values, scale, weights, answers, seed })
    }

    /// Returns the labels in their own unit; those of training rows are protected.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the labels' scale, with protected labels.
    pub(super) fn scale(&self) -> &LabelScale {
        &self.scale
    }

    /// Returns the primary's private seed.
    pub(super) fn seed(&self) -> &OwnSeed {
        &self.seed
    }

    /// Returns the guarantee for training labels over the whole run.
    pub(super) fn guarantee(&self) -> LabelPrivacy {
        self.answers.guarantee()
    }

    /// Returns these rows of the primary's records with scaled labels and weights.
    pub(super) fn label(&self, records: PrimaryBatch, rows: &[usize]) -> PrimaryBatch {
        let weight = |weights: &ClassWeights| {
            rows.iter().map(|&row| weights.weight(self.values[row] as usize) as f32).collect()
        };
        PrimaryBatch {
            labels: rows.iter().map(|&row| self.scale.scale(self.values[row])).collect(),
            weights: self.weights.as_ref().map(weight).unwrap_or_default(),
            ..records
        }
    }

    /// Returns the protected gradient of the batch's mean loss with respect to the memory. The aggregator's
    /// later split of the gradient by party does not depend on labels.
    pub(super) fn protect(&self, gradient: Tensor<3>, round: Round) -> Tensor<3> {
        if !self.answers.protection().changes_gradients() {
            return gradient;
        }
        let (shape, device) = (gradient.dims(), gradient.device());
        let [rows, positions, width] = shape;
        let mut values = host(gradient);
        // The clipping bound is for the gradient of each row's own loss, which does not depend on the batch
        // size.
        values.iter_mut().for_each(|value| *value *= rows as f32);
        let mut rng = self.seed.stream_over(Purpose::Noise, round.key(), &sent_from(&self.seed, &values));
        self.answers.protection().gradients(&mut values, positions * width, &mut rng);
        values.iter_mut().for_each(|value| *value /= rows as f32);
        Tensor::from_data(TensorData::new(values, shape), &device)
    }
}

/// Returns the exposure of training labels over a whole run.
pub(super) fn exposure(
    schedule: &Schedule,
    settings: &TrainSettings,
    task: Task,
    classes: usize,
    privacy: &dyn PrivacyMechanism,
) -> Exposure {
    let classes = classes_of(task, classes);
    let (rows, times) = if privacy.freezes_secondaries() { (0, 0) } else { sent(schedule, settings.batches) };
    Exposure {
        task,
        classes,
        rows,
        times,
        steps_follow_metric: settings.decay == Decay::Plateau,
        parties_train: true,
    }
}

/// Returns the number of row gradients that are sent, and the maximum number for one row.
fn sent(schedule: &Schedule, batches: Batches) -> (u64, u64) {
    let (epochs, train) = (schedule.epochs() as u64, schedule.split().train.len() as u64);
    if let Some(at_once) = schedule.at_once() {
        // Every step sends the gradients of all rows.
        let times = epochs * at_once.steps as u64;
        return (times * train, times);
    }
    if batches == Batches::Shuffled {
        return (epochs * train, epochs);
    }
    let mut counts = vec![0u64; schedule.split().rows()];
    for batches in (0..schedule.epochs()).map(|epoch| schedule.batches(epoch)) {
        batches.iter().flatten().for_each(|&row| counts[row] += 1);
    }
    (counts.iter().sum(), counts.into_iter().max().unwrap_or(0))
}

/// Returns the content that, together with the round, determines the noise on gradients. After a restart,
/// other gradients in the same round get other noise: the difference of two releases with the same noise
/// would be exact. A simulated seed is not a secret. Its noise does not depend on the values, so that devices
/// that round differently can be compared.
fn sent_from(own: &OwnSeed, values: &[f32]) -> Vec<u8> {
    if own.is_simulated() {
        return Vec::new();
    }
    let mut hash = Sha256::new().chain_update(b"fet gradients, 1");
    values.iter().for_each(|value| hash.update(value.to_bits().to_le_bytes()));
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn noise_repeats_for_the_same_gradients_alone() {
        let own = OwnSeed::new([7; 32]);
        let first = |own: &OwnSeed, round, values: &[f32]| {
            own.stream_over(Purpose::Noise, round, &sent_from(own, values)).next_u64()
        };
        let base = first(&own, 3, &[1.0, 2.0]);
        assert_eq!(base, first(&own, 3, &[1.0, 2.0]));
        for other in [first(&own, 4, &[1.0, 2.0]), first(&own, 3, &[1.0, 2.5]), first(&own, 3, &[2.0, 1.0])] {
            assert_ne!(base, other);
        }
        let simulated = OwnSeed::simulated(1, 0);
        assert_eq!(first(&simulated, 3, &[1.0]), simulated.stream(Purpose::Noise, 3).next_u64());
    }
}
