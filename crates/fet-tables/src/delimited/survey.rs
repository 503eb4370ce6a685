//! What the cells of a text column could be. Surveys of pieces merge into the survey of the whole, in any order.

use crate::date;
use crate::number::{comma_number, is_rounded_integer, leads_with_zero, number};
use crate::options::Kind;

/// The share of cells from which a column is nearly of a kind.
const NEARLY: f64 = 0.9;

/// What holds for every present cell so far, and what was seen in some.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// The present cells.
    present: u64,
    /// Of these, those that are numbers.
    numbers: u64,
    /// And those that are dates in a form that is inferred.
    dates: u64,
    commas: bool,
    /// Every one is a number with a point.
    point: bool,
    /// Every one is a number with a comma, and the delimiter is none.
    comma: bool,
    /// Every one is a date in a form that is inferred.
    date: bool,
    /// Every one is a date such as 05/03/2024.
    slashed: bool,
    /// Every comma has three digits behind it.
    thousands: bool,
    /// Some cell has one comma, with one to three digits before it, the first no zero, and three behind.
    grouped: bool,
    /// Some cell is a whole number without a comma.
    bare: bool,
    /// Every whole number without a comma has at most three digits.
    short: bool,
    leading_zero: bool,
    rounded: bool,
    dotted: bool,
    zoned: bool,
    unzoned: bool,
    finer: bool,
}

impl Survey {
    /// Of no cell. `commas`: whether a comma may stand before decimals.
    pub(super) fn new(commas: bool) -> Self {
        Self {
            present: 0,
            numbers: 0,
            dates: 0,
            commas,
            point: true,
            comma: commas,
            date: true,
            slashed: true,
            thousands: true,
            grouped: false,
            bare: false,
            short: true,
            leading_zero: false,
            rounded: false,
            dotted: false,
            zoned: false,
            unzoned: false,
            finer: false,
        }
    }

    /// Looks at a cell of a column that the caller says is of `kind`.
    pub(super) fn look(&mut self, cell: Option<&str>, kind: Option<&Kind>) {
        let Some(cell) = cell else { return };
        self.present += 1;
        if matches!(kind, Some(Kind::Category | Kind::Text | Kind::Date { format: Some(_) })) {
            return;
        }
        if self.point {
            match number(cell) {
                Some(number) => {
                    self.numbers += 1;
                    self.leading_zero |= leads_with_zero(cell);
                    self.rounded |= is_rounded_integer(cell, number);
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
                    self.zoned |= written.zoned == Some(true);
                    self.unzoned |= written.zoned == Some(false);
                    self.finer |= written.finer;
                }
                None => self.date = false,
            }
        } else if cell.starts_with(|c: char| c.is_ascii_digit()) && cell.len() >= 8 {
            self.dates += u64::from(date::date(cell).is_some());
        }
        self.slashed &= is_slashed(cell);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.numbers += other.numbers;
        self.dates += other.dates;
        self.point &= other.point;
        self.comma &= other.comma;
        self.date &= other.date;
        self.slashed &= other.slashed;
        self.thousands &= other.thousands;
        self.grouped |= other.grouped;
        self.bare |= other.bare;
        self.short &= other.short;
        self.leading_zero |= other.leading_zero;
        self.rounded |= other.rounded;
        self.dotted |= other.dotted;
        self.zoned |= other.zoned;
        self.unzoned |= other.unzoned;
        self.finer |= other.finer;
    }

    /// Whether a cell is present.
    pub(super) fn any(&self) -> bool {
        self.present > 0
    }

    /// What nearly all present cells are, but not every one: a column whose kind nobody has given is then no column of names,
    /// but has cells that are wrong, or marks of missing ones.
    pub(super) fn nearly(&self) -> Option<Kind> {
        let most = |count: u64| count < self.present && count as f64 >= NEARLY * self.present as f64;
        if self.point || self.comma || self.date || self.slashed {
            return None;
        }
        if most(self.numbers) {
            return Some(Kind::Number);
        }
        most(self.dates).then_some(Kind::Date { format: None })
    }

    /// Whether 996 stands beside 1,033 in a column whose kind nobody has given: a comma that stands before three digits in every number
    /// of more than three and in no other separates thousands, and is not read as one.
    pub(super) fn has_thousands(&self) -> bool {
        self.comma && !self.point && self.grouped && self.bare && self.short
    }

    /// The kind, given or inferred, and whether numbers have a comma. None: categories or texts, by their number.
    pub(super) fn kind(&self, given: Option<&Kind>) -> (Option<Kind>, bool) {
        let comma = self.comma && !self.point;
        match given {
            Some(kind) => (Some(kind.clone()), comma),
            None if self.point || self.comma => (Some(Kind::Number), comma),
            None if self.date => (Some(Kind::Date { format: None }), false),
            None => (None, false),
        }
    }

    /// What a person may want to know about the column.
    pub(super) fn notes(&self, name: &str, given: Option<&Kind>, notes: &mut Vec<String>) {
        let (kind, comma) = self.kind(given);
        let mut note = |text: &str| notes.push(format!("column `{name}`: {text}"));
        match kind {
            Some(Kind::Number) => {
                if comma && self.thousands {
                    note(
                        "read with a decimal comma; every comma has three digits behind it: if it separates \
                         thousands, take it out of the file",
                    );
                } else if comma {
                    note("read with a decimal comma");
                }
                if self.leading_zero && given.is_none() {
                    note("numbers with leading zeros; if they are codes, set its kind to category or text");
                }
                if self.rounded {
                    note(
                        "integers of 2^53 and more, which may be rounded; if they are identifiers, set its kind to text",
                    );
                }
            }
            Some(Kind::Date { format: None }) => {
                if self.dotted {
                    note("dates read as DD.MM.YYYY");
                }
                if self.zoned && self.unzoned {
                    note("some times have a zone and some have none, which are read as UTC");
                }
                if self.finer {
                    note("times finer than a microsecond are cut off");
                }
            }
            None if self.slashed => note(
                "dates as DD/MM/YYYY or MM/DD/YYYY, which are not told apart; set its kind to date:%d/%m/%Y or \
                 date:%m/%d/%Y",
            ),
            _ => {}
        }
    }
}

/// One or two digits, a slash, one or two digits, a slash, four digits.
fn is_slashed(cell: &str) -> bool {
    let mut parts = cell.split('/');
    let mut is = |lengths: std::ops::RangeInclusive<usize>| {
        parts
            .next()
            .is_some_and(|part| lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
    };
    is(1..=2) && is(1..=2) && is(4..=4) && parts.next().is_none()
}
