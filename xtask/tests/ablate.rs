//! `cargo xtask ablate` from the outside, with a stand-in for `fet`: what runs, what is skipped, what is
//! written, and the exit codes. No training happens here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const STUDY: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1]\n\
    [[ablation.variants]]\nname = \"Full\"\n\
    [[ablation.variants]]\nname = \"No mask\"\nset = [\"encoder.mask=false\"]\n";

#[test]
fn a_second_run_does_nothing() {
    let study = Study::new(STUDY);
    let first = study.ablate("", &[]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(study.calls().len(), 4, "{first:?}");
    check(&first.stdout, &["test accuracy, % (mean ± std)", "* 55.00 ± 7.07", "Results:", "results.csv"]);
    check(&first.stderr, &["[4/4]", "Full, seed 0: test accuracy 50.00 % (epoch 2)"]);
    let csv = study.read("runs/tiny/results.csv");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 5, "{csv}");
    assert!(rows[1].starts_with("Full,0,accuracy,2,0.5,0.5,1.5,80,1024,12,cells/full-s0-"), "{csv}");
    assert!(rows[4].starts_with("No mask,1,accuracy,2,0.5,0.6,1.5,80,1024,12,cells/no-mask-s1-"), "{csv}");
    check(&study.read("runs/tiny/table.md"), &["**55.00 ± 7.07**", "| No mask |"]);
    for cell in study.cells() {
        check(&fs::read_to_string(cell.join("cell.log")).expect("a log"), &["a line that is no event"]);
    }

    let second = study.ablate("", &[]);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(study.calls().len(), 4, "{second:?}");
    check(&second.stderr, &["4 of 4 cells were done"]);
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(study.read("runs/tiny/results.csv"), csv);
}

#[test]
fn the_others_go_on_when_one_fails_and_only_it_is_run_again() {
    let study = Study::new(STUDY);
    let first = study.ablate("fail=mask=false --seed 0", &[]);
    assert_eq!(first.code, 1, "{first:?}");
    let parts = ["FAILED: No mask, seed 0", "101", "cell.log", "the log says why", "1 of 4 cells failed"];
    check(&first.stderr, &parts);
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 4, "{first:?}");
    assert_eq!(study.calls().len(), 4);

    let second = study.ablate("", &[]);
    assert_eq!(second.code, 0, "{second:?}");
    check(&second.stderr, &["3 of 4 cells were done"]);
    let calls = study.calls();
    assert_eq!(calls.len(), 5, "{calls:?}");
    check(&calls[4], &["run tiny.toml", "--set encoder.mask=false", "--seed 0", "--log json"]);
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 5);
}

#[test]
fn nothing_starts_when_a_cell_is_bad() {
    let study = Study::new(STUDY);
    let outcome = study.ablate("bad=mask=false", &[]);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    check(&outcome.stderr, &["No mask, seed 0", "encoder.mask: unknown field"]);
    assert!(study.calls().is_empty() && !study.path("runs").exists(), "{outcome:?}");
}

#[test]
fn arguments_steer_the_cells() {
    let calls = |arguments: &[&str], expected: usize, parts: &[&str]| {
        let study = Study::new(STUDY);
        let outcome = study.ablate("", arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let calls = study.calls();
        assert_eq!(calls.len(), expected, "{arguments:?}: {calls:?}");
        let last = calls.last().map(String::as_str).unwrap_or_default();
        check(last, parts);
    };
    // The base's changes come first, for the last one wins.
    calls(&["--set", "train.epochs=2"], 4, &["--set train.epochs=2 --set encoder.mask=false"]);
    calls(&["--device", "ndarray", "--out", "elsewhere"], 4, &["--device ndarray", "--out elsewhere/tiny/"]);
    calls(&["--only", "Full", "--seeds", "7,8,9"], 3, &["--seed 9"]);
    calls(&["--jobs", "3"], 4, &[]);
    calls(&["--dry-run"], 0, &[]);
}

#[test]
fn dry_runs_tell_and_write_nothing() {
    let study = Study::new(STUDY);
    let dry = study.ablate("", &["--dry-run"]);
    check(
        &dry.stdout,
        &["missing  Full, seed 0", "fet run tiny.toml --set encoder.mask=false --seed 1 --out"],
    );
    assert!(!study.path("runs").exists());
    study.ablate("", &["--only", "Full"]);
    check(&study.ablate("", &["--dry-run"]).stdout, &["done     Full, seed 0", "missing  No mask, seed 1"]);
}

#[test]
fn reports_that_do_not_count_are_moved_away() {
    let study = Study::new("name = \"tiny\"\nseed = 3\n");
    assert_eq!(study.ablate("", &[]).code, 0);
    let report = study.cells()[0].join("report.json");
    let good = fs::read_to_string(&report).expect("a report");
    let bad = ["", "{\"half\":", &good.replace("\"seed\":3}", "\"seed\":4}")];
    for (index, text) in bad.iter().enumerate() {
        fs::write(&report, text).expect("written");
        let outcome = study.ablate("", &[]);
        assert_eq!((outcome.code, study.calls().len()), (0, index + 2), "{outcome:?}");
        assert_eq!(fs::read_to_string(&report).expect("a report"), good);
    }
    check(&study.calls()[0], &["--seed 3"]);
}

#[test]
fn bad_files_name_the_file_and_the_rule() {
    let refused = |text: &str, arguments: &[&str], parts: &[&str]| {
        let study = Study::new(text);
        let outcome = study.ablate("", arguments);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        check(&outcome.stderr, parts);
        assert!(study.calls().is_empty());
    };
    refused("name = \"x\"\n[ablation]\nseeds = []\n", &[], &["tiny.toml", "ablation.seeds"]);
    refused(STUDY, &["--only", "Ful"], &["tiny.toml", "--only", "\"Ful\"", "\"No mask\""]);
    refused(STUDY, &["--seeds", "1,1"], &["--seeds", "1 is there twice"]);
    refused(STUDY, &["--jobs", "0"], &["--jobs"]);
    let twins = "name = \"x\"\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = \"A b\"\n\
        [[ablation.variants]]\nname = \"A-B\"\n";
    refused(twins, &[], &["\"A b\"", "\"A-B\"", "same experiment"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_waited_for_and_resumed() {
    let study = Study::new(STUDY);
    let child = study.command("slow=mask=false", &[]).spawn().expect("started");
    let start = Instant::now();
    while study.calls().len() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "the third cell never started");
        sleep(Duration::from_millis(20));
    }
    // To xtask alone: it must pass the signal on to its child.
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let asked = Instant::now();
    let outcome = Outcome::of(child.wait_with_output().expect("ended"));
    // The stand-in would end by itself after 30 seconds.
    assert!(asked.elapsed() < Duration::from_secs(20), "the signal was not passed on: {outcome:?}");
    assert_eq!(outcome.code, 130, "{outcome:?}");
    check(&outcome.stderr, &["interrupted: 2 of 4 cells are done; the same command resumes"]);
    assert_eq!(study.calls().len(), 3, "no further cell starts");
    assert!(!study.path("runs/tiny/results.csv").exists());

    let resumed = study.ablate("", &[]);
    assert_eq!((resumed.code, study.calls().len()), (0, 5), "{resumed:?}");
    check(&resumed.stderr, &["2 of 4 cells were done"]);
}

/// A folder with `tiny.toml` in it, in which xtask is called.
struct Study(TempDir);

#[derive(Debug)]
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Study {
    fn new(text: &str) -> Self {
        let study = Self(tempfile::tempdir().expect("a folder"));
        fs::write(study.path("tiny.toml"), text).expect("written");
        study
    }

    fn ablate(&self, fake: &str, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(fake, arguments).output().expect("ran"))
    }

    fn command(&self, fake: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.current_dir(self.0.path()).args(["ablate", "tiny.toml"]).args(arguments);
        command.env("FET_BIN", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-fet.sh"));
        command.env("FAKE_FET", fake).env("FAKE_FET_CALLS", self.path("calls"));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// The command lines of every run so far.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    fn cells(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("runs/tiny/cells")).expect("cells");
        entries.map(|entry| entry.expect("a cell").path()).collect()
    }
}

impl Outcome {
    fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}
