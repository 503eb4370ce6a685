//! Survey of a text column: the kinds that fit its cells. The surveys of pieces can be merged in any order.

use std::collections::BTreeMap;

use crate::date;
use crate::error::shortened;
use crate::number::{comma_number, is_code, is_rounded_integer, leads_with_zero, number};
use crate::options::Kind;

use super::units::Units;
use super::written::{Deciding, WrittenSurvey, keep_least};
use crate::written::{Decimal, unit};

/// Minimum share of cells of a kind for a column that is nearly of this kind.
const NEARLY: f64 = 0.9;

/// Properties of all present cells so far, and properties of at least one of them.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// True if the column contains keys that are compared for equality.
    identifiers: bool,
    /// Number of present cells.
    present: u64,
    numbers: NumberSurvey,
    dates: DateSurvey,
    /// Units of a column of amounts.
    units: Units,
    marks: Marks,
    /// Survey of other formats, if there was a second look.
    written: Option<WrittenSurvey>,
}

impl Survey {
    /// Creates an empty survey. `identifiers` is true if the cells are keys that are compared for equality;
    /// `commas` is true if a comma may be a decimal separator.
    pub(super) fn new(commas: bool, identifiers: bool) -> Self {
        Self {
            identifiers,
            present: 0,
            numbers: NumberSurvey::new(commas),
            dates: DateSurvey::new(),
            units: Units::default(),
            marks: Marks::default(),
            written: None,
        }
    }

    /// Counts a cell that is missing although it is not empty.
    pub(super) fn mark(&mut self, cell: &str) {
        self.marks.look(cell);
    }

    /// Adds a cell. `kind` is the kind that the caller set for the column.
    pub(super) fn look(&mut self, cell: Option<&str>, kind: Option<&Kind>) {
        let Some(cell) = cell else { return };
        self.present += 1;
        match kind {
            Some(Kind::Amount(_)) => self.units.look(unit(cell).0),
            Some(Kind::Category | Kind::Text | Kind::Time | Kind::Date { format: Some(_) }) => {}
            _ => {
                self.numbers.look(cell);
                self.dates.look(cell);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.numbers.merge(&other.numbers);
        self.dates.merge(&other.dates);
        self.units.merge(&other.units);
        self.marks.merge(&other.marks);
    }

    /// Returns the form for reading another table of the same kind; `None` if the cells fit several forms.
    pub(super) fn form(&self, given: Option<&Kind>) -> Option<Kind> {
        let (kind, comma) = self.kind(given);
        match kind? {
            Kind::Number if comma => Some(Kind::Amount(Decimal::Comma)),
            Kind::Number if self.numbers.points.any => Some(Kind::Plain),
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
                found.unwrap_or(&self.units).named().collect()
            }
            Some(Kind::Date { format: None }) => self.dates.styles(),
            _ => BTreeMap::new(),
        }
    }

    /// Returns the cells that would decide the column's form although they are few.
    pub(super) fn few(&self) -> Option<Deciding> {
        self.written.as_ref().and_then(WrittenSurvey::few)
    }

    /// Returns true if every cell is a plain number, or every cell is a date in a format that is inferred.
    fn is_plain(&self) -> bool {
        self.numbers.all() || self.dates.all
    }

    /// Returns true if the cells could be dates, amounts or times in other forms than plain ones, which needs a second pass.
    pub(super) fn is_open(&self, given: Option<&Kind>) -> bool {
        let is_inferred = matches!(given, None | Some(Kind::Number | Kind::Date { format: None }));
        is_inferred && self.present > 0 && !self.identifiers && !self.is_plain()
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
        if self.is_plain() || self.written.as_ref().is_some_and(|written| written.is_known()) {
            return None;
        }
        if most(self.numbers.count) {
            return Some(Kind::Number);
        }
        most(self.dates.count).then_some(Kind::Date { format: None })
    }

    /// Returns true if the column mixes numbers such as 996 and 1,033: a comma precedes three digits in every
    /// number of more than three digits, and in no other number. Such commas may separate thousands, so the
    /// reader does not take them for decimal commas.
    pub(super) fn has_thousands(&self) -> bool {
        let commas = &self.numbers.commas;
        self.numbers.has_decimal_comma() && commas.grouped && commas.bare && commas.short
    }

    /// Returns the given or inferred kind, and true if numbers have a decimal comma. `None` means strings,
    /// whose number decides between category and text.
    pub(super) fn kind(&self, given: Option<&Kind>) -> (Option<Kind>, bool) {
        let Self { numbers, dates, .. } = self;
        let comma = numbers.has_decimal_comma();
        let written = self.written.as_ref();
        match given {
            Some(Kind::Number) if !numbers.all() => {
                (Some(written.and_then(WrittenSurvey::amount).unwrap_or(Kind::Number)), false)
            }
            Some(Kind::Date { format: None }) if !dates.all => {
                (Some(written.and_then(WrittenSurvey::date).unwrap_or(Kind::Date { format: None })), false)
            }
            Some(kind) => (Some(kind.clone()), comma),
            None if self.identifiers => {
                let is_number =
                    self.any() && !numbers.code && !numbers.rounded && numbers.all() && !self.has_thousands();
                (is_number.then_some(Kind::Number), comma)
            }
            None if numbers.all() => (Some(Kind::Number), comma),
            None if dates.all => (Some(Kind::Date { format: None }), false),
            None => (written.and_then(WrittenSurvey::kind), false),
        }
    }

    /// Adds notes about the column for the user.
    pub(super) fn notes(&self, name: &str, given: Option<&Kind>, notes: &mut Vec<String>) {
        let (kind, _) = self.kind(given);
        let mut note = |text: &str| notes.push(format!("column `{name}`: {text}"));
        match kind {
            Some(Kind::Number | Kind::Plain) => self.numbers.notes(given.is_none(), &mut note),
            Some(Kind::Date { format: None }) => self.dates.notes(&mut note),
            Some(Kind::Amount(_)) => self.units.notes(&mut note),
            _ => {}
        }
        if let Some(text) = self.written.as_ref().and_then(|written| written.note(name, kind.as_ref())) {
            note(&text);
        }
        if kind.is_none() {
            self.marks.notes(&mut note);
        }
    }
}

/// Survey of plain numbers.
#[derive(Clone, Debug)]
struct NumberSurvey {
    /// Number of cells that are numbers.
    count: u64,
    points: Points,
    commas: Commas,
    leading_zero: bool,
    code: bool,
    rounded: bool,
}

impl NumberSurvey {
    fn new(commas: bool) -> Self {
        Self {
            count: 0,
            points: Points { all: true, any: false, thousands: true },
            commas: Commas {
                allowed: commas,
                all: commas,
                thousands: true,
                grouped: false,
                bare: false,
                short: true,
            },
            leading_zero: false,
            code: false,
            rounded: false,
        }
    }

    fn look(&mut self, cell: &str) {
        if self.points.all {
            match number(cell) {
                Some(number) => {
                    self.count += 1;
                    self.leading_zero |= leads_with_zero(cell);
                    self.code |= is_code(cell);
                    self.rounded |= is_rounded_integer(cell, number);
                    self.points.look(cell);
                }
                None => self.points.all = false,
            }
        } else if cell.starts_with(|c: char| c.is_ascii_digit() || "+-.,".contains(c)) {
            let is_number = number(cell).is_some() || (self.commas.allowed && comma_number(cell).is_some());
            self.count += u64::from(is_number);
        }
        if self.commas.all {
            self.commas.look(cell);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.points.merge(&other.points);
        self.commas.merge(&other.commas);
        self.leading_zero |= other.leading_zero;
        self.code |= other.code;
        self.rounded |= other.rounded;
    }

    /// Returns true if every cell is a number, with the same decimal separator.
    fn all(&self) -> bool {
        self.points.all || self.commas.all
    }

    /// Returns true if every cell is a number, and some have a decimal comma.
    fn has_decimal_comma(&self) -> bool {
        self.commas.all && !self.points.all
    }

    /// Adds notes about numbers; `inferred` is true if the caller did not set the column's kind.
    fn notes(&self, inferred: bool, note: &mut impl FnMut(&str)) {
        if self.has_decimal_comma() && self.commas.thousands {
            note(
                "read with a decimal comma, although three digits follow every comma; if the commas separate thousands, set its kind to \
                 number:1,234.5",
            );
        } else if self.has_decimal_comma() {
            note("read with a decimal comma");
        }
        if self.points.all && self.points.any && self.points.thousands && inferred {
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
            note("integers of 2^53 and more may be rounded; if they are identifiers, set its kind to text");
        }
    }
}

/// Points in numbers.
#[derive(Clone, Debug)]
struct Points {
    /// True if every cell is a number with a decimal point.
    all: bool,
    /// True if at least one cell has a point.
    any: bool,
    /// True if every point has one to three digits before it, no leading zero, and three digits after it, and
    /// all other numbers have at most three digits, so that points could separate thousands.
    thousands: bool,
}

impl Points {
    /// Adds a number with a decimal point, or without a point.
    fn look(&mut self, cell: &str) {
        let unsigned = cell.trim_start_matches(['-', '+']);
        match unsigned.split_once('.') {
            Some((whole, decimals)) => {
                self.any = true;
                self.thousands &= are_thousands(whole, decimals);
            }
            None => self.thousands &= unsigned.len() <= 3,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.all &= other.all;
        self.any |= other.any;
        self.thousands &= other.thousands;
    }
}

/// Commas in numbers.
#[derive(Clone, Debug)]
struct Commas {
    /// True if a comma may be a decimal separator: the delimiter is not a comma.
    allowed: bool,
    /// True if every cell is a number with a decimal comma, and commas are allowed.
    all: bool,
    /// True if three digits follow every comma.
    thousands: bool,
    /// True if at least one cell has one comma, with one to three digits before it, no leading zero, and three digits
    /// after it.
    grouped: bool,
    /// True if at least one cell is a whole number without a comma.
    bare: bool,
    /// True if every whole number without a comma has at most three digits.
    short: bool,
}

impl Commas {
    fn look(&mut self, cell: &str) {
        self.all = comma_number(cell).is_some();
        let unsigned = cell.trim_start_matches(['-', '+']);
        match unsigned.split_once(',') {
            Some((whole, decimals)) => {
                let grouped = are_thousands(whole, decimals);
                self.thousands &= decimals.len() == 3;
                self.grouped |= grouped;
                self.short &= grouped;
            }
            None => {
                self.bare = true;
                self.short &= unsigned.len() <= 3;
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.all &= other.all;
        self.thousands &= other.thousands;
        self.grouped |= other.grouped;
        self.bare |= other.bare;
        self.short &= other.short;
    }
}

/// Returns true if the separator between these texts could separate thousands.
fn are_thousands(whole: &str, rest: &str) -> bool {
    rest.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0')
}

/// Survey of dates in formats that are inferred.
#[derive(Clone, Debug)]
struct DateSurvey {
    /// Number of cells that are dates.
    count: u64,
    /// True if every cell is a date.
    all: bool,
    /// True if some date is written as DD.MM.YYYY.
    dotted: bool,
    /// Number of dates with a time and a zone.
    zoned: u64,
    /// Number of dates with a time and no zone.
    unzoned: u64,
    /// Number of dates without a time.
    timeless: u64,
    /// True if some time is finer than a microsecond.
    finer: bool,
}

impl DateSurvey {
    fn new() -> Self {
        Self { count: 0, all: true, dotted: false, zoned: 0, unzoned: 0, timeless: 0, finer: false }
    }

    fn look(&mut self, cell: &str) {
        if self.all {
            match date::date(cell) {
                Some(written) => {
                    self.count += 1;
                    self.dotted |= written.dotted;
                    self.zoned += u64::from(written.zoned == Some(true));
                    self.unzoned += u64::from(written.zoned == Some(false));
                    self.timeless += u64::from(written.zoned.is_none());
                    self.finer |= written.finer;
                }
                None => self.all = false,
            }
        } else if cell.starts_with(|c: char| c.is_ascii_digit()) && cell.len() >= 8 {
            self.count += u64::from(date::date(cell).is_some());
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.all &= other.all;
        self.dotted |= other.dotted;
        self.zoned += other.zoned;
        self.unzoned += other.unzoned;
        self.timeless += other.timeless;
        self.finer |= other.finer;
    }

    fn styles(&self) -> BTreeMap<String, u64> {
        let counts = [self.zoned, self.unzoned, self.timeless];
        let names = ["with a time and a zone", "with a time and no zone", "without a time"];
        let counted = names.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        counted.map(|(name, count)| (name.to_string(), count)).collect()
    }

    fn notes(&self, note: &mut impl FnMut(&str)) {
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
}

/// Cells that count as missing although they are not empty.
#[derive(Clone, Debug, Default)]
struct Marks {
    count: u64,
    /// The least of these cells.
    example: Option<String>,
}

impl Marks {
    fn look(&mut self, cell: &str) {
        self.count += 1;
        keep_least(&mut self.example, cell);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        other.example.iter().for_each(|cell| keep_least(&mut self.example, cell));
    }

    fn notes(&self, note: &mut impl FnMut(&str)) {
        if let Some(example) = &self.example {
            note(&format!(
                "{} cells such as \"{}\" count as missing; if this is a value, set its kind to category or set other marks in `missing`",
                self.count,
                shortened(example)
            ));
        }
    }
}
