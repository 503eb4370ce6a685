//! Training: one plain loop over batches, and an evaluation after each epoch.
//!
//! The trainer plays the primary's side: it holds the primary's records, labels and model. It knows the
//! secondaries only through the messages of [`fet_core::message`]. It is independent of the method it runs,
//! and writes no files.

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
    /// Labels in their own unit; those of training rows are already protected.
    labels: Vec<f64>,
    /// Name of the column that groups test rows, if there is one, and its value for each record.
    groups: Option<(String, Vec<String>)>,
    /// Row of each record in the file, from 0; empty if the records have the order of the file.
    file_rows: Vec<usize>,
    /// Metric that selects the epoch.
    metric: Metric,
    /// Outputs for the validation and the test rows in the best epoch so far; `None` before the first epoch.
    evaluated: Option<[Vec<f32>; 2]>,
    /// Weights of the rows' losses by class; `None` if all rows have equal weight.
    weights: Option<ClassWeights>,
    /// Names of the classes; empty if the classes are numbers.
    class_names: Vec<String>,
    standardise: Standardise,
    protection: Box<dyn LabelProtection>,
    exposure: Exposure,
    /// Seed of the primary's private randomness.
    own: OwnSeed,
    primary: Box<dyn Primary>,
    linker: Box<dyn Linker>,
    federation: Federation,
    aggregator: Arc<dyn Aggregator>,
    privacy: Box<dyn PrivacyMechanism>,
    /// Secondaries that agreed on keys, from 0; empty without secure aggregation.
    agreed: Vec<usize>,
    /// Memory of every row, if each row is released once in the whole run.
    released: Option<Memory>,
    plan: Plan,
    /// Number of neighbours that each party represents.
    neighbours: Vec<usize>,
    /// Number of real neighbours, as each party reported when it linked.
    available: Vec<usize>,
    /// Similarities of each party's neighbours, standardised on the training rows; `None` if the party does
    /// not send them.
    similarities: Vec<Option<Similarities>>,
    /// Width of each party's last representation.
    widths: Vec<Option<usize>>,
    /// State of each party's lifetime account when the party joined.
    standings: Vec<Option<Standing>>,
    /// Number of parameters of all secondaries' models.
    parameters: usize,
    progress: Progress,
    /// The primary's best model so far; empty before the first epoch.
    best: Parameters,
    /// Number of probes made outside the run.
    probes: u32,
    phases: Phases,
    warnings: Vec<String>,
    /// Observer of all messages that arrive, for measuring attacks.
    view: Option<Arc<Mutex<dyn View>>>,
}

/// Similarities of a party's neighbours to the primary's records, [n, K], and their standardisation.
struct Similarities {
    values: Matrix<f32>,
    standard: Uniform,
}

/// The device and threads of a run.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Device of the tensors, without autodiff.
    pub device: Device,
    /// True if the device is the host.
    pub on_host: bool,
    /// Maximum number of parties that compute in parallel.
    pub party_threads: usize,
}

impl Trainer {
    /// Trains one epoch and evaluates it. `watch` receives every step's report and returns whether to
    /// continue. Returns `None` if the run ends within the epoch because a party's account allows no more
    /// releases; training since the last epoch is then discarded.
    pub fn epoch(
        &mut self,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<Option<&EpochReport>, RunError> {
        match self.whole_epoch(watch) {
            // The first epoch has not made a model yet.
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

    /// Ends the run if the validation metric has not improved for the number of epochs in the settings.
    fn stop_early(&mut self) {
        let (done, best) = (self.progress.epochs.len(), self.progress.best.map_or(0, |best| best + 1));
        let patience = self.settings.early_stopping;
        self.progress.stopped |= patience > 0 && done - best >= patience;
    }

    /// Returns true if every epoch is done, or as many epochs as the target of the privacy mechanism allows.
    pub fn is_done(&self) -> bool {
        self.progress.stopped || self.progress.epochs.len() >= self.epochs()
    }

    /// Returns true if a checkpoint holds everything that the method has learned.
    pub fn can_resume(&self) -> bool {
        self.plan.at_once.is_none()
    }

    /// Returns the number of epochs of the run.
    pub fn epochs(&self) -> usize {
        self.schedule.epochs()
    }

    /// Returns true if the last epoch is the best so far.
    pub fn last_is_best(&self) -> bool {
        self.progress.best.is_some_and(|best| best + 1 == self.progress.epochs.len())
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the primary's best model so far; empty before the first epoch.
    pub fn best(&self) -> &Parameters {
        &self.best
    }

    /// Returns the number of trained parameters of all parties together.
    pub fn parameters(&self) -> usize {
        self.primary.learner().trained().saturating_add(self.parameters)
    }

    /// Returns the primary's prepared records.
    pub fn records(&self) -> &PreparedParty {
        &self.records
    }

    /// Returns the warnings about the data and about the cost of the run.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the loss, the metric and the number of outputs.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// Returns the time spent in each phase since the trainer was made.
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// Returns the training, validation and test rows.
    pub fn split(&self) -> &Split {
        self.schedule.split()
    }

    /// Returns the schedule of rows and parties in each round.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the primary's half of the model.
    pub fn primary(&self) -> &dyn Primary {
        self.primary.as_ref()
    }

    /// Returns the primary's half of the model, for loading.
    pub fn primary_mut(&mut self) -> &mut dyn Primary {
        self.primary.as_mut()
    }

    /// Returns the state of each secondary's lifetime account when the party joined; `None` for a party
    /// without an account.
    pub fn standings(&self) -> &[Option<Standing>] {
        &self.standings
    }

    /// Returns the secondaries.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// Returns the privacy spent by the releases so far; `None` if no other party takes part.
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

    /// Returns the active secondaries, from 0.
    pub(crate) fn here(&self) -> Vec<usize> {
        (0..self.federation.len()).filter(|party| !self.progress.gone.contains(party)).collect()
    }

    /// Has every party keep its current model as the best so far.
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

    /// Skips a training step: too few parties are left for secure aggregation, and none of the step was
    /// unmasked.
    fn skip(&mut self, round: Round, few: &CollectError) {
        let warning = "from here on, training steps are left out if too few of their parties are active";
        if !self.progress.warnings.iter().any(|said| said.contains(warning)) {
            let warning = format!("{round}: {few}; {warning}");
            self.warnings.push(warning.clone());
            self.progress.warnings.push(warning);
        }
    }

    /// Runs one training step: forward pass at the active parties, aggregation, decoding, and backward pass.
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
            // A party that dropped out after it sent its part gets no gradient.
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

    /// Returns the parties that take part in a round: those of the schedule, without those that dropped out.
    fn active_parties(&self, round: Round) -> Vec<usize> {
        let mut active = self.schedule.active(round);
        active.retain(|party| !self.progress.gone.contains(party));
        active
    }
}
