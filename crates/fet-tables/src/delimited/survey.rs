//! Survey of a text column: the kinds that fit its cells. The surveys of pieces can be merged in any order.

use std::collections::BTreeMap;

use crate::date;
use crate::error::shortened;
use crate::number::{comma_number, is_code, is_rounded_integer, leads_with_zero, number};
use crate::options::Kind;

use super::written::{Deciding, WrittenSurvey};
use crate::written::{Decimal, unit};

/// Minimum share of cells of a kind for a column that is nearly of this kind.
const NEARLY: f64 = 0.9;

/// Properties of all present cells so far, and properties of at least one of them.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// Number of present cells.
    present: u64,
    /// Number of cells that are numbers.
    numbers: u64,
    /// Number of cells that are dates in a format that is inferred.
    dates: u64,
    commas: bool,
    /// True if every cell is a number with a decimal point.
    point: bool,
    /// True if every cell is a number with a decimal comma, and the delimiter is not a comma.
    comma: bool,
    /// True if every cell is a date in a format that is inferred.
    date: bool,
    /// True if three digits follow every comma.
    thousands: bool,
    /// True if some cell has one comma, with one to three digits before it, no leading zero, and three digits
    /// after it.
    grouped: bool,
    /// True if at least one cell is a whole number without a comma.
    bare: bool,
    /// True if every whole number without a comma has at most three digits.
    short: bool,
    /// True if every point has one to three digits before it, no leading zero, and three digits after it, and
    /// all other numbers have at most three digits.
    dotted_groups: bool,
    /// True if at least one cell has a point.
    pointed: bool,
    /// True if the column contains keys that are compared for equality.
    identifiers: bool,
    /// Number of cells that count as missing although they are not empty, and one such cell.
    marks: u64,
    mark: Option<String>,
    /// Survey of other formats, if there was a second look.
    written: Option<WrittenSurvey>,
    leading_zero: bool,
    code: bool,
    rounded: bool,
    dotted: bool,
    /// The number of dates with a time and a zone, with a time and no zone, and without a time.
    zoned: u64,
    unzoned: u64,
    timeless: u64,
    finer: bool,
    /// The number of cells with each unit, "" for none, in a column of amounts.
    units: BTreeMap<String, u64>,
}

impl Survey {
    /// Creates an empty survey. `identifiers` is true if the cells are keys that are compared for equality;
    /// `commas` is true if a comma may be a decimal separator.
    pub(super) fn new(commas: bool, identifiers: bool) -> Self {
        Self {
            present: 0,
            numbers: 0,
            dates: 0,
            commas,
            point: true,
            comma: commas,
            date: true,
            thousands: true,
            grouped: false,
            bare: false,
            short: true,
            dotted_groups: true,
            pointed: false,
            identifiers,
            marks: 0,
            mark: None,
            written: None,
            leading_zero: false,
            code: false,
            rounded: false,
            dotted: false,
            zoned: 0,
            unzoned: 0,
            timeless: 0,
            finer: false,
            units: BTreeMap::new(),
        }
    }

    /// Counts a cell that is missing although it is not empty.
    pub(super) fn mark(&mut self, cell: &str) {
        self.marks += 1;
        if self.mark.as_deref().is_none_or(|known| cell < known) {
            self.mark = Some(cell.to_string());
        }
    }

    /// Adds a cell. `kind` is the kind that the caller set for the column.
    pub(super) fn look(&mut self, cell: Option<&str>, kind: Option<&Kind>) {
        let Some(cell) = cell else { return };
        self.present += 1;
        if matches!(kind, Some(Kind::Amount(_))) {
            let (unit, _) = unit(cell);
            match self.units.get_mut(unit) {
                Some(count) => *count += 1,
                None => drop(self.units.insert(unit.to_string(), 1)),
            }
        }
        if matches!(
            kind,
            Some(Kind::Category | Kind::Text | Kind::Time | Kind::Amount(_) | Kind::Date { format: Some(_) })
        ) {
            return;
        }
        if self.point {
            match number(cell) {
                Some(number) => {
                    self.numbers += 1;
                    self.leading_zero |= leads_with_zero(cell);
                    self.code |= is_code(cell);
                    self.rounded |= is_rounded_integer(cell, number);
                    self.look_at_point(cell);
                }
                None => self.point = false,
            }
        } else if cell.starts_with(|c: char| c.is_ascii_digit() || "+-.,".contains(c)) {
            let is_number = number(cell).is_some() || (self.commas && comma_number(cell).is_some());
            self.numbers += u64::from(is_number);
        }
        if self.comma {
            self.comma = comma_number(cell).is_some();
            match cell.trim_start_matches(['-', '+']).split_once(',') {
                Some((whole, decimals)) => {
                    let grouped =
                        decimals.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
                    self.thousands &= decimals.len() == 3;
                    self.grouped |= grouped;
                    self.short &= grouped;
                }
                None => {
                    self.bare = true;
                    self.short &= cell.trim_start_matches(['-', '+']).len() <= 3;
                }
            }
        }
        if self.date {
            match date::date(cell) {
                Some(written) => {
                    self.dates += 1;
                    self.dotted |= written.dotted;
                    self.zoned += u64::from(written.zoned == Some(true));
                    self.unzoned += u64::from(written.zoned == Some(false));
                    self.timeless += u64::from(written.zoned.is_none());
                    self.finer |= written.finer;
                }
                None => self.date = false,
            }
        } else if cell.starts_with(|c: char| c.is_ascii_digit()) && cell.len() >= 8 {
            self.dates += u64::from(date::date(cell).is_some());
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.numbers += other.numbers;
        self.dates += other.dates;
        self.point &= other.point;
        self.comma &= other.comma;
        self.date &= other.date;
        self.thousands &= other.thousands;
        self.grouped |= other.grouped;
        self.bare |= other.bare;
        self.short &= other.short;
        self.dotted_groups &= other.dotted_groups;
        self.pointed |= other.pointed;
        self.marks += other.marks;
        if let Some(mark) = &other.mark
            && self.mark.as_ref().is_none_or(|known| mark < known)
        {
            self.mark = Some(mark.clone());
        }
        self.leading_zero |= other.leading_zero;
        self.code |= other.code;
        self.rounded |= other.rounded;
        self.dotted |= other.dotted;
        self.zoned += other.zoned;
        self.unzoned += other.unzoned;
        self.timeless += other.timeless;
        self.finer |= other.finer;
        for (unit, count) in &other.units {
            *self.units.entry(unit.clone()).or_default() += count;
        }
    }

    /// Records whether a number with a point could have points as thousands separators.
    fn look_at_point(&mut self, cell: &str) {
        let unsigned = cell.trim_start_matches(['-', '+']);
        match unsigned.split_once('.') {
            Some((whole, decimals)) => {
                self.pointed = true;
                self.dotted_groups &=
                    decimals.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
            }
            None => self.dotted_groups &= unsigned.len() <= 3,
        }
    }

    /// Returns the form for reading another table of the same kind; `None` if the cells fit several forms.
    pub(super) fn form(&self, given: Option<&Kind>) -> Option<Kind> {
        let (kind, comma) = self.kind(given);
        match kind? {
            Kind::Number if comma => Some(Kind::Amount(Decimal::Comma)),
            Kind::Number if self.pointed => Some(Kind::Plain),
            kind @ (Kind::Amount(_) | Kind::Date { format: Some(_) }) => Some(kind),
            _ => None,
        }
    }

    /// The number of cells with each style of a column that is read as `kind`.
    pub(super) fn styles(&self, kind: Option<&Kind>) -> BTreeMap<String, u64> {
        match kind {
            Some(Kind::Amount(_)) => {
                let found = if self.units.is_empty() {
                    self.written.as_ref().map(WrittenSurvey::units)
                } else {
                    None
                };
                named_units(found.unwrap_or(&self.units)).collect()
            }
            Some(Kind::Date { format: None }) => {
                let counts = [self.zoned, self.unzoned, self.timeless];
                let names = ["with a time and a zone", "with a time and no zone", "without a time"];
                let counted = names.into_iter().zip(counts).filter(|(_, count)| *count > 0);
                counted.map(|(name, count)| (name.to_string(), count)).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Returns the cells that would decide the column's form although they are few.
    pub(super) fn few(&self) -> Option<Deciding> {
        self.written.as_ref().and_then(WrittenSurvey::few)
    }

    /// Returns true if the cells could be dates, amounts or times in other forms than plain ones, which needs a second pass.
    pub(super) fn is_open(&self, given: Option<&Kind>) -> bool {
        let asks = matches!(given, None | Some(Kind::Number | Kind::Date { format: None }));
        asks && self.present > 0 && !self.identifiers && !(self.point || self.comma || self.date)
    }

    /// Sets the result of the second look.
    pub(super) fn set_written(&mut self, written: WrittenSurvey) {
        self.written = Some(written);
    }

    /// Returns true if any cell is present.
    pub(super) fn any(&self) -> bool {
        self.present > 0
    }

    /// Returns the kind of nearly all, but not all, present cells. If the caller did not set its kind, such a column is
    /// not a column of names: it has wrong cells, or marks of missing cells.
    pub(super) fn nearly(&self) -> Option<Kind> {
        let most = |count: u64| count < self.present && count as f64 >= NEARLY * self.present as f64;
        if self.point
            || self.comma
            || self.date
            || self.written.as_ref().is_some_and(|written| written.is_known())
        {
            return None;
        }
        if most(self.numbers) {
            return Some(Kind::Number);
        }
        most(self.dates).then_some(Kind::Date { format: None })
    }

    /// Returns true if the column mixes numbers such as 996 and 1,033: a comma precedes three digits in every
    /// number of more than three digits, and in no other number. Such commas may separate thousands, so the
    /// reader does not take them for decimal commas.
    pub(super) fn has_thousands(&self) -> bool {
        self.comma && !self.point && self.grouped && self.bare && self.short
    }

    /// Returns the given or inferred kind, and true if numbers have a decimal comma. `None` means strings,
    /// whose number decides between category and text.
    pub(super) fn kind(&self, given: Option<&Kind>) -> (Option<Kind>, bool) {
        let comma = self.comma && !self.point;
        let written = self.written.as_ref();
        match given {
            Some(Kind::Number) if !self.point && !self.comma => {
                (Some(written.and_then(WrittenSurvey::amount).unwrap_or(Kind::Number)), false)
            }
            Some(Kind::Date { format: None }) if !self.date => {
                (Some(written.and_then(WrittenSurvey::date).unwrap_or(Kind::Date { format: None })), false)
            }
            Some(kind) => (Some(kind.clone()), comma),
            None if self.identifiers => {
                let is_number = self.any()
                    && !self.code
                    && !self.rounded
                    && (self.point || (comma && !self.has_thousands()));
                (is_number.then_some(Kind::Number), comma)
            }
            None if self.point || self.comma => (Some(Kind::Number), comma),
            None if self.date => (Some(Kind::Date { format: None }), false),
            None => (written.and_then(WrittenSurvey::kind), false),
        }
    }

    /// Adds notes about the column for the user.
    pub(super) fn notes(&self, name: &str, given: Option<&Kind>, notes: &mut Vec<String>) {
        let (kind, comma) = self.kind(given);
        let mut note = |text: &str| notes.push(format!("column `{name}`: {text}"));
        match kind {
            Some(Kind::Number | Kind::Plain) => {
                if comma && self.thousands {
                    note(
                        "read with a decimal comma, although three digits follow every comma; if the commas separate thousands, set its kind to \
                         number:1,234.5",
                    );
                } else if comma {
                    note("read with a decimal comma");
                }
                if !comma && self.point && self.pointed && self.dotted_groups && given.is_none() {
                    note(
                        "three digits follow every point; if the points separate thousands, set its kind to number:1.234,5",
                    );
                }
                if self.leading_zero {
                    note(
                        "leading zeros of numbers are ignored: 0123 and 123 are the same number; if they are codes, set its kind to \
                         category or text (of a key, data.key_kind = \"text\")",
                    );
                }
                if self.rounded {
                    note(
                        "integers of 2^53 and more may be rounded; if they are identifiers, set its kind to text",
                    );
                }
            }
            Some(Kind::Date { format: None }) => {
                if self.dotted {
                    note("dates read as DD.MM.YYYY");
                }
                if self.zoned > 0 && self.unzoned > 0 {
                    note("some times have a zone; times without a zone are read as UTC");
                }
                if self.finer {
                    note("times finer than a microsecond are cut off");
                }
            }
            Some(Kind::Amount(_)) if self.units.len() > 1 => {
                let counted: Vec<String> =
                    named_units(&self.units).map(|(name, count)| format!("{count} {name}")).collect();
                note(&format!(
                    "amounts with different units ({}), which are read as if they had one; write them in one unit",
                    counted.join(", ")
                ));
            }
            _ => {}
        }
        let strings = kind.is_none() || kind == Some(Kind::Category);
        if let Some(text) = self.written.as_ref().and_then(|written| written.note(name, kind.as_ref())) {
            note(&text);
        }
        if let Some(mark) = self.mark.as_ref().filter(|_| strings && given.is_none()) {
            note(&format!(
                "{} cells such as \"{}\" count as missing; if this is a value, set its kind to category or set other marks in `missing`",
                self.marks,
                shortened(mark)
            ));
        }
    }
}

/// Style of an amount without a unit.
pub(crate) const NO_UNIT: &str = "with no unit";

/// Units by name: "with no unit", "with the unit %".
fn named_units(units: &BTreeMap<String, u64>) -> impl Iterator<Item = (String, u64)> {
    let name = |unit: &str| {
        if unit.is_empty() { NO_UNIT.to_string() } else { format!("with the unit {unit}") }
    };
    units.iter().map(move |(unit, count)| (name(unit), *count))
}
