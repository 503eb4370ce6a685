//! What the benchmarks run: the presets' models on tables of the presets' shapes, with random numbers in them, so
//! that no file is needed; a step costs the same whatever the numbers are.
//!
//! Nothing is timed here.

mod cost;

use std::path::PathBuf;

use fet::experiment_file::{ExperimentArguments, load};
use fet_core::data::{Matrix, PartyTable, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::rng::{Purpose, stream};
use rand::RngExt;

pub use cost::{distinct_neighbours, operations};

/// Tables of a shape, and the settings of the preset that goes with them.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What it is called in tables.
    pub name: String,
    /// The experiment file, under `experiments/`.
    pub preset: &'static str,
    /// What is changed in it.
    pub sets: Vec<String>,
    /// The primary's rows.
    pub rows: usize,
    /// The primary's features.
    pub primary_features: usize,
    /// How many secondaries there are.
    pub secondaries: usize,
    /// Records of each secondary.
    pub records: usize,
    /// Features of each secondary.
    pub features: usize,
    /// m.
    pub key_columns: usize,
}

impl Workload {
    /// `hdb`: 92,240 flats of 68 features and 165 schools of 8, of which `rows` flats are used.
    pub fn hdb(rows: usize) -> Self {
        Self {
            name: "hdb".into(),
            preset: "hdb",
            sets: Vec::new(),
            rows,
            primary_features: 68,
            secondaries: 1,
            records: 165,
            features: 8,
            key_columns: 2,
        }
    }

    /// `house`: flats of 52 features and 27,827 listings of 23.
    pub fn house(rows: usize) -> Self {
        Self {
            name: "house".into(),
            preset: "house",
            primary_features: 52,
            records: 27_827,
            features: 23,
            ..Self::hdb(rows)
        }
    }

    /// `mnist`: 60,000 images of 784 pixels, cut between `parties` parties, of which the primary uses `rows` rows.
    pub fn mnist(parties: usize, rows: usize) -> Self {
        Self {
            name: format!("mnist, {parties} parties"),
            preset: "mnist",
            primary_features: 784 / parties,
            secondaries: parties - 1,
            records: 60_000,
            features: 784 / parties,
            key_columns: 4,
            ..Self::hdb(rows)
        }
    }

    /// The same with settings changed, each as `path=value`, under another name.
    #[must_use]
    pub fn with(mut self, name: &str, sets: &[&str]) -> Self {
        self.name = name.to_string();
        self.sets.extend(sets.iter().map(|set| set.to_string()));
        self
    }

    /// The preset as this workload has it.
    ///
    /// # Panics
    /// If the preset is not sound; a test of the program holds that it is.
    pub fn experiment(&self) -> Experiment {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments"));
        let file = folder.join(format!("{}.toml", self.preset));
        load(&ExperimentArguments { file, sets: self.sets.clone(), ..ExperimentArguments::default() })
            .expect("the preset is sound")
    }

    /// The tables.
    pub fn tables(&self) -> VerticalData {
        let mut rng = stream(0, 0, Purpose::Parties, 0);
        let mut party = |name: &str, rows: usize, features: usize| PartyTable {
            name: name.to_string(),
            keys: Matrix::new(self.key_columns, (0..self.key_columns * rows).map(|_| rng.random()).collect())
                .into(),
            features: Matrix::new(features, (0..features * rows).map(|_| rng.random()).collect()).into(),
            bounds: None,
        };
        let multiclass = self.preset == "mnist";
        let label = |row: usize| if multiclass { (row % 10) as f64 } else { row as f64 };
        VerticalData {
            task: if multiclass { Task::Multiclass } else { Task::Regression },
            classes: if multiclass { 10 } else { 1 },
            primary: party("primary", self.rows, self.primary_features),
            secondaries: (0..self.secondaries)
                .map(|index| party(&format!("secondary {index}"), self.records, self.features))
                .collect(),
            labels: (0..self.rows).map(label).collect(),
            standardise: fet_core::data::Standardise { keys: !multiclass, features: true },
            aside: fet_core::data::Aside::default(),
        }
    }
}
