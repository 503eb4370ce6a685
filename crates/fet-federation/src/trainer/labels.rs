//! The primary's labels in training, and their protection: randomised before training, or through noise on
//! the gradients that leave.

use burn::tensor::{Tensor, TensorData};
use fet_core::data::Task;
use fet_core::experiment::{Batches, Experiment, TrainSettings, Weighting, WeightingRule};
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
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
use crate::schedule::{Schedule, Split};

/// The primary's labels, protected as the settings require.
pub(super) struct TrainingLabels {
    /// Labels in their own unit; those of training rows are already protected.
    values: Vec<f64>,
    scale: LabelScale,
    /// Weights of the rows' losses by class; `None` if all rows have equal weight.
    weights: Option<ClassWeights>,
    protection: Box<dyn LabelProtection>,
    exposure: Exposure,
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
        let mut protection = experiment.labels.build(&())?;
        protection.prepare(&exposure).map_err(|violation| violation.within("labels"))?;
        // Settings are a table of plain values.
        let settings = toml::to_string(&experiment.labels.settings()).unwrap_or_default();
        // The number of classes changes the thresholds of an answer.
        let settings = format!("{settings}classes = {}\n", exposure.classes);
        let rows: Vec<(usize, usize)> =
            split.train.iter().map(|&row| (row, file_rows.get(row).copied().unwrap_or(row))).collect();
        answer((protection.as_ref(), &settings), &rows, &mut values, &mut objective, &seed);
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
        Ok(Self { values, scale, weights, protection, exposure, seed })
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
        self.protection.spent(&self.exposure)
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
        if !self.protection.changes_gradients() {
            return gradient;
        }
        let (shape, device) = (gradient.dims(), gradient.device());
        let [rows, positions, width] = shape;
        let mut values = host(gradient);
        // The clipping bound is for the gradient of each row's own loss, which does not depend on the batch
        // size.
        values.iter_mut().for_each(|value| *value *= rows as f32);
        let mut rng = self.seed.stream_over(Purpose::Noise, round.key(), &sent_from(&self.seed, &values));
        self.protection.gradients(&mut values, positions * width, &mut rng);
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
    let classes = match task {
        Task::Regression => 1,
        Task::Binary => 2,
        Task::Multiclass => classes,
    };
    let (rows, times) = if privacy.freezes_secondaries() { (0, 0) } else { sent(schedule, settings.batches) };
    Exposure { task, classes, rows, times, steps_follow_metric: settings.decay == Decay::Plateau }
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

/// Replaces the labels of these rows, given with their rows of the file, by the protection's answers.
fn answer(
    (protection, settings): (&dyn LabelProtection, &str),
    rows: &[(usize, usize)],
    labels: &mut [f64],
    objective: &mut Objective,
    own: &OwnSeed,
) {
    if own.is_simulated() {
        // A simulated seed is not a secret: the answers are drawn in the order of the rows.
        let mut drawn: Vec<f64> = rows.iter().map(|&(row, _)| labels[row]).collect();
        protection.labels(&mut drawn, objective, &mut own.stream(Purpose::Labels, 0));
        rows.iter().zip(drawn).for_each(|(&(row, _), label)| labels[row] = label);
        return;
    }
    for &(row, file_row) in rows {
        let label = &mut labels[row];
        let mut rng = own.stream_over(Purpose::Labels, file_row as u64, &answered(settings, *label));
        protection.labels(std::slice::from_mut(label), objective, &mut rng);
    }
}

/// Returns the content that, together with the row, determines the answer for one label. The same seed
/// repeats the answer in every run with this protection, for any split, experiment seed or number of epochs.
/// A fresh answer would cost ε again.
fn answered(settings: &str, label: f64) -> [u8; 32] {
    let hash =
        Sha256::new().chain_update(b"fet label, 1").chain_update((settings.len() as u64).to_le_bytes());
    hash.chain_update(settings).chain_update(label.to_bits().to_le_bytes()).finalize().into()
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
    use fet_core::registry::Slot;
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

    /// A second run on the same labels, with another split, repeats the answers of the first: averages over
    /// runs disclose no more.
    #[test]
    fn a_run_with_the_same_seed_repeats_the_answers_of_its_rows() {
        let answers = |own: &OwnSeed, rows: &[usize], epsilon: &str| {
            let table = format!("kind = \"laplace\"\nepsilon = {epsilon}\nlow = 0.0\nhigh = 10.0");
            let slot = Slot::<dyn LabelProtection>::from_table(table.parse().expect("TOML")).expect("sound");
            let (protection, settings) = (slot.build(&()).expect("sound"), table.as_str());
            let mut labels: Vec<f64> = (0..10).map(f64::from).collect();
            let rows: Vec<(usize, usize)> = rows.iter().map(|&row| (row, row)).collect();
            let mut objective = Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 10.0 };
            answer((protection.as_ref(), settings), &rows, &mut labels, &mut objective, own);
            labels
        };
        let own = OwnSeed::new([7; 32]);
        let first = answers(&own, &[0, 2, 5], "1.0");
        let second = answers(&own, &[5, 3, 0], "1.0");
        assert_eq!((first[0], first[5]), (second[0], second[5]));
        assert!(first[0] != 0.0 && first[3] == 3.0 && second[2] == 2.0, "{first:?} {second:?}");
        assert_ne!(first[0], answers(&own, &[0], "2.0")[0], "another protection is another answer");
        assert_ne!(first[0], answers(&OwnSeed::new([8; 32]), &[0], "1.0")[0]);
    }

    #[test]
    fn answers_follow_from_the_label_and_the_protection() {
        let base = answered("epsilon = 1", 2.0);
        assert_eq!(base, answered("epsilon = 1", 2.0));
        assert!(base != answered("epsilon = 1", 3.0) && base != answered("epsilon = 2", 2.0));
    }
}
