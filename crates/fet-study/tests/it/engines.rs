//! End-to-end tests of the engines with stand-ins for `fet` and for Slurm's commands: waiting for other
//! processes, passing interrupts on, and Slurm. No test trains a model.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::study::{CommandOutcome, STUDY, Study, check};

#[test]
fn waits_for_a_cell_of_another_process() {
    let study = Study::new(STUDY);
    let dry = study.ablate("", &["--dry-run", "--only", "Full", "--seeds", "0"]);
    let folder =
        dry.stdout.split_once("--out ").and_then(|(_, rest)| rest.split(' ').next()).expect("a folder");
    let folder = study.path(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let lock = fs::File::create(folder.join("lock")).expect("a lock");
    lock.try_lock().expect("free");
    let child = study.command("", &[]).spawn().expect("started");
    let start = Instant::now();
    while study.calls().len() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "the other cells never ran");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(500));
    assert_eq!(study.calls().len(), 3, "the cell that is locked has not been run");
    drop(lock);
    let outcome = CommandOutcome::from_output(child.wait_with_output().expect("ended"));
    assert_eq!((outcome.code, study.calls().len()), (0, 4), "{outcome:?}");
    check(&outcome.stderr, &["Full, seed 0: another process runs it"]);
}

/// Slurm's commands, as links to `fake-slurm.sh`, for one study.
#[cfg(unix)]
struct Cluster {
    bin: std::path::PathBuf,
}

#[cfg(unix)]
impl Cluster {
    fn new(study: &Study) -> Self {
        let bin = study.path("bin");
        fs::create_dir_all(&bin).expect("a folder");
        for name in ["sbatch", "squeue", "scontrol"] {
            let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-slurm.sh");
            std::os::unix::fs::symlink(stand_in, bin.join(name)).expect("a link");
        }
        Self { bin }
    }

    /// Runs a study on this cluster, with `environment` for `fake-slurm.sh`.
    fn ablate(
        &self,
        study: &Study,
        fake: &str,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> CommandOutcome {
        let arguments = [&["--engine", "slurm", "--poll", "0.1"], arguments].concat();
        let mut command = study.command(fake, &arguments);
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env("FAKE_SLURM", &self.bin).env("USER", "");
        command.envs(environment.iter().copied());
        CommandOutcome::from_output(command.output().expect("ran"))
    }

    /// Returns the ranges of the arrays that were submitted or refused, as in `0-3`.
    fn arrays(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.bin.join("calls")).unwrap_or_default();
        let array = |line: &str| line.split("--array=").nth(1)?.split(' ').next().map(str::to_string);
        calls.lines().filter_map(array).collect()
    }
}

/// Arrays stay within `MaxArraySize`, within the true limit even if `scontrol` does not report it, and within
/// the user's limit.
#[cfg(unix)]
#[test]
fn submits_arrays_within_the_clusters_limits() {
    let check = |environment: &[(&str, &str)], arguments: &[&str], expected: &[&str]| {
        let study = Study::new(STUDY);
        let cluster = Cluster::new(&study);
        let outcome = cluster.ablate(&study, "", environment, &[&["--seeds", "0,1,2"], arguments].concat());
        assert_eq!((outcome.code, study.calls().len()), (0, 6), "{environment:?}: {outcome:?}");
        assert_eq!(cluster.arrays(), expected, "{environment:?}: {outcome:?}");
    };
    check(&[("FAKE_MAX", "4")], &[], &["0-3", "0-1"]);
    check(&[("FAKE_MAX", "4"), ("FAKE_SITE", "1")], &["--jobs", "2"], &["0-3%2", "0-1%2"]);
    check(
        &[("FAKE_MAX", "2"), ("FAKE_MUTE", "1")],
        &[],
        &["0-5", "0-2", "0-0", "0-0", "0-0", "0-0", "0-0", "0-0"],
    );
    check(&[("FAKE_FULL", "3")], &[], &["0-5", "0-2", "0-2"]);
    check(&[], &[], &["0-5"]);
}

#[cfg(unix)]
#[test]
fn cluster_runs_another_program() {
    let study = Study::new(crate::program::FILE);
    let shim = crate::program::shim();
    let program = ["--program", shim.to_str().expect("a path of text")];
    let outcome = Cluster::new(&study).ablate(&study, "", &[], &program);
    assert_eq!((outcome.code, study.calls().len()), (0, 6), "{outcome:?}");
    check(&outcome.stdout, &["68.33 ± 1.67", "86.67 ± 3.33"]);
}

#[cfg(unix)]
#[test]
fn refuses_a_cluster_without_arrays() {
    let study = Study::new(STUDY);
    let outcome = Cluster::new(&study).ablate(&study, "", &[("FAKE_MAX", "0")], &[]);
    assert_eq!((outcome.code, study.calls().len()), (2, 0), "{outcome:?}");
    check(&outcome.stderr, &["--engine slurm", "MaxArraySize is 0"]);
}

/// Regression test: in each of these cases the engine once treated waiting jobs as lost and resubmitted their
/// cells.
#[cfg(unix)]
#[test]
fn waits_for_jobs_in_the_queue_whatever_the_commands_print() {
    let cases: [&[(&str, &str)]; 3] =
        [&[("FAKE_SITE", "1")], &[("FAKE_BUSY", "2")], &[("FAKE_VANISH", "2 3 4 8 9 10 11 12")]];
    std::thread::scope(|scope| {
        for environment in cases {
            scope.spawn(move || {
                let study = Study::new(STUDY);
                let cluster = Cluster::new(&study);
                let environment = [environment, &[("FAKE_WAIT", "5")]].concat();
                let outcome = cluster.ablate(&study, "", &environment, &[]);
                assert_eq!((outcome.code, study.calls().len()), (0, 4), "{environment:?}: {outcome:?}");
                assert!(!outcome.stderr.contains("lost"), "{environment:?}: {outcome:?}");
                let busy = environment[0].0 == "FAKE_BUSY";
                assert_eq!(cluster.arrays().len(), if busy { 3 } else { 1 }, "{environment:?}: {outcome:?}");
                if busy {
                    check(&outcome.stderr, &["`sbatch`", "`squeue`", "Socket timed out", "trying again"]);
                }
            });
        }
    });
}

#[cfg(unix)]
#[test]
fn quotes_the_output_of_sbatch_without_a_job_id() {
    let study = Study::new(STUDY);
    let cluster = Cluster::new(&study);
    let sbatch = cluster.bin.join("sbatch");
    let says = |script: &str| {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::remove_file(&sbatch);
        fs::write(&sbatch, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).expect("executable");
        let start = Instant::now();
        let outcome = cluster.ablate(&study, "", &[], &[]);
        assert!(start.elapsed() < Duration::from_secs(30), "{outcome:?}");
        assert_eq!((outcome.code, study.calls().len()), (1, 0), "{outcome:?}");
        outcome.stderr
    };
    check(&says("echo queued, thank you"), &["`sbatch` printed no job id", "queued, thank you"]);
    let refused = says("echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1");
    check(&refused, &["`sbatch` ended with", "invalid partition specified: gpu"]);
}

/// The cell needs six jobs, with one finished epoch per job.
#[cfg(unix)]
#[test]
fn jobs_with_progress_finish_a_cell() {
    let study = Study::new(STUDY);
    let cluster = Cluster::new(&study);
    let outcome = cluster.ablate(&study, "limited=mask=false", &[], &["--seeds", "0"]);
    assert_eq!((outcome.code, study.calls().len()), (0, 7), "{outcome:?}");
    check(&outcome.stderr, &["was lost after epoch 1", "was lost after epoch 5", "[2/2] No mask, seed 0"]);
}

/// The cell never finishes an epoch.
#[cfg(unix)]
#[test]
fn jobs_without_progress_fail_a_cell() {
    let study = Study::new(STUDY);
    let cluster = Cluster::new(&study);
    let outcome = cluster.ablate(&study, "stuck=mask=false", &[], &["--seeds", "0"]);
    assert_eq!((outcome.code, study.calls().len()), (1, 5), "{outcome:?}");
    check(
        &outcome.stderr,
        &["FAILED: No mask, seed 0: was lost 4 times in a row without finishing an epoch"],
    );
}

#[cfg(unix)]
#[test]
fn submits_collects_and_resubmits_slurm_jobs() {
    let study = Study::new(STUDY);
    let cluster = Cluster::new(&study);
    let bin = &cluster.bin;
    let slurm = |fake: &str, lose: &str, arguments: &[&str]| {
        cluster.ablate(&study, fake, &[("FAKE_LOSE", lose)], arguments)
    };
    // The engine resubmits the cell whose job vanishes, but not the cell that fails.
    let arguments = ["--jobs", "3", "--sbatch=--partition=long"];
    let first = slurm("fail=mask=false --seed 0", "1", &arguments);
    assert_eq!((first.code, study.calls().len()), (1, 4), "{first:?}");
    let parts = [
        "submitted 4 cells as job 1",
        "Full, seed 1: job 1_1 was lost",
        "submitted 1 cell as job 2, lost before",
    ];
    check(&first.stderr, &parts);
    check(&first.stderr, &["FAILED: No mask, seed 0: panicked (exit code 101)", "the log says why"]);
    let calls = fs::read_to_string(bin.join("calls")).expect("calls");
    check(&calls, &["--array=0-3%3", "--array=0-0%3", "--job-name fet-tiny", "--partition=long"]);

    // The engine waits for a job of an earlier command that is still in the queue, instead of submitting its
    // cell again.
    let cell = study.cells().into_iter().find(|cell| cell.to_string_lossy().contains("no-mask-s0"));
    let cell = cell.expect("the cell that failed");
    let name = cell.file_name().expect("a name").to_string_lossy().into_owned();
    // Submitting a cell removes its previous exit code.
    fs::remove_file(cell.join("exit")).expect("there");
    let ledger = format!(r#"{{"tasks":{{"{name}":"7_0"}}}}"#);
    fs::write(study.path("runs/tiny/slurm/jobs.json"), ledger).expect("written");
    fs::write(bin.join("queue"), "7_0\n").expect("written");
    let end = std::thread::scope(|scope| {
        let running = scope.spawn(|| slurm("", "", &[]));
        sleep(Duration::from_secs(1));
        assert_eq!(study.calls().len(), 4, "the engine submits no cell while the job waits");
        fs::write(bin.join("queue"), "").expect("written");
        running.join().expect("ended")
    });
    assert_eq!((end.code, study.calls().len()), (0, 5), "{end:?}");
    check(&end.stderr, &["job 7_0 was lost", "[4/4] No mask, seed 0"]);
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 5);
}

/// A run may also end with exit code 75 for another reason, which is only in its log.
#[test]
fn cell_with_code_75_fails_without_another_process() {
    let study = Study::new(STUDY);
    let outcome = study.ablate("elsewhere=mask=false", &["--seeds", "0"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    check(&outcome.stderr, &["FAILED: No mask, seed 0: ended with exit code 75", "the disk is full, say"]);
}

#[test]
fn reports_missing_slurm() {
    let study = Study::new(STUDY);
    let mut command = study.command("", &["--engine", "slurm"]);
    let bin = study.path("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let outcome = CommandOutcome::from_output(command.env("PATH", &bin).output().expect("ran"));
    assert_eq!(outcome.code, 2, "{outcome:?}");
    check(&outcome.stderr, &["--engine slurm", "`sbatch`", "PATH"]);
}

#[cfg(unix)]
#[test]
fn waits_for_interrupted_cells_and_resumes() {
    let study = Study::new(STUDY);
    let child = study.command("slow=mask=false", &[]).spawn().expect("started");
    let start = Instant::now();
    while study.calls().len() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "the third cell never started");
        sleep(Duration::from_millis(20));
    }
    // The signal goes to the harness alone, which must pass it on to its child.
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let asked = Instant::now();
    let outcome = CommandOutcome::from_output(child.wait_with_output().expect("ended"));
    // The stand-in would end without a signal after 30 seconds.
    assert!(asked.elapsed() < Duration::from_secs(20), "the signal was not passed on: {outcome:?}");
    assert_eq!(outcome.code, 130, "{outcome:?}");
    check(&outcome.stderr, &["interrupted: 2 of 4 cells are done; the same command resumes"]);
    assert_eq!(study.calls().len(), 3, "no further cell starts");
    assert!(!study.path("runs/tiny/results.csv").exists());

    let resumed = study.ablate("", &[]);
    assert_eq!((resumed.code, study.calls().len()), (0, 5), "{resumed:?}");
    check(&resumed.stderr, &["2 of 4 cells were done"]);
}
