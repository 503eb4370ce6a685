//! From typed columns to numbers for a model: fitted once, on the rows that may be looked at, and the same ever after.
//!
//! A number is filled in where it is missing, scaled, and has an indicator of missing cells beside it; a category becomes one
//! column for each of its values, or hashed ones where there are many; a date becomes an age and its place in year, week and
//! day; a text becomes hashed words. All is computed in double precision and rounded once.
//!
//! A model has learned nothing of values that no fitted row had. A column of a single value becomes zeros, whatever value
//! comes later; other values become at most one standard deviation less than the least fitted one, or more than the greatest
//! ([`FittedRange`]). [`Preparation::departures`] counts such cells.
//!
//! Whatever is fitted follows from records: one of them has a say in every row. A party that must not let it ([`Rules`]'
//! `declared`) prepares by what its owner declares from public knowledge, and each row follows from its own record alone.

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

/// How columns are prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// How numbers are scaled.
    pub scaling: Scaling,
    /// Columns of numbers or dates that are clipped as with [`Scaling::Robust`], where others are not.
    pub clip: Vec<String>,
    /// A category of at most so many values has a column for each.
    pub one_hot: usize,
    /// One of more values, or a text, is hashed into so many columns.
    pub buckets: usize,
    /// What an owner declares of columns, by name. If [`Rules::only_declared`], of every column but hashed ones.
    pub declared: BTreeMap<String, Declared>,
    /// Whether nothing may follow from the records.
    pub only_declared: bool,
}

/// How numbers are scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// To mean 0 and deviation 1.
    #[default]
    Standard,
    /// The same, once values are clipped to the quantiles of 1 % and 99 %: one wild value does not press all others together.
    Robust,
    /// As they are.
    None,
}

/// What an owner declares of a column from public knowledge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Declared {
    /// The range of numbers: they are clipped to it, and scaled to mean 0 and deviation 1 as if they were uniform in it.
    Range([f64; 2]),
    /// The range of dates, ISO 8601.
    Dates([String; 2]),
    /// The values of a category.
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

/// Columns as they are prepared; it can be saved, and prepares other tables as the one that it was fitted on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    columns: Vec<Prepared>,
    /// The forms in which the reader found dates and amounts, by column: cells of other tables are read in the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    forms: BTreeMap<String, Kind>,
    /// The styles in which the reader found dates and amounts, by column, to recognise cells of other tables in another unit or without a zone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    styles: BTreeMap<String, BTreeSet<String>>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prepared {
    name: String,
    /// Whether a column says where it is missing: it is in some fitted row, or may be.
    indicator: bool,
    /// Whether its owner declared it: then nothing in `how` follows from records.
    declared: bool,
    how: How,
    /// The range of each of its numbers in the fitted rows; empty for numbers, which have theirs in `how`, and where nothing may
    /// follow from records.
    outputs: Vec<FittedRange>,
}

/// What a column becomes.
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
        /// The fitted values or words; nothing where nothing may follow from records, or they are too many.
        known: Option<Known>,
    },
    Date(Dates),
}

impl Preparation {
    /// Fits the columns of `table` on these of its rows.
    ///
    /// # Errors
    /// A row past the last; a column without a value in these rows; a declaration that does not fit its column; without a declaration a number, date or
    /// category, where nothing may follow from the records.
    pub fn fit(table: &Table, rows: &[usize], rules: &Rules) -> Result<Self, TableError> {
        if let Some(past) = rows.iter().find(|row| **row >= table.rows) {
            return Err(TableError::Absent(format!(
                "has {} rows; row {past} (from 0) is past them",
                table.rows
            )));
        }
        if let Some(name) = rules.declared.keys().find(|name| table.column(name).is_err()) {
            table.column(name)?;
        }
        for name in &rules.clip {
            let problem = match rules.scaling {
                _ if rules.declared.contains_key(name) => "has a declared range, which clips it",
                Scaling::Robust => "is clipped as every column is with the scaling `robust`",
                Scaling::None => "is not scaled (`scaling = \"none\"`) and so not clipped",
                Scaling::Standard => "",
            };
            if !problem.is_empty() {
                return Err(TableError::Absent(format!(
                    "cannot clip `{name}`: it {problem}; take it out of `clip`"
                )));
            }
            if !matches!(table.column(name)?.values, Values::Number(_) | Values::Date(_)) {
                return Err(TableError::Absent(format!(
                    "has no numbers or dates in `{name}`, which is to be clipped"
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

    /// The kinds of the columns, for the reader of another table: what was a category stays one, whatever its new cells are. With them come
    /// the forms of columns that are not prepared here, such as keys.
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

    /// The columns by name, each with the names of what it becomes.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.columns.iter().map(|column| (column.name.as_str(), column.names()))
    }

    /// The names of the prepared columns, in their order.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().flat_map(Prepared::names).collect()
    }

    /// How many columns the model sees.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Prepared::width).sum()
    }

    /// The rows of a table, [n, width], row by row. It may have more columns, in any order.
    ///
    /// # Errors
    /// A column that is missing, of another kind, or was read in another form.
    pub fn apply(&self, table: &Table) -> Result<Vec<f32>, TableError> {
        self.check_forms(table)?;
        let columns: Vec<(&Prepared, Cells<'_>)> = self
            .columns
            .iter()
            .map(|prepared| Ok((prepared, Cells::of(prepared, table.column(&prepared.name)?)?)))
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

    /// Refuses a table of which the reader read a column in another form: the same cells would have other values.
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
            "has {value} in row {row} (from 0) column `{name}`, which is beyond what the model can take (±3.4e38 once it is scaled): \
             correct the cell or leave it empty, or train with `scaling = \"robust\"`"
        ))
    }
}

/// The largest number of a cell: sums of squares of such numbers are numbers too, in 64 bits.
const LARGEST: f64 = 1e38;

/// The cells of a column, as its preparation reads them.
enum Cells<'a> {
    Number(&'a [f64]),
    Date(&'a [i64]),
    /// For each code of the table what is written: the place of the value, or its buckets.
    Codes(&'a [u32], Vec<Option<usize>>),
    Texts(&'a crate::texts::Texts),
}

impl<'a> Cells<'a> {
    fn of(prepared: &Prepared, column: &'a Column) -> Result<Self, TableError> {
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
            "has a {} in `{}`, which was a {wanted} when it was prepared; read it with that kind",
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

    /// Writes a row; `out` holds zeros.
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

    /// Writes the numbers of a row before they are bounded; returns whether its value is missing.
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
                // A long text is no larger than a short one.
                out[..*buckets].iter_mut().for_each(|value| *value /= count.max(1.0).sqrt());
                texts.get(row).is_none()
            }
            _ => false,
        }
    }
}

/// The words of a text, without regard to case and marks.
fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| Cow::Owned(word.to_lowercase()))
}

/// The bucket of a value: it follows from the value alone.
fn bucket(value: &str, buckets: usize) -> usize {
    (xxh3_64(value.as_bytes()) % buckets.max(1) as u64) as usize
}
