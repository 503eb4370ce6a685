//! `rotation`: the K nearest keys, after both sides have turned, scaled and shifted theirs by a shared secret.
//!
//! The neighbours are those of `nearest`, but for rounding; similarities are minus the true distances, for the party that
//! links knows the scale. It hides places from whoever has no secret, such as a third party that links for
//! others, and leaves the shape of the cloud of points ([`fet_linkage::rotation`]).

use fet_linkage::rotation::Rotation;
use serde::{Deserialize, Serialize};

use crate::nearest::{Metric, nearest};
use crate::wire::{Reader, Writer};
use crate::{check_neighbours, links, secret};
use fet_core::data::{KeyKind, Keys, Matrix, Sealed};
use fet_core::linker::{LinkError, Linker, Links, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `rotation`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RotationSettings {
    /// K, how many neighbours each primary record gets.
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them (the repeats are masked out).
    pub pad: bool,
    /// The environment variable with the parties' secret; empty in a simulation, where the secret follows from the seed.
    pub secret_env: String,
}

impl Default for RotationSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, secret_env: String::new() }
    }
}

impl Recipe<dyn Linker> for RotationSettings {
    fn check(&self) -> Result<(), Violation> {
        secret::check(&self.secret_env)?;
        check_neighbours(self.neighbours)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Turned(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<RotationSettings>("rotation", "the K nearest keys under a secret rotation and scale")
}

struct Turned(RotationSettings);

impl Turned {
    fn rotation(&self, columns: usize, seed: u64) -> Result<Rotation, LinkError> {
        Ok(Rotation::new(columns, secret::secret(&self.0.secret_env, seed, "rotation")?))
    }
}

impl Linker for Turned {
    fn neighbours(&self) -> usize {
        self.0.neighbours
    }

    fn reveals(&self) -> Reveals {
        Reveals {
            secondary: "every primary key: it has the secret and can turn them back",
            primary: "nothing",
            outsider: "all ratios of distances between primary keys; all keys, once it knows as many of them as there are \
                       columns, and one more",
        }
    }

    fn conceal(&self, queries: &Keys, seed: u64) -> Result<Keys, LinkError> {
        let queries = queries.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, queries))?;
        let mut writer = Writer::default();
        let turned = self.rotation(queries.columns(), seed)?.apply(queries.values());
        turned.into_iter().for_each(|x| writer.double(x));
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), writer.bytes())))
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        let Keys::Sealed(message) = queries else {
            return self.link(&self.conceal(queries, seed)?, records, seed);
        };
        let RotationSettings { neighbours, pad, .. } = self.0;
        let records = records.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, records))?;
        let columns = records.columns();
        check_shapes(message.columns(), columns, records.rows(), neighbours, pad)?;
        let mut reader = Reader::new(message.bytes());
        let values = (0..message.rows() * columns).map(|_| reader.double()).collect::<Result<_, _>>()?;
        let rotation = self.rotation(columns, seed)?;
        let turned = Matrix::new(columns, rotation.apply(records.values()));
        let take = neighbours.min(records.rows());
        let mut found = nearest(&Matrix::new(columns, values), &turned, take, Metric::Euclidean)?;
        found.scores.iter_mut().for_each(|score| *score = (f64::from(*score) / rotation.scale()) as f32);
        Ok(links(neighbours, found))
    }
}
