//! The guide `docs/other-programs.md` and the example next to it follow the code: every block of JSON is a record of `fet-eval`,
//! and every table lists exactly the fields of its record.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fet_eval::Metric;
use fet_eval::records::{ProgramReport, Report, RunEvent, ShowAnswer, ShowQuestion};
use fet_site::markdown::blocks;
use serde_json::Value;

use crate::study::{CommandOutcome, STUDY, Study, check};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(folder().join("../../docs/other-programs.md")).expect("the guide")
}

/// Returns the JSON values of all blocks, in the order of the page.
fn values() -> Vec<Value> {
    let all = blocks(&page()).into_iter().filter(|block| block.language == "json");
    all.flat_map(|block| {
        let each = serde_json::Deserializer::from_str(&block.code).into_iter::<Value>();
        each.map(|value| value.unwrap_or_else(|error| panic!("line {}: {error}", block.line)))
            .collect::<Vec<Value>>()
    })
    .collect()
}

/// Form of a block. Its fields distinguish it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Question,
    Answer,
    AnswerOfFet,
    Refusal,
    Event,
    Report,
}

/// Returns the form of a block and its paths after a round trip through the record.
fn parsed(value: &Value) -> (Form, BTreeSet<String>) {
    let has = |field: &str| value.get(field).is_some();
    let of = |record: serde_json::Result<Value>, prefix: &str| {
        let record = record.expect("plain data");
        if value
            .as_object()
            .is_some_and(|given| record.as_object().is_some_and(|all| all.len() == given.len()))
        {
            assert_eq!(record, *value, "the record has other values");
        }
        paths(&record, prefix)
    };
    let text = value.to_string();
    let fail = |error: serde_json::Error| -> ! { panic!("{error} in {text}") };
    if has("event") {
        let event =
            RunEvent::parse(&text).unwrap_or_else(|| panic!("{:?} in {text}", RunEvent::problem(&text)));
        let name = value["event"].as_str().expect("a name");
        let mut found = of(serde_json::to_value(event), name);
        found.remove(&format!("{name}.event"));
        (Form::Event, found)
    } else if has("set") {
        let question: ShowQuestion =
            serde_json::from_value(value.clone()).unwrap_or_else(|error| fail(error));
        (Form::Question, of(serde_json::to_value(question), ""))
    } else if has("metric") {
        let report: ProgramReport = serde_json::from_value(value.clone()).unwrap_or_else(|error| fail(error));
        (Form::Report, of(serde_json::to_value(report), ""))
    } else {
        let answer: ShowAnswer = serde_json::from_value(value.clone()).unwrap_or_else(|error| fail(error));
        let form = match (&answer, has("program")) {
            (ShowAnswer::Refused(_), _) => Form::Refusal,
            (ShowAnswer::Identity(_), true) => Form::Answer,
            (ShowAnswer::Identity(_), false) => Form::AnswerOfFet,
        };
        (form, of(serde_json::to_value(answer), ""))
    }
}

/// Returns the paths of all fields, as in `best.test` and `epochs[].epoch`. The settings, and the parts of an evaluation, count as
/// one field each.
fn paths(value: &Value, prefix: &str) -> BTreeSet<String> {
    let is_leaf = matches!(prefix, "experiment" | "fitted")
        || (prefix.starts_with("evaluation.") && !prefix.ends_with('.'));
    let join = |name: &str| if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
    match value {
        Value::Object(fields) if !is_leaf => {
            fields.iter().flat_map(|(name, value)| paths(value, &join(name))).collect()
        }
        Value::Array(all) if !is_leaf && all.first().is_some_and(Value::is_object) => {
            paths(&all[0], &format!("{prefix}[]"))
        }
        _ => BTreeSet::from([prefix.to_string()]),
    }
}

/// Returns the fields in the first column of the table whose first header is `header`.
fn table(page: &str, header: &str) -> BTreeSet<String> {
    let begin = format!("| {header} |");
    let mut lines = page.lines().skip_while(|line| !line.starts_with(&begin));
    assert!(lines.next().is_some(), "the page lacks the table {header:?}");
    let fields = lines.skip(1).map_while(|line| line.strip_prefix("| `")?.split('`').next());
    fields.map(str::to_string).collect()
}

#[test]
fn blocks_of_json_are_records() {
    let forms: BTreeSet<Form> = values().iter().map(|value| parsed(value).0).collect();
    let expected =
        [Form::Question, Form::Answer, Form::AnswerOfFet, Form::Refusal, Form::Event, Form::Report];
    assert_eq!(forms, BTreeSet::from(expected));
}

#[test]
fn tables_list_every_field() {
    let page = page();
    let all: Vec<(Form, BTreeSet<String>)> = values().iter().map(parsed).collect();
    // The fields of all blocks of a form: one block has every field.
    let fields = |wanted: Form| -> BTreeSet<String> {
        all.iter().filter(|(form, _)| *form == wanted).flat_map(|(_, fields)| fields.clone()).collect()
    };
    // A field that a short report leaves out is an empty list or null, and a longer report has its parts.
    let whole = |wanted: Form| -> BTreeSet<String> {
        let all = fields(wanted);
        let has_parts = |path: &String| {
            all.iter().any(|other| {
                other.starts_with(&format!("{path}.")) || other.starts_with(&format!("{path}[]"))
            })
        };
        all.iter().filter(|path| !has_parts(path)).cloned().collect()
    };
    assert_eq!(table(&page, "field of a question"), fields(Form::Question));
    assert_eq!(table(&page, "field of an answer"), fields(Form::Answer));
    assert_eq!(table(&page, "field of an answer of `fet`"), fields(Form::AnswerOfFet));
    assert_eq!(table(&page, "field of a refusal"), fields(Form::Refusal));
    assert_eq!(table(&page, "event and field"), fields(Form::Event));
    assert_eq!(table(&page, "field of a report"), whole(Form::Report));

    let study = Study::new(STUDY);
    assert_eq!(study.ablate("", &["--only", "Full", "--seeds", "0"]).code, 0);
    let text = fs::read_to_string(study.cells()[0].join("report.json")).expect("a report");
    serde_json::from_str::<Report>(&text).expect("a report of `fet`");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(table(&page, "field of a report of `fet`"), paths(&report, ""));
}

/// A report that lacks a field without "yes" in the table is whole, and a report that lacks another field is refused.
#[test]
fn required_fields_are_required() {
    let page = page();
    let whole = values()
        .into_iter()
        .filter(|value| value.get("metric").is_some())
        .max_by_key(|value| value.to_string().len());
    let whole = whole.expect("a report with every field");
    let mut seen = 0;
    let rows = page.lines().skip_while(|line| !line.starts_with("| field of a report |")).skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (path, is_required) = (cells[0].trim_start_matches("| ").trim_matches('`'), cells[2] == "yes");
        let mut report = whole.clone();
        let pointer = format!("/{}", path.replace("[]", ".0").replace('.', "/"));
        let (parent, name) = pointer.rsplit_once('/').expect("a path");
        let parent = report.pointer_mut(parent).and_then(Value::as_object_mut).expect(path);
        assert!(parent.remove(name).is_some(), "{path}");
        let found = serde_json::from_value::<ProgramReport>(report);
        assert_eq!(found.is_err(), is_required, "{path}: {found:?}");
        if let Err(error) = found {
            assert_eq!(error.to_string(), format!("missing field `{name}`"), "{path}");
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen} fields");
}

#[test]
fn table_of_metrics_is_complete() {
    let page = page();
    for metric in Metric::ALL {
        assert!(page.contains(&format!("`{metric}`")), "{metric}");
    }
}

/// The study of the example is a study with the cells that the guide shows.
#[cfg(unix)]
#[test]
fn example_is_a_study() {
    let example = folder().join("examples/scikit-learn/models.toml");
    let study = Study::new(&fs::read_to_string(example).expect("the example"));
    let shim = folder().join("tests/programs/shim.sh");
    for (arguments, expected) in [(&[][..], "15 cells, 15 to run"), (&["--quick"], "9 cells, 9 to run")] {
        let mut command = study.command("", &["--dry-run"]);
        let output = command.args(arguments).arg("--program").arg(&shim).output().expect("ran");
        let outcome = CommandOutcome::from_output(output);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        check(&outcome.stdout, &["logistic regression, weak penalty, seed 2", expected]);
    }
    let page = page();
    let named: PathBuf = "crates/fet-study/examples/scikit-learn".into();
    assert!(
        page.contains(&named.display().to_string())
            && folder().join("../..").join(named).join("models.py").exists()
    );
}
