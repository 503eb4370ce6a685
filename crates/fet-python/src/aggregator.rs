//! `python`: an aggregator in Python, a module of PyTorch or a class with its own backward pass.
//!
//! The setting `secure` decides what the class sees, and all parties have it in their terms: with `secure`, the secondaries send
//! their parts by secure aggregation, and the class sees only the sum. `fet/aggregation.py` converts the arrays.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use fet_components::aggregators::SecureAverageSettings;
use fet_contract::aggregators;
use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role, SecureSum, Sum};
use fet_core::parameters::host;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_io::input::input;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::{call, fail};
use crate::errors::raised;
use crate::plugin::{self, MODULE, bytes, floats};
use crate::work::wait;

/// Settings of `python`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PythonAggregatorSettings {
    /// Class of the aggregator, as `package.module:Class`.
    pub plugin: String,
    /// SHA-256 of the file with the class, as 64 hexadecimal digits. The aggregator refuses code from a file with another hash.
    pub source: String,
    /// Secure aggregation, for a class that sees only the sum of the representations; without it, the primary sees each
    /// representation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<SecureAverageSettings>,
    /// Arguments of the class.
    #[schemars(schema_with = "plugin::table")]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub options: toml::Table,
}

impl Recipe<dyn Aggregator> for PythonAggregatorSettings {
    fn check(&self) -> Result<(), Violation> {
        plugin::check(&self.plugin)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        let Self { plugin, source, secure, options } = self.clone();
        let sum = secure.map(|secure| secure.form());
        let sums = sum.is_some();
        let made = call(move |py| {
            let new = py.import(MODULE)?.getattr("aggregator_new")?;
            let options = plugin::options(py, &options)?;
            new.call1((plugin, source, options, sums))?.extract::<(Py<PyAny>, bool)>()
        });
        let (module, similarities) = made.map_err(|error| plugin::violation(&error, &self.plugin))?;
        Ok(Box::new(PythonAggregator {
            plugin: self.plugin.clone(),
            module: Arc::new(module),
            similarities,
            sum,
        }))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<PythonAggregatorSettings>("python", "a module of PyTorch, or another class in Python")
}

struct PythonAggregator {
    plugin: String,
    module: Arc<Py<PyAny>>,
    /// True if the secondaries reveal the similarities of the neighbours.
    similarities: bool,
    /// Parameters of the secure aggregation, for a class that sees only the sum.
    sum: Option<SecureSum>,
}

/// Shape of a tensor and its values.
type Array = (Vec<usize>, Vec<u8>);

/// The participants of an aggregation: number of parties, active parties, shapes of the parts, and similarities.
type Described = (usize, Vec<usize>, Vec<[usize; 3]>, Vec<Array>);

fn described(round: &Aggregation) -> Described {
    let similarities = round.similarities.iter().cloned().map(array).collect();
    (round.parties, round.active.clone(), round.shapes.clone(), similarities)
}

fn array<const D: usize>(tensor: Tensor<D>) -> Array {
    (tensor.dims().to_vec(), bytes(&host(tensor)))
}

/// Returns arrays as Python objects: each is its shape and its bytes.
fn shown(py: Python<'_>, arrays: Vec<Array>) -> Vec<(Vec<usize>, Bound<'_, PyBytes>)> {
    arrays.into_iter().map(|(shape, values)| (shape, PyBytes::new(py, &values))).collect()
}

impl PythonAggregator {
    /// Calls a method of the module with arrays and the round, and returns the arrays of the answer.
    fn compute(
        &self,
        method: &'static str,
        given: Vec<Array>,
        round: &Aggregation,
        device: &Device,
    ) -> Vec<Tensor<3>> {
        let module = Arc::clone(&self.module);
        let (parties, active, shapes, similarities) = described(round);
        let answer = call(move |py| {
            let round = (parties, active, shapes, shown(py, similarities));
            let answer = module.call_method1(py, method, (shown(py, given), round))?;
            answer.extract::<Vec<([usize; 3], Vec<u8>)>>(py)
        });
        let answer = answer.unwrap_or_else(|error| fail(&self.plugin, &error));
        let tensor = |(shape, values): ([usize; 3], Vec<u8>)| {
            Tensor::from_data(TensorData::new(floats(&values), shape), device)
        };
        answer.into_iter().map(tensor).collect()
    }

    /// Returns the memory of parts, or of their sum.
    fn memory(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        let device = parts[0].device();
        let given = parts.into_iter().map(array).collect();
        let memory = self.compute("combine", given, round, &device).pop();
        memory.expect("`combine` of `fet/aggregation.py` returns one array")
    }
}

impl Aggregator for PythonAggregator {
    fn width(&self, parties: usize, hidden: usize) -> usize {
        let module = Arc::clone(&self.module);
        let width = call(move |py| module.call_method1(py, "width", (parties, hidden))?.extract::<usize>(py));
        width.unwrap_or_else(|error| fail(&self.plugin, &error))
    }

    fn uses_similarities(&self) -> bool {
        self.similarities
    }

    fn role(&self) -> Role<'_> {
        match self.sum {
            Some(_) => Role::Sum(self),
            None => Role::Combine(self),
        }
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        let device = gradient.device();
        let mut gradients = self.compute("spread", vec![array(gradient)], round, &device);
        match self.sum {
            Some(_) => {
                Gradients::Same(gradients.pop().expect("`spread` of `fet/aggregation.py` returns one array"))
            }
            None => Gradients::Each(gradients),
        }
    }
}

impl Combine for PythonAggregator {
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        self.memory(parts, round)
    }
}

impl Sum for PythonAggregator {
    fn form(&self) -> SecureSum {
        self.sum.expect("the role is a sum only with `secure`")
    }

    fn mean(&self, sum: Tensor<3>, round: &Aggregation) -> Tensor<3> {
        self.memory(vec![sum], round)
    }
}

/// Tests the laws of aggregators on an aggregator with these settings, in JSON, and returns the broken law.
#[pyfunction]
pub(crate) fn check_aggregator(settings: &str, note: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let settings: toml::Table = serde_json::from_str(settings).map_err(|error| raised(&input(error)))?;
    wait(note, move |_| {
        let slot = Slot::<dyn Aggregator>::from_table(settings).map_err(input)?;
        slot.build(&()).map_err(input)?;
        let backend = fet_backends::open("flex").map_err(input)?;
        Ok(plugin::broken_law(|| aggregators::check(&slot, &backend.device)))
    })
}
