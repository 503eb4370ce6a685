//! Cells of a file for a spreadsheet, which must not become formulas.

use super::pairs::quoted;

/// Returns a quoted cell for a spreadsheet.
pub(super) fn cell(text: &str) -> String {
    quoted(&for_spreadsheet(text))
}

/// Escapes a text that a spreadsheet could read as a formula, with a leading apostrophe. Numbers stay
/// unchanged. (OWASP, "CSV injection".)
fn for_spreadsheet(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_string() }
}

/// Returns the text of a cell that [`for_spreadsheet`] wrote.
pub(super) fn from_spreadsheet(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

fn is_formula(text: &str) -> bool {
    let signs = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    // A text that already begins with the apostrophe gets another one, so that every text can be recovered.
    text.trim_start_matches('\'').starts_with(signs) && !text.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_formulas_but_not_numbers() {
        for formula in
            ["=1+1", "=cmd|' /C calc'!A0", "+49 30 1234", "-", "@SUM(A1)", "\t=1", "＝1+1", "-1+1", "'=1"]
        {
            let safe = for_spreadsheet(formula);
            assert_eq!(safe, format!("'{formula}"));
            assert_eq!(from_spreadsheet(&safe), formula);
        }
        for plain in ["-5", "+1.5", "-1e-3", "O'Brien", "'tis", "1=1", "", "a\nb"] {
            assert_eq!(for_spreadsheet(plain), plain);
            assert_eq!(from_spreadsheet(plain), plain);
        }
        assert_eq!(cell("=\"a\",b"), "\"'=\"\"a\"\",b\"");
    }
}
