//! Engines run the missing cells: one on this machine, one on a Slurm cluster.
//!
//! Law: when `run` has ended uninterrupted, every cell has a report or a failure in its folder. Cells are addressed by
//! their identity and locked while they run, so that several engines can work on one study. Engines do not summarise.

pub(crate) mod local;
pub(crate) mod slurm;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use super::cell::Cell;
use super::fet::{Base, Fet};
use super::view::View;

/// Something that runs cells.
pub(crate) trait Engine {
    /// Runs `cells` and shows their progress. If a cell fails, its failure is recorded and the others continue.
    fn run(&self, cells: &[&Cell], work: &Work<'_>) -> Result<Outcome>;
}

/// What an engine needs besides the cells.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    /// The program.
    pub(crate) fet: &'a Fet,
    /// What all cells have in common.
    pub(crate) base: &'a Base<'a>,
    /// Where progress is shown.
    pub(crate) view: &'a View,
    /// Set by Ctrl-C.
    pub(crate) stop: &'a AtomicBool,
}

/// How an engine came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every cell has run or failed.
    Ended,
    /// The user stopped the study before every cell had run.
    Interrupted,
}

/// The exit code of `fet run` if another process works on the run.
const ELSEWHERE: i32 = 75;

/// A flag that Ctrl-C sets; the same for every study of this process.
pub(crate) fn stop_on_interrupt() -> Result<Arc<AtomicBool>> {
    static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = known.as_ref() {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::SeqCst)).context("cannot listen for Ctrl-C")?;
    *known = Some(Arc::clone(&stop));
    Ok(stop)
}

/// Whether another process works on a cell now: `fet run` holds a lock in its folder.
fn is_elsewhere(cell: &Cell) -> bool {
    let Ok(file) = File::open(cell.folder.join("lock")) else { return false };
    matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
}
