//! Converts typed columns to numbers for a model. A preparation is fitted once, on the permitted rows, and
//! does not change afterwards.
//!
//! A number is scaled, with the mean for missing cells and an indicator column for them. A category becomes
//! one column for each of its values, or hashed columns if it has many values. A date becomes an age and a
//! position in year, week and day. A text becomes hashed words. All computations use double precision, with
//! one rounding at the end.
//!
//! A model has learned nothing about values that no fitted row had. A column with a single fitted value
//! becomes zeros, whatever its later values are. Other values are clamped to at most one standard deviation
//! below the least or above the greatest fitted value ([`FittedRange`]). [`Preparation::departures`] counts
//! such cells.
//!
//! Fitted statistics depend on records, so that one record can affect every row. A party that must prevent
//! this ([`Rules::only_declared`]) prepares columns by its owner's declarations from public knowledge. Each
//! prepared row then depends only on its own record.

mod column;
mod date;
mod departures;
mod fitted;
mod known;
mod number;
mod range;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::TableError;
use crate::options::Kind;
use crate::table::{Table, Values};
use crate::written::Decimal;

use self::column::{Cells, How, Prepared};
pub use self::departures::{Change, Departure, Nouns};
pub use self::range::FittedRange;
pub use self::rules::{Declared, Rules, Scaling};

/// Fitted preparation of columns. It can be saved, and prepares other tables in the same way as the table
/// that it was fitted on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    columns: Vec<Prepared>,
    /// Formats of dates and amounts that the reader found, by column. Other tables are read with the same
    /// formats.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    forms: BTreeMap<String, Kind>,
    /// Styles of dates and amounts that the reader found, by column. They show cells of other tables in another unit or without a zone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    styles: BTreeMap<String, BTreeSet<String>>,
}

impl Preparation {
    /// Fits the columns of `table` to the given rows.
    ///
    /// # Errors
    /// Fails if a row exceeds the last row, if a column lacks values in these rows, or if a declaration does
    /// not match its column. Also fails if the preparation must not depend on records and a number, date or
    /// category lacks a declaration.
    pub fn fit(table: &Table, rows: &[usize], rules: &Rules) -> Result<Self, TableError> {
        if let Some(past) = rows.iter().find(|row| **row >= table.rows) {
            return Err(TableError::Absent(format!(
                "has {} rows; row {past} (from 0) does not exist",
                table.rows
            )));
        }
        if let Some(name) = rules.declared.keys().find(|name| table.column(name).is_err()) {
            table.column(name)?;
        }
        for name in &rules.clip {
            let problem = match rules.scaling {
                _ if rules.declared.contains_key(name) => "has a declared range, which clips it",
                Scaling::Robust => "is clipped already by the scaling `robust`",
                Scaling::None => "is not scaled (`scaling = \"none\"`) and therefore not clipped",
                Scaling::Standard => "",
            };
            if !problem.is_empty() {
                return Err(TableError::Absent(format!(
                    "cannot clip `{name}`: it {problem}; remove it from `clip`"
                )));
            }
            if !matches!(table.column(name)?.values, Values::Number(_) | Values::Date(_)) {
                return Err(TableError::Absent(format!(
                    "lacks numbers or dates in `{name}`, which `clip` names"
                )));
            }
        }
        let columns: Vec<_> =
            table.columns.par_iter().map(|column| fitted::fit(column, rows, rules)).collect();
        let styles = table.styles.iter();
        let styles = styles.map(|(name, styles)| (name.clone(), styles.keys().cloned().collect())).collect();
        let columns = columns.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { columns, forms: table.forms.clone(), styles })
    }

    /// Returns the kinds of the columns, for reading another table. A category stays a category, whatever its
    /// new cells are.
    pub fn kinds(&self) -> BTreeMap<String, Kind> {
        let kind = |how: &How| match how {
            How::Number(_) => Kind::Number,
            How::OneHot { .. } | How::Hashed { words: false, .. } => Kind::Category,
            How::Hashed { words: true, .. } => Kind::Text,
            How::Date(_) => Kind::Date { format: None },
        };
        let kind =
            |column: &Prepared| self.forms.get(&column.name).cloned().unwrap_or_else(|| kind(&column.how));
        let prepared = self.columns.iter().map(|column| (column.name.clone(), kind(column)));
        self.forms.clone().into_iter().chain(prepared).collect()
    }

    /// Returns the columns by name, each with the names of its outputs.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.columns.iter().map(|column| (column.name.as_str(), column.names()))
    }

    /// Returns the names of the prepared columns, in order.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().flat_map(Prepared::names).collect()
    }

    /// Returns the number of columns that the model sees.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Prepared::width).sum()
    }

    /// Prepares the rows of a table, [n, width], row by row. The table may have additional columns, in any
    /// order.
    ///
    /// # Errors
    /// Fails if a column is missing or has another kind.
    pub fn apply(&self, table: &Table) -> Result<Vec<f32>, TableError> {
        self.check_forms(table)?;
        let columns: Vec<(&Prepared, Cells<'_>)> = self
            .columns
            .iter()
            .map(|prepared| Ok((prepared, Cells::new(prepared, table.column(&prepared.name)?)?)))
            .collect::<Result<_, TableError>>()?;
        let width = self.width();
        let mut all = vec![0.0f32; table.rows * width];
        all.par_chunks_mut(width.max(1)).enumerate().with_min_len(1024).for_each(|(row, mut out)| {
            for (prepared, cells) in &columns {
                let (own, rest) = out.split_at_mut(prepared.width());
                prepared.write(cells, row, own);
                out = rest;
            }
        });
        match all.par_iter().position_first(|value| !value.is_finite()) {
            Some(place) => Err(self.beyond(table, place / width, place % width)),
            None => Ok(all),
        }
    }

    /// Refuses a table if the reader read one of its columns in another form: the same cells would have other values.
    fn check_forms(&self, table: &Table) -> Result<(), TableError> {
        let differs = |fitted: &Kind, found: &Kind| {
            fitted != found && (fitted, found) != (&Kind::Amount(Decimal::Point), &Kind::Plain)
        };
        for (name, fitted) in &self.forms {
            if let Some(found) = table.forms.get(name).filter(|found| differs(fitted, found)) {
                return Err(TableError::Absent(format!(
                    "has `{name}` in the form {found}, which was {fitted} in training; write its cells in that form"
                )));
            }
        }
        Ok(())
    }

    /// An error that names the cell behind a number that 32 bits do not hold.
    fn beyond(&self, table: &Table, row: usize, mut place: usize) -> TableError {
        let column = self.columns.iter().find(|column| match place.checked_sub(column.width()) {
            Some(rest) => {
                place = rest;
                false
            }
            None => true,
        });
        let name = column.map_or("", |column| column.name.as_str());
        let value = match table.column(name).map(|column| &column.values) {
            Ok(Values::Number(values)) => format!("{:e}", values[row]),
            _ => "another".to_string(),
        };
        TableError::Absent(format!(
            "has {value} in row {row} (from 0) column `{name}`, which exceeds the range of the model (±3.4e38 after scaling): correct the cell or leave it empty, or train with `scaling = \"robust\"`"
        ))
    }
}
