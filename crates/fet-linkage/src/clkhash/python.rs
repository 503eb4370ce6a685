//! Numbers as Python 3.11 parses them from text: `int(text, base=10)`, `float(text)`.

/// Maximum number of digits of an integer that Python parses.
const MOST_DIGITS: usize = 4_300;

/// First digit of each run of ten decimal digits in Unicode 14.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950,
    0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
    0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// Returns the integer in a text as Python prints it: no plus sign and no leading zeros.
pub(super) fn integer(text: &str) -> Option<String> {
    let ascii = ascii(text)?;
    let (minus, digits) = match ascii.strip_prefix(['+', '-']) {
        Some(digits) => (ascii.starts_with('-'), digits),
        None => (false, ascii.as_str()),
    };
    let digits = without_underscores(digits)?;
    if digits.is_empty() || digits.len() > MOST_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match digits.trim_start_matches('0') {
        "" => "0".into(),
        digits if minus => format!("-{digits}"),
        digits => digits.into(),
    })
}

/// Returns the finite number in a text.
pub(super) fn float(text: &str) -> Option<f64> {
    let number: f64 = without_underscores(&ascii(text)?)?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Trims a text and converts digits of all scripts to ASCII. Returns `None` if another non-ASCII character
/// remains.
fn ascii(text: &str) -> Option<String> {
    let sign = |sign: char| match sign.is_ascii() {
        true => Some(sign),
        false => digit(sign),
    };
    text.trim().chars().map(sign).collect()
}

fn digit(sign: char) -> Option<char> {
    let code = u32::from(sign);
    let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= code)].last()?;
    char::from_digit(code - zero, 10)
}

/// Removes underscores, which may only stand between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let right = |at: usize| bytes[at] != b'_' || digit(at.checked_sub(1)) && digit(Some(at + 1));
    (0..bytes.len()).all(right).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::{float, integer};

    /// Expected values are from Python 3.11.
    #[test]
    fn integers_as_python_reads_them() {
        let right = [
            ("5", "5"),
            (" 5\u{2003}", "5"),
            ("5\u{85}", "5"),
            ("0_1", "1"),
            ("-0", "0"),
            ("+0007", "7"),
            ("-0_07", "-7"),
            ("٣_٤", "34"),
            ("００７", "7"),
            ("𝟗", "9"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ];
        for (text, expected) in right {
            assert_eq!(integer(text).as_deref(), Some(expected), "{text:?}");
        }
        let long = "0".repeat(4_300);
        assert_eq!(integer(&long).as_deref(), Some("0"));
        for text in
            ["", " ", "²", "\u{1c}5", "5\0", "1__0", "_1", "1_", "+ 5", "--5", "1.0", &format!("{long}0")]
        {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_as_python_reads_them() {
        let right =
            [("1_0.5", 10.5), ("1.5_0", 1.5), ("1e1_0", 1e10), ("1.e5", 1e5), (" .5", 0.5), ("٣.٥", 3.5)];
        for (text, expected) in right {
            assert_eq!(float(text), Some(expected), "{text:?}");
        }
        for text in ["1._5", "1e", "._5", "1_e5", ".e5", "infinity", "nan", "0x10", "1e400", "1_.5", ".", ""]
        {
            assert_eq!(float(text), None, "{text:?}");
        }
    }
}
