//! Calls of Python code from the program's threads.
//!
//! One thread makes all calls, so that Python code needs no locks. A thread that waits for the answer holds neither the
//! interpreter's lock nor a lock of the program. The code of an attack has another thread, which waits while the program works.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::plugin::told;

/// Stack of a working thread in bytes, as for the command.
pub(crate) const STACK: usize = 16 << 20;

type Call = Box<dyn FnOnce(Python<'_>) + Send>;

static CALLS: LazyLock<Sender<Call>> = LazyLock::new(|| {
    let (sender, calls) = channel::<Call>();
    let serve = move || {
        IS_CALLING.set(true);
        // The thread stays attached for its whole life: modules such as PyTorch keep the state of the thread that first imported
        // them, and crash if it has ended.
        let calls = Mutex::new(calls);
        let next = || calls.lock().unwrap_or_else(PoisonError::into_inner).recv();
        Python::attach(|py| {
            while let Ok(call) = py.detach(next) {
                // A panic answers the caller, because it drops the sender of the answer; the thread serves the next call.
                let _ = catch_unwind(AssertUnwindSafe(|| call(py)));
            }
        });
    };
    let thread = thread::Builder::new().name("fet-python".into()).stack_size(STACK).spawn(serve);
    thread.expect("the system starts a thread");
    sender
});

thread_local! {
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Returns true in the thread that calls Python code: there, work that waits for another call would wait forever.
pub(crate) fn is_calling() -> bool {
    IS_CALLING.get()
}

/// Calls Python code and returns its answer.
///
/// # Errors
/// Fails with the exception of the code.
pub(crate) fn call<T: Send + 'static>(
    code: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    if is_calling() {
        return Python::attach(code);
    }
    let (sender, answer) = channel();
    let call: Call = Box::new(move |py| drop(sender.send(code(py))));
    let fault = |_| PyRuntimeError::new_err("the program has a fault; standard error shows its place");
    CALLS.send(call).map_err(|_| PyRuntimeError::new_err("the thread for Python code has ended"))?;
    // The wait releases the lock of a caller that holds it.
    Python::attach(|py| py.detach(move || answer.recv())).map_err(fault)?
}

/// Starts a thread for Python code that asks the program for work and waits for it.
///
/// # Errors
/// Fails if the system starts no thread.
pub(crate) fn start<T: Send + 'static>(
    code: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
) -> std::io::Result<JoinHandle<PyResult<T>>> {
    let work = move || {
        IS_CALLING.set(true);
        Python::attach(code)
    };
    thread::Builder::new().name("fet-attack".into()).stack_size(STACK).spawn(work)
}

/// Failure of Python code where the program expects no error.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// Unwinds because Python code failed where the program expects no error; [`failure`] then returns the description.
pub(crate) fn fail(plugin: &str, error: &PyErr) -> ! {
    let text = told(plugin, error);
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).replace(text.clone());
    // This unwinds without a panic message.
    resume_unwind(Box::new(text))
}

/// Takes the description of the last [`fail`], if there was one.
pub(crate) fn failure() -> Option<String> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take()
}
