//! Ablation studies: from an ablation file to a report.
//!
//! A cell is one variant with one seed, or with one fold of a cross-validation. [`ablate`] reads the file, finds or builds `fet`, and has `fet show`
//! check every cell. It skips finished cells, has an engine run the other cells, summarises the results, and
//! writes the report.
//!
//! This crate trains no model and interprets no setting; `fet` does both. The caller builds `fet`. Another program can take the
//! place of `fet` (`docs/other-programs.md`): it describes a cell's identity, runs the cell and writes a short report.

mod added;
mod cell;
mod collect;
mod composed;
mod defences;
mod engine;
mod estimate;
mod failure;
mod fet;
mod file;
mod grid;
pub mod output;
mod owner;
pub mod paired;
mod part_rows;
mod pooled;
mod program_report;
mod repetition;
mod report;
mod results;
mod row;
mod statistics;
mod summary;
mod tune;
mod view;
mod write;

use std::io::{IsTerminal, stdout};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use cell::{Cell, make_folder};
pub use collect::{CollectRequest, CollectVariant, Collected, CollectedCell, collect};
use engine::local::LocalEngine;
use engine::slurm::SlurmEngine;
use engine::{Engine, EngineOutcome, Work};
use estimate::TimeEstimate;
use failure::CellFailure;
use fet::Base;
pub use fet::Fet;
use grid::{Scope, StudyGrid};
use report::say_unreadable;
use results::{FinishedCell, finished};
use summary::StudySummary;
pub use tune::{TuneArguments, tune};
use view::{LogForm, ProgressView, duration};
pub use write::{ErrorChart, error_charts};

use crate::output::answer;

/// The arguments of `ablate`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct AblateArguments {
    /// Experiment file with the table `ablation`, or its bare name, such as `hdb`.
    #[arg(default_value = "experiments/quickstart.toml")]
    file: PathBuf,
    /// Change a setting of the base; can be given many times. A variant's change to the same setting wins.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Number of cells that run at the same time. On this machine they share the cores, so that their seconds
    /// and rows/s are less meaningful. [default: 1 on this machine, as many as the cluster allows on Slurm]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Engine that runs the cells: this machine, or the Slurm cluster that shares this folder.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineName,
    /// Option for sbatch, as in `--sbatch=--partition=gpu`; can be given many times.
    #[arg(long, value_name = "OPTION")]
    sbatch: Vec<String>,
    /// Seconds between checks of Slurm's queue.
    #[arg(long, value_name = "SECONDS", default_value = "5", hide_default_value = true)]
    poll: f64,
    /// Form of the progress output.
    #[arg(long, value_enum, default_value_t)]
    log: LogForm,
    /// Program that describes and runs the cells instead of `fet`; `docs/other-programs.md` describes its calls and files.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Tensor backend, such as flex, ndarray, libtorch or libtorch-cuda.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Seeds that replace those of the file.
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    seeds: Option<Vec<u64>>,
    /// Number of cross-validation folds that replaces that of the file: every variant runs on each fold.
    #[arg(long, value_name = "N")]
    folds: Option<usize>,
    /// Run only this variant; can be given many times. The tables then contain only these variants.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Smaller form of the study, from the file's table `profile.NAME`; its results are in DIR/STUDY-NAME.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Short for `--profile quick`.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// Folder of the results.
    #[arg(long, default_value = "runs", value_name = "DIR")]
    out: PathBuf,
    /// List the cells that would run, with an estimate of the time from finished cells, and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Rewrite the report from the finished cells, and run nothing.
    #[arg(long, conflicts_with = "dry_run")]
    report: bool,
}

/// Engine that runs cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum EngineName {
    /// This machine.
    #[default]
    Local,
    /// A Slurm cluster.
    Slurm,
}

const AFTER_HELP: &str = "\
An ablation file is an experiment file with one more table:

  [ablation]
  seeds = [0, 1, 2, 3, 4]
  folds = 5                              # optional: every variant on each of 5 cross-validation folds
  base = \"FeT\"                           # optional: the base of comparisons; else the first
  [[ablation.variants]]
  name = \"FeT\"
  [[ablation.variants]]
  name = \"FeT without mask\"
  set = [\"encoder.dynamic_mask=false\"]
  [ablation.axes]                        # optional: every variant with every value
  \"linker.neighbours\" = [1, 5, 10]
  [[ablation.exclude]]                   # optional: excluded combinations
  variant = \"FeT without mask\"
  \"linker.neighbours\" = [1, 5]
  [profile.quick]                        # optional: changes of --quick
  set = [\"data.rows=2000\", \"train.epochs=3\"]
  seeds = [0]

The results are in DIR/NAME: report.html for people; table.md, table.tex, results.csv, costs.csv, curves.csv and
results.json; and a folder per cell in cells/. An axis over \"attack.kind\" runs each attack on every variant. The report then
compares the variants as defences, also in attacks.csv and leakage.svg. Set `attacked = false` for a variant that cannot be
attacked, for example because its method has no secondaries.
A cell is identified by its settings, its seed, the content of its data files and the version of the program's results. A
finished cell is not run again. The same command therefore resumes an interrupted study, and two commands can share the
cells of one study.
The environment variable FET_BIN names a `fet` to use; without it, `fet study` uses itself and `cargo xtask ablate` builds it.
With `--program PATH`, another program runs the cells, such as a script of 40 lines. It answers `PATH show FILE --batch` with the
identity of each cell, and `PATH run FILE --set PATH=VALUE --seed N --out FOLDER` with report.json and predictions.csv.
A folder of results belongs to one program.

Exit codes: 0 every cell is done; 1 a cell failed; 2 the input is invalid; 130 interrupted.";

/// Runs the study that `arguments` name, with the `fet` that `locate` finds or builds.
///
/// The exit code is 0 if every cell is done, 1 if a cell failed, and 130 if the study was interrupted. An
/// [`output::Failed`] error means exit code 1. Any other error means that the input is invalid.
pub fn ablate(arguments: &AblateArguments, locate: impl FnOnce() -> Result<Fet>) -> Result<ExitCode> {
    let quick = arguments.quick.then(|| "quick".to_string());
    let scope = Scope {
        seeds: arguments.seeds.clone(),
        folds: arguments.folds,
        only: arguments.only.clone(),
        profile: arguments.profile.clone().or(quick),
    };
    ensure!(
        arguments.poll >= 0.1 && arguments.poll <= 3600.0,
        "--poll: must be from 0.1 to 3600 seconds, but is {}",
        arguments.poll
    );
    let file = fet_io::experiment(&arguments.file);
    let grid = StudyGrid::read(&file, &scope)?;
    let sets = [grid.sets.as_slice(), arguments.sets.as_slice()].concat();
    let base = Base { file: &file, sets: &sets, device: arguments.device.as_deref() };
    let fet = match &arguments.program {
        Some(program) => Fet::other(program)?,
        None => locate()?,
    };
    // `fet` checks all cells before the first cell starts.
    let cells = cell::resolve(&grid, &fet, &base, &arguments.out)?;
    let Some(first) = cells.first() else { return Ok(ExitCode::SUCCESS) };
    let folder = first.study.clone();
    let done = finished(&cells);
    let missing: Vec<&Cell> = {
        let is_done: std::collections::HashSet<&PathBuf> =
            done.iter().map(|result| &result.cell.folder).collect();
        cells.iter().filter(|cell| !is_done.contains(&cell.folder)).collect()
    };
    say_unreadable(&missing);
    if arguments.dry_run {
        dry_run(arguments, &StudyState { cells: &cells, done: &done, missing: &missing }, &fet, &base);
        return Ok(ExitCode::SUCCESS);
    }
    if !done.is_empty() {
        fet_io::note!("{} of {} cells were done", done.len(), cells.len());
    }
    if arguments.report || missing.is_empty() {
        return conclude(arguments, &grid, &cells, &done, &folder);
    }
    drop(done);
    make_folder(first)?;
    let view = ProgressView::new(arguments.log, cells.len() - missing.len(), cells.len());
    let stop = engine::stop_on_interrupt()?;
    let work = Work { fet: &fet, base: &base, view: &view, stop: &stop };
    let outcome = engine(arguments).run(&missing, &work)?;
    drop(view);
    let done = finished(&cells);
    match outcome {
        EngineOutcome::Interrupted => {
            fet_io::note!(
                "interrupted: {} of {} cells are done; the same command resumes",
                done.len(),
                cells.len()
            );
            Ok(ExitCode::from(130))
        }
        EngineOutcome::Ended => {
            let code = conclude(arguments, &grid, &cells, &done, &folder)?;
            // A failure cannot be recorded if the cell's folder is not writable, so the number of done cells
            // decides.
            Ok(if done.len() < cells.len() { ExitCode::from(1) } else { code })
        }
    }
}

fn engine(arguments: &AblateArguments) -> Box<dyn Engine> {
    match arguments.engine {
        EngineName::Local => Box::new(LocalEngine { jobs: arguments.jobs.unwrap_or(NonZeroUsize::MIN) }),
        EngineName::Slurm => Box::new(SlurmEngine {
            jobs: arguments.jobs,
            options: arguments.sbatch.clone(),
            interval: Duration::from_secs_f64(arguments.poll),
        }),
    }
}

/// Cells of a study, divided by their state.
struct StudyState<'a> {
    cells: &'a [Cell],
    done: &'a [FinishedCell<'a>],
    missing: &'a [&'a Cell],
}

/// Lists the cells, and estimates the time of the missing cells.
fn dry_run(arguments: &AblateArguments, state: &StudyState<'_>, fet: &Fet, base: &Base<'_>) {
    let StudyState { cells, done, missing } = *state;
    let estimate = TimeEstimate::measure(done);
    let is_missing: std::collections::HashSet<&PathBuf> = missing.iter().map(|cell| &cell.folder).collect();
    for cell in cells {
        let state = match is_missing.contains(&cell.folder) {
            false => "done   ",
            true if CellFailure::read(cell).is_some() => "failed ",
            true if cell.folder.join("checkpoint.safetensors").exists() => "begun  ",
            true => "missing",
        };
        let time = estimate.cell(cell).filter(|_| is_missing.contains(&cell.folder));
        let time = time.map_or_else(String::new, |time| format!(", about {}", duration(time)));
        answer(format!("{state}  {}{time}", cell.title()));
        answer(format!("         {}", fet.run_line(base, cell.variation(), &cell.folder)));
    }
    let jobs = arguments.jobs.unwrap_or(NonZeroUsize::MIN);
    let time = match estimate.total_time(missing, jobs) {
        _ if missing.is_empty() => String::new(),
        Some(time) => format!(
            "; about {} with {jobs} at a time, estimated from {} finished cells",
            duration(time),
            estimate.measured
        ),
        None => "; no time estimate before the first cell is done".to_string(),
    };
    answer(format!("{} cells, {} to run{time}", cells.len(), missing.len()));
}

/// Writes every file of the study and shows the table. The exit code is 1 if a cell failed.
fn conclude(
    arguments: &AblateArguments,
    grid: &StudyGrid,
    cells: &[Cell],
    done: &[FinishedCell<'_>],
    folder: &Path,
) -> Result<ExitCode> {
    let summary = StudySummary::new(grid, cells, done);
    let (tables, notes) = write::write_study(&summary, folder)?;
    let failed = summary.failures.len();
    match arguments.log {
        LogForm::Json => answer(json!({
            "event": "end", "cells": cells.len(), "done": done.len(), "failed": failed, "folder": folder,
        })),
        LogForm::Human => {
            tables.iter().for_each(|table| answer(table.text(stdout().is_terminal())));
            notes.iter().chain(&summary.notes).for_each(answer);
            answer(format!("Results in {}: {}", folder.display(), write::files(&summary)));
        }
    }
    if failed > 0 {
        fet_io::note!("{failed} of {} cells failed; the same command retries them:", cells.len());
        for (cell, failure) in &summary.failures {
            fet_io::note!("  {}: {}; {}", cell.title(), failure.problem, failure::log(cell).display());
        }
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}
