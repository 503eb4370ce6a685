//! The vocabulary of data: tables of parties, tasks, and the slots that provide them: `Dataset` (the tables
//! of all parties) and `Source` (one labelled table).
//!
//! Readers and splitters live in `fet-data`, typed columns in `fet-tables`; preparation for a model and the
//! train/validation/test split are in `fet-federation`. This module reads no file.

mod columns;
mod forms;
mod keys;
mod matrix;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fet_tables::{Kind, Options, Table, TableError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::registry::{Plugin, SlotKind};

pub use columns::{Columns, Features};
pub use fet_tables::{Column, DateOrder, Decided, Decimal, Values};
pub use forms::{Comparison, Form, number};
pub use keys::{KeyKind, Keys, Sealed, TextTable};
pub use matrix::Matrix;

/// The kind of label that a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// A real number; the metric is the root mean squared error in the label's own unit.
    #[default]
    Regression,
    /// 0 or 1; the metric is accuracy.
    Binary,
    /// One of `0..classes`; the metric is accuracy.
    Multiclass,
}

/// One party's table: keys of the kind that all parties share, and its own features.
#[derive(Debug, Clone)]
pub struct PartyTable {
    /// The party's name.
    pub name: String,
    /// Fuzzy identifiers, before scaling.
    pub keys: Keys,
    /// Features before scaling, without the keys.
    pub features: Features,
    /// Declared ranges of the keys and of the numeric features, if the owner declares any. Ranges of typed
    /// columns are in their rules. The party never sends its ranges.
    pub bounds: Option<Bounds>,
}

/// Ranges of a table's columns that its owner declares from public knowledge; they must not depend on any
/// record. A secondary that declares ranges scales its columns by them, and uses no value computed from its
/// records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// Range of each key column; empty if keys are texts, or if models see the keys unscaled.
    pub keys: Vec<[f64; 2]>,
    /// Range of each feature.
    pub features: Vec<[f64; 2]>,
}

impl Bounds {
    /// Returns true if a pair is a range: finite, with the lower end below the upper end.
    pub fn is_range([low, high]: [f64; 2]) -> bool {
        low.is_finite() && high.is_finite() && low < high
    }
}

impl PartyTable {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.keys.rows()
    }

    /// Returns the reader's notes on the columns, for the owner of the table: its decisions, and the
    /// questions that it could not decide.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        let notes = match &self.features {
            Features::Columns(columns) => columns.table.notes.as_slice(),
            Features::Numbers(_) => &[],
        };
        notes.iter().filter(|note| note.starts_with("column `"))
    }
}

/// All parties' tables before scaling and linking.
#[derive(Debug, Clone)]
pub struct VerticalData {
    /// The kind of label.
    pub task: Task,
    /// Number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// The party with the labels.
    pub primary: PartyTable,
    /// One label for each primary record: a number, or a class index.
    pub labels: Vec<f64>,
    /// The other parties.
    pub secondaries: Vec<PartyTable>,
    /// Columns that are standardised before models see them; linkage always uses raw keys.
    pub standardise: Standardise,
    /// Metadata of the primary's records.
    pub metadata: Metadata,
}

/// Metadata of the primary's records, in addition to keys, features and labels; empty by default.
#[derive(Clone, Default)]
pub struct Metadata {
    /// Row of each record in its file, from 0; empty if the records are in the order of the file.
    pub rows: Vec<usize>,
    /// Names of the classes, in their order; empty if classes are numbers, and for a regression.
    pub class_names: Vec<String>,
    /// The requested metadata columns ([`DatasetContext::metadata`]), with one value for each record.
    pub columns: Vec<Column>,
}

/// Shows the columns' names, never the values.
impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        write!(f, "Metadata(classes {:?}, columns {names:?})", self.class_names)
    }
}

/// The columns that each party standardises before its model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standardise {
    /// True if keys are standardised.
    pub keys: bool,
    /// True if features are standardised; false only for tables that are standardised already.
    pub features: bool,
}

impl Standardise {
    /// Standardises keys and features.
    pub const ALL: Self = Self { keys: true, features: true };
}

/// A provider of the parties' tables.
///
/// Law: the same settings and seed give the same tables.
pub trait Dataset: Send + Sync {
    /// Returns the data files that the settings name, as they name them and in the order of the settings; without those of parties
    /// whose tables are elsewhere. A run reports missing files, never overwrites them, and depends on their content.
    fn files(&self) -> Vec<String>;

    /// Returns the names of the secondaries whose tables are on their own machines.
    fn elsewhere(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if every party cuts its table out of one table that all parties have, as in an experiment on public data; false if
    /// each party brings its own table.
    fn is_shared(&self) -> bool {
        true
    }

    /// Reads and checks the tables. Keys, labels and plain numbers are finite; a cell of a typed column may be missing.
    fn load(&self) -> Result<VerticalData, DataError>;

    /// Returns only the secondaries' tables.
    fn secondaries(&self) -> Result<Vec<PartyTable>, DataError> {
        Ok(self.load()?.secondaries)
    }

    /// Returns the primary's data without the secondaries' tables, and the names of the secondaries in their
    /// order. In a federation of several machines the primary has no more data.
    fn primary(&self) -> Result<(VerticalData, Vec<String>), DataError> {
        let mut data = self.load()?;
        let names = data.secondaries.drain(..).map(|table| table.name).collect();
        Ok((data, names))
    }

    /// Returns the table of one secondary, counted from 0.
    fn secondary(&self, index: usize) -> Result<PartyTable, DataError> {
        let mut tables = self.secondaries()?;
        if index >= tables.len() {
            let problem = format!("has {} secondaries; secondary {} does not exist", tables.len(), index + 1);
            return Err(DataError::new("`data`", problem));
        }
        Ok(tables.swap_remove(index))
    }

    /// Returns true if the dataset draws the primary's records from its table, so that their order differs
    /// from that of the secondaries' records.
    fn draws_records(&self) -> bool {
        false
    }

    /// Returns new records of the primary from a table with the primary's key and feature columns. `kinds`
    /// gives the kinds of the feature columns, `read` reads the table with the given options, and errors call
    /// the table `name`.
    fn records(
        &self,
        _name: &str,
        _kinds: &BTreeMap<String, Kind>,
        _read: &Reading<'_>,
    ) -> Result<PartyTable, DataError> {
        let problem = "lacks a primary file that defines the columns of new records; use \"linked\"";
        Err(DataError::new("`data.kind`", problem))
    }
}

/// A function that reads a table of new records with the given options.
pub type Reading<'a> = dyn Fn(&Options) -> Result<Table, TableError> + 'a;

/// The folders that a run searches for data files, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Creates the list of these folders without duplicates.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut all: Vec<PathBuf> = Vec::new();
        for folder in folders {
            if !all.contains(&folder) {
                all.push(folder);
            }
        }
        Self(all)
    }

    /// Returns the path of the file or folder `name` in the first folder that contains it, or in the last
    /// folder if none does. An absolute `name` stays as it is.
    pub fn find(&self, name: impl AsRef<Path>) -> PathBuf {
        let mut places = self.0.iter().map(|folder| folder.join(&name));
        let last = self.0.last().map_or_else(|| name.as_ref().to_path_buf(), |folder| folder.join(&name));
        places.find(|place| place.exists()).unwrap_or(last)
    }

    /// Returns the folders.
    pub fn all(&self) -> &[PathBuf] {
        &self.0
    }
}

impl From<&Path> for Folders {
    fn from(folder: &Path) -> Self {
        Self(vec![folder.to_path_buf()])
    }
}

/// The inputs of a dataset, in addition to its settings.
#[derive(Debug, Clone, Copy)]
pub struct DatasetContext<'a> {
    /// Folders that may contain the data files.
    pub folders: &'a Folders,
    /// Seed of the run.
    pub seed: u64,
    /// Metadata columns: columns of the primary's table that the run needs in addition to features, label and
    /// keys, for example for the split. A dataset with unnamed columns refuses them.
    pub metadata: &'a [String],
}

impl SlotKind for dyn Dataset {
    const SLOT: &'static str = "data";
    type Context<'a> = DatasetContext<'a>;
}

inventory::collect!(Plugin<dyn Dataset>);

/// A provider of one labelled table, which a dataset may split among parties.
///
/// Law: the same settings and files give the same table; every cell is finite.
pub trait Source: Send + Sync {
    /// Returns the data files that the settings name, as they name them and in the order of the settings.
    fn files(&self) -> Vec<String>;

    /// Reads and checks the table.
    fn read(&self) -> Result<Labelled, DataError>;
}

/// One labelled table.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// The kind of label.
    pub task: Task,
    /// Number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// Features, [n, d].
    pub features: Matrix<f32>,
    /// Labels, n values.
    pub labels: Vec<f64>,
}

impl SlotKind for dyn Source {
    const SLOT: &'static str = "data.source";
    type Context<'a> = DatasetContext<'a>;
}

inventory::collect!(Plugin<dyn Source>);

/// Unusable data: the place and the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DataError {
    /// The file, with line and column if known, or the setting.
    pub place: String,
    /// The problem, and the remedy.
    pub problem: String,
}

impl DataError {
    /// Creates an error for `problem` at `place`.
    pub fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}
