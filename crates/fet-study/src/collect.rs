//! Runs the cells of a study for a caller that chooses the variants and evaluates the results itself, such as
//! `fet worth`.
//!
//! Cells, their addresses and the report of the study are those of `ablate`, so that the same call resumes an
//! interrupted one.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fet_eval::records::Report;

use super::cell::{self, Cell, make_folder};
use super::engine::local::LocalEngine;
use super::engine::{self, Engine, EngineOutcome, Work};
use super::estimate::TimeEstimate;
use super::failure::{self, CellFailure};
use super::fet::{Base, Fet};
use super::grid::{StudyGrid, Variant};
use super::report::say_unreadable;
use super::results::finished;
use super::summary::StudySummary;
use super::view::{LogForm, ProgressView, duration};
use super::write;

/// Study whose cells run on this machine.
#[derive(Debug, Clone, Copy)]
pub struct CollectRequest<'a> {
    /// Experiment file.
    pub file: &'a Path,
    /// Name of the study, which names its folder.
    pub name: &'a str,
    /// Variants of the experiment, at least one.
    pub variants: &'a [CollectVariant],
    /// Seeds, all different.
    pub seeds: &'a [u64],
    /// Folder of the results; the study's folder is inside it.
    pub out: &'a Path,
    /// Number of cells that run at the same time.
    pub jobs: NonZeroUsize,
    /// Tensor backend, if it differs from the file's.
    pub device: Option<&'a str>,
}

/// Variant of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectVariant {
    /// Name in the study's tables.
    pub name: String,
    /// Changes to the experiment, each as `path=value`.
    pub sets: Vec<String>,
    /// Name of the same variant without the other parties.
    pub control: Option<String>,
}

/// Finished cell of a study: one variant with one seed.
#[derive(Debug, Clone)]
pub struct CollectedCell {
    /// Name of the variant.
    pub variant: String,
    /// Seed.
    pub seed: u64,
    /// Report of the run.
    pub report: Report,
    /// Folder of the run, with its predictions.
    pub folder: PathBuf,
}

/// Outcome of [`collect`].
#[derive(Debug)]
pub enum Collected {
    /// The user interrupted the study.
    Interrupted {
        /// Number of finished cells.
        done: usize,
        /// Number of all cells.
        all: usize,
    },
    /// Every cell ran.
    Ended {
        /// Finished cells, by variant and then seed.
        cells: Vec<CollectedCell>,
        /// Description of each cell that failed.
        failures: Vec<String>,
    },
}

/// Runs all missing cells of a study, writes its report, and returns the finished cells.
///
/// The first seed of every variant runs first. If one of these runs fails, no other seed runs; otherwise a message
/// estimates the time of all other seeds. The call resumes an interrupted study.
///
/// # Errors
/// An [`output::Failed`](crate::output::Failed) error means that a program failed. Any other error means that
/// the experiment is invalid.
pub fn collect(request: &CollectRequest<'_>, fet: &Fet) -> Result<Collected> {
    let variant = |variant: &CollectVariant| {
        let mut own = Variant::new(variant.name.clone(), variant.sets.clone());
        own.control.clone_from(&variant.control);
        own
    };
    let variants = request.variants.iter().map(variant).collect();
    let grid = StudyGrid::of_variants(request.name, variants, request.seeds.to_vec(), 0);
    let sets = [format!("name={}", toml::Value::from(request.name))];
    let base = Base { file: request.file, sets: &sets, device: request.device };
    let cells = cell::resolve(&grid, fet, &base, request.out)?;
    let Some(first) = cells.first() else {
        return Ok(Collected::Ended { cells: Vec::new(), failures: Vec::new() });
    };
    let stop = engine::stop_on_interrupt()?;
    make_folder(first)?;
    say_unreadable(&missing(&cells));
    for stage in [Stage::FirstSeed, Stage::OtherSeeds] {
        let waiting: Vec<&Cell> = missing(&cells)
            .into_iter()
            .filter(|cell| stage == Stage::OtherSeeds || cell.repetition == first.repetition)
            .collect();
        if waiting.is_empty() {
            continue;
        }
        if let Some(time) = TimeEstimate::measure(&finished(&cells)).total_time(&waiting, request.jobs)
            && stage == Stage::OtherSeeds
        {
            fet_io::note!("{} more runs, about {}", waiting.len(), duration(time));
        }
        let view = ProgressView::new(LogForm::Human, 0, waiting.len());
        let work = Work { fet, base: &base, view: &view, stop: &stop };
        let outcome = LocalEngine { jobs: request.jobs }.run(&waiting, &work)?;
        drop(view);
        if outcome == EngineOutcome::Interrupted {
            return Ok(Collected::Interrupted { done: finished(&cells).len(), all: cells.len() });
        }
        if stage == Stage::FirstSeed && waiting.iter().any(|cell| super::report::read(cell).is_none()) {
            break;
        }
    }
    let done = finished(&cells);
    let summary = StudySummary::new(&grid, &cells, &done);
    write::write_study(&summary, &first.study)?;
    let is_done: HashSet<&PathBuf> = done.iter().map(|result| &result.cell.folder).collect();
    // After a failure of the first seed, the cells of all other seeds have not run.
    let undone = cells.iter().filter(|cell| !is_done.contains(&cell.folder) && cell.folder.exists());
    let describe = |cell: &Cell| {
        let problem = CellFailure::read(cell).map_or_else(|| "no report".to_string(), |found| found.problem);
        format!("{}: {problem}; {}", cell.title(), failure::log(cell).display())
    };
    let mut failures: Vec<String> = undone.map(describe).collect();
    if failures.is_empty() && done.len() < cells.len() {
        failures.push(format!("{} of {} runs left no report", cells.len() - done.len(), cells.len()));
    }
    let collected = done.iter().map(|result| CollectedCell {
        variant: result.cell.variant.clone(),
        seed: result.cell.repetition.seed,
        report: result.report.clone(),
        folder: result.cell.folder.clone(),
    });
    Ok(Collected::Ended { cells: collected.collect(), failures })
}

/// Part of the cells that runs together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstSeed,
    OtherSeeds,
}

/// Returns the cells without a valid report.
fn missing(cells: &[Cell]) -> Vec<&Cell> {
    cells.iter().filter(|cell| super::report::read(cell).is_none()).collect()
}
