//! Tests continued training: a finished run with more epochs, and a run that starts from the models of
//! another run.

use std::path::Path;
use std::process::Output;

use crate::command::{TINY, fet, refused};
use crate::own_data::{finished, tables};
use crate::support::report;

fn run(folder: &Path, out: &str, sets: &[&str], more: &[&str]) -> Output {
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    fet(folder, &[&["run", "shops.toml", "--out", out], sets.as_slice(), more].concat())
}

fn done(folder: &Path, out: &str, sets: &[&str], more: &[&str]) {
    let output = run(folder, out, sets, more);
    assert!(output.status.success(), "{sets:?} {more:?}: {output:?}");
}

fn bytes(folder: &Path, file: &str) -> Vec<u8> {
    std::fs::read(folder.join(file)).expect("a file")
}

/// Two epochs followed by two more equal four epochs, to the last bit, for any plateaus and dropped parties
/// on the way.
#[test]
fn continues_a_finished_run_with_more_epochs() {
    for sets in [
        &["train.patience=1", "method.dropout=0.2", "method.party_dropout=0.5"][..],
        &["train.batches=poisson", "method.pe_average_every=2", "train.wire=bytes"],
        &["method.kind=fedsim", "linker.neighbours=2"],
        &["method.kind=solo"],
        &["method.kind=with-trees", "method.share=fitted", "method.growth.trees=20"],
        &["method.kind=with-linear", "method.share=fitted"],
        &["train.early_stopping=1", "method.optimizer.learning_rate=0.2"],
    ] {
        let (folder, before) = finished(&[sets, &["train.epochs=2"]].concat());
        let folder = folder.path();
        let longer = [sets, &["train.epochs=4"]].concat();
        done(folder, "result", &longer, &[]);
        done(folder, "whole", &longer, &[]);
        let (raised, whole) = (report(&folder.join("result")), report(&folder.join("whole")));
        assert_eq!(raised, whole, "{sets:?}");
        assert!(before.epochs == whole.epochs[..before.epochs.len()], "{sets:?}");
        for file in ["predictions.csv", "model.safetensors", "model-card.md", "report.html"] {
            let place = |run: &str| format!("{run}/{file}");
            assert!(bytes(folder, &place("result")) == bytes(folder, &place("whole")), "{sets:?}: {file}");
        }
        done(folder, "result", &longer, &[]);
        refused(&run(folder, "result", &[sets, &["train.epochs=3"]].concat(), &[]), &["other settings"]);
    }
}

/// The program refuses more epochs if they would change the first epochs, or if the run kept no state.
/// The files remain unchanged.
#[test]
fn explains_why_a_run_cannot_continue() {
    let longer = |sets: &[&str], more: &[&str], part: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        tables(folder.path(), 300);
        done(folder.path(), "result", &[sets, &["train.epochs=1"]].concat(), more);
        let before = bytes(folder.path(), "result/report.json");
        refused(&run(folder.path(), "result", &[sets, &["train.epochs=2"]].concat(), &[]), &[part]);
        assert_eq!(bytes(folder.path(), "result/report.json"), before);
    };
    longer(&[], &["--forget"], "without a state to continue from");
    longer(&["train.decay=cosine"], &[], "other settings");
    longer(&["labels.kind=randomised-response", "labels.epsilon=3"], &[], "other settings");
}

/// With steps that change nothing, a run that starts from another run's models makes the same predictions, to
/// the last bit. This also holds if its own rows would have another scaling.
#[test]
fn starts_from_the_models_of_another_run() {
    let (folder, before) = finished(&[]);
    let folder = folder.path();
    let still = ["method.optimizer.learning_rate=1e-30", "train.epochs=1"];
    done(folder, "next", &still, &["--from", "result"]);
    let next = report(&folder.join("next"));
    assert_eq!(next.best.test, before.best.test);
    assert_eq!(bytes(folder, "next/predictions.csv"), bytes(folder, "result/predictions.csv"));
    done(folder, "fresh", &still, &[]);
    assert_ne!(
        report(&folder.join("fresh")).best.test,
        before.best.test,
        "without --from the run starts from new models"
    );

    std::fs::copy(folder.join("shops.csv"), folder.join("new.csv")).expect("a copy");
    let text = String::from_utf8(bytes(folder, "shops.csv")).expect("text");
    let less: Vec<&str> =
        text.lines().enumerate().filter(|(row, _)| row % 3 != 1).map(|(_, line)| line).collect();
    std::fs::write(folder.join("shops.csv"), less.join("\n")).expect("writable");
    done(folder, "other", &still, &["--from", "result"]);
    let probabilities = |run: &str| {
        let output = fet(folder, &["predict", run, "--rows", "new.csv"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let column = |line: &str| line.split(',').nth(3).expect("a probability").to_string();
        text.lines().map(column).collect::<Vec<_>>()
    };
    assert_eq!(probabilities("other"), probabilities("result"));

    // The run learns, and its starting models are part of its provenance.
    done(folder, "learned", &["method.optimizer.learning_rate=0.01"], &["--from", "result"]);
    assert_ne!(probabilities("learned"), probabilities("result"));
    let begun = report(&folder.join("learned")).data.files;
    std::fs::rename(folder.join("fresh"), folder.join("moved")).expect("moved");
    std::fs::rename(folder.join("result"), folder.join("fresh")).expect("moved");
    std::fs::rename(folder.join("moved"), folder.join("result")).expect("moved");
    let again = run(folder, "learned", &["method.optimizer.learning_rate=0.01"], &["--from", "result"]);
    refused(&again, &["on other data"]);
    assert_eq!(report(&folder.join("learned")).data.files, begun);
}

#[test]
fn refuses_models_that_do_not_fit() {
    let (folder, _) = finished(&["train.epochs=1"]);
    let folder = folder.path();
    let from = |sets: &[&str], parts: &[&str]| {
        refused(&run(folder, "next", sets, &["--from", "result"]), parts);
        assert!(!folder.join("next").exists(), "nothing is written");
    };
    from(
        &["data.task=multiclass", "data.label=kind", "data.primary.drop=[\"part\", \"busy\"]"],
        &["`from`", "predicts 3 classes", "two classes"],
    );
    from(&["method.hidden=32"], &["`from`", "[64], not [32]"]);
    from(&["method.kind=solo"], &["`from`", "lacks the parameter"]);
    from(&["method.kind=gbdt-solo"], &["`from`", "gbdt-solo"]);
    from(&["privacy.kind=gaussian", "privacy.noise=1.0"], &["`from`", "ε"]);
    from(&["labels.kind=randomised-response", "labels.epsilon=3"], &["`from`", "ε"]);
    from(&["attack.kind=gradient-norm"], &["`from`", "attack"]);
    from(&["data.primary.drop=[\"part\", \"size\"]"], &["size"]);
    let toml = String::from_utf8(bytes(folder, "shops.toml")).expect("text");
    let renamed = toml.replace("name = \"streets\"", "name = \"roads\"");
    std::fs::write(folder.join("shops.toml"), renamed).expect("writable");
    from(&[], &["\"roads\"", "the party \"streets\", number 1"]);
    std::fs::write(folder.join("shops.toml"), toml).expect("writable");
    refused(&run(folder, "next", &[], &["--from", "nowhere"]), &["--from nowhere"]);
    refused(&run(folder, "next", &["from=nowhere"], &[]), &["missing: nowhere/model.safetensors"]);
}

/// A study reports missing files and their sources before it trains anything.
#[test]
fn study_reports_missing_files_before_training() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 30);
    let toml = std::fs::read_to_string(folder.path().join("shops.toml")).expect("readable");
    std::fs::write(folder.path().join("shops.toml"), format!("origin = \"ask the bus company\"\n{toml}"))
        .expect("writable");
    let answer = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fet"))
            .current_dir(folder.path())
            .args(["show", "shops.toml", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        child.stdin.take().expect("piped").write_all(b"{\"set\": [], \"seed\": 1}\n").expect("it listens");
        String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text")
    };
    assert!(answer().contains("\"results\""), "{}", answer());
    std::fs::remove_file(folder.path().join("buses.csv")).expect("there");
    let text = answer();
    assert!(text.contains("missing: buses.csv") && text.contains("ask the bus company"), "{text}");
}

/// An interrupted run says if the same command continues it or starts it again.
#[cfg(unix)]
#[test]
fn an_interrupted_run_says_where_it_goes_on() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().expect("a temporary folder");
    let toml = TINY.replace("rows = 200", "rows = 1797").replace("hidden = 16\nheads = 2", "");
    std::fs::write(folder.path().join("tiny.toml"), toml).expect("writable");
    // Trees are not saved before the end, and a network after each epoch.
    let cases = [
        ("method={kind='fet-trees', growth={trees=2000}}", "training,", "starts the run in"),
        ("method={kind='fet', hidden=16, heads=2}", "epoch", "the finished epochs are saved"),
    ];
    for (method, line, told) in cases {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fet"))
            .current_dir(folder.path())
            .args(["run", "tiny.toml", "--set", method, "--set", "train.epochs=5000", "--out", &line[..5]])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let seen = lines.any(|text| text.contains(line));
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        let rest = lines.collect::<Vec<_>>().join("\n");
        let code = child.wait().expect("it ends").code();
        assert!(seen && killed.success(), "{method}: {rest}");
        assert_eq!(code, Some(130), "{method}: {rest}");
        assert!(rest.contains(told), "{method}: {rest}");
    }
}
