//! Round trip of a report that `fet` wrote, and refusal of reports with other fields.
//!
//! `written-by-fet.json` is the report of a private run of three epochs. Its `evaluation` comes
//! from made-up predictions with the accuracies of the run, and its `release` from another run. The tests of
//! the crate `fet` repeat the round trip with the report of a new run.

use fet_eval::records::{Report, Spent};
use serde_json::{Value, json};

const WRITTEN: &str = include_str!("written-by-fet.json");

#[test]
fn reads_a_complete_report() {
    let report: Report = serde_json::from_str(WRITTEN).expect("a report");
    assert_eq!((report.epochs.len(), report.epochs[1].test), (3, None));
    assert!(report.privacy.as_ref().is_some_and(|privacy| privacy.guarantee.is_some()));
    // Compares text, because the order of the fields matters.
    let expected: Value = serde_json::from_str(WRITTEN).expect("JSON");
    assert_eq!(serde_json::to_string(&report).expect("plain data"), expected.to_string());
}

/// Figures are read back to the last digit. The fast float parser of `serde_json` would change these two
/// figures.
#[test]
fn reads_figures_exactly() {
    let mut report: Report = serde_json::from_str(WRITTEN).expect("a report");
    for figure in [0.116_666_666_666_666_67, 0.233_333_333_333_333_34] {
        report.best.test = figure;
        let text = serde_json::to_string(&report).expect("plain data");
        let read: Report = serde_json::from_str(&text).expect("a report");
        assert_eq!(read.best.test.to_bits(), figure.to_bits(), "{figure}");
    }
}

#[test]
fn nan_is_null_and_survives_a_round_trip() {
    let mut report: Report = serde_json::from_str(WRITTEN).expect("a report");
    report.epochs[1].validation = f64::NAN;
    if let Some(Spent { epsilon, guarantee: Some(guarantee), .. }) = &mut report.privacy {
        *epsilon = None;
        guarantee.epsilon_by_rdp = f64::INFINITY;
        guarantee.epsilon_by_epoch[2] = f64::INFINITY;
    }
    let text = serde_json::to_string(&report).expect("plain data");
    assert!(text.contains(r#""validation":null"#) && text.contains(r#""epsilon_by_rdp":null"#), "{text}");
    let read: Report = serde_json::from_str(&text).expect("a report");
    assert!(read.epochs[1].validation.is_nan());
    assert_eq!(read.privacy, report.privacy);
    assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
}

/// The reader refuses a report if any field of any record is missing or has another name.
#[test]
fn a_missing_or_renamed_field_is_an_error() {
    let whole: Value = serde_json::from_str(WRITTEN).expect("JSON");
    let mut fields = Vec::new();
    collect("", &whole, &mut fields);
    for path in &fields {
        let (record, name) = path.rsplit_once('/').expect("a path");
        let refused = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut changed = whole.clone();
            change(changed.pointer_mut(record).and_then(Value::as_object_mut).expect("a record"));
            serde_json::from_value::<Report>(changed).expect_err(path).to_string()
        };
        let missing = refused(&|record| {
            record.remove(name);
        });
        assert!(missing.contains(&format!("missing field `{name}`")), "{path}: {missing}");
        let unknown = refused(&|record| {
            record.insert("renamed".into(), json!(null));
        });
        assert!(unknown.contains("unknown field `renamed`"), "{path}: {unknown}");
    }
    assert!(fields.len() > 60, "{fields:?}");
}

/// Scores have separate error messages for a missing or unknown metric.
#[test]
fn a_missing_or_renamed_metric_is_an_error() {
    let mut met = 0;
    for scores in ["/evaluation/validation", "/evaluation/test", "/evaluation/groups/groups/1/scores"] {
        assert!(is_scores(scores), "{scores}");
        let names: Vec<String> = {
            let whole: Value = serde_json::from_str(WRITTEN).expect("JSON");
            whole.pointer(scores).and_then(Value::as_object).expect(scores).keys().cloned().collect()
        };
        for name in names {
            for (renamed, expect) in
                [(None, format!("the scores lack {name}")), (Some("new"), "unknown variant `new`".into())]
            {
                let mut changed: Value = serde_json::from_str(WRITTEN).expect("JSON");
                let record = changed.pointer_mut(scores).and_then(Value::as_object_mut).expect(scores);
                let value = record.remove(&name).expect("a metric");
                renamed.map(|renamed| record.insert(renamed.into(), value));
                let error = serde_json::from_value::<Report>(changed).expect_err(&name).to_string();
                assert!(error.contains(&expect), "{scores}/{name}: {error}");
                met += 1;
            }
        }
    }
    assert_eq!(met, 3 * 8 * 2);
}

fn is_scores(path: &str) -> bool {
    path.starts_with("/evaluation/")
        && ["/validation", "/test", "/scores"].iter().any(|name| path.ends_with(name))
}

/// Collects the paths of all fields except those of the settings, which are not a record, and those of
/// scores, which are a map.
fn collect(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let own = format!("{path}/{name}");
                if own != "/experiment" && !is_scores(&own) {
                    collect(&own, value, found);
                }
                // The interval is an enum: its only key is the name of a variant.
                if path != "/evaluation/interval" {
                    found.push(own);
                }
            }
        }
        Value::Array(values) => {
            values.iter().take(1).for_each(|value| collect(&format!("{path}/0"), value, found))
        }
        _ => {}
    }
}
