//! Work that takes long: it runs in a thread without the interpreter's lock, and Ctrl-C stops it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use fet::experiment_file::{self, ExperimentArguments};
use fet::predict::{ModelArguments, PredictArguments};
use fet::run::{Keep, Log, RunOutcome};
use fet_io::input::input;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::calls::{self, STACK};
use crate::errors::{FetError, raised};
use crate::frame::{Frame, read_frame};

/// Time between two looks for signals and notes.
const PAUSE: Duration = Duration::from_millis(50);

/// Process that first used the program.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Lines of running work that Python has not shown yet.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn push(line: String) {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// Calls `note` with every new line.
fn show(py: Python<'_>, note: &Bound<'_, PyAny>) -> PyResult<()> {
    let lines = py.detach(|| std::mem::take(&mut *NOTES.lock().unwrap_or_else(PoisonError::into_inner)));
    lines.into_iter().try_for_each(|line| note.call1((line,)).map(drop))
}

/// Does the work in a thread and returns its result. A signal or an exception of `note` sets the flag of the work, and is raised
/// after the work has ended.
pub(crate) fn wait<T: Send + 'static>(
    note: &Bound<'_, PyAny>,
    work: impl FnOnce(&AtomicBool) -> anyhow::Result<T> + Send + 'static,
) -> PyResult<T> {
    let py = note.py();
    if calls::is_calling() {
        let problem =
            "a plug-in runs the program; the program waits for the plug-in, so call it outside the plug-in";
        return Err(FetError::new_err(problem));
    }
    if *PROCESS.get_or_init(std::process::id) != std::process::id() {
        return Err(FetError::new_err(
            "this process was forked from one that used fet, and the threads of fet did not survive. Start processes with \
             \"spawn\", as `multiprocessing.get_context(\"spawn\")` does",
        ));
    }
    fet_io::send_notes(push);
    let stop = Arc::new(AtomicBool::new(false));
    let (ends, mut ended) = channel::<()>();
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
        let _ends = ends;
        work(&stopped)
    })?;
    let mut exception = None;
    loop {
        let waited;
        (ended, waited) = py.detach(move || {
            let waited = ended.recv_timeout(PAUSE);
            (ended, waited)
        });
        if exception.is_none()
            && let Err(error) = py.check_signals().and_then(|()| show(py, note))
        {
            stop.store(true, Ordering::Relaxed);
            exception = Some(error);
        }
        if waited != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    let result = py.detach(|| thread.join());
    if let Some(exception) = exception {
        return Err(exception);
    }
    show(py, note)?;
    let panicked = |_| match calls::failure() {
        Some(failure) => FetError::new_err(failure),
        None => PyRuntimeError::new_err("the program has a fault; standard error shows its place"),
    };
    result.map_err(panicked)?.map_err(|error| raised(&error))
}

/// Trains an experiment into a folder, as `fet run` does.
///
/// `sets` are changes as in `--set`. `place` is the folder in which relative paths of data files start, or `None` for that of the
/// experiment, and true to remove the state of the last epoch after the run. `note` receives each line for the user.
///
/// # Errors
/// Raises `fet.InputError`, `fet.FetError`, or `KeyboardInterrupt` after the step in which the user stopped the run; the same
/// call then resumes it.
#[pyfunction]
pub(crate) fn run(
    experiment: PathBuf,
    folder: PathBuf,
    sets: Vec<String>,
    place: (Option<PathBuf>, bool),
    note: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let arguments = ExperimentArguments { file: experiment, sets, ..ExperimentArguments::default() };
    let outcome = wait(note, move |stop| {
        let mut experiment = experiment_file::load(&arguments).map_err(input)?;
        let (data, forget) = place;
        experiment.folder = data.or(experiment.folder);
        let keep = if forget { Keep::Nothing } else { Keep::LastState };
        fet::run::run(&experiment, &folder, Log::Human, keep, stop)
    })?;
    match outcome {
        RunOutcome::Done(_) | RunOutcome::WasDone(_) => Ok(()),
        RunOutcome::Interrupted(folder) => Err(PyKeyboardInterrupt::new_err(format!(
            "the same call resumes the run in {}",
            folder.display()
        ))),
        RunOutcome::Elsewhere(folder) => {
            let problem = "another process works on the run; wait for it, or stop it";
            Err(FetError::new_err(format!("{}: {problem}", folder.display())))
        }
    }
}

/// Predicts the rows of a file with a finished run, as `fet predict` does.
///
/// `data` is the folder that is searched first for the secondaries' tables. `note` receives each line for the user.
#[pyfunction]
pub(crate) fn predict(
    run: PathBuf,
    rows: PathBuf,
    out: PathBuf,
    data: Option<PathBuf>,
    note: &Bound<'_, PyAny>,
) -> PyResult<Frame> {
    let arguments = PredictArguments {
        model: ModelArguments { run, data, ..ModelArguments::default() },
        rows,
        out: out.clone(),
        id: None,
        labels: None,
        time: None,
        recalibrate: None,
        explain: None,
        token_file: None,
    };
    let warnings = wait(note, move |_| fet::predict::predict(&arguments))?;
    warnings.into_iter().try_for_each(|warning| note.call1((format!("warning: {warning}"),)).map(drop))?;
    read_frame(note.py(), out, Vec::new())
}
