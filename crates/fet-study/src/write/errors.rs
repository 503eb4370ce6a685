//! Charts of prediction errors, of one run or over the seeds of a variant: a confusion matrix, a calibration
//! curve or a histogram of residuals.
//!
//! The module `pooled` combines the seeds, and `fet-chart` draws the charts.

use fet_chart::{Bar, NARROW, Series, Size, Titles, WIDE};
use fet_eval::Metric;
use fet_eval::records::Report;
use serde::Serialize;

use super::super::pooled::{self, Calibration, Histogram};

/// Size of a chart next to the page's text.
const CHART: Size = Size { width: 560.0, height: 380.0, names: 0.0 };

/// Chart with its title and caption.
#[derive(Debug, Serialize)]
pub struct ErrorChart {
    /// Title of the chart.
    pub title: String,
    /// Explanation of the chart, and its figures in words.
    pub caption: String,
    /// SVG element for desktop screens and paper.
    pub wide: String,
    /// SVG element for phones.
    pub narrow: String,
}

/// Returns the charts of the test rows' errors: a confusion matrix and a calibration curve for classes, a
/// histogram of residuals for a regression. Several reports are combined; they must have the same task.
pub fn error_charts(reports: &[&Report]) -> Vec<ErrorChart> {
    let seeds = reports.len();
    [
        pooled::confusion(reports).map(|(names, cells)| matrix(&names, &cells, seeds)),
        pooled::calibration(reports).map(|curve| calibration(&curve)),
        pooled::residuals(reports).map(|histogram| residuals(&histogram, seeds)),
    ]
    .into_iter()
    .flatten()
    .filter(|chart| !chart.wide.is_empty())
    .collect()
}

fn matrix(names: &[String], cells: &[Vec<f64>], seeds: usize) -> ErrorChart {
    let title = "Confusion matrix".to_string();
    let titles = Titles { chart: &title, x: "predicted class", y: "true class" };
    let draw = |size| fet_chart::heat(size, titles, names, cells);
    ErrorChart {
        caption: format!(
            "Test rows of each true class by predicted class{}. A stronger colour means a larger share of the true class; \
             the diagonal is correct.",
            over(seeds, "the sum over")
        ),
        wide: draw(WIDE),
        narrow: draw(NARROW),
        title,
    }
}

fn calibration(curve: &Calibration) -> ErrorChart {
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
    ErrorChart {
        caption: format!(
            "Test rows in {} equal bins by the predicted probability of class 1 of two, or of the predicted class of \
             several{}. On the dashed line the probabilities are correct; below it they are too large.{thin}",
            pooled::CALIBRATION_BINS,
            over(curve.seeds.len(), "the rows of")
        ),
        wide: draw(CHART),
        narrow: draw(NARROW),
        title,
    }
}

fn residuals(histogram: &Histogram, seeds: usize) -> ErrorChart {
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
    ErrorChart {
        caption: format!(
            "Shares of the test rows{}.{common} Not shown: {} below and {} above the bins{}. Quantiles: {}.",
            over(seeds, "the mean over"),
            per_cent(histogram.outside.0),
            per_cent(histogram.outside.1),
            if seeds > 1 { " of their seed" } else { "" },
            quantiles.join(", ")
        ),
        wide: draw(CHART),
        narrow: draw(NARROW),
        title,
    }
}

/// Returns `what` with the number of seeds, as in ", the sum over 3 seeds", or nothing for one seed.
fn over(seeds: usize, what: &str) -> String {
    if seeds == 1 { String::new() } else { format!(", {what} {seeds} seeds") }
}
