//! Messages from the secondaries to the primary: the memory of a batch, and averages of parameters.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use fet_core::aggregator::{Aggregation, Role, SecureSum};
use fet_core::data::Matrix;
use fet_core::message::{Block, Forward, LoadParameters, Reply, Request, Round, ShareParameters};
use fet_core::method::Memory;
use fet_core::parameters::{Parameters, host};
use fet_core::privacy::Tally;
use fet_privacy::secure_sum::{CollectError, collect};

use super::phases::Watch;
use super::sums::{Parts, SharedParameters, short};
use super::{RunError, Trainer};
use crate::federation::{Asked, PartyError};
use crate::gather::gather;
use crate::secret_sum;

/// Maximum number of a release's values in a checkpoint, which is written after each epoch: 256 MiB.
const MOST_KEPT: usize = 1 << 26;

impl Trainer {
    /// Returns the memory of a batch, and the parties that contributed to it.
    pub(super) fn memory(
        &mut self,
        round: Round,
        rows: &[usize],
        active: &[usize],
    ) -> Result<Option<(Memory, Aggregation)>, RunError> {
        if self.federation.is_empty() {
            return Ok(None);
        }
        if self.privacy.freezes_secondaries() {
            return self.released_memory(rows).map(Some);
        }
        self.ask(round, rows, active).map(Some)
    }

    /// Returns the memory of a batch if every row is released once: the first call releases all rows, batch
    /// by batch.
    fn released_memory(&mut self, rows: &[usize]) -> Result<(Memory, Aggregation), RunError> {
        let all = match self.released.take() {
            Some(all) => all,
            None => self.release_once()?,
        };
        let indices: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let indices = Tensor::<1, Int>::from_data(TensorData::from(indices.as_slice()), &all.tensor.device());
        let tensor = all.tensor.clone().select(0, indices);
        let [_, positions, width] = tensor.dims();
        let memory = Memory { tensor, available: all.available, similarities: Vec::new() };
        self.released = Some(all);
        let active = self.here();
        let shapes = vec![[rows.len(), positions, width]; active.len()];
        let parties = self.federation.len();
        Ok((memory, Aggregation { parties, active, shapes, similarities: Vec::new() }))
    }

    /// Releases every row, batch by batch. A resumed run requests again the batches that it had received.
    /// From the same parties it gets the same values, which count once; if a party dropped out in between,
    /// the releases are another pass.
    fn release_once(&mut self) -> Result<Memory, RunError> {
        let again = self.progress.released > 0;
        let here = self.here().len();
        let same = Tally::of_all(&self.progress.tallies).iter().all(|(active, _)| active == here);
        let tallies = self.progress.tallies.clone();
        let traffic = self.federation.traffic_by_party().to_vec();
        let mut portions = Vec::new();
        let mut available = 0;
        for (round, rows) in self.schedule.portions() {
            let here = self.here();
            let (memory, _) = self.ask(round, &rows, &here)?;
            available = memory.available.max(available);
            portions.push(memory.tensor);
        }
        self.progress.released = 1;
        if again && same && self.here().len() == here {
            self.federation.restore_traffic(traffic);
            self.progress.tallies = tallies;
        }
        Ok(Memory { tensor: Tensor::cat(portions, 0), available, similarities: Vec::new() })
    }

    /// Returns the release of all rows, if each row is released once: its shape, its values and the number of
    /// real neighbours.
    pub(crate) fn kept_release(&self) -> Option<([usize; 3], Vec<f32>, usize)> {
        let Memory { tensor, available, .. } = self.released.as_ref()?;
        let shape = tensor.dims();
        (shape.iter().product::<usize>() <= MOST_KEPT).then(|| (shape, host(tensor.clone()), *available))
    }

    /// Continues with the release of an earlier session, so that it is not requested again.
    pub(crate) fn keep_release(&mut self, shape: [usize; 3], values: Vec<f32>, available: usize) {
        let device = self.device.clone().without_autodiff();
        let tensor = Tensor::from_data(TensorData::new(values, shape), &device);
        self.released = Some(Memory { tensor, available, similarities: Vec::new() });
    }

    /// Records the parties that dropped out in a round, and counts the release by the number of parties that
    /// took part.
    fn note(&mut self, round: Round, asked: &[usize], left: &[usize]) {
        self.progress.gone.extend(asked.iter().filter(|party| !left.contains(party)));
        if !matches!(round, Round::Average { .. }) {
            self.charge(left.len(), 1);
        }
    }

    /// Requests the active parties' representations and aggregates them.
    fn ask(
        &mut self,
        round: Round,
        rows: &[usize],
        active: &[usize],
    ) -> Result<(Memory, Aggregation), RunError> {
        let device = self.device.clone().without_autodiff();
        let shared = |&party: &usize| {
            let all = gather(&self.similarities[party].as_ref()?.values, rows, &device);
            let Some(places) = self.schedule.shown(round, self.neighbours[party]) else { return Some(all) };
            let places: Vec<i32> = places.into_iter().map(|place| place as i32).collect();
            Some(all.select(1, Tensor::<1, Int>::from_data(TensorData::from(places.as_slice()), &device)))
        };
        let similarities: Vec<_> = active.iter().filter_map(shared).collect();
        self.ask_with(round, rows, active, similarities)
    }

    /// Requests the active parties' representations and aggregates them, with the given similarities of their
    /// neighbours to these rows.
    pub(super) fn ask_with(
        &mut self,
        round: Round,
        rows: &[usize],
        active: &[usize],
        similarities: Vec<Tensor<2>>,
    ) -> Result<(Memory, Aggregation), RunError> {
        let mut aggregation = Aggregation {
            parties: self.federation.len(),
            active: active.to_vec(),
            shapes: Vec::new(),
            similarities: similarities.clone(),
        };
        // The phases of evaluation are not timed separately.
        let (mut watch, mut encode, mut aggregate) = (Watch::start(), 0.0, 0.0);
        let aggregator = Arc::clone(&self.aggregator);
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
        let real = |&party: &usize| self.plan.positions(self.real(round, party));
        let available = aggregation.active.iter().map(real).max().unwrap_or(0);
        Ok((Memory { tensor, available, similarities }, aggregation))
    }

    /// Returns the number of real neighbours that a party represents in a round.
    fn real(&self, round: Round, party: usize) -> usize {
        let real = self.available[party];
        match self.schedule.shown(round, self.neighbours[party]) {
            Some(places) => places.partition_point(|&place| place < real),
            None => real,
        }
    }

    /// Returns the shape of a party's part for this number of rows.
    fn shape(&self, round: Round, party: usize, rows: usize) -> [usize; 3] {
        let all = self.neighbours[party];
        let shown = self.schedule.shown(round, all).map_or(all, |places| places.len());
        [rows, self.plan.positions(shown), self.plan.width]
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
        let (needed, before) = (self.fewest(round), self.progress.gone.len());
        let mut parts = Parts { trainer: self, round, rows: &short(rows), shape, sum };
        let collected = collect(&aggregation.active, needed, sum.bits, &mut parts);
        if let Err(RunError::Sum(CollectError::TooFew { left, .. })) = &collected {
            self.progress.gone.extend(aggregation.active.iter().filter(|party| !left.contains(party)));
        }
        let collected = collected?;
        let active = collected.attempt.active;
        self.note(round, &aggregation.active, &active);
        self.note_opening(round, collected.lost, &collected.wrong);
        self.note_smaller_sums(before);
        let left = active.len();
        let units = secret_sum::units(sum, self.privacy.form(left, shape[1] * shape[2]), left)?;
        aggregation.shapes = vec![shape; left];
        aggregation.active = active;
        let device = self.device.clone().without_autodiff();
        let values = units.values(&collected.sum);
        self.show_parts(round, rows, &aggregation.active, || {
            Block::new(shape, values.clone()).into_iter().collect()
        });
        Ok(Tensor::from_data(TensorData::new(values, shape), &device))
    }

    /// Returns the primary's view of these rows at evaluation, before aggregation: the sum if it hides the
    /// parts, the memory if rows are released once, otherwise every part. It counts as a release.
    pub fn seen(&mut self, rows: &[usize]) -> Result<Vec<Tensor<3>>, RunError> {
        if self.privacy.freezes_secondaries() {
            return Ok(vec![self.released_memory(rows)?.0.tensor]);
        }
        let (round, here) = (Round::Probe { batch: self.probes }, self.here());
        self.probes += 1;
        let aggregator = Arc::clone(&self.aggregator);
        match aggregator.role() {
            Role::Combine(_) => self.parts(round, rows, &here),
            Role::Sum(role) => {
                let parties = self.federation.len();
                let mut aggregation =
                    Aggregation { parties, active: here, shapes: Vec::new(), similarities: Vec::new() };
                Ok(vec![self.sum_of_parts(role.form(), round, rows, &mut aggregation)?])
            }
        }
    }

    /// Requests the parts of the active parties.
    fn parts(&mut self, round: Round, rows: &[usize], active: &[usize]) -> Result<Vec<Tensor<3>>, RunError> {
        let message = Forward { round, rows: short(rows), active: short(active), attempt: None };
        let requests = vec![Request::Forward(message); active.len()];
        // Even if one party refuses, the parts of the others have arrived and count.
        let answered = self.federation.exchange_all(active, requests);
        self.progress.released += 1;
        self.note(round, active, active);
        let answered = answered?;
        let device = self.device.clone().without_autodiff();
        let mut blocks = Vec::with_capacity(active.len());
        for (&party, (asked, reply)) in active.iter().zip(answered) {
            let Reply::Representation(block) = reply else { return Err(asked.unexpected(&reply).into()) };
            blocks.push(checked(asked, block, self.part_shape(round, party, rows.len()))?);
        }
        self.show_parts(round, rows, active, || blocks.clone());
        let mut parts = Vec::with_capacity(active.len());
        for (&party, block) in active.iter().zip(blocks) {
            let shape = block.shape();
            self.widths[party] = Some(shape[2]);
            parts.push(Tensor::from_data(
                TensorData::new(block.into_values_by(fet_kernels::copy), shape),
                &device,
            ));
        }
        Ok(parts)
    }

    /// Returns the shape of a part; the width is open if the party chooses it and has not sent a part yet.
    fn part_shape(&self, round: Round, party: usize, rows: usize) -> [Option<usize>; 3] {
        let [rows, positions, width] = self.shape(round, party, rows);
        [Some(rows), Some(positions), if self.plan.own_width { self.widths[party] } else { Some(width) }]
    }

    /// Returns the primary's own columns, keys and features, as its model sees them.
    pub fn own_columns(&self, rows: &[usize]) -> Matrix<f32> {
        let own = &self.records.scaled;
        let values: Vec<f32> =
            rows.iter().flat_map(|&row| [own.keys.row(row), own.features.row(row)].concat()).collect();
        Matrix::new(own.keys.columns() + own.features.columns(), values)
    }

    /// Averages the parameters whose names begin with `prefix` over all parties and the primary: the
    /// positional encodings of the Federated Transformer (paper, 4.2). Optimisers keep their moments.
    pub(super) fn average_parameters(&mut self, prefix: &str, epoch: usize) -> Result<(), RunError> {
        let own = self.primary.learner().parameters().with_prefix(prefix);
        let round = Round::Average { epoch: epoch as u32 };
        let (sum, others) = match self.aggregator.role() {
            Role::Sum(role) => {
                let sum = role.form();
                self.secret_sum_of_parameters(sum, round, own.values().len())?
            }
            Role::Combine(_) => self.sum_of_parameters(round, &own)?,
        };
        let average = mean_with(own, sum, others);
        self.primary.learner_mut().load(&average)?;
        let here = self.here();
        let request = Request::LoadParameters(LoadParameters { round, parameters: average });
        Ok(self.federation.command(&here, vec![request; here.len()])?)
    }

    fn sum_of_parameters(&mut self, round: Round, own: &Parameters) -> Result<(Vec<f64>, usize), RunError> {
        let here = self.here();
        let message = ShareParameters { round, active: short(&here), attempt: None };
        let requests = vec![Request::ShareParameters(message); here.len()];
        let mut sum = vec![0.0; own.values().len()];
        for (asked, reply) in self.federation.exchange_all(&here, requests)? {
            let Reply::Parameters(parameters) = reply else { return Err(asked.unexpected(&reply).into()) };
            let value = format!("{parameters:?}");
            if parameters.segments() != own.segments() {
                return Err(asked
                    .wrong("parameters", format!("must be {own:?}, like the primary's"), value)
                    .into());
            }
            if !parameters.values().iter().all(|value| value.is_finite()) {
                return Err(asked.wrong("parameters", "must be finite", value).into());
            }
            add(&mut sum, parameters.values());
        }
        Ok((sum, here.len()))
    }

    fn secret_sum_of_parameters(
        &mut self,
        sum: SecureSum,
        round: Round,
        length: usize,
    ) -> Result<(Vec<f64>, usize), RunError> {
        let here = self.here();
        let (degree, needed) = (sum.degree, self.fewest(round));
        let mut parts = SharedParameters { trainer: self, round, length, degree };
        let collected = collect(&here, needed, u64::BITS, &mut parts)?;
        self.note(round, &here, &collected.attempt.active);
        self.note_opening(round, collected.lost, &collected.wrong);
        let active = collected.attempt.active.len();
        let units = secret_sum::parameters(active)?;
        let values = collected.sum.iter().map(|word| units.value(*word as i64));
        Ok((values.collect(), active))
    }
}

/// Returns the block of a reply, if it has the requested shape.
fn checked(asked: Asked, block: Block, expected: [Option<usize>; 3]) -> Result<Block, PartyError> {
    let shape = block.shape();
    if !shape.iter().zip(expected).all(|(&found, expected)| expected.is_none_or(|expected| expected == found))
    {
        let name = |size: Option<usize>| size.map_or_else(|| "any".to_string(), |size| size.to_string());
        let rule = format!("must have the shape [{}]", expected.map(name).join(", "));
        return Err(asked.wrong("shape", rule, format!("{shape:?}")));
    }
    Ok(block)
}

fn add(sum: &mut [f64], values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
}

/// Returns the mean of `own` parameters and those of `others` parties, given the sum of the latter.
fn mean_with(mut own: Parameters, mut sum: Vec<f64>, others: usize) -> Parameters {
    add(&mut sum, own.values());
    let (_, values) = own.split_mut();
    values.iter_mut().zip(sum).for_each(|(value, sum)| *value = (sum / (others + 1) as f64) as f32);
    own
}
