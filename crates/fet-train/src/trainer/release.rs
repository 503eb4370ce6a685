//! What the primary gets from the secondaries: the memory of a batch, and averages of positional encodings.

use burn::tensor::{Int, Tensor, TensorData};
use fet_privacy::secure_sum::{Attempt, collect};

use super::phases::Watch;
use super::{RunError, Trainer};
use crate::model::Embedding;
use crate::protocol::{Forward, Hidden, Reply, Request};
use crate::secondary::gather;
use crate::secret_sum;
use fet_core::aggregator::{Aggregation, Role, SecureSum};
use fet_core::data::Matrix;
use fet_core::method::Memory;
use fet_core::parameters::Parameters;

impl Trainer {
    /// The memory of a batch, and who made it.
    pub(super) fn memory(
        &mut self,
        round: u64,
        rows: &[usize],
        active: &[usize],
        training: bool,
    ) -> Result<Option<(Memory, Aggregation)>, RunError> {
        if self.federation.is_empty() {
            return Ok(None);
        }
        if self.privacy.freezes_secondaries() {
            return self.released_memory(rows).map(Some);
        }
        self.ask(round, rows, active, training).map(Some)
    }

    /// The memory of a batch where every row is released once: all rows are, when the first are asked for.
    fn released_memory(&mut self, rows: &[usize]) -> Result<(Memory, Aggregation), RunError> {
        let everyone: Vec<usize> = (0..self.federation.len()).collect();
        let all = match self.released.take() {
            Some(all) => all,
            None => {
                let all_rows: Vec<usize> = (0..self.labels.len()).collect();
                self.ask(u64::MAX, &all_rows, &everyone, false)?.0
            }
        };
        let indices: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let indices = Tensor::<1, Int>::from_data(TensorData::from(indices.as_slice()), &all.tensor.device());
        let tensor = all.tensor.clone().select(0, indices);
        let [_, positions, width] = tensor.dims();
        let memory = Memory { tensor, available: all.available, similarities: Vec::new() };
        self.released = Some(all);
        let shapes = vec![[rows.len(), positions, width]; everyone.len()];
        let round =
            Aggregation { parties: everyone.len(), active: everyone, shapes, similarities: Vec::new() };
        Ok((memory, round))
    }

    /// Asks the active parties for their representations and aggregates them.
    fn ask(
        &mut self,
        round: u64,
        rows: &[usize],
        active: &[usize],
        training: bool,
    ) -> Result<(Memory, Aggregation), RunError> {
        let device = self.device.clone().without_autodiff();
        let shared = |&party: &usize| self.similarities.get(party).map(|all| gather(all, rows, &device));
        let similarities: Vec<_> = active.iter().filter_map(shared).collect();
        let mut aggregation = Aggregation {
            parties: self.federation.len(),
            active: active.to_vec(),
            shapes: Vec::new(),
            similarities: similarities.clone(),
        };
        // Evaluation is timed as a whole.
        let (mut watch, mut encode, mut aggregate) = (Watch::start(), 0.0, 0.0);
        let aggregator = std::sync::Arc::clone(&self.aggregator);
        let tensor = match aggregator.role() {
            Role::Sum(hidden) => {
                let sum = self.secret_sum(hidden.form(), (round, rows, training), &mut aggregation)?;
                watch.lap(&mut encode);
                hidden.mean(sum, &aggregation)
            }
            Role::Combine(open) => {
                let parts = self.parts(round, rows, active, training)?;
                aggregation.shapes = parts.iter().map(|part| part.dims()).collect();
                watch.lap(&mut encode);
                open.combine(parts, &aggregation)
            }
        };
        watch.lap(&mut aggregate);
        if training {
            self.phases.encode += encode;
            self.phases.aggregate += aggregate;
        }
        let available = aggregation.active.iter().map(|&party| self.available[party]).max().unwrap_or(0);
        Ok((Memory { tensor, available, similarities }, aggregation))
    }

    /// The sum of the active parties' representations, of which nothing else is seen. Who vanishes is left out of
    /// this sum and all that follow.
    fn secret_sum(
        &mut self,
        sum: SecureSum,
        (round, rows, training): (u64, &[usize], bool),
        aggregation: &mut Aggregation,
    ) -> Result<Tensor<3>, RunError> {
        let mut shape = [0; 3];
        let collected = collect(&aggregation.active, sum.bits, |attempt: &Attempt| {
            let message = Forward {
                round,
                rows: rows.to_vec(),
                active: attempt.active.len(),
                training,
                hidden: Some(Hidden { sum, attempt: attempt.clone(), round }),
            };
            let requests = vec![Request::Forward(message); attempt.active.len()];
            let replies = self.federation.exchange(&attempt.active, requests)?;
            self.progress.releases += 1;
            let words = replies.into_iter().map(|reply| match reply {
                Reply::Masked(message) => {
                    shape = message.shape;
                    Some(message.words)
                }
                Reply::Gone => None,
                other => unreachable!("a party answers Forward with its masked share, not {other:?}"),
            });
            Ok::<_, RunError>(words.collect())
        })?;
        let active = collected.attempt.active;
        self.gone.extend(aggregation.active.iter().filter(|party| !active.contains(party)));
        let fewer = |expected: usize| {
            if collected.attempt.number > 0 { expected.min(active.len()) } else { expected }
        };
        self.schedule.train_active = fewer(self.schedule.train_active);
        self.schedule.active = fewer(self.schedule.active);
        let units =
            secret_sum::units(sum, self.privacy.form(active.len(), shape[1] * shape[2]), active.len())?;
        aggregation.shapes = vec![shape; active.len()];
        aggregation.active = active;
        let device = self.device.clone().without_autodiff();
        Ok(Tensor::from_data(TensorData::new(units.values(&collected.sum), shape), &device))
    }

    /// What the primary gets to see of these rows at evaluation, before it makes a memory of it: the sum where the parts
    /// are hidden in it, the memory where rows are released once, else every part. It is a release like any other.
    pub fn seen(&mut self, rows: &[usize]) -> Result<Vec<Tensor<3>>, RunError> {
        let everyone: Vec<usize> =
            (0..self.federation.len()).filter(|party| !self.gone.contains(party)).collect();
        if self.privacy.freezes_secondaries() {
            return Ok(vec![self.released_memory(rows)?.0.tensor]);
        }
        let round = u64::MAX - self.progress.releases;
        if let Some(sum) = self.secure {
            let parties = self.federation.len();
            let mut aggregation =
                Aggregation { parties, active: everyone, shapes: Vec::new(), similarities: Vec::new() };
            return Ok(vec![self.secret_sum(sum, (round, rows, false), &mut aggregation)?]);
        }
        self.parts(round, rows, &everyone, false)
    }

    /// The parts themselves.
    fn parts(
        &mut self,
        round: u64,
        rows: &[usize],
        active: &[usize],
        training: bool,
    ) -> Result<Vec<Tensor<3>>, RunError> {
        let message = Forward { round, rows: rows.to_vec(), active: active.len(), training, hidden: None };
        let replies = self.federation.exchange(active, vec![Request::Forward(message); active.len()])?;
        self.progress.releases += 1;
        let parts = active.iter().zip(replies).map(|(&party, reply)| match reply {
            Reply::Representation(message) => Ok(message.tensor),
            Reply::Gone => Err(RunError::Gone { party: party + 1 }),
            other => unreachable!("a party answers Forward with a representation, not {other:?}"),
        });
        parts.collect()
    }

    /// The primary's own columns, keys and features, as its model sees them.
    pub fn own_columns(&self, rows: &[usize]) -> Matrix<f32> {
        let own = &self.records.scaled;
        let values: Vec<f32> =
            rows.iter().flat_map(|&row| [own.keys.row(row), own.features.row(row)].concat()).collect();
        Matrix::new(own.keys.columns() + own.features.columns(), values)
    }

    /// Averages the positional encodings of all parties, the primary's too (paper, 4.2). Optimisers keep
    /// their moments.
    pub(super) fn average_encodings(&mut self, epoch: usize) -> Result<(), RunError> {
        let own = self.primary.learner().parameters().with_prefix(Embedding::POSITION);
        let (sum, others) = match self.secure {
            Some(sum) => self.secret_sum_of_encodings(sum, epoch)?,
            None => {
                let mut sum = vec![0.0; own.values().len()];
                for reply in self.federation.broadcast(&Request::ShareEncoding(None))? {
                    match reply {
                        Reply::Encoding(encoding) => add(&mut sum, encoding.values()),
                        other => {
                            unreachable!("a party answers ShareEncoding with an encoding, not {other:?}")
                        }
                    }
                }
                (sum, self.federation.len())
            }
        };
        let average = mean_with(own, sum, others);
        self.primary.learner_mut().load(&average)?;
        self.federation.broadcast(&Request::LoadEncoding(average))?;
        Ok(())
    }

    fn secret_sum_of_encodings(
        &mut self,
        sum: SecureSum,
        epoch: usize,
    ) -> Result<(Vec<f64>, usize), RunError> {
        let everyone: Vec<usize> =
            (0..self.federation.len()).filter(|party| !self.gone.contains(party)).collect();
        let collected = collect(&everyone, u64::BITS, |attempt: &Attempt| {
            let hidden = Hidden { sum, attempt: attempt.clone(), round: epoch as u64 };
            let requests = vec![Request::ShareEncoding(Some(hidden)); attempt.active.len()];
            let replies = self.federation.exchange(&attempt.active, requests)?;
            let words = replies.into_iter().map(|reply| match reply {
                Reply::MaskedEncoding(words) => Some(words),
                Reply::Gone => None,
                other => unreachable!("a party answers ShareEncoding with its masked share, not {other:?}"),
            });
            Ok::<_, RunError>(words.collect())
        })?;
        let active = collected.attempt.active.len();
        let units = secret_sum::parameters(active)?;
        let values = collected.sum.iter().map(|word| units.value(*word as i64));
        Ok((values.collect(), active))
    }
}

fn add(sum: &mut [f64], values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
}

/// The mean of `own` parameters and of `others` of which the sum is known.
fn mean_with(mut own: Parameters, mut sum: Vec<f64>, others: usize) -> Parameters {
    add(&mut sum, own.values());
    let (_, values) = own.split_mut();
    values.iter_mut().zip(sum).for_each(|(value, sum)| *value = (sum / (others + 1) as f64) as f32);
    own
}
