//! Tests the provenance of runs, and that it determines their results.
//!
//! Killed runs end like uninterrupted ones. Data and the version of the results count. Only one process at a
//! time works on a folder. Every variant of a study has the same rows.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fet::provenance;
use fet_core::data::Task;
use fet_eval::records::{RESULTS_VERSION, RunIdentity, ShowAnswer, Traffic};
use serde_json::Value;

use crate::command::{TINY, fet};
use crate::support::{experiment, flex, losses, report, square, trainer};

/// Sends `kill -9` at a random moment, each time after another epoch: at most that epoch is lost, and the
/// result is the same.
#[test]
fn killed_run_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("tiny.toml"), TINY).expect("writable");
    let sets = ["--set", "train.epochs=5", "--set", "method.party_dropout=0.5", "--set", "data.rows=800"];
    let arguments =
        |out: &'static str| [&["run", "tiny.toml", "--out", out, "--forget"], sets.as_slice()].concat();
    assert!(fet(folder.path(), &arguments("whole")).status.success());
    let mut killed_after = Vec::new();
    for epoch in 1..=3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fet"))
            .current_dir(folder.path())
            .args(arguments("broken"))
            .args(["--log", "json"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // The checkpoint of this epoch exists, and the next epoch is under way.
        let done =
            || std::fs::read(path("broken/checkpoint.safetensors")).map_or(0, |bytes| epochs_of(&bytes));
        let start = Instant::now();
        while done() < epoch {
            assert!(start.elapsed() < Duration::from_secs(60), "epoch {epoch} never ended");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(u64::from(std::process::id()) * 37 % 9_000));
        child.kill().expect("killed");
        child.wait().expect("ended");
        killed_after.push(done());
    }
    assert!(!path("broken/report.json").exists(), "{killed_after:?}: no report before the run is whole");
    let output = fet(folder.path(), &arguments("broken"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let kept = killed_after.last().expect("three");
    assert!(said.contains(&format!("continuing after epoch {kept}")), "only the last epoch was lost: {said}");
    assert_eq!(report(&path("whole")), report(&path("broken")));
    for file in ["model.safetensors", "parties/party1/model.safetensors", "parties/party2/model.safetensors"]
    {
        let model = |name: &str| std::fs::read(path(name).join(file)).expect("a model");
        assert!(model("whole") == model("broken"), "{file}: the models are the same bytes");
    }
    let left = std::fs::read_dir(path("broken/parties/party1")).expect("a folder").count();
    assert_eq!(left, 1, "only the model is left");
}

/// Returns the number of epochs in a checkpoint.
fn epochs_of(bytes: &[u8]) -> usize {
    let Ok((_, metadata)) = safetensors::SafeTensors::read_metadata(bytes) else { return 0 };
    let header = metadata.metadata().as_ref().and_then(|map| map.get("fet")).cloned().unwrap_or_default();
    let header: Value = serde_json::from_str(&header).unwrap_or_default();
    header["header"]["progress"]["epochs"].as_array().map_or(0, Vec::len)
}

#[test]
fn only_one_process_works_on_a_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    std::fs::create_dir(folder.path().join("out")).expect("writable");
    let lock = std::fs::File::create(folder.path().join("out/lock")).expect("writable");
    lock.try_lock().expect("free");
    let output = fet(folder.path(), &["run", "tiny.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("another process works on the run"),
        "{output:?}"
    );
    drop(lock);
    assert!(fet(folder.path(), &["run", "tiny.toml", "--out", "out"]).status.success());
    assert!(!folder.path().join("out/lock").exists(), "a finished run needs no lock");
}

#[test]
fn distinguishes_results_of_other_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = |shift: usize| {
        let row = |i: usize| format!("{},{},{}\n", i % 17, (i * 7 + shift) % 13, i % 2);
        format!("a,b,y\n{}", (0..60).map(row).collect::<String>())
    };
    let text = "name = 'own'\n[data]\nkind = 'split'\nparties = 2\nkey_dims = 1\nsource = { kind = 'csv', file = 'own.csv', label = 'y', \
                task = 'binary' }\n[train]\nepochs = 1\n[method]\nkind = 'solo'\n";
    std::fs::write(folder.path().join("own.toml"), text).expect("writable");
    std::fs::write(folder.path().join("own.csv"), rows(0)).expect("writable");
    let run = || fet(folder.path(), &["run", "own.toml", "--out", "out"]);
    let first = run();
    assert!(first.status.success(), "{first:?}");
    assert!(run().status.success(), "the same run is done");
    std::fs::write(folder.path().join("own.csv"), rows(1)).expect("writable");
    let other = run();
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(String::from_utf8_lossy(&other.stderr).contains("on other data"), "{other:?}");
}

#[test]
fn shows_many_cells_in_one_batch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fet"))
        .current_dir(folder.path())
        .args(["show", "tiny.toml", "--set", "train.epochs=9", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let questions = "{\"set\":[\"method.hidden=8\"],\"seed\":4}\n{\"set\":[\"method.hiden=8\"],\"seed\":null}\n\
         {\"set\":[],\"seed\":null}\nnonsense\n";
    child.stdin.take().expect("piped").write_all(questions.as_bytes()).expect("listens");
    let output = child.wait_with_output().expect("ended");
    let answers: Vec<ShowAnswer> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(output.status.code(), Some(0), "{answers:?}");
    let [
        ShowAnswer::Identity(first),
        ShowAnswer::Refused(misspelt),
        ShowAnswer::Identity(plain),
        ShowAnswer::Refused(nonsense),
    ] = answers.as_slice()
    else {
        panic!("{answers:?}")
    };
    let RunIdentity { program: None, experiment, data, results } = first else { panic!("{first:?}") };
    assert_eq!(
        (&experiment["method"]["hidden"], &experiment["seed"], &experiment["train"]["epochs"]),
        (&8.into(), &4.into(), &9.into())
    );
    assert_eq!((*results, data), (RESULTS_VERSION, &plain.data), "the same data");
    assert!(misspelt.contains("hiden") && nonsense.contains("standard input"), "{answers:?}");
}

/// Makes sure that the test of a study is paired: with the same seed, every variant uses the same training,
/// validation and test rows, in the same batches.
#[test]
fn variants_of_a_study_share_rows_and_batches() {
    let made = |sets: &[&str]| {
        let experiment = experiment(sets);
        trainer(&experiment, square(100, Task::Regression), &flex()).expect("a trainer")
    };
    let base = provenance::split(made(&[]).split());
    for sets in [
        &["encoder.dynamic_mask=false"][..],
        &["method.kind=solo"],
        &["linker.neighbours=9"],
        &["train.epochs=3"],
    ] {
        assert_eq!(provenance::split(made(sets).split()), base, "{sets:?}");
    }
    assert_ne!(provenance::split(made(&["seed=1"]).split()), base, "another seed, other rows");
    // A setting that does not affect training does not change any step's loss, so the batches are the same.
    let batches = |sets: &[&str]| losses(&mut made(sets));
    assert_eq!(batches(&[]), batches(&["train.evaluation_batch_size=7"]));
}

#[test]
fn bytes_of_parties_and_epochs_add_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    assert!(fet(folder.path(), &["run", "tiny.toml", "--out", "out"]).status.success());
    let report = report(&folder.path().join("out"));
    let add =
        |sum: Traffic, sent, received| Traffic { sent: sum.sent + sent, received: sum.received + received };
    assert_eq!(report.traffic_by_party.len(), 2);
    let parties = report.traffic_by_party.iter();
    assert_eq!(
        parties.fold(Traffic::default(), |sum, party| add(sum, party.sent, party.received)),
        report.traffic
    );
    // The primary sends keys before the first epoch, for linking: 200 rows of 4 numbers of 8 bytes, to 2
    // parties.
    let keys = Traffic { sent: 200 * 4 * 8 * 2, received: 0 };
    let epochs = report.epochs.iter().map(|epoch| epoch.traffic);
    assert_eq!(epochs.fold(keys, |sum, epoch| add(sum, epoch.sent, epoch.received)), report.traffic);
}

/// Results of version 13, each the training loss of the second epoch.
///
/// If results change, increase `RESULTS_VERSION` and put the new figures here. Rounding on other processors
/// stays far below the tolerance; a change of method does not.
#[test]
fn changed_results_need_another_version() {
    const TOLERANCE: f64 = 1e-3;
    const FIGURES: (u32, [(&str, f64); 4]) =
        (13, [("fet", 2.3161), ("solo", 1.9481), ("top1sim", 2.2940), ("fedsim", 1.2818)]);
    let loss = |method: &str| {
        // After ten small steps FedSim is at ln 10 = 2.3026, the loss of a model that learns nothing, so it
        // gets more and larger steps.
        let sets: &[&str] = match method {
            "fedsim" => &["data.rows=600", "train.batch_size=16", "method.optimizer.learning_rate=0.01"],
            _ => &["data.rows=300"],
        };
        let kind = format!("method.kind={method}");
        let sets = [&[kind.as_str(), "data.parties=3", "train.epochs=2"], sets].concat();
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
        let mut arguments = vec!["run", "tiny.toml", "--out", "out"];
        sets.iter().for_each(|set| arguments.extend(["--set", *set]));
        let output = fet(folder.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        report(&folder.path().join("out")).epochs[1].train_loss
    };
    let found: Vec<(&str, f64)> = FIGURES.1.iter().map(|(method, _)| (*method, loss(method))).collect();
    let is_same =
        found.iter().zip(FIGURES.1).all(|(found, known)| (found.1 - known.1).abs() < TOLERANCE * known.1);
    assert!(
        is_same && FIGURES.0 == RESULTS_VERSION,
        "the results changed, or their version did: increase fet_eval::records::RESULTS_VERSION, say so under \"Changed \
         results\" in CHANGELOG.md, and put these here: {RESULTS_VERSION}, {found:?}"
    );
}
