//! Short forms of the suites that run `fet`: no area may have a fault.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use fet_e2e::soak::AREAS;
use fet_testing::left_out;

/// Checks that all cases of a suite's short form pass. Returns their number, or `None` if the build folder lacks `fet`.
fn short(suite: &str, patience: &str, more: &[&str]) -> Option<usize> {
    let program = Path::new(env!("CARGO_BIN_EXE_fet-e2e"));
    let fet = std::env::var_os("FET_BIN").map_or_else(|| program.with_file_name("fet"), PathBuf::from);
    if !fet.is_file() {
        left_out("fet", "there is no `fet` in the build folder; `cargo xtask test` builds one");
        return None;
    }
    let arguments = ["--short", "--patience", patience];
    let ended =
        Command::new(program).arg(suite).arg(fet).args(arguments).args(more).output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let cases = said.lines().last().and_then(|line| line.split_whitespace().next()?.parse().ok());
    Some(cases.unwrap_or_else(|| panic!("{suite} states no number of cases: {said}")))
}

#[test]
fn abuse_short() {
    let cases = short("abuse", "10", &[]);
    assert!(cases.is_none_or(|cases| cases >= 150), "{cases:?}");
}

/// Runs two areas at a time, because a case waits for most of its time.
#[test]
fn soak_short() {
    let nats = std::env::var_os("FET_NATS").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
    let runs = Command::new(&nats).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !runs.is_ok_and(|status| status.success()) {
        left_out("nats", &format!("{} does not run: name a nats-server in FET_NATS", nats.display()));
        return;
    }
    let next = AtomicUsize::new(0);
    let areas = || {
        let next = || AREAS.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(next)
            .map(|area| short("soak", "4", &["--only", &format!("{area}/")]))
            .sum::<Option<usize>>()
    };
    let cases: Option<usize> = std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(areas));
        workers.into_iter().map(|worker| worker.join().expect("all cases of the area pass")).sum()
    });
    assert!(cases.is_none_or(|cases| cases >= 78), "{cases:?}");
}
