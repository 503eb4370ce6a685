//! Training: one plain loop over batches, and an evaluation after each epoch.
//!
//! The trainer plays the primary's side: it holds the primary's records, labels and model. It knows the
//! secondaries only through the messages of [`fet_core::message`]. It is independent of the method it runs,
//! and writes no files.

mod average;
mod begin;
mod core;
mod error;
mod labels;
mod linking;
mod links;
mod memory_cache;
mod predictor;
mod progress;
mod saved_model;
mod scores;
mod single_release;
mod sums;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::aggregator::{Aggregation, Gradients};
use fet_core::attack::PrimaryObserver;
use fet_core::data::{Matrix, PartyTable, Standardise};
use fet_core::experiment::TrainSettings;
use fet_core::labels::LabelPrivacy;
use fet_core::message::{Backward, Block, Epoch, LifetimeState, Request, Round};
use fet_core::method::{Memory, Primary};
use fet_core::model::Pass;
use fet_core::objective::{LabelScale, Metric, Objective};
use fet_core::parameters::{Parameters, host};
use fet_core::privacy::{PrivacyMechanism, Randomness, Releases, Spent, Tally};
use fet_core::rng::{Purpose, stream};
use fet_eval::Coverage;
use fet_eval::conformal::Conformal;
use fet_eval::evaluation::Evaluation;
use fet_privacy::secure_sum::CollectError;
use tracing::info_span;

use crate::federation::Federation;
use crate::prepare::{PreparedParty, Reference, Uniform};
use crate::release::OneTimeReleases;
use crate::schedule::{Part, Schedule, Split};
use crate::secondary::Store;

use self::average::average_parameters;
pub use self::begin::Beginning;
pub use self::core::Machine;
use self::core::{BatchRequest, PrimaryCore, unlabelled};
pub use self::error::RunError;
use self::labels::TrainingLabels;
pub use self::links::NewRecords;
use self::links::RowLinks;
pub use self::predictor::Predictor;
use self::progress::Stopwatch;
pub use self::progress::{EpochReport, Phases, Progress, ReleaseCount, StepReport, Tables};
pub use self::saved_model::SavedModel;
pub use self::scores::Evaluated;
use self::scores::Scoring;
pub(crate) use self::single_release::SingleRelease;

/// A run in progress.
pub struct Trainer {
    core: PrimaryCore,
    settings: TrainSettings,
    records: PreparedParty,
    standardise: Standardise,
    /// Summary of the training rows.
    reference: Reference,
    /// Row of each record in the file, from 0; empty if the records have the order of the file.
    file_rows: Vec<usize>,
    labels: TrainingLabels,
    scoring: Scoring,
    links: RowLinks,
    /// Standardisation of each party's similarities, fitted on the training rows; `None` if the party does
    /// not send them.
    similarity_scales: Vec<Option<Uniform>>,
    single_release: SingleRelease,
    /// Releases whose columns the primary's records include.
    one_time: OneTimeReleases,
    progress: Progress,
    best: BestModel,
}

/// The best epoch's model and outputs; empty before the first epoch.
#[derive(Debug, Default)]
struct BestModel {
    /// Parameters of the primary's model.
    parameters: Parameters,
    /// Outputs for the validation and the test rows.
    outputs: Option<[Vec<f32>; 2]>,
}

/// State of an interrupted run, from its checkpoint.
pub(crate) struct InterruptedRun {
    pub(crate) progress: Progress,
    pub(crate) releases: ReleaseCount,
    /// Parties that dropped out, from 0.
    pub(crate) dropped: Vec<usize>,
    /// Warnings about events of the run.
    pub(crate) warnings: Vec<String>,
    /// Parameters of the primary's best model.
    pub(crate) best: Parameters,
    /// Outputs of the best epoch; `None` before the first epoch.
    pub(crate) outputs: Option<[Vec<f32>; 2]>,
    /// Release of all rows, if each row is released once and the checkpoint holds it.
    pub(crate) single_release: Option<SingleRelease>,
}

/// Outputs of a split's rows, and their score.
struct SplitOutputs {
    /// Metric that selects the epoch; may be NaN.
    score: f64,
    /// Activated outputs, row by row, in the order of the split.
    outputs: Vec<f32>,
}

impl Trainer {
    /// Returns the release of all rows, if each row is released once, for a checkpoint.
    pub(crate) fn single_release(&self) -> &SingleRelease {
        &self.single_release
    }

    /// Saves the primary's own seed, if it has one: a resumed run draws the noise on labels from it again.
    pub fn keep_seed(&self, store: &Store) -> Result<(), RunError> {
        Ok(store.keep_seed(self.labels.seed())?)
    }

    /// Continues an interrupted run; the parties restore their own states separately.
    pub(crate) fn continue_from(&mut self, run: InterruptedRun) {
        self.core.warnings.restore(run.warnings);
        self.core.federation.restore_dropped(run.dropped);
        self.core.releases = run.releases;
        self.progress = run.progress;
        self.best = BestModel { parameters: run.best, outputs: run.outputs };
        if let Some(release) = run.single_release {
            self.single_release = release;
        }
        self.choose_epoch_of_releases();
    }

    /// Trains one epoch and evaluates it. `watch` receives every step's report and returns whether to
    /// continue. Returns `None` if the run ends within the epoch because a party's account allows no more
    /// releases; training since the last epoch is then discarded.
    pub fn epoch(
        &mut self,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<Option<&EpochReport>, RunError> {
        let epoch = self.progress.epochs.len() as i64 + 1;
        let _span = info_span!(target: "fet", "epoch", epoch).entered();
        match self.whole_epoch(watch) {
            // The first epoch has not made a model yet.
            Err(error)
                if error.is_spent() && !self.privacy().is_identity() && self.progress.best.is_some() =>
            {
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
        let before = self.core.federation.traffic();
        let learning_rate = self.settings.decay.learning_rate(&self.progress.plateau, epoch, self.epochs());
        let train_loss = self.train_rows(epoch, learning_rate, watch)?;
        if let Some(averaged) = self.core.components.plan.averaged
            && (epoch + 1).is_multiple_of(averaged.every)
        {
            average_parameters(&mut self.core, averaged.prefix, epoch)?;
        }
        let validation = self.evaluate(Part::Validation, epoch)?;
        let (patience, factor) = (self.settings.patience, self.settings.factor);
        let direction = self.scoring.metric().direction();
        let best = self.progress.plateau.observe(validation.score, direction, patience, factor);
        let mut test = None;
        if best {
            let tested = self.evaluate(Part::Test, epoch)?;
            test = Some(tested.score);
            self.best.outputs = Some([validation.outputs, tested.outputs]);
            self.keep_best(epoch)?;
        } else {
            self.charge_test();
        }
        let traffic = self.core.federation.traffic().since(before);
        let validation = validation.score;
        let report = EpochReport { epoch: epoch + 1, learning_rate, train_loss, validation, test, traffic };
        self.progress.epochs.push(report);
        if best {
            self.progress.best = Some(epoch);
        }
        self.keep_to_target();
        self.stop_early();
        self.choose_epoch_of_releases();
        Ok(())
    }

    /// Lets the primary's half fit the parts that need all training rows at once.
    fn begin_primary(&mut self) {
        let rows = self.split().train.clone();
        let device = self.core.device.clone().without_autodiff();
        let Self { core, labels, records, .. } = self;
        core.model.begin(&mut || labels.label(unlabelled(records, &rows, &device), &rows));
    }

    fn train_rows(
        &mut self,
        epoch: usize,
        learning_rate: f64,
        watch: &mut dyn FnMut(StepReport) -> bool,
    ) -> Result<f64, RunError> {
        let batches = self.schedule().batches(epoch);
        let of = batches.iter().map(<[usize]>::len).sum();
        let (start, mut done, mut total) = (Instant::now(), 0, 0.0);
        for (step, batch) in batches.iter().enumerate() {
            if batch.is_empty() {
                continue;
            }
            let round = self.schedule().training(epoch, step);
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
        if !self.core.warnings.has_lasting(warning) {
            self.core.warnings.add_lasting(format!("{round}: {few}; {warning}"));
        }
    }

    /// Runs one training step: forward pass at the active parties, aggregation, decoding, and backward pass.
    fn step(&mut self, round: Round, rows: &[usize], learning_rate: f64) -> Result<f64, RunError> {
        let _span = info_span!(target: "fet", "round", round = %round).entered();
        let active = self.core.active_parties(round);
        let (memory, aggregation) = self.memory(round, rows, &active)?.unzip();
        let core = &mut self.core;
        let mut watch = Stopwatch::start();
        let batch = self.labels.label(unlabelled(&self.records, rows, &core.device), rows);
        let mut pass = Pass::training(stream(core.seed, 0, Purpose::Dropout, round.key()));
        let outcome = core.model.train(&batch, memory, &mut pass);
        watch.lap(&mut core.phases.decode);
        if !outcome.loss.is_finite() {
            return Ok(outcome.loss);
        }
        if let (Some(gradient), Some(aggregation)) = (outcome.memory_gradient, aggregation)
            && !core.components.privacy.freezes_secondaries()
        {
            let gradient = self.labels.protect(gradient, round);
            let backward = |gradient| Request::Backward(Backward { round, gradient, learning_rate });
            let parties = aggregation.active.len();
            let requests = match core.components.aggregator.spread(gradient, &aggregation) {
                Gradients::Same(gradient) => vec![backward(block(gradient)); parties],
                each => each.into_parts(parties).into_iter().map(|one| backward(block(one))).collect(),
            };
            watch.lap(&mut core.phases.aggregate);
            // A party that dropped out after it sent its part gets no gradient.
            let learn = aggregation.active.iter().copied().zip::<Vec<Request>>(requests);
            let (active, requests): (Vec<usize>, Vec<Request>) =
                learn.filter(|(party, _)| !core.federation.dropped().contains(party)).unzip();
            core.federation.command(&active, requests)?;
            watch.lap(&mut core.phases.learn);
        }
        core.model.learner_mut().step(learning_rate);
        watch.lap(&mut core.phases.step);
        Ok(outcome.loss)
    }

    /// Returns the memory of a batch, and the parties that contributed to it; `None` without secondaries.
    fn memory(
        &mut self,
        round: Round,
        rows: &[usize],
        active: &[usize],
    ) -> Result<Option<(Memory, Aggregation)>, RunError> {
        if self.core.federation.is_empty() {
            return Ok(None);
        }
        if self.privacy().freezes_secondaries() {
            return self.single_release.memory(&mut self.core, &self.links, rows).map(Some);
        }
        self.core.memory(BatchRequest { round, rows, active, links: &self.links }).map(Some)
    }

    /// Evaluates a split's rows: all parties take part, without dropout. The validation rows first fit the parts
    /// of the primary's half that they determine.
    fn evaluate(&mut self, part: Part, epoch: usize) -> Result<SplitOutputs, RunError> {
        let name = match part {
            Part::Validation => "validation",
            Part::Test => "test",
        };
        let _span = info_span!(target: "fet", "evaluation", part = name).entered();
        let (mut outputs, mut batches) = (Vec::new(), Vec::new());
        let mut watch = Stopwatch::start();
        for (round, rows) in self.schedule().evaluation(part, epoch) {
            let active = self.core.active_parties(round);
            let memory = self.memory(round, &rows, &active)?.map(|(memory, _)| memory);
            let output = match part {
                Part::Validation => self.core.decode_for_fit(&self.records, &rows, memory),
                Part::Test => self.core.decode(&self.records, &rows, memory),
            };
            outputs.extend(host(output));
            batches.push((round, rows));
        }
        if part == Part::Validation {
            outputs = self.fit_to_validation(outputs);
        }
        let mut values = outputs.as_slice();
        for (round, rows) in &batches {
            let (of_batch, rest) = values.split_at(rows.len() * self.core.objective.outputs);
            self.core.show_outputs(*round, rows, of_batch);
            values = rest;
        }
        watch.lap(&mut self.core.phases.evaluate);
        let score = self.scoring.score(&self.evaluated_as(part, &outputs));
        Ok(SplitOutputs { score, outputs })
    }

    /// Lets the primary's half fit the parts that validation rows determine, given its outputs for these rows.
    fn fit_to_validation(&mut self, outputs: Vec<f32>) -> Vec<f32> {
        let rows = self.split().validation.clone();
        let device = self.device();
        let shape = [rows.len(), self.core.objective.outputs];
        let outputs = Tensor::from_data(TensorData::new(outputs, shape), &device);
        let Self { core, labels, records, .. } = self;
        let mut all = || labels.label(unlabelled(records, &rows, &device), &rows);
        host(core.model.fit_to_validation(&mut all, outputs))
    }

    fn evaluated_as(&self, part: Part, outputs: &[f32]) -> Evaluated {
        let rows = match part {
            Part::Validation => &self.split().validation,
            Part::Test => &self.split().test,
        };
        self.scoring.evaluated(rows, self.labels.values(), outputs)
    }

    /// Has every party keep its current model as the best so far.
    fn keep_best(&mut self, epoch: usize) -> Result<(), RunError> {
        self.best.parameters = self.core.model.learner().parameters().clone();
        let request = Request::KeepBest(Epoch { epoch: epoch as u32 + 1 });
        Ok(self.core.federation.command_active(&request)?)
    }

    /// Chooses the epoch of the next releases. Releases after the last epoch belong to that epoch.
    fn choose_epoch_of_releases(&mut self) {
        let done = self.progress.epochs.len();
        self.core.releases.epoch = if self.is_done() { done.saturating_sub(1) } else { done };
    }

    /// Counts an evaluation of the test rows that was not made, because the decision whether to make it
    /// depends on earlier releases.
    fn charge_test(&mut self) {
        if !(self.core.federation.is_empty() || self.privacy().freezes_secondaries()) {
            let (active, batches) = (self.core.federation.active().len(), self.schedule().test_batches());
            self.core.releases.charge(active, batches as u64);
        }
    }

    /// Ends the run if the validation metric has not improved for the number of epochs in the settings. The epochs
    /// of a method that takes all training rows at once are steps of a search, where a plateau is not the end: the
    /// strongest penalties of a linear model all give the same predictions.
    fn stop_early(&mut self) {
        if self.core.components.plan.at_once.is_some() {
            return;
        }
        let (done, best) = (self.progress.epochs.len(), self.progress.best.map_or(0, |best| best + 1));
        let patience = self.settings.early_stopping;
        self.progress.stopped |= patience > 0 && done - best >= patience;
    }

    /// Ends the run if parties dropped out and another epoch with the remaining parties would exceed the
    /// target. Warns if the cost already exceeds the target.
    fn keep_to_target(&mut self) {
        let Some(target) = self.privacy().target() else { return };
        let (dropped, releases) = (self.core.federation.dropped(), &self.core.releases);
        // A run without dropped-out parties costs what was planned.
        if dropped.is_empty() && releases.lost.is_empty() {
            return;
        }
        let counted = self.counted();
        let next = self.next_epoch();
        let with_next = [counted.as_slice(), std::slice::from_ref(&next)].concat();
        if self.privacy().epsilon(&releases.planned, &with_next) <= target {
            return;
        }
        let lost: Vec<String> =
            dropped.iter().map(|&party| format!("\"{}\"", self.core.federation.name(party))).collect();
        let lost = lost.join(", ");
        let (done, all) = (self.progress.epochs.len(), self.epochs());
        let mut warnings = Vec::new();
        if self.privacy().epsilon(&releases.planned, &counted) > target {
            warnings.push(format!(
                "the run costs more than `privacy.target_epsilon`: it lost {lost}, and the releases of the same epoch with \
                 fewer parties cost more than was planned"
            ));
        }
        if next.releases() > 0 {
            self.progress.stopped = true;
            warnings.push(format!(
                "the run stopped after {done} of {all} epochs: it lost {lost}, and another epoch with \
                 the remaining parties would cost more than `privacy.target_epsilon`"
            ));
        }
        for warning in warnings {
            if !self.core.warnings.lasting().contains(&warning) {
                self.core.warnings.add_lasting(warning);
            }
        }
    }

    /// Ends the run after a party's account refused a release.
    fn end_within_epoch(&mut self, refused: &RunError) {
        self.progress.stopped = true;
        let (done, all) = (self.progress.epochs.len(), self.epochs());
        self.core.warnings.add_lasting(format!(
            "the run stopped after {done} of {all} epochs, within the next epoch: {refused}"
        ));
        self.choose_epoch_of_releases();
    }

    /// Counts the possible releases of `earlier` earlier sessions after the state that this session continues
    /// from: at most an epoch each, or a pass over all rows. With own seeds and secure aggregation, parties
    /// add new noise in each session, so that a repeated release is another release. Returns true if any of
    /// these sessions was not counted yet.
    pub fn count_sessions(&mut self, earlier: u64) -> bool {
        let more = earlier.saturating_sub(self.core.releases.sessions);
        self.core.releases.sessions = earlier;
        let Releases { randomness, summed, .. } = self.core.releases.planned;
        let fresh_noise = randomness == Randomness::Own && summed && !self.privacy().is_identity();
        let frozen = self.privacy().freezes_secondaries();
        if more == 0 || !fresh_noise || self.is_done() || (frozen && self.single_release.is_received()) {
            return more > 0;
        }
        let mut epoch = self.next_epoch();
        if frozen {
            epoch.add(self.core.federation.active().len(), 1);
        }
        self.core.releases.lost.extend(std::iter::repeat_n(epoch, more as usize));
        self.core.warnings.add_lasting(format!(
            "{more} earlier {} of this run ended without a checkpoint of all releases: the releases \
             that may be missing are counted too",
            if more == 1 { "session" } else { "sessions" }
        ));
        true
    }

    /// Returns the releases of the next epoch, if there is one and no other party drops out.
    fn next_epoch(&self) -> Tally {
        let mut next = Tally::default();
        if self.is_done() || self.privacy().freezes_secondaries() {
            return next;
        }
        let epoch = self.progress.epochs.len();
        for step in 0..self.schedule().steps() {
            next.add(self.core.active_parties(self.schedule().training(epoch, step)).len(), 1);
        }
        let evaluations = self.core.releases.planned.evaluation_steps as u64;
        next.add(self.core.federation.active().len(), evaluations);
        next
    }

    /// Returns the releases so far by epoch, including releases of earlier sessions beyond their checkpoints.
    fn counted(&self) -> Vec<Tally> {
        self.core.releases.counted(self.privacy().freezes_secondaries())
    }

    /// Returns the best model's activated outputs for new records of the primary, [n, outputs], as
    /// [`Predictor::predict`] does. The run itself stays unchanged.
    pub fn predict(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let current = self.core.model.learner().parameters().clone();
        if !self.best.parameters.segments().is_empty() {
            self.core.model.learner_mut().load(&self.best.parameters)?;
        }
        let outputs = self.new_outputs(table);
        self.core.model.learner_mut().load(&current)?;
        outputs
    }

    fn new_outputs(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let records = self.records.scaled.preparing.apply(table)?;
        let new = self.core.link_new(records, &self.similarity_scales)?;
        self.core.outputs(&new, &new.parties(), &mut |_, _| {})
    }

    /// Ends the run: the secondaries write their best models.
    pub fn finish(&mut self) -> Result<(), RunError> {
        Ok(self.core.federation.command_active(&Request::Finish)?)
    }

    /// Removes the states that the secondaries saved during the run. The report must be written before.
    pub fn forget(&mut self) -> Result<(), RunError> {
        Ok(self.core.federation.command_active(&Request::Forget)?)
    }

    /// Shows `observer` all messages that arrive from now on, as an attacking primary would see them.
    pub fn observe(&mut self, observer: Arc<Mutex<dyn PrimaryObserver>>) {
        self.core.observer = Some(observer);
    }

    /// Returns true if every epoch is done, or as many epochs as the target of the privacy mechanism allows.
    pub fn is_done(&self) -> bool {
        self.progress.stopped || self.progress.epochs.len() >= self.epochs()
    }

    /// Returns true if a checkpoint holds everything that the method has learned.
    pub fn can_resume(&self) -> bool {
        self.core.components.plan.at_once.is_none()
    }

    /// Returns the number of epochs of the run.
    pub fn epochs(&self) -> usize {
        self.schedule().epochs()
    }

    /// Returns true if the last epoch is the best so far.
    pub fn last_is_best(&self) -> bool {
        self.progress.best.is_some_and(|best| best + 1 == self.progress.epochs.len())
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the count of the releases so far.
    pub fn releases(&self) -> &ReleaseCount {
        &self.core.releases
    }

    /// Returns the primary's best model so far; empty before the first epoch.
    pub fn best(&self) -> &Parameters {
        &self.best.parameters
    }

    /// Returns the settings that the best model so far fitted to the validation rows, by their paths.
    pub fn fitted_settings(&self) -> BTreeMap<String, f64> {
        let fitted = self.core.model.fitted_settings(&self.best.parameters);
        fitted.into_iter().map(|(name, value)| (format!("method.{name}"), value)).collect()
    }

    /// Returns the outputs of the best epoch, for a checkpoint.
    pub(crate) fn best_outputs(&self) -> Option<&[Vec<f32>; 2]> {
        self.best.outputs.as_ref()
    }

    /// Returns the number of trained parameters of all parties together.
    pub fn parameters(&self) -> usize {
        let others = self.core.profiles.iter().map(|profile| profile.parameters);
        others.fold(self.primary().learner().trained(), usize::saturating_add)
    }

    /// Returns the primary's prepared records.
    pub fn records(&self) -> &PreparedParty {
        &self.records
    }

    /// Returns the primary's own columns, keys and features, as its model sees them.
    pub fn own_columns(&self, rows: &[usize]) -> Matrix<f32> {
        let own = &self.records.scaled;
        let values: Vec<f32> =
            rows.iter().flat_map(|&row| [own.keys.row(row), own.features.row(row)].concat()).collect();
        Matrix::new(own.keys.columns() + own.features.columns(), values)
    }

    /// Returns the warnings about the data and about the cost of the run.
    pub fn warnings(&self) -> &[String] {
        self.core.warnings.all()
    }

    /// Returns the warnings about events of the run, for a checkpoint.
    pub(crate) fn lasting_warnings(&self) -> &[String] {
        self.core.warnings.lasting()
    }

    /// Returns the loss, the metric and the number of outputs.
    pub fn objective(&self) -> Objective {
        self.core.objective
    }

    /// Returns the labels of the training rows in their own unit, protected as the settings require.
    pub fn training_labels(&self) -> Vec<f64> {
        self.split().train.iter().map(|&row| self.labels.values()[row]).collect()
    }

    /// Returns the scale of the labels that the model predicts.
    pub fn label_scale(&self) -> &LabelScale {
        self.labels.scale()
    }

    /// Returns the time spent in each phase since the trainer was made.
    pub fn phases(&self) -> Phases {
        self.core.phases
    }

    /// Returns the training, validation and test rows.
    pub fn split(&self) -> &Split {
        self.schedule().split()
    }

    /// Returns the schedule of rows and parties in each round.
    pub fn schedule(&self) -> &Schedule {
        &self.core.schedule
    }

    /// Returns the primary's half of the model.
    pub fn primary(&self) -> &dyn Primary {
        self.core.model.as_ref()
    }

    /// Returns the primary's half of the model, for loading.
    pub fn primary_mut(&mut self) -> &mut dyn Primary {
        self.core.model.as_mut()
    }

    /// Returns the state of each secondary's lifetime account when the party joined; `None` for a party
    /// without an account.
    pub fn standings(&self) -> Vec<Option<LifetimeState>> {
        self.core.standings()
    }

    /// Returns the secondaries.
    pub fn federation(&self) -> &Federation {
        &self.core.federation
    }

    /// Returns the device of tensors without autodiff.
    pub(crate) fn device(&self) -> Device {
        self.core.device.clone().without_autodiff()
    }

    pub(crate) fn federation_mut(&mut self) -> &mut Federation {
        &mut self.core.federation
    }

    /// Returns the privacy spent by the releases so far; `None` if no other party takes part.
    pub fn spent(&self) -> Option<Spent> {
        let planned = &self.core.releases.planned;
        (!self.core.federation.is_empty()).then(|| self.privacy().spent(planned, &self.counted()))
    }

    /// Sets the releases of the run: those that this model uses, or those that another model of the run used.
    pub fn set_one_time_releases(&mut self, releases: OneTimeReleases) {
        self.one_time = releases;
    }

    /// Returns the releases that the secondaries made once.
    pub fn one_time_releases(&self) -> &OneTimeReleases {
        &self.one_time
    }

    /// Returns the guarantee for training labels over the whole run; `None` if no other party takes part, or if releases
    /// without protected labels take its place.
    pub fn label_privacy(&self) -> Option<LabelPrivacy> {
        let of_release = self.one_time.label_privacy().cloned();
        of_release.or_else(|| (!self.core.federation.is_empty()).then(|| self.labels.guarantee()))
    }

    /// Returns the names of the classes; empty if the classes are numbers.
    pub fn class_names(&self) -> &[String] {
        &self.core.class_names
    }

    /// Returns the row of a record in the primary's file, both from 0.
    pub fn file_row(&self, record: usize) -> usize {
        self.file_rows.get(record).copied().unwrap_or(record)
    }

    /// Returns the metric that selects the epoch.
    pub fn metric(&self) -> Metric {
        self.scoring.metric()
    }

    /// Returns the best model's predictions for the validation and the test rows; `None` before the first
    /// epoch.
    pub fn evaluated(&self) -> Option<[Evaluated; 2]> {
        let [validation, test] = self.best.outputs.as_ref()?;
        Some([self.evaluated_as(Part::Validation, validation), self.evaluated_as(Part::Test, test)])
    }

    /// Returns every metric of the best model, also by group if the settings name a column. Returns `None`
    /// before the first epoch.
    pub fn evaluation(&self) -> Option<Evaluation> {
        self.scoring.evaluation(&self.evaluated()?, &mut stream(self.core.seed, 0, Purpose::Bootstrap, 0))
    }

    /// Returns the bounds on the predictions of new rows with this probability, from the best model's errors
    /// on the validation rows.
    pub fn conformal(&self, coverage: f64) -> Option<Conformal> {
        let [validation, _] = self.evaluated()?;
        let mut rng = stream(self.core.seed, 0, Purpose::Calibration, 0);
        self.scoring.conformal(&validation, coverage, &mut rng)
    }

    /// Returns the coverage of these bounds on the test rows; `None` before the first epoch.
    pub fn coverage(&self, conformal: &Conformal) -> Option<Coverage> {
        let [_, test] = self.evaluated()?;
        self.scoring.coverage(conformal, &test)
    }

    /// Returns the summary of the training rows, with the best model's predictions for the validation and test
    /// rows. A model's predictions for its own training rows are closer to their labels than those for new rows.
    pub fn reference(&self) -> Reference {
        let parts = self.evaluated().into_iter().flatten();
        let values: Vec<f64> = parts.flat_map(|part| part.values).collect();
        self.reference.clone().with_predictions(self.core.objective, &values)
    }

    /// Returns the standardisation of keys and features.
    pub(crate) fn standardise(&self) -> Standardise {
        self.standardise
    }

    /// Returns the standardisation of each secondary's similarities; `None` for a party that sends none.
    pub(crate) fn similarity_scales(&self) -> &[Option<Uniform>] {
        &self.similarity_scales
    }

    /// Returns what the encoding of keys for each secondary learned from the run's keys.
    pub(crate) fn encodings(&self) -> &[Option<Vec<u8>>] {
        &self.core.encodings
    }

    fn privacy(&self) -> &dyn PrivacyMechanism {
        self.core.components.privacy.as_ref()
    }
}

/// Converts a tensor to the form of a message.
fn block(tensor: Tensor<3>) -> Block {
    let shape = tensor.dims();
    Block::new(shape, host(tensor)).expect("a tensor fills its shape")
}
