//! Charts of a report: their selection, contents and captions.
//!
//! `fet-chart` draws the charts.

use fet_chart::{COLOURS, Mark, NARROW, Panel, Picture, Point, Series, Size, Titles, WIDE};
use fet_eval::records::Attacker;
use fet_eval::{Direction, Metric};
use serde::Serialize;

use super::super::defences::{AttackSummary, Defence, Defences};
use super::super::grid::{is_attack, label};
use super::super::results::FinishedCell;
use super::super::row::Row;
use super::super::statistics::{half_width, mean};
use super::super::summary::StudySummary;
use super::table::{mean_and_deviation, share, spread};

/// Size of a chart in a separate file.
const PANEL: Size = Size { width: 520.0, height: 340.0, names: 0.0 };

/// Chart with its title and caption.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    id: String,
    title: String,
    caption: String,
    wide: String,
    narrow: String,
    legend: Vec<Entry>,
}

/// Series in a legend.
#[derive(Debug, Serialize)]
struct Entry {
    number: usize,
    name: String,
    swatch: String,
}

/// Returns all charts of a study.
pub(super) fn figures(summary: &StudySummary<'_>) -> Vec<Figure> {
    let Some(metric) = summary.metric else { return Vec::new() };
    let point = summary.rows.first().map_or(&[][..], |row| &row.variant.point);
    // An attack does not change the run, so a chart along its axis would be flat.
    let axes: Vec<&str> =
        point.iter().map(|(axis, _)| axis.as_str()).filter(|axis| !is_attack(axis)).collect();
    let defences = summary.defences.as_ref();
    let mut figures = defences.map_or_else(Vec::new, |defences| leakage(summary, metric, defences));
    figures.extend(axes.iter().filter_map(|axis| along(summary, metric, axis)));
    if axes.is_empty() {
        figures.push(variants(summary, metric));
    }
    figures.extend(learning(summary, metric));
    figures.retain(|figure| !figure.wide.is_empty());
    figures
}

/// Charts the metric along one axis, with a series for each variant and each combination of the other axes.
fn along(summary: &StudySummary<'_>, metric: Metric, axis: &str) -> Option<Figure> {
    let value =
        |row: &Row<'_>| row.variant.point.iter().find(|(key, _)| key == axis).map(|(_, value)| value.clone());
    let mut ticks: Vec<String> = Vec::new();
    let runs = summary.distinct();
    for tick in runs.iter().filter_map(|(_, row)| value(row)) {
        if !ticks.contains(&tick) {
            ticks.push(tick);
        }
    }
    if ticks.len() < 2 {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for (_, row) in runs.iter().filter(|(_, row)| !row.tests.is_empty()) {
        let name = row.variant.named(|key| key != axis && !is_attack(key));
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
    let titles = Titles { chart: &title, x: axis, y: &y };
    let draw = |size| fet_chart::axis(size, titles, &ticks, &series);
    Some(Figure {
        id: format!("axis-{name}"),
        caption: format!(
            "The values of {axis} are evenly spaced, in the order of the file. {}",
            explanation(summary)
        ),
        wide: draw(WIDE),
        narrow: draw(NARROW),
        legend: legend(&series),
        title,
    })
}

/// Charts the metric of every variant, for a study without axes.
fn variants(summary: &StudySummary<'_>, metric: Metric) -> Figure {
    let series = |(number, (name, row)): (usize, (String, &Row<'_>))| Series {
        number,
        name,
        marks: vec![mark(summary, metric, row)],
        ..Series::default()
    };
    let series: Vec<Series> = summary.distinct().into_iter().enumerate().map(series).collect();
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

/// Charts the metric of every defence against the leakage under each attack.
fn leakage(summary: &StudySummary<'_>, metric: Metric, defences: &Defences) -> Vec<Figure> {
    let figure = |(index, attack): (usize, &AttackSummary)| {
        let points = points(metric, defences, index, summary.correlated());
        let title = format!("Utility against leakage: {}", attack.name);
        let draw = |size| plane(size, &title, metric, &points);
        Figure {
            id: format!("leakage-{}", index + 1),
            caption: format!("{} {}", attacked(attack), plane_explanation(summary, metric)),
            wide: draw(WIDE),
            narrow: draw(NARROW),
            legend: points
                .iter()
                .map(|point| Entry {
                    number: point.number,
                    name: point.name.clone(),
                    swatch: fet_chart::swatch(point.number),
                })
                .collect(),
            title,
        }
    };
    defences.attacks.iter().enumerate().map(figure).collect()
}

/// Returns the leakage charts as a separate SVG file.
pub(super) fn leakage_file(summary: &StudySummary<'_>, defences: &Defences) -> Option<String> {
    let metric = summary.metric?;
    let panel = |(index, attack): (usize, &AttackSummary)| Panel {
        title: attack.name.clone(),
        size: PANEL,
        chart: plane(PANEL, &attack.name, metric, &points(metric, defences, index, summary.correlated())),
    };
    let picture = Picture {
        title: format!("{}: utility against leakage", summary.grid.name),
        panels: defences.attacks.iter().enumerate().map(panel).collect(),
        columns: 2,
        legend: (defences.defences.iter().enumerate())
            .filter(|(_, defence)| defence.is_attacked())
            .map(|(number, defence)| (number, defence.name.clone()))
            .collect(),
        caption: plane_explanation(summary, metric),
    };
    Some(picture.svg())
}

fn plane(size: Size, title: &str, metric: Metric, points: &[Point]) -> String {
    let titles = Titles { chart: title, x: "leakage", y: &format!("test {}", metric.title()) };
    fet_chart::points(size, titles, (0.0, 1.0), points)
}

/// Returns a point for each defence that has a result under the attack.
fn points(metric: Metric, defences: &Defences, attack: usize, correlated: f64) -> Vec<Point> {
    let point = |(number, defence): (usize, &Defence)| {
        // Use only seeds that have both figures.
        let both = defence.leakage[attack]
            .iter()
            .filter_map(|(seed, leakage)| Some((*leakage, metric.scaled(*defence.tests.get(seed)?))));
        let seeds: Vec<(f64, f64)> = both.collect();
        let (leakage, tests): (Vec<f64>, Vec<f64>) = seeds.iter().copied().unzip();
        let interval = |values: &[f64]| {
            half_width(values, correlated).map(|half| (mean(values) - half, mean(values) + half))
        };
        Point {
            number,
            name: defence.name.clone(),
            at: (mean(&leakage), mean(&tests)),
            across: interval(&leakage).map(|(low, high)| (low.max(0.0), high.min(1.0))),
            up: interval(&tests),
            title: format!(
                "{}: leakage {}, n = {}",
                defence.name,
                mean_and_deviation(&leakage, share),
                seeds.len()
            ),
            seeds: if seeds.len() > 1 { seeds } else { Vec::new() },
        }
    };
    let all = defences.defences.iter().enumerate();
    all.filter(|(_, defence)| !defence.leakage[attack].is_empty()).map(point).collect()
}

/// Describes an attack and its measure in a sentence.
fn attacked(attack: &AttackSummary) -> String {
    let who = match attack.attacker {
        Attacker::Primary => {
            format!("The primary attacks the {} of party {}", attack.target.name(), attack.party)
        }
        Attacker::Secondary => format!("Party {} attacks {}", attack.party, attack.target.name()),
    };
    format!("{who}. Measure: {}.", attack.measure)
}

fn plane_explanation(summary: &StudySummary<'_>, metric: Metric) -> String {
    let better = match metric.direction() {
        Direction::Maximise => "up and to the left",
        Direction::Minimise => "down and to the left",
    };
    let enough = summary.rows.iter().any(|row| row.half_width().is_some());
    let bars = if enough { "; bars are 95 % intervals of the mean" } else { "" };
    format!(
        "Each symbol is the mean of a defence over seeds; pale dots are single seeds{bars}. Better is {better}. Leakage 0 is the \
         attacker's success without the run, 1 is complete success."
    )
}

/// Charts the validation metric over epochs, with a few variants per chart.
fn learning(summary: &StudySummary<'_>, metric: Metric) -> Vec<Figure> {
    let series = |(number, (name, row)): (usize, (String, &Row<'_>))| {
        let curve = |result: &&FinishedCell<'_>| -> Vec<(f64, f64)> {
            let epochs = result.report.epochs.iter().filter(|epoch| !epoch.validation.is_nan());
            epochs.map(|epoch| (epoch.epoch as f64, metric.scaled(epoch.validation))).collect()
        };
        let seeds: Vec<Vec<(f64, f64)>> = row.results.iter().map(curve).collect();
        let longest = seeds.iter().map(Vec::len).max().unwrap_or(0);
        // The mean covers all seeds, so the curve ends with the shortest seed.
        let of = |index: usize| {
            let points: Option<Vec<(f64, f64)>> = seeds.iter().map(|seed| seed.get(index).copied()).collect();
            let points = points?;
            Some((points.first()?.0, mean(&points.iter().map(|point| point.1).collect::<Vec<_>>())))
        };
        let curve = (0..longest).map_while(of).collect();
        Series { number, name, curve, seeds, ..Series::default() }
    };
    let all: Vec<Series> = summary.distinct().into_iter().enumerate().map(series).collect();
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
        let titles = Titles { chart: &title, x: "epoch", y: &y };
        let draw = |size| fet_chart::curves(size, titles, series);
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

fn mark(summary: &StudySummary<'_>, metric: Metric, row: &Row<'_>) -> Mark {
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
        title: format!("{}: {}, n = {}", row.variant.run(), spread(row, false), row.tests.len()),
    }
}

fn explanation(summary: &StudySummary<'_>) -> String {
    let bars = if summary.rows.iter().any(|row| row.half_width().is_some()) {
        "Symbols are means over seeds, pale dots are single seeds, and bars are 95 % intervals of the mean."
    } else {
        "Symbols are means over seeds, and pale dots are single seeds. There are too few seeds for intervals."
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
