//! `worth.html`: the answer of `fet worth` as a self-contained page with charts.
//!
//! The page is the template `worth.html.jinja` next to this file, which escapes everything except the charts.

use anyhow::Context;
use fet_chart::{Mark, NARROW, Series, Titles, WIDE, axis, dots};
use minijinja::Environment;
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::checks::PartyResult;
use super::findings::Worth;
use super::show::{gain, next, paragraph};
use super::verdict::{Gain, MethodResult, Verdict};

const TEMPLATE: &str = include_str!("worth.html.jinja");

/// Returns the text of the page.
pub(super) fn text(worth: &Worth, folder: &std::path::Path) -> anyhow::Result<String> {
    let metric = worth.metric;
    let mut environment = Environment::new();
    environment.add_template("worth.html", TEMPLATE).context("the template of the page")?;
    let mark = |is_best: bool| if is_best { " *" } else { "" };
    let methods = worth.results.iter().enumerate().map(|(at, result)| {
        json!([
            result.name,
            result.receives,
            format!("{}{}", metric.show(result.alone.test), mark(at == worth.answer.alone)),
            format!("{}{}", metric.show(result.with.test), mark(at == worth.answer.with)),
            gain(metric, &result.gain),
            format!("{:.1}, {:.1}", result.alone.seconds, result.with.seconds),
        ])
    });
    let sentences = paragraph(worth);
    let page = json!({
        "style": crate::page::style(),
        "title": sentences.first(),
        "sentences": sentences.iter().skip(1).collect::<Vec<_>>(),
        "next": next(worth, folder),
        "verdict": match worth.answer.verdict { Verdict::Yes => "yes", Verdict::No => "no", Verdict::NotShown => "open" },
        "metric": metric.title(),
        "splits": worth.splits,
        "same_split": worth.same_split,
        "quick": worth.quick,
        "rows": worth.label_rows,
        "warnings": worth.warnings,
        "links": worth.links,
        "methods": methods.collect::<Vec<Value>>(),
        "constant": worth.constant.map(|value| metric.phrase(value)),
        "gains": gains(worth),
        "parties": parties(worth),
        "labels": labels(worth),
    });
    let template = environment.get_template("worth.html").context("the template of the page")?;
    template.render(Serde(page)).context("the page")
}

/// Returns a chart in both sizes, for wide and narrow screens.
fn both(draw: impl Fn(fet_chart::Size) -> String) -> Value {
    json!([draw(WIDE), draw(NARROW)])
}

fn series(number: usize, name: &str, marks: Vec<Mark>) -> Series {
    Series { number, name: name.to_string(), marks, ..Series::default() }
}

fn mark(place: usize, metric: fet_eval::Metric, found: &Gain) -> Mark {
    Mark {
        place,
        mean: metric.scaled(found.mean),
        half_width: Some(metric.scaled(found.upper - found.lower) / 2.0).filter(|half| half.is_finite()),
        title: gain(metric, found),
        ..Mark::default()
    }
}

/// Returns the chart of every method's gain.
fn gains(worth: &Worth) -> Value {
    let of_method = |(at, result): (usize, &MethodResult)| {
        series(at, &result.name, vec![mark(0, worth.metric, &result.gain)])
    };
    let all: Vec<Series> = worth.results.iter().enumerate().map(of_method).collect();
    let unit = format!("gain in {}", worth.metric.title());
    both(|size| dots(size, "Gain of each method from the other parties", &unit, &all, Some(0.0)))
}

/// Returns the chart of every party's gain, or null without several parties.
fn parties(worth: &Worth) -> Value {
    let of_party = |(at, party): (usize, &PartyResult)| {
        series(at, &party.name, vec![mark(0, worth.metric, &party.gain)])
    };
    let all: Vec<Series> = worth.checks.parties.iter().enumerate().map(of_party).collect();
    if all.is_empty() {
        return Value::Null;
    }
    let unit = format!("gain in {}", worth.metric.title());
    both(|size| dots(size, "Gain from each party", &unit, &all, Some(0.0)))
}

/// Returns the learning curve, or null without one.
fn labels(worth: &Worth) -> Value {
    let (labels, metric) = (&worth.checks.labels, worth.metric);
    if labels.is_empty() {
        return Value::Null;
    }
    let point = |place: usize, value: f64| Mark {
        place,
        mean: metric.scaled(value),
        title: metric.phrase(value),
        ..Mark::default()
    };
    let own = labels.iter().enumerate().map(|(at, one)| point(at, one.alone.test)).collect();
    let with = labels.iter().enumerate().map(|(at, one)| point(at, one.with.test)).collect();
    let all = [series(0, "the primary alone", own), series(1, "with the other parties", with)];
    let ticks: Vec<String> = labels.iter().map(|one| one.rows.to_string()).collect();
    let y = format!("test {}", metric.title());
    let titles = Titles { chart: "Learning curve", x: "training labels", y: &y };
    both(|size| axis(size, titles, &ticks, &all))
}
