//! The charts of a report: their selection, contents and captions.
//!
//! `fet-chart` draws them.

use fet_chart::{COLOURS, Mark, NARROW, Series, WIDE};
use fet_records::Metric;
use serde::Serialize;

use super::super::grid::label;
use super::super::results::Finished;
use super::super::statistics::mean;
use super::super::summary::{Row, Summary};
use super::table::spread;

/// A chart with its title and caption.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    id: String,
    title: String,
    caption: String,
    wide: String,
    narrow: String,
    legend: Vec<Entry>,
}

/// A series in a legend.
#[derive(Debug, Serialize)]
struct Entry {
    number: usize,
    name: String,
    swatch: String,
}

/// Every picture of a study.
pub(super) fn figures(summary: &Summary<'_>) -> Vec<Figure> {
    let Some(metric) = summary.metric else { return Vec::new() };
    let axes: Vec<&str> = match summary.rows.first() {
        Some(row) => row.variant.point.iter().map(|(axis, _)| axis.as_str()).collect(),
        None => Vec::new(),
    };
    let mut figures: Vec<Figure> = axes.iter().filter_map(|axis| along(summary, metric, axis)).collect();
    if axes.is_empty() {
        figures.push(variants(summary, metric));
    }
    figures.extend(learning(summary, metric));
    figures.retain(|figure| !figure.wide.is_empty());
    figures
}

/// The metric along one axis: a series for each variant and each combination of the other axes.
fn along(summary: &Summary<'_>, metric: &Metric, axis: &str) -> Option<Figure> {
    let value =
        |row: &Row<'_>| row.variant.point.iter().find(|(key, _)| key == axis).map(|(_, value)| value.clone());
    let mut ticks: Vec<String> = Vec::new();
    for tick in summary.rows.iter().filter_map(value) {
        if !ticks.contains(&tick) {
            ticks.push(tick);
        }
    }
    if ticks.len() < 2 {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for row in summary.rows.iter().filter(|row| !row.tests.is_empty()) {
        let others = row.variant.point.iter().filter(|(key, _)| key != axis);
        let name = others
            .fold(row.variant.root.clone(), |name, (key, value)| format!("{name} · {}={value}", label(key)));
        let place = value(row).and_then(|value| ticks.iter().position(|tick| *tick == value))?;
        let mark = Mark { place, ..mark(summary, metric, row) };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.marks.push(mark),
            None => {
                series.push(Series { number: series.len(), name, marks: vec![mark], ..Series::default() })
            }
        }
    }
    let (name, y) = (label(axis), format!("test {}", metric.title()));
    let title = format!("{y} along {name}");
    let draw = |size| fet_chart::axis(size, &title, &ticks, axis, &y, &series);
    Some(Figure {
        id: format!("axis-{name}"),
        caption: format!(
            "Values of {axis} stand evenly spaced, in the order of the file. {}",
            explanation(summary)
        ),
        wide: draw(WIDE),
        narrow: draw(NARROW),
        legend: legend(&series),
        title,
    })
}

/// The metric of every variant, if there is no axis.
fn variants(summary: &Summary<'_>, metric: &Metric) -> Figure {
    let series = |(number, row): (usize, &Row<'_>)| Series {
        number,
        name: row.variant.name.clone(),
        marks: vec![mark(summary, metric, row)],
        ..Series::default()
    };
    let series: Vec<Series> = summary.rows.iter().enumerate().map(series).collect();
    let (title, x) = ("Every variant".to_string(), format!("test {}", metric.title()));
    let base =
        summary.rows.iter().find_map(|row| row.base).map(|base| metric.scaled(summary.rows[base].mean()));
    let base = base.filter(|base| base.is_finite());
    let draw = |size| fet_chart::dots(size, &title, &x, &series, base);
    let line = if base.is_some() { " The dashed line is the base's mean." } else { "" };
    Figure {
        id: "variants".to_string(),
        caption: format!("{}{line}", explanation(summary)),
        wide: draw(WIDE),
        narrow: draw(NARROW),
        legend: Vec::new(),
        title,
    }
}

/// The validation metric over epochs, a few variants per chart.
fn learning(summary: &Summary<'_>, metric: &Metric) -> Vec<Figure> {
    let series = |(number, row): (usize, &Row<'_>)| {
        let curve = |result: &&Finished<'_>| -> Vec<(f64, f64)> {
            let epochs = result.report.epochs.iter().filter(|epoch| !epoch.validation.is_nan());
            epochs.map(|epoch| (epoch.epoch as f64, metric.scaled(epoch.validation))).collect()
        };
        let seeds: Vec<Vec<(f64, f64)>> = row.results.iter().map(curve).collect();
        let longest = seeds.iter().map(Vec::len).max().unwrap_or(0);
        // A mean is of all seeds: it ends where the first of them ends.
        let of = |index: usize| {
            let points: Option<Vec<(f64, f64)>> = seeds.iter().map(|seed| seed.get(index).copied()).collect();
            let points = points?;
            Some((points.first()?.0, mean(&points.iter().map(|point| point.1).collect::<Vec<_>>())))
        };
        let curve = (0..longest).map_while(of).collect();
        Series { number, name: row.variant.name.clone(), curve, seeds, ..Series::default() }
    };
    let all: Vec<Series> = summary.rows.iter().enumerate().map(series).collect();
    let drawn: Vec<Series> = all.into_iter().filter(|series| series.curve.len() > 1).collect();
    let parts = drawn.len().div_ceil(COLOURS);
    let size = if parts > 0 { drawn.len().div_ceil(parts) } else { 1 };
    let figure = |(part, series): (usize, &[Series])| {
        let y = format!("validation {}", metric.title());
        let title = if parts > 1 {
            format!("Learning curves, {} of {parts}", part + 1)
        } else {
            "Learning curves".to_string()
        };
        let draw = |size| fet_chart::curves(size, &title, "epoch", &y, series);
        Figure {
            id: format!("curves-{}", part + 1),
            caption: "Thick: the mean over seeds. Thin: single seeds.".to_string(),
            wide: draw(WIDE),
            narrow: draw(NARROW),
            legend: legend(series),
            title,
        }
    };
    drawn.chunks(size.max(1)).enumerate().map(figure).collect()
}

fn mark(summary: &Summary<'_>, metric: &Metric, row: &Row<'_>) -> Mark {
    let paper = summary.grid.paper.iter().find(|published| published.variant == row.variant.name);
    Mark {
        place: 0,
        mean: metric.scaled(row.mean()),
        half_width: row.half_width().map(|half| metric.scaled(half)),
        seeds: if row.tests.len() > 1 {
            row.tests.iter().map(|test| metric.scaled(*test)).collect()
        } else {
            Vec::new()
        },
        paper: paper.map(|published| metric.scaled(published.value)),
        title: format!("{}: {}, n = {}", row.variant.name, spread(row, false), row.tests.len()),
    }
}

fn explanation(summary: &Summary<'_>) -> String {
    let bars = if summary.rows.iter().any(|row| row.half_width().is_some()) {
        "Signs are means over seeds, pale dots single seeds, bars 95 % intervals of the mean."
    } else {
        "Signs are means over seeds, pale dots single seeds; there are too few seeds for intervals."
    };
    let paper = if summary.grid.paper.is_empty() { "" } else { " Hollow diamonds are the paper's figures." };
    format!("{bars}{paper}")
}

fn legend(series: &[Series]) -> Vec<Entry> {
    let entry = |series: &Series| Entry {
        number: series.number,
        name: series.name.clone(),
        swatch: fet_chart::swatch(series.number),
    };
    series.iter().map(entry).collect()
}
