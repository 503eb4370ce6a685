//! Prediction errors of each variant, for the page: a confusion matrix, a calibration curve or a histogram of
//! residuals over seeds, and the scores of groups.
//!
//! The module `pooled` combines the seeds, and `fet-chart` draws the charts.

use fet_chart::{Bar, NARROW, Series, Size, Titles, WIDE};
use fet_eval::Metric;
use serde::Serialize;

use super::super::pooled::{self, ByGroup, Calibration, GroupOver, Histogram};
use super::super::row::Row;
use super::super::statistics::mean;
use super::super::summary::StudySummary;
use super::metrics::UNDEFINED;
use super::table::mean_and_deviation;

/// Size of a chart next to the page's text.
const CHART: Size = Size { width: 560.0, height: 380.0, names: 0.0 };

/// Collapsible details of one run.
#[derive(Debug, Serialize)]
pub(super) struct Detail {
    name: String,
    /// Number of cells.
    seeds: usize,
    charts: Vec<Chart>,
    groups: Option<GroupTable>,
}

/// Chart with its title and caption.
#[derive(Debug, Serialize)]
struct Chart {
    title: String,
    caption: String,
    wide: String,
    narrow: String,
}

/// Scores of groups.
#[derive(Debug, Serialize)]
struct GroupTable {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Returns the details of every run that has a chart or groups. Variants that differ only in the attack are
/// one run.
pub(super) fn details(summary: &StudySummary<'_>) -> Vec<Detail> {
    let of = |(name, row): (String, &Row<'_>)| {
        let seeds = row.results.len();
        let charts: Vec<Chart> = [
            pooled::confusion(row).map(|(names, cells)| matrix(&names, &cells, seeds)),
            pooled::calibration(row).map(|curve| calibration(&curve)),
            pooled::residuals(row).map(|histogram| residuals(&histogram, seeds)),
        ]
        .into_iter()
        .flatten()
        .filter(|chart| !chart.wide.is_empty())
        .collect();
        let metrics = pooled::metrics(summary.results);
        let groups = pooled::groups(row).map(|groups| group_table(&groups, &metrics));
        (!charts.is_empty() || groups.is_some()).then_some(Detail { name, seeds, charts, groups })
    };
    summary.distinct().into_iter().filter_map(of).collect()
}

fn matrix(names: &[String], cells: &[Vec<f64>], seeds: usize) -> Chart {
    let title = "Confusion matrix".to_string();
    let titles = Titles { chart: &title, x: "predicted class", y: "true class" };
    let draw = |size| fet_chart::heat(size, titles, names, cells);
    Chart {
        caption: format!(
            "Test rows of each true class by predicted class, {}. A stronger colour means a larger share of the true class; \
             the diagonal is correct.",
            over(seeds, "the sum over")
        ),
        wide: draw(WIDE),
        narrow: draw(NARROW),
        title,
    }
}

fn calibration(curve: &Calibration) -> Chart {
    let title = "Calibration".to_string();
    let points = curve.all.iter().map(|bin| (bin.predicted, bin.observed)).collect();
    let series = [Series { curve: points, seeds: curve.seeds.clone(), ..Series::default() }];
    let said: Vec<String> = curve
        .all
        .iter()
        .map(|bin| {
            format!("predicted {:.3}, observed {:.3}, {} rows", bin.predicted, bin.observed, bin.weight)
        })
        .collect();
    let titles = Titles { chart: &title, x: "predicted probability", y: "observed share" };
    let draw = |size| fet_chart::calibration(size, titles, &series, &said);
    let thin = if curve.seeds.len() > 1 { " Thin: single seeds." } else { "" };
    Chart {
        caption: format!(
            "Test rows in {} equal bins by the predicted probability of class 1 of two, or of the predicted class of several; \
             {}. On the dashed line the probabilities are correct; below it they are too large.{thin}",
            pooled::CALIBRATION_BINS,
            over(curve.seeds.len(), "the rows of")
        ),
        wide: draw(CHART),
        narrow: draw(NARROW),
        title,
    }
}

fn residuals(histogram: &Histogram, seeds: usize) -> Chart {
    let title = "Residuals".to_string();
    let per_cent = |share: f64| format!("{:.2} %", 100.0 * share);
    // Residuals have the unit of the label, as the MAE does.
    let show = |value: f64| Metric::Mae.show(value).replace('-', "−");
    let bar = |&(span, share): &((f64, f64), f64)| Bar {
        span,
        height: 100.0 * share,
        title: format!("{} to {}: {}", show(span.0), show(span.1), per_cent(share)),
    };
    let bars: Vec<Bar> = histogram.bins.iter().map(bar).collect();
    let titles = Titles { chart: &title, x: "predicted − true", y: "test rows, %" };
    let draw = |size| fet_chart::histogram(size, titles, &bars);
    let quantiles: Vec<String> = histogram
        .quantiles
        .iter()
        .map(|(share, value)| format!("{:.0} %: {}", 100.0 * share, show(*value)))
        .collect();
    let common = if seeds > 1 { " The bins of each seed are spread over common bins." } else { "" };
    Chart {
        caption: format!(
            "Shares of the test rows, {}.{common} Not shown: {} below and {} above the bins of their seed. Quantiles: {}.",
            over(seeds, "the mean over"),
            per_cent(histogram.outside.0),
            per_cent(histogram.outside.1),
            quantiles.join(", ")
        ),
        wide: draw(CHART),
        narrow: draw(NARROW),
        title,
    }
}

fn group_table(groups: &ByGroup, metrics: &[Metric]) -> GroupTable {
    let row = |group: &GroupOver, name: String| {
        let mut fields = vec![name, group.rows.len().to_string(), format!("{:.1}", mean(&group.rows))];
        fields.extend(metrics.iter().map(|metric| {
            let values = group.values(*metric);
            if values.is_empty() {
                UNDEFINED.to_string()
            } else {
                let n = if values.len() < group.scores.len() {
                    format!(" (n = {})", values.len())
                } else {
                    String::new()
                };
                format!("{}{n}", mean_and_deviation(&values, |value| metric.show(value)))
            }
        }));
        fields
    };
    let mut header = vec![groups.column.clone(), "seeds".to_string(), "rows".to_string()];
    header.extend(metrics.iter().map(|metric| metric.title()));
    let mut rows: Vec<Vec<String>> =
        groups.groups.iter().map(|group| row(group, group.name.clone())).collect();
    rows.extend(groups.others.iter().map(|others| row(others, "all others".to_string())));
    GroupTable { title: format!("By {}", groups.column), header, rows }
}

/// Returns `what` with the number of seeds, as in "the sum over 3 seeds", or "of one seed".
fn over(seeds: usize, what: &str) -> String {
    if seeds == 1 { "of one seed".to_string() } else { format!("{what} {seeds} seeds") }
}

#[cfg(test)]
#[path = "details/tests.rs"]
mod tests;
