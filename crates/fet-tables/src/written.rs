//! Dates and numbers with more than one possible format. The cells of the whole column decide on the format,
//! never a single cell.

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::number;

/// Order of day and month in dates that do not begin with the year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DateOrder {
    /// 31/12/1990.
    DayFirst,
    /// 12/31/1990.
    MonthFirst,
}

/// Decimal separator of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decimal {
    /// 1,234.5.
    Point,
    /// 1.234,5.
    Comma,
}

/// Decision between two formats, from the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided<T> {
    /// Some cells fit only this format, and no cell fits only the other format.
    As(T),
    /// Both formats give the same values.
    Either,
    /// Some cells have different values in the two formats, and no cell decides between the formats.
    Open,
    /// Some cells fit only the first format, and other cells fit only the second format.
    Both,
}

/// Evidence from the cells of a column for two formats. The evidence of pieces can be merged in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    first: u64,
    second: u64,
    /// Cells with one value in the first form, and another in the second.
    open: u64,
    /// Such cells, which are usually of the first form.
    usual: u64,
}

/// Minimum share of the deciding cells: fewer cells do not decide the form of a column.
const ENOUGH: f64 = 0.1;

impl Evidence {
    /// Adds the values of a cell in the two formats. Returns false if the cell has no value in either format.
    pub(crate) fn add<V: PartialEq>(&mut self, values: [Option<V>; 2], usual: bool) -> bool {
        match values {
            [None, None] => return false,
            [Some(_), None] => self.first += 1,
            [None, Some(_)] => self.second += 1,
            [Some(one), Some(other)] if one == other => {}
            _ if usual => self.usual += 1,
            _ => self.open += 1,
        }
        true
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.first += other.first;
        self.second += other.second;
        self.open += other.open;
        self.usual += other.usual;
    }

    pub(crate) fn decided<T>(self, forms: [T; 2]) -> Decided<T> {
        let [first, second] = forms;
        match (self.first > 0, self.second > 0) {
            (true, true) => Decided::Both,
            (true, false) => Decided::As(first),
            (false, true) => Decided::As(second),
            (false, false) if self.open > 0 => Decided::Open,
            (false, false) if self.usual > 0 => Decided::As(first),
            (false, false) => Decided::Either,
        }
    }

    /// Returns the form that only a few cells fit, too few to decide for the column, with their number, and true if the other cells fit only
    /// the other form rather than both.
    pub(crate) fn few<T>(self, forms: [T; 2]) -> Option<Few<T>> {
        let [one, other] = forms;
        let few = |count: u64, others: u64| count > 0 && (count as f64) < ENOUGH * (count + others) as f64;
        let found = |form, count, against| Some(Few { form, count, against });
        match (self.first, self.second) {
            (first, 0) if few(first, self.open) => found(one, first, false),
            (0, second) if few(second, self.open + self.usual) => found(other, second, false),
            (first, second) if second > 0 && few(first, second + self.open) => found(one, first, true),
            (first, second) if first > 0 && few(second, first + self.open + self.usual) => {
                found(other, second, true)
            }
            _ => None,
        }
    }

    /// The number of cells that fit the first, and the second form alone.
    pub(crate) fn alone(self) -> [u64; 2] {
        [self.first, self.second]
    }
}

/// Few cells that fit one form alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Few<T> {
    pub(crate) form: T,
    pub(crate) count: u64,
    /// Some of the other cells fit the other form alone.
    pub(crate) against: bool,
}

impl DateOrder {
    pub(crate) const FORMS: [Self; 2] = [Self::DayFirst, Self::MonthFirst];

    /// Decides on the order of day and month in these cells. Cells that are not such dates are ignored.
    pub fn decide<'a>(cells: impl IntoIterator<Item = &'a str>) -> Decided<Self> {
        let mut evidence = Evidence::default();
        for cell in cells {
            Self::look(cell, &mut evidence);
        }
        evidence.decided(Self::FORMS)
    }

    /// Adds the evidence of a cell. Returns false if the cell is not a date that begins with day or month.
    pub(crate) fn look(cell: &str, evidence: &mut Evidence) -> bool {
        let Some(parts) = Parts::parse(cell) else { return false };
        evidence.add(Self::FORMS.map(|order| parts.date(order)), parts.dotted)
    }

    /// Parses a date in this order, with a year of four digits, and ignores a time of day. Returns `None` if
    /// the cell is not a date or begins with the year.
    pub fn date(self, cell: &str) -> Option<NaiveDate> {
        Parts::parse(cell)?.date(self)
    }
}

/// Parts of a date: two numbers of one or two digits, and a year.
struct Parts {
    first: u32,
    second: u32,
    year: i32,
    /// True if dots separate the parts, as in 31.12.1990.
    dotted: bool,
}

impl Parts {
    fn parse(cell: &str) -> Option<Self> {
        let cell = cell.trim();
        if !cell.is_ascii() {
            return None;
        }
        let number = |text: &str| text.parse::<u32>().ok();
        if cell.len() == 8 && cell.bytes().all(|byte| byte.is_ascii_digit()) {
            let begins_with_year = NaiveDate::parse_from_str(cell, "%Y%m%d").is_ok();
            let (first, second, year) = (number(&cell[..2])?, number(&cell[2..4])?, number(&cell[4..])?);
            return (!begins_with_year).then_some(Self { first, second, year: year as i32, dotted: false });
        }
        let (first, rest) = digits(cell, 1..=2)?;
        let (one, rest) = separator(rest)?;
        let (second, rest) = digits(rest, 1..=2)?;
        let (other, rest) = separator(rest)?;
        let (year, rest) = digits(rest, 4..=4)?;
        let is_time = rest.is_empty()
            || rest
                .strip_prefix([' ', 'T', 't'])
                .is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
        if one != other || !is_time {
            return None;
        }
        Some(Self {
            first: number(first)?,
            second: number(second)?,
            year: number(year)? as i32,
            dotted: one == '.',
        })
    }

    fn date(&self, order: DateOrder) -> Option<NaiveDate> {
        let (day, month) = match order {
            DateOrder::DayFirst => (self.first, self.second),
            DateOrder::MonthFirst => (self.second, self.first),
        };
        NaiveDate::from_ymd_opt(self.year, month, day).filter(|_| self.year >= 1000)
    }
}

fn digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    lengths.contains(&length).then(|| text.split_at(length))
}

/// Returns the separator between two parts of a date, which may be surrounded by spaces or be a space, and
/// the rest of the text.
fn separator(text: &str) -> Option<(char, &str)> {
    let trimmed = text.trim_start();
    match trimmed.strip_prefix(['/', '-', '.']) {
        Some(rest) => Some((trimmed.chars().next()?, rest.trim_start())),
        None => (trimmed.len() < text.len()).then_some((' ', trimmed)),
    }
}

impl Decimal {
    pub(crate) const FORMS: [Self; 2] = [Self::Point, Self::Comma];

    /// Decides on the decimal separator in these cells. Cells that are not numbers are ignored.
    pub fn decide<'a>(cells: impl IntoIterator<Item = &'a str>) -> Decided<Self> {
        let mut evidence = Evidence::default();
        for cell in cells {
            Self::look(cell, &mut evidence);
        }
        evidence.decided(Self::FORMS)
    }

    /// Adds the evidence of a cell. Returns false if the cell is not a number in either format.
    pub(crate) fn look(cell: &str, evidence: &mut Evidence) -> bool {
        // A point before three digits is usually a decimal point; a comma can mean either.
        evidence.add(Self::FORMS.map(|form| form.number(cell)), !cell.contains(','))
    }

    /// Parses a number in this format, with an optional unit ([`unit()`]) and optional thousands separators.
    pub fn number(self, cell: &str) -> Option<f64> {
        let (_, body) = unit(cell);
        let (negative, body) = match body.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) => (true, inner),
            None => match body.strip_prefix(['-', '\u{2212}']) {
                Some(rest) => (true, unit(rest).1),
                None => (false, body.strip_prefix('+').unwrap_or(body)),
            },
        };
        if !body.starts_with(|sign: char| sign.is_ascii_digit() || ".,".contains(sign)) {
            return None;
        }
        let value = self.plain(body)?;
        Some(if negative { -value } else { value })
    }

    /// Parses a number without sign and unit.
    fn plain(self, body: &str) -> Option<f64> {
        let (decimal, group) = match self {
            Self::Point => ('.', ','),
            Self::Comma => (',', '.'),
        };
        let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, part) = body.split_once(decimal).unwrap_or((body, ""));
        let between = whole.chars().find(|sign| !sign.is_ascii_digit());
        let whole = match between {
            None => whole.to_string(),
            Some(sign) if sign == group || is_blank(sign) || matches!(sign, '\'' | '\u{2019}') => {
                let groups: Vec<&str> = whole.split(sign).collect();
                let sound = groups.iter().all(|part| is_whole(part))
                    && (1..=3).contains(&groups[0].len())
                    && !groups[0].starts_with('0')
                    && groups[1..].iter().all(|part| part.len() == 3);
                if !sound {
                    return None;
                }
                groups.concat()
            }
            // An exponent, as in 1e5 or 1,5e3.
            Some(_) => return number(&body.replacen(decimal, ".", 1)).filter(|number| number.is_finite()),
        };
        match part {
            "" if is_whole(&whole) => number(&whole),
            _ if (whole.is_empty() || is_whole(&whole)) && is_whole(part) => {
                number(&format!("{whole}.{part}"))
            }
            _ if is_whole(&whole) && self == Self::Point => number(body).filter(|number| number.is_finite()),
            _ if is_whole(&whole) => number(&body.replacen(',', ".", 1)).filter(|number| number.is_finite()),
            _ => None,
        }
    }
}

fn is_blank(sign: char) -> bool {
    matches!(sign, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

/// Recognised currency codes (ISO 4217).
const CODES: [&str; 24] = [
    "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "CAD", "AUD", "NZD",
    "SGD", "HKD", "INR", "BRL", "MXN", "ZAR", "KRW", "TRY", "ILS",
];

/// Splits an amount into its unit and the rest of the cell. The unit is a percent sign, or the sign or code
/// of a currency, at either end. Without a unit it is empty.
pub fn unit(cell: &str) -> (&str, &str) {
    let cell = cell.trim();
    let is_sign = |sign: char| {
        matches!(sign, '%' | '\u{2030}' | '$' | '\u{a3}' | '\u{a5}' | '\u{a2}' | '\u{20a0}'..='\u{20cf}')
    };
    if let Some(first) = cell.chars().next().filter(|sign| is_sign(*sign)) {
        return (&cell[..first.len_utf8()], cell[first.len_utf8()..].trim_start());
    }
    if let Some(last) = cell.chars().next_back().filter(|sign| is_sign(*sign)) {
        let start = cell.len() - last.len_utf8();
        return (&cell[start..], cell[..start].trim_end());
    }
    // "-$5": the minus sign stays with the number.
    if let Some(rest) = cell.strip_prefix(['-', '\u{2212}'])
        && let Some(first) = rest.chars().next().filter(|sign| is_sign(*sign))
    {
        return (&rest[..first.len_utf8()], cell);
    }
    for code in CODES {
        if let Some(rest) = cell.strip_prefix(code) {
            return (&cell[..code.len()], rest.trim_start());
        }
        if let Some(rest) = cell.strip_suffix(code) {
            return (&cell[rest.len()..], rest.trim_end());
        }
    }
    ("", cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_decides_the_order_of_day_and_month() {
        let check = |cells: &[&str], expected: Decided<DateOrder>| {
            assert_eq!(DateOrder::decide(cells.iter().copied()), expected, "{cells:?}");
        };
        check(&["03/04/2024", "31/12/2024"], Decided::As(DateOrder::DayFirst));
        check(&["03/04/2024", "12/31/2024 10:20"], Decided::As(DateOrder::MonthFirst));
        check(&["31-12-2024", "12-31-2024"], Decided::Both);
        check(&["3/4/2024", "5/5/2024"], Decided::Open);
        check(&["5/5/2024", "1990-02-03", "unknown", ""], Decided::Either);
        check(&["3.4.2024"], Decided::As(DateOrder::DayFirst));
        check(&["3.4.2024", "12.31.2024"], Decided::As(DateOrder::MonthFirst));
        check(&["3.4.2024", "3/4/2024"], Decided::Open);
        check(&["03041990"], Decided::Open);
        check(&["19900304", "20101112"], Decided::Either);
        check(&["31/12-2024", "1/2/3", "192.168.1.1990", "5/6/0999"], Decided::Either);
        assert_eq!(
            DateOrder::MonthFirst.date("03/04/2024").map(|date| date.to_string()).as_deref(),
            Some("2024-03-04")
        );
    }

    #[test]
    fn a_column_decides_the_sign_before_decimals() {
        let check = |cells: &[&str], expected: Decided<Decimal>| {
            assert_eq!(Decimal::decide(cells.iter().copied()), expected, "{cells:?}");
        };
        check(&["1,234", "1,234.50"], Decided::As(Decimal::Point));
        check(&["1.234", "1.234,50"], Decided::As(Decimal::Comma));
        check(&["1 234,50", "12"], Decided::As(Decimal::Comma));
        check(&["1'234.50"], Decided::As(Decimal::Point));
        check(&["1,234,567"], Decided::As(Decimal::Point));
        check(&["1,5", "1.5"], Decided::Both);
        check(&["1,234", "12"], Decided::Open);
        check(&["1.234", "12"], Decided::As(Decimal::Point));
        check(&["12", "1 234", "n/a"], Decided::Either);
        check(&["0,125"], Decided::As(Decimal::Comma));
    }

    #[test]
    fn amounts_are_numbers_in_their_form() {
        let check = |form: Decimal, cell: &str, expected: Option<f64>| {
            assert_eq!(form.number(cell), expected, "{cell}");
        };
        check(Decimal::Point, "$1,234.50", Some(1234.5));
        check(Decimal::Point, "-$5", Some(-5.0));
        check(Decimal::Point, "$-5", Some(-5.0));
        check(Decimal::Point, "(1,234.50)", Some(-1234.5));
        check(Decimal::Point, "12.5%", Some(12.5));
        check(Decimal::Point, "1e3", Some(1000.0));
        check(Decimal::Point, "1.5e-3", Some(0.0015));
        check(Decimal::Comma, "1.234,50 €", Some(1234.5));
        check(Decimal::Comma, "EUR 1\u{202f}234,50", Some(1234.5));
        check(Decimal::Comma, "1,5e3", Some(1500.0));
        check(Decimal::Point, "1,23,456", None);
        check(Decimal::Point, "12,34", None);
        check(Decimal::Point, "1,234,56", None);
        check(Decimal::Point, "0,123", None);
        check(Decimal::Point, "", None);
        check(Decimal::Point, "inf", None);
        check(Decimal::Point, "A12", None);
        check(Decimal::Point, "1.2.3", None);
        check(Decimal::Comma, "1.2.3", None);
    }
}
