//! `report.html`: the report of one run as a self-contained page with charts.
//!
//! The page is the template `run.html.jinja`, which escapes everything except the charts. All figures are
//! those of the report. Times are absent, so that equal runs have equal pages.

use anyhow::Context;
use fet_chart::{NARROW, Series, Size, Titles, WIDE};
use fet_core::experiment::Experiment;
use fet_eval::records::{EpochReport, LabelPrivacy, Report};
use fet_eval::{Covered, Estimate, Groups, Metric, Residuals, ScoreValue, Scores};
use fet_study::error_charts;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::{Value, json};

use crate::attack;
use crate::bounds::{class_name, share_interval, shown};
use crate::code::python_code;
use crate::explain::explanation::Explanation;
use crate::explain::show::RelianceChart;

const TEMPLATE: &str = include_str!("page/run.html.jinja");
/// Size of a chart of one curve.
const CURVE: Size = Size { width: 560.0, height: 300.0, names: 0.0 };
/// A missing figure.
const NONE: &str = "-";

/// Extracts a figure of an epoch.
type Figure<'a> = &'a dyn Fn(&EpochReport) -> f64;

/// Returns the style of a page with charts, for light, dark and printed pages.
pub(crate) fn style() -> String {
    format!("{}{}", fet_chart::page_style(), include_str!("page/page.css"))
}

/// Returns the text of the page. `explanation` adds the reliance on parties and columns.
pub(crate) fn text(
    experiment: &Experiment,
    report: &Report,
    explanation: Option<&Explanation>,
) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE).context("the template of the page")?;
    let metric = report.metric;
    let interval = interval(report);
    let sections = [
        Section { sentences: report.warnings.clone(), ..Section::new("warnings", "Warnings") },
        metrics(report, interval.as_deref()),
        Section { charts: curves(report), ..Section::new("curves", "Learning curves") },
        errors(report),
        coverage(report),
        links(experiment, report)?,
        Section {
            lines: report.attack.as_ref().map(|record| attack::words(record).trim_end().to_string()),
            ..Section::new("attack", "Attack")
        },
        reliance(explanation),
    ]
    .into_iter()
    .filter(|section| !section.is_empty())
    .collect::<Vec<_>>();
    let page = json!({
        "style": style(),
        "name": experiment.name,
        "result": metric.phrase(report.best.test),
        "interval": interval.as_ref().map(|interval| format!("95 % interval: {interval}, bootstrap over the test rows")),
        "rows": report.rows,
        "facts": format!(
            "Method {}, seed {}; {} training and {} validation rows; {} {}. {}",
            experiment.method.kinds(),
            report.seed,
            report.rows.train,
            report.rows.validation,
            report.secondaries,
            if report.secondaries == 1 { "other party" } else { "other parties" },
            python_code(experiment).join(" ")
        ).trim_end(),
        "sections": sections,
        "program": format!(
            "fet {}, commit {}, version {} of its results, on {}. Checksum of the data files: {}; of the split: {}.",
            report.program.version,
            report.program.commit,
            report.program.results,
            report.device,
            report.data.files,
            report.data.split
        ),
        "settings": settings(&report.experiment),
    });
    let template = environment.get_template("report.html").context("the template of the page")?;
    template.render(Serde(page)).context("the page")
}

/// Section of the page.
#[derive(Debug, Default, Serialize)]
struct Section {
    id: &'static str,
    title: &'static str,
    sentences: Vec<String>,
    /// Text with line breaks.
    lines: Option<String>,
    charts: Vec<Value>,
    tables: Vec<SectionTable>,
    notes: Vec<String>,
}

/// Table of a section.
#[derive(Debug, Serialize)]
struct SectionTable {
    title: Option<String>,
    header: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Section {
    fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.sentences.is_empty() && self.lines.is_none() && self.charts.is_empty() && self.tables.is_empty()
    }
}

/// Returns a table without a title.
fn table<const N: usize>(header: [&str; N], lines: Vec<[String; N]>) -> SectionTable {
    SectionTable {
        title: None,
        header: header.map(String::from).to_vec(),
        lines: lines.into_iter().map(|line| line.to_vec()).collect(),
    }
}

/// Returns the interval of the main metric, or `None` if it is undefined.
fn interval(report: &Report) -> Option<String> {
    let metric = report.metric;
    match &report.evaluation.interval {
        Estimate::Interval(found) => {
            Some(format!("{} to {}", metric.show(found.lower), metric.show(found.upper)))
        }
        Estimate::Undefined(_) => None,
    }
}

fn value(metric: Metric, value: &ScoreValue) -> String {
    match value {
        ScoreValue::Value(value) => metric.show(*value),
        ScoreValue::Undefined(why) => format!("undefined: {why}"),
    }
}

/// Returns every metric, the main metric first, and the metrics of groups.
fn metrics(report: &Report, interval: Option<&str>) -> Section {
    let evaluation = &report.evaluation;
    let line = |(metric, test): (Metric, &ScoreValue)| {
        let validation = evaluation.validation.iter().find(|(other, _)| *other == metric);
        let interval = interval.filter(|_| metric == report.metric).unwrap_or(NONE);
        [
            metric.title(),
            value(metric, test),
            interval.to_string(),
            validation.map_or_else(|| NONE.to_string(), |(_, found)| value(metric, found)),
        ]
    };
    let mut all: Vec<(Metric, &ScoreValue)> = evaluation.test.iter().collect();
    all.sort_by_key(|(metric, _)| *metric != report.metric);
    let lines = all.into_iter().map(line).collect();
    let chosen = format!(
        "Epoch {} of {} has the best {} on the validation rows. They chose the epoch, so their figures are slightly too \
         good.",
        report.best.epoch,
        report.epochs.len(),
        report.metric.label()
    );
    let fitted = report.fitted.iter();
    let fitted =
        fitted.map(|(setting, value)| format!("The validation rows also determined {setting}: {value:.3}."));
    let header = ["metric", "test rows", "95 % interval", "validation rows"];
    Section {
        tables: std::iter::once(table(header, lines)).chain(evaluation.groups.as_ref().map(groups)).collect(),
        notes: std::iter::once(chosen).chain(fitted).collect(),
        ..Section::new("metrics", "Metrics")
    }
}

fn groups(found: &Groups) -> SectionTable {
    let mut lines = Vec::new();
    let mut line = |name: String, rows: usize, scores: &Scores| {
        let figures = scores.iter().map(|(metric, found)| match found {
            ScoreValue::Value(found) => metric.show(*found),
            ScoreValue::Undefined(_) => NONE.to_string(),
        });
        lines.push([name, rows.to_string()].into_iter().chain(figures).collect::<Vec<String>>());
    };
    found.groups.iter().for_each(|group| line(group.name.clone(), group.rows, &group.scores));
    if let Some(others) = &found.others {
        line(format!("{} others together", others.groups), others.rows, &others.scores);
    }
    let titles = found.groups.iter().take(1).flat_map(|group| group.scores.iter());
    let titles = titles.map(|(metric, _)| metric.title());
    let header = [found.column.clone(), "rows".to_string()].into_iter().chain(titles).collect();
    SectionTable { title: Some(format!("By {}", found.column)), header, lines }
}

fn errors(report: &Report) -> Section {
    let show = |value: f64| Metric::Mae.show(value).replace('-', "−");
    let bias = |found: &Residuals| {
        format!(
            "Bias, the mean of predicted minus true values: {}; standard deviation of the errors: {}.",
            show(found.mean),
            show(found.deviation)
        )
    };
    let charts = error_charts(&[report]).into_iter();
    Section {
        sentences: report.evaluation.residuals.iter().map(bias).collect(),
        charts: charts.map(|chart| json!(chart)).collect(),
        ..Section::new("errors", "Errors")
    }
}

/// Returns the chart of the training loss and that of the validation metric.
fn curves(report: &Report) -> Vec<Value> {
    let metric = report.metric;
    let y = metric.title();
    let figures: [(&str, &str, Figure<'_>); 2] = [
        ("Training loss", "loss", &|epoch| epoch.train_loss),
        ("Validation", &y, &|epoch| metric.scaled(epoch.validation)),
    ];
    let chart = |(title, y, figure): (&str, &str, Figure<'_>)| {
        let points = report.epochs.iter().map(|epoch| (epoch.epoch as f64, figure(epoch)));
        let curve: Vec<(f64, f64)> = points.filter(|point| point.1.is_finite()).collect();
        let name = curve.last().map_or_else(String::new, |last| format!("{y} {:.4}", last.1));
        let series = [Series { name, curve, ..Series::default() }];
        let draw = |size| fet_chart::curves(size, Titles { chart: title, x: "epoch", y }, &series);
        let wide = draw(CURVE);
        (series[0].curve.len() > 1 && !wide.is_empty())
            .then(|| json!({ "title": title, "wide": wide, "narrow": draw(NARROW) }))
    };
    figures.into_iter().filter_map(chart).collect()
}

/// Returns the coverage over all rows, and by class or by decile of the prediction, with exact intervals.
fn coverage(report: &Report) -> Section {
    let section = Section::new("coverage", "Coverage");
    let Some(found) = &report.coverage else { return section };
    let line = |(name, covered): (String, &Covered)| {
        let share = covered.share().map_or_else(|| NONE.to_string(), shown);
        let [low, high] = share_interval(covered.covered, covered.rows).map(shown);
        let size = covered.size.map_or_else(|| NONE.to_string(), |size| format!("{size:.4}"));
        [name, covered.rows.to_string(), share, format!("{low} to {high}"), size]
    };
    let classes = found.classes.iter().enumerate();
    let classes =
        classes.map(|(at, covered)| (format!("class {}", class_name(&report.class_names, at)), covered));
    let deciles = found.deciles.iter();
    let deciles = deciles
        .map(|decile| (format!("prediction from {:.6} to {:.6}", decile.from, decile.to), &decile.covered));
    let all = std::iter::once(("all".to_string(), &found.all)).chain(classes).chain(deciles);
    let (bounds, size) = match found.classes.is_empty() {
        true => ("The interval of a prediction", "mean width"),
        false => ("The set of classes of a prediction", "mean number of classes"),
    };
    let sentence = format!(
        "{bounds} contains the true value with probability {} for rows like the {} validation rows that calibrated it.",
        shown(found.stated),
        found.calibration_rows
    );
    let header = ["test rows", "number", "covered", "95 % interval", size];
    Section {
        sentences: vec![sentence],
        tables: vec![table(header, all.map(line).collect())],
        notes: vec!["The 95 % intervals are exact for these shares (Clopper and Pearson 1934).".to_string()],
        ..section
    }
}

fn links(experiment: &Experiment, report: &Report) -> anyhow::Result<Section> {
    let section = Section::new("links", "Parties and links");
    if let Some(release) = &report.release {
        let first = format!(
            "Each secondary made one release, and took no part in the training. {}",
            release.primary_sentence()
        );
        let loss = release.sentences().into_iter().map(|sentence| format!("{sentence}."));
        let rest = std::iter::once(release.statement.clone()).chain(release.assumptions.clone());
        let labels = report.labels.as_ref().map(LabelPrivacy::sentence);
        let sentences = std::iter::once(first).chain(loss).chain(labels).chain(rest).collect();
        return Ok(Section { sentences, ..section });
    }
    if report.secondaries == 0 {
        let sentences = vec!["The primary trained alone; no data left it.".to_string()];
        return Ok(Section { sentences, ..section });
    }
    let about = experiment.linker.build(&())?.about();
    let mut sentences = vec![
        format!(
            "Linker {}: each row has the {} of each party. A party learns {}; the primary learns {}.",
            experiment.linker.kinds(),
            match about.neighbours {
                1 => "most similar record".to_string(),
                count => format!("{count} most similar records"),
            },
            about.reveals.secondary,
            about.reveals.primary
        ),
        format!(
            "Aggregator {}, mechanism {}, label protection {}.",
            experiment.aggregator.kind(),
            experiment.privacy.kind(),
            experiment.labels.kind()
        ),
    ];
    let epsilon =
        |epsilon: Option<f64>| epsilon.map_or("no bound".to_string(), |found| format!("ε = {found:.4}"));
    sentences.extend(report.privacy.as_ref().map(|spent| {
        let (epsilon, delta) = (epsilon(spent.epsilon), spent.delta);
        format!("Privacy of the other parties' records: {epsilon}, δ = {delta}. {}", spent.statement)
    }));
    sentences.extend(report.labels.as_ref().map(LabelPrivacy::sentence));
    let digest = |party: &str| {
        let tables = report.data.tables.iter().find(|table| table.party == party);
        tables.and_then(|table| table.digest.clone()).unwrap_or_else(|| NONE.to_string())
    };
    let line = |party: &fet_eval::records::PartyTraffic| {
        let digest: String = digest(&party.party).chars().take(16).collect();
        [party.party.clone(), digest, party.sent.to_string(), party.received.to_string()]
    };
    let lines: Vec<[String; 4]> = report.traffic_by_party.iter().map(line).collect();
    let header = ["party", "digest of its table", "bytes from the primary", "bytes to the primary"];
    Ok(Section { sentences, tables: vec![table(header, lines)], ..section })
}

fn reliance(explanation: Option<&Explanation>) -> Section {
    let section = Section::new("reliance", "Reliance");
    let Some(found) = explanation else {
        let unknown = "Unknown: `fet explain` with the folder of this run measures the reliance on each party, column and \
            key, and adds it to this page. It needs the tables of all parties.";
        return Section { sentences: vec![unknown.to_string()], ..section };
    };
    let charts = found.charts();
    let last = charts.len().saturating_sub(1);
    let entry = |(number, name): (usize, String)| json!([name, fet_chart::swatch(number)]);
    let legend: Vec<Value> = found.legend().into_iter().map(entry).collect();
    let chart = |(at, chart): (usize, RelianceChart)| {
        let draw = |size| fet_chart::dots(size, &chart.title, &chart.x, &chart.series, Some(0.0));
        json!({
            "title": chart.title,
            "wide": draw(WIDE),
            "narrow": draw(NARROW),
            "legend": if at == last { &legend[..] } else { &[] },
            "caption": if at == last { found.caption() } else { String::new() },
        })
    };
    Section { charts: charts.into_iter().enumerate().map(chart).collect(), ..section }
}

/// Returns the path and the value of every setting.
fn settings(experiment: &Value) -> Vec<[String; 2]> {
    let mut found = Vec::new();
    flatten("", experiment, &mut found);
    found
}

fn flatten(path: &str, value: &Value, found: &mut Vec<[String; 2]>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, found);
            }
        }
        value => {
            found.push([path.to_string(), value.as_str().map_or_else(|| value.to_string(), String::from)])
        }
    }
}
