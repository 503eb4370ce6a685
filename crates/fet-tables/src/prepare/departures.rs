//! Counts, for each column, the cells that differ from all fitted cells, for a warning.
//!
//! The preparation bounds the effect of such cells, and a row has no effect on other rows. The model's
//! prediction for the row itself is a guess, so the user needs a warning.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::delimited::units::NO_UNIT;
use crate::table::{Column, MISSING_CODE, MISSING_DATE, Table, Values};

use super::Preparation;
use super::column::{How, Prepared, words};
use super::range::FittedRange;

/// Column with rows that differ from all fitted rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Departure {
    /// Name of the column in a warning: "column `size`", "key column 1".
    pub column: String,
    /// Kind of difference.
    pub change: Change,
    /// Number of rows that differ.
    pub rows: usize,
    /// Number of rows that were checked.
    pub of: usize,
    /// True if all rows with a value in the column differ.
    pub all: bool,
    /// First row that differs.
    pub first: usize,
}

/// Difference between a cell and the fitted cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A value other than the only fitted value.
    Constant {
        /// Only fitted value as text, if the preparation stores it.
        was: Option<String>,
    },
    /// A number or date outside the range.
    Range {
        /// Ends of the range, as text.
        ends: [String; 2],
        /// True if the owner declared the range.
        declared: bool,
    },
    /// A new value of a category.
    Value {
        /// True if the owner declared the values.
        declared: bool,
    },
    /// A text with at least half of its words new.
    Words,
    /// A missing value in a column without missing fitted values.
    Missing {
        /// True if the mean replaces the value.
        filled: bool,
    },
    /// A unit that is new or lacks, or a time or zone that is new or lacks. The reader counts such cells in the whole table.
    Style {
        /// The style of the cells, as "with no unit".
        is: String,
        /// The styles of the fitted cells.
        was: String,
    },
}

/// Nouns for a warning.
#[derive(Debug, Clone, Copy)]
pub struct Nouns {
    /// Noun for a fitted row, in the singular: "training row".
    pub fitted: &'static str,
    /// Noun for the checked rows, in the plural: "rows".
    pub rows: &'static str,
}

impl Departure {
    /// Returns the warning. `first` is the number of the first row that differs.
    pub fn warning(&self, Nouns { fitted, rows }: Nouns, first: usize) -> String {
        let Self { column, change, rows: count, of, all, .. } = self;
        let counted = |what: &str| {
            let what = if *count == 1 { singular(what) } else { what.to_string() };
            format!("{count} of {of} {rows} {what} (the first is row {first})")
        };
        let text = match change {
            Change::Constant { was } => format!(
                "is constant in every {fitted}{}, and {}: the model ignores this column",
                was.as_ref().map(|was| format!(" ({was})")).unwrap_or_default(),
                counted("have another value")
            ),
            Change::Range { ends: [low, high], declared: true } if *all => {
                format!(
                    "no value is within the declared range [{low}, {high}]; does the declaration match the file?"
                )
            }
            Change::Value { declared: true } if *all => {
                "no value is within the declared categories; does the declaration match the file?".to_string()
            }
            Change::Range { ends: [low, high], declared: true } => format!(
                "{}: the model sees the nearer end of the range",
                counted(&format!("are outside the declared range [{low}, {high}]"))
            ),
            Change::Range { ends: [low, high], declared: false } => format!(
                "{}: the model sees a value near the end of that range{}",
                counted(&format!("are far outside {low} to {high}, the range of every {fitted}")),
                if 2 * count > *of { "; is the column in another unit or form?" } else { "" }
            ),
            Change::Value { declared: true } => format!(
                "{}; the model did not learn it",
                counted("have a value that is not among the declared categories")
            ),
            Change::Value { declared: false } => format!(
                "{}; the model did not learn it",
                counted(&format!("have a value that no {fitted} had"))
            ),
            Change::Words => format!(
                "{}; the model did not learn these words",
                counted(&format!("have a text with at least half of its words in no {fitted}"))
            ),
            Change::Missing { filled } => format!(
                "{}: {}",
                counted(&format!("lack a value, which every {fitted} has")),
                if *filled { "the mean replaces it" } else { "the model sees none of its values" }
            ),
            Change::Style { is, was } => format!(
                "{count} of {of} cells {} written {is}, unlike every {fitted} ({was}): the model uses them without conversion",
                if *count == 1 { "is" } else { "are" }
            ),
        };
        format!("{column}: {text}")
    }
}

/// Returns a predicate about one row, from the form for several rows.
fn singular(predicate: &str) -> String {
    let forms = [("have ", "has "), ("are ", "is "), ("lack ", "lacks ")];
    let of = |(plural, one): (&str, &str)| Some(format!("{one}{}", predicate.strip_prefix(plural)?));
    forms.into_iter().find_map(of).unwrap_or_else(|| predicate.to_string())
}

impl Preparation {
    /// Returns the columns with values in these rows that differ from all fitted rows, or from the declaration.
    /// Columns that `table` lacks are skipped; [`Preparation::apply`] refuses them.
    pub fn departures(&self, table: &Table, rows: &[usize]) -> Vec<Departure> {
        let column = |prepared: &Prepared| {
            table
                .column(&prepared.name)
                .map_or_else(|_| Vec::new(), |column| prepared.departures(column, rows))
        };
        self.columns.iter().flat_map(column).chain(self.other_styles(table)).collect()
    }

    /// The columns that have cells in a style that no fitted cell has.
    fn other_styles<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = Departure> + 'a {
        // Numbers that were fitted without any unit lack an entry in `styles`.
        let without_unit = || Cow::Owned(BTreeSet::from([NO_UNIT.to_string()]));
        let plain = self.columns.iter().filter(|column| matches!(column.how, How::Number(_)));
        let plain = plain.filter(|column| !self.styles.contains_key(&column.name));
        let plain = plain.map(move |column| (&column.name, without_unit()));
        let styled = self.styles.iter().map(|(name, known)| (name, Cow::Borrowed(known)));
        styled.chain(plain).flat_map(|(name, known)| {
            let found = table.styles.get(name);
            let of: u64 = found.iter().flat_map(|styles| styles.values()).sum();
            let was = known.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
            let new = found.into_iter().flatten().filter(move |(style, _)| !known.contains(*style));
            new.map(move |(style, count)| Departure {
                column: format!("column `{name}`"),
                change: Change::Style { is: style.clone(), was: was.clone() },
                rows: *count as usize,
                of: of as usize,
                all: *count == of,
                first: 0,
            })
        })
    }

    /// Returns the columns with a single value in the fitted rows, not counting missing cells, each with that
    /// value if it is known.
    pub fn constants(&self) -> Vec<(&str, Option<String>)> {
        let fitted = self.columns.iter().filter(|column| !column.declared);
        fitted.filter_map(|column| Some((column.name.as_str(), column.constant()?))).collect()
    }
}

/// Predicate on a row number.
type RowTest<'a> = Box<dyn Fn(usize) -> bool + 'a>;

impl Prepared {
    /// Returns the only fitted value if there is only one. The inner `None` means that the preparation does
    /// not store it.
    fn constant(&self) -> Option<Option<String>> {
        match &self.how {
            How::Number(numbers) => {
                let range = numbers.range();
                range.is_constant().then(|| Some(crate::number::text(range.ends()[0])))
            }
            How::Date(dates) => dates.is_constant().then(|| Some(crate::date::text(dates.ends()[0]))),
            How::OneHot { values } => match values.as_slice() {
                [only] => Some(Some(only.clone())),
                _ => None,
            },
            How::Hashed { words: false, known, .. } => {
                known.as_ref().filter(|known| known.len() == 1).map(|_| None)
            }
            How::Hashed { words: true, .. } => {
                let still = !self.outputs.is_empty() && self.outputs.iter().all(FittedRange::is_constant);
                still.then_some(None)
            }
        }
    }

    fn departures(&self, column: &Column, rows: &[usize]) -> Vec<Departure> {
        let mut found = Vec::new();
        let mut add = |change: Change, differs: &dyn Fn(usize) -> bool, present: usize| {
            let mut differing = rows.iter().copied().filter(|&row| differs(row));
            let Some(first) = differing.next() else { return };
            let count = 1 + differing.count();
            let (column, of, all) = (format!("column `{}`", self.name), rows.len(), count == present);
            found.push(Departure { column, change, rows: count, of, all, first });
        };
        let missing: RowTest<'_> = match &column.values {
            Values::Number(values) => Box::new(|row| values[row].is_nan()),
            Values::Category { codes, .. } => Box::new(|row| codes[row] == MISSING_CODE),
            Values::Date(values) => Box::new(|row| values[row] == MISSING_DATE),
            Values::Text(texts) => Box::new(|row| texts.get(row).is_none()),
        };
        let present = rows.iter().filter(|&&row| !missing(row)).count();
        if let Some((change, is_new)) = self.new_values(&column.values) {
            add(change, &|row| !missing(row) && is_new(row), present);
        }
        if !self.indicator {
            let filled = matches!(self.how, How::Number(_) | How::Date(_)) && self.constant().is_none();
            add(Change::Missing { filled }, &*missing, present);
        }
        found
    }

    /// Returns the kind of difference that values of this column can have, and a predicate for rows with this
    /// difference. Returns `None` for values of another kind, or if the preparation stores no values.
    fn new_values<'a>(&'a self, values: &'a Values) -> Option<(Change, RowTest<'a>)> {
        let declared = self.declared;
        let constant = if declared { None } else { self.constant() };
        let change = |otherwise: Change| match &constant {
            Some(was) => Change::Constant { was: was.clone() },
            None => otherwise,
        };
        match (&self.how, values) {
            (How::Number(numbers), Values::Number(values)) => {
                let ends = numbers.range().ends().map(crate::number::text);
                let is_new: RowTest<'_> = Box::new(|row| !numbers.range().has(values[row]));
                Some((change(Change::Range { ends, declared }), is_new))
            }
            (How::Date(dates), Values::Date(values)) => {
                let ends = dates.ends().map(crate::date::text);
                Some((change(Change::Range { ends, declared }), Box::new(|row| !dates.has(values[row]))))
            }
            (How::OneHot { values: known }, Values::Category { codes, names }) => {
                let new: Vec<bool> = names.iter().map(|name| known.binary_search(name).is_err()).collect();
                let is_new = move |row: usize| new.get(codes[row] as usize) == Some(&true);
                Some((change(Change::Value { declared }), Box::new(is_new)))
            }
            (How::Hashed { words: false, known, .. }, Values::Category { codes, names }) => {
                let known = known.as_ref()?;
                let new: Vec<bool> = names.iter().map(|name| !known.has(name)).collect();
                let is_new = move |row: usize| new.get(codes[row] as usize) == Some(&true);
                Some((change(Change::Value { declared }), Box::new(is_new)))
            }
            (How::Hashed { words: true, known, .. }, Values::Text(texts)) => {
                let known = known.as_ref()?;
                let is_new = move |row: usize| {
                    let (mut all, mut new) = (0, 0);
                    for word in words(texts.get(row).unwrap_or_default()) {
                        all += 1;
                        new += usize::from(!known.has(&word));
                    }
                    all > 0 && 2 * new >= all
                };
                Some((change(Change::Words), Box::new(is_new)))
            }
            _ => None,
        }
    }
}
