//! The engine `local`: runs cells on this machine, several at the same time.
//!
//! Ctrl-C reaches the children directly, because they are in the same process group. After Ctrl-C no further
//! cell starts, and the engine waits for the running cells. The module `view` shows the progress.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use fet_eval::records::RunEvent;

use super::super::cell::Cell;
use super::super::failure::{self, CellFailure};
use super::super::report;
use super::super::view::CellProgress;
use super::{ELSEWHERE, Engine, EngineOutcome, LOCK, Work, is_elsewhere};

/// This machine.
#[derive(Debug)]
pub(crate) struct LocalEngine {
    /// Number of cells that run at the same time.
    pub(crate) jobs: NonZeroUsize,
}

/// Time after which an interrupted child gets another signal.
const GRACE: Duration = Duration::from_secs(5);

/// Maximum number of consecutive runs that report another process while no other process holds the cell's
/// lock.
const MOST_TRIES: u32 = 10;

/// Pause before the engine checks again a cell that another process works on.
const PATIENCE: Duration = Duration::from_millis(200);

impl Engine for LocalEngine {
    fn run(&self, cells: &[&Cell], work: &Work<'_>) -> Result<EngineOutcome> {
        let ended = AtomicBool::new(false);
        let runner = Runner {
            work: *work,
            waiting: Mutex::new(cells.iter().map(|cell| (*cell, 0)).collect()),
            children: Mutex::new(Vec::new()),
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.get().min(cells.len()))
                .map(|_| scope.spawn(|| while runner.next() {}))
                .collect();
            scope.spawn(|| remind(work.stop, &ended, &runner.children));
            let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            // Set the flag before a panic is passed on: the scope waits for the thread that reads the flag.
            ended.store(true, Ordering::SeqCst);
            if let Some(panic) = ends.into_iter().find_map(Result::err) {
                std::panic::resume_unwind(panic);
            }
        });
        Ok(if work.stop.load(Ordering::SeqCst) { EngineOutcome::Interrupted } else { EngineOutcome::Ended })
    }
}

struct Runner<'a> {
    work: Work<'a>,
    /// Cells to run, each with the number of times in a row that it was put off.
    waiting: Mutex<VecDeque<(&'a Cell, u32)>>,
    children: Mutex<Vec<u32>>,
}

impl Runner<'_> {
    /// Runs the next cell. Returns false if no cell is left or the study is stopped.
    fn next(&self) -> bool {
        if self.work.stop.load(Ordering::SeqCst) {
            return false;
        }
        let Some((cell, put_off)) = lock(&self.waiting).pop_front() else { return false };
        if put_off > 0 {
            thread::sleep(PATIENCE);
        }
        if is_elsewhere(cell) {
            if put_off == 0 {
                self.work.view.say(&format!("{}: another process runs it; waiting", cell.title()));
            }
            lock(&self.waiting).push_back((cell, 1));
        } else if !self.run(cell, put_off) {
            lock(&self.waiting).push_back((cell, put_off + 1));
        }
        true
    }

    /// Runs one cell, after `put_off` postponements in a row. Returns false if the cell must be tried again.
    fn run(&self, cell: &Cell, put_off: u32) -> bool {
        let mut line = self.work.view.begin(cell);
        // Another process may have finished the cell since the study was read.
        if let Some(report) = report::read(cell) {
            line.done(&report);
            return true;
        }
        let Ok(_lock) = lock_for_program(cell) else {
            line.put_off();
            return false;
        };
        let status = self.train(cell, &mut line);
        match (status, report::read(cell)) {
            (Ok(status), Some(report)) if status.success() => line.done(&report),
            // Another process has just taken the cell. After `MOST_TRIES` in a row without such a process the
            // cell fails.
            (Ok(status), _) if status.code() == Some(ELSEWHERE) && put_off < MOST_TRIES => {
                line.put_off();
                return false;
            }
            (Ok(status), _) if is_interrupt(status) => {
                self.work.stop.store(true, Ordering::SeqCst);
                line.interrupted();
            }
            (Ok(status), _) => {
                let problem = failure::explain(cell, status.code(), failure::signal(status));
                line.failed(&CellFailure::note(cell, &problem));
            }
            (Err(error), _) => line.failed(&CellFailure::note(cell, &format!("could not run: {error}"))),
        }
        true
    }

    fn train(&self, cell: &Cell, line: &mut CellProgress<'_>) -> io::Result<ExitStatus> {
        fs::create_dir_all(&cell.folder)?;
        report::move_away(cell)?;
        CellFailure::forget(cell)?;
        File::create(failure::log(cell))?;
        // The log receives the child's standard error, and the lines of its standard output that are not
        // events.
        let mut log = OpenOptions::new().append(true).open(failure::log(cell))?;
        let mut child =
            self.work.fet.start(self.work.base, cell.variation(), &cell.folder, log.try_clone()?)?;
        lock(&self.children).push(child.id());
        let read = follow(&mut child, &mut log, line);
        let status = child.wait();
        let id = child.id();
        lock(&self.children).retain(|other| *other != id);
        read.and(status)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the lock of a cell that a program other than `fet` runs; `fet` takes the lock itself. The result is an error if another
/// process holds the lock, and has no file if the lock is not needed or cannot exist.
fn lock_for_program(cell: &Cell) -> Result<Option<File>, TryLockError> {
    if cell.identity.program.is_none() {
        return Ok(None);
    }
    let made = fs::create_dir_all(&cell.folder).and_then(|()| File::create(cell.folder.join(LOCK)));
    // If the folder is not writable, the run names the problem.
    let Ok(file) = made else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        // Some file systems have no locks.
        _ => Ok(Some(file)),
    }
}

/// Reads all lines of a child's standard output. Lines that are not events go to its log.
fn follow(child: &mut Child, log: &mut File, line: &mut CellProgress<'_>) -> io::Result<()> {
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    for text in BufReader::new(stdout).split(b'\n') {
        let text = text?;
        let text = String::from_utf8_lossy(&text);
        match RunEvent::parse(&text) {
            Some(event) => line.tell(&event),
            None => {
                writeln!(log, "{text}")?;
                if let Some(problem) = RunEvent::problem(&text) {
                    writeln!(log, "fet study: the line above is not a valid event: {problem}")?;
                }
            }
        }
    }
    Ok(())
}

/// Asks the running children of an interrupted queue again to stop. A signal sent to this process alone did
/// not reach them.
fn remind(stop: &AtomicBool, ended: &AtomicBool, children: &Mutex<Vec<u32>>) {
    let mut since = None;
    while !ended.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(50));
        if !stop.load(Ordering::SeqCst) {
            continue;
        }
        if since.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            since = Some(Instant::now());
            for id in lock(children).iter() {
                let _ = Command::new("kill").args(["-INT", &id.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

fn is_interrupt(status: ExitStatus) -> bool {
    const SIGINT: i32 = 2;
    status.code() == Some(130) || failure::signal(status) == Some(SIGINT)
}
