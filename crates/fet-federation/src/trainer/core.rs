//! The primary's side that training and predictions share: the components, the secondaries that joined, and
//! the primary's model.
//!
//! A batch passes through this file once. [`PrimaryCore::memory`] requests the secondaries' representations
//! and aggregates them, and [`PrimaryCore::decode`] computes the primary's outputs from the aggregate.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_core::aggregator::{Aggregation, Aggregator, Role, SecureSum};
use fet_core::attack::PrimaryObserver;
use fet_core::data::{Matrix, Standardise};
use fet_core::experiment::Experiment;
use fet_core::linker::Linker;
use fet_core::message::{
    Block, Forward, LifetimeState, OLDEST_PROTOCOL, Parts, Reply, Request, Round, Terms,
};
use fet_core::method::{Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext};
use fet_core::objective::Objective;
use fet_core::parameters::host;
use fet_core::privacy::{PrivacyMechanism, Releases};
use fet_core::registry::Violation;
use fet_core::rng::{Purpose, stream};
use fet_eval::records::RESULTS_VERSION;
use fet_privacy::secure_sum::{CollectError, collect, quorum};

use super::error::RunError;
use super::links::{NewRecords, RowLinks};
use super::memory_cache::KnownMemories;
use super::progress::{Phases, ReleaseCount, Stopwatch, Warnings};
use super::sums::{RepresentationSum, agree_on_keys, short};
use crate::federation::{Federation, PartyError, PartyIndex, SentRequest};
use crate::prepare::PreparedParty;
use crate::privacy::{RunShape, most_rows, protection, secure_sum_form};
use crate::rows::{fill, filled, gather};
use crate::schedule::{Schedule, Split};
use crate::secure_aggregation;

/// The primary's side that training and predictions share. All active secondaries have joined.
pub(crate) struct PrimaryCore {
    pub(super) seed: u64,
    /// An autodiff device.
    pub(super) device: Device,
    pub(super) objective: Objective,
    /// Names of the classes; empty if the classes are numbers.
    pub(super) class_names: Vec<String>,
    pub(super) model: Box<dyn Primary>,
    pub(super) schedule: Schedule,
    pub(super) components: Components,
    pub(super) federation: Federation,
    /// Facts about each secondary.
    pub(super) profiles: Vec<PartyProfile>,
    /// Information that the encoding for each party learned from the run's keys; `None` before the first link, or if the
    /// linker learns nothing.
    pub(super) encodings: Vec<Option<Vec<u8>>>,
    /// Secondaries that agreed on keys, from 0; empty without secure aggregation.
    pub(super) agreed: Vec<usize>,
    pub(super) releases: ReleaseCount,
    pub(super) warnings: Warnings,
    pub(super) phases: Phases,
    /// Number of batches of new records in secure sums or with noise.
    pub(super) protected_batches: u32,
    /// Observer of all messages that arrive, for measuring attacks.
    pub(super) observer: Option<Arc<Mutex<dyn PrimaryObserver>>>,
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

/// Components that the settings name, calibrated to the releases of the run.
pub(super) struct Components {
    method: Box<dyn Method>,
    pub(super) plan: Plan,
    pub(super) linker: Box<dyn Linker>,
    pub(super) aggregator: Arc<dyn Aggregator>,
    pub(super) privacy: Box<dyn PrivacyMechanism>,
    /// Releases of the whole run, if no party drops out.
    planned: Releases,
    /// Number of neighbours that each party represents.
    pub(super) neighbours: Vec<usize>,
}

/// Shape of the primary's records as its model sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordShape {
    pub(super) key_columns: usize,
    pub(super) feature_columns: usize,
    pub(super) objective: Objective,
}

/// Facts about a secondary that the primary learns from its messages.
pub(super) struct PartyProfile {
    /// State of the lifetime account when the party joined; `None` without an account.
    pub(super) standing: Option<LifetimeState>,
    /// Keyed digest of the party's table; `None` for a party that dropped out before it joined.
    pub(super) table: Option<[u8; 32]>,
    /// Number of parameters of the party's model.
    pub(super) parameters: usize,
    /// Width of the party's last representation; `None` before the first.
    width: Option<usize>,
}

/// Values with which the primary has the secondaries join.
pub(super) struct CoreSetup<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) components: Components,
    pub(super) model: Box<dyn Primary>,
    pub(super) schedule: Schedule,
    pub(super) objective: Objective,
    pub(super) class_names: Vec<String>,
    pub(super) federation: Federation,
    pub(super) device: Device,
    /// Split of each record, for the terms.
    pub(super) parts: Parts,
    pub(super) standardise: Standardise,
    pub(super) warnings: Warnings,
}

/// A batch of the primary's rows for which representations are requested.
#[derive(Clone, Copy)]
pub(super) struct BatchRequest<'a> {
    pub(super) round: Round,
    pub(super) rows: &'a [usize],
    /// Secondaries that take part, from 0, ascending.
    pub(super) active: &'a [usize],
    /// Links of the records that `rows` refer to.
    pub(super) links: &'a RowLinks,
}

impl Components {
    /// Builds the components of a run of `parties` secondaries. Refuses a privacy mechanism that cannot
    /// protect the run.
    pub(super) fn build(experiment: &Experiment, split: &Split, parties: usize) -> Result<Self, RunError> {
        let method = experiment.method.build(&())?;
        let plan = method.plan();
        let aggregator = experiment.aggregator.build(&())?;
        let linker = experiment.linker.build(&())?;
        let shape = RunShape {
            plan: &plan,
            linker: linker.as_ref(),
            aggregator: aggregator.as_ref(),
            split,
            parties,
        };
        let (privacy, releases) = protection(&experiment.common(), &shape)?;
        let planned = Releases { randomness: experiment.train.randomness, ..releases };
        let neighbours = (1..=parties)
            .map(|party| plan.neighbours.represented(party, linker.about().neighbours))
            .collect();
        Ok(Self { method, plan, linker, aggregator: aggregator.into(), privacy, planned, neighbours })
    }

    /// Makes the primary's model with initial weights.
    pub(super) fn model(
        &self,
        experiment: &Experiment,
        records: RecordShape,
        machine: &Machine,
    ) -> Result<Box<dyn Primary>, RunError> {
        let (plan, parties) = (&self.plan, self.neighbours.len());
        let model = self.method.primary(&PrimaryContext {
            device: &machine.device.clone().autodiff(),
            weights: stream(experiment.seed, 0, Purpose::Weights, 0),
            key_columns: records.key_columns,
            feature_columns: records.feature_columns,
            objective: records.objective,
            parties,
            positions: self.neighbours.iter().map(|&own| plan.positions(own)).max().unwrap_or(0),
            memory_width: self.aggregator.width(parties, plan.width),
            computation: experiment.train.computation(machine.on_host),
        })?;
        if let Some(averaged) = plan.averaged
            && model.learner().parameters().with_prefix(averaged.prefix).segments().is_empty()
        {
            let rule = format!("must be 0 for a model without parameters `{}`", averaged.prefix);
            return Err(
                Violation::new(experiment.method.path_of(averaged.setting), rule, averaged.every).into()
            );
        }
        Ok(model)
    }

    /// Releases of the whole run, if no party drops out.
    pub(super) fn planned(&self) -> &Releases {
        &self.planned
    }
}

impl PrimaryCore {
    /// Has every active party agree to the terms.
    pub(super) fn join(setup: CoreSetup<'_>) -> Result<Self, RunError> {
        let CoreSetup { experiment, components, schedule, mut federation, mut warnings, .. } = setup;
        let settings = experiment.common().to_toml();
        let active = federation.active();
        let terms = |index: usize| Terms {
            // Every message of a run is as old as this version.
            protocol: OLDEST_PROTOCOL,
            results: RESULTS_VERSION,
            settings: settings.clone(),
            settings_hash: fet_io::sha256(settings.as_bytes()),
            name: federation.name(index).to_string(),
            number: PartyIndex::new(index).number(),
            parties: federation.len(),
            rows: schedule.split().rows(),
            parts: setup.parts.clone(),
            standardise: setup.standardise,
        };
        let requests = active.iter().map(|&index| Request::Join(terms(index))).collect();
        let mut profiles: Vec<PartyProfile> = (0..federation.len())
            .map(|_| PartyProfile { standing: None, table: None, parameters: 0, width: None })
            .collect();
        for (&party, (sent, reply)) in active.iter().zip(federation.exchange_all(&active, requests)?) {
            let Reply::Joined(joined) = reply else { return Err(sent.unexpected(&reply).into()) };
            let protected = joined.lifetime.filter(|_| !components.privacy.is_identity());
            warnings.extend(protected.and_then(|standing| standing.warning(&sent.party)));
            profiles[party] = PartyProfile {
                standing: joined.lifetime,
                table: Some(joined.table),
                parameters: joined.parameters,
                width: None,
            };
        }
        Ok(Self {
            seed: experiment.seed,
            encodings: vec![None; federation.len()],
            device: setup.device,
            objective: setup.objective,
            class_names: setup.class_names,
            model: setup.model,
            schedule,
            releases: ReleaseCount::new(components.planned),
            components,
            federation,
            profiles,
            agreed: Vec::new(),
            warnings,
            phases: Phases::default(),
            protected_batches: 0,
            observer: None,
        })
    }

    /// Returns the state of each secondary's lifetime account when the party joined; `None` for a party without an account.
    pub(super) fn standings(&self) -> Vec<Option<LifetimeState>> {
        self.profiles.iter().map(|profile| profile.standing).collect()
    }

    /// Has all active secondaries agree on keys, if the aggregator sees only sums.
    pub(super) fn agree_on_keys(&mut self) -> Result<(), RunError> {
        if self.components.plan.secondaries && self.sums() {
            self.agreed = agree_on_keys(&mut self.federation)?;
        }
        Ok(())
    }

    /// Returns true if the aggregator sees only secure sums.
    fn sums(&self) -> bool {
        secure_sum_form(self.components.aggregator.as_ref()).is_some()
    }

    /// Returns the parties that take part in a round: the scheduled parties that are still active.
    pub(super) fn active_parties(&self, round: Round) -> Vec<usize> {
        let mut active = self.schedule.active(round);
        active.retain(|party| !self.federation.dropped().contains(party));
        active
    }

    /// Requests the active parties' representations of a batch and aggregates them.
    pub(super) fn memory(&mut self, batch: BatchRequest<'_>) -> Result<(Memory, Aggregation), RunError> {
        let BatchRequest { round, rows, active, links } = batch;
        let similarities = self.similarities(batch);
        let mut aggregation = Aggregation {
            parties: self.federation.len(),
            active: active.to_vec(),
            shapes: Vec::new(),
            similarities: similarities.clone(),
        };
        // The phases of evaluation are not timed separately.
        let (mut watch, mut encode, mut aggregate) = (Stopwatch::start(), 0.0, 0.0);
        let aggregator = Arc::clone(&self.components.aggregator);
        let tensor = match aggregator.role() {
            Role::Sum(role) => {
                let sum = self.sum_of_parts(role.form(), round, rows, &mut aggregation)?;
                watch.lap(&mut encode);
                role.mean(sum, &aggregation)
            }
            Role::Combine(role) => {
                let parts = self.parts(round, rows, active)?;
                aggregation.shapes = parts.iter().map(|part| part.dims()).collect();
                watch.lap(&mut encode);
                role.combine(parts, &aggregation)
            }
        };
        watch.lap(&mut aggregate);
        if round.is_training() {
            self.phases.encode += encode;
            self.phases.aggregate += aggregate;
        }
        let real = |&party: &usize| {
            let (real, all) = (links.available(party), self.components.neighbours[party]);
            let shown = self.schedule.shown(round, all);
            self.components
                .plan
                .positions(shown.map_or(real, |places| places.partition_point(|&place| place < real)))
        };
        let available = aggregation.active.iter().map(real).max().unwrap_or(0);
        Ok((Memory { tensor, available, similarities }, aggregation))
    }

    /// Returns the similarities of the neighbours that a batch sees, of each party that sends similarities.
    fn similarities(&self, batch: BatchRequest<'_>) -> Vec<Tensor<2>> {
        let BatchRequest { round, rows, active, links } = batch;
        let device = self.device.clone().without_autodiff();
        let seen = |&party: &usize| {
            let all = gather(links.similarities(party)?, rows, &device);
            let Some(places) = self.schedule.shown(round, self.components.neighbours[party]) else {
                return Some(all);
            };
            let places: Vec<i32> = places.into_iter().map(|place| place as i32).collect();
            Some(all.select(1, Tensor::<1, Int>::from_data(TensorData::from(places.as_slice()), &device)))
        };
        active.iter().filter_map(seen).collect()
    }

    /// Requests the parts of the active parties.
    fn parts(&mut self, round: Round, rows: &[usize], active: &[usize]) -> Result<Vec<Tensor<3>>, RunError> {
        let message = Forward { round, rows: short(rows), active: short(active), attempt: None };
        let requests = vec![Request::Forward(message); active.len()];
        // Even if one party refuses, the parts of the others have arrived and count.
        let answered = self.federation.exchange_all(active, requests);
        self.releases.requests += 1;
        self.note_release(round, active, active);
        let answered = answered?;
        let device = self.device.clone().without_autodiff();
        let mut blocks = Vec::with_capacity(active.len());
        for (&party, (sent, reply)) in active.iter().zip(answered) {
            let Reply::Representation(block) = reply else { return Err(sent.unexpected(&reply).into()) };
            blocks.push(checked(sent, block, self.part_shape(round, party, rows.len()))?);
        }
        self.show_parts(round, rows, active, || blocks.clone());
        let mut parts = Vec::with_capacity(active.len());
        for (&party, block) in active.iter().zip(blocks) {
            let shape = block.shape();
            self.profiles[party].width = Some(shape[2]);
            parts.push(Tensor::from_data(
                TensorData::new(block.into_values_by(fet_kernels::copy), shape),
                &device,
            ));
        }
        Ok(parts)
    }

    /// Returns the sum of the active parties' representations; the primary sees only this sum. A party that
    /// drops out is left out of this sum and of all later sums.
    fn sum_of_parts(
        &mut self,
        sum: SecureSum,
        round: Round,
        rows: &[usize],
        aggregation: &mut Aggregation,
    ) -> Result<Tensor<3>, RunError> {
        let of = aggregation.active.len();
        let &first =
            aggregation.active.first().ok_or(CollectError::TooFew { left: Vec::new(), of, needed: 2 })?;
        let shape = self.shape(round, first, rows.len());
        let (needed, before) = (self.fewest_in_sum(round), self.federation.dropped().len());
        let mut parts = RepresentationSum {
            federation: &mut self.federation,
            privacy: self.components.privacy.as_ref(),
            agreed: self.agreed.len(),
            requests: &mut self.releases.requests,
            round,
            rows: &short(rows),
            shape,
            sum,
        };
        let collected = collect(&aggregation.active, needed, sum.bits, &mut parts);
        if let Err(RunError::Sum(CollectError::TooFew { left, .. })) = &collected {
            self.federation.drop_out(missing(&aggregation.active, left));
        }
        let collected = collected?;
        let active = collected.attempt.active;
        self.note_release(round, &aggregation.active, &active);
        self.note_unmasking(round, collected.dropped_out, &collected.wrong);
        self.warn_of_smaller_sums(before);
        let left = active.len();
        let form = self.components.privacy.form(left, shape[1] * shape[2]);
        let units = secure_aggregation::units(sum, form, left)?;
        aggregation.shapes = vec![shape; left];
        aggregation.active = active;
        let device = self.device.clone().without_autodiff();
        let values = units.values(&collected.sum);
        self.show_parts(round, rows, &aggregation.active, || {
            Block::new(shape, values.clone()).into_iter().collect()
        });
        Ok(Tensor::from_data(TensorData::new(values, shape), &device))
    }

    /// Records the parties of `asked` that are not in `left` as dropped out, and counts the release by the
    /// number of parties that took part.
    pub(super) fn note_release(&mut self, round: Round, asked: &[usize], left: &[usize]) {
        self.federation.drop_out(missing(asked, left));
        if !matches!(round, Round::Average { .. }) {
            self.releases.charge(left.len(), 1);
        }
    }

    /// Returns the shape of a party's part for this number of rows.
    fn shape(&self, round: Round, party: usize, rows: usize) -> [usize; 3] {
        let Components { plan, neighbours, .. } = &self.components;
        let all = neighbours[party];
        let shown = self.schedule.shown(round, all).map_or(all, |places| places.len());
        [rows, plan.positions(shown), plan.width_in(round)]
    }

    /// Returns the shape of a part; the width is open if the party chooses it and has not sent a part yet.
    fn part_shape(&self, round: Round, party: usize, rows: usize) -> [Option<usize>; 3] {
        let [rows, positions, width] = self.shape(round, party, rows);
        let chosen = self.components.plan.own_width;
        [Some(rows), Some(positions), if chosen { self.profiles[party].width } else { Some(width) }]
    }

    /// Returns the current model's outputs for some rows; they do not depend on the other rows.
    pub(super) fn decode(
        &self,
        records: &PreparedParty,
        rows: &[usize],
        memory: Option<Memory>,
    ) -> Tensor<2> {
        self.decode_by(|model, batch, memory| model.predict(batch, memory), records, rows, memory)
    }

    /// Returns the outputs that the model's fit to the validation rows requires; they do not depend on the other
    /// rows.
    pub(super) fn decode_for_fit(
        &self,
        records: &PreparedParty,
        rows: &[usize],
        memory: Option<Memory>,
    ) -> Tensor<2> {
        self.decode_by(|model, batch, memory| model.predict_for_fit(batch, memory), records, rows, memory)
    }

    fn decode_by(
        &self,
        predict: fn(&dyn Primary, &PrimaryBatch, Option<Memory>) -> Tensor<2>,
        records: &PreparedParty,
        rows: &[usize],
        memory: Option<Memory>,
    ) -> Tensor<2> {
        let device = self.device.clone().without_autodiff();
        let memory = memory.map(|memory| Memory {
            tensor: fill(memory.tensor),
            similarities: memory.similarities.into_iter().map(fill).collect(),
            ..memory
        });
        let batch = unlabelled(records, &filled(rows), &device);
        let output = predict(self.model.as_ref(), &batch, memory);
        output.narrow(0, 0, rows.len())
    }

    /// Returns the current model's outputs for the new records that were linked last, from the parts of only
    /// these secondaries (from 0, ascending). Without secondaries, the model gets a memory of zeros, the sum
    /// over no party. `keep` receives the memory of each batch.
    pub(super) fn outputs(
        &mut self,
        new: &NewRecords,
        parties: &[usize],
        keep: &mut dyn FnMut(&[usize], &Memory),
    ) -> Result<Matrix<f32>, RunError> {
        let NewRecords { records, links } = new;
        let active = if parties.is_empty() { new.parties() } else { parties.to_vec() };
        self.decode_all(records, |this, batch, rows| {
            if active.is_empty() {
                return Ok(None);
            }
            let round = Round::Predict { batch: this.number_of(batch as u32) };
            let memory = this.memory(BatchRequest { round, rows, active: &active, links })?.0;
            keep(rows, &memory);
            let tensor = if parties.is_empty() { memory.tensor.zeros_like() } else { memory.tensor };
            Ok(Some(Memory { tensor, ..memory }))
        })
    }

    /// Returns the current model's outputs for records whose memories are known.
    pub(super) fn outputs_of_known(
        &mut self,
        records: &PreparedParty,
        known: &KnownMemories,
    ) -> Result<Matrix<f32>, RunError> {
        let device = self.device.clone().without_autodiff();
        self.decode_all(records, |_, _, rows| Ok(Some(known.memory(rows, &device))))
    }

    /// Returns the current model's outputs for records, with the memories that `memory` returns for each numbered batch.
    fn decode_all(
        &mut self,
        records: &PreparedParty,
        mut memory: impl FnMut(&mut Self, usize, &[usize]) -> Result<Option<Memory>, RunError>,
    ) -> Result<Matrix<f32>, RunError> {
        let all: Vec<usize> = (0..records.raw_keys.rows()).collect();
        let mut outputs = Vec::with_capacity(all.len() * self.objective.outputs);
        for (batch, rows) in all.chunks(self.prediction_batch_size()).enumerate() {
            let memory = memory(self, batch, rows)?;
            outputs.extend(host(self.decode(records, rows, memory)));
        }
        Ok(Matrix::new(self.objective.outputs, outputs))
    }

    /// Returns the number of new records in a batch. With a privacy mechanism, it is at most that of the run's releases.
    fn prediction_batch_size(&self) -> usize {
        let (size, privacy) = (self.schedule.evaluation_batch_size(), self.components.privacy.as_ref());
        if privacy.is_identity() { size } else { size.min(most_rows(privacy, self.components.planned())) }
    }

    /// Returns the number of a batch of new records. In secure sums and with noise, every batch of the session has another
    /// number.
    fn number_of(&mut self, batch: u32) -> u32 {
        if !self.sums() && self.components.privacy.is_identity() {
            return batch;
        }
        let number = self.protected_batches;
        // After 2^32 batches the parties refuse numbers that they have answered.
        self.protected_batches = number.wrapping_add(1);
        number
    }

    /// Returns the minimum number of parties for secure aggregation in a round.
    pub(super) fn fewest_in_sum(&self, round: Round) -> usize {
        let scheduled = self.schedule.active(round);
        let of = scheduled.iter().filter(|party| self.agreed.contains(party)).count();
        quorum(of, self.components.privacy.colluding())
    }

    /// Warns of the parties that dropped out after the first `before`, if sums without noise differ by their
    /// parts.
    fn warn_of_smaller_sums(&mut self, before: usize) {
        if !self.components.privacy.is_identity() {
            return;
        }
        for &party in &self.federation.dropped()[before..] {
            let name = self.federation.name(party);
            self.warnings.add_lasting(format!(
                "{} (\"{name}\") dropped out, and `privacy.kind` is \"none\": secure sums over \
                 the same rows with and without this party differ by its part, which the primary can \
                 compute",
                PartyIndex::new(party)
            ));
        }
    }

    /// Records the parties that dropped out while a sum was unmasked, and warns of the parties that sent invalid
    /// values.
    pub(super) fn note_unmasking(&mut self, round: Round, dropped_out: Vec<usize>, wrong: &[usize]) {
        self.federation.drop_out(dropped_out);
        for &party in wrong {
            let name = self.federation.name(party);
            self.warnings.add_lasting(format!(
                "{} (\"{name}\") sent an invalid mask or key share for the secure sum of {round}; \
                 the sum is correct without it",
                PartyIndex::new(party)
            ));
        }
    }

    /// Shows the observer what arrived for these rows: every party's part, or their sum. The parts are
    /// computed only if there is an observer.
    fn show_parts(&self, round: Round, rows: &[usize], active: &[usize], parts: impl FnOnce() -> Vec<Block>) {
        self.show(|observer| observer.received(round, rows, active, &parts()));
    }

    /// Shows the observer the model's outputs for rows of an evaluation.
    pub(super) fn show_outputs(&self, round: Round, rows: &[usize], outputs: &[f32]) {
        let width = self.objective.outputs;
        self.show(|observer| observer.predicted(round, rows, &Matrix::new(width, outputs.to_vec())));
    }

    fn show(&self, event: impl FnOnce(&mut dyn PrimaryObserver)) {
        if let Some(observer) = &self.observer {
            event(&mut *observer.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Returns rows of the primary's records, without labels.
pub(super) fn unlabelled(records: &PreparedParty, rows: &[usize], device: &Device) -> PrimaryBatch {
    PrimaryBatch {
        keys: gather(&records.scaled.keys, rows, device),
        features: gather(&records.scaled.features, rows, device),
        labels: Vec::new(),
        weights: Vec::new(),
    }
}

/// Returns the parties of `asked` that are not in `left`.
fn missing<'a>(asked: &'a [usize], left: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    asked.iter().copied().filter(|party| !left.contains(party))
}

/// Returns the block of a reply, if it has the requested shape.
fn checked(sent: SentRequest, block: Block, expected: [Option<usize>; 3]) -> Result<Block, PartyError> {
    let shape = block.shape();
    if !shape.iter().zip(expected).all(|(&found, expected)| expected.is_none_or(|expected| expected == found))
    {
        let name = |size: Option<usize>| size.map_or_else(|| "any".to_string(), |size| size.to_string());
        let rule = format!("must have the shape [{}]", expected.map(name).join(", "));
        return Err(sent.wrong("shape", rule, format!("{shape:?}")));
    }
    Ok(block)
}
