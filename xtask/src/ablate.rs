//! `ablate`: a study, from an ablation file to a table.
//!
//! A cell is one variant with one seed. The order of things: read the file, build `fet`, let `fet show` check
//! every cell, leave out the cells that are done, run the others, write the tables. Nothing is trained here,
//! and no setting is understood here: both are `fet`'s.

mod cell;
mod event;
mod fet;
mod file;
mod plan;
mod queue;
mod report;
mod results;
mod statistics;
mod table;
mod view;

use std::io::{IsTerminal, stdout};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use cell::Cell;
use fet::{Base, Fet};
use plan::{Plan, Selection};
use queue::Outcome;
use report::Report;
use results::Finished;
use table::Table;
use view::View;

use crate::output::{answer, write_atomically};

/// The arguments of `ablate`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The experiment file with its table `ablation`.
    #[arg(default_value = "experiments/quickstart.toml")]
    file: PathBuf,
    /// Change a setting of the base; can be given many times. A variant's own change wins.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Cells at a time; they then share the cores, so that their seconds and rows/s say less.
    #[arg(long, default_value = "1", value_name = "N")]
    jobs: NonZeroUsize,
    /// The tensor backend, as in: flex, ndarray, libtorch, libtorch-cuda.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Seeds in place of the file's.
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    seeds: Option<Vec<u64>>,
    /// Only this variant; can be given many times. The tables then hold these alone.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A smaller form of the study, as the file's table `profile.NAME` has it; its results are DIR/STUDY-NAME.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The same as `--profile quick`.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// The folder of the results.
    #[arg(long, default_value = "runs", value_name = "DIR")]
    out: PathBuf,
    /// Say what would run, and run nothing.
    #[arg(long)]
    dry_run: bool,
}

const AFTER_HELP: &str = "\
An ablation file is an experiment file with one more table:

  [ablation]
  seeds = [0, 1]
  [[ablation.variants]]
  name = \"FeT\"
  [[ablation.variants]]
  name = \"FeT without mask\"
  set = [\"encoder.dynamic_mask=false\"]
  [ablation.axes]                        # optional: every variant with every value
  \"linker.neighbours\" = [1, 5, 10]
  [profile.quick]                        # optional: what --quick changes
  set = [\"data.rows=2000\", \"train.epochs=3\"]
  seeds = [0]

The results are DIR/NAME/results.csv, DIR/NAME/table.md, and a folder per cell in DIR/NAME/cells. A cell that
is done is not run again, so the same command continues a study that was interrupted.
The environment variable FET_BIN names a `fet` to use; without it, `fet` is built first.";

/// `cargo xtask ablate`.
pub(crate) fn ablate(arguments: &Arguments) -> Result<ExitCode> {
    let quick = arguments.quick.then(|| "quick".to_string());
    let selection = Selection {
        seeds: arguments.seeds.clone(),
        only: arguments.only.clone(),
        profile: arguments.profile.clone().or(quick),
    };
    let plan = Plan::read(&arguments.file, &selection)?;
    let sets = [plan.sets.as_slice(), arguments.sets.as_slice()].concat();
    let base = Base { file: &arguments.file, sets: &sets, device: arguments.device.as_deref() };
    let fet = Fet::locate()?;
    // All are checked before the first one starts.
    let cells = cell::resolve(&plan, &fet, &base, &arguments.out)?;
    let Some(first) = cells.first() else { return Ok(ExitCode::SUCCESS) };
    let folder = first.study.clone();
    let missing: Vec<&Cell> = cells.iter().filter(|cell| Report::of(cell).is_none()).collect();
    let done = cells.len() - missing.len();
    if arguments.dry_run {
        dry_run(&cells, &fet, &base);
        return Ok(ExitCode::SUCCESS);
    }
    if done > 0 {
        eprintln!("{done} of {} cells were done", cells.len());
    }
    let view = View::new(done, cells.len());
    let outcome = queue::run(&missing, &fet, &base, arguments.jobs, &view)?;
    drop(view);
    let results: Vec<Finished> =
        cells.iter().filter_map(|cell| Some(Finished { cell, report: Report::of(cell)? })).collect();
    match outcome {
        Outcome::Interrupted => {
            let done = results.len();
            eprintln!("interrupted: {done} of {} cells are done; the same command resumes", cells.len());
            Ok(ExitCode::from(130))
        }
        Outcome::Ended { failed } => {
            conclude(&plan, &results, &folder)?;
            if failed > 0 {
                eprintln!("{failed} of {} cells failed; the same command tries them again", cells.len());
                return Ok(ExitCode::from(1));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn dry_run(cells: &[Cell], fet: &Fet, base: &Base<'_>) {
    for cell in cells {
        let state = if Report::of(cell).is_some() { "done   " } else { "missing" };
        answer(format!("{state}  {}, seed {}", cell.variant, cell.seed));
        answer(format!("         {}", fet.run_line(base, cell)));
    }
}

/// Writes the tables and shows the one for people.
fn conclude(plan: &Plan, results: &[Finished<'_>], folder: &Path) -> Result<()> {
    let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    let table = Table::new(&names, results);
    let title = plan.profile.as_ref().map(|profile| {
        format!("Profile \"{profile}\": a smaller form of the study, not to be compared with the whole.")
    });
    let markdown = title.iter().map(|title| format!("{title}\n\n")).collect::<String>() + &table.markdown();
    write_atomically(&folder.join("results.csv"), &results::csv(results, folder))?;
    write_atomically(&folder.join("table.md"), &markdown)?;
    title.into_iter().for_each(answer);
    answer(table.text(stdout().is_terminal()));
    for note in results::notes(results) {
        answer(note);
    }
    answer(format!("Results: {0}/results.csv, {0}/table.md, {0}/cells", folder.display()));
    Ok(())
}
