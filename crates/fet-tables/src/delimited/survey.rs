//! What the cells of a text column could be. Surveys of pieces merge into the survey of the whole, in any order.

use crate::date;
use crate::number::{comma_number, is_rounded_integer, leads_with_zero, number};
use crate::options::Kind;

/// What holds for every present cell so far, and what was seen in some.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// A cell is present.
    pub(super) any: bool,
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
            any: false,
            point: true,
            comma: commas,
            date: true,
            slashed: true,
            thousands: true,
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
        self.any = true;
        if matches!(kind, Some(Kind::Category | Kind::Text | Kind::Date { format: Some(_) })) {
            return;
        }
        if self.point {
            match number(cell) {
                Some(number) => {
                    self.leading_zero |= leads_with_zero(cell);
                    self.rounded |= is_rounded_integer(cell, number);
                }
                None => self.point = false,
            }
        }
        if self.comma {
            self.comma = comma_number(cell).is_some();
            self.thousands &= cell.split_once(',').is_none_or(|(_, decimals)| decimals.len() == 3);
        }
        if self.date {
            match date::date(cell) {
                Some(written) => {
                    self.dotted |= written.dotted;
                    self.zoned |= written.zoned == Some(true);
                    self.unzoned |= written.zoned == Some(false);
                    self.finer |= written.finer;
                }
                None => self.date = false,
            }
        }
        self.slashed &= is_slashed(cell);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.any |= other.any;
        self.point &= other.point;
        self.comma &= other.comma;
        self.date &= other.date;
        self.slashed &= other.slashed;
        self.thousands &= other.thousands;
        self.leading_zero |= other.leading_zero;
        self.rounded |= other.rounded;
        self.dotted |= other.dotted;
        self.zoned |= other.zoned;
        self.unzoned |= other.unzoned;
        self.finer |= other.finer;
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
