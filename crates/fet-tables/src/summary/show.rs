//! Formats a summary as a plain text table.

use std::fmt;

use comfy_table::presets::ASCII_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

use super::{ColumnSummary, Figures, Summary};
use crate::error::shortened;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rows, {} columns", self.rows, self.columns.len())?;
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        table.set_header(["column", "kind", "missing", "distinct", "example", "values"]);
        for column in &self.columns {
            table.add_row([
                shortened(&column.name),
                column.kind.clone(),
                missing(column, self.rows),
                format!("{}{}", if column.distinct_more { "> " } else { "" }, column.distinct),
                column.example.as_deref().map(shortened).unwrap_or_default(),
                column.figures.as_ref().map(values).unwrap_or_default(),
            ]);
        }
        for at in [2, 3] {
            if let Some(column) = table.column_mut(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(f, "{table}")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// Formats the number of missing cells with their share in per cent, or "0".
fn missing(column: &ColumnSummary, rows: usize) -> String {
    match column.missing {
        0 => "0".into(),
        some if some == rows => format!("{some} (100 %)"),
        some => format!("{some} ({:.1} %)", 100.0 * column.missing_share),
    }
}

fn values(figures: &Figures) -> String {
    match figures {
        Figures::Number { min, mean, median, max } => format!(
            "{} .. {}, mean {}, median {}",
            digits(*min),
            digits(*max),
            digits(*mean),
            digits(*median)
        ),
        Figures::Date { min, median, max, .. } => format!("{min} .. {max}, median {median}"),
        Figures::Category { top } => {
            let top: Vec<String> =
                top.iter().map(|(name, count)| format!("{} ({count})", shortened(name))).collect();
            top.join(", ")
        }
        Figures::Text { shortest, longest } => format!("{shortest} to {longest} characters"),
    }
}

/// Formats a number with six significant digits.
fn digits(value: f64) -> String {
    let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if !(-4..9).contains(&exponent) {
        return format!("{value:.5e}");
    }
    let text = format!("{value:.*}", usize::try_from(5 - exponent).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
