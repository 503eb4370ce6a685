//! `bench`: the benchmarks, or the comparison with the authors' program in a Python environment that the
//! command creates.
//!
//! `benches/against_authors.py` and the package `fet-e2e` define the measurements.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::check::cargo_with_devices;
use crate::libtorch;
use crate::workspace::{Workspace, exit_code};

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Alternate with the authors' program: a checkout of github.com/Xtra-Computing/FeT.
    #[arg(long, value_name = "CHECKOUT")]
    against: Option<PathBuf>,
    /// Arguments for cargo, as in `-- --bench summary`, or with --against for the comparison, as in `--
    /// --case hdb`.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask bench -- --bench summary -- 'hdb / flex'
  cargo xtask bench --against ../FeT
  cargo xtask bench --against ../FeT -- --case hdb --device libtorch --rounds 3

With --against it makes a Python environment with PyTorch in the build folder (2 GB, once), builds the benchmark, and writes
one table; nothing else should run meanwhile.";

/// Packages that the authors' program imports.
const PACKAGES: [&str; 5] = ["torch==2.9.0", "torch_optimizer", "numpy", "scikit-learn", "matplotlib"];

/// `cargo xtask bench`.
pub(crate) fn bench(arguments: &Arguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let Some(checkout) = &arguments.against else {
        let mut cargo = cargo_with_devices(&workspace, &["bench", "--package", "fet-e2e"])?;
        let status = cargo.args(&arguments.arguments).status().context("cannot run cargo")?;
        return Ok(exit_code(status));
    };
    let passed: Vec<&str> = arguments.arguments.iter().map(String::as_str).collect();
    against(&workspace, checkout, &[], &passed)
}

/// Runs the comparison with the authors' program in a checkout.
///
/// `features` are cargo's arguments for features besides LibTorch.
pub(crate) fn against(
    workspace: &Workspace,
    checkout: &Path,
    features: &[&str],
    arguments: &[&str],
) -> Result<ExitCode> {
    if !checkout.join("src/model/FeT.py").is_file() {
        bail!(
            "--against: {} is not a checkout of the authors' program: src/model/FeT.py is missing",
            checkout.display()
        );
    }
    let python = environment(&workspace.target.join("authors"))?;
    let summary = summary(workspace, features)?;
    let mut command = Command::new(python);
    command.arg(workspace.root.join("benches/against_authors.py")).arg(checkout).arg(summary);
    if let Some(folder) = libtorch::folder(&workspace.target)? {
        command.arg("--libtorch").arg(folder.join("lib"));
    }
    let status = command.args(arguments).status().context("cannot run the comparison")?;
    Ok(exit_code(status))
}

/// Creates a Python environment with the authors' packages. Replaces the rest of an interrupted set-up.
fn environment(folder: &Path) -> Result<PathBuf> {
    let (python, done) = (folder.join("bin/python"), folder.join("complete"));
    let packages = PACKAGES.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|made| made == packages) {
        return Ok(python);
    }
    eprintln!("creating a Python environment with PyTorch in {}", folder.display());
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
    std::fs::write(&done, packages).with_context(|| format!("cannot write {}", done.display()))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let what = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {what}"))?;
    if !status.success() {
        bail!("{what} failed, with {status}");
    }
    Ok(())
}

/// Builds the benchmark and returns its path, which cargo reports in its messages.
fn summary(workspace: &Workspace, features: &[&str]) -> Result<PathBuf> {
    let arguments = ["bench", "--package", "fet-e2e", "--bench", "summary", "--no-run"];
    let mut cargo = cargo_with_devices(workspace, &arguments)?;
    let mut built = cargo
        .args(features)
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = BufReader::new(built.stdout.take().context("cargo's messages")?);
    let mut found = None;
    for message in serde_json::Deserializer::from_reader(output).into_iter::<serde_json::Value>() {
        let message = message.context("cannot read what cargo printed")?;
        if message["target"]["name"] == "summary"
            && let Some(path) = message["executable"].as_str()
        {
            found = Some(PathBuf::from(path));
        }
    }
    let status = built.wait().context("cargo")?;
    match found.filter(|_| status.success()) {
        Some(path) => Ok(path),
        None => bail!("the benchmark could not be built"),
    }
}
