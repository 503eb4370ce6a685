//! Workloads of the benchmarks: the presets' models on random tables with the presets' shapes. They need no
//! files, and the cost of a step does not depend on the values.
//!
//! The benchmarks themselves measure the time.

mod cost;

use std::path::PathBuf;

use fet::experiment_file::{ExperimentArguments, load};
use fet_core::data::{Matrix, PartyTable, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::rng::{Purpose, stream};
use rand::RngExt;

pub use cost::operations;

/// Shape of the tables, with the settings of a preset.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Name in tables of results.
    pub name: String,
    /// Name of the experiment file in `experiments/`.
    pub preset: &'static str,
    /// Changes to the settings, as `path=value`.
    pub sets: Vec<String>,
    /// Number of the primary's rows.
    pub rows: usize,
    /// Number of the primary's features.
    pub primary_features: usize,
    /// Number of secondaries.
    pub secondaries: usize,
    /// Number of records of each secondary.
    pub records: usize,
    /// Number of features of each secondary.
    pub features: usize,
    /// Number of key columns, m.
    pub key_columns: usize,
}

impl Workload {
    /// `hdb`: 92,240 flats of 68 features and 165 schools of 8. The workload uses `rows` flats.
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

    /// `mnist`: 60,000 images of 784 pixels, split among `parties` parties. The primary uses `rows` rows.
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

    /// Returns the workload with another name and changed settings, each as `path=value`.
    #[must_use]
    pub fn with(mut self, name: &str, sets: &[&str]) -> Self {
        self.name = name.to_string();
        self.sets.extend(sets.iter().map(|set| set.to_string()));
        self
    }

    /// Returns the preset with this workload's changes.
    ///
    /// # Panics
    /// Panics if the preset is invalid; a test of the program checks the presets.
    pub fn experiment(&self) -> Experiment {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments"));
        let file = folder.join(format!("{}.toml", self.preset));
        load(&ExperimentArguments { file, sets: self.sets.clone(), ..ExperimentArguments::default() })
            .expect("the preset is sound")
    }

    /// Generates the tables.
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
            metadata: fet_core::data::Metadata::default(),
        }
    }
}
