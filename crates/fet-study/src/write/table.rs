//! Table of a study, with a row per variant: for the terminal, as Markdown, and as LaTeX.
//!
//! Numbers are rounded, and only significant differences are bold. Unrounded numbers are in `results.json`.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{Cell as Field, CellAlignment};
use fet_eval::Metric;

use super::super::paired::Ends;
use super::super::row::{ComparisonVerdict, Row};
use super::super::statistics::paired::PairedComparison;
use super::super::statistics::{mean, standard_deviation};
use super::super::summary::StudySummary;

/// Contents of a table, rounded.
#[derive(Debug)]
pub(crate) struct ReportTable {
    /// Column titles.
    pub(crate) header: Vec<String>,
    /// Rows, one for each variant.
    pub(crate) rows: Vec<TableRow>,
}

/// Row of one variant.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// Fields in the order of the header.
    pub(crate) fields: Vec<String>,
    /// True if a test shows a difference from the base.
    pub(crate) differs: bool,
}

/// Index of the column with the difference from the base, if the table has one.
pub(crate) const DIFFERENCE: usize = 3;

/// Invisible characters that mark bold text until the layout is complete.
const BOLD: char = '\u{2061}';
const PLAIN: char = '\u{2062}';

impl ReportTable {
    /// Creates the main table of a summary.
    pub(crate) fn new(summary: &StudySummary<'_>) -> Self {
        let metric = summary.metric;
        let most = summary.rows.iter().map(|row| row.tests.len()).max().unwrap_or(0);
        let of = if most > 1 { "mean ± std" } else { "1 seed" };
        let title = metric.map_or_else(|| "metric".to_string(), Metric::title);
        let mut header = vec!["variant".to_string(), format!("test {title} ({of})"), "n".to_string()];
        if summary.compares() {
            let against = match base_name(summary) {
                Some(name) => format!("against {name} (95 %)"),
                None => "against its base (95 %)".to_string(),
            };
            header.extend([against, "p".to_string(), "effect d".to_string()]);
        }
        let protects = summary.protects();
        if protects {
            header.push(epsilon_title(summary));
        }
        let protects_labels = summary.protects_labels();
        if protects_labels {
            header.push("ε of labels".to_string());
        }
        let leaks = summary.defences.is_some();
        if leaks {
            header.push("leakage".to_string());
        }
        header.extend(["best epoch", "seconds", "rows/s"].map(str::to_string));
        let row = |row: &Row<'_>| {
            let mut fields =
                vec![row.variant.name.clone(), spread(row, metric.is_none()), row.tests.len().to_string()];
            if summary.compares() {
                fields.extend(compared(row, metric));
            }
            if protects {
                fields.push(privacy_loss(row.epsilon()));
            }
            if protects_labels {
                fields.push(privacy_loss(row.label_epsilon()));
            }
            if leaks {
                fields.push(mean_and_deviation(&row.leakage(), share));
            }
            fields.extend([
                shown(row.mean_of(|result| result.report.best.epoch as f64), 1),
                shown(row.mean_of(|result| result.report.cost.seconds), 1),
                shown(row.median_of(|result| result.report.cost.train_rows_per_second), 0),
            ]);
            TableRow { fields, differs: row.differs() }
        };
        Self { header, rows: summary.rows.iter().map(row).collect() }
    }

    /// Formats the table for people. A significant difference is bold on a terminal, and has a `*` elsewhere.
    pub(crate) fn text(&self, is_terminal: bool) -> String {
        let mark =
            |text: &str| if is_terminal { format!("{BOLD}{text}{PLAIN}") } else { format!("* {text}") };
        let mut table = self.lay_out(mark);
        table.load_style(UTF8_FULL_CONDENSED);
        table.to_string().replace(BOLD, "\u{1b}[1m").replace(PLAIN, "\u{1b}[0m")
    }

    /// Formats the table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut table = self.lay_out(|text| format!("**{text}**"));
        table.load_style(ASCII_MARKDOWN);
        format!("{table}\n")
    }

    /// Formats the table as a LaTeX `tabular` that uses the package booktabs.
    pub(crate) fn latex(&self) -> String {
        let mut text = format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(self.header.len() - 1));
        let line = |fields: Vec<String>| format!("{} \\\\\n", fields.join(" & "));
        text.push_str(&line(self.header.iter().map(|field| latex(field)).collect()));
        text.push_str("\\midrule\n");
        for row in &self.rows {
            let field = |(column, field): (usize, &String)| {
                if row.differs && column == DIFFERENCE {
                    format!("\\textbf{{{}}}", latex(field))
                } else {
                    latex(field)
                }
            };
            text.push_str(&line(row.fields.iter().enumerate().map(field).collect()));
        }
        text + "\\bottomrule\n\\end{tabular}\n"
    }

    fn lay_out(&self, mark: impl Fn(&str) -> String) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.set_header(self.header.iter().map(|text| text.replace('|', "¦")));
        for row in &self.rows {
            table.add_row(row.fields.iter().enumerate().map(|(column, text)| {
                let is_marked = column == DIFFERENCE && row.differs;
                let text = if is_marked { mark(text) } else { text.replace('|', "¦") };
                let side = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
                Field::new(text).set_alignment(side)
            }));
        }
        table
    }
}

/// Returns the name of the base if all rows have the same base.
fn base_name(summary: &StudySummary<'_>) -> Option<String> {
    let mut bases = summary.rows.iter().filter_map(|row| row.base).map(|base| summary.runs[base]);
    let first = bases.next()?;
    bases.all(|base| base == first).then(|| summary.rows[first].variant.run())
}

/// Returns the mean of a row with its standard deviation.
pub(crate) fn spread(row: &Row<'_>, with_name: bool) -> String {
    let Some(own) = row.results.first() else { return dash() };
    let metric = own.report.metric;
    let name = if with_name { format!("{} ", metric.title()) } else { String::new() };
    format!("{name}{}", mean_and_deviation(&row.tests, |value| metric.show(value)))
}

/// Returns the mean of `values` with the standard deviation, or a dash without values.
pub(crate) fn mean_and_deviation(values: &[f64], show: impl Fn(f64) -> String) -> String {
    if values.is_empty() {
        return dash();
    }
    let deviation = standard_deviation(values).map(|deviation| format!(" ± {}", show(deviation)));
    format!("{}{}", show(mean(values)), deviation.unwrap_or_default())
}

/// Formats a leakage or a score, from 0 to 1.
pub(crate) fn share(value: f64) -> String {
    format!("{value:.3}")
}

/// Returns the title of the ε column, with δ if all rows have the same δ.
pub(crate) fn epsilon_title(summary: &StudySummary<'_>) -> String {
    summary.delta().map_or_else(|| "ε".to_string(), |delta| format!("ε (δ = {delta:e})"))
}

/// Returns the difference from the base with its interval, p, and effect size.
pub(crate) fn compared(row: &Row<'_>, metric: Option<Metric>) -> [String; 3] {
    let [difference, p, effect] = against(row.comparison.as_ref(), metric);
    if row.verdict == ComparisonVerdict::NotAsked {
        [difference, dash(), effect]
    } else {
        [difference, p, effect]
    }
}

/// Returns a difference with its interval, p, and effect size.
pub(crate) fn against(comparison: Option<&PairedComparison>, metric: Option<Metric>) -> [String; 3] {
    let (Some(comparison), Some(metric)) = (comparison, metric) else { return [dash(), dash(), dash()] };
    let signed = |value: f64| signed(value, metric);
    let Some(test) = &comparison.test else {
        return [signed(comparison.difference), "untested".to_string(), dash()];
    };
    let (low, high) = (comparison.difference - test.half_width, comparison.difference + test.half_width);
    let difference = format!("{} [{}, {}]", signed(comparison.difference), signed(low), signed(high));
    let effect = test.effect.map_or_else(dash, |effect| format!("{effect:.1}").replace('-', "−"));
    [difference, probability(test.corrected), effect]
}

/// Formats a difference with its sign.
fn signed(value: f64, metric: Metric) -> String {
    let text = metric.show(value.abs());
    let is_zero = text.chars().all(|c| "0.".contains(c));
    format!(
        "{}{text}",
        if is_zero {
            ""
        } else if value < 0.0 {
            "−"
        } else {
            "+"
        }
    )
}

/// Returns the intervals of a difference over test rows, and over test rows and splits.
pub(crate) fn over_rows(comparison: &PairedComparison, metric: Metric) -> [String; 2] {
    let shown = |ends: Ends| format!("[{}, {}]", signed(ends.lower, metric), signed(ends.upper, metric));
    match &comparison.over_rows {
        Ok(found) => [shown(found.over_rows), found.over_rows_and_splits.map_or_else(dash, shown)],
        Err(_) => [dash(), dash()],
    }
}

/// Formats ε with two decimals, or a dash if the run releases nothing.
pub(crate) fn privacy_loss(epsilon: Option<f64>) -> String {
    match epsilon {
        None => dash(),
        Some(epsilon) if epsilon.is_infinite() => "∞".to_string(),
        Some(epsilon) => format!("{epsilon:.2}"),
    }
}

/// Formats a p-value.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_string() } else { format!("{p:.3}") }
}

/// Formats a number with `digits` decimals, or a dash for NaN.
pub(crate) fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() { dash() } else { format!("{value:.digits$}") }
}

fn dash() -> String {
    "—".to_string()
}

fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            '|' => escaped.push_str("$|$"),
            '±' => escaped.push_str("$\\pm$"),
            '−' => escaped.push_str("$-$"),
            '·' => escaped.push_str("$\\cdot$"),
            '—' => escaped.push_str("---"),
            'ε' => escaped.push_str("$\\varepsilon$"),
            'δ' => escaped.push_str("$\\delta$"),
            '∞' => escaped.push_str("$\\infty$"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use fet_eval::records::Target;

    use super::super::super::results::tests::{ACCURACY, RMSE, attack, labels, spent};
    use super::super::super::summary::tests::{pair, study};
    use super::*;

    #[test]
    fn shows_a_privacy_column_if_a_run_has_a_mechanism() {
        let (grid, cells, mut reports) =
            study(&[(0, 0, RMSE, 1.0), (0, 1, RMSE, 1.0), (1, 0, RMSE, 1.0), (2, 0, RMSE, 1.0)]);
        reports[2].privacy = spent(None, 0.0);
        let made =
            |reports: &[_]| ReportTable::new(&StudySummary::new(&grid, &cells, &pair(&cells, reports)));
        assert!(!made(&reports).header.iter().any(|name| name.starts_with('ε')), "nothing is bounded");
        (reports[0].privacy, reports[1].privacy) = (spent(Some(2.5), 1e-5), spent(Some(3.0), 1e-5));
        let table = made(&reports);
        let column = table.header.iter().position(|name| name == "ε (δ = 1e-5)").expect("a column");
        let column: Vec<&str> = table.rows.iter().map(|row| row.fields[column].as_str()).collect();
        assert_eq!(column, ["3.00", "∞", "—"]);
        assert!(table.latex().contains("$\\varepsilon$ ($\\delta$ = 1e-5)"), "{}", table.latex());
        reports[1].privacy = spent(Some(3.0), 1e-6);
        assert!(made(&reports).header.iter().any(|name| name == "ε"), "different δ");
    }

    #[test]
    fn shows_a_label_column_if_a_run_protects_labels() {
        let (grid, cells, mut reports) =
            study(&[(0, 0, RMSE, 1.0), (1, 0, RMSE, 1.0), (2, 0, RMSE, 1.0), (0, 1, RMSE, 1.0)]);
        let made =
            |reports: &[_]| ReportTable::new(&StudySummary::new(&grid, &cells, &pair(&cells, reports)));
        reports[1].labels = labels(None);
        assert!(!made(&reports).header.iter().any(|name| name.starts_with('ε')), "nothing is bounded");
        (reports[0].labels, reports[3].labels) = (labels(Some(0.5)), labels(Some(1.0)));
        let table = made(&reports);
        let column = table.header.iter().position(|name| name == "ε of labels").expect("a column");
        let column: Vec<&str> = table.rows.iter().map(|row| row.fields[column].as_str()).collect();
        assert_eq!(column, ["1.00", "∞", "—"]);
    }

    #[test]
    fn shows_a_leakage_column_if_a_run_is_attacked() {
        let (grid, cells, mut reports) =
            study(&[(0, 0, RMSE, 1.0), (1, 0, RMSE, 1.0), (2, 0, RMSE, 1.0), (0, 1, RMSE, 1.0)]);
        let made =
            |reports: &[_]| ReportTable::new(&StudySummary::new(&grid, &cells, &pair(&cells, reports)));
        assert!(!made(&reports).header.iter().any(|name| name == "leakage"), "nothing is attacked");
        for (index, value) in [(0, 0.7), (3, 0.8), (1, 0.4)] {
            reports[index].attack = attack("norm", Target::Labels, value, 1.0);
        }
        let table = made(&reports);
        let column = table.header.iter().position(|name| name == "leakage").expect("a column");
        let column: Vec<&str> = table.rows.iter().map(|row| row.fields[column].as_str()).collect();
        // (0.7 − 0.5) / 0.5 = 0.4, and likewise 0.6; their standard deviation is 0.1 √2. Below the baseline
        // the leakage is 0.
        assert_eq!(column, ["0.500 ± 0.141", "0.000", "—"]);
    }

    type Given<'a> = &'a [(usize, u64, Metric, f64)];

    fn table(cells: Given<'_>) -> ReportTable {
        let (grid, cells, reports) = study(cells);
        let results = pair(&cells, &reports);
        ReportTable::new(&StudySummary::new(&grid, &cells, &results))
    }

    fn check(cells: Given<'_>, is_terminal: bool, parts: &[&str], without: &[&str]) {
        let text = table(cells).text(is_terminal);
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        for part in without {
            assert!(!text.contains(part), "{part:?} is in\n{text}");
        }
        let width = |line: &str| line.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "").chars().count();
        let first = text.lines().next().map(width);
        assert!(text.lines().all(|line| Some(width(line)) == first), "ragged:\n{text}");
    }

    /// B exceeds A by 0.10, 0.11 and 0.12: t = 0.11 / (0.01 / √3) = 19.05, which gives p = 0.0027 with 2
    /// degrees of freedom. The interval is 0.11 ± 4.3027 · 0.01 / √3 = ± 0.0248.
    const CLEAR: Given<'static> = &[
        (0, 0, ACCURACY, 0.5),
        (0, 1, ACCURACY, 0.6),
        (0, 2, ACCURACY, 0.7),
        (1, 0, ACCURACY, 0.6),
        (1, 1, ACCURACY, 0.71),
        (1, 2, ACCURACY, 0.82),
    ];

    #[test]
    fn marks_significant_differences() {
        let title = "test accuracy, % (mean ± std)";
        let difference = "+11.00 [+8.52, +13.48]";
        let marked = format!("* {difference}");
        check(CLEAR, false, &[title, "against A (95 %)", &marked, " 0.003 ", " 11.0 "], &["\u{1b}"]);
        let bold = format!("\u{1b}[1m{difference}\u{1b}[0m");
        check(CLEAR, true, &[&bold, " 60.00 ± 10.00 "], &["*", "\u{2061}", "\u{2062}"]);
        let few = &[(0, 0, RMSE, 0.9), (0, 1, RMSE, 0.7), (1, 0, RMSE, 0.4), (1, 1, RMSE, 0.2)];
        check(few, false, &["−0.500", "untested", "0.800 ± 0.141"], &["*"]);
        check(&few.map(|(v, s, m, _)| (v, s, m, 0.5)), false, &[" 0.000 "], &["+0.000", "−0.000"]);
    }

    #[test]
    fn marks_missing_and_mixed_results() {
        check(&[(0, 0, RMSE, 0.9)], false, &["(1 seed)", " 0.900 ", "—", "┆ 0 "], &["NaN", "*", "against"]);
        let mixed = &[(0, 0, ACCURACY, 0.9), (1, 0, RMSE, 0.7)];
        check(mixed, false, &["test metric", "accuracy, % 90.00", "RMSE 0.700"], &["*", "against"]);
        check(&[], false, &["—"], &["NaN", "*"]);
    }

    #[test]
    fn markdown_is_a_table() {
        let text = table(CLEAR).markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[1].starts_with("|---") && lines[3].contains("**+11.00 [+8.52, +13.48]**"), "{text}");
        assert!(lines.iter().all(|line| line.matches('|').count() == 10), "{text}");
        assert!(lines[4].contains("C¦x"), "{text}");
    }

    #[test]
    fn latex_is_a_tabular() {
        let text = table(CLEAR).latex();
        let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("\\\\")).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows.iter().all(|row| row.matches('&').count() == 8), "{text}");
        for part in [
            "\\begin{tabular}{lrrrrrrrr}",
            "\\textbf{+11.00 [+8.52, +13.48]}",
            "accuracy, \\%",
            "$\\pm$",
            "C$|$x",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
