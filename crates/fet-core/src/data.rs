//! The vocabulary of data: tables of parties, tasks, and the slots that provide them: `Dataset` (what all
//! parties hold) and `Source` (one labelled table).
//!
//! Readers and splitters live in `fet-data`, typed columns in `fet-tables`; preparation for a model and the
//! train/validation/test split are in `fet-federation`.
//! Nothing here reads a file.

mod columns;
mod forms;
mod keys;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fet_tables::{Kind, Options, Table, TableError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::registry::{Plugin, SlotKind};

pub use columns::{Columns, Features};
pub use fet_tables::{Column, DateOrder, Decided, Decimal};
pub use forms::{Comparison, Form, number};
pub use keys::{KeyKind, Keys, Sealed, TextTable};

/// A dense table, row by row.
#[derive(Clone, PartialEq)]
pub struct Matrix<T> {
    columns: usize,
    values: Vec<T>,
}

impl<T: Copy> Matrix<T> {
    /// A table of `values.len() / columns` rows.
    ///
    /// # Panics
    /// If the values do not fill whole rows: the caller made the table.
    pub fn new(columns: usize, values: Vec<T>) -> Self {
        let whole = if columns == 0 { values.is_empty() } else { values.len().is_multiple_of(columns) };
        assert!(whole, "{} values do not fill rows of {columns}", values.len());
        Self { columns, values }
    }

    /// The number of rows; 0 for a table without columns.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, index: usize) -> &[T] {
        &self.values[index * self.columns..(index + 1) * self.columns]
    }

    /// All values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, mutable.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The named rows, in the order given.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        Self { columns: self.columns, values }
    }

    /// The named columns, in the order given.
    #[must_use]
    pub fn select_columns(&self, columns: &[usize]) -> Self {
        let values = (0..self.rows()).flat_map(|r| columns.iter().map(move |&c| self.row(r)[c])).collect();
        Self { columns: columns.len(), values }
    }
}

/// Shows the shape, never the values: a table belongs to one party.
impl<T: Copy> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix[{} x {}]", self.rows(), self.columns)
    }
}

/// What is predicted.
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
    /// Fuzzy identifiers, raw.
    pub keys: Keys,
    /// Features, raw; without the keys.
    pub features: Features,
    /// The ranges of its keys and of features that are numbers, if its owner declares them; typed columns have what is
    /// declared of them in their rules. They are the party's own and are never sent.
    pub bounds: Option<Bounds>,
}

/// Ranges of a table's columns that its owner declares from public knowledge; no record may have a say in them. A secondary
/// that declares them scales its columns by them, and by nothing that follows from its records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// Of each key column; empty if keys are texts, or models see them as they are.
    pub keys: Vec<[f64; 2]>,
    /// Of each feature.
    pub features: Vec<[f64; 2]>,
}

impl Bounds {
    /// Whether a pair is a range: finite, the lower end below the upper.
    pub fn is_range([low, high]: [f64; 2]) -> bool {
        low.is_finite() && high.is_finite() && low < high
    }
}

impl PartyTable {
    /// The number of records.
    pub fn rows(&self) -> usize {
        self.keys.rows()
    }

    /// What the reader decided of its columns, or could not decide: for the owner of the table.
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
    /// What is predicted.
    pub task: Task,
    /// The number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// The party with the labels.
    pub primary: PartyTable,
    /// One label for each primary record: a number, or a class index.
    pub labels: Vec<f64>,
    /// The other parties.
    pub secondaries: Vec<PartyTable>,
    /// What is standardised before models see it; linkage always uses raw keys.
    pub standardise: Standardise,
    /// What else is known of the primary's records.
    pub aside: Aside,
}

/// What is known of the primary's records beside keys, features and labels; nothing by default.
#[derive(Clone, Default)]
pub struct Aside {
    /// Which row of its file each record is, from 0; empty if each stands where it stood.
    pub rows: Vec<usize>,
    /// What the classes are called, in their order; empty where they are numbers, and for a regression.
    pub class_names: Vec<String>,
    /// The columns that were asked for ([`DatasetContext::aside`]), one value for each record.
    pub columns: Vec<Column>,
}

/// Shows the columns' names, never the values.
impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        write!(f, "Aside(classes {:?}, columns {names:?})", self.class_names)
    }
}

/// What each party standardises of its own columns before models see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standardise {
    /// Keys.
    pub keys: bool,
    /// Features; false only for tables that are standardised already.
    pub features: bool,
}

impl Standardise {
    /// Keys and features.
    pub const ALL: Self = Self { keys: true, features: true };
}

/// Something that provides the parties' tables.
///
/// Law: the same settings and seed give the same tables.
pub trait Dataset: Send + Sync {
    /// Returns the data files that the settings name, as they name them and in the order of the settings; without those of parties
    /// whose tables are elsewhere. A run reports missing files, never overwrites them, and depends on their content.
    fn files(&self) -> Vec<String>;

    /// Returns true if every party cuts its table out of one table that all parties have, as in an experiment on public data; false if
    /// each party has a table of its own.
    fn is_shared(&self) -> bool {
        true
    }

    /// Reads and checks the tables. Keys, labels and plain numbers are finite; a cell of a typed column may be missing.
    fn load(&self) -> Result<VerticalData, DataError>;

    /// The secondaries' tables alone.
    fn secondaries(&self) -> Result<Vec<PartyTable>, DataError> {
        Ok(self.load()?.secondaries)
    }

    /// What the primary has alone, without the secondaries' tables, and what these are called, in their order: in a federation of
    /// several machines it has no more.
    fn primary(&self) -> Result<(VerticalData, Vec<String>), DataError> {
        let mut data = self.load()?;
        let names = data.secondaries.drain(..).map(|table| table.name).collect();
        Ok((data, names))
    }

    /// The table of one secondary, from 0.
    fn secondary(&self, index: usize) -> Result<PartyTable, DataError> {
        let mut tables = self.secondaries()?;
        if index >= tables.len() {
            let problem = format!("has {} secondaries; there is none of number {}", tables.len(), index + 1);
            return Err(DataError::new("`data`", problem));
        }
        Ok(tables.swap_remove(index))
    }

    /// Whether the primary's records are drawn from its table, so that they stand in another order than the secondaries' records.
    fn draws_records(&self) -> bool {
        false
    }

    /// New records of the primary, out of a table that has its columns of keys and features; of these `kinds` says what they
    /// are. `read` reads it as it is asked to; errors call it `name`.
    fn records(
        &self,
        _name: &str,
        _kinds: &BTreeMap<String, Kind>,
        _read: &Reading<'_>,
    ) -> Result<PartyTable, DataError> {
        let problem =
            "has no file of the primary that a table of new records could be laid out as; use \"linked\"";
        Err(DataError::new("`data.kind`", problem))
    }
}

/// Reads a table of new records as it is asked to.
pub type Reading<'a> = dyn Fn(&Options) -> Result<Table, TableError> + 'a;

/// The folders in which data files are looked for, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// These folders; the same twice is once.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut all: Vec<PathBuf> = Vec::new();
        for folder in folders {
            if !all.contains(&folder) {
                all.push(folder);
            }
        }
        Self(all)
    }

    /// Where a file of this name, or folder, is: in the first folder that has it; as it is named where it is absolute. If no
    /// folder has it, where it would be in the last.
    pub fn find(&self, name: impl AsRef<Path>) -> PathBuf {
        let mut places = self.0.iter().map(|folder| folder.join(&name));
        let last = self.0.last().map_or_else(|| name.as_ref().to_path_buf(), |folder| folder.join(&name));
        places.find(|place| place.exists()).unwrap_or(last)
    }

    /// The folders.
    pub fn all(&self) -> &[PathBuf] {
        &self.0
    }
}

impl From<&Path> for Folders {
    fn from(folder: &Path) -> Self {
        Self(vec![folder.to_path_buf()])
    }
}

/// The inputs of a dataset besides its settings.
#[derive(Debug, Clone, Copy)]
pub struct DatasetContext<'a> {
    /// Where its files are looked for.
    pub folders: &'a Folders,
    /// The seed of the run.
    pub seed: u64,
    /// Columns of the primary's table that the run needs beside features, label and keys: a split goes by one. A dataset
    /// whose columns have no names refuses them.
    pub aside: &'a [String],
}

impl SlotKind for dyn Dataset {
    const SLOT: &'static str = "data";
    type Context<'a> = DatasetContext<'a>;
}

inventory::collect!(Plugin<dyn Dataset>);

/// Something that provides one labelled table, which a dataset may split among parties.
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
    /// What is predicted.
    pub task: Task,
    /// The number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// [n, d].
    pub features: Matrix<f32>,
    /// n labels.
    pub labels: Vec<f64>,
}

impl SlotKind for dyn Source {
    const SLOT: &'static str = "data.source";
    type Context<'a> = DatasetContext<'a>;
}

inventory::collect!(Plugin<dyn Source>);

/// Unusable data: where, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DataError {
    /// The file, with line and column where known, or the setting.
    pub place: String,
    /// What is wrong and what to do.
    pub problem: String,
}

impl DataError {
    /// `problem` at `place`.
    pub fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}
