//! A party's training step: encodes and clips the neighbours of a batch, and runs the backward pass.

use burn::tensor::{Int, Tensor, TensorData};
use fet_core::data::Matrix;
use fet_core::encoder::{Listed, NeighbourBatch};
use fet_core::message::{Backward, Forward, Reply, Round};
use fet_core::model::Pass;
use fet_core::parameters::host;
use fet_core::privacy::unbounded_blocks;
use fet_core::rng::{Purpose, stream};

use super::received;
use super::request_validator::Asked;
use super::selection::{Places, select};
use super::{Bounded, Chosen, Of, Pending, SecondaryError, Session};
use crate::gather::gather;
use crate::lanes::filled;

/// Representations and their shape, [B, K, H].
type Encoded = (Vec<f32>, [usize; 3]);

impl Session {
    /// Answers a request for representations, if the request validator allows it.
    pub(super) fn forward(&mut self, message: Forward) -> Result<Reply, SecondaryError> {
        if of(message.round) == Of::New {
            return self.represent_new(&message);
        }
        let asked = Asked::Forward(message);
        if let Some(reply) = self.validator.repeated(&asked) {
            return Ok(reply);
        }
        let Asked::Forward(message) = &asked else { unreachable!("it was made so above") };
        let rows = self.rows(message)?;
        self.check_active(message.round, &message.active, message.attempt)?;
        self.validator.admit(message.round, Some(&rows), &message.active, message.attempt)?;
        let reply = self.represent_rows(message)?;
        self.validator.answered(asked, &reply);
        Ok(reply)
    }

    pub(super) fn represent_rows(&mut self, message: &Forward) -> Result<Reply, SecondaryError> {
        let rows = self.rows(message)?;
        self.check_active(message.round, &message.active, message.attempt)?;
        self.links_of(of(message.round))?;
        let training = message.round.is_training();
        // Protected representations are computed only for the requested rows.
        let alone = training || !self.privacy.is_identity();
        if !alone && let Some((values, shape)) = self.encoded_once(message, &rows)? {
            return self.release(values, shape, message);
        }
        let batch = if alone { self.batch(message, &rows)? } else { self.batch(message, &filled(&rows))? };
        let available = batch.available;
        let mut pass = match message.round {
            Round::Train { step } => {
                Pass::training(stream(self.settings.seed, self.number, Purpose::Dropout, step))
            }
            _ => Pass::evaluation(),
        };
        if training {
            // The encoder discards the last pass. If this pass is refused below, no pass can be learned from.
            self.pending = None;
        }
        let encoded = self.encoder.forward(&batch, &mut pass, training);
        let encoded = self.blank_padding(encoded, &batch);
        let encoded = if alone { encoded } else { encoded.narrow(0, 0, rows.len()) };
        let (shape, active) = (encoded.dims(), message.active.len());
        if !self.privacy.is_identity() {
            self.count_unbounded(&encoded);
        }
        let mut graph = None;
        let bounded = if self.privacy.is_identity() {
            encoded
        } else if training {
            // The gradient passes through the clipping; noise and rounding do not change it.
            let leaf = encoded.autodiff().require_grad();
            let bounded = self.privacy.bound(leaf.clone(), active);
            graph = Some(Bounded { encoded: leaf, bounded: bounded.clone() });
            bounded.without_autodiff()
        } else {
            self.privacy.bound(encoded, active)
        };
        let reply = self.release(host(bounded), shape, message)?;
        if training {
            let asked = received::forward(message);
            self.pending = Some(Pending { round: message.round, asked, shape, available, graph });
        }
        Ok(reply)
    }

    /// Returns the model's representations of the rows of an evaluation, if several of these rows have the
    /// same neighbours.
    fn encoded_once(&mut self, message: &Forward, rows: &[usize]) -> Result<Option<Encoded>, SecondaryError> {
        let Some(links) = self.links.as_ref().filter(|_| self.queries.is_none()) else { return Ok(None) };
        let Some(plan) = self.evaluated.plan(message.round, rows, links, self.validator.schedule()) else {
            return Ok(None);
        };
        let mut fresh = Vec::new();
        if !plan.fresh.is_empty() {
            let batch = self.batch(message, &filled(&plan.fresh))?;
            let encoded = self.encoder.forward(&batch, &mut Pass::evaluation(), false);
            let encoded = self.blank_padding(encoded, &batch);
            let [_, positions, width] = encoded.dims();
            self.evaluated.set_block([positions, width]);
            fresh = host(encoded);
            fresh.truncate(plan.fresh.len() * positions * width);
        }
        let [positions, width] = self.evaluated.block();
        Ok(Some((self.evaluated.complete(&plan, fresh), [rows.len(), positions, width])))
    }

    /// Returns the model's representations of these rows' neighbours at evaluation, before clipping, noise
    /// and mask: [n, K·H].
    pub(super) fn encoded(&mut self, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
        let (round, named) = (Round::Probe { batch: u32::MAX }, rows.iter().map(|&row| row as u32).collect());
        let message = Forward { round, rows: named, active: Vec::new(), attempt: None };
        let batch = self.batch(&message, rows)?;
        let encoded = self.encoder.forward(&batch, &mut Pass::evaluation(), false);
        let encoded = self.blank_padding(encoded, &batch);
        let [_, positions, width] = encoded.dims();
        Ok(Matrix::new(positions * width, host(encoded)))
    }

    /// Returns the scaled features and keys of the record that is shown first for each of these rows. If no
    /// record is shown for a row, the most similar record is used.
    pub(super) fn nearest_records(&self, rows: &[usize]) -> Result<[Matrix<f32>; 2], SecondaryError> {
        let links = self.links.as_ref().ok_or(SecondaryError::NotLinked)?;
        let shown = self.shown(rows)?.into_iter().zip(rows);
        let nearest: Vec<usize> =
            shown.map(|(shown, &row)| shown.first().copied().unwrap_or(links.row(row)[0] as usize)).collect();
        let scaled = &self.records.scaled;
        Ok([scaled.features.select_rows(&nearest), scaled.keys.select_rows(&nearest)])
    }

    /// Returns the records that are shown for each of these rows. If records are chosen again for each
    /// release, the result is the choice from the whole table.
    pub(super) fn shown(&self, rows: &[usize]) -> Result<Vec<Vec<usize>>, SecondaryError> {
        let links = self.links.as_ref().ok_or(SecondaryError::NotLinked)?;
        let shown = |row: usize| -> Vec<usize> {
            match &self.chosen {
                Some(Chosen { places, .. }) => {
                    places[row].iter().flatten().map(|&(record, _)| record as usize).collect()
                }
                None => links.row(row)[..links.available()].iter().map(|&record| record as usize).collect(),
            }
        };
        Ok(rows.iter().map(|&row| shown(row)).collect())
    }

    /// Counts the blocks that clipping sets to zero because they hold NaN or infinity. The party's operator
    /// is warned at the first such block, and gets the total at the end.
    fn count_unbounded(&mut self, encoded: &Tensor<3>) {
        let found = host(unbounded_blocks(encoded).float()).iter().filter(|&&one| one > 0.0).count();
        if found > 0 && self.blanked == 0 {
            (self.tell)(format!(
                "{found} of {} blocks hold NaN or infinity and are sent as zeros: the model diverged, or a record holds \
                 values that it cannot represent",
                encoded.dims()[0]
            ));
        }
        self.blanked += found as u64;
    }

    pub(super) fn learn(&mut self, message: Backward) -> Result<(), SecondaryError> {
        let nothing = || SecondaryError::NothingToLearn { round: message.round };
        let pending = self.pending.take_if(|pending| pending.round == message.round);
        let Pending { asked, shape, available, graph, .. } = pending.ok_or_else(nothing)?;
        if message.gradient.shape() != shape {
            let rule = format!("must have the shape of the representation, {shape:?}");
            let value = format!("{:?}", message.gradient.shape());
            return Err(SecondaryError::Message { field: "gradient", rule, value });
        }
        if !message.gradient.is_finite() {
            let rule = "must be finite".to_string();
            return Err(SecondaryError::Message { field: "gradient", rule, value: "not".into() });
        }
        if !(message.learning_rate.is_finite() && message.learning_rate >= 0.0) {
            let rule = "must be a number of at least 0".to_string();
            let value = message.learning_rate.to_string();
            return Err(SecondaryError::Message { field: "learning_rate", rule, value });
        }
        if !self.privacy.is_identity() {
            self.received.gradient(&asked, &message);
        }
        let device = self.device.clone().without_autodiff();
        let gradient = message.gradient.into_values_by(fet_kernels::copy);
        let mut gradient = Tensor::from_data(TensorData::new(gradient, shape), &device);
        if let Some(Bounded { encoded, bounded }) = graph {
            let mut gradients = (bounded * gradient.autodiff()).sum().backward();
            gradient = encoded.grad_remove(&mut gradients).ok_or_else(nothing)?;
        }
        let [rows, neighbours, width] = shape;
        if available < neighbours && !self.pooled {
            let tail = [0..rows, available..neighbours, 0..width];
            gradient = gradient.slice_fill(tail, 0.0);
        }
        self.encoder.backward(gradient);
        self.encoder.learner_mut().step(message.learning_rate);
        Ok(())
    }

    /// Returns the rows of a message as indices, and checks that they are rows of the primary.
    fn rows(&self, message: &Forward) -> Result<Vec<usize>, SecondaryError> {
        let rows: Vec<usize> = message.rows.iter().map(|&row| row as usize).collect();
        let all = match of(message.round) {
            Of::Run => self.rows,
            of => self.links_of(of)?.rows(),
        };
        match rows.iter().find(|&&row| row >= all) {
            _ if rows.is_empty() || rows.len() > all => Err(SecondaryError::Message {
                field: "rows",
                rule: format!("must name 1 to {all} rows"),
                value: format!("{} of them", rows.len()),
            }),
            None => Ok(rows),
            Some(row) => Err(SecondaryError::Message {
                field: "rows",
                rule: format!("must be below {all}, the number of the primary's records"),
                value: row.to_string(),
            }),
        }
    }

    /// Returns each distinct neighbour of the batch once, and the neighbour of each place. `rows` are those
    /// of the message, or more to fill a batch.
    fn batch(&mut self, message: &Forward, rows: &[usize]) -> Result<NeighbourBatch, SecondaryError> {
        if self.queries.is_some() {
            return self.selected_batch(message);
        }
        let round = message.round;
        let links = match of(round) {
            Of::Run => &self.links,
            Of::New => &self.serving,
        };
        let links = links.as_ref().ok_or(SecondaryError::NotLinked)?;
        let listed = links.neighbours();
        let shown = self.validator.schedule().shown(round, listed);
        let mut distinct: Vec<usize> = Vec::new();
        let mut slots: Vec<i32> = Vec::with_capacity(rows.len() * listed);
        for &row in rows {
            for &record in links.row(row) {
                let place = &mut self.scratch[record as usize];
                if *place == u32::MAX {
                    *place = distinct.len() as u32;
                    distinct.push(record as usize);
                }
                slots.push(*place as i32);
            }
        }
        for &record in &distinct {
            self.scratch[record] = u32::MAX;
        }
        if !round.is_training() {
            distinct = filled(&distinct);
        }
        let similarities: Option<Vec<f32>> = (self.pooled && links.all_similarities().is_some()).then(|| {
            rows.iter().flat_map(|&row| links.similarities(row).unwrap_or_default()).copied().collect()
        });
        let device = self.device_for(round);
        let tensor = |slots: &[i32]| Tensor::<1, Int>::from_data(TensorData::from(slots), &device);
        let (keys, features) = (&self.records.scaled.keys, &self.records.scaled.features);
        let (keys, features) = (gather(keys, &distinct, &device), gather(features, &distinct, &device));
        if let Some(places) = shown {
            return Ok(NeighbourBatch {
                keys,
                features,
                slots: tensor(&those(&slots, listed, &places)),
                rows: rows.len(),
                neighbours: places.len(),
                available: places.partition_point(|&place| place < links.available()),
                similarities: similarities.map(|all| those(&all, listed, &places)),
                listed: Some(Listed { slots: tensor(&slots), places }),
            });
        }
        Ok(NeighbourBatch {
            keys,
            features,
            slots: tensor(&slots),
            rows: rows.len(),
            neighbours: listed,
            available: links.available(),
            similarities,
            listed: None,
        })
    }

    /// Returns the batch of neighbours chosen for this release, where a place may be empty.
    fn selected_batch(&mut self, message: &Forward) -> Result<NeighbourBatch, SecondaryError> {
        let places = self.places(message)?;
        let mut distinct: Vec<usize> =
            places.iter().flatten().flatten().map(|&(record, _)| record as usize).collect();
        distinct.sort_unstable();
        distinct.dedup();
        for (place, &record) in distinct.iter().enumerate() {
            self.scratch[record] = place as u32;
        }
        let nobody = distinct.len() as i32;
        let slots: Vec<i32> = places
            .iter()
            .flatten()
            .map(|place| place.map_or(nobody, |(record, _)| self.scratch[record as usize] as i32))
            .collect();
        distinct.iter().for_each(|&record| self.scratch[record] = u32::MAX);
        // A blank record has no weight; without similarities all other records have equal weights.
        let similar = self.linker.about().similarities;
        let similarity = |place: &Option<(u32, f32)>| match *place {
            Some((_, similarity)) if similar => similarity,
            Some(_) => 0.0,
            None => f32::NEG_INFINITY,
        };
        let similarities = self.pooled.then(|| places.iter().flatten().map(similarity).collect());
        let device = self.device_for(message.round);
        let with_nobody = |table: &Matrix<f32>| {
            let zeros = Tensor::zeros([1, table.columns()], &device);
            if distinct.is_empty() {
                zeros
            } else {
                Tensor::cat(vec![gather(table, &distinct, &device), zeros], 0)
            }
        };
        let (mut keys, mut features) =
            (with_nobody(&self.records.scaled.keys), with_nobody(&self.records.scaled.features));
        let mut slots = Tensor::<1, Int>::from_data(TensorData::from(slots.as_slice()), &device);
        if message.round.is_training() {
            // A dropout mask belongs to a place, never to the n-th distinct record. Otherwise an added record
            // would shift the masks of all other records, and change rows that do not have it as a neighbour.
            (keys, features) = (keys.select(0, slots.clone()), features.select(0, slots));
            slots = Tensor::arange(0..keys.dims()[0] as i64, &device);
        }
        Ok(NeighbourBatch {
            keys,
            features,
            slots,
            rows: message.rows.len(),
            neighbours: self.neighbours,
            available: self.neighbours,
            similarities,
            listed: None,
        })
    }

    /// Returns the records that fill the places of the rows of a message. If every row is released once, in
    /// several batches, the first batch selects for all rows, so that the limit on the rows of a record holds
    /// over all batches.
    fn places(&mut self, message: &Forward) -> Result<Places, SecondaryError> {
        let Round::Once { .. } = message.round else {
            return self.choose(message, &self.sample(message));
        };
        let chosen = match self.chosen.take() {
            Some(chosen) => chosen,
            None => {
                let (round, rows) = (Round::Once { batch: 0 }, (0..self.rows as u32).collect());
                let whole = Forward { round, rows, ..message.clone() };
                let sample = self.sample(&whole);
                Chosen { places: self.choose(&whole, &sample)?, sample }
            }
        };
        let places = message.rows.iter().map(|&row| chosen.places[row as usize].clone()).collect();
        self.chosen = Some(chosen);
        Ok(places)
    }

    /// Draws the records of a release. The draw is derived from a digest of everything that determines the
    /// release: another release of the same round draws independently.
    fn choose(&self, message: &Forward, sample: &[u8; 32]) -> Result<Places, SecondaryError> {
        let rows: Vec<usize> = message.rows.iter().map(|&row| row as usize).collect();
        let queries = self.queries.as_ref().ok_or(SecondaryError::NotLinked)?.select_rows(&rows);
        // A simulated seed is not a secret: its draw depends only on the round.
        let drawn_from: &[u8] = if self.seed.is_simulated() { &[] } else { sample };
        let mut sampling = self.seed.stream_over(Purpose::Sampling, message.round.key(), drawn_from);
        select(
            self.linker.as_ref(),
            &queries,
            &self.records.raw_keys,
            self.neighbours,
            self.privacy.selection(),
            (self.linking_seed(), &mut sampling),
        )
        // Here the party's keys are on both sides of the linker: any error may quote them.
        .map_err(|error| {
            (self.tell)(error.to_string());
            SecondaryError::UnusableKeys
        })
    }

    /// Sets positions that only repeat a neighbour to zero; a pooled representation has no such position.
    fn blank_padding(&self, encoded: Tensor<3>, batch: &NeighbourBatch) -> Tensor<3> {
        if batch.available == batch.neighbours || self.pooled {
            return encoded;
        }
        let width = encoded.dims()[2];
        encoded.slice_fill([0..batch.rows, batch.available..batch.neighbours, 0..width], 0.0)
    }

    fn device_for(&self, round: Round) -> burn::tensor::Device {
        if round.is_training() { self.device.clone() } else { self.device.clone().without_autodiff() }
    }
}

/// Selects these places of rows of `width` values.
fn those<T: Copy>(rows: &[T], width: usize, places: &[usize]) -> Vec<T> {
    rows.chunks_exact(width).flat_map(|row| places.iter().map(|&place| row[place])).collect()
}

/// Returns the origin of a round's rows: the run, or new records.
fn of(round: Round) -> Of {
    if matches!(round, Round::Predict { .. }) { Of::New } else { Of::Run }
}
