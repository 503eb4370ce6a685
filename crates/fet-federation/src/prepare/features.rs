//! Preparation of a party's own columns as numbers for its model. It is stored, so that new records are
//! prepared in the same way.

use std::collections::BTreeMap;

use fet_core::data::{Bounds, DataError, Features, Form, Keys, Matrix, PartyTable, Standardise, TextTable};
use fet_tables::prepare::{Change, Departure, FittedRange, Preparation};
use fet_tables::{Kind, TableError};
use serde::{Deserialize, Serialize};

use super::refined::RefinedKeys;
use super::scaler::{Scaler, Value, ranges};
use super::{PreparedParty, ScaledTable, own_keys};

/// Preparation of a party's records for its model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparing {
    /// Scaling of keys; `None` if models see unscaled keys.
    pub keys: Option<Scaler>,
    /// Range of each numeric key column, to recognise keys far from all fitted keys. It is empty for texts,
    /// and for a secondary's keys that are neither scaled nor declared. No prepared number depends on it.
    pub key_ranges: Vec<FittedRange>,
    /// Preparation of features.
    pub features: FeaturePreparation,
    /// Refined keys, which a primary links instead of its recorded keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refined: Option<RefinedKeys>,
    /// The linker's estimate from the run's keys, of a secondary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linking: Option<f64>,
    /// Range of the similarities of the training rows' best links, of a secondary whose linker returns
    /// similarities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarities: Option<FittedRange>,
    /// True if models see zeros in place of the keys, so that keys only link records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keys_hidden: bool,
    /// Forms of text key columns, which the run's keys decided: the keys of new records are compared in the
    /// same forms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<Form>,
}

/// Returns the forms that these keys decide; numeric keys have none.
fn forms(keys: &Keys) -> Vec<Form> {
    keys.text().map(TextTable::forms).unwrap_or_default()
}

impl Preparing {
    /// Fits the preparation to the statistics of `rows`.
    pub fn fit(table: &PartyTable, rows: &[usize], standardise: Standardise) -> Result<Self, DataError> {
        let keys = if standardise.keys { Some(Scaler::fit(&own_keys(table)?, rows)) } else { None };
        Ok(Self {
            keys,
            key_ranges: table.keys.numbers().map_or_else(Vec::new, |keys| ranges(keys, rows)),
            features: FeaturePreparation::fit(table, rows, standardise.features)?,
            refined: None,
            linking: None,
            similarities: None,
            keys_hidden: false,
            forms: forms(&table.keys),
        })
    }

    /// Makes a secondary's preparation from its owner's declarations, or from the statistics of all records
    /// without declarations.
    ///
    /// A text key stays unscaled if ranges are declared: its columns have standard deviation 1 by
    /// construction ([`for_model`]).
    ///
    /// [`for_model`]: super::for_model
    pub fn of_all(table: &PartyTable, standardise: Standardise) -> Result<Self, DataError> {
        let Some(bounds) = &table.bounds else {
            let rows: Vec<usize> = (0..table.rows()).collect();
            let mut fitted = Self::fit(table, &rows, standardise)?;
            if !standardise.keys {
                fitted.key_ranges.clear();
            }
            return Ok(fitted);
        };
        let numbers = table.keys.numbers().is_some();
        let keys = (standardise.keys && numbers).then(|| Scaler::within(&bounds.keys));
        Ok(Self {
            keys,
            key_ranges: bounds.keys.iter().map(|&range| FittedRange::declared(range)).collect(),
            features: FeaturePreparation::declared(table, bounds, standardise.features)?,
            refined: None,
            linking: None,
            similarities: None,
            keys_hidden: false,
            forms: forms(&table.keys),
        })
    }

    /// Returns the preparation with keys as inputs of models, or with zeros in their place.
    #[must_use]
    pub fn with_key_inputs(self, key_inputs: bool) -> Self {
        Self { keys_hidden: !key_inputs, ..self }
    }

    /// Returns the columns where some of these rows differ from all fitted rows, or from the declaration. Keys that
    /// no model sees do not count.
    pub fn departures(&self, table: &PartyTable, rows: &[usize]) -> Vec<Departure> {
        let mut found = match &table.keys {
            Keys::Numbers(keys) if !self.keys_hidden => {
                outside(keys, &self.key_ranges, rows, |column| format!("key column {}", column + 1))
            }
            Keys::Numbers(_) | Keys::Text(_) | Keys::Sealed(_) => Vec::new(),
        };
        found.extend(match (&self.features, &table.features) {
            (FeaturePreparation::Columns(preparation), Features::Columns(columns)) => {
                preparation.departures(&columns.table, rows)
            }
            (FeaturePreparation::Scaled(scaler), Features::Numbers(numbers)) => {
                outside(numbers, scaler.ranges(), rows, |column| format!("column {}", column + 1))
            }
            _ => Vec::new(),
        });
        found
    }

    /// Prepares the records of a table, which may differ from the fitted table.
    pub fn apply(&self, table: PartyTable) -> Result<PreparedParty, DataError> {
        let mut keys = own_keys(&table)?;
        let features = self.features.apply(&table.name, table.features)?;
        if let Some(scaler) = &self.keys {
            if scaler.columns() != keys.columns() {
                let problem =
                    format!("must have {} key columns; it has {}", scaler.columns(), keys.columns());
                return Err(DataError::new(place(&table.name), problem));
            }
            scaler.apply(&mut keys);
        }
        let seen = |&key: &f64| if self.keys_hidden { 0.0 } else { key as f32 };
        let keys = Matrix::new(keys.columns(), keys.values().iter().map(seen).collect());
        let raw_keys = match (&self.refined, table.keys) {
            (Some(refined), _) => refined.predict(&features),
            (None, Keys::Text(keys)) => Keys::Text(keys.with_forms(self.forms.clone())),
            (None, keys) => keys,
        };
        let scaled = ScaledTable { name: table.name, keys, features, preparing: self.clone() };
        Ok(PreparedParty { raw_keys, scaled })
    }
}

/// Preparation of a party's own columns as numbers for its model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturePreparation {
    /// Numbers stay unchanged.
    AsTheyAre,
    /// Numbers are scaled.
    Scaled(Scaler),
    /// Typed columns become numbers.
    Columns(Preparation),
}

impl FeaturePreparation {
    /// Fits the preparation to the statistics of `rows`; numbers stay unchanged without `standardise`.
    pub(super) fn fit(table: &PartyTable, rows: &[usize], standardise: bool) -> Result<Self, DataError> {
        Ok(match &table.features {
            Features::Numbers(_) if !standardise => Self::AsTheyAre,
            Features::Numbers(numbers) => Self::Scaled(Scaler::fit(numbers, rows)),
            Features::Columns(columns) => {
                let fitted = Preparation::fit(&columns.table, rows, &columns.rules);
                Self::Columns(fitted.map_err(|error| refused(&table.name, error))?)
            }
        })
    }

    /// Makes the preparation from the owner's declarations.
    pub(super) fn declared(
        table: &PartyTable,
        bounds: &Bounds,
        standardise: bool,
    ) -> Result<Self, DataError> {
        match &table.features {
            Features::Numbers(_) if standardise => Ok(Self::Scaled(Scaler::within(&bounds.features))),
            _ => Self::fit(table, &[], false),
        }
    }

    /// Returns the numbers of these features, [rows, width].
    pub(super) fn apply(&self, party: &str, features: Features) -> Result<Matrix<f32>, DataError> {
        match (self, features) {
            (Self::AsTheyAre, Features::Numbers(numbers)) => Ok(numbers),
            (Self::Scaled(scaler), Features::Numbers(mut numbers)) => {
                if numbers.columns() != scaler.columns() {
                    let problem =
                        format!("must have {} columns; it has {}", scaler.columns(), numbers.columns());
                    return Err(DataError::new(place(party), problem));
                }
                scaler.apply(&mut numbers);
                Ok(numbers)
            }
            (Self::Columns(preparation), Features::Columns(columns)) => {
                let values = preparation.apply(&columns.table).map_err(|error| refused(party, error))?;
                Ok(Matrix::new(preparation.width(), values))
            }
            (Self::Columns(_), Features::Numbers(_)) => {
                Err(DataError::new(place(party), "must have typed columns, like the earlier records"))
            }
            (_, Features::Columns(_)) => {
                Err(DataError::new(place(party), "must have only numbers, like the earlier records"))
            }
        }
    }

    /// Returns the number of values that the model sees of a record with `columns` columns.
    pub fn width(&self, columns: usize) -> usize {
        match self {
            Self::Columns(preparation) => preparation.width(),
            Self::AsTheyAre | Self::Scaled(_) => columns,
        }
    }

    /// Returns the kinds of the columns, for reading new records; empty for numbers without names.
    pub fn kinds(&self) -> BTreeMap<String, Kind> {
        match self {
            Self::Columns(preparation) => preparation.kinds(),
            Self::AsTheyAre | Self::Scaled(_) => BTreeMap::new(),
        }
    }

    /// Returns the columns with the same value in all fitted rows, each with that value if it is known. A
    /// column without a name is called by its number, from 1.
    pub fn constants(&self) -> Vec<(String, Option<String>)> {
        match self {
            Self::AsTheyAre => Vec::new(),
            Self::Columns(preparation) => {
                let named = preparation.constants().into_iter();
                named.map(|(name, value)| (name.to_string(), value)).collect()
            }
            Self::Scaled(scaler) => {
                let columns = scaler.ranges().iter().zip(1..).filter(|(range, _)| range.is_constant());
                columns
                    .map(|(range, column)| (column.to_string(), Some(range.ends()[0].to_string())))
                    .collect()
            }
        }
    }

    /// Returns the names of the numbers; `None` if the columns lack names.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::Columns(preparation) => Some(preparation.names()),
            Self::AsTheyAre | Self::Scaled(_) => None,
        }
    }
}

/// Returns the numeric columns where some of these rows are outside the ranges.
fn outside<T: Value>(
    table: &Matrix<T>,
    ranges: &[FittedRange],
    rows: &[usize],
    name: impl Fn(usize) -> String,
) -> Vec<Departure> {
    let column = |(column, range): (usize, &FittedRange)| {
        let differing = rows.iter().copied().filter(|&row| !range.has(table.row(row)[column].into()));
        let differing: Vec<usize> = differing.collect();
        let first = *differing.first()?;
        let ends = range.ends().map(|end| end.to_string());
        let change = match range.is_constant() {
            true => Change::Constant { was: Some(ends[0].clone()) },
            false => Change::Range { ends, declared: range.is_declared() },
        };
        let (count, of) = (differing.len(), rows.len());
        Some(Departure { column: name(column), change, rows: count, of, all: count == of, first })
    };
    ranges.iter().enumerate().take(table.columns()).filter_map(column).collect()
}

fn place(party: &str) -> String {
    format!("data of {party}")
}

fn refused(party: &str, error: TableError) -> DataError {
    let text = error.to_string();
    DataError::new(place(party), text.strip_prefix("the table ").unwrap_or(&text))
}
