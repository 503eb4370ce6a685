//! Converts text cells to the values of one column. A column is filled in pieces, which are appended in
//! order. The result does not depend on the boundaries of the pieces.

use std::collections::HashMap;

use crate::date::{self, Format};
use crate::error::Fault;
use crate::number;
use crate::options::Kind;
use crate::table::{MISSING_CODE, MISSING_DATE, Values};
use crate::texts::Texts;
use crate::written::Decimal;

/// Largest number of categories for any column whose kind is inferred.
pub(crate) const MOST_CATEGORIES: usize = 10_000;

/// Returns the largest number of categories for a column of `rows` rows whose kind is inferred: 5 % of the
/// rows, at least 50.
pub(crate) fn most_categories(rows: usize) -> usize {
    (rows / 20).clamp(50, MOST_CATEGORIES)
}

/// Column, or a piece of one, that is being filled.
#[derive(Debug)]
pub(crate) enum Filler {
    Number { values: Vec<f64>, written: Written },
    Date { values: Vec<i64>, format: Option<Format> },
    Strings(Strings),
}

/// Format of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Written {
    Point,
    Plain,
    Comma,
    Amount(Decimal),
    Time,
}

impl Filler {
    /// Creates a filler for the given kind. Without a kind the cells are strings, and their number decides
    /// between category and text. `comma` is true if plain numbers have a decimal comma.
    pub(crate) fn new(kind: Option<&Kind>, comma: bool) -> Self {
        let number = |written| Self::Number { values: Vec::new(), written };
        match kind {
            Some(Kind::Number) => number(if comma { Written::Comma } else { Written::Point }),
            Some(Kind::Plain) => number(Written::Plain),
            Some(Kind::Amount(form)) => number(Written::Amount(*form)),
            Some(Kind::Time) => number(Written::Time),
            Some(Kind::Date { format }) => {
                Self::Date { values: Vec::new(), format: format.as_deref().and_then(Format::new) }
            }
            Some(Kind::Category) => Self::Strings(Strings::new(MISSING_CODE as usize)),
            Some(Kind::Text) => Self::Strings(Strings { texts: Some(Texts::default()), ..Strings::new(0) }),
            None => Self::Strings(Strings::new(MOST_CATEGORIES)),
        }
    }

    /// Adds a cell; `None` is a missing cell.
    pub(crate) fn push(&mut self, cell: Option<&str>) -> Result<(), Fault> {
        match self {
            Self::Number { values, written } => values.push(match cell {
                Some(cell) => finite(cell, *written)?,
                None => f64::NAN,
            }),
            Self::Date { values, format } => values.push(match cell {
                Some(cell) => point(cell, format.as_ref())?,
                None => MISSING_DATE,
            }),
            Self::Strings(strings) => strings.push(cell),
        }
        Ok(())
    }

    /// Appends the next piece, which must have the same kind.
    pub(crate) fn append(&mut self, next: Self) {
        match (self, next) {
            (Self::Number { values, .. }, Self::Number { values: next, .. }) => {
                values.extend_from_slice(&next)
            }
            (Self::Date { values, .. }, Self::Date { values: next, .. }) => values.extend_from_slice(&next),
            (Self::Strings(strings), Self::Strings(next)) => strings.append(&next),
            _ => unreachable!("the pieces of a column are made for one kind"),
        }
    }

    /// Returns the values of the column. Strings become categories if there are at most `most` different
    /// strings.
    pub(crate) fn finish(self, most: usize) -> Values {
        match self {
            Self::Number { values, .. } => Values::Number(values),
            Self::Date { values, .. } => Values::Date(values),
            Self::Strings(strings) => strings.finish(most),
        }
    }
}

fn finite(cell: &str, written: Written) -> Result<f64, Fault> {
    let number = match written {
        Written::Point | Written::Plain => number::number(cell),
        Written::Comma => number::comma_number(cell),
        Written::Amount(form) => form.number(cell),
        Written::Time => date::hours(cell),
    };
    match number {
        None if written == Written::Time => Err(Fault::new(
            "must be a time of day, such as 10:45 or 10:45:30",
            "correct the cell, or add it to `missing` if it marks a missing value",
        )),
        None if matches!(written, Written::Amount(_)) => Err(Fault::new(
            match written {
                Written::Amount(Decimal::Comma) => {
                    "must be a number such as 1.234,5, with or without a unit: the form of this column"
                }
                _ => "must be a number such as 1,234.5, with or without a unit: the form of this column",
            },
            "correct the cell, or add it to `missing` if it marks a missing value",
        )),
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(Fault::new(
            "must be a finite number",
            "add it to `missing` if it marks a missing value, or set the column's kind to category or text",
        )),
        None if written == Written::Plain => Err(Fault::new(
            "must be a number with a point before decimals, as 1234.5: the form of this column",
            "correct the cell or leave it empty, or add it to `missing` if it marks a missing value",
        )),
        None => Err(Fault::new(
            "must be a number",
            "correct the cell, or add it to `missing` if it marks a missing value; amounts need the kind number:1,234.5 or number:1.234,5; text keys need a linker and a dataset for texts",
        )),
    }
}

fn point(cell: &str, format: Option<&Format>) -> Result<i64, Fault> {
    match format {
        Some(format) => format.date(cell).ok_or_else(|| {
            Fault::new(
                "must be a date in the years 0 to 9999 in the format of the column's kind",
                "correct the format or the cell",
            )
        }),
        None => date::date(cell).map(|written| written.at).ok_or_else(|| {
            Fault::new(
                "must be an ISO 8601 date, YYYY/MM/DD or DD.MM.YYYY in the years 0 to 9999",
                "give the format, as in `date:%d/%m/%Y`, or set the kind to text",
            )
        }),
    }
}

/// Strings, stored as categories as long as there are few different strings, and then as texts.
#[derive(Debug)]
pub(crate) struct Strings {
    codes: Vec<u32>,
    /// Category names in order of appearance; sorted at the end.
    names: Vec<Box<str>>,
    index: HashMap<Box<str>, u32>,
    /// Largest number of categories; beyond it the strings become texts.
    most: usize,
    texts: Option<Texts>,
}

impl Strings {
    fn new(most: usize) -> Self {
        Self { codes: Vec::new(), names: Vec::new(), index: HashMap::new(), most, texts: None }
    }

    fn push(&mut self, cell: Option<&str>) {
        if let Some(texts) = &mut self.texts {
            return texts.push(cell);
        }
        let code = match cell {
            None => Some(MISSING_CODE),
            Some(name) => self.code(name),
        };
        match code {
            Some(code) => self.codes.push(code),
            None => self.spill().push(cell),
        }
    }

    /// Returns the code of a name, or `None` if the name would exceed the limit of categories.
    fn code(&mut self, name: &str) -> Option<u32> {
        if let Some(code) = self.index.get(name) {
            return Some(*code);
        }
        if self.names.len() >= self.most {
            return None;
        }
        let code = u32::try_from(self.names.len()).ok()?;
        self.index.insert(name.into(), code);
        self.names.push(name.into());
        Some(code)
    }

    /// Converts the categories to texts.
    fn spill(&mut self) -> &mut Texts {
        let (codes, names) = (std::mem::take(&mut self.codes), std::mem::take(&mut self.names));
        self.index = HashMap::new();
        self.texts.get_or_insert_with(|| codes.iter().map(|code| name(&names, *code)).collect())
    }

    fn append(&mut self, next: &Self) {
        if let Some(texts) = &next.texts {
            return self.spill().append(texts);
        }
        if self.texts.is_none() {
            let codes: Option<Vec<u32>> = next.names.iter().map(|name| self.code(name)).collect();
            if let Some(codes) = codes {
                let known = |code: &u32| codes.get(*code as usize).copied().unwrap_or(MISSING_CODE);
                return self.codes.extend(next.codes.iter().map(known));
            }
        }
        let texts = self.spill();
        next.codes.iter().for_each(|code| texts.push(name(&next.names, *code)));
    }

    fn finish(mut self, most: usize) -> Values {
        if self.texts.is_none() && self.names.len() > most {
            self.spill();
        }
        if let Some(texts) = self.texts {
            return Values::Text(texts);
        }
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_unstable_by(|a, b| self.names[*a].cmp(&self.names[*b]));
        let mut place = vec![MISSING_CODE; order.len()];
        for (sorted, came) in (0..).zip(&order) {
            place[*came] = sorted;
        }
        for code in &mut self.codes {
            *code = place.get(*code as usize).copied().unwrap_or(MISSING_CODE);
        }
        let names = order.iter().map(|came| self.names[*came].to_string()).collect();
        Values::Category { codes: self.codes, names }
    }
}

/// Returns the name of a code, or `None` for the code of a missing cell.
fn name(names: &[Box<str>], code: u32) -> Option<&str> {
    names.get(code as usize).map(|name| &**name)
}
