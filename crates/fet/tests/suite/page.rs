//! Tests `report.html`, the page of a single run.

use std::path::Path;

use fet_eval::records::Report;
use fet_eval::{Estimate, Metric};

use crate::command::{fet, read};
use crate::own_data::{finished, tables};
use crate::support::report;

const SECTIONS: [&str; 5] = ["metrics", "curves", "errors", "coverage", "links"];

fn page(folder: &Path) -> String {
    read(folder, "result/report.html")
}

/// Returns the part of a page between the start of a section and its end.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let from =
        page.split_once(&format!("<section id=\"{name}\">")).unwrap_or_else(|| panic!("{name}: {page}")).1;
    from.split_once("</section>").expect("an end").0
}

fn check(page: &str, report: &Report) {
    let metric = report.metric;
    for part in ["http://", "https://", "src=", "@import", "url(", "<script", "NaN", "{{", "{%"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(part), "{part:?} is in the page");
    }
    SECTIONS.iter().for_each(|name| assert!(!section(page, name).is_empty()));
    assert!(page.contains(&format!(
        "<b>{}</b> on {} test rows",
        metric.phrase(report.best.test),
        report.rows.test
    )));
    for (one, value) in report.evaluation.test.iter() {
        let value = report
            .evaluation
            .test
            .get(one)
            .map(|value| one.show(value))
            .unwrap_or_else(|| format!("{value:?}"));
        assert!(
            section(page, "metrics").contains(&format!("<td>{}</td><td>{value}</td>", one.title())),
            "{one}"
        );
    }
    let Estimate::Interval(interval) = &report.evaluation.interval else { panic!("{report:?}") };
    let interval = format!("{} to {}", metric.show(interval.lower), metric.show(interval.upper));
    assert!(section(page, "metrics").contains(&interval), "{interval}");
    let coverage = report.coverage.as_ref().expect("validation rows");
    let groups = coverage.classes.iter().chain(coverage.deciles.iter().map(|decile| &decile.covered));
    for covered in groups.chain([&coverage.all]) {
        let share = 100.0 * covered.covered as f64 / covered.rows as f64;
        let cells = format!("<td>{}</td><td>{share:.1} %</td>", covered.rows);
        assert!(section(page, "coverage").contains(&cells), "{cells}");
    }
    assert_eq!(
        section(page, "coverage").matches("<tr><td>").count(),
        1 + coverage.classes.len() + coverage.deciles.len()
    );
    for traffic in &report.traffic_by_party {
        let cells = format!("<td>{}</td><td>{}</td>", traffic.sent, traffic.received);
        assert!(section(page, "links").contains(&cells), "{cells}");
    }
    assert_eq!(section(page, "curves").matches("<figure>").count(), 2);
    for setting in ["data.primary.file", "train.epochs", "linker.neighbours"] {
        assert!(section(page, "settings").contains(&format!("<code>{setting}</code>")), "{setting}");
    }
}

#[test]
fn page_of_a_classification_has_the_figures_of_the_report() {
    let (folder, report) = finished(&["scores.metric=auc-roc"]);
    let page = page(folder.path());
    check(&page, &report);
    let errors = section(&page, "errors");
    assert!(errors.contains("Confusion matrix") && errors.contains("Calibration"), "{errors}");
    let cells = &report.evaluation.confusion.as_ref().expect("classes").cells;
    assert!(errors.contains(&format!("no → yes: {}<", cells[0][1])), "{errors}");
    assert!(section(&page, "reliance").contains("fet explain"), "no reliance yet");
    assert!(report.warnings.iter().all(|warning| {
        section(&page, "warnings")
            .contains(&warning.replace('"', "&quot;").replace('\'', "&#x27;").replace('/', "&#x2f;"))
    }));

    // The explanation of this run adds the reliance, and every other figure stays.
    let output = fet(folder.path(), &["explain", "result", "--repeats", "2"]);
    assert!(output.status.success(), "{output:?}");
    let explained = read(folder.path(), "result/report.html");
    check(&explained, &report);
    let reliance = section(&explained, "reliance");
    assert!(
        reliance.contains("Reliance on each party") && reliance.contains("streets: lanes: "),
        "{reliance}"
    );
    let found: serde_json::Value =
        serde_json::from_str(&read(folder.path(), "result/explanation.json")).expect("JSON");
    for (name, value) in
        ["streets", "buses"].iter().zip(found["parties"]["shapley"]["values"].as_array().expect("values"))
    {
        let title = format!("{name}: {}", Metric::AucRoc.show(value.as_f64().expect("a number")));
        assert!(reliance.contains(&title), "{title}: {reliance}");
    }
}

#[test]
fn page_of_a_regression_has_residuals_and_deciles() {
    let sets = ["data.task=regression", "data.label=size", "data.primary.drop=[\"part\", \"busy\"]"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    // Every label of the run is known.
    let shops = read(folder.path(), "shops.csv");
    let known: Vec<&str> = shops.lines().filter(|line| line.split(';').nth(4) != Some("")).collect();
    std::fs::write(folder.path().join("shops.csv"), known.join("\n")).expect("writable");
    let output = fet(folder.path(), &[&["run", "shops.toml", "--out", "result"], sets.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let report = report(&folder.path().join("result"));
    let page = page(folder.path());
    check(&page, &report);
    let residuals = report.evaluation.residuals.as_ref().expect("a regression");
    let bias = Metric::Mae.show(residuals.mean).replace('-', "−");
    let errors = section(&page, "errors");
    assert!(errors.contains("Residuals") && errors.contains(&format!("true values: {bias};")), "{errors}");
    assert_eq!(report.coverage.as_ref().expect("bounds").deciles.len(), 10);
}

/// Names of parties, classes and experiments come from the user's files, and could hold markup.
#[test]
fn names_are_escaped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let shops = read(folder.path(), "shops.csv").replace(";yes", ";<b onclick=x>&\"");
    std::fs::write(folder.path().join("shops.csv"), shops).expect("writable");
    let experiment = read(folder.path(), "shops.toml")
        .replace("name = \"shops\"\nseed", "name = '<i>\"a\" & b'\nseed")
        .replace("name = \"buses\"", "name = '<u>buses&'");
    std::fs::write(folder.path().join("shops.toml"), experiment).expect("writable");
    let output = fet(folder.path(), &["run", "shops.toml", "--out", "result", "--set", "train.epochs=2"]);
    assert!(output.status.success(), "{output:?}");
    let output = fet(folder.path(), &["explain", "result", "--repeats", "1"]);
    assert!(output.status.success(), "{output:?}");
    let page = page(folder.path());
    check(&page, &report(&folder.path().join("result")));
    for part in ["<b onclick", "<i>", "<u>"] {
        assert!(!page.contains(part), "{part} is markup in the page");
    }
    for part in
        ["&lt;i&gt;&quot;a&quot; &amp; b", "class &lt;b onclick=x&gt;&amp;&quot;", "&lt;u&gt;buses&amp;"]
    {
        assert!(page.contains(part), "{part}");
    }
}
