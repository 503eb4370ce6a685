//! `random`: K random records, independent of the keys: the null baseline that every real linker must beat.
//!
//! Its links have no similarities: they would be meaningless. The primary sends a zero for each key: to claim many
//! keys, it must send as many bytes.

use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::{check_neighbours, wire};
use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};

/// Settings of `random`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomSettings {
    /// K, the number of records per primary record.
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
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "how many primary records there are",
            primary: "nothing",
            eavesdropper: "how many primary records there are",
        };
        let about = About::new(self.neighbours, KeyKind::Either, reveals);
        About { similarities: false, in_the_clear: false, ..about }
    }

    fn asker(&self, _seed: u64) -> Box<dyn Asker> {
        Box::new(Count)
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(Draw { neighbours: self.neighbours, seed })
    }
}

/// Sends a zero for each key: the number of keys, and nothing of them.
pub(crate) struct Count;

impl Asker for Count {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), vec![0; queries.rows()])))
    }
}

struct Draw {
    neighbours: usize,
    seed: u64,
}

impl Owner for Draw {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let (queries, records) = (wire::sealed(task.queries)?, task.records);
        check_shapes(queries.columns(), records.columns(), records.rows(), self.neighbours, false)?;
        wire::expect(queries.bytes().len(), queries.rows(), 1)?;
        let mut rng = stream(self.seed, 0, Purpose::Linking, 0);
        let draw = |_| index::sample(&mut rng, records.rows(), self.neighbours).into_iter();
        let indices = (0..queries.rows()).flat_map(draw).map(|record| record as u32).collect();
        (task.progress)(queries.rows());
        Ok(Links::without_similarities(self.neighbours, self.neighbours, indices))
    }
}
