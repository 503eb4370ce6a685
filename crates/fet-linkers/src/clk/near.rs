//! Meaning of the settings of numbers and dates, and their checks.

use std::borrow::Cow;

use fet_core::data::{DateOrder, Decided, Decimal, TextTable};
use fet_core::linker::LinkError;
use fet_core::registry::Violation;
use fet_linkage::clk::Near;
use fet_linkage::text::normalise;

use super::settings::{ClkSettings, Order, Sign, Weighting};

/// Function that writes a cell in the compared form.
type Spell = Box<dyn Fn(&str) -> Option<String>>;

/// Columns of dates and numbers that are compared by distance, with their declared forms.
pub(super) struct Forms<'a> {
    pub(super) near: &'a [f64],
    pub(super) dates: &'a [usize],
    pub(super) order: Order,
    pub(super) sign: Sign,
}

impl<'a> Forms<'a> {
    pub(super) fn from_settings(settings: &'a ClkSettings) -> Self {
        let ClkSettings { near, dates, date_order, decimal, .. } = settings;
        Self { near, dates, order: *date_order, sign: *decimal }
    }

    /// Returns the table with the dates and numbers of these columns in one spelling. Each column has one
    /// form: the declared form, the form shown by its own cells, or the form of the run's keys.
    ///
    /// # Errors
    /// If the cells of a column fit both forms, contradict each other, or contradict the declared form.
    pub(super) fn spelled<'t>(&self, table: &'t TextTable) -> Result<Cow<'t, TextTable>, LinkError> {
        let columns = table.columns();
        let near: Vec<usize> =
            (0..columns).filter(|column| self.near.get(*column).is_some_and(|reach| *reach > 0.0)).collect();
        if near.is_empty() {
            return Ok(Cow::Borrowed(table));
        }
        let mut cells: Vec<Cow<'_, str>> = table.cells().into_iter().map(Cow::Borrowed).collect();
        for column in near {
            let given = table.given_forms().get(column);
            let column_cells = || table.column(column);
            let spell: Spell = if self.dates.contains(&(column + 1)) {
                let declared = match self.order {
                    Order::Auto => None,
                    Order::DayFirst => Some(DateOrder::DayFirst),
                    Order::MonthFirst => Some(DateOrder::MonthFirst),
                };
                let known = declared.or(given.and_then(|form| form.dates));
                let forms = [DateOrder::DayFirst, DateOrder::MonthFirst];
                let choice =
                    Choice { forms, known, decided: DateOrder::decide(column_cells()), words: &DATES };
                let order = choice.settle(column, column_cells(), |form, cell| form.date(cell).is_some())?;
                Box::new(move |cell| order.date(cell).map(|date| date.to_string()))
            } else {
                let declared = match self.sign {
                    Sign::Auto => None,
                    Sign::Point => Some(Decimal::Point),
                    Sign::Comma => Some(Decimal::Comma),
                };
                let known = declared.or(given.and_then(|form| form.decimal));
                let forms = [Decimal::Point, Decimal::Comma];
                let choice =
                    Choice { forms, known, decided: Decimal::decide(column_cells()), words: &NUMBERS };
                let form = choice.settle(column, column_cells(), |form, cell| form.number(cell).is_some())?;
                Box::new(move |cell| form.number(cell).map(|number| number.to_string()))
            };
            for cell in cells.iter_mut().skip(column).step_by(columns) {
                if let Some(spelled) = spell(cell) {
                    *cell = Cow::Owned(spelled);
                }
            }
        }
        Ok(Cow::Owned(TextTable::from_cells(columns, cells).with_forms(table.given_forms().to_vec())))
    }
}

/// Words that messages use for a choice of forms.
struct Words {
    what: &'static str,
    forms: &'static str,
    setting: &'static str,
    values: &'static str,
}

const DATES: Words = Words {
    what: "dates",
    forms: "DD/MM/YYYY and MM/DD/YYYY",
    setting: "date_order",
    values: "\"day-first\" or \"month-first\"",
};
const NUMBERS: Words = Words {
    what: "numbers",
    forms: "1,234.5 and 1.234,5",
    setting: "decimal",
    values: "\"point\" or \"comma\"",
};

/// Choice of one of two forms for a column.
struct Choice<'a, T> {
    forms: [T; 2],
    /// Declared form, or form of the run's keys.
    known: Option<T>,
    decided: Decided<T>,
    words: &'a Words,
}

impl<T: Copy + PartialEq> Choice<'_, T> {
    /// Returns the form, or an error that names the first row that does not fit.
    fn settle<'c>(
        &self,
        column: usize,
        mut cells: impl Iterator<Item = &'c str>,
        fits: impl Fn(T, &str) -> bool,
    ) -> Result<T, LinkError> {
        let Words { what, forms, setting, values } = self.words;
        let number = column + 1;
        let [first, second] = self.forms;
        let known = match (self.known, self.decided) {
            (None, Decided::As(form)) => return Ok(form),
            (None, Decided::Either) => return Ok(first),
            (None, Decided::Open) => {
                return refuse(
                    cells.position(|cell| fits(first, cell) && fits(second, cell)),
                    format!(
                        "{what} of key column {number} fit both {forms}. Set `linker.{setting}` to {values}."
                    ),
                );
            }
            (None, Decided::Both) => {
                return refuse(
                    cells.position(|cell| fits(second, cell) && !fits(first, cell)),
                    format!("key column {number} has {what} in both forms, {forms}. Write them in one."),
                );
            }
            (Some(known), _) => known,
        };
        let other = if known == first { second } else { first };
        let contradicts = |cell: &str| fits(other, cell) && !fits(known, cell);
        let contradicted = match self.decided {
            Decided::Both => true,
            // Dates with points usually have the first form, but could have the other.
            Decided::As(form) if form != known => true,
            _ => false,
        };
        let row = if contradicted { cells.position(contradicts) } else { None };
        match row {
            None => Ok(known),
            row => refuse(
                row,
                format!(
                    "{what} of key column {number} differ from the form of `linker.{setting}` or of the run's keys ({forms}). Correct the \
                     cells or the setting."
                ),
            ),
        }
    }
}

/// Returns an error about the cell of this row, from 0.
fn refuse<T>(row: Option<usize>, problem: String) -> Result<T, LinkError> {
    Err(LinkError::Value { row: row.unwrap_or(0) + 1, problem })
}

/// Returns the comparison of each column, according to these settings.
pub(super) fn distances(near: &[f64], dates: &[usize]) -> Vec<Option<Near>> {
    let of_column =
        |(at, &reach): (usize, &f64)| (reach > 0.0).then(|| Near { reach, dates: dates.contains(&(at + 1)) });
    near.iter().enumerate().map(of_column).collect()
}

/// Refuses invalid distances, and dates of columns without a distance.
pub(super) fn check(settings: &ClkSettings) -> Result<(), Violation> {
    let ClkSettings { near, dates, groups, weighting, .. } = settings;
    if let Some(wrong) = near.iter().find(|reach| !(reach.is_finite() && **reach >= 0.0)) {
        return Err(Violation::new("near", "must have finite numbers of at least 0", wrong));
    }
    if *weighting != Weighting::Rarity && near.iter().any(|reach| *reach > 0.0) {
        let rule = "must be empty unless `weighting` is \"rarity\"";
        return Err(Violation::new("near", rule, format!("{near:?}")));
    }
    let reach = |column: usize| column.checked_sub(1).and_then(|at| near.get(at)).copied().unwrap_or(0.0);
    if let Some(wrong) = dates.iter().find(|&&column| reach(column) == 0.0) {
        let rule = "must name columns (the first is 1) with a distance in days in `near`";
        return Err(Violation::new("dates", rule, wrong));
    }
    for (group, one) in groups.iter().zip(1..) {
        let of_group = groups.iter().zip(1..).filter(|(other, _)| *other == group);
        for (_, other) in of_group {
            let rule = format!("must be equal for columns {one} and {other}, which belong to one group");
            if reach(one).to_bits() != reach(other).to_bits() {
                return Err(Violation::new("near", rule, format!("{near:?}")));
            }
            if dates.contains(&one) != dates.contains(&other) {
                return Err(Violation::new("dates", rule, format!("{dates:?}")));
            }
        }
    }
    Ok(())
}

/// Returns the data holder's warnings about columns whose distances carry little information.
pub(super) fn warnings(settings: &ClkSettings, records: &TextTable) -> Vec<String> {
    let mut warnings = Vec::new();
    let columns = distances(&settings.near, &settings.dates).into_iter().enumerate();
    for (column, near) in columns.filter_map(|(column, near)| Some((column, near?))) {
        let cells = records.cells().into_iter().skip(column).step_by(records.columns());
        let filled: Vec<&str> = cells.filter(|cell| !normalise(cell).is_empty()).collect();
        let read: Vec<(f64, i64)> = filled.iter().filter_map(|cell| near.read(cell)).collect();
        let (kind, number) = (if near.dates { "dates" } else { "numbers" }, column + 1);
        if 2 * read.len() < filled.len() {
            warnings.push(format!(
                "{} of {} cells of key column {number} are not {kind} (or are too large for the grid of `linker.near`) and are compared as \
                 text",
                filled.len() - read.len(),
                filled.len()
            ));
        }
        let differ = read.windows(2).any(|two| two[0].0.to_bits() != two[1].0.to_bits());
        if differ && read.windows(2).all(|two| two[0].1 == two[1].1) {
            warnings.push(format!(
                "all {kind} of key column {number} are indistinguishable at `linker.near` = {}, which is too large",
                near.reach
            ));
        }
    }
    warnings
}

/// Refuses a number of distances that differs from the number of columns.
pub(super) fn fits(near: &[f64], fields: usize) -> Result<(), LinkError> {
    if !near.is_empty() && near.len() != fields {
        return Err(crate::wrong_length("near", near.len(), fields));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
