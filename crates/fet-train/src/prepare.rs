//! From raw tables to model inputs: each party scales its own columns by statistics of its own records.
//!
//! The primary scales by its training rows. A secondary has no such split and no labels: it scales by the ranges that it
//! declares ([`Bounds`]), or by statistics of all of its records. The latter give every record a say in every row, so that
//! a secondary must not use them beside a privacy mechanism ([`by_statistics`]). The training rows are chosen in [`crate::schedule`]; linkage happens elsewhere, on raw keys.

mod scaler;

use fet_core::data::{Bounds, DataError, Keys, Matrix, PartyTable, Standardise, Task, VerticalData};
use fet_core::objective::Objective;

use crate::schedule::Split;

pub use scaler::{Scaler, Uniform};

/// A party's records as its model sees them, and their scaling.
#[derive(Debug, Clone)]
pub struct ScaledTable {
    /// The party's name.
    pub name: String,
    /// Keys, [n, m].
    pub keys: Matrix<f32>,
    /// Features, [n, d].
    pub features: Matrix<f32>,
    /// The scaling of keys; `None` if models see them unscaled.
    pub key_scaler: Option<Scaler>,
    /// The scaling of features.
    pub feature_scaler: Option<Scaler>,
}

/// A party's side of a run: raw keys to link with, and scaled records.
#[derive(Debug, Clone)]
pub struct PreparedParty {
    /// Raw keys.
    pub raw_keys: Keys,
    /// What the model sees.
    pub scaled: ScaledTable,
}

/// The primary's data.
#[derive(Debug, Clone)]
pub struct PrimaryData {
    /// The kind of prediction.
    pub task: Task,
    /// The number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// Its records.
    pub table: PartyTable,
    /// One label for each record: a number, or a class index.
    pub labels: Vec<f32>,
    /// The range of a regression's labels, if it is known; otherwise that of the training rows.
    pub label_range: Option<[f64; 2]>,
    /// Which parts are standardised before models see them.
    pub standardise: Standardise,
}

/// The data that the primary's side of a run needs.
#[derive(Debug, Clone)]
pub struct PreparedPrimary {
    /// Loss and metric.
    pub objective: Objective,
    /// Its records.
    pub party: PreparedParty,
    /// Labels in their own unit.
    pub labels: Vec<f32>,
}

/// Separates the primary's data from the secondaries' tables.
pub fn divide(data: VerticalData) -> (PrimaryData, Vec<PartyTable>) {
    let VerticalData { task, classes, primary, labels, secondaries, standardise } = data;
    (PrimaryData { task, classes, table: primary, labels, label_range: None, standardise }, secondaries)
}

impl PreparedPrimary {
    /// Scales the primary's records by the training rows of `split`.
    pub fn new(data: PrimaryData, split: &Split) -> Result<Self, DataError> {
        let objective = objective(&data, split)?;
        let party = PreparedParty::new(data.table, &split.train, data.standardise)?;
        Ok(Self { objective, party, labels: data.labels })
    }
}

impl PreparedParty {
    /// Scales a party's records by the statistics of `rows`.
    pub fn new(table: PartyTable, rows: &[usize], standardise: Standardise) -> Result<Self, DataError> {
        let keys = own_keys(&table)?;
        let key_scaler = standardise.keys.then(|| Scaler::fit(&keys, rows));
        let feature_scaler = standardise.features.then(|| Scaler::fit(&table.features, rows));
        Ok(Self::scaled_by(table, keys, key_scaler, feature_scaler))
    }

    /// Scales new records as these were scaled.
    pub fn like(&self, table: PartyTable) -> Result<Self, DataError> {
        let ScaledTable { key_scaler, feature_scaler, .. } = &self.scaled;
        let keys = own_keys(&table)?;
        Ok(Self::scaled_by(table, keys, key_scaler.clone(), feature_scaler.clone()))
    }

    fn scaled_by(
        table: PartyTable,
        mut keys: Matrix<f64>,
        key_scaler: Option<Scaler>,
        feature_scaler: Option<Scaler>,
    ) -> Self {
        let mut features = table.features;
        if let Some(scaler) = &key_scaler {
            scaler.apply(&mut keys);
        }
        if let Some(scaler) = &feature_scaler {
            scaler.apply(&mut features);
        }
        let keys = Matrix::new(keys.columns(), keys.values().iter().map(|&x| x as f32).collect());
        let scaled = ScaledTable { name: table.name, keys, features, key_scaler, feature_scaler };
        Self { raw_keys: table.keys, scaled }
    }

    /// Puts other features in the place of these, scaled as these were.
    pub fn replace_features(&mut self, mut features: Matrix<f32>) {
        if let Some(scaler) = &self.scaled.feature_scaler {
            scaler.apply(&mut features);
        }
        self.scaled.features = features;
    }

    /// Scales a secondary's records by its declared ranges, or by the statistics of all records where it declares none.
    ///
    /// A text key beside declared ranges is left as it is: its columns have deviation 1 by construction ([`for_model`]).
    pub fn of_all(table: PartyTable, standardise: Standardise) -> Result<Self, DataError> {
        let Some(bounds) = &table.bounds else {
            let rows: Vec<usize> = (0..table.rows()).collect();
            return Self::new(table, &rows, standardise);
        };
        let numbers = table.keys.numbers().is_some();
        let key_scaler = (standardise.keys && numbers).then(|| Scaler::within(&bounds.keys));
        let feature_scaler = standardise.features.then(|| Scaler::within(&bounds.features));
        let keys = own_keys(&table)?;
        Ok(Self::scaled_by(table, keys, key_scaler, feature_scaler))
    }
}

/// The part of a table, `keys` or `features`, that [`PreparedParty::of_all`] cannot scale by declared ranges: nothing where
/// no record has a say in how another is scaled.
pub fn by_statistics(table: &PartyTable, standardise: Standardise) -> Option<&'static str> {
    let Some(Bounds { keys, features }) = &table.bounds else {
        return match standardise {
            Standardise { features: true, .. } => Some("features"),
            Standardise { keys: true, .. } => Some("keys"),
            Standardise { .. } => None,
        };
    };
    let sound = |bounds: &[[f64; 2]], columns: usize| {
        bounds.len() == columns && bounds.iter().all(|&bounds| Bounds::is_range(bounds))
    };
    if standardise.features && !sound(features, table.features.columns()) {
        return Some("features");
    }
    let columns = table.keys.numbers().map_or(0, Matrix::columns);
    (standardise.keys && columns > 0 && !sound(keys, columns)).then_some("keys")
}

fn objective(data: &PrimaryData, split: &Split) -> Result<Objective, DataError> {
    let outputs = if data.task == Task::Multiclass { data.classes } else { 1 };
    let labels = split.train.iter().map(|&row| f64::from(data.labels[row]));
    let (low, high) = labels.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
    let (low, high) = data.label_range.map_or((low, high), |[low, high]| (low, high));
    if low >= high {
        let problem = format!("all training labels are {low}: there is nothing to learn");
        return Err(DataError::new(format!("data of {}", data.table.name), problem));
    }
    Ok(Objective { task: data.task, outputs, minimum: low, range: high - low })
}

/// Warns of classes that no training row has, which the model cannot learn.
pub(crate) fn missing_classes(labels: &[f32], objective: &Objective, split: &Split) -> Vec<String> {
    if objective.task != Task::Multiclass {
        return Vec::new();
    }
    let mut seen = vec![false; objective.outputs];
    split.train.iter().for_each(|&row| seen[labels[row] as usize] = true);
    let missing: Vec<_> =
        (0..objective.outputs).filter(|&class| !seen[class]).map(|c| c.to_string()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!("no training row is of class {}: it will never be predicted", missing.join(", "))]
}

/// The number of columns that a model sees of a text key; see [`for_model`].
pub const TEXT_KEY_COLUMNS: usize = 16;

/// m, the number of columns that a model sees of a party's own keys.
pub fn key_columns(keys: &Keys) -> usize {
    match keys {
        Keys::Numbers(keys) => keys.columns(),
        Keys::Text(_) | Keys::Sealed(_) => TEXT_KEY_COLUMNS,
    }
}

/// A party's own keys as its own model sees them, [n, m].
///
/// Numbers are unchanged. A text becomes [`TEXT_KEY_COLUMNS`] numbers: a projection of the q-grams of its fields by
/// fixed random signs, so that texts that share q-grams are close, within a party's table and across parties. A
/// positional encoding and a dynamic mask need this property.
/// Nothing for sealed keys: they are what a linker sends, and no party's own.
pub fn for_model(keys: &Keys) -> Option<Matrix<f64>> {
    match keys {
        Keys::Numbers(keys) => Some(keys.clone()),
        Keys::Text(keys) => {
            let sketch = fet_linkage::text::sketch(keys.cells(), keys.columns(), TEXT_KEY_COLUMNS);
            Some(Matrix::new(TEXT_KEY_COLUMNS, sketch))
        }
        Keys::Sealed(_) => None,
    }
}

fn own_keys(table: &PartyTable) -> Result<Matrix<f64>, DataError> {
    let sealed = || {
        let problem =
            "keys must be numbers or texts; these are sealed by a linker, as only messages have them";
        DataError::new(format!("data of {}", table.name), problem)
    };
    for_model(&table.keys).ok_or_else(sealed)
}
