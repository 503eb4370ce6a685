//! `report.html`: one self-contained page, for readers who did not run the study.
//!
//! The page is the template `report.html.jinja` next to this file; this module computes its contents. The
//! template escapes everything except the charts.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use fet_eval::Metric;
use fet_eval::records::EpochReport;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::added::Added;
use super::super::failure;
use super::super::results::FinishedCell;
use super::super::row::{ComparisonVerdict, Row};
use super::super::statistics::paired::PairedComparison;
use super::super::summary::StudySummary;
use super::added;
use super::defences;
use super::details::details;
use super::figures::figures;
use super::metrics;
use super::table::{DIFFERENCE, ReportTable, compared, over_rows, probability, shown};

/// SHA-256 of the empty string: the checksum of data without files.
const NO_FILES: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const TEMPLATE: &str = include_str!("report.html.jinja");

/// Cost of a variant.
#[derive(Debug, Serialize)]
struct Cost {
    name: String,
    seconds: String,
    /// Share of the longest time, from 0 to 1.
    share: f64,
    rows_per_second: String,
    memory: String,
    to_primary: String,
    from_primary: String,
    total: String,
}

/// Changed settings of a variant.
#[derive(Debug, Serialize)]
struct Changes {
    name: String,
    base: String,
    /// Setting, the base's value, and the variant's value.
    lines: Vec<[String; 3]>,
}

/// Cell that failed.
#[derive(Debug, Serialize)]
struct FailedCell {
    title: String,
    problem: String,
    log: String,
    tail: String,
}

/// Returns the text of the page. The optional tables are the contributions of the other parties, every
/// metric, and the defences.
pub(super) fn text(
    summary: &StudySummary<'_>,
    table: &ReportTable,
    [added, every, defences]: [Option<&ReportTable>; 3],
) -> Result<String> {
    let grid = summary.grid;
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE).context("the template of the report")?;
    let distinct = |value: &dyn Fn(&FinishedCell<'_>) -> String| -> Vec<String> {
        summary.results.iter().map(value).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let first = summary.cells.first();
    let page = json!({
        "name": grid.name,
        "profile": grid.profile,
        "question": grid.head.question,
        "paper": grid.head.paper,
        "data": grid.head.data,
        "seeds": grid.seeds,
        "folds": grid.folds,
        "done": summary.results.len(),
        "all": summary.cells.len(),
        "devices": distinct(&|result| result.report.device.clone()).join(", "),
        "commits": distinct(&|result| result.report.program.commit.chars().take(12).collect()).join(", "),
        "results_version": first.filter(|cell| cell.identity.program.is_none()).map(|cell| cell.identity.results),
        "checksum": first.map(|cell| cell.identity.data.as_str()).filter(|data| *data != NO_FILES).map(|data| data.chars().take(16).collect::<String>()).filter(|data| !data.is_empty()),
        "program": first.and_then(|cell| cell.identity.program.as_ref()).map(|program| program.name.as_str()),
        "findings": findings(summary),
        "notes": summary.notes,
        "header": table.header,
        "rows": table.rows.iter().map(|row| json!({ "fields": row.fields, "differs": row.differs })).collect::<Vec<Value>>(),
        "difference": if summary.compares() { DIFFERENCE } else { usize::MAX },
        "added": added.zip(summary.metric).map(|(table, metric)| json!({
            "title": added::TITLE,
            "header": table.header,
            "rows": table.rows.iter().map(|row| json!({ "fields": row.fields, "differs": row.differs })).collect::<Vec<Value>>(),
            "difference": DIFFERENCE,
            "notes": added::notes(summary, metric),
        })),
        "every": every.map(|table| json!({
            "header": table.header,
            "rows": table.rows.iter().map(|row| &row.fields).collect::<Vec<_>>(),
            "notes": metrics::notes(summary),
            "details": details(summary),
        })),
        "defences": defences.zip(summary.defences.as_ref()).map(|(table, defences)| json!({
            "header": table.header,
            "rows": table.rows.iter().map(|row| &row.fields).collect::<Vec<_>>(),
            "notes": std::iter::once(defences::caption(summary, defences))
                .chain(defences::notes(defences))
                .collect::<Vec<_>>(),
        })),
        "tests": tests(summary),
        "chart_style": fet_chart::page_style(),
        "figures": figures(summary),
        "costs": costs(summary),
        "changes": changes(summary),
        "failures": failures(summary),
        "published": grid.paper.iter().map(|published| json!({
            "variant": published.variant,
            "value": summary.metric.map_or_else(|| published.value.to_string(), |metric| metric.show(published.value)),
            "std": published.std.map(|std| summary.metric.map_or_else(|| std.to_string(), |metric| metric.show(std))),
            "source": published.source,
        })).collect::<Vec<Value>>(),
        "settings": first.and_then(|cell| serde_json::to_string_pretty(&cell.identity.experiment).ok()),
        "first": first.map(super::super::cell::Cell::title),
    });
    let template = environment.get_template("report.html").context("the template of the report")?;
    template.render(Serde(page)).context("the report")
}

/// Returns the outcomes of the tests as sentences.
fn findings(summary: &StudySummary<'_>) -> Vec<String> {
    let Some(metric) = summary.metric else { return Vec::new() };
    let contribution = |added: &Added| {
        let name = summary.rows[added.index].variant.run();
        let way = match added.verdict {
            ComparisonVerdict::Better => "improve",
            ComparisonVerdict::Worse => "worsen",
            _ => return None,
        };
        let (size, detail) = size(&added.comparison, metric)?;
        Some(format!("The other parties {way} {name} by {size} ({detail})."))
    };
    let mut findings: Vec<String> = summary.added.iter().filter_map(contribution).collect();
    let (n, unit) = (summary.grid.repetitions().len(), summary.grid.unit());
    let untold = summary.added.iter().filter(|added| added.verdict == ComparisonVerdict::NotShown);
    let untold: Vec<String> = untold.map(|added| summary.rows[added.index].variant.run()).collect();
    if !untold.is_empty() {
        findings.push(format!(
            "With {n} {unit}, the contribution of the other parties is not significant for: {}.",
            untold.join("; ")
        ));
    }
    let sentence = |row: &Row<'_>| {
        let (comparison, base) = (row.comparison.as_ref()?, summary.rows[row.base?].variant.run());
        let way = if row.verdict == ComparisonVerdict::Better { "better" } else { "worse" };
        let (size, detail) = size(comparison, metric)?;
        let name = row.variant.run();
        row.differs().then(|| format!("{name} is {way} than {base} by {size} ({detail})."))
    };
    findings.extend(summary.rows.iter().filter_map(sentence));
    let open: Vec<String> = summary
        .rows
        .iter()
        .filter(|row| row.verdict == ComparisonVerdict::NotShown)
        .map(|row| row.variant.run())
        .collect();
    if !open.is_empty() {
        findings.push(format!(
            "With {n} {unit}, the difference from the base is not significant for: {}.",
            open.join("; ")
        ));
    }
    findings
}

/// Returns the size of a tested difference, and its interval with p.
fn size(comparison: &PairedComparison, metric: Metric) -> Option<(String, String)> {
    let test = comparison.test.as_ref()?;
    let (low, high) = (comparison.difference - test.half_width, comparison.difference + test.half_width);
    let (low, high) = if comparison.difference < 0.0 { (-high, -low) } else { (low, high) };
    let (low, high) = (metric.show(low).replace('-', "−"), metric.show(high));
    let p = probability(test.corrected);
    let p = if p.starts_with('<') { format!("p {p}") } else { format!("p = {p}") };
    Some((metric.amount(comparison.difference.abs()), format!("95 %: {low} to {high}; {p}")))
}

/// Returns every test with all its figures.
fn tests(summary: &StudySummary<'_>) -> Vec<Value> {
    let of = |row: &Row<'_>| {
        let (comparison, base) = (row.comparison.as_ref()?, summary.rows[row.base?].variant.run());
        let [difference, corrected, effect] = compared(row, summary.metric);
        let test = row.test();
        Some(json!({
            "name": row.variant.run(),
            "base": base,
            "n": comparison.n,
            "difference": difference,
            "p": match row.verdict {
                ComparisonVerdict::NotAsked => "—".to_string(),
                _ => test.map_or_else(|| "untested".to_string(), |test| probability(test.p)),
            },
            "corrected": corrected,
            "exact": test.and_then(|test| test.exact).map_or_else(|| "—".to_string(), probability),
            "effect": effect,
            "over_rows": summary.metric.map_or_else(|| "—".to_string(), |metric| over_rows(comparison, metric)[1].clone()),
            "differs": row.differs(),
        }))
    };
    summary.rows.iter().filter_map(of).collect()
}

fn costs(summary: &StudySummary<'_>) -> Vec<Cost> {
    let seconds = |row: &Row<'_>| row.mean_of(|result| result.report.cost.seconds);
    let longest = summary.rows.iter().map(seconds).filter(|seconds| seconds.is_finite()).fold(0.0, f64::max);
    let each = |result: &FinishedCell<'_>, of: &dyn Fn(&FinishedCell<'_>) -> u64| {
        let parties = result.report.secondaries * result.report.epochs.len();
        if parties == 0 { 0.0 } else { of(result) as f64 / parties as f64 }
    };
    let sum = |of: fn(&EpochReport) -> u64| {
        move |result: &FinishedCell<'_>| result.report.epochs.iter().map(of).sum::<u64>()
    };
    let (received, sent) = (sum(|epoch| epoch.traffic.received), sum(|epoch| epoch.traffic.sent));
    let cost = |row: &Row<'_>| Cost {
        name: row.variant.name.clone(),
        seconds: shown(seconds(row), 1),
        share: if longest > 0.0 && seconds(row).is_finite() { seconds(row) / longest } else { 0.0 },
        rows_per_second: shown(row.median_of(|result| result.report.cost.train_rows_per_second), 0),
        memory: bytes(row.median_of(|result| result.report.cost.peak_memory_bytes as f64)),
        to_primary: bytes(row.mean_of(|result| each(result, &received))),
        from_primary: bytes(row.mean_of(|result| each(result, &sent))),
        total: bytes(
            row.mean_of(|result| (result.report.traffic.sent + result.report.traffic.received) as f64),
        ),
    };
    summary.rows.iter().filter(|row| !row.results.is_empty()).map(cost).collect()
}

fn changes(summary: &StudySummary<'_>) -> Vec<Changes> {
    let experiment = |row: usize| {
        summary.cells.iter().find(|cell| cell.index == row).map(|cell| &cell.identity.experiment)
    };
    let of = |(index, row): (usize, &Row<'_>)| {
        let base = row.base.or_else(|| (index > 0).then_some(0))?;
        let (mut own, mut others) = (Vec::new(), Vec::new());
        flatten("", experiment(index)?, &mut own);
        flatten("", experiment(base)?, &mut others);
        let find = |all: &[(String, String)], key: &str| {
            all.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone())
        };
        let mut keys: Vec<String> = others.iter().map(|(key, _)| key.clone()).collect();
        keys.extend(own.iter().map(|(key, _)| key.clone()).filter(|key| find(&others, key).is_none()));
        let none = || "—".to_string();
        let lines = keys.into_iter().filter_map(|key| {
            let (before, after) = (find(&others, &key), find(&own, &key));
            (before != after).then(|| [key, before.unwrap_or_else(none), after.unwrap_or_else(none)])
        });
        let base = summary.rows[base].variant.name.clone();
        Some(Changes { name: row.variant.name.clone(), base, lines: lines.collect() })
    };
    summary.rows.iter().enumerate().filter_map(of).collect()
}

/// Lists every setting by its path, except the seed.
fn flatten(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, found);
            }
        }
        _ if path == "seed" => {}
        value => {
            found.push((path.to_string(), value.as_str().map_or_else(|| value.to_string(), str::to_string)))
        }
    }
}

fn failures(summary: &StudySummary<'_>) -> Vec<FailedCell> {
    let of = |(cell, failure): &(&super::super::cell::Cell, failure::CellFailure)| FailedCell {
        title: cell.title(),
        problem: failure.problem.clone(),
        log: failure::log(cell).display().to_string(),
        tail: failure::tail(cell),
    };
    summary.failures.iter().map(of).collect()
}

/// Formats a number of bytes for people.
fn bytes(count: f64) -> String {
    let (mut count, mut unit) = (count, "B");
    for next in ["kB", "MB", "GB", "TB"] {
        if count < 1000.0 {
            break;
        }
        (count, unit) = (count / 1000.0, next);
    }
    match count {
        count if count.is_nan() => "—".to_string(),
        count if unit == "B" || count >= 100.0 => format!("{count:.0} {unit}"),
        count => format!("{count:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::{ACCURACY, RMSE};
    use super::super::super::summary::tests::{pair, study};
    use super::*;

    #[test]
    fn page_contains_all_findings_without_other_files() {
        let cells: Vec<_> = (0..3)
            .flat_map(|seed| {
                let jitter = [0.0, 0.01, -0.01][seed as usize];
                [(0, seed, ACCURACY, 0.9 + jitter), (1, seed, ACCURACY, 0.7 + 1.5 * jitter)]
            })
            .collect();
        let (grid, cells, reports) = study(&cells);
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        let page =
            text(&summary, &ReportTable::new(&summary), [None, metrics::table(&summary).as_ref(), None])
                .expect("a page");
        for part in [
            "B is worse than A by 20.00 points",
            "<strong>−20.00 [",
            "C|x",
            "no result",
            "Learning curves",
            "prefers-color-scheme: dark",
            "@media print",
            "2.0 kB",
        ] {
            assert!(page.contains(part), "{part:?} is not in\n{page}");
        }
        for part in ["http://", "https://", "src=", "@import", "NaN", "{{", "{%"] {
            assert!(
                !page.replace("http://www.w3.org/2000/svg", "").contains(part),
                "{part:?} is in the page"
            );
        }
    }

    #[test]
    fn writes_a_page_without_results() {
        let (grid, _, _) = study(&[]);
        let summary = StudySummary::new(&grid, &[], &[]);
        let page =
            text(&summary, &ReportTable::new(&summary), [None, metrics::table(&summary).as_ref(), None])
                .expect("a page");
        assert!(page.contains("0 of 0 cells"), "{page}");
    }

    #[test]
    fn names_are_escaped() {
        let (mut grid, cells, reports) = study(&[(0, 0, RMSE, 0.5)]);
        grid.variants[0].name = "<script>alert(1)</script>".into();
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        let page =
            text(&summary, &ReportTable::new(&summary), [None, metrics::table(&summary).as_ref(), None])
                .expect("a page");
        assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"), "{page}");
    }

    #[test]
    fn formats_bytes_in_units() {
        let check = |count: f64, expected: &str| assert_eq!(bytes(count), expected);
        check(f64::NAN, "—");
        check(0.0, "0 B");
        check(999.0, "999 B");
        check(2_048.0, "2.0 kB");
        check(123_456_789.0, "123 MB");
    }
}
