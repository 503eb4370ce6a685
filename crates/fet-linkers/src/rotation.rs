//! `rotation`: finds the K nearest keys, after both sides have rotated, scaled and shifted their keys by a
//! shared secret.
//!
//! The neighbours are those of `nearest`, up to rounding. Similarities are negative true distances, since the
//! party that links knows the scale. The transformation hides locations from parties without the secret, such
//! as a third party that links for others. It does not hide the shape of the point cloud
//! ([`fet_linkage::rotation`]).

use fet_linkage::rotation::Rotation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::{Metric, nearest};
use crate::wire::{Reader, Writer};
use crate::{links, secret, wire};
use fet_core::data::{KeyKind, Keys, Matrix, Sealed};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals, check_shapes,
};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `rotation`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RotationSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
    /// where the seed determines the secret.
    #[schemars(extend("x-rule" = "the name of an environment variable, or empty"))]
    pub secret_env: String,
}

impl Default for RotationSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, secret_env: String::new() }
    }
}

impl Recipe<dyn Linker> for RotationSettings {
    fn check(&self) -> Result<(), Violation> {
        secret::check(&self.secret_env)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(RotationLinker(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<RotationSettings>("rotation", "the K nearest keys under a secret rotation and scale")
}

struct RotationLinker(RotationSettings);

impl Linker for RotationLinker {
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "every primary key, since it has the secret and can reverse the rotation",
            primary: "nothing",
            eavesdropper: "all ratios of distances between primary keys; all keys, once it knows one more key than there \
                           are columns",
        };
        About { in_the_clear: false, ..About::new(self.0.neighbours, KeyKind::Numbers, reveals) }
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        Box::new(Side { settings: self.0.clone(), seed })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Side { settings: self.0.clone(), seed })
    }
}

/// Either side. Its state is the secret, which both sides have.
struct Side {
    settings: RotationSettings,
    seed: u64,
}

impl Side {
    fn rotation(&self, columns: usize) -> Result<Rotation, LinkError> {
        Ok(Rotation::new(columns, *secret::secret(&self.settings.secret_env, self.seed, "rotation")?))
    }
}

impl Querier for Side {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let queries = queries.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, queries))?;
        let mut writer = Writer::default();
        let rotated = self.rotation(queries.columns())?.apply(queries.values());
        rotated.into_iter().for_each(|x| writer.double(x));
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), writer.bytes())))
    }
}

impl DataHolder for Side {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let RotationSettings { neighbours, pad, .. } = self.settings;
        let (message, records) = (wire::sealed(task.queries)?, task.records);
        let records = records.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, records))?;
        let columns = records.columns();
        check_shapes(message.columns(), columns, records.rows(), neighbours, pad)?;
        let queries = Matrix::new(columns, Reader::new(message.bytes()).doubles(message.rows(), columns)?);
        let rotation = self.rotation(columns)?;
        let rotated = Matrix::new(columns, rotation.apply(records.values()));
        let mut found = nearest(&queries, &rotated, neighbours.min(records.rows()), Metric::Euclidean)?;
        found.scores.iter_mut().for_each(|score| *score = (f64::from(*score) / rotation.scale()) as f32);
        (task.progress)(queries.rows());
        Ok(links(neighbours, found))
    }
}
