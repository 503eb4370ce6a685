//! `noisy`: adds noise to the similarities of another linker, as in FedSim. An attacker who sees the
//! similarities recovers a bit vector with probability at most `leak` ([`fet_linkage::noise`]).
//!
//! The noise is Gaussian and proportional to the spread of all similarities of the links. Neighbours stay the
//! same and are sorted by noisy similarity. The bound is proved for Hamming distances of bit vectors. With
//! another inner linker, it is a rule of thumb.

use fet_linkage::noise::{least_leak, sigma_for};
use rand_distr::{Distribution, Normal};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::resorted;
use fet_core::data::{Keys, Sealed};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier};
use fet_core::registry::{Plugin, Recipe, Slot, Violation, schema_of_inner};
use fet_core::rng::{Purpose, stream};

/// Settings of `noisy`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoisySettings {
    /// Largest probability τ that an attacker recovers a bit vector from the similarities; 1 for no noise
    /// (FedSim; Wu, Li, He 2022, theorem 1).
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub leak: f64,
    /// Linker whose similarities get noise. It must have similarities.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Linker>,
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Linker>(
        "Linker whose similarities get noise, with its settings in the same table as its kind.",
        |_| true,
    )
}

impl Default for NoisySettings {
    fn default() -> Self {
        Self { leak: 0.1, inner: Slot::with_defaults("federal").expect("this crate registers it") }
    }
}

impl Recipe<dyn Linker> for NoisySettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        let inner = self.inner.build_inner(&())?;
        if !inner.about().similarities {
            return Err(Violation::new(
                "inner.kind",
                "must give similarities",
                format!("\"{}\"", self.inner.kind()),
            ));
        }
        Ok(Box::new(Noisy { leak: self.leak, inner }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<NoisySettings>("noisy", "another linker with noise on its similarities (FedSim)")
}

struct Noisy {
    leak: f64,
    inner: Box<dyn Linker>,
}

impl Linker for Noisy {
    fn about(&self) -> About {
        let about = self.inner.about();
        // The linker only reveals what its inner linker reveals. Noise lifts similarities above any floor,
        // and is proportional to the spread over all queries.
        About {
            floor: None,
            independent: false,
            independent_of_new: false,
            probabilities: false,
            has_threshold: false,
            ..about
        }
    }

    fn notes(&self, queries: &Keys) -> Vec<String> {
        self.inner.notes(queries)
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        self.inner.querier(seed)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Blurred { leak: self.leak, seed, inner: self.inner.data_holder(seed) })
    }
}

struct Blurred {
    leak: f64,
    seed: u64,
    inner: Box<dyn DataHolder>,
}

impl DataHolder for Blurred {
    fn challenge(&mut self, queries: &Keys, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.inner.challenge(queries, records)
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let links = self.inner.link(task)?;
        self.blur(links)
    }

    fn warnings(&mut self) -> Vec<String> {
        self.inner.warnings()
    }
}

impl Blurred {
    fn blur(&self, links: Links) -> Result<Links, LinkError> {
        let Some(all) = links.all_similarities() else { return Ok(links) };
        let count = all.len().max(1) as f64;
        let mean = all.iter().map(|&s| f64::from(s)).sum::<f64>() / count;
        let spread = (all.iter().map(|&s| (f64::from(s) - mean).powi(2)).sum::<f64>() / count).sqrt();
        let sigma = if spread > 0.0 { sigma_for(self.leak, spread) } else { None };
        let sigma = sigma.ok_or_else(|| LinkError::Leak {
            leak: self.leak,
            spread,
            least: if spread > 0.0 { least_leak(spread) } else { 1.0 },
        })?;
        let normal = Normal::new(0.0, sigma * spread).map_err(|error| LinkError::Index(error.to_string()))?;
        let mut rng = stream(self.seed, 0, Purpose::Linking, 2);
        let available = links.available();
        let rows = (0..links.rows()).map(|row| {
            let known = links.similarities(row).unwrap_or_default();
            let mut noisy = |s: f32| (f64::from(s) + normal.sample(&mut rng)) as f32;
            known[..available].iter().zip(links.row(row)).map(|(&s, &index)| (noisy(s), index)).collect()
        });
        Ok(resorted(&links, rows).with_estimate(links.estimate()))
    }
}
