//! `cargo xtask ablate`: every variant of an experiment with every seed, then a table.
//!
//! Each cell (a variant with a seed) is one run of the `fet` program in a folder of its own, named by the
//! settings that went into it. A cell is done when its report is there, so the same command continues a
//! sweep. Training happens in `fet`.

mod cell;
mod file;
mod live;
mod results;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};

use crate::InputError;
use crate::workspace::{Cargo, root, target};
use cell::Cell;
use file::Ablation;
use live::Live;

/// Settings of `cargo xtask ablate`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// An experiment with a table `[ablation]`.
    #[arg(default_value = "experiments/quickstart.toml")]
    file: PathBuf,
    /// Changes a setting of every variant, as in `--set train.epochs=5`; a variant's own change wins.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// How many cells train at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// The tensor backend of every cell.
    #[arg(long)]
    device: Option<String>,
    /// These seeds instead of the file's, as in `--seeds 0,1,2`.
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<u64>,
    /// Only the variants of these names.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Where results go.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Only list the cells.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn ablate(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.jobs == 0 {
        bail!(InputError("`--jobs` must be at least 1; it is 0".into()));
    }
    let mut ablation = Ablation::read(&arguments.file)?;
    ablation.choose(&arguments.only, &arguments.seeds)?;
    let program = Program::build()?;
    let cells = cells(&ablation, arguments, &program)?;
    let missing: Vec<&Cell> = cells.iter().filter(|cell| !cell.is_done()).collect();
    eprintln!("{}: {} cells, {} of them done before", ablation.name, cells.len(), cells.len() - missing.len());
    if arguments.dry_run {
        for cell in &cells {
            println!("{}  {}", if cell.is_done() { "done   " } else { "missing" }, cell.title());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;
    let failed = train(&missing, arguments.jobs, &program, &stop);
    if stop.load(Ordering::Relaxed) {
        let done = cells.iter().filter(|cell| cell.is_done()).count();
        eprintln!("interrupted: {done} of {} cells are done; the same command continues", cells.len());
        return Ok(ExitCode::from(130));
    }
    let results = results::collect(&cells)?;
    let folder = arguments.out.join(&ablation.name);
    results::write_csv(&folder.join("results.csv"), &results)?;
    let table = table::Table::new(&results, ablation.seeds.len());
    results::write(&folder.join("table.md"), table.markdown().as_bytes())?;
    println!("{}", table.terminal());
    println!("results: {}", folder.join("results.csv").display());
    for (cell, log) in &failed {
        eprintln!("failed: {}\n{log}", cell.title());
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Trains the cells, `jobs` at a time; gives those that failed with the end of their logs.
fn train<'a>(
    cells: &[&'a Cell],
    jobs: usize,
    program: &Program,
    stop: &AtomicBool,
) -> Vec<(&'a Cell, String)> {
    let live = Live::new(cells.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(cells.len()) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if let Err(log) = cell.train(program, &live)
                        && !stop.load(Ordering::Relaxed)
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push((*cell, log));
                    }
                }
            });
        }
    });
    live.finish();
    failed.into_inner().unwrap_or_default()
}

/// Every variant with every seed, each checked by the program before any starts.
fn cells(ablation: &Ablation, arguments: &Arguments, program: &Program) -> anyhow::Result<Vec<Cell>> {
    let folder = arguments.out.join(&ablation.name).join("cells");
    let mut cells = Vec::new();
    for variant in &ablation.variants {
        for &seed in &ablation.seeds {
            let mut sets = arguments.sets.clone();
            sets.extend(variant.set.iter().cloned());
            let run = cell::Settings {
                file: arguments.file.clone(),
                sets,
                device: arguments.device.clone(),
                seed,
            };
            cells.push(Cell::new(&variant.name, run, &folder, program)?);
        }
    }
    Ok(cells)
}

/// The `fet` program.
pub(crate) struct Program {
    path: PathBuf,
    cargo: Cargo,
}

impl Program {
    /// Builds the program; the variable FET_BIN names one that is there already.
    fn build() -> anyhow::Result<Self> {
        let cargo = Cargo::new()?;
        if let Some(path) = std::env::var_os("FET_BIN").map(PathBuf::from) {
            return Ok(Self { path, cargo });
        }
        let mut command = cargo.command("build");
        let status = command.args(["--release", "-p", "fet"]).status().context("cannot run cargo")?;
        if !status.success() {
            bail!("the program `fet` could not be built");
        }
        Ok(Self { path: target()?.join("release").join(format!("fet{}", std::env::consts::EXE_SUFFIX)), cargo })
    }

    /// A call of the program.
    pub(crate) fn command(&self) -> Command {
        self.cargo.with_environment(Command::new(&self.path))
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), cargo: Cargo::without_libtorch() }
    }
}

/// `path` as a user would read it: from the workspace's root where it lies below it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
