//! `random`: K records drawn at random, whatever the keys: the null that every real linker must beat.
//!
//! Its links have no similarities: there is nothing that they could mean.

use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::check_neighbours;
use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{LinkError, Linker, Links, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};

/// Settings of `random`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomSettings {
    /// K, how many records each primary record gets.
    pub neighbours: usize,
}

impl Default for RandomSettings {
    fn default() -> Self {
        Self { neighbours: 20 }
    }
}

impl Recipe<dyn Linker> for RandomSettings {
    fn check(&self) -> Result<(), Violation> {
        check_neighbours(self.neighbours)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Random { neighbours: self.neighbours }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<RandomSettings>("random", "K records drawn at random: the null hypothesis")
}

struct Random {
    neighbours: usize,
}

impl Linker for Random {
    fn neighbours(&self) -> usize {
        self.neighbours
    }

    fn gives_similarities(&self) -> bool {
        false
    }

    fn reveals(&self) -> Reveals {
        Reveals {
            secondary: "how many primary records there are",
            primary: "nothing",
            outsider: "how many primary records there are",
        }
    }

    fn takes(&self) -> KeyKind {
        KeyKind::Either
    }

    fn conceal(&self, queries: &Keys, _seed: u64) -> Result<Keys, LinkError> {
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), Vec::new())))
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        check_shapes(queries.columns(), records.columns(), records.rows(), self.neighbours, false)?;
        let mut rng = stream(seed, 0, Purpose::Linking, 0);
        let draw = |_| index::sample(&mut rng, records.rows(), self.neighbours).into_iter();
        let indices = (0..queries.rows()).flat_map(draw).map(|record| record as u32).collect();
        Ok(Links::without_similarities(self.neighbours, self.neighbours, indices))
    }
}
