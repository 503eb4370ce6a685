//! What engines do beside running cells: waiting for others, passing interrupts on, and Slurm, with stand-ins for `fet`
//! and for Slurm's commands. No training happens here.

mod study;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use study::{Outcome, STUDY, Study, check};

#[test]
fn a_cell_that_another_process_is_at_is_waited_for() {
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
    let outcome = Outcome::of(child.wait_with_output().expect("ended"));
    assert_eq!((outcome.code, study.calls().len()), (0, 4), "{outcome:?}");
    check(&outcome.stderr, &["Full, seed 0: another process is at it"]);
}

#[cfg(unix)]
#[test]
fn slurm_jobs_are_submitted_collected_and_resubmitted() {
    let study = Study::new(STUDY);
    let bin = study.path("bin");
    fs::create_dir_all(&bin).expect("a folder");
    for name in ["sbatch", "squeue"] {
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-slurm.sh");
        std::os::unix::fs::symlink(stand_in, bin.join(name)).expect("a link");
    }
    let slurm = |fake: &str, lose: &str, arguments: &[&str]| {
        let arguments = [&["--engine", "slurm", "--poll", "0.1"], arguments].concat();
        let mut command = study.command(fake, &arguments);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env("FAKE_SLURM", &bin).env("FAKE_LOSE", lose).env("USER", "");
        Outcome::of(command.output().expect("ran"))
    };
    // The failing cell is not submitted again by itself; the one that vanishes is.
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

    // What an earlier command submitted and still waits in the queue is waited for, not doubled.
    let cell = study.cells().into_iter().find(|cell| cell.to_string_lossy().contains("no-mask-s0"));
    let cell = cell.expect("the cell that failed");
    let name = cell.file_name().expect("a name").to_string_lossy().into_owned();
    // Submitting forgets how the cell ended before.
    fs::remove_file(cell.join("exit")).expect("there");
    let ledger = format!(r#"{{"tasks":{{"{name}":"7_0"}}}}"#);
    fs::write(study.path("runs/tiny/slurm/jobs.json"), ledger).expect("written");
    fs::write(bin.join("queue"), "7_0\n").expect("written");
    let end = std::thread::scope(|scope| {
        let running = scope.spawn(|| slurm("", "", &[]));
        sleep(Duration::from_secs(1));
        assert_eq!(study.calls().len(), 4, "nothing was submitted while the job waits");
        fs::write(bin.join("queue"), "").expect("written");
        running.join().expect("ended")
    });
    assert_eq!((end.code, study.calls().len()), (0, 5), "{end:?}");
    check(&end.stderr, &["job 7_0 was lost", "[4/4] No mask, seed 0"]);
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 5);
}

#[test]
fn slurm_that_is_not_there_is_said() {
    let study = Study::new(STUDY);
    let mut command = study.command("", &["--engine", "slurm"]);
    let bin = study.path("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let outcome = Outcome::of(command.env("PATH", &bin).output().expect("ran"));
    assert_eq!(outcome.code, 2, "{outcome:?}");
    check(&outcome.stderr, &["--engine slurm", "`sbatch`", "PATH"]);
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
    // To the harness alone: it must pass the signal on to its child.
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
