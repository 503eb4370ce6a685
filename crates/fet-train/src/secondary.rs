//! A secondary party: its records, its links, its encoder. It meets the others only in [`Secondary::handle`].
//!
//! It has no labels and sees no other party's features. What it sends is what the privacy mechanism lets
//! through.

mod release;
mod selection;

use std::fmt;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_privacy::secure_sum::{BudgetError, Member};
use rand::Rng;

use crate::model::Embedding;
use crate::prepare::{PreparedParty, ScaledTable};
use crate::protocol::{Backward, Forward, LinkKeys, Linked, Reply, Request};
use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::linker::{LinkError, LinkTask, Linker, Links, Owner};
use fet_core::model::Pass;
use fet_core::parameters::ParameterError;
use fet_core::privacy::{PrivacyMechanism, Selection};
use fet_core::rng::{Purpose, stream};

/// One party that helps the primary.
pub struct Secondary {
    /// The party's number, counted from 1; it keys all of its random streams.
    number: usize,
    seed: u64,
    raw_keys: Keys,
    /// The primary's concealed keys and the owner that posed a challenge, while it is unanswered.
    unlinked: Option<(Keys, Box<dyn Owner>)>,
    warnings: Vec<String>,
    records: ScaledTable,
    links: Option<Links>,
    /// The primary's keys, kept where neighbours are chosen anew for each batch.
    queries: Option<Keys>,
    linker: Arc<dyn Linker>,
    neighbours: usize,
    reveals_similarities: bool,
    encoder: Box<dyn Encoder>,
    privacy: Arc<dyn PrivacyMechanism>,
    device: Device,
    pending: Option<Pending>,
    scratch: Vec<u32>,
    /// Its part in secret sums, where there are any.
    member: Option<Member>,
    /// From which step on it no longer answers.
    gone_from: Option<u64>,
}

/// The graph of a bounded representation between forward and backward.
struct Pending {
    encoded: Tensor<3>,
    bounded: Tensor<3>,
}

/// What a secondary is made of besides its data.
pub struct SecondaryParts {
    /// Finds its neighbours.
    pub linker: Arc<dyn Linker>,
    /// How many of them it represents.
    pub neighbours: usize,
    /// Whether it tells the primary how similar they are.
    pub reveals_similarities: bool,
    /// Its half of the model.
    pub encoder: Box<dyn Encoder>,
    /// What protects its representations.
    pub privacy: Arc<dyn PrivacyMechanism>,
    /// Where it computes; an autodiff device.
    pub device: Device,
}

impl Secondary {
    /// Party `number` (from 1) with its records.
    pub fn new(number: usize, seed: u64, party: PreparedParty, parts: SecondaryParts) -> Self {
        Self {
            number,
            seed,
            scratch: vec![u32::MAX; party.raw_keys.rows()],
            raw_keys: party.raw_keys,
            unlinked: None,
            warnings: Vec::new(),
            records: party.scaled,
            links: None,
            queries: None,
            member: None,
            gone_from: None,
            linker: parts.linker,
            neighbours: parts.neighbours,
            reveals_similarities: parts.reveals_similarities,
            encoder: parts.encoder,
            privacy: parts.privacy,
            device: parts.device,
            pending: None,
        }
    }

    /// The party's name.
    pub fn name(&self) -> &str {
        &self.records.name
    }

    /// Its half of the model, for saving and for tests; not a message.
    pub fn encoder(&self) -> &dyn Encoder {
        self.encoder.as_ref()
    }

    /// Its half of the model, for loading.
    pub fn encoder_mut(&mut self) -> &mut dyn Encoder {
        self.encoder.as_mut()
    }

    /// The features of the record most similar to each of these primary rows: what an attacker would like to know.
    /// For measuring what attacks find; not a message.
    pub fn nearest_features(&self, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
        let links = self.links.as_ref().ok_or(SecondaryError::NotLinked)?;
        let nearest: Vec<usize> = rows.iter().map(|&row| links.row(row)[0] as usize).collect();
        Ok(self.records.features.select_rows(&nearest))
    }

    /// What its user should hear of the links; it says so once. Not a message.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Has the party vanish in the middle of that step, as a machine might; for trying out what the others do.
    pub fn vanish_at(&mut self, round: u64) {
        self.gone_from = Some(round);
    }

    /// Answers a message.
    pub fn handle(&mut self, request: Request) -> Result<Reply, SecondaryError> {
        match request {
            Request::Link(message) => self.link(message),
            Request::Answer(message) => self.link_answered(&message),
            Request::Forward(message) if self.gone_from.is_some_and(|from| message.round >= from) => {
                Ok(Reply::Gone)
            }
            Request::Forward(message) => self.represent(&message),
            Request::MakeKey => self.make_key().map(Reply::Key),
            Request::AgreeOnKeys(keys) => self.agree_on_keys(&keys).map(|()| Reply::Done),
            Request::Backward(message) => self.learn(message).map(|()| Reply::Done),
            Request::ShareEncoding(Some(hidden)) => self.hide_encoding(&hidden).map(Reply::MaskedEncoding),
            Request::ShareEncoding(None) => {
                let parameters = self.encoder.learner().parameters().with_prefix(Embedding::POSITION);
                Ok(Reply::Encoding(parameters))
            }
            Request::LoadEncoding(parameters) => {
                self.encoder.learner_mut().load(&parameters)?;
                Ok(Reply::Done)
            }
        }
    }

    fn link(&mut self, message: LinkKeys) -> Result<Reply, SecondaryError> {
        if self.privacy.selection() != Selection::ALL {
            if !self.linker.about().in_the_clear || matches!(message.keys, Keys::Sealed(_)) {
                return Err(SecondaryError::SealedSelection);
            }
            self.queries = Some(message.keys.clone());
        }
        let mut owner = self.linker.owner(linking_seed(self.seed, self.number));
        if let Some(challenge) = owner.challenge(&self.raw_keys)? {
            self.unlinked = Some((message.keys, owner));
            return Ok(Reply::Challenge(challenge));
        }
        let links = owner.link(&LinkTask::new(&message.keys, &self.raw_keys))?;
        self.warnings.extend(owner.warnings());
        self.keep(&links)
    }

    fn link_answered(&mut self, answer: &Sealed) -> Result<Reply, SecondaryError> {
        let (queries, mut owner) = self.unlinked.take().ok_or(SecondaryError::NoChallenge)?;
        let links =
            owner.link(&LinkTask { answer: Some(answer), ..LinkTask::new(&queries, &self.raw_keys) })?;
        self.warnings.extend(owner.warnings());
        self.keep(&links)
    }

    fn keep(&mut self, links: &Links) -> Result<Reply, SecondaryError> {
        let links = links.first(self.neighbours);
        let mut similarities = None;
        if self.reveals_similarities {
            let row = |row| links.similarities(row).ok_or(SecondaryError::NoSimilarities);
            let all = (0..links.rows()).map(row).collect::<Result<Vec<_>, _>>()?;
            similarities = Some(Matrix::new(links.neighbours(), all.concat()));
        }
        let mut available = links.available();
        self.links = Some(links);
        if self.privacy.selection() != Selection::ALL {
            // Places that stay empty are filled by nobody's record.
            available = self.neighbours;
        }
        Ok(Reply::Linked(Linked { available, similarities }))
    }

    fn represent(&mut self, message: &Forward) -> Result<Reply, SecondaryError> {
        let batch = self.batch(message)?;
        let mut pass = if message.training {
            Pass::training(stream(self.seed, self.number, Purpose::Dropout, message.round))
        } else {
            Pass::evaluation()
        };
        let encoded = self.encoder.forward(&batch, &mut pass, message.training);
        let encoded = self.blank_padding(encoded, &batch);
        let bounded = if self.privacy.is_identity() {
            encoded
        } else if message.training {
            // The gradient goes through the clipping; noise and rounding change nothing about it.
            let leaf = encoded.autodiff().require_grad();
            let bounded = self.privacy.bound(leaf.clone(), message.active);
            self.pending = Some(Pending { encoded: leaf, bounded: bounded.clone() });
            bounded.without_autodiff()
        } else {
            self.privacy.bound(encoded, message.active)
        };
        self.release(bounded, message)
    }

    fn learn(&mut self, message: Backward) -> Result<(), SecondaryError> {
        let mut gradient = message.gradient;
        if !self.privacy.is_identity() {
            let pending = self.pending.take().ok_or(SecondaryError::NothingToLearn)?;
            let mut gradients = (pending.bounded * gradient.autodiff()).sum().backward();
            gradient = pending.encoded.grad_remove(&mut gradients).ok_or(SecondaryError::NothingToLearn)?;
        }
        let [rows, neighbours, width] = gradient.dims();
        let available = self.links.as_ref().map_or(neighbours, Links::available);
        if available < neighbours && self.queries.is_none() {
            let tail = [0..rows, available..neighbours, 0..width];
            gradient = gradient.slice_fill(tail, 0.0);
        }
        self.encoder.backward(gradient);
        self.encoder.learner_mut().step(message.learning_rate);
        Ok(())
    }

    /// Each distinct neighbour of the batch once, and which of them fills which slot.
    fn batch(&mut self, message: &Forward) -> Result<NeighbourBatch, SecondaryError> {
        if self.queries.is_some() {
            return self.selected_batch(message);
        }
        let links = self.links.as_ref().ok_or(SecondaryError::NotLinked)?;
        let neighbours = links.neighbours();
        let mut distinct: Vec<usize> = Vec::new();
        let mut slots: Vec<i32> = Vec::with_capacity(message.rows.len() * neighbours);
        for &row in &message.rows {
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
        let device =
            if message.training { self.device.clone() } else { self.device.clone().without_autodiff() };
        Ok(NeighbourBatch {
            keys: gather(&self.records.keys, &distinct, &device),
            features: gather(&self.records.features, &distinct, &device),
            slots: Tensor::<1, Int>::from_data(TensorData::from(slots.as_slice()), &device),
            rows: message.rows.len(),
            neighbours,
            available: links.available(),
        })
    }

    /// The same where the neighbours are chosen for this batch, and a place may be nobody's.
    fn selected_batch(&mut self, message: &Forward) -> Result<NeighbourBatch, SecondaryError> {
        let queries = self.queries.as_ref().ok_or(SecondaryError::NotLinked)?.select_rows(&message.rows);
        let seed = linking_seed(self.seed, self.number);
        let mut sampling = stream(self.seed, self.number, Purpose::Sampling, message.round);
        let places = selection::select(
            self.linker.as_ref(),
            &queries,
            &self.raw_keys,
            self.neighbours,
            self.privacy.selection(),
            (seed, &mut sampling),
        )?;
        let mut distinct: Vec<usize> =
            places.iter().flatten().flatten().map(|&record| record as usize).collect();
        distinct.sort_unstable();
        distinct.dedup();
        for (place, &record) in distinct.iter().enumerate() {
            self.scratch[record] = place as u32;
        }
        let nobody = distinct.len() as i32;
        let slots: Vec<i32> = places
            .iter()
            .flatten()
            .map(|place| place.map_or(nobody, |record| self.scratch[record as usize] as i32))
            .collect();
        distinct.iter().for_each(|&record| self.scratch[record] = u32::MAX);
        let device =
            if message.training { self.device.clone() } else { self.device.clone().without_autodiff() };
        let with_nobody = |table: &Matrix<f32>| {
            let zeros = Tensor::zeros([1, table.columns()], &device);
            if distinct.is_empty() {
                zeros
            } else {
                Tensor::cat(vec![gather(table, &distinct, &device), zeros], 0)
            }
        };
        Ok(NeighbourBatch {
            keys: with_nobody(&self.records.keys),
            features: with_nobody(&self.records.features),
            slots: Tensor::<1, Int>::from_data(TensorData::from(slots.as_slice()), &device),
            rows: message.rows.len(),
            neighbours: self.neighbours,
            available: self.neighbours,
        })
    }

    /// Positions that only repeat a neighbour leave as zeros.
    fn blank_padding(&self, encoded: Tensor<3>, batch: &NeighbourBatch) -> Tensor<3> {
        if batch.available == batch.neighbours {
            return encoded;
        }
        let width = encoded.dims()[2];
        encoded.slice_fill([0..batch.rows, batch.available..batch.neighbours, 0..width], 0.0)
    }
}

impl fmt::Debug for Secondary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secondary({}, {:?})", self.number, self.records.features)
    }
}

/// Why a secondary could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecondaryError {
    /// Its records cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Parameters do not fit its model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Similarities are wanted of a linker that gives none.
    #[error("similarities are wanted of a linker that gives none")]
    NoSimilarities,
    /// An answer came to a challenge that was not posed.
    #[error("an answer came to a challenge that was not posed")]
    NoChallenge,
    /// Asked for a representation before it was linked.
    #[error("a representation was asked for before the keys were linked")]
    NotLinked,
    /// A value that a secret sum has no room for.
    #[error(
        "a {what} holds {value}, and sums have room for {range}: bound it by a privacy mechanism, or raise \
         `aggregator.range`"
    )]
    OutOfRange {
        /// What holds it.
        what: &'static str,
        /// The value.
        value: f32,
        /// The largest absolute value there is room for.
        range: f64,
    },
    /// The form of a sum does not fit.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The system gives no randomness for keys.
    #[error("the system gives no randomness for keys: {0}")]
    NoRandomness(String),
    /// A secret sum was asked for before keys were agreed on.
    #[error("a secret sum was asked for before keys were agreed on")]
    NoKeys,
    /// Neighbours are to be chosen for each batch, and the linker seals whole tables.
    #[error(
        "`linker.kind` must be one that sends keys in the clear where `privacy.sample_rate` or \
         `privacy.max_occurrences` has neighbours chosen anew for each batch"
    )]
    SealedSelection,
    /// A secret sum over one party.
    #[error("a secret sum over one party was asked for: the sum would be its value")]
    Alone,
    /// A public key that no honest party has.
    #[error("the public key of party {party} is of small order: no honest party has such a key")]
    BadKey {
        /// The party, from 1.
        party: usize,
    },
    /// A gradient came without a training representation before it.
    #[error("a gradient came without a training representation before it")]
    NothingToLearn,
}

/// The seed of the linker of secondary `number` (from 1).
pub fn linking_seed(seed: u64, number: usize) -> u64 {
    stream(seed, number, Purpose::Linking, 0).next_u64()
}

/// The named rows of a table as a tensor.
pub(crate) fn gather(table: &Matrix<f32>, rows: &[usize], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = rows.iter().flat_map(|&row| table.row(row)).copied().collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), table.columns()]), device)
}
