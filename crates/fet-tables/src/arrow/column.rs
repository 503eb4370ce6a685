//! One column of a Parquet or Arrow file, filled array by array.

use arrow_array::Array;
use arrow_schema::{DataType, Field};

use super::cells::{self, Bad, Seen};
use crate::date;
use crate::error::{Place, TableError};
use crate::fill::{Filler, MOST_CATEGORIES, most_categories};
use crate::number;
use crate::options::{Kind, Missing, Options};
use crate::table::{Column, Values};

/// Kind of a column according to the file.
#[derive(Clone, Copy, PartialEq)]
enum Declared {
    Number,
    Date,
    Text,
    /// Booleans, or dictionary-encoded values.
    Category,
}

/// Column that is being filled.
pub(super) struct ArrowColumn<'a> {
    name: String,
    file: &'a str,
    declared: Declared,
    kind: Option<&'a Kind>,
    /// Kind that decides which marks of missing cells apply.
    marked: Option<&'a Kind>,
    filler: Filler,
    missing: Missing,
    rows: usize,
    seen: Seen,
}

impl<'a> ArrowColumn<'a> {
    /// Creates an empty column.
    ///
    /// # Errors
    /// Fails if a table cannot represent the column's type.
    pub(super) fn new(field: &Field, file: &'a str, options: &'a Options) -> Result<Self, TableError> {
        let name = field.name().clone();
        let declared =
            declared(field.data_type()).map_err(|problem| TableError::column(file, &name, problem))?;
        let kind = options.kinds.get(&name);
        let filler = match (declared, kind) {
            (Declared::Number, None) => Filler::new(Some(&Kind::Number), false),
            // A date column of the file needs no format.
            (Declared::Date, None | Some(Kind::Date { .. })) => {
                Filler::new(Some(&Kind::Date { format: None }), false)
            }
            (_, kind) => Filler::new(kind, false),
        };
        let missing = Missing::new(options);
        let marked = options.declared(&name);
        Ok(Self { name, file, declared, kind, marked, filler, missing, rows: 0, seen: Seen::default() })
    }

    /// Returns true if the caller set the kind.
    pub(super) fn has_given_kind(&self) -> bool {
        self.kind.is_some()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the cells of an array, which must have the column's type.
    pub(super) fn push(&mut self, array: &dyn Array) -> Result<(), TableError> {
        let Self { filler, missing, seen, marked, .. } = self;
        let pushed = match (self.declared, filler) {
            (Declared::Number, Filler::Number { values, .. }) => cells::numbers(array, values, seen),
            (Declared::Date, Filler::Date { values, .. }) => cells::dates(array, values, seen),
            (_, filler) => cells::each_text(array, |cell| {
                filler.push(cell.and_then(|cell| missing.present(cell, *marked)))
            }),
        };
        pushed.map_err(|Bad { row, value, fault }| {
            let place = Place::Row((self.rows + row) as u64);
            TableError::cell(self.file, place, &self.name, &value, fault)
        })?;
        self.rows += array.len();
        Ok(())
    }

    /// Returns the column and the notes about it.
    pub(super) fn finish(self, rows: usize) -> (Column, Vec<String>) {
        let most = match (self.kind, self.declared) {
            (Some(_), _) => usize::MAX,
            (None, Declared::Category) => MOST_CATEGORIES,
            (None, _) => most_categories(rows),
        };
        let values = self.filler.finish(most);
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(format!("column `{}`: {text}", self.name));
        if self.seen.rounded {
            note("integers of 2^53 and more may be rounded; if they are identifiers, set its kind to text");
        }
        if self.seen.finer {
            note("times finer than a microsecond are cut off");
        }
        if self.kind.is_none() && self.declared == Declared::Text {
            if all(&values, |cell| number::number(cell).is_some()) {
                note(
                    "the file declares text; the cells look like numbers; set its kind to number if they are",
                );
            } else if all(&values, |cell| date::date(cell).is_some()) {
                note("the file declares text; the cells look like dates; set its kind to date if they are");
            }
        }
        (Column { name: self.name, values }, notes)
    }
}

/// Returns true if `is` holds for all categories, or for the first thousand texts.
fn all(values: &Values, is: impl Fn(&str) -> bool) -> bool {
    match values {
        Values::Category { names, .. } => !names.is_empty() && names.iter().all(|name| is(name)),
        Values::Text(texts) => {
            let mut some = texts.iter().flatten().take(1000).peekable();
            some.peek().is_some() && some.all(is)
        }
        _ => false,
    }
}

fn declared(data_type: &DataType) -> Result<Declared, String> {
    use DataType as T;
    match data_type {
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
            Ok(Declared::Number)
        }
        T::Float16 | T::Float32 | T::Float64 => Ok(Declared::Number),
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => Ok(Declared::Number),
        T::Date32 | T::Date64 | T::Timestamp(..) => Ok(Declared::Date),
        T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView | T::Null => {
            Ok(Declared::Text)
        }
        T::Boolean => Ok(Declared::Category),
        T::Dictionary(_, values) => declared(values).map(|_| Declared::Category),
        T::List(_) | T::LargeList(_) | T::ListView(_) | T::LargeListView(_) | T::FixedSizeList(..) => {
            Err("contains a list in each row; add it to `drop`, or unnest it into separate columns".into())
        }
        T::Struct(_) | T::Map(..) | T::Union(..) => {
            Err("contains several values in each row; add it to `drop`, or flatten it into separate columns"
                .into())
        }
        T::Time32(_) | T::Time64(_) | T::Duration(_) | T::Interval(_) => Err(format!(
            "contains times without a date ({data_type}); add it to `drop`, or write it as a number"
        )),
        other => Err(format!(
            "has the type {other}, which is not supported; add it to `drop`, or write it as text"
        )),
    }
}
