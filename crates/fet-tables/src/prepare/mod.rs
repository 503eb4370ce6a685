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

mod date;
mod departures;
mod fitted;
mod known;
mod number;
mod range;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::TableError;
use crate::options::Kind;
use crate::table::{Column, MISSING_CODE, Table, Values};
use crate::written::Decimal;

use self::date::Dates;
pub use self::departures::{Change, Departure, Nouns};
use self::known::Known;
use self::number::Numbers;
pub use self::range::FittedRange;

/// Rules for preparing columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Scaling of numbers.
    pub scaling: Scaling,
    /// Columns of numbers or dates to clip as [`Scaling::Robust`] does, while other columns are not clipped.
    pub clip: Vec<String>,
    /// Maximum number of values of a category that gets a column for each value.
    pub one_hot: usize,
    /// Number of columns into which larger categories and texts are hashed.
    pub buckets: usize,
    /// Declarations of the owner by column name. With [`Rules::only_declared`], every column that is not
    /// hashed needs one.
    pub declared: BTreeMap<String, Declared>,
    /// True if the preparation must not depend on the records.
    pub only_declared: bool,
}

/// Scaling of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// To mean 0 and standard deviation 1.
    #[default]
    Standard,
    /// To mean 0 and standard deviation 1, after clipping to the quantiles of 1 % and 99 %, so that an
    /// outlier does not compress all other values.
    Robust,
    /// No scaling.
    None,
}

/// Declaration of a column by its owner, from public knowledge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Declared {
    /// Range of numbers. Values are clipped to the range, and scaled to mean 0 and standard deviation 1 as if
    /// they were uniform in it.
    Range([f64; 2]),
    /// Range of dates, ISO 8601.
    Dates([String; 2]),
    /// Values of a category.
    Categories(Vec<String>),
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            scaling: Scaling::Standard,
            clip: Vec::new(),
            one_hot: 32,
            buckets: 32,
            declared: BTreeMap::new(),
            only_declared: false,
        }
    }
}

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

/// Preparation of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prepared {
    name: String,
    /// True if an indicator column marks missing cells, because some fitted row has one or later rows may.
    indicator: bool,
    /// True if the owner declared the column. Then `how` does not depend on records.
    declared: bool,
    how: How,
    /// Range of each output in the fitted rows. Empty for numbers, whose range is in `how`, and if the
    /// preparation must not depend on records.
    outputs: Vec<FittedRange>,
}

/// Representation of a column for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum How {
    Number(Numbers),
    OneHot {
        values: Vec<String>,
    },
    Hashed {
        buckets: usize,
        words: bool,
        /// Fitted values or words; `None` if the preparation must not depend on records, or if there are too
        /// many.
        known: Option<Known>,
    },
    Date(Dates),
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

/// Largest number in a cell: sums of squares of such numbers are finite in 64 bits.
const LARGEST: f64 = 1e38;

/// Cells of a column, in the form that its preparation reads.
enum Cells<'a> {
    Number(&'a [f64]),
    Date(&'a [i64]),
    /// Codes of the rows, and the output index for each code of the table: the position of the value, or its
    /// bucket.
    Codes(&'a [u32], Vec<Option<usize>>),
    Texts(&'a crate::texts::Texts),
}

impl<'a> Cells<'a> {
    fn new(prepared: &Prepared, column: &'a Column) -> Result<Self, TableError> {
        let wanted = match (&prepared.how, &column.values) {
            (How::Number(_), Values::Number(values)) => {
                return match values.iter().position(|value| value.abs() > LARGEST) {
                    Some(row) => Err(TableError::Absent(format!(
                        "has {:e} in row {row} (from 0) column `{}`; a number must be within ±{LARGEST:e}: correct the cell or leave it empty",
                        values[row], column.name
                    ))),
                    None => Ok(Self::Number(values)),
                };
            }
            (How::Date(_), Values::Date(values)) => return Ok(Self::Date(values)),
            (How::OneHot { values }, Values::Category { codes, names }) => {
                let place = |name: &String| values.binary_search(name).ok();
                return Ok(Self::Codes(codes, names.iter().map(place).collect()));
            }
            (How::Hashed { buckets, words: false, .. }, Values::Category { codes, names }) => {
                return Ok(Self::Codes(
                    codes,
                    names.iter().map(|name| Some(bucket(name, *buckets))).collect(),
                ));
            }
            (How::Hashed { words: true, .. }, Values::Text(texts)) => return Ok(Self::Texts(texts)),
            (How::Number(_), _) => "number",
            (How::Date(_), _) => "date",
            (How::Hashed { words: true, .. }, _) => "text",
            _ => "category",
        };
        Err(TableError::Absent(format!(
            "has a {} in `{}`, which was a {wanted} when the preparation was fitted; read it with that kind",
            column.values.kind(),
            column.name
        )))
    }
}

impl Prepared {
    fn width(&self) -> usize {
        usize::from(self.indicator)
            + match &self.how {
                How::Number(_) => 1,
                How::OneHot { values } => values.len(),
                How::Hashed { buckets, .. } => *buckets,
                How::Date(dates) => dates.width(),
            }
    }

    fn names(&self) -> Vec<String> {
        let name = &self.name;
        let mut all = match &self.how {
            How::Number(_) => vec![name.clone()],
            How::OneHot { values } => values.iter().map(|value| format!("{name} = {value}")).collect(),
            How::Hashed { buckets, .. } => (0..*buckets).map(|bucket| format!("{name} #{bucket}")).collect(),
            How::Date(dates) => dates.parts().map(|part| format!("{name}: {part}")).collect(),
        };
        all.extend(self.indicator.then(|| format!("{name} is missing")));
        all
    }

    /// Writes a row. `out` must contain zeros.
    fn write(&self, cells: &Cells<'_>, row: usize, out: &mut [f32]) {
        let missing = self.write_unbounded(cells, row, out);
        if !missing {
            for (value, range) in out.iter_mut().zip(&self.outputs) {
                *value = if range.is_constant() { 0.0 } else { range.clamp(f64::from(*value)) as f32 };
            }
        }
        if let Some(last) = out.last_mut().filter(|_| self.indicator) {
            *last = f32::from(u8::from(missing));
        }
    }

    /// Writes the numbers of a row without clamping them. Returns true if the row's value is missing.
    fn write_unbounded(&self, cells: &Cells<'_>, row: usize, out: &mut [f32]) -> bool {
        match (&self.how, cells) {
            (How::Number(numbers), Cells::Number(values)) => {
                out[0] = numbers.scaled(values[row]) as f32;
                values[row].is_nan()
            }
            (How::Date(dates), Cells::Date(values)) => dates.write(values[row], out),
            (_, Cells::Codes(codes, places)) => {
                let code = codes[row];
                if let Some(place) = places.get(code as usize).copied().flatten() {
                    out[place] = 1.0;
                }
                code == MISSING_CODE
            }
            (How::Hashed { buckets, .. }, Cells::Texts(texts)) => {
                let text = texts.get(row).unwrap_or_default();
                let mut count = 0.0f32;
                for word in words(text) {
                    out[bucket(&word, *buckets)] += 1.0;
                    count += 1.0;
                }
                // Normalise, so that a long text is not larger than a short text.
                out[..*buckets].iter_mut().for_each(|value| *value /= count.max(1.0).sqrt());
                texts.get(row).is_none()
            }
            _ => false,
        }
    }
}

/// Returns the words of a text in lower case, without punctuation.
fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| Cow::Owned(word.to_lowercase()))
}

/// Returns the bucket of a value, which depends only on the value.
fn bucket(value: &str, buckets: usize) -> usize {
    (xxh3_64(value.as_bytes()) % buckets.max(1) as u64) as usize
}
