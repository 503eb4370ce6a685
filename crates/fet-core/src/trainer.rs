//! Training: one plain loop over batches, and an evaluation after each epoch.
//!
//! The trainer plays the primary's side: it holds the primary's records, labels and model, and it knows the
//! secondaries only through the messages of [`crate::protocol`]. It does not know which method it runs, and
//! writes no files.

mod error;
mod phases;
mod release;
mod setup;

use std::time::Instant;

use burn::tensor::Device;
use rand::RngExt;
use rand::seq::{SliceRandom, index};
use serde::{Deserialize, Serialize};

use crate::aggregator::{Aggregator, SecureSum};
use crate::data::Matrix;
use crate::experiment::{Batches, TrainSettings};
use crate::federation::Federation;
use crate::method::{Memory, Plan, Primary, PrimaryBatch};
use crate::model::Pass;
use crate::objective::Objective;
use crate::prepare::{PreparedParty, Split};
use crate::privacy::{PrivacyMechanism, Schedule, Spent};
use crate::protocol::{Backward, Request};
use crate::rng::{Purpose, stream};
use crate::schedule::Plateau;
use crate::secondary::gather;

pub use self::error::RunError;
pub use self::phases::Phases;
use self::phases::Watch;
pub use fet_records::EpochReport;

/// A run under way.
pub struct Trainer {
    settings: TrainSettings,
    seed: u64,
    device: Device,
    objective: Objective,
    split: Split,
    records: PreparedParty,
    labels: Vec<f32>,
    primary: Box<dyn Primary>,
    federation: Federation,
    aggregator: Box<dyn Aggregator>,
    privacy: std::sync::Arc<dyn PrivacyMechanism>,
    /// How the secondaries hide their parts in sums, where they do.
    secure: Option<SecureSum>,
    /// What the run releases in all.
    schedule: Schedule,
    /// The memory of every row, where each is released once for the whole run.
    released: Option<Memory>,
    /// Secondaries that vanished; no step asks for them again.
    gone: Vec<usize>,
    plan: Plan,
    /// How many of the K neighbours each party has, as it said when it linked.
    available: Vec<usize>,
    /// How similar they are, standardised on the training rows; empty where the parties keep it to themselves.
    similarities: Vec<Matrix<f32>>,
    progress: Progress,
    phases: Phases,
    warnings: Vec<String>,
}

/// What a run computes on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where tensors live; without autodiff.
    pub device: Device,
    /// Whether that is the host's own memory.
    pub on_host: bool,
    /// How many parties may compute at a time.
    pub party_threads: usize,
}

/// How far a run is: with the parties' parameters and moments, all that a checkpoint needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The schedule of the step size.
    pub plateau: Plateau,
    /// The epochs that are done.
    pub epochs: Vec<EpochReport>,
    /// Index into `epochs` of the best validation metric.
    pub best: Option<usize>,
    /// How many representations each secondary has released, in training and evaluation.
    pub releases: u64,
}

/// What a training step tells whoever watches.
#[derive(Debug, Clone, Copy)]
pub struct StepReport {
    /// Rows trained on in this epoch so far.
    pub rows: usize,
    /// Rows of the epoch.
    pub of: usize,
    /// Mean training loss of the epoch so far.
    pub loss: f64,
    /// Training rows per second in this epoch so far.
    pub rows_per_second: f64,
}

impl Trainer {
    /// Trains one epoch and evaluates it. `watch` is told of every step and says whether to go on.
    pub fn epoch(&mut self, watch: &mut dyn FnMut(StepReport) -> bool) -> Result<&EpochReport, RunError> {
        let epoch = self.progress.epochs.len();
        let before = self.federation.traffic();
        let learning_rate = self.settings.decay.learning_rate(&self.progress.plateau, epoch, self.epochs());
        let train_loss = self.train_rows(epoch, learning_rate, watch)?;
        let every = self.plan.pe_average_every;
        if every > 0 && (epoch + 1).is_multiple_of(every) {
            self.average_encodings(epoch)?;
        }
        let validation = self.evaluate(Part::Validation)?;
        let (patience, factor) = (self.settings.patience, self.settings.factor);
        let direction = self.objective.metric().direction;
        let best = self.progress.plateau.observe(validation, direction, patience, factor);
        let test = if best { Some(self.evaluate(Part::Test)?) } else { None };
        if best {
            self.progress.best = Some(epoch);
        }
        let traffic = self.federation.traffic().since(before);
        let report = EpochReport { epoch: epoch + 1, learning_rate, train_loss, validation, test, traffic };
        self.progress.epochs.push(report);
        Ok(&self.progress.epochs[epoch])
    }

    /// Whether every epoch is done.
    pub fn is_done(&self) -> bool {
        self.progress.epochs.len() >= self.epochs()
    }

    /// Whether a checkpoint holds all that the method has learned.
    pub fn can_resume(&self) -> bool {
        self.plan.at_once.is_none()
    }

    /// How many epochs the run has.
    pub fn epochs(&self) -> usize {
        self.plan.at_once.unwrap_or(self.settings.epochs)
    }

    /// Whether the last epoch is the best so far.
    pub fn last_is_best(&self) -> bool {
        self.progress.best.is_some_and(|best| best + 1 == self.progress.epochs.len())
    }

    /// How far the run is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Continues where an interrupted run stopped; the parties' models are restored separately.
    pub fn restore(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// What is odd about the data, though it can be used.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Loss, metric and outputs.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// Where the time has gone since the trainer was made.
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// Which rows are for what.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The primary's half of the model.
    pub fn primary(&self) -> &dyn Primary {
        self.primary.as_ref()
    }

    /// The primary's half of the model, for loading.
    pub fn primary_mut(&mut self) -> &mut dyn Primary {
        self.primary.as_mut()
    }

    /// The secondaries.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// The secondaries, for loading their models.
    pub fn federation_mut(&mut self) -> &mut Federation {
        &mut self.federation
    }

    /// What the epochs so far have spent; nothing where no other party takes part.
    pub fn spent(&self) -> Option<Spent> {
        let epochs = self.progress.epochs.len();
        (!self.federation.is_empty()).then(|| self.privacy.spent(&self.schedule, epochs))
    }

    /// What the run releases in all.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn train_rows(
        &mut self,
        epoch: usize,
        learning_rate: f64,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<f64, RunError> {
        let of = self.split.train.len();
        let batches = self.batches(epoch);
        let steps = batches.len() as u64;
        let (start, mut done, mut total) = (Instant::now(), 0, 0.0);
        for (step, batch) in batches.iter().enumerate() {
            if batch.is_empty() {
                continue;
            }
            let loss = self.step(epoch as u64 * steps + step as u64, batch, learning_rate)?;
            if !loss.is_finite() {
                return Err(RunError::Diverged { epoch: epoch + 1, loss });
            }
            done += batch.len();
            total += loss * batch.len() as f64;
            let rows_per_second = done as f64 / start.elapsed().as_secs_f64();
            let report = StepReport { rows: done, of, loss: total / done as f64, rows_per_second };
            if !watch(report) {
                return Err(RunError::Interrupted { epoch: epoch + 1 });
            }
        }
        Ok(total / done.max(1) as f64)
    }

    /// The rows of each training step of an epoch.
    fn batches(&self, epoch: usize) -> Vec<Vec<usize>> {
        let mut rows = self.split.train.clone();
        let mut rng = stream(self.seed, 0, Purpose::Batches, epoch as u64);
        if self.plan.at_once.is_some() {
            rows.shuffle(&mut rng);
            return vec![rows];
        }
        let size = self.settings.batch_size;
        match self.settings.batches {
            Batches::Shuffled => {
                rows.shuffle(&mut rng);
                rows.chunks(size).map(<[usize]>::to_vec).collect()
            }
            Batches::Poisson => {
                let rate = (size as f64 / rows.len() as f64).min(1.0);
                let steps = rows.len().div_ceil(size);
                let draw = |_| rows.iter().copied().filter(|_| rng.random::<f64>() < rate).collect();
                (0..steps).map(draw).collect()
            }
        }
    }

    /// One training step: forward at the active parties, aggregate, decode, and back.
    fn step(&mut self, round: u64, rows: &[usize], learning_rate: f64) -> Result<f64, RunError> {
        let active = self.active_parties(round);
        let (memory, aggregation) = self.memory(round, rows, &active, true)?.unzip();
        let mut watch = Watch::start();
        let batch = self.batch(rows, &self.device, true);
        let mut pass = Pass::training(stream(self.seed, 0, Purpose::Dropout, round));
        let outcome = self.primary.train(&batch, memory, &mut pass);
        watch.lap(&mut self.phases.decode);
        if let (Some(gradient), Some(aggregation)) = (outcome.memory_gradient, aggregation)
            && !self.privacy.freezes_secondaries()
        {
            let shares = self.aggregator.spread(gradient, &aggregation).into_iter();
            watch.lap(&mut self.phases.aggregate);
            let messages = shares.map(|gradient| Request::Backward(Backward { gradient, learning_rate }));
            self.federation.exchange(&aggregation.active, messages.collect())?;
            watch.lap(&mut self.phases.learn);
        }
        self.primary.learner_mut().step(learning_rate);
        watch.lap(&mut self.phases.step);
        Ok(outcome.loss)
    }

    /// The parties that take part in a step: all but ⌊r_d·k⌋ drawn at random, at least one (paper, 4.4), and but those
    /// that are gone.
    fn active_parties(&self, round: u64) -> Vec<usize> {
        let mut active = self.drawn_parties(round);
        active.retain(|party| !self.gone.contains(party));
        active
    }

    fn drawn_parties(&self, round: u64) -> Vec<usize> {
        let count = self.federation.len();
        let dropped = (self.plan.party_dropout * count as f64).floor() as usize;
        if dropped == 0 || count == 0 {
            return (0..count).collect();
        }
        let mut rng = stream(self.seed, 0, Purpose::PartyDropout, round);
        let mut active = index::sample(&mut rng, count, (count - dropped).max(1)).into_vec();
        active.sort_unstable();
        active
    }

    fn batch(&self, rows: &[usize], device: &Device, labels: bool) -> PrimaryBatch {
        let label = |&row: &usize| self.objective.scale(self.labels[row]);
        PrimaryBatch {
            keys: gather(&self.records.scaled.keys, rows, device),
            features: gather(&self.records.scaled.features, rows, device),
            labels: if labels { rows.iter().map(label).collect() } else { Vec::new() },
        }
    }

    /// The metric on a part of the rows, all parties taking part, nothing dropped.
    fn evaluate(&mut self, part: Part) -> Result<f64, RunError> {
        let rows = match part {
            Part::Validation => self.split.validation.clone(),
            Part::Test => self.split.test.clone(),
        };
        let everyone: Vec<usize> =
            (0..self.federation.len()).filter(|party| !self.gone.contains(party)).collect();
        let device = self.device.clone().without_autodiff();
        let mut scores = Vec::with_capacity(rows.len());
        let mut watch = Watch::start();
        for rows in rows.chunks(self.settings.evaluation_batch_size) {
            // Evaluation rounds are counted apart from training rounds, from the top.
            let round = u64::MAX - self.progress.releases;
            let memory = self.memory(round, rows, &everyone, false)?.map(|(memory, _)| memory);
            let output = self.primary.predict(&self.batch(rows, &device, false), memory);
            let labels: Vec<f32> = rows.iter().map(|&row| self.labels[row]).collect();
            scores.extend(self.objective.score(output, &labels));
        }
        watch.lap(&mut self.phases.evaluate);
        Ok(self.objective.metric_of(&scores))
    }
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Validation,
    Test,
}
