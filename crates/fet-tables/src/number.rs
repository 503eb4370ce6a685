//! Converts text cells to numbers, and numbers to text that reads back to the same number.

/// 2^53: from here on double precision cannot represent every integer; 2^53 + 1 becomes 2^53.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// Parses a number with a decimal point. The result is infinite if the cell says so or if the number is too
/// large. "nan" is not a number.
pub(crate) fn number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|number| !number.is_nan())
}

/// Parses a number with a decimal comma, or without decimals.
pub(crate) fn comma_number(cell: &str) -> Option<f64> {
    if cell.contains('.') {
        return None;
    }
    if !cell.contains(',') {
        return number(cell);
    }
    number(&cell.replacen(',', ".", 1))
}

/// Returns true if `cell` begins with a zero that a number would lose, as in the postcode 01307.
pub(crate) fn leads_with_zero(cell: &str) -> bool {
    matches!(cell.as_bytes(), [b'0', b'0'..=b'9', ..])
}

/// Returns true if `cell` is a whole number with a leading zero, as the code 0123.
pub(crate) fn is_code(cell: &str) -> bool {
    leads_with_zero(cell) && cell.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if the cell's text is a whole number that double precision may have rounded.
pub(crate) fn is_rounded_integer(cell: &str, number: f64) -> bool {
    number.abs() >= EXACT && cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+')
}

/// Returns the shortest usual text that reads back to the same number, including the sign of zero.
pub(crate) fn text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number}") } else { format!("{number:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_back_from_its_text() {
        let odd = [
            0.0,
            -0.0,
            1.0,
            -7.0,
            0.1,
            1e15,
            1e16,
            1e22,
            1.5e300,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            EXACT,
        ];
        let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
        let random = (0..20_000).map(|_| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            f64::from_bits(bits)
        });
        for value in odd.into_iter().chain(random.filter(|value| value.is_finite())) {
            let text = text(value);
            let back = number(&text).map(f64::to_bits);
            assert_eq!(back, Some(value.to_bits()), "{value:?} as {text}");
        }
        assert_eq!([text(3.0), text(-0.0), text(0.25)], ["3", "-0", "0.25"]);
    }

    #[test]
    fn parses_numbers() {
        let check = |cell: &str, point: Option<f64>, comma: Option<f64>| {
            assert_eq!((number(cell), comma_number(cell)), (point, comma), "{cell}");
        };
        check("1.5", Some(1.5), None);
        check("1,5", None, Some(1.5));
        check("-3e2", Some(-300.0), Some(-300.0));
        check("1,234.5", None, None);
        check("1,2,3", None, None);
        check("nan", None, None);
        check("1e999", Some(f64::INFINITY), Some(f64::INFINITY));
        check("0x10", None, None);
        check("1_000", None, None);
        check("", None, None);
        check(",", None, None);
        assert!(leads_with_zero("01307") && !leads_with_zero("0.5") && !leads_with_zero("0"));
        assert!(is_rounded_integer("9007199254740993", 9_007_199_254_740_992.0));
        assert!(!is_rounded_integer("1e300", 1e300));
    }
}
