//! `split`: one labelled table split by columns among many parties that link by noisy keys (paper, 7.1).
//!
//! Rows and columns are shuffled by seed. The columns are split into equal parts, or into parts with sizes
//! from a Dirichlet draw. The true key of a row is the first part's leading principal components, fitted on
//! the first 70 % of the shuffled rows, or a uniform draw that only identifies the row. Every party sees the
//! key with independent noise. The rows of each secondary are shuffled independently, so that row numbers
//! carry no information.

mod names;
mod parts;

use fet_core::data::{
    Bounds, DataError, Dataset, DatasetContext, Keys, Labelled, Matrix, Metadata, PartyTable, Source,
    Standardise, VerticalData,
};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Normal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pca::project;
use parts::cut;

/// Settings of `split`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitSettings {
    /// Number of parties, including the primary.
    #[schemars(range(min = 2, max = 128))]
    pub parties: usize,
    /// Number of dimensions of the key, or of words of a name. A principal key has at most as many dimensions
    /// as the primary has columns.
    #[schemars(range(min = 1))]
    pub key_dims: usize,
    /// True key of a row, before noise.
    pub keys: TrueKey,
    /// Standard deviation of each party's noise on its keys; for names, the share of letters with a typing
    /// error; 0 for no noise. A principal key has standard deviation 1 in each dimension.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub key_noise: f64,
    /// Noise of each party, the primary first, in the unit of `key_noise`; empty to use `key_noise` for all
    /// parties.
    #[schemars(inner(range(min = 0, max = 1_000_000)), extend("x-rule" = "empty, or one value for each party"))]
    pub key_noises: Vec<f64>,
    /// α of the Dirichlet draw of the parties' shares of the columns. Smaller values give more unequal
    /// shares; 0 gives equal shares.
    #[schemars(range(min = 0))]
    pub imbalance: f64,
    /// Number of rows to use, drawn by seed; 0 for all.
    pub rows: usize,
    /// Seed of the partition of columns, the keys and their noise. The default is the run's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_seed: Option<u64>,
    /// Range [low, high] of every value of the table, from public knowledge, such as the range of a pixel.
    /// Secondaries scale by this range. Without it, each secondary scales by the means and deviations of its
    /// columns, which is refused with a privacy mechanism.
    #[schemars(extend("x-rule" = "a range [low, high]: finite, low below high"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Table whose columns are divided among the parties.
    pub source: Slot<dyn Source>,
}

/// True keys of rows, before noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrueKey {
    /// Principal components of the primary's columns, each with mean 0 and standard deviation 1.
    Principal,
    /// Uniform in [-1, 1]. Without noise, links are exact.
    Uniform,
    /// `key_dims` words of random letters. Noise is the share of letters with a typing error.
    Names,
}

impl Default for SplitSettings {
    fn default() -> Self {
        let source = Slot::with_defaults("digits").expect("this crate registers it");
        Self {
            parties: 4,
            key_dims: 4,
            keys: TrueKey::Principal,
            key_noise: 0.05,
            key_noises: Vec::new(),
            imbalance: 0.0,
            rows: 0,
            partition_seed: None,
            bounds: None,
            source,
        }
    }
}

impl Recipe<dyn Dataset> for SplitSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.keys == TrueKey::Names
            && self.key_noises.iter().chain([&self.key_noise]).any(|&noise| noise > 1.0)
        {
            return Err(Violation::new(
                "key_noise",
                "must be at most 1 for names: a share of letters",
                self.key_noise,
            ));
        }
        if let Some(bounds) = self.bounds.filter(|&bounds| !Bounds::is_range(bounds)) {
            return Err(Violation::new("bounds", "must be a range [low, high]", format!("{bounds:?}")));
        }
        if !self.key_noises.is_empty() && self.key_noises.len() != self.parties {
            let rule = format!("must be empty or have one value for each of the {} parties", self.parties);
            return Err(Violation::new("key_noises", rule, format!("{:?}", self.key_noises)));
        }
        Ok(())
    }

    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Dataset>, Violation> {
        let source = self.source.build(context)?;
        let seed = self.partition_seed.unwrap_or(context.seed);
        let metadata = context.metadata.to_vec();
        Ok(Box::new(Split { settings: self.clone(), source, seed, metadata }))
    }
}

inventory::submit! {
    Plugin::<dyn Dataset>::new::<SplitSettings>("split", "one table cut by columns among parties with noisy keys")
}

struct Split {
    settings: SplitSettings,
    source: Box<dyn Source>,
    seed: u64,
    metadata: Vec<String>,
}

impl Dataset for Split {
    fn files(&self) -> Vec<String> {
        self.source.files()
    }

    fn load(&self) -> Result<VerticalData, DataError> {
        let SplitSettings { parties, key_dims, rows, imbalance, .. } = self.settings;
        if let Some(column) = self.metadata.first() {
            let problem = format!(
                "column `{column}` does not exist: a table that is split among parties is without column names"
            );
            return Err(DataError::new("`data.kind` \"split\"", problem));
        }
        let Labelled { task, classes, features, labels } = self.source.read()?;
        let refuse = |field: &str, problem: String| Err(DataError::new(format!("`data.{field}`"), problem));
        if parties > features.columns() {
            let problem =
                format!("must not exceed the {} columns of the table; it is {parties}", features.columns());
            return refuse("parties", problem);
        }
        if rows > features.rows() {
            return refuse("rows", format!("must not exceed the table's {}; it is {rows}", features.rows()));
        }
        let mut rng = stream(self.seed, 0, Purpose::Parties, 0);
        let mut order: Vec<usize> = (0..features.rows()).collect();
        order.shuffle(&mut rng);
        if rows > 0 {
            order.truncate(rows);
        }
        let mut columns: Vec<usize> = (0..features.columns()).collect();
        columns.shuffle(&mut rng);
        let features = features.select_rows(&order);
        let principal = self.settings.keys == TrueKey::Principal;
        let least = if principal { key_dims } else { 1 };
        if columns.len() < least + parties - 1 {
            let problem = format!(
                "must leave the primary {least} of the {} columns; with {parties} parties it is {}",
                columns.len(),
                columns.len() + 1 - parties
            );
            return refuse("key_dims", problem);
        }
        let cuts = cut(columns.len(), parties, imbalance, least, &mut rng);
        if cuts[0] < least {
            let problem = format!("must not exceed the {} columns of the primary; it is {key_dims}", cuts[0]);
            return refuse("key_dims", problem);
        }
        let mut rest = columns.as_slice();
        let parts: Vec<Matrix<f32>> = cuts
            .iter()
            .map(|&size| {
                let (part, after) = rest.split_at(size);
                rest = after;
                features.select_columns(part)
            })
            .collect();
        let truth: Keys = match self.settings.keys {
            TrueKey::Principal => project(&parts[0], (order.len() * 7 / 10).max(1), key_dims).into(),
            TrueKey::Uniform => {
                let values = (0..order.len() * key_dims).map(|_| rng.random_range(-1.0..=1.0));
                Matrix::new(key_dims, values.collect()).into()
            }
            TrueKey::Names => Keys::Text(names::draw(order.len(), key_dims, &mut rng)),
        };
        let mut tables = parts.into_iter().enumerate().map(|(party, part)| {
            let noise = self.settings.key_noises.get(party).copied().unwrap_or(self.settings.key_noise);
            let keys = match &truth {
                Keys::Text(words) if noise > 0.0 => {
                    let mut rng = stream(self.seed, party, Purpose::KeyNoise, 0);
                    Keys::Text(names::mistype(words, noise, &mut rng))
                }
                Keys::Numbers(numbers) => noisy(numbers, noise, self.seed, party).into(),
                other => other.clone(),
            };
            self.table(party, keys, part)
        });
        let primary = tables.next().expect("there are two parties or more");
        let secondaries = tables.collect();
        let labels = order.iter().map(|&row| labels[row]).collect();
        let standardise = Standardise { keys: false, features: true };
        Ok(VerticalData {
            task,
            classes,
            primary,
            labels,
            secondaries,
            standardise,
            metadata: Metadata { rows: order, ..Metadata::default() },
        })
    }
}

impl Split {
    /// Returns the table of a party. The rows of a secondary are shuffled.
    fn table(&self, party: usize, keys: Keys, features: Matrix<f32>) -> PartyTable {
        if party == 0 {
            return PartyTable { name: "primary".to_string(), keys, features: features.into(), bounds: None };
        }
        let mut order: Vec<usize> = (0..features.rows()).collect();
        order.shuffle(&mut stream(self.seed, party, Purpose::Parties, 1));
        PartyTable {
            name: format!("party {party}"),
            keys: keys.select_rows(&order),
            bounds: self
                .settings
                .bounds
                .map(|bounds| Bounds { keys: Vec::new(), features: vec![bounds; features.columns()] }),
            features: features.select_rows(&order).into(),
        }
    }
}

fn noisy(truth: &Matrix<f64>, deviation: f64, seed: u64, party: usize) -> Matrix<f64> {
    let mut keys = truth.clone();
    if deviation > 0.0 {
        let normal = Normal::new(0.0, deviation).expect("a deviation was checked to be finite");
        let mut rng = stream(seed, party, Purpose::KeyNoise, 0);
        keys.values_mut().iter_mut().for_each(|key| *key += normal.sample(&mut rng));
    }
    keys
}

#[cfg(test)]
mod tests;
