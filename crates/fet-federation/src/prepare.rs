//! From raw tables to model inputs: each party prepares its own columns from its own records.
//!
//! The primary uses statistics of its training rows. A secondary has neither a split nor labels. It uses its
//! owner's declarations ([`Bounds`], [`fet_core::data::Columns`]), or else statistics of all of its records.
//! With such statistics every record influences every row, so that a secondary must not use them with a
//! privacy mechanism ([`by_statistics`]). [`crate::schedule`] chooses the training rows; linkage uses the raw
//! keys and happens elsewhere.

mod features;
mod reference;
mod refined;
mod scaler;

use fet_core::data::{
    Bounds, DataError, Features, Keys, Matrix, Metadata, PartyTable, Standardise, Task, VerticalData,
};
use fet_core::experiment::TrainSettings;
use fet_core::message::Parts;
use fet_core::objective::Objective;
use fet_tables::prepare::{Departure, Nouns};

use crate::release::OneTimeReleases;
use crate::schedule::Split;

pub use features::{FeaturePreparation, Preparing};
pub use reference::{Compared, Period, Reference};
pub use refined::RefinedKeys;
pub use scaler::{Scaler, Uniform};

/// A party's records as its model sees them, and their preparation.
#[derive(Debug, Clone)]
pub struct ScaledTable {
    /// The party's name.
    pub name: String,
    /// Keys, [n, m].
    pub keys: Matrix<f32>,
    /// Features, [n, d].
    pub features: Matrix<f32>,
    /// Preparation that produced these numbers.
    pub preparing: Preparing,
}

/// A party's side of a run: raw keys to link with, and scaled records.
#[derive(Debug, Clone)]
pub struct PreparedParty {
    /// Raw keys.
    pub raw_keys: Keys,
    /// Records as the model sees them.
    pub scaled: ScaledTable,
}

/// The primary's data.
#[derive(Debug, Clone)]
pub struct PrimaryData {
    /// Kind of prediction.
    pub task: Task,
    /// Number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// The primary's records.
    pub table: PartyTable,
    /// One label for each record: a number, or a class index.
    pub labels: Vec<f64>,
    /// Range of a regression's labels, if it is known; otherwise the range of the training labels is used.
    pub label_range: Option<[f64; 2]>,
    /// Standardisation of keys and features before models see them.
    pub standardise: Standardise,
    /// Split of each record.
    pub parts: Parts,
    /// Metadata columns of the records.
    pub metadata: Metadata,
    /// Releases whose columns the table includes.
    pub releases: OneTimeReleases,
}

/// The data that the primary's side of a run needs.
#[derive(Debug, Clone)]
pub struct PreparedPrimary {
    /// Loss and metric.
    pub objective: Objective,
    /// The primary's records.
    pub party: PreparedParty,
    /// Labels in their own unit.
    pub labels: Vec<f64>,
    /// Row of each record in the file, from 0; empty if the records have the order of the file.
    pub file_rows: Vec<usize>,
    /// Columns where validation and test rows differ from all training rows.
    pub departures: Vec<Departure>,
    /// Summary of the training rows.
    pub reference: Reference,
}

/// Nouns of warnings about a run's validation and test rows.
pub const HELD_OUT: Nouns = Nouns { fitted: "training row", rows: "validation and test rows" };
/// Nouns of warnings about new rows of the primary.
pub const NEW_ROWS: Nouns = Nouns { fitted: "training row", rows: "rows" };
/// Nouns of warnings about all rows of a run that begins with the model of an earlier run.
pub(crate) const ALL_ROWS: Nouns = Nouns { fitted: "training row of the earlier run", rows: "rows" };
/// Nouns of warnings about a secondary's records.
pub(crate) const RECORDS: Nouns = Nouns { fitted: "record of the training", rows: "records" };
/// Maximum number of columns with a warning each.
const MOST_WARNINGS: usize = 10;

/// Returns a warning for each column that departs, and one warning for all columns beyond the maximum. `row`
/// returns a row's number as the reader counts.
pub fn warnings(departures: &[Departure], nouns: Nouns, row: impl Fn(usize) -> usize) -> Vec<String> {
    let shown = departures.len().min(MOST_WARNINGS);
    let (shown, others) = departures.split_at(shown);
    let mut all: Vec<String> =
        shown.iter().map(|departure| departure.warning(nouns, row(departure.first))).collect();
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|departure| departure.column.as_str()).collect();
        all.push(format!(
            "{} further columns have {} with values that no {} had: {}",
            others.len(),
            nouns.rows,
            nouns.fitted,
            names.join(", ")
        ));
    }
    all
}

/// Separates the primary's data, split at random, from the secondaries' tables.
pub fn divide(data: VerticalData) -> (PrimaryData, Vec<PartyTable>) {
    let VerticalData { task, classes, primary: table, labels, secondaries, standardise, metadata } = data;
    let parts = Parts::default();
    (
        PrimaryData {
            task,
            classes,
            table,
            labels,
            label_range: None,
            standardise,
            parts,
            metadata,
            releases: OneTimeReleases::default(),
        },
        secondaries,
    )
}

impl PreparedPrimary {
    /// Scales the primary's records by the training rows of `split`, and refines its keys by these rows or hides
    /// them from its model if the settings require it. With an `earlier` model, the preparation and the prediction target are those
    /// of that model.
    pub fn new(
        data: PrimaryData,
        split: &Split,
        settings: &TrainSettings,
        earlier: Option<(&Preparing, Objective)>,
    ) -> Result<Self, DataError> {
        let held_out = [split.validation.as_slice(), &split.test].concat();
        let reference = Reference::new(&data.table, &split.train, settings.key_inputs);
        let (objective, party, departures) = match earlier {
            Some((preparing, objective)) => {
                let departures =
                    preparing.departures(&data.table, &[split.train.as_slice(), &held_out].concat());
                (objective, preparing.apply(data.table)?, departures)
            }
            None => {
                let objective = objective(&data, split)?;
                let preparing = Preparing::fit(&data.table, &split.train, data.standardise)?
                    .with_key_inputs(settings.key_inputs);
                let departures = preparing.departures(&data.table, &held_out);
                let mut party = preparing.apply(data.table)?;
                if settings.refine_keys {
                    party.refine_keys(&split.train)?;
                }
                (objective, party, departures)
            }
        };
        let file_rows = data.metadata.rows;
        Ok(Self { objective, party, labels: data.labels, file_rows, departures, reference })
    }
}

impl PreparedParty {
    /// Prepares a secondary's records ([`Preparing::of_all`]), with keys as inputs of its model or without them.
    pub fn of_all(table: PartyTable, standardise: Standardise, key_inputs: bool) -> Result<Self, DataError> {
        Preparing::of_all(&table, standardise)?.with_key_inputs(key_inputs).apply(table)
    }

    /// Replaces the keys for linkers by a regression of the keys on the columns, fitted on `rows`. Models
    /// still see the keys themselves.
    fn refine_keys(&mut self, rows: &[usize]) -> Result<(), DataError> {
        let Self { raw_keys, scaled } = self;
        let refined = RefinedKeys::fit(&scaled.name, raw_keys, &scaled.features, rows)?;
        *raw_keys = refined.predict(&scaled.features);
        scaled.preparing.refined = Some(refined);
        Ok(())
    }

    /// Replaces the features by others, prepared in the same way.
    pub fn replace_features(&mut self, features: Features) -> Result<(), DataError> {
        self.scaled.features = self.scaled.preparing.features.apply(&self.scaled.name, features)?;
        Ok(())
    }
}

/// Returns the part of a table, `keys` or `features`, that [`PreparedParty::of_all`] cannot scale by declared
/// ranges. Returns `None` if no record influences the scaling of another record.
pub fn by_statistics(table: &PartyTable, standardise: Standardise) -> Option<&'static str> {
    let sound = |bounds: &[[f64; 2]], columns: usize| {
        bounds.len() == columns && bounds.iter().all(|&bounds| Bounds::is_range(bounds))
    };
    let bounds = table.bounds.as_ref();
    let features = match &table.features {
        Features::Numbers(numbers) => {
            !standardise.features || bounds.is_some_and(|bounds| sound(&bounds.features, numbers.columns()))
        }
        Features::Columns(columns) => columns.rules.only_declared,
    };
    if !features {
        return Some("features");
    }
    // A text key needs no fitted scaling.
    let columns = table.keys.numbers().map_or(0, Matrix::columns);
    let keys = match bounds {
        None => !standardise.keys,
        Some(bounds) => !standardise.keys || columns == 0 || sound(&bounds.keys, columns),
    };
    (!keys).then_some("keys")
}

fn objective(data: &PrimaryData, split: &Split) -> Result<Objective, DataError> {
    let outputs = if data.task == Task::Multiclass { data.classes } else { 1 };
    let labels = split.train.iter().map(|&row| data.labels[row]);
    let (low, high) = labels.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
    let (low, high) = data.label_range.map_or((low, high), |[low, high]| (low, high));
    if low >= high {
        let only = data.metadata.class_names.get(low as usize).cloned().unwrap_or_else(|| low.to_string());
        let problem = format!("all training labels are {only}: a model cannot learn from them");
        return Err(DataError::new(format!("data of {}", data.table.name), problem));
    }
    Ok(Objective { task: data.task, outputs, minimum: low, range: high - low })
}

/// Warns of classes without a training row: the model cannot learn such a class.
pub(crate) fn missing_classes(
    labels: &[f64],
    names: &[String],
    objective: &Objective,
    split: &Split,
) -> Vec<String> {
    if objective.task != Task::Multiclass {
        return Vec::new();
    }
    let mut seen = vec![false; objective.outputs];
    split.train.iter().for_each(|&row| seen[labels[row] as usize] = true);
    let called = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
    let missing: Vec<_> = (0..objective.outputs).filter(|&class| !seen[class]).map(called).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "no training row has class {}: the model has not learned its probability, so a prediction of it is a guess",
        missing.join(", ")
    )]
}

/// Number of columns that a model sees of a text key; see [`for_model`].
pub const TEXT_KEY_COLUMNS: usize = 16;

/// Returns m, the number of columns that a model sees of a party's own keys.
pub fn key_columns(keys: &Keys) -> usize {
    match keys {
        Keys::Numbers(keys) => keys.columns(),
        Keys::Text(_) | Keys::Sealed(_) => TEXT_KEY_COLUMNS,
    }
}

/// Returns a party's own keys as its own model sees them, [n, m].
///
/// Numbers are unchanged. A text becomes [`TEXT_KEY_COLUMNS`] numbers: a projection of the q-grams of its
/// fields by fixed random signs. Texts that share q-grams are therefore close, within a party's table and
/// across parties. A positional encoding and a dynamic mask need this property.
///
/// Returns `None` for sealed keys: a linker sends such keys, and a party's own keys are never sealed.
pub fn for_model(keys: &Keys) -> Option<Matrix<f64>> {
    match keys {
        Keys::Numbers(keys) => Some(keys.clone()),
        Keys::Text(keys) => {
            let sketch = fet_linkage::text::sketch(&keys.cells(), keys.columns(), TEXT_KEY_COLUMNS);
            Some(Matrix::new(TEXT_KEY_COLUMNS, sketch))
        }
        Keys::Sealed(_) => None,
    }
}

fn own_keys(table: &PartyTable) -> Result<Matrix<f64>, DataError> {
    let sealed = || {
        let problem = "keys must be numbers or texts; a linker sealed these keys, as only messages have them";
        DataError::new(format!("data of {}", table.name), problem)
    };
    for_model(&table.keys).ok_or_else(sealed)
}
