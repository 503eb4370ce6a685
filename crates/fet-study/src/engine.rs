//! Engines run the missing cells: `local` on this machine, `slurm` on a Slurm cluster.
//!
//! Law: when `run` ends without an interrupt, every cell has a report or a failure in its folder. Cells are
//! addressed by their identity and locked while they run, so that several engines can work on one study.
//! Engines do not summarise results.

pub(crate) mod local;
pub(crate) mod slurm;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use super::cell::Cell;
use super::fet::{Base, Fet};
use super::view::ProgressView;

/// Runs cells.
pub(crate) trait Engine {
    /// Runs `cells` and shows their progress. If a cell fails, the engine records the failure and continues
    /// with the other cells.
    fn run(&self, cells: &[&Cell], work: &Work<'_>) -> Result<EngineOutcome>;
}

/// Context that an engine needs in addition to the cells.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    /// The `fet` program.
    pub(crate) fet: &'a Fet,
    /// Settings common to all cells.
    pub(crate) base: &'a Base<'a>,
    /// Progress display.
    pub(crate) view: &'a ProgressView,
    /// Flag that Ctrl-C sets.
    pub(crate) stop: &'a AtomicBool,
}

/// Outcome of an engine's run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EngineOutcome {
    /// Every cell has run or failed.
    Ended,
    /// The user stopped the study before every cell had run.
    Interrupted,
}

/// Exit code of `fet run` if another process works on the run.
const ELSEWHERE: i32 = 75;

/// Returns a flag that Ctrl-C sets. All studies of this process share the flag.
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

/// Lock file in the folder of a cell that runs.
const LOCK: &str = "lock";

/// Returns true if another process works on the cell at present: `fet run` holds a lock in the cell's folder, or the engine that
/// runs another program.
fn is_elsewhere(cell: &Cell) -> bool {
    let Ok(file) = File::open(cell.folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
}
