//! Sweeps with the real `fet`: a sweep that is killed, has a failing cell, or runs on Slurm must end in the
//! same bytes.
//!
//! The tests need a `fet` in the build folder (or one that FET_BIN names), which the tests of the whole
//! workspace build. The Slurm test also needs a cluster, which `.ci/slurm start` sets up. A test without its
//! requirements is skipped with a message.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fet_testing::left_out;
use serde_json::Value;
use tempfile::TempDir;

/// 4 variants, 2 values, 3 seeds: 24 cells with 3 epochs, each taking some tenths of a second.
const STUDY: &str = r#"
# Question: does a sweep survive?
name = "sweep"
[data]
kind = "split"
rows = 1500
parties = 3
source = { kind = "digits" }
[linker]
kind = "nearest"
neighbours = 4
[method]
kind = "fet"
hidden = 16
heads = 2
[train]
epochs = 3
batch_size = 32
[ablation]
seeds = [0, 1, 2]
[ablation.axes]
"method.party_dropout" = [0.0, 0.5]
[[ablation.variants]]
name = "FeT"
[[ablation.variants]]
name = "no mask"
set = ["encoder.dynamic_mask=false"]
[[ablation.variants]]
name = "no encoding"
set = ["method.positional_encoding=false"]
[[ablation.variants]]
name = "averaged"
set = ["method.pe_average_every=2"]
"#;

const CELLS: usize = 24;

#[test]
fn sweep_killed_three_times_ends_with_the_same_results() {
    let Some(reference) = reference() else { return };
    let sweep = Sweep::new();
    for round in 0..3 {
        let mut child = sweep.start(&["--jobs", "2"]);
        // Kill the sweep at a random moment in its first, second and third part. At most two more cells per
        // job end before the kill.
        let (done, pause) = (2 + 6 * round + random() as usize % 5, Duration::from_millis(random() % 150));
        let start = Instant::now();
        while sweep.done() < done {
            assert!(start.elapsed() < Duration::from_secs(120), "{done} cells were never done");
            sleep(Duration::from_millis(10));
        }
        sleep(pause);
        // In one round kill only the harness, so that its children continue. In the other rounds kill all
        // processes, as a power failure would.
        let target = if round == 1 { child.id().to_string() } else { format!("-{}", child.id()) };
        let killed = Command::new("kill").args(["-KILL", "--", &target]).status().expect("kill");
        child.wait().expect("ended");
        eprintln!("killed {target}: {killed}, {} cells done", sweep.done());
        assert!(sweep.done() < CELLS, "there was something left to kill");
    }
    let done = sweep.done();
    let outcome = sweep.ablate(&["--jobs", "2"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("[24/24]"), "{done} were done: {outcome:?}");
    sweep.is_like(reference);
}

#[test]
fn names_a_failed_cell_and_runs_only_it_again() {
    let Some(reference) = reference() else { return };
    let sweep = Sweep::new();
    reference.copy_to(&sweep);
    // A cell with an invalid checkpoint, as a full disk or a bad copy leaves it.
    let folder = sweep.cells().into_iter().find(|cell| name(cell).starts_with("no-mask")).expect("a cell");
    fs::remove_file(folder.join("report.json")).expect("there");
    fs::write(folder.join("checkpoint.safetensors"), "no checkpoint").expect("written");

    let failed = sweep.ablate(&[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(sweep.read("results.csv").lines().count(), CELLS, "23 results and the header");
    let json: Value = serde_json::from_str(&sweep.read("results.json")).expect("JSON");
    assert_eq!(json["failures"].as_array().map(Vec::len), Some(1), "{json}");
    assert!(
        json["failures"][0]["variant"].as_str().is_some_and(|name| name.starts_with("no mask")),
        "{json}"
    );
    for part in ["23 of 24 cells were done", "1 of 24 cells failed", "FAILED: no mask", "the file is damaged"]
    {
        assert!(failed.stderr.contains(part), "{part:?} is not in {}", failed.stderr);
    }

    fs::remove_file(folder.join("checkpoint.safetensors")).expect("there");
    let again = sweep.ablate(&[]);
    assert_eq!(again.code, 0, "{again:?}");
    let ran = again.stderr.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(ran, 1, "only that one: {again:?}");
    sweep.is_like(reference);
}

#[test]
fn slurm_gives_the_same_results_despite_a_cancelled_job() {
    // Use only the test cluster, so that the test does not delay other users' jobs.
    let is_ours = Command::new("scontrol").args(["show", "config"]).output().is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words =
            text.lines().filter(|line| line.starts_with("ClusterName")).flat_map(|line| line.split('='));
        words.nth(1).is_some_and(|name| name.trim() == "fet")
    });
    if !is_ours {
        left_out("slurm", "there is no Slurm for tests here; `.ci/slurm start` sets one up");
        return;
    }
    let Some(reference) = reference() else { return };
    let sweep = Sweep::new();
    let child = sweep.start(&["--engine", "slurm", "--poll", "0.5"]);
    // The last job is cancelled while the first jobs run, so it cannot have ended by then.
    let start = Instant::now();
    let task = loop {
        assert!(start.elapsed() < Duration::from_secs(120), "no job of ours ever showed");
        let queue = Command::new("squeue")
            .args(["-h", "-r", "-n", "fet-sweep", "-o", "%i"])
            .output()
            .expect("squeue");
        let queue = String::from_utf8_lossy(&queue.stdout).into_owned();
        if sweep.done() >= 2
            && let Some(task) = queue.lines().map(str::trim).find(|task| task.ends_with("_23"))
        {
            break task.to_string();
        }
        sleep(Duration::from_millis(100));
    };
    assert!(Command::new("scancel").arg(&task).status().expect("scancel").success());
    let outcome = CommandOutcome::from_output(child.wait_with_output().expect("ended"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for part in
        ["submitted 24 cells as job", &format!("job {task} was lost"), "submitted 1 cell as job", "[24/24]"]
    {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
    sweep.is_like(reference);
}

/// Returns the sweep that ran without interruption, or `None` without a `fet`.
fn reference() -> Option<&'static Sweep> {
    static REFERENCE: OnceLock<Option<Sweep>> = OnceLock::new();
    let made = REFERENCE.get_or_init(|| {
        fet()?;
        let sweep = Sweep::new();
        let outcome = sweep.ablate(&["--jobs", "2"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(sweep.read("results.csv").lines().count(), CELLS + 1);
        Some(sweep)
    });
    if made.is_none() {
        left_out("fet", "there is no `fet` in the build folder; `cargo xtask test` builds one");
    }
    made.as_ref()
}

fn fet() -> Option<PathBuf> {
    let given = std::env::var_os("FET_BIN").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_BIN_EXE_fet-study-in-tests")).with_file_name("fet");
    given.or(Some(beside)).filter(|path| path.is_file())
}

/// Returns a number that differs from run to run.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

struct Sweep(TempDir);

#[derive(Debug)]
struct CommandOutcome {
    code: i32,
    stderr: String,
}

impl Sweep {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("sweep.toml"), STUDY).expect("written");
        Self(folder)
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fet-study-in-tests"));
        command.current_dir(self.0.path()).arg("sweep.toml").args(arguments);
        command.env("FET_BIN", fet().expect("a fet")).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A separate process group, so that the test can kill all processes of the sweep.
        command.process_group(0).spawn().expect("started")
    }

    fn ablate(&self, arguments: &[&str]) -> CommandOutcome {
        CommandOutcome::from_output(self.start(arguments).wait_with_output().expect("ended"))
    }

    fn study(&self) -> PathBuf {
        self.0.path().join("runs/sweep")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.study().join(name)).expect(name)
    }

    fn cells(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.study().join("cells")).into_iter().flatten();
        entries.map(|entry| entry.expect("a cell").path()).collect()
    }

    fn done(&self) -> usize {
        self.cells().iter().filter(|cell| cell.join("report.json").exists()).count()
    }

    /// Copies the reports of all finished cells.
    fn copy_to(&self, other: &Self) {
        for cell in self.cells() {
            let folder = other.study().join("cells").join(name(&cell));
            fs::create_dir_all(&folder).expect("a folder");
            fs::copy(cell.join("report.json"), folder.join("report.json")).expect("copied");
        }
    }

    /// Checks that the result files have the same bytes, all cells are done, and no cell has a checkpoint
    /// left.
    fn is_like(&self, reference: &Self) {
        for file in ["results.csv", "curves.csv"] {
            assert_eq!(self.read(file), reference.read(file), "{file}");
        }
        assert_eq!(self.done(), CELLS);
        for cell in self.cells() {
            assert!(!cell.join("checkpoint.safetensors").exists(), "{}", cell.display());
        }
    }
}

impl CommandOutcome {
    fn from_output(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stderr }
    }
}
