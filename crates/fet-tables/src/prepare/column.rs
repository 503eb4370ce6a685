//! Preparation of one column: its outputs for the model.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::date::Dates;
use super::known::Known;
use super::number::Numbers;
use super::range::FittedRange;
use crate::error::TableError;
use crate::table::{Column, MISSING_CODE, Values};

/// Preparation of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prepared {
    pub(super) name: String,
    /// True if an indicator column marks missing cells, because some fitted row has one or later rows may.
    pub(super) indicator: bool,
    /// True if the owner declared the column. Then `how` does not depend on records.
    pub(super) declared: bool,
    pub(super) how: How,
    /// Range of each output in the fitted rows. Empty for numbers, whose range is in `how`, and if the
    /// preparation must not depend on records.
    pub(super) outputs: Vec<FittedRange>,
}

/// Representation of a column for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum How {
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

/// Largest number in a cell: sums of squares of such numbers are finite in 64 bits.
const LARGEST: f64 = 1e38;

/// Cells of a column, in the form that its preparation reads.
pub(super) enum Cells<'a> {
    Number(&'a [f64]),
    Date(&'a [i64]),
    /// Codes of the rows, and the output index for each code of the table: the position of the value, or its
    /// bucket.
    Codes(&'a [u32], Vec<Option<usize>>),
    Texts(&'a crate::texts::Texts),
}

impl<'a> Cells<'a> {
    pub(super) fn new(prepared: &Prepared, column: &'a Column) -> Result<Self, TableError> {
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
    pub(super) fn width(&self) -> usize {
        usize::from(self.indicator)
            + match &self.how {
                How::Number(_) => 1,
                How::OneHot { values } => values.len(),
                How::Hashed { buckets, .. } => *buckets,
                How::Date(dates) => dates.width(),
            }
    }

    pub(super) fn names(&self) -> Vec<String> {
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
    pub(super) fn write(&self, cells: &Cells<'_>, row: usize, out: &mut [f32]) {
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
    pub(super) fn write_unbounded(&self, cells: &Cells<'_>, row: usize, out: &mut [f32]) -> bool {
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
pub(super) fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| Cow::Owned(word.to_lowercase()))
}

/// Returns the bucket of a value, which depends only on the value.
fn bucket(value: &str, buckets: usize) -> usize {
    (xxh3_64(value.as_bytes()) % buckets.max(1) as u64) as usize
}
