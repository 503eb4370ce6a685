//! Training: one plain loop over batches, and an evaluation after each epoch.
//!
//! The trainer plays the primary's side: it holds the primary's records, labels and model, and it knows the
//! secondaries only through the messages of [`fet_core::message`]. It does not know which method it runs, and
//! writes no files.

mod batch;
mod end;
mod error;
mod labels;
mod observe;
mod phases;
mod predict;
mod progress;
mod release;
mod saved;
mod scores;
mod setup;
mod sums;
mod target;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::tensor::Device;
use fet_core::aggregator::{Aggregator, Gradients};
use fet_core::attack::View;
use fet_core::data::{Matrix, Standardise};
use fet_core::experiment::TrainSettings;
use fet_core::labels::{Exposure, LabelProtection};
use fet_core::linker::Linker;
use fet_core::message::{Backward, Epoch, Request, Round, Standing};
use fet_core::method::{Memory, Plan, Primary};
use fet_core::model::Pass;
use fet_core::objective::{Metric, Objective};
use fet_core::parameters::Parameters;
use fet_core::privacy::{PrivacyMechanism, Spent};
use fet_core::rng::{OwnSeed, Purpose, stream};

use fet_eval::class_weights::ClassWeights;
use fet_privacy::secure_sum::CollectError;

use crate::federation::Federation;
use crate::prepare::{PreparedParty, Uniform};
use crate::schedule::{Part, Schedule, Split};

use self::batch::block;
pub use self::error::RunError;
pub use self::phases::Phases;
use self::phases::Watch;
pub use self::predict::NewRecords;
pub use self::progress::{Progress, StepReport, Tables};
pub use self::saved::SavedModel;
pub use self::scores::Evaluated;
pub use self::setup::Beginning;
pub use fet_eval::records::EpochReport;

/// A run in progress.
pub struct Trainer {
    settings: TrainSettings,
    seed: u64,
    device: Device,
    objective: Objective,
    schedule: Schedule,
    records: PreparedParty,
    /// In their own unit; those of training rows as the protection leaves them.
    labels: Vec<f64>,
    /// The column that test rows are grouped by, if there is one, and the value of each record.
    groups: Option<(String, Vec<String>)>,
    /// Which row of its file each record is, from 0; empty if each stands where it stood.
    file_rows: Vec<usize>,
    /// The metric that selects the epoch.
    metric: Metric,
    /// The outputs of the validation and the test rows in the best epoch so far; nothing before the first.
    evaluated: Option<[Vec<f32>; 2]>,
    /// How much the loss of a row counts, by its class; nothing where all count the same.
    weights: Option<ClassWeights>,
    /// What the classes are called; empty where they are numbers.
    class_names: Vec<String>,
    standardise: Standardise,
    protection: Box<dyn LabelProtection>,
    exposure: Exposure,
    /// The seed of the primary's private randomness.
    own: OwnSeed,
    primary: Box<dyn Primary>,
    linker: Box<dyn Linker>,
    federation: Federation,
    aggregator: Arc<dyn Aggregator>,
    privacy: Box<dyn PrivacyMechanism>,
    /// The secondaries that agreed on keys, from 0; none where no sums are secret.
    agreed: Vec<usize>,
    /// The memory of every row, if each row is released once in the whole run.
    released: Option<Memory>,
    plan: Plan,
    /// How many neighbours each party represents.
    neighbours: Vec<usize>,
    /// How many of them are real, as each party reported when it linked.
    available: Vec<usize>,
    /// Their similarities, standardised on the training rows; empty if the parties do not send them.
    similarities: Vec<Option<Similarities>>,
    /// The width of each party's last representation.
    widths: Vec<Option<usize>>,
    /// The state of each party's lifetime account when it joined.
    standings: Vec<Option<Standing>>,
    /// The number of parameters of all secondaries' models.
    parameters: usize,
    progress: Progress,
    /// The primary's best model so far; empty before the first epoch.
    best: Parameters,
    /// The number of probes made outside the run.
    probes: u32,
    phases: Phases,
    warnings: Vec<String>,
    /// What looks at all that arrives, for measuring attacks.
    view: Option<Arc<Mutex<dyn View>>>,
}

/// The similarities of a party's neighbours to the primary's records, [n, K], and how they were standardised.
struct Similarities {
    values: Matrix<f32>,
    standard: Uniform,
}

/// The device and threads of a run.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where tensors live; without autodiff.
    pub device: Device,
    /// Whether that is the host's own memory.
    pub on_host: bool,
    /// How many parties may compute at a time.
    pub party_threads: usize,
}

impl Trainer {
    /// Trains one epoch and evaluates it. `watch` receives every step's report and returns whether to continue. Nothing is
    /// returned if the run ends within the epoch, because a party's account allows no more releases: what was trained since
    /// the last epoch is not kept.
    pub fn epoch(
        &mut self,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<Option<&EpochReport>, RunError> {
        match self.whole_epoch(watch) {
            // The first epoch has no model to end with.
            Err(error) if error.is_spent() && !self.privacy.is_identity() && self.progress.best.is_some() => {
                self.end_within_epoch(&error);
                Ok(None)
            }
            done => done.map(|()| self.progress.epochs.last()),
        }
    }

    fn whole_epoch(&mut self, watch: &mut dyn FnMut(StepReport) -> bool) -> Result<(), RunError> {
        let epoch = self.progress.epochs.len();
        if epoch == 0 {
            self.begin_primary();
        }
        let before = self.federation.traffic();
        let learning_rate = self.settings.decay.learning_rate(&self.progress.plateau, epoch, self.epochs());
        let train_loss = self.train_rows(epoch, learning_rate, watch)?;
        if let Some(averaged) = self.plan.averaged
            && (epoch + 1).is_multiple_of(averaged.every)
        {
            self.average_parameters(averaged.prefix, epoch)?;
        }
        let validation = self.evaluate(Part::Validation, epoch)?;
        let (patience, factor) = (self.settings.patience, self.settings.factor);
        let direction = self.metric.direction();
        let best = self.progress.plateau.observe(validation.score, direction, patience, factor);
        let mut test = None;
        if best {
            let tested = self.evaluate(Part::Test, epoch)?;
            test = Some(tested.score);
            self.evaluated = Some([validation.outputs, tested.outputs]);
            self.keep_best(epoch)?;
        } else {
            self.charge_test();
        }
        let traffic = self.federation.traffic().since(before);
        let validation = validation.score;
        let report = EpochReport { epoch: epoch + 1, learning_rate, train_loss, validation, test, traffic };
        self.progress.epochs.push(report);
        if best {
            self.progress.best = Some(epoch);
        }
        self.keep_to_target();
        self.stop_early();
        Ok(())
    }

    /// Ends the run where its settings say how many epochs may pass without a better validation metric.
    fn stop_early(&mut self) {
        let (done, best) = (self.progress.epochs.len(), self.progress.best.map_or(0, |best| best + 1));
        let patience = self.settings.early_stopping;
        self.progress.stopped |= patience > 0 && done - best >= patience;
    }

    /// Whether every epoch is done, or as many as the target of the privacy mechanism allows.
    pub fn is_done(&self) -> bool {
        self.progress.stopped || self.progress.epochs.len() >= self.epochs()
    }

    /// Whether a checkpoint holds everything that the method has learned.
    pub fn can_resume(&self) -> bool {
        self.plan.at_once.is_none()
    }

    /// How many epochs the run has.
    pub fn epochs(&self) -> usize {
        self.schedule.epochs()
    }

    /// Whether the last epoch is the best so far.
    pub fn last_is_best(&self) -> bool {
        self.progress.best.is_some_and(|best| best + 1 == self.progress.epochs.len())
    }

    /// The progress of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The primary's best model so far; empty before the first epoch.
    pub fn best(&self) -> &Parameters {
        &self.best
    }

    /// How many trained parameters all parties have together.
    pub fn parameters(&self) -> usize {
        self.primary.learner().trained().saturating_add(self.parameters)
    }

    /// How the primary scaled its own columns.
    pub fn records(&self) -> &PreparedParty {
        &self.records
    }

    /// Warnings about the data, and about what the run has cost.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Loss, metric and outputs.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// The time spent in each phase since the trainer was made.
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// The training, validation and test rows.
    pub fn split(&self) -> &Split {
        self.schedule.split()
    }

    /// Which rows and which parties take part in which round.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The primary's half of the model.
    pub fn primary(&self) -> &dyn Primary {
        self.primary.as_ref()
    }

    /// The primary's half of the model, for loading.
    pub fn primary_mut(&mut self) -> &mut dyn Primary {
        self.primary.as_mut()
    }

    /// The state of each secondary's lifetime account when it joined; nothing where it keeps none.
    pub fn standings(&self) -> &[Option<Standing>] {
        &self.standings
    }

    /// The secondaries.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// The privacy spent by the releases so far; `None` if no other party takes part.
    pub fn spent(&self) -> Option<Spent> {
        (!self.federation.is_empty()).then(|| self.privacy.spent(&self.progress.releases, &self.counted()))
    }

    pub(crate) fn federation_mut(&mut self) -> &mut Federation {
        &mut self.federation
    }

    /// Continues an interrupted run; the parties restore their own states separately.
    pub(crate) fn continue_from(&mut self, progress: Progress, best: Parameters) {
        self.warnings.extend(progress.warnings.iter().cloned());
        self.progress = progress;
        self.best = best;
    }

    /// The secondaries that are left, from 0.
    pub(crate) fn here(&self) -> Vec<usize> {
        (0..self.federation.len()).filter(|party| !self.progress.gone.contains(party)).collect()
    }

    /// Keeps every party's model as the best so far.
    fn keep_best(&mut self, epoch: usize) -> Result<(), RunError> {
        self.best = self.primary.learner().parameters().clone();
        let here = self.here();
        let request = Request::KeepBest(Epoch { epoch: epoch as u32 + 1 });
        Ok(self.federation.command(&here, vec![request; here.len()])?)
    }

    fn train_rows(
        &mut self,
        epoch: usize,
        learning_rate: f64,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<f64, RunError> {
        let of = self.split().train.len();
        let batches = self.schedule.batches(epoch);
        let (start, mut done, mut total) = (Instant::now(), 0, 0.0);
        for (step, batch) in batches.iter().enumerate() {
            if batch.is_empty() {
                continue;
            }
            let round = self.schedule.training(epoch, step);
            let loss = match self.step(round, batch, learning_rate) {
                Err(RunError::Sum(few @ CollectError::TooFew { .. })) => {
                    self.skip(round, &few);
                    continue;
                }
                loss => loss?,
            };
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

    /// A training step is left out: too few of its parties are left for a secure sum, and nothing of it was opened.
    fn skip(&mut self, round: Round, few: &CollectError) {
        let warning = "training steps are left out from here on where too few of their parties are left";
        if !self.progress.warnings.iter().any(|said| said.contains(warning)) {
            let warning = format!("{round}: {few}; {warning}");
            self.warnings.push(warning.clone());
            self.progress.warnings.push(warning);
        }
    }

    /// One training step: forward at the active parties, aggregate, decode, and back.
    fn step(&mut self, round: Round, rows: &[usize], learning_rate: f64) -> Result<f64, RunError> {
        let active = self.active_parties(round);
        let (memory, aggregation) = self.memory(round, rows, &active)?.unzip();
        let mut watch = Watch::start();
        let batch = self.batch(rows);
        let mut pass = Pass::training(stream(self.seed, 0, Purpose::Dropout, round.key()));
        let outcome = self.primary.train(&batch, memory, &mut pass);
        watch.lap(&mut self.phases.decode);
        if !outcome.loss.is_finite() {
            return Ok(outcome.loss);
        }
        if let (Some(gradient), Some(aggregation)) = (outcome.memory_gradient, aggregation)
            && !self.privacy.freezes_secondaries()
        {
            let gradient = self.protected(gradient, round);
            let backward = |gradient| Request::Backward(Backward { round, gradient, learning_rate });
            let parties = aggregation.active.len();
            let requests = match self.aggregator.spread(gradient, &aggregation) {
                Gradients::Same(gradient) => vec![backward(block(gradient)); parties],
                each => each.into_parts(parties).into_iter().map(|one| backward(block(one))).collect(),
            };
            watch.lap(&mut self.phases.aggregate);
            // A party that vanished after it had sent its part learns nothing from it.
            let learn = aggregation.active.iter().copied().zip::<Vec<Request>>(requests);
            let (active, requests): (Vec<usize>, Vec<Request>) =
                learn.filter(|(party, _)| !self.progress.gone.contains(party)).unzip();
            self.federation.command(&active, requests)?;
            watch.lap(&mut self.phases.learn);
        }
        self.primary.learner_mut().step(learning_rate);
        watch.lap(&mut self.phases.step);
        Ok(outcome.loss)
    }

    /// The parties that take part in a round: those of the schedule, without those that were lost.
    fn active_parties(&self, round: Round) -> Vec<usize> {
        let mut active = self.schedule.active(round);
        active.retain(|party| !self.progress.gone.contains(party));
        active
    }
}
