//! Questions of an attack's code, and the runs that answer them.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use fet_core::attack::{AttackEnvironment, AttackError, MessageHook, PrimaryObserver, Run, Trained};
use fet_core::data::{Matrix, PartyTable, VerticalData};
use fet_core::registry::Violation;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::messages::{PythonHook, PythonObserver};
use crate::cells::Cells;
use crate::plugin::{bytes, floats};

pyo3::import_exception!(fet.plugins, Stopped);

/// Question of the attack's code, which the thread of the program answers.
type Ask = Box<dyn FnOnce(&mut Stage<'_>) + Send>;

/// Message of the attack's code to the thread of the program.
pub(super) enum Event {
    /// A question.
    Ask(Ask),
    /// The code has ended.
    Done,
}

/// The environment of an attack and its runs.
pub(super) struct Stage<'a> {
    pub(super) environment: &'a mut dyn AttackEnvironment,
    /// Runs that the attack's code still uses, by number.
    pub(super) runs: BTreeMap<usize, Box<dyn Trained>>,
    /// Number of the next run.
    pub(super) next: usize,
    /// First failure; it ends the attack, also if the code continues.
    pub(super) failure: Option<AttackError>,
}

impl Stage<'_> {
    fn run(&mut self, number: usize) -> Result<&mut Box<dyn Trained>, AttackError> {
        let missing = || AttackError::Code(format!("run {number} of the attack does not exist"));
        self.runs.get_mut(&number).ok_or_else(missing)
    }
}

/// The part of the environment that `fet/attacks.py` calls.
#[pyclass(frozen, module = "fet._fet")]
pub(super) struct AttackBridge {
    pub(super) events: Sender<Event>,
    /// Class of the attack, for messages.
    pub(super) plugin: String,
    /// Number of the attacking secondary, or of the attacked one, from 1.
    pub(super) party: usize,
}

/// A run that the attack's code asks for. `fet/attacks.py` has checked the numbers of parties and the shapes.
#[derive(FromPyObject)]
struct AskedRun {
    hook: Option<Py<PyAny>>,
    observer: Option<Py<PyAny>>,
    /// Labels that replace those of the experiment, as 64-bit floats.
    labels: Option<Vec<u8>>,
    /// Features that replace those of a party, 0 for the primary: number of columns and 32-bit floats.
    features: BTreeMap<usize, (usize, Vec<u8>)>,
    /// Records that a secondary keeps.
    records: BTreeMap<usize, Vec<usize>>,
    /// Secondary, and its features for the test.
    tested: Option<(usize, usize, Vec<u8>)>,
    quiet: bool,
    untrained: bool,
    withhold: bool,
}

impl AskedRun {
    /// Returns the tables with the changes of the attack, or `None` if it changes none.
    fn tables(&self, data: &VerticalData) -> Option<VerticalData> {
        if self.labels.is_none() && self.features.is_empty() && self.records.is_empty() {
            return None;
        }
        let mut data = data.clone();
        if let Some(labels) = &self.labels {
            data.labels = labels.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect();
        }
        for (&party, (columns, values)) in &self.features {
            if let Some(table) = table_mut(&mut data, party) {
                table.features = Matrix::new(*columns, floats(values)).into();
            }
        }
        for (&party, kept) in &self.records {
            if let Some(table) = table_mut(&mut data, party) {
                table.keys = table.keys.select_rows(kept);
                table.features = table.features.select_rows(kept);
            }
        }
        Some(data)
    }
}

fn table_mut(data: &mut VerticalData, party: usize) -> Option<&mut PartyTable> {
    match party.checked_sub(1) {
        None => Some(&mut data.primary),
        Some(secondary) => data.secondaries.get_mut(secondary),
    }
}

/// Features of a table: number of columns and 32-bit floats.
type Floats<'py> = (usize, Bound<'py, PyBytes>);

/// The labels as 64-bit floats, and keys and features of each party, the primary first.
type Tables<'py> = (Bound<'py, PyBytes>, Vec<(Bound<'py, PyAny>, usize, Floats<'py>)>);

fn shown<'py>(py: Python<'py>, table: &Matrix<f32>) -> Floats<'py> {
    (table.columns(), PyBytes::new(py, &bytes(table.values())))
}

impl AttackBridge {
    /// Has the thread of the program answer a question, and waits for the answer without the interpreter's lock.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Stage<'_>) -> Result<T, AttackError> + Send + 'static,
    ) -> PyResult<T> {
        let ended = || Stopped::new_err("the attack has ended");
        let (sender, answer) = channel();
        let ask = move |stage: &mut Stage<'_>| {
            // After a failure no question is answered, so that the code ends.
            let answer = match &stage.failure {
                Some(failure) => Err(failure.to_string()),
                None => work(stage).map_err(|error| {
                    let text = error.to_string();
                    stage.failure = Some(error);
                    text
                }),
            };
            drop(sender.send(answer));
        };
        self.events.send(Event::Ask(Box::new(ask))).map_err(|_| ended())?;
        py.detach(move || answer.recv()).map_err(|_| ended())?.map_err(Stopped::new_err)
    }
}

#[pymethods]
impl AttackBridge {
    /// Number of the attacking secondary, or of the attacked one, from 1.
    #[getter]
    fn party(&self) -> usize {
        self.party
    }

    /// Returns the tables of all parties.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Tables<'py>> {
        let (labels, tables) = self.ask(py, |stage| {
            let data = stage.environment.data();
            let labels: Vec<u8> = data.labels.iter().flat_map(|label| label.to_ne_bytes()).collect();
            let mut tables = Vec::new();
            for table in std::iter::once(&data.primary).chain(&data.secondaries) {
                let features = table.features.numbers().cloned().ok_or_else(|| {
                    let rule = "must be a kind with only numeric tables for this attack";
                    AttackError::Refused(Violation::new("data", rule, "typed columns"))
                })?;
                tables.push((Cells::new(&table.keys), features));
            }
            Ok((labels, tables))
        })?;
        let table = |(keys, features): (Cells, Matrix<f32>)| {
            let (keys, columns) = keys.python(py)?;
            Ok((keys, columns, shown(py, &features)))
        };
        Ok((PyBytes::new(py, &labels), tables.into_iter().map(table).collect::<PyResult<_>>()?))
    }

    /// Trains a run and returns its number.
    fn train(&self, py: Python<'_>, asked: &Bound<'_, PyAny>) -> PyResult<usize> {
        let asked: AskedRun = asked.extract()?;
        let (plugin, party) = (self.plugin.clone(), self.party);
        self.ask(py, move |stage| {
            let data = asked.tables(stage.environment.data());
            let tested =
                asked.tested.map(|(party, columns, values)| (party, Matrix::new(columns, floats(&values))));
            let hook = asked.hook.map(|hook| -> (usize, Arc<Mutex<dyn MessageHook>>) {
                (party, Arc::new(Mutex::new(PythonHook::new(&plugin, hook))))
            });
            let observer = asked.observer.map(|observer| -> Arc<Mutex<dyn PrimaryObserver>> {
                Arc::new(Mutex::new(PythonObserver::new(&plugin, observer)))
            });
            let (quiet, untrained, withhold) = (asked.quiet, asked.untrained, asked.withhold);
            let trained =
                stage.environment.train(Run { hook, observer, data, tested, quiet, untrained, withhold })?;
            let number = stage.next;
            stage.next += 1;
            stage.runs.insert(number, trained);
            Ok(number)
        })
    }

    /// Frees a run.
    fn forget(&self, run: usize) {
        let forget = move |stage: &mut Stage<'_>| drop(stage.runs.remove(&run));
        drop(self.events.send(Event::Ask(Box::new(forget))));
    }

    /// Returns the test metric of a run, and its training, validation and test rows.
    fn described(&self, py: Python<'_>, run: usize) -> PyResult<(f64, [Vec<usize>; 3])> {
        self.ask(py, move |stage| {
            let run = stage.run(run)?;
            Ok((run.metric(), run.rows().map(<[usize]>::to_vec)))
        })
    }

    /// Returns columns for these rows: the "features" or "keys" of the nearest record, the "encoded" representation, or the
    /// primary's "own" columns.
    fn columns<'py>(
        &self,
        py: Python<'py>,
        run: usize,
        which: String,
        party: usize,
        rows: Vec<usize>,
    ) -> PyResult<Floats<'py>> {
        let found = self.ask(py, move |stage| {
            let run = stage.run(run)?;
            match which.as_str() {
                "features" => run.features(party, &rows),
                "keys" => run.keys(party, &rows),
                "encoded" => run.encoded(party, &rows),
                _ => Ok(run.own_columns(&rows)),
            }
        })?;
        Ok(shown(py, &found))
    }

    /// Returns the records that are shown for each of these rows, most similar first.
    fn shown(&self, py: Python<'_>, run: usize, party: usize, rows: Vec<usize>) -> PyResult<Vec<Vec<usize>>> {
        self.ask(py, move |stage| stage.run(run)?.shown(party, &rows))
    }

    /// Returns the similarity of the most similar record of each row, if the linker gives similarities.
    fn similarity(
        &self,
        py: Python<'_>,
        run: usize,
        party: usize,
        rows: Vec<usize>,
    ) -> PyResult<Option<Vec<f32>>> {
        self.ask(py, move |stage| stage.run(run)?.similarity(party, &rows))
    }
}
