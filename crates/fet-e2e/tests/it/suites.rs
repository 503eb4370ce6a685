//! Short forms of the suites that run `fet`: no area may have a fault.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fet_testing::left_out;

/// Runs the short form of a suite, and checks that it has at least `least` cases and no faults.
fn short(suite: &str, patience: &str, least: usize) {
    let program = Path::new(env!("CARGO_BIN_EXE_fet-e2e"));
    let fet = std::env::var_os("FET_BIN").map_or_else(|| program.with_file_name("fet"), PathBuf::from);
    if !fet.is_file() {
        left_out("fet", "there is no `fet` in the build folder; `cargo xtask test` builds one");
        return;
    }
    let arguments = ["--short", "--patience", patience];
    let ended = Command::new(program).arg(suite).arg(fet).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let cases = said.lines().last().and_then(|line| line.split_whitespace().next()?.parse().ok());
    assert!(cases.is_some_and(|cases: usize| cases >= least), "{said}");
}

#[test]
fn abuse_short() {
    short("abuse", "10", 150);
}

#[test]
fn soak_short() {
    let nats = std::env::var_os("FET_NATS").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
    let runs = Command::new(&nats).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !runs.is_ok_and(|status| status.success()) {
        left_out("nats", &format!("{} does not run: name a nats-server in FET_NATS", nats.display()));
        return;
    }
    short("soak", "4", 50);
}
