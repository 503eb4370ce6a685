//! The hook and the observer of an attack in Python. `fet/attacks.py` adapts the user's objects.

use std::sync::Arc;

use fet_core::attack::{MessageHook, PrimaryObserver};
use fet_core::data::Matrix;
use fet_core::message::{Block, Reply, Request, Round};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::calls::{call, fail};
use crate::plugin::{bytes, floats};

/// Kind of a round, its epoch or step, and its batch.
type SentRound = (&'static str, u64, u32);

fn sent(round: Round) -> SentRound {
    match round {
        Round::Train { step } => ("train", step, 0),
        Round::Validation { epoch, batch } => ("validation", epoch.into(), batch),
        Round::Test { epoch, batch } => ("test", epoch.into(), batch),
        Round::Once { batch } => ("once", 0, batch),
        Round::Average { epoch } => ("average", epoch.into(), 0),
        Round::Probe { batch } => ("probe", 0, batch),
        Round::Predict { batch } => ("predict", 0, batch),
    }
}

/// Values of a message that the user's code changed, and a learning rate.
type Changed = (Option<Vec<u8>>, Option<f64>);

/// Hook of an attacking secondary.
pub(super) struct PythonHook {
    plugin: String,
    hook: Arc<Py<PyAny>>,
    /// Training round and rows of the last representation, whose gradient follows.
    asked: Option<(Round, Vec<u32>)>,
}

impl PythonHook {
    pub(super) fn new(plugin: &str, hook: Py<PyAny>) -> Self {
        Self { plugin: plugin.into(), hook: Arc::new(hook), asked: None }
    }

    /// Calls a method of the hook with a block, and replaces the block by the values that the method leaves.
    fn show(
        &self,
        method: &'static str,
        (round, rows): (Round, Vec<u32>),
        block: &mut Block,
        learning_rate: Option<f64>,
    ) -> Option<f64> {
        let hook = Arc::clone(&self.hook);
        let (shape, values) = (block.shape(), bytes(block.values()));
        let changed = call(move |py| {
            let values = PyBytes::new(py, &values);
            let answer = hook.call_method1(py, method, (sent(round), rows, shape, values, learning_rate))?;
            answer.extract::<Changed>(py)
        });
        let (values, learning_rate) = changed.unwrap_or_else(|error| fail(&self.plugin, &error));
        if let Some(values) = values {
            *block = Block::new(shape, floats(&values)).expect("`fet/attacks.py` checks the shape");
        }
        learning_rate
    }
}

impl MessageHook for PythonHook {
    fn request(&mut self, request: &mut Request) {
        match request {
            Request::Forward(forward) if forward.round.is_training() => {
                self.asked = Some((forward.round, forward.rows.clone()));
            }
            Request::Backward(backward) => {
                if let Some(asked) = self.asked.take_if(|(round, _)| *round == backward.round) {
                    let rate = Some(backward.learning_rate);
                    if let Some(rate) = self.show("gradient", asked, &mut backward.gradient, rate) {
                        backward.learning_rate = rate;
                    }
                }
            }
            _ => {}
        }
    }

    fn reply(&mut self, request: &Request, reply: &mut Reply) {
        if let (Request::Forward(forward), Reply::Representation(block)) = (request, reply) {
            self.show("representation", (forward.round, forward.rows.clone()), block, None);
        }
    }
}

/// Observer of an attacking primary.
pub(super) struct PythonObserver {
    plugin: String,
    observer: Arc<Py<PyAny>>,
}

impl PythonObserver {
    pub(super) fn new(plugin: &str, observer: Py<PyAny>) -> Self {
        Self { plugin: plugin.into(), observer: Arc::new(observer) }
    }

    fn show(&self, code: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>> + Send + 'static) {
        let observer = Arc::clone(&self.observer);
        call(move |py| code(py, &observer).map(drop)).unwrap_or_else(|error| fail(&self.plugin, &error));
    }
}

impl PrimaryObserver for PythonObserver {
    fn received(&mut self, round: Round, rows: &[usize], active: &[usize], parts: &[Block]) {
        let (rows, active) = (rows.to_vec(), active.to_vec());
        let parts: Vec<([usize; 3], Vec<u8>)> =
            parts.iter().map(|part| (part.shape(), bytes(part.values()))).collect();
        self.show(move |py, observer| {
            let parts: Vec<_> =
                parts.into_iter().map(|(shape, values)| (shape, PyBytes::new(py, &values))).collect();
            observer.call_method1(py, "received", (sent(round), rows, active, parts))
        });
    }

    fn predicted(&mut self, round: Round, rows: &[usize], outputs: &Matrix<f32>) {
        let (rows, columns, values) = (rows.to_vec(), outputs.columns(), bytes(outputs.values()));
        self.show(move |py, observer| {
            let outputs = (columns, PyBytes::new(py, &values));
            observer.call_method1(py, "predicted", (sent(round), rows, outputs))
        });
    }
}
