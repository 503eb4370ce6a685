//! Tests bad input: one clear message with file, field, rule and value; exit code 2; no written files.

use std::path::Path;

use crate::command::{TINY, fet};

use crate::support::message_lines;

const LINKED: &str = r#"
name = "linked"
[data]
kind = "linked"
label = "y"
primary = { file = "p.csv", keys = ["a", "b"] }
secondaries = [{ file = "s.csv", keys = ["a", "b"] }]
[linker]
kind = "nearest"
neighbours = 3
[method]
kind = "fet"
hidden = 8
heads = 2
[train]
epochs = 1
"#;

/// Runs a bad experiment and checks the message to the user.
pub(crate) fn refuse(folder: &Path, file: &str, arguments: &[&str], parts: &[&str]) {
    let output = fet(folder, &[&["run", file, "--out", "result"], arguments].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: \"{part}\" in: {message}");
    }
    assert_eq!(message_lines(&message), 1, "one message: {message}");
    assert!(output.stdout.is_empty());
    assert!(!folder.join("result").exists(), "nothing is written");
}

#[test]
fn settings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let check = |set: &str, parts: &[&str]| {
        let parts = [&["tiny.toml"], parts].concat();
        refuse(folder.path(), "tiny.toml", &["--set", set], &parts);
    };
    check("encoder.kind=transfomer", &["encoder", "kind", "\"transfomer\"", "did you mean \"transformer\""]);
    check("method.kind=42", &["`method.kind` must be a text in quotes; it is 42"]);
    check("method.hiden=8", &["`method.hiden` is not a setting of \"fet\"; did you mean \"hidden\"?"]);
    check("method.hidden=wide", &["`method.hidden` must be a whole number", "at least 1", "it is \"wide\""]);
    check("train.epoch=1", &["`train.epoch` is not a setting; did you mean \"epochs\"?"]);
    check("traim.epochs=1", &["`traim` is not a setting; did you mean \"train\"?"]);
    check("train.epochs=0", &["train.epochs", "must be at least 1", "0"]);
    check("train.epochs=-1", &["train.epochs", "-1"]);
    check("train.batch_size=1.5", &["train.batch_size", "1.5"]);
    check("train.factor=0", &["train.factor", "must be above 0", "it is 0"]);
    check("linker.neighbours=0", &["linker", "neighbours", "must be at least 1", "it is 0"]);
    check("method.heads=3", &["method", "hidden", "multiple of `heads` (3)", "it is 16"]);
    check("method.heads=0", &["method", "heads", "must be at least 1"]);
    check("method.party_dropout=1", &["method", "party_dropout", "below 1", "it is 1"]);
    check("method.dropout=-0.1", &["method", "dropout", "at least 0", "-0.1"]);
    check("method.frequency_std=0", &["method", "frequency_std", "must be above 0"]);
    check("method.kind=fedsm", &["method", "kind", "did you mean \"fedsim\""]);
    check("aggregator.kind=averge", &["aggregator", "did you mean \"average\""]);
    check(
        "method.optimizer.learning_rate=-1",
        &["`method.optimizer.learning_rate` must be above 0", "it is -1"],
    );
}

#[test]
fn refuses_settings_that_contradict_the_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        refuse(folder.path(), "tiny.toml", &sets, parts);
    };
    check(&["linker.neighbours=201"], &["party 1", "linker.neighbours", "200 records", "201", "linker.pad"]);
    check(&["data.rows=9"], &["at least 10 rows", "9"]);
    check(&["data.parties=65"], &["data", "parties", "65"]);
}

#[test]
fn refuses_incompatible_plug_ins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        refuse(folder.path(), "tiny.toml", &sets, parts);
    };
    let similar = ["linker.kind", "must give similarities", "\"random\""];
    let unlike = "linker.kind=random";
    check(&["method.kind=fedsim", unlike], &[similar.as_slice(), &["method \"fedsim\""]].concat());
    let weighted = "aggregator.kind=similarity-weighted";
    check(&[weighted, unlike], &[similar.as_slice(), &["aggregator \"similarity-weighted\""]].concat());
    check(
        &["method.kind=fedsim", "aggregator.kind=sum"],
        &["aggregator.kind", "\"concat\"", "it is \"sum\""],
    );
    check(
        &["method.kind=fet-pool", weighted],
        &["aggregator.kind", "needs no similarities", "it is \"similarity-weighted\""],
    );
    check(&["method.kind=fedsim", "method.soft_party=4"], &["method.soft_party", "2 secondary", "it is 4"]);
    check(&["method.kind=gbdt-top1", "aggregator.kind=sum"], &["aggregator.kind", "pools", "it is \"sum\""]);
    check(
        &["method.kind=with-trees", "method.inner.kind=gbdt-solo"],
        &["`method.inner.kind`", "must be one of", "\"gbdt-solo\""],
    );
    check(
        &["method.kind=with-trees", "method.inner.kind=with-trees"],
        &["`method.inner.kind`", "must be one of", "\"with-trees\""],
    );
    check(
        &["method.kind=with-trees", "method.growth.trees=20000", "method.growth.leaves=1000"],
        &["`method.growth.trees`", "8000000 nodes", "it is 20000"],
    );
    check(
        &["method.kind=with-linear", "method.inner.kind=with-trees"],
        &["`method.inner.kind`", "must be one of", "\"with-trees\""],
    );
    for share in ["1.5", "-0.1", "best", "[0.5]"] {
        let share = format!("method.share={share}");
        check(&["method.kind=with-linear", &share], &["`method.share`", "\"fitted\"", "at most 1"]);
    }
    check(
        &["linker.kind=noisy", "linker.inner.kind=posterior", "linker.inner.inner.kind=random"],
        &["`linker.inner.inner.kind`", "must give similarities", "\"random\""],
    );
    check(
        &["linker.kind=posterior", "linker.inner.kind=posterior"],
        &["`linker.inner.kind`", "must be one of", "\"posterior\""],
    );
    let frozen = ["privacy.kind=gaussian", "privacy.learning=frozen"];
    check(
        &[["method.kind=fet-pool", "method.party_dropout=0.5"], frozen].concat(),
        &["`method.party_dropout` must be 0", "frozen", "it is 0.5"],
    );
    check(
        &[["method.kind=with-trees", "method.inner.party_dropout=0.5"], frozen].concat(),
        &["`method.inner.party_dropout` must be 0", "frozen", "it is 0.5"],
    );
    let keyless = ["method.kind=top1sim", "encoder.kind=transformer"];
    check(&keyless, &["encoder.kind", "without keys", "\"transformer\""]);
    check(
        &["encoder.kind=mlp", "method.positional_encoding=false", "method.pe_average_every=2"],
        &["pe_average_every", "must be 0"],
    );
}

#[test]
fn warns_of_a_class_without_training_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let few = TINY.replace("rows = 200", "rows = 20");
    assert_ne!(few, TINY);
    std::fs::write(folder.path().join("tiny.toml"), few).expect("writable");
    let sets = ["--set", "linker.neighbours=3", "--set", "train.epochs=1"];
    let output = fet(folder.path(), &[["run", "tiny.toml", "--out", "result"].as_slice(), &sets].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.contains("warning: no training row has class"), "{message}");
    let report = std::fs::read_to_string(folder.path().join("result/report.json")).expect("a report");
    assert!(report.contains("no training row has class"), "{report}");
    // With protected labels, the warning depends on the protected answers.
    let told =
        |message: &str| message.lines().find(|line| line.contains("no training row")).map(str::to_string);
    let protected = ["--set", "labels.kind=randomised-response", "--set", "labels.epsilon=0.001"];
    let arguments = [["run", "tiny.toml", "--out", "protected"].as_slice(), &sets, &protected].concat();
    let output = fet(folder.path(), &arguments);
    let answers = told(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && answers.is_some() && answers != told(&message), "{output:?}");
}

#[test]
fn devices_and_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    refuse(
        folder.path(),
        "tiny.toml",
        &["--device", "flexx"],
        &["`device`", "\"flexx\"", "did you mean \"flex\""],
    );
    if !fet_backends::is_compiled("libtorch") {
        let parts = ["`device`", "libtorch", "not compiled in", "--features libtorch"];
        refuse(folder.path(), "tiny.toml", &["--device", "libtorch"], &parts);
    }
    refuse(folder.path(), "nothing.toml", &[], &["nothing.toml", "No such file"]);
    std::fs::write(folder.path().join("broken.toml"), "name = ").expect("writable");
    let output = fet(folder.path(), &["run", "broken.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("broken.toml") && message.contains("line 1"), "{message}");
}

#[test]
fn tables() {
    let good =
        "a,b,x,y\n".to_string() + &(0..20).map(|i| format!("{i},{},0.5,{i}\n", 2 * i)).collect::<String>();
    let secondary = "a,b,z\n0,0,1\n3,6,2\n9,9,3\n";
    let check = |primary: &str, secondary: &str, sets: &[&str], parts: &[&str]| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("linked.toml"), LINKED).expect("writable");
        std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
        std::fs::write(folder.path().join("s.csv"), secondary).expect("writable");
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        if parts.is_empty() {
            let output =
                fet(folder.path(), &[&["run", "linked.toml", "--out", "result"], sets.as_slice()].concat());
            assert!(output.status.success(), "{output:?}");
        } else {
            refuse(folder.path(), "linked.toml", &sets, parts);
        }
    };
    check(&good, secondary, &[], &[]);
    check(&good, secondary, &["data.label=price"], &["p.csv", "price"]);
    check(&good, secondary, &["data.primary.file=q.csv"], &["q.csv", "folder of the experiment", "FET_DATA"]);
    check(&good, secondary, &["linker.neighbours=4"], &["3 records", "4"]);
    check(&(good.clone() + "1,2,3\n"), secondary, &[], &["p.csv", "line 22"]);
    check(&(good.clone() + "1,2,three,4\n"), secondary, &[], &["p.csv", "line 22", "x", "three"]);
    check(&(good.clone() + "1,2,NaN,4\n"), secondary, &[], &[]);
    check(&(good.clone() + "NaN,2,1,4\n"), secondary, &[], &["p.csv", "row 20 (from 0)", "`a`", "missing"]);
    check(&(good.clone() + "1,2,1,\n"), secondary, &[], &["p.csv", "row 20 (from 0)", "`y`", "label"]);
    check(&(good.clone() + "1,2,inf,4\n"), secondary, &[], &["p.csv", "line 22", "x", "inf"]);
    check("a,b,x,y\n", secondary, &[], &["p.csv", "is empty"]);
    check("a,b,x,y\n1,2,3,4\n", secondary, &[], &["at least 10 rows"]);
    check(&good, "a,c,z\n0,0,1\n", &[], &["s.csv", "`b`"]);
    check(&good, &format!("{secondary}x,1,1\n"), &[], &["s.csv", "line 5", "`a`", "x"]);
}

/// A table in the experiment's folder takes precedence over a table of the same name in `FET_DATA`, here the
/// parent folder.
#[test]
fn searches_tables_next_to_the_experiment_then_in_the_data_folder() {
    let above = tempfile::tempdir().expect("a temporary folder");
    let beside = above.path().join("study");
    std::fs::create_dir(&beside).expect("writable");
    let write = |folder: &Path, name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("writable");
    };
    write(&beside, "linked.toml", LINKED);
    let rows: String = (0..20).map(|i| format!("{i},{},0.5,{i}\n", 2 * i)).collect();
    write(&beside, "p.csv", &format!("a,b,x,y\n{rows}"));
    write(above.path(), "s.csv", "a,b,z\n0,0,1\n3,6,2\n9,9,3\n");
    write(above.path(), "p.csv", "no table");
    let run = |out: &str| fet(above.path(), &["run", "study/linked.toml", "--out", out]);
    let output = run("one");
    assert!(output.status.success(), "{output:?}");
    // A repeated command checks the same file that the run used.
    write(&beside, "s.csv", "a,b,z\n0,0,5\n3,6,2\n9,9,3\n");
    let output = run("one");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("on other data"), "{output:?}");
}

/// Without CUDA's library, which no code calls by name, LibTorch would find no GPU.
#[test]
fn loads_cuda_with_libtorch() {
    let Some(folder) = std::env::var_os("LIBTORCH").filter(|_| fet_backends::is_compiled("libtorch")) else {
        fet_testing::left_out("libtorch", "LIBTORCH is not set");
        return;
    };
    let there = Path::new(&folder).join("lib/libtorch_cuda.so").exists();
    assert_eq!(fet_backends::has_cuda(), there);
    let error = fet_backends::open("libtorch-cuda:99").expect_err("no machine has 100 GPUs").to_string();
    let expected = if there { "CUDA devices" } else { "cargo xtask libtorch --cuda" };
    assert!(error.contains(expected), "{error}");
}
