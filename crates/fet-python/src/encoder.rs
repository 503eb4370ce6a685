//! `python`: an encoder in Python, a module of PyTorch or a class with its own backward pass.
//!
//! The parameters and the optimiser stay in the program, as for any other encoder. The class gets the parameters before a forward
//! pass and returns their gradients from the backward pass. `fet/plugins.py` converts the arrays.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use fet_contract::encoders;
use fet_core::encoder::{Encoder, EncoderContext, NeighbourBatch};
use fet_core::model::Pass;
use fet_core::parameters::host;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::Learner;
use fet_io::input::input;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::{call, fail};
use crate::errors::raised;
use crate::learner::{Described, Gradients, PythonLearner};
use crate::plugin::{self, MODULE, bytes, floats};
use crate::work::wait;

/// Settings of `python`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PythonEncoderSettings {
    /// Class of the encoder, as `package.module:Class`.
    pub plugin: String,
    /// SHA-256 of the file with the class, as 64 hexadecimal digits. The encoder refuses code from a file with another hash.
    pub source: String,
    /// Arguments of the class.
    #[schemars(schema_with = "plugin::table")]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub options: toml::Table,
}

impl Recipe<dyn Encoder> for PythonEncoderSettings {
    fn check(&self) -> Result<(), Violation> {
        plugin::check(&self.plugin)
    }

    fn build(&self, context: &EncoderContext<'_>) -> Result<Box<dyn Encoder>, Violation> {
        let Self { plugin, source, options } = self.clone();
        let sizes = (context.key_columns, context.feature_columns, context.shape.hidden, context.neighbours);
        let seed = context.weights.clone().next_u64();
        let made = call(move |py| {
            let new = py.import(MODULE)?.getattr("encoder_new")?;
            let options = plugin::options(py, &options)?;
            new.call1((plugin, source, options, sizes, seed))?.extract::<(Py<PyAny>, Described)>()
        });
        let (module, described) = made.map_err(|error| plugin::violation(&error, &self.plugin))?;
        Ok(Box::new(PythonEncoder {
            plugin: self.plugin.clone(),
            module: Arc::new(module),
            learner: PythonLearner::new(described, context.optimizer.clone()),
            sees_keys: context.key_columns > 0,
            hidden: context.shape.hidden,
            device: context.device.clone().without_autodiff(),
        }))
    }
}

inventory::submit! {
    Plugin::<dyn Encoder>::new::<PythonEncoderSettings>("python", "a module of PyTorch, or another class in Python")
}

struct PythonEncoder {
    plugin: String,
    module: Arc<Py<PyAny>>,
    learner: PythonLearner,
    /// False if the method's models see no keys, although a batch has them.
    sees_keys: bool,
    /// H, the width of the representation.
    hidden: usize,
    device: Device,
}

impl Encoder for PythonEncoder {
    fn learner(&self) -> &dyn Learner {
        &self.learner
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.learner
    }

    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3> {
        let seed = pass.stream().cloned().map(|mut stream| {
            let seed = stream.next_u64();
            pass.resume(stream);
            seed
        });
        let (rows, neighbours) = (batch.rows, batch.neighbours);
        let slots: Vec<i64> = batch.slots.clone().into_data().iter::<i64>().collect();
        let slots: Vec<u8> = slots.into_iter().flat_map(i64::to_ne_bytes).collect();
        let [records, key_columns] = batch.keys.dims();
        let (keys, key_columns) = match self.sees_keys {
            true => (host(batch.keys.clone()), key_columns),
            false => (Vec::new(), 0),
        };
        let sizes = ([records, key_columns], batch.features.dims(), [rows, neighbours, self.hidden]);
        let arrays = [self.learner.bytes(), bytes(&keys), bytes(&host(batch.features.clone())), slots];
        let module = Arc::clone(&self.module);
        let found = call(move |py| {
            let arrays = arrays.map(|array| PyBytes::new(py, &array));
            module.call_method1(py, "run", (arrays, sizes, seed, tracked))?.extract::<Vec<u8>>(py)
        });
        let values = floats(&found.unwrap_or_else(|error| fail(&self.plugin, &error)));
        Tensor::from_data(TensorData::new(values, [rows, neighbours, self.hidden]), &self.device)
    }

    fn backward(&mut self, gradient: Tensor<3>) {
        let module = Arc::clone(&self.module);
        let shape = gradient.dims();
        let gradient = bytes(&host(gradient));
        let found = call(move |py| {
            let gradient = PyBytes::new(py, &gradient);
            let found = module.call_method1(py, "learn", (gradient, shape))?;
            found.extract::<Gradients>(py)
        });
        let found = found.unwrap_or_else(|error| fail(&self.plugin, &error));
        self.learner.learn(&found);
    }
}

/// Tests the laws of encoders on an encoder with these settings, in JSON, and returns the broken law.
#[pyfunction]
pub(crate) fn check_encoder(settings: &str, note: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let settings: toml::Table = serde_json::from_str(settings).map_err(|error| raised(&input(error)))?;
    wait(note, move |_| {
        let slot = Slot::<dyn Encoder>::from_table(settings).map_err(input)?;
        let backend = fet_backends::open("flex").map_err(input)?;
        Ok(plugin::broken_law(|| encoders::check(&slot, &backend.device)))
    })
}
