//! Review as CSV for a spreadsheet; cells of the tables cannot become formulas.

use std::fmt::Write;

use super::{PairToReview, Review};
use crate::link::decisions::{COMPARED, DECISION, IDS, ROWS};
use crate::link::pairs::quoted;

/// Returns the file: one line per pair, with an empty last cell for the decision.
pub(super) fn text(review: &Review<'_>) -> String {
    let mut columns: Vec<String> = vec![header(review)];
    columns.extend(["similarity", "rank", "linked"].map(String::from));
    for (first, second) in review.names[0].iter().zip(review.names[1]) {
        columns.extend([cell(&format!("primary.{first}")), cell(&format!("secondary.{second}"))]);
    }
    let mut text = format!("{},{DECISION}\n", columns.join(","));
    for pair in &review.pairs {
        let linked = if pair.linked { "yes" } else { "no" };
        let _ = write!(text, "{},{},{},{linked}", line(review, pair), pair.similarity, pair.rank + 1);
        let [primary, secondary] = review.rows(pair);
        for (first, second) in primary.iter().zip(secondary) {
            let _ = write!(text, ",{},{}", cell(first), cell(second));
        }
        text += ",\n";
    }
    text
}

/// Returns the names of the columns that identify a pair.
pub(super) fn header(review: &Review<'_>) -> String {
    ROWS.into_iter()
        .chain(review.ids.is_some().then_some(IDS).into_iter().flatten())
        .chain([COMPARED])
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns the cells that identify a pair.
pub(super) fn line(review: &Review<'_>, pair: &PairToReview) -> String {
    let mut line = format!("{},{}", pair.row, pair.record);
    if let Some([primary, secondary]) = review.ids {
        let _ = write!(line, ",{},{}", cell(&primary[pair.row]), cell(&secondary[pair.record as usize]));
    }
    let _ = write!(line, ",{}", review.cells.digest((pair.row as u32, pair.record)));
    line
}

fn cell(text: &str) -> String {
    quoted(&for_spreadsheet(text))
}

/// Escapes a text that a spreadsheet could read as a formula, with a leading apostrophe. Numbers stay
/// unchanged. (OWASP, "CSV injection".)
fn for_spreadsheet(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_string() }
}

/// Returns the text of a cell that [`for_spreadsheet`] wrote.
pub(in crate::link) fn from_spreadsheet(cell: &str) -> &str {
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
