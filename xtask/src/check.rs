//! `test` and `check`, and their shared cargo calls, which `bench` also uses: the same commands for people
//! and for CI.
//!
//! Parts that need LibTorch are included if LibTorch is set up, and the commands print if it is. The commands
//! install nothing; `cargo xtask libtorch` does.

use std::env;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::circles;
use crate::libtorch;
use crate::prose;
use crate::workspace::{Workspace, exit_code};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArguments {
    /// Run only the tests that compute on every device: golden figures, equivalence of devices, contracts of plug-ins.
    #[arg(long)]
    devices: bool,
    /// Leave LibTorch out, even if it is set up.
    #[arg(long)]
    without_libtorch: bool,
    /// Arguments for cargo, as in `-- linker` or `-- --test suite -- --nocapture`.
    #[arg(last = true, value_name = "CARGO ARGUMENTS")]
    passed: Vec<String>,
}

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Skip the tests.
    #[arg(long)]
    fast: bool,
    /// Optional parts to check as well, such as `fet/columnar,fet/telemetry`.
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    features: Vec<String>,
}

/// `cargo xtask test`.
pub(crate) fn test(arguments: &TestArguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut cargo = if arguments.without_libtorch {
        eprintln!("devices: flex, ndarray");
        workspace.cargo(TEST)
    } else {
        cargo_with_devices(&workspace, TEST)?
    };
    if arguments.devices {
        only_device_tests(&mut cargo, &arguments.passed);
    } else {
        cargo.args(&arguments.passed);
    }
    Ok(exit_code(cargo.status().context("cannot run cargo")?))
}

/// Returns the cargo command for the tests that compute on every device.
pub(crate) fn device_tests(workspace: &Workspace, passed: &[&str]) -> Result<Command> {
    let mut cargo = cargo_with_devices(workspace, TEST)?;
    only_device_tests(&mut cargo, passed);
    Ok(cargo)
}

/// Adds arguments of cargo, and the names of the tests that compute on every device.
fn only_device_tests(cargo: &mut Command, passed: &[impl AsRef<str>]) {
    cargo.args(["--test", "suite", "--test", "it"]).args(passed.iter().map(AsRef::as_ref));
    if !passed.iter().any(|argument| argument.as_ref() == "--") {
        cargo.arg("--");
    }
    cargo.args(DEVICE_TESTS);
}

/// `cargo xtask check`.
pub(crate) fn check(arguments: &Arguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let has_libtorch = announce(&workspace)?;
    let found = prose::problems(&workspace.root)?;
    if !found.is_empty() {
        eprintln!("check: FAILED: comments, messages and names\n{}", found.join("\n"));
        return Ok(ExitCode::FAILURE);
    }
    let found = circles::problems(&workspace.root)?;
    if !found.is_empty() {
        eprintln!("check: FAILED: imports between files\n{}", found.join("\n"));
        return Ok(ExitCode::FAILURE);
    }
    for step in steps(has_libtorch, arguments) {
        let line = step.join(" ");
        eprintln!("\ncheck: cargo {line}");
        let start = Instant::now();
        let words: Vec<&str> = step.iter().map(String::as_str).collect();
        let mut cargo = libtorch::cargo(&workspace, &words)?;
        if words[0] == "doc" {
            deny_warnings(&mut cargo);
        }
        let status = cargo.status().context("cannot run cargo")?;
        let seconds = start.elapsed().as_secs_f64();
        if !status.success() {
            eprintln!("check: FAILED after {seconds:.1} s: cargo {line}");
            return Ok(exit_code(status));
        }
        eprintln!("check: ok, {seconds:.1} s");
    }
    eprintln!("\ncheck: all steps passed{}", if arguments.fast { "; the tests were skipped" } else { "" });
    Ok(ExitCode::SUCCESS)
}

/// Returns the steps of `check`, the fast steps first. All steps share the release profile, so that little is
/// built twice.
fn steps(has_libtorch: bool, arguments: &Arguments) -> Vec<Vec<String>> {
    let features = has_libtorch.then_some(FEATURE).into_iter();
    let features: Vec<&str> = features.chain(arguments.features.iter().map(String::as_str)).collect();
    let features = features.join(",");
    let feature: &[&str] = if features.is_empty() { &[] } else { &["--features", &features] };
    let mut steps = vec![
        words(&[&["fmt", "--all", "--check"]]),
        words(&[
            &["clippy", "--release", "--workspace", "--all-targets"],
            feature,
            &["--", "-D", "warnings"],
        ]),
        words(&[&["check", "--release", "-p", "fet", "--no-default-features"]]),
        // Linkers and their commands alone: the part of the contracts without tensors.
        words(&[&["check", "--release", "-p", "fet-link"]]),
    ];
    steps.push(words(&[&["doc", "--release", "--no-deps", "--workspace"], feature]));
    if !arguments.fast {
        steps.push(words(&[TEST, feature]));
    }
    steps
}

/// Arguments that run the tests.
const TEST: &[&str] = &["test", "--release", "--workspace", "--no-fail-fast"];

/// Parts of the names of the tests that compute on every device, or load LibTorch.
const DEVICE_TESTS: [&str; 9] = [
    "contract::",
    "equivalence::",
    "evaluated::",
    "every_device",
    "golden::",
    "loads_cuda",
    "primary::",
    "repeat::",
    "transformations::",
];

/// Name of the LibTorch feature in the workspace.
const FEATURE: &str = "fet/libtorch";

fn words(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().iter().map(ToString::to_string).collect()
}

/// Returns a cargo command that includes LibTorch if it is set up, and prints the devices.
pub(crate) fn cargo_with_devices(workspace: &Workspace, arguments: &[&str]) -> Result<Command> {
    let mut cargo = libtorch::cargo(workspace, arguments)?;
    if announce(workspace)? {
        cargo.args(["--features", FEATURE]);
    }
    Ok(cargo)
}

/// Prints the covered devices. Returns true if LibTorch is one of them.
fn announce(workspace: &Workspace) -> Result<bool> {
    match libtorch::folder(&workspace.target)? {
        Some(folder) => {
            eprintln!("devices: flex, ndarray, libtorch (LibTorch in {})", folder.display());
            Ok(true)
        }
        None => {
            eprintln!(
                "devices: flex, ndarray (LibTorch is not set up: its part is skipped; \
                 `cargo xtask libtorch` fetches it)"
            );
            Ok(false)
        }
    }
}

fn deny_warnings(cargo: &mut Command) {
    let mut flags = env::var("RUSTDOCFLAGS").unwrap_or_default();
    flags.push_str(" -D warnings");
    cargo.env("RUSTDOCFLAGS", flags.trim());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn steps_follow_libtorch_and_fast() {
        let check = |has_libtorch, fast, commands: &[&str], with_feature: usize| {
            let steps = steps(has_libtorch, &Arguments { fast, features: Vec::new() });
            let first: Vec<&str> = steps.iter().map(|step| step[0].as_str()).collect();
            assert_eq!(first, commands, "libtorch {has_libtorch}, fast {fast}");
            let feature = steps.iter().filter(|step| step.contains(&"--features".to_string())).count();
            assert_eq!(feature, with_feature, "libtorch {has_libtorch}, fast {fast}");
        };
        check(false, false, &["fmt", "clippy", "check", "check", "doc", "test"], 0);
        check(false, true, &["fmt", "clippy", "check", "check", "doc"], 0);
        check(true, false, &["fmt", "clippy", "check", "check", "doc", "test"], 3);
        check(true, true, &["fmt", "clippy", "check", "check", "doc"], 2);
    }

    /// Returns the path and the text of each source file of the tests that may compute on every device.
    fn test_files() -> Vec<(String, String)> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
        let mut folders = vec![crates.join("fet/tests/suite"), crates.join("fet-e2e/tests/it")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let inside = path.strip_prefix(&crates).expect("below").display().to_string();
                    files.push((inside, fs::read_to_string(&path).expect("readable")));
                }
            }
        }
        files
    }

    #[test]
    fn the_names_of_device_tests_cover_every_test_on_every_device() {
        let files = test_files();
        let in_module = |path: &str, name: &str| {
            let module = name.trim_end_matches("::");
            name.ends_with("::")
                && (path.ends_with(&format!("/{module}.rs")) || path.contains(&format!("/{module}/")))
        };
        let is_function = |line: &str| line.starts_with("fn ") || line.starts_with("pub(crate) fn ");
        for name in DEVICE_TESTS {
            let has = |(path, text): &(String, String)| {
                in_module(path, name) || text.lines().any(|line| is_function(line) && line.contains(name))
            };
            assert!(files.iter().any(has), "no test has {name} in its name");
        }
        let mut covered = 0;
        for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("/support.rs")) {
            let mut function = "";
            for line in text.lines() {
                if is_function(line) {
                    function = line;
                }
                if line.contains(" devices()") && !line.contains("fn devices()") {
                    let covers = |name: &&str| in_module(path, name) || function.contains(*name);
                    assert!(DEVICE_TESTS.iter().any(covers), "{path}: no name covers `{function}`");
                    covered += 1;
                }
            }
        }
        assert!(covered >= 15, "{covered} functions open every device");
    }

    #[test]
    fn features_are_checked_next_to_libtorch() {
        let arguments = Arguments { fast: true, features: vec!["a/b".into(), "c/d".into()] };
        let clippy = |has_libtorch| steps(has_libtorch, &arguments)[1].join(" ");
        assert!(clippy(true).contains("--features fet/libtorch,a/b,c/d"), "{}", clippy(true));
        assert!(clippy(false).contains("--features a/b,c/d"), "{}", clippy(false));
    }
}
