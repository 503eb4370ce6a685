//! `curves.svg`: training loss and validation metric by epoch, one line per run.

use fet_chart::{Panel, Picture, Series, Size, Titles};
use fet_eval::records::EpochReport;

use super::run::PlottedRun;
use crate::run::InputError;

const SIZE: Size = Size { width: 520.0, height: 360.0, names: 0.0 };

/// Extracts a figure of an epoch.
type Figure<'a> = &'a dyn Fn(&EpochReport) -> f64;

pub(super) fn draw(runs: &[PlottedRun]) -> Result<String, InputError> {
    let Some(first) = runs.first() else { return Ok(String::new()) };
    let metric = first.report.metric;
    if let Some(other) = runs.iter().find(|run| run.report.metric != metric) {
        let (one, another) = (metric.name(), other.report.metric.name());
        return Err(InputError(format!(
            "{} has the metric {one} and {} the metric {another}; plot them separately",
            first.name, other.name
        )));
    }
    let unit = metric.title();
    let panels: [(&str, &str, Figure<'_>); 2] = [
        ("Training loss", "loss", &|epoch| epoch.train_loss),
        ("Validation", &unit, &|epoch| metric.scaled(epoch.validation)),
    ];
    let panel = |(title, y, figure): (&str, &str, Figure<'_>)| {
        let chart = fet_chart::curves(SIZE, Titles { chart: title, x: "epoch", y }, &series(runs, figure));
        (!chart.is_empty()).then(|| Panel { title: title.to_string(), size: SIZE, chart })
    };
    let picture = Picture {
        title: "Learning curves".to_string(),
        panels: panels.into_iter().filter_map(panel).collect(),
        columns: 2,
        legend: runs.iter().enumerate().map(|(number, run)| (number, run.name.clone())).collect(),
        caption: String::new(),
    };
    Ok(picture.svg())
}

/// Returns one figure of every run, without undefined values.
fn series(runs: &[PlottedRun], figure: Figure<'_>) -> Vec<Series> {
    let curve = |run: &PlottedRun| {
        let points = run.report.epochs.iter().map(|epoch| (epoch.epoch as f64, figure(epoch)));
        points.filter(|point| point.1.is_finite()).collect()
    };
    let series = |(number, run): (usize, &PlottedRun)| Series {
        number,
        name: run.name.clone(),
        curve: curve(run),
        ..Series::default()
    };
    runs.iter().enumerate().map(series).collect()
}
