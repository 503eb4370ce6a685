//! Review as CSV for a spreadsheet; cells of the tables cannot become formulas.

use std::fmt::Write;

use super::content::{PairToReview, Review};
use crate::link::decisions::{COMPARED, DECISION, IDS, ROWS};
use crate::link::spreadsheet::cell;

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
