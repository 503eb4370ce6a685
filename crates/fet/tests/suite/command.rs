//! Tests the command from a user's point of view: a complete run, its files, and the external example
//! plug-in.

use std::path::Path;
use std::process::{Command, Output};

use fet_backends::Backend;
use fet_eval::records::{Report, RunEvent};
use serde_json::Value;

use crate::support::{devices, report};

pub(crate) const TINY: &str = r#"
name = "tiny"
[data]
kind = "split"
rows = 200
parties = 3
[train]
epochs = 2
[method]
kind = "fet"
hidden = 16
heads = 2
[linker]
kind = "nearest"
neighbours = 4
"#;

pub(crate) fn fet(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fet"))
        .current_dir(folder)
        .args(arguments)
        .env("FET_DATA", folder)
        .output()
        .expect("the program starts")
}

/// Runs an experiment file of the folder with these settings.
pub(crate) fn run(folder: &Path, file: &str, out: &str, sets: &[&str]) -> Output {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    fet(folder, &["run", file, "--out", out].into_iter().chain(sets).collect::<Vec<_>>())
}

/// Runs an experiment file, and returns the test value of its metric.
pub(crate) fn tested(folder: &Path, file: &str, out: &str, sets: &[&str]) -> f64 {
    let output = run(folder, file, out, sets);
    assert!(output.status.success(), "{}", text(&output.stderr));
    report(&folder.join(out)).best.test
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn write(folder: &Path, file: &str, text: &str) {
    std::fs::write(folder.join(file), text).expect("writable");
}

/// Checks that the command refused its input, with a message that contains these parts.
pub(crate) fn refused(output: &Output, parts: &[&str]) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{parts:?}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn runs_on_every_device() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    for Backend { name, .. } in devices() {
        let output = fet(folder.path(), &["run", "tiny.toml", "--device", &name, "--out", &name]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(report(&folder.path().join(&name)).device, name);
    }
}

#[test]
fn run_writes_a_report_and_a_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let output = fet(folder.path(), &["run", "tiny.toml", "--seed", "3", "--log", "json", "--out", "result"]);
    assert!(output.status.success(), "{output:?}");
    let events: Vec<RunEvent> =
        out(&output).lines().map(|line| RunEvent::parse(line).expect("an event")).collect();
    let count = |is: fn(&RunEvent) -> bool| events.iter().filter(|event| is(event)).count();
    assert!(matches!(events[0], RunEvent::Start { epochs: 2, .. }), "{events:?}");
    assert_eq!(count(|event| matches!(event, RunEvent::Epoch { .. })), 2, "{events:?}");
    assert_eq!(events.last(), Some(&RunEvent::Done { report: "result/report.json".into() }));
    let text = std::fs::read_to_string(folder.path().join("result/report.json")).expect("a report");
    let report: Report = serde_json::from_str(&text).expect("a report");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(serde_json::to_string(&report).expect("plain data"), json.to_string(), "nothing is lost");
    assert_eq!((report.seed, report.epochs.len(), report.rows.train), (3, 2, 140));
    assert_eq!(report.experiment["encoder"]["dynamic_mask"], true, "defaults are filled in");
    assert_eq!(report.privacy.map(|privacy| privacy.epsilon), Some(None), "no guarantee, no number");
    let shown = fet(folder.path(), &["show", "tiny.toml", "--seed", "3", "--json"]);
    let shown: Value = serde_json::from_str(&out(&shown)).expect("JSON");
    assert_eq!(shown, report.experiment, "show and run agree");
    let mut values = 0;
    for (file, name) in [
        ("model.safetensors", "output.weight"),
        ("parties/party1/model.safetensors", "embedding.input.weight"),
        ("parties/party2/model.safetensors", "mask.hidden.bias"),
    ] {
        let model = std::fs::read(folder.path().join("result").join(file)).expect("a model");
        let tensors = safetensors::SafeTensors::deserialize(&model).expect("safetensors");
        assert!(tensors.tensor(name).is_ok(), "{name} in {:?}", tensors.names());
        let header = String::from_utf8_lossy(&model);
        assert!(
            header.contains("preparing") && header.contains("scaled"),
            "{file} says how to scale a new record"
        );
        values += tensors.iter().map(|(_, view)| view.shape().iter().product::<usize>()).sum::<usize>();
    }
    assert_eq!(report.parameters, values);
}

#[test]
fn shown_experiment_can_be_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let first = out(&fet(folder.path(), &["show", "tiny.toml"]));
    std::fs::write(folder.path().join("again.toml"), &first).expect("writable");
    assert_eq!(out(&fet(folder.path(), &["show", "again.toml"])), first);
}

#[test]
fn runs_a_linker_from_another_crate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let sets = ["--set", "linker.kind=grid", "--set", "linker.step=0.5", "--set", "train.epochs=1"];
    let output = fet(folder.path(), &[&["run", "tiny.toml", "--out", "grid"], sets.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.path().join("grid/report.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["experiment"]["linker"]["kind"], "grid");
    assert_eq!(report["experiment"]["linker"]["neighbours"], 20, "its own defaults, not those of `nearest`");
}

#[test]
fn plots_finished_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    for (name, set) in [("apart", "method.pe_average_every=0"), ("averaged", "method.pe_average_every=1")] {
        assert!(fet(folder.path(), &["run", "tiny.toml", "--set", set, "--out", name]).status.success());
    }
    let output = fet(folder.path(), &["plot", "apart", "averaged", "--out", "pictures"]);
    assert!(output.status.success(), "{output:?}");
    let picture = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join("pictures").join(name)).expect(name);
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{name}");
        text
    };
    let curves = picture("curves.svg");
    for part in ["Training loss", "accuracy", "apart", "averaged"] {
        assert!(curves.contains(part), "{part} in curves.svg");
    }
    assert!(picture("encodings.svg").contains("averaged every 1"));
    // Four panels, each with four neighbours (circles) and the primary's key (a cross).
    assert_eq!(picture("mask.svg").matches("<circle").count(), 4 * 4);
    // A party that dropped out leaves no model.
    std::fs::remove_file(folder.path().join("apart/parties/party1/model.safetensors")).expect("a model");
    let output = fet(folder.path(), &["plot", "apart", "averaged", "--out", "pictures"]);
    assert!(output.status.success(), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("warning: apart: party 1 left no") && message.lines().count() == 1, "{message}");
    assert_eq!(picture("encodings.svg").matches("<title>apart, party").count(), 1, "party 2 is drawn");
    let mask = picture("mask.svg");
    assert!(mask.contains("party 2") && mask.matches("<circle").count() == 4 * 4, "{mask}");
    // Different metrics cannot share an axis.
    let rows: String = (0..40).map(|n| format!("{n},{},{},{}\n", n % 7, n % 5, n % 3)).collect();
    std::fs::write(folder.path().join("rows.csv"), format!("a,b,c,label\n{rows}")).expect("writable");
    let source = r#"data.source={ kind = "csv", file = "rows.csv", label = "label" }"#;
    let sets = ["--set", source, "--set", "data.rows=40", "--set", "data.key_dims=1"];
    let output = fet(folder.path(), &[&["run", "tiny.toml", "--out", "other"], sets.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let output = fet(folder.path(), &["plot", "apart", "other", "--out", "pictures"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("plot them separately"), "{output:?}");
    let output = fet(folder.path(), &["plot", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("nowhere") && message.contains("report.json"), "{message}");
}

/// The repository's experiments are valid, and `base.toml` shows every default.
#[test]
fn accepts_the_experiments_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let folders = [root.clone(), root.join("benchmark")];
    let entries =
        folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the folder of experiments"));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut seen = 0;
    for path in paths.filter(|path| path.is_file()) {
        let output = fet(&root, &["show", &path.display().to_string()]);
        assert!(output.status.success(), "{}: {output:?}", path.display());
        if path.ends_with("base.toml") {
            let written: toml::Table =
                toml::from_str(&std::fs::read_to_string(&path).expect("readable")).expect("TOML");
            let shown: toml::Table = toml::from_str(&out(&output)).expect("TOML");
            assert_eq!(written, shown, "base.toml shows every default");
        }
        seen += 1;
    }
    assert!(seen >= 15, "quickstart, base, hdb, house, mnist and ten problems at least");
}
