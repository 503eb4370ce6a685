//! The table of a study: a row per variant, on the terminal and as Markdown.
//!
//! It rounds and marks the best; every number in full is in `results.csv`.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{Cell as Field, CellAlignment};

use super::report::Metric;
use super::results::Finished;
use super::statistics::{mean, median, standard_deviation};

/// What the table shows.
#[derive(Debug)]
pub(crate) struct Table {
    header: [String; 6],
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    is_best: bool,
    /// The variant, the test metric, n, the best epoch, seconds, rows per second.
    fields: [String; 6],
}

/// Characters without width that stand around bold text until the table is laid out.
const BOLD: char = '\u{2061}';
const PLAIN: char = '\u{2062}';

impl Table {
    /// A row for each of `variants`, in this order.
    pub(crate) fn new(variants: &[&str], results: &[Finished<'_>]) -> Self {
        let metric = common_metric(results);
        let values = |variant: &str, value: fn(&Finished<'_>) -> f64| -> Vec<f64> {
            results.iter().filter(|result| result.cell.variant == variant).map(value).collect()
        };
        let tests: Vec<Vec<f64>> =
            variants.iter().map(|variant| values(variant, |result| result.report.best.test)).collect();
        let means: Vec<f64> = tests.iter().map(|tests| mean(tests)).collect();
        let rows = variants.iter().enumerate().map(|(index, variant)| {
            let of = |value| values(variant, value);
            let own = results.iter().find(|result| result.cell.variant == *variant);
            let fields = [
                variant.to_string(),
                own.map_or_else(dash, |own| spread(&own.report.metric, &tests[index], metric.is_none())),
                tests[index].len().to_string(),
                shown(mean(&of(|result| result.report.best.epoch as f64)), 1),
                shown(mean(&of(|result| result.report.cost.seconds)), 1),
                shown(median(&of(|result| result.report.cost.train_rows_per_second)), 0),
            ];
            let is_best = metric.is_some_and(|metric| is_best(metric, index, &means));
            Row { is_best, fields }
        });
        let counts = tests.iter().map(Vec::len);
        let of = match counts.max() {
            Some(0 | 1) | None => "1 seed",
            Some(_) => "mean ± std",
        };
        let title = metric.map_or_else(|| "metric".to_string(), Metric::title);
        let header = ["variant", &format!("test {title} ({of})"), "n", "best epoch", "seconds", "rows/s"];
        Self { header: header.map(str::to_string), rows: rows.collect() }
    }

    /// For people: the best mean in bold on a terminal, elsewhere with a `*`.
    pub(crate) fn text(&self, is_terminal: bool) -> String {
        let mark =
            |text: &str| if is_terminal { format!("{BOLD}{text}{PLAIN}") } else { format!("* {text}") };
        let mut table = self.lay_out(mark);
        table.load_style(UTF8_FULL_CONDENSED);
        table.to_string().replace(BOLD, "\u{1b}[1m").replace(PLAIN, "\u{1b}[0m")
    }

    /// For documents: the best mean in bold.
    pub(crate) fn markdown(&self) -> String {
        let mut table = self.lay_out(|text| format!("**{text}**"));
        table.load_style(ASCII_MARKDOWN);
        format!("{table}\n")
    }

    fn lay_out(&self, mark: impl Fn(&str) -> String) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.set_header(&self.header);
        for row in &self.rows {
            table.add_row(row.fields.iter().enumerate().map(|(column, text)| {
                let text = if column == 1 && row.is_best { mark(text) } else { text.replace('|', "¦") };
                let side = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
                Field::new(text).set_alignment(side)
            }));
        }
        table
    }
}

/// The metric of all results; none where they differ, for then they cannot be ranked.
fn common_metric<'a>(results: &'a [Finished<'_>]) -> Option<&'a Metric> {
    let first = &results.first()?.report.metric;
    results.iter().all(|result| result.report.metric == *first).then_some(first)
}

fn is_best(metric: &Metric, index: usize, means: &[f64]) -> bool {
    let own = means[index];
    let rivals = means.iter().filter(|mean| !mean.is_nan()).count();
    !own.is_nan() && rivals > 1 && !means.iter().any(|other| metric.is_better(*other, own))
}

fn spread(metric: &Metric, values: &[f64], with_name: bool) -> String {
    let name = if with_name { format!("{} ", metric.title()) } else { String::new() };
    let deviation = standard_deviation(values).map(|deviation| format!(" ± {}", metric.show(deviation)));
    format!("{name}{}{}", metric.show(mean(values)), deviation.unwrap_or_default())
}

fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() { dash() } else { format!("{value:.digits$}") }
}

fn dash() -> String {
    "—".to_string()
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::finished;
    use super::*;

    const ACCURACY: (&str, &str) = ("accuracy", "maximise");
    const RMSE: (&str, &str) = ("rmse", "minimise");

    fn check(cells: &[(&str, u64, (&str, &str), f64)], is_terminal: bool, parts: &[&str], without: &[&str]) {
        let cells: Vec<_> = cells
            .iter()
            .map(|&(variant, seed, metric, test)| finished(variant, seed, metric, test, "x"))
            .collect();
        let results: Vec<_> =
            cells.iter().map(|(cell, report)| Finished { cell, report: report.clone() }).collect();
        let text = Table::new(&["A", "B"], &results).text(is_terminal);
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

    #[test]
    fn the_best_is_marked_by_direction() {
        let cells = |metric| {
            [("A", 0, metric, 0.9), ("A", 1, metric, 0.8), ("B", 0, metric, 0.7), ("B", 1, metric, 0.5)]
        };
        check(
            &cells(ACCURACY),
            false,
            &["test accuracy, % (mean ± std)", "* 85.00 ± 7.07 ", " 60.00 ± 14.14 ", "3.5", "10.5", "100"],
            &["* 60.00", "\u{1b}"],
        );
        let bold = ["\u{1b}[1m85.00 ± 7.07\u{1b}[0m", " 60.00 ± 14.14 "];
        check(&cells(ACCURACY), true, &bold, &["*", "\u{2061}", "\u{2062}"]);
        check(
            &cells(RMSE),
            false,
            &["test RMSE (mean ± std)", " 0.850 ± 0.071 ", "* 0.600 ± 0.141 "],
            &["* 0.8"],
        );
    }

    #[test]
    fn missing_and_mixed_results_are_shown_as_such() {
        let one = [("A", 0, ACCURACY, 0.9), ("B", 0, ACCURACY, 0.7)];
        check(&one, false, &["test accuracy, % (1 seed)", "* 90.00 "], &["±"]);
        check(&[("A", 0, RMSE, 0.9)], false, &[" 0.900 ", "—", "┆ 0 "], &["NaN", "*"]);
        let mixed = [("A", 0, ACCURACY, 0.9), ("B", 0, RMSE, 0.7)];
        check(&mixed, false, &["test metric", "accuracy, % 90.00", "RMSE 0.700"], &["*"]);
        check(
            &[("A", 0, RMSE, 0.9), ("A", 1, RMSE, 0.7), ("B", 0, RMSE, 0.7)],
            false,
            &[" ± ", "* 0.700 "],
            &[],
        );
        check(&[], false, &["—"], &["NaN", "*"]);
    }

    #[test]
    fn markdown_is_a_table() {
        let cells = [finished("A|x", 0, RMSE, 0.5, "x"), finished("B", 0, RMSE, 0.25, "x")];
        let results: Vec<_> =
            cells.iter().map(|(cell, report)| Finished { cell, report: report.clone() }).collect();
        let text = Table::new(&["A|x", "B"], &results).markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].starts_with("|---") && lines[3].contains("**0.250**"), "{text}");
        assert!(lines.iter().all(|line| line.matches('|').count() == 7), "{text}");
    }
}
