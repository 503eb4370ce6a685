//! `test`, `check` and `bench`: what cargo is asked, in which order, with which features.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::workspace::Cargo;

/// All tests, in the profile that the program itself is built with, so that Burn is compiled once.
pub(crate) fn test(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let cargo = Cargo::new()?;
    if cargo.has_libtorch() {
        eprintln!("xtask: testing with LibTorch: flex, ndarray, libtorch");
    } else {
        eprintln!(
            "xtask: testing flex and ndarray; LibTorch is not set up and its tests are left out \
             (`cargo xtask libtorch` fetches it)"
        );
    }
    let mut command = cargo.command("test");
    command.args(["--release", "--workspace", "--no-fail-fast"]).args(arguments);
    exit_code(&mut command)
}

/// Benches of the workspace.
pub(crate) fn bench(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut command = Cargo::new()?.command("bench");
    command.args(["-p", "fet", "--bench", "speed", "--"]).args(arguments);
    exit_code(&mut command)
}

/// Format, lints, feature sets, documentation, tests; stops at the first that fails.
pub(crate) fn check(fast: bool) -> anyhow::Result<ExitCode> {
    let (cargo, plain) = (Cargo::new()?, Cargo::without_libtorch());
    let with = |cargo: &Cargo, subcommand: &str, arguments: &[&str]| {
        let mut command = cargo.command(subcommand);
        command.args(arguments);
        command
    };
    step("format", with(&plain, "fmt", &["--all", "--check"]))?;
    let lints = ["--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step("lints", with(&plain, "clippy", &lints))?;
    if cargo.has_libtorch() {
        step("lints with LibTorch", with(&cargo, "clippy", &lints))?;
    }
    let mut doc = with(&plain, "doc", &["--release", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    step("documentation", doc)?;
    if !fast && test(&[])? != ExitCode::SUCCESS {
        bail!("the tests failed");
    }
    println!("all checks passed");
    Ok(ExitCode::SUCCESS)
}

fn step(name: &str, mut command: Command) -> anyhow::Result<()> {
    let start = Instant::now();
    eprintln!("xtask: {name} ...");
    let status = command.status().with_context(|| format!("{name}: cannot run cargo"))?;
    if !status.success() {
        bail!("{name}: failed");
    }
    eprintln!("xtask: {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn exit_code(command: &mut Command) -> anyhow::Result<ExitCode> {
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
