//! Forms of text key columns: the rule for comparing a column's cells, decided once for the whole column and
//! never cell by cell.

use fet_tables::{DateOrder, Decided, Decimal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule for comparing the cells of a text key column for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// As written, without the white space around them: case, accents, punctuation and leading zeros count.
    Verbatim,
    /// As numbers: 77 equals 77.0. A cell that is not a number, or begins with a zero, is compared as
    /// written.
    Numbers,
    /// In their normal form: case, accents and punctuation do not count.
    Normal,
}

/// Minimum share of identifiers among the cells of an identifier column.
const IDENTIFIERS: f64 = 0.2;
/// Minimum number of letters in a word that counts as part of a name or an address.
const WORD: usize = 3;
/// Decimal digits that 64 bits hold exactly, whatever the number.
const DIGITS: usize = 15;
/// From here on 64 bits do not hold every whole number (2^53).
const APART: f64 = 9_007_199_254_740_992.0;

impl Comparison {
    /// Returns the comparison that fits these cells:
    ///
    /// - as numbers if all cells are numbers without a leading zero;
    /// - as written if at least a fifth of the cells look like identifiers (letters with digits, digits,
    ///   e-mail addresses);
    /// - otherwise in their normal form.
    pub fn detect<'a>(cells: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut present, mut shortest, mut whole, mut identifiers) = (0usize, 0usize, 0usize, 0usize);
        for cell in cells {
            let cell = cell.trim();
            if cell.is_empty() {
                continue;
            }
            present += 1;
            if let Some(number) = number(cell).map(|number| number + 0.0) {
                shortest += usize::from(number.to_string() == cell);
                whole +=
                    usize::from(cell.strip_suffix(".0").is_some_and(|whole| number.to_string() == whole));
            }
            identifiers += usize::from(is_identifier(cell));
        }
        match present {
            0 => Self::Normal,
            _ if shortest == present || whole == present => Self::Numbers,
            _ if identifiers as f64 >= IDENTIFIERS * present as f64 => Self::Verbatim,
            _ => Self::Normal,
        }
    }

    /// Returns a description of the comparison, for messages.
    pub fn description(self) -> &'static str {
        match self {
            Self::Verbatim => "as written (case, accents, punctuation and leading zeros count)",
            Self::Numbers => "as numbers (77 equals 77.0; 077, 1.10 and 1e2 are not numbers)",
            Self::Normal => "as names (case, accents and punctuation do not count)",
        }
    }
}

/// Returns the number in a cell. Integers with a leading zero do not count as numbers, nor do numbers of 2^53
/// and more, which a 64-bit float cannot distinguish.
pub fn number(cell: &str) -> Option<f64> {
    let unsigned = cell.strip_prefix('-').unwrap_or(cell);
    let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(decimals) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let is_whole = decimals.bytes().all(|byte| byte == b'0');
    let digits = [whole, decimals].concat().trim_start_matches('0').len();
    if !is_whole && (decimals.ends_with('0') || digits > DIGITS) {
        return None;
    }
    cell.parse::<f64>().ok().filter(|number| number.abs() < APART)
}

/// Returns true if a cell looks like an identifier: a digit without a word of letters only, or the characters
/// of a network address.
fn is_identifier(cell: &str) -> bool {
    if !cell.contains(char::is_whitespace) && (cell.contains(['@', '_']) || cell.contains("://")) {
        return true;
    }
    let is_word = |word: &str| {
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric());
        word.chars().count() >= WORD && word.chars().all(char::is_alphabetic)
    };
    cell.contains(char::is_numeric)
        && !(cell.contains(char::is_whitespace) && cell.split_whitespace().any(is_word))
}

/// Forms of a text key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Rule for comparing cells for equality.
    pub comparison: Comparison,
    /// Order of day and month in the column's dates, if its cells decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dates: Option<DateOrder>,
    /// Decimal separator in the column's numbers, if its cells decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
}

impl Form {
    /// Returns the forms that these cells decide.
    pub fn detect<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> Self {
        fn settled<T>(decided: Decided<T>) -> Option<T> {
            if let Decided::As(form) = decided { Some(form) } else { None }
        }
        Self {
            comparison: Comparison::detect(cells.clone()),
            dates: settled(DateOrder::decide(cells.clone())),
            decimal: settled(Decimal::decide(cells)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_decides_how_its_cells_are_compared() {
        let check = |cells: &[&str], expected: Comparison| {
            assert_eq!(Comparison::detect(cells.iter().copied()), expected, "{cells:?}");
        };
        check(&["77", "78.5", "-3", ""], Comparison::Numbers);
        check(&["0.5", "0", "-0.25"], Comparison::Numbers);
        // Other programs write whole numbers so.
        check(&["77.0", "-78.0", "0.0"], Comparison::Numbers);
        check(&["0123", "123"], Comparison::Verbatim);
        check(&["9007199254740993", "1"], Comparison::Verbatim);
        check(&["123456789X", "1234567890"], Comparison::Verbatim);
        check(&["001A0000006Vm9r"], Comparison::Verbatim);
        check(&["john-smith@example.org", "ann@example.org"], Comparison::Verbatim);
        check(&["SW1A 1AA", "B-AB 123"], Comparison::Verbatim);
        check(&["kLmNoP", "QrStUv", "a1b2c3"], Comparison::Verbatim);
        check(&["2020-01-01"], Comparison::Verbatim);
        check(&["Müller", "O'Brien", "smith 2"], Comparison::Normal);
        check(&["12 Main St.", "Apt. 3, 5 Elm Street"], Comparison::Normal);
        check(&["Person 7", "person 8"], Comparison::Normal);
        check(&["inf", "nan"], Comparison::Normal);
        check(&["", " "], Comparison::Normal);
    }

    #[test]
    fn compares_numbers_with_signs_of_identifiers_as_they_stand() {
        for cells in [
            &["1.1", "1.10"][..],
            &["77", "78.0"],
            &["1E2", "100"],
            &["1e3", "7"],
            &["+491", "491"],
            &["01.6", "2"],
            &["0", "-0"],
            &[".5", "0.5"],
            &["7.", "7"],
            &["0.12345678901234567890", "0.5"],
            &["0.12345678901234567891", "0.5"],
        ] {
            assert_eq!(Comparison::detect(cells.iter().copied()), Comparison::Verbatim, "{cells:?}");
        }
        for (cell, expected) in [
            ("77.00", Some(77.0)),
            ("-0.5", Some(-0.5)),
            ("0.123456789012345", Some(0.123_456_789_012_345)),
            ("9007199254740991", Some(9_007_199_254_740_991.0)),
            ("1.10", None),
            ("1e2", None),
            ("+7", None),
            ("0.1234567890123456", None),
            ("9007199254740993", None),
            ("077.5", None),
            ("-", None),
        ] {
            assert_eq!(number(cell), expected, "{cell}");
        }
    }
}
