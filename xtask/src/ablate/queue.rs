//! Runs the cells that are missing, some at a time.
//!
//! Ctrl-C reaches the children by itself, for they are in the same process group; here it means that no
//! further cell starts and that those under way are waited for. Nothing is drawn here; `view` does.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::cell::Cell;
use super::event::Event;
use super::fet::{Base, Fet};
use super::report::{self, Report};
use super::view::{Line, View};

/// How a queue came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every cell has run.
    Ended {
        /// How many of them failed.
        failed: usize,
    },
    /// Some did not run, for the user stopped it.
    Interrupted,
}

/// How long an interrupted child may take until it is asked again.
const GRACE: Duration = Duration::from_secs(5);

/// How many lines of a failed cell's log are shown.
const TAIL: usize = 12;

/// Runs `cells`, `jobs` at a time, in order. A cell that fails is reported, and the others go on.
pub(crate) fn run(
    cells: &[&Cell],
    fet: &Fet,
    base: &Base<'_>,
    jobs: NonZeroUsize,
    view: &View,
) -> Result<Outcome> {
    if cells.is_empty() {
        return Ok(Outcome::Ended { failed: 0 });
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::SeqCst)).context("cannot listen for Ctrl-C")?;
    let (next, failed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let children = Mutex::new(Vec::new());
    let runner = Runner { fet, base, view, stop: &stop, children: &children };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.get().min(cells.len()))
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst)
                        && let Some(cell) = cells.get(next.fetch_add(1, Ordering::SeqCst))
                    {
                        if !runner.run(cell) {
                            failed.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| remind(&stop, &ended, &children));
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        // Before a panic goes on, for it waits for every thread of the scope.
        ended.store(true, Ordering::SeqCst);
        if let Some(panic) = ends.into_iter().find_map(Result::err) {
            std::panic::resume_unwind(panic);
        }
    });
    let is_stopped = stop.load(Ordering::SeqCst);
    Ok(if is_stopped { Outcome::Interrupted } else { Outcome::Ended { failed: failed.into_inner() } })
}

struct Runner<'a> {
    fet: &'a Fet,
    base: &'a Base<'a>,
    view: &'a View,
    stop: &'a AtomicBool,
    children: &'a Mutex<Vec<u32>>,
}

impl Runner<'_> {
    /// Runs one cell; whether it did not fail. An interrupted cell did not.
    fn run(&self, cell: &Cell) -> bool {
        let start = Instant::now();
        let mut line = self.view.begin(&cell.title());
        let status = self.train(cell, &mut line);
        let report = Report::of(cell);
        let problem = match (&status, &report) {
            (Ok(status), Some(report)) if status.success() => {
                line.done(report, start.elapsed());
                return true;
            }
            (Ok(status), _) if is_interrupt(*status) => {
                self.stop.store(true, Ordering::SeqCst);
                line.interrupted();
                return true;
            }
            (Ok(status), _) if status.success() => "left no report of this experiment".to_string(),
            (Ok(status), _) => format!("ended with {status}"),
            (Err(error), _) => format!("could not run: {error}"),
        };
        let log = cell.folder.join("cell.log");
        line.failed(&format!("{problem}; the end of {}:\n{}", log.display(), tail(&log)));
        false
    }

    fn train(&self, cell: &Cell, line: &mut Line<'_>) -> io::Result<ExitStatus> {
        fs::create_dir_all(&cell.folder)?;
        report::move_away(cell)?;
        let mut log = File::create(cell.folder.join("cell.log"))?;
        let mut child = self.fet.start(self.base, cell, log.try_clone()?)?;
        self.children().push(child.id());
        let read = follow(&mut child, &mut log, line);
        let status = child.wait();
        let id = child.id();
        self.children().retain(|other| *other != id);
        read.and(status)
    }

    fn children(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a child's lines to their end; those that are no events go to its log.
fn follow(child: &mut Child, log: &mut File, line: &mut Line<'_>) -> io::Result<()> {
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    for text in BufReader::new(stdout).split(b'\n') {
        let text = text?;
        let text = String::from_utf8_lossy(&text);
        match Event::parse(&text) {
            Some(event) => line.tell(&event),
            None => writeln!(log, "{text}")?,
        }
    }
    Ok(())
}

/// Asks the children of an interrupted queue to stop, where they have not: a signal that was sent to xtask
/// alone did not reach them.
fn remind(stop: &AtomicBool, ended: &AtomicBool, children: &Mutex<Vec<u32>>) {
    let mut since = None;
    while !ended.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(50));
        if !stop.load(Ordering::SeqCst) {
            continue;
        }
        if since.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            since = Some(Instant::now());
            for id in children.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                let _ = Command::new("kill").args(["-INT", &id.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

#[cfg(unix)]
fn is_interrupt(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const SIGINT: i32 = 2;
    status.code() == Some(130) || status.signal() == Some(SIGINT)
}

#[cfg(not(unix))]
fn is_interrupt(status: ExitStatus) -> bool {
    status.code() == Some(130)
}

fn tail(log: &std::path::Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let end = &lines[lines.len().saturating_sub(TAIL)..];
    if end.is_empty() { "  (it is empty)".to_string() } else { format!("  {}", end.join("\n  ")) }
}
