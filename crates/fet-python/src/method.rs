//! `python`: a method whose model at the primary is in Python, a module of PyTorch or a class with its own backward pass.
//!
//! Everything else is that of another method, `inner`: what the secondaries compute, which neighbours they represent, and the
//! optimiser. The program computes the loss; `fet/modules.py` converts the arrays.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use fet_contract::methods;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, Slots, TrainOutcome,
};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::host;
use fet_core::registry::{Plugin, Recipe, Slot, Violation, schema_of_inner};
use fet_core::trainable::Learner;
use fet_io::input::input;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::calls::{call, fail};
use crate::errors::raised;
use crate::learner::{Described, Gradients, PythonLearner};
use crate::plugin::{self, MODULE, bytes, floats};
use crate::work::wait;

const KIND: &str = "python";

/// Settings of `python`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PythonMethodSettings {
    /// Class of the primary's model, as `package.module:Class`.
    pub plugin: String,
    /// SHA-256 of the file with the class, as 64 hexadecimal digits. The method refuses code from a file with another hash.
    pub source: String,
    /// The method of the secondaries, with its optimiser; only its model at the primary is not used.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Method>,
    /// Arguments of the class.
    #[schemars(schema_with = "plugin::table")]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub options: toml::Table,
}

/// Returns true for the kinds of methods whose secondaries another model at the primary can use.
fn is_inner(kind: &str) -> bool {
    let at_once = kind == "fet-trees" || kind.starts_with("gbdt-") || kind.starts_with("linear-");
    !at_once && !kind.starts_with("with-") && kind != "fedsim" && kind != KIND
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Method>("The method of the secondaries; its settings follow its kind.", is_inner)
}

impl Default for PythonMethodSettings {
    fn default() -> Self {
        Self {
            plugin: String::new(),
            source: String::new(),
            inner: Slot::with_defaults("fet").expect("a crate that this one is built on registers it"),
            options: toml::Table::new(),
        }
    }
}

impl Recipe<dyn Method> for PythonMethodSettings {
    fn check(&self) -> Result<(), Violation> {
        plugin::check(&self.plugin)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        let inner = self.inner.build_inner(&())?;
        let plan = inner.plan();
        if !is_inner(self.inner.kind()) || plan.at_once.is_some() || plan.similarities {
            let rule = "must be a method that trains its model at the primary by gradients of the memory alone, as \"fet\" does";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
        }
        if let Some(averaged) = plan.averaged {
            let rule = "must be 0: only the secondaries have positional encodings here";
            return Err(Violation::new(format!("inner.{}", averaged.setting), rule, averaged.every));
        }
        let (plugin, source) = (self.plugin.clone(), self.source.clone());
        let found = call(move |py| {
            py.import(MODULE)?.getattr("method_about")?.call1((plugin, source))?;
            Ok(())
        });
        found.map_err(|error| plugin::violation(&error, &self.plugin))?;
        Ok(Box::new(PythonMethod { settings: self.clone(), inner }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<PythonMethodSettings>(
        KIND,
        "another method with a model at the primary in Python, a module of PyTorch or another class",
    )
}

struct PythonMethod {
    settings: PythonMethodSettings,
    inner: Box<dyn Method>,
}

impl Method for PythonMethod {
    fn plan(&self) -> Plan {
        let plan = self.inner.plan();
        // A class may depend on the number of positions.
        Plan { any_neighbours: plan.any_neighbours && plan.pooled, ..plan }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        self.inner.check(slots)
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let PythonMethodSettings { plugin, source, options, .. } = self.settings.clone();
        let memory = match self.plan().secondaries {
            true => [context.positions, context.memory_width],
            false => [0, 0],
        };
        let sizes = (context.key_columns, context.feature_columns, memory, context.objective.outputs);
        let seed = context.weights.clone().next_u64();
        let made = call(move |py| {
            let new = py.import(MODULE)?.getattr("method_new")?;
            let options = plugin::options(py, &options)?;
            new.call1((plugin, source, options, sizes, seed))?.extract::<(Py<PyAny>, Described)>()
        });
        let (module, described) =
            made.map_err(|error| plugin::violation(&error, &self.settings.plugin).within("method"))?;
        Ok(Box::new(PythonPrimary {
            plugin: self.settings.plugin.clone(),
            module: Arc::new(module),
            learner: PythonLearner::new(described, self.plan().optimizer),
            objective: context.objective,
            device: context.device.clone().without_autodiff(),
        }))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        self.inner.secondary(encoder, context)
    }
}

/// The primary's half.
struct PythonPrimary {
    plugin: String,
    module: Arc<Py<PyAny>>,
    learner: PythonLearner,
    objective: Objective,
    device: Device,
}

impl PythonPrimary {
    /// Returns the output of a batch before its activation; a training pass has a seed.
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, seed: Option<u64>) -> Tensor<2> {
        let rows = batch.keys.dims()[0];
        let memory = memory.map(|memory| memory.tensor.clone());
        let shape = memory.as_ref().map_or([rows, 0, 0], Tensor::dims);
        let shape = (batch.keys.dims(), batch.features.dims(), shape);
        let arrays = [
            self.learner.bytes(),
            bytes(&host(batch.keys.clone())),
            bytes(&host(batch.features.clone())),
            bytes(&memory.map(host).unwrap_or_default()),
        ];
        let module = Arc::clone(&self.module);
        let found = call(move |py| {
            let arrays = arrays.map(|array| PyBytes::new(py, &array));
            module.call_method1(py, "run", (arrays, shape, seed))?.extract::<Vec<u8>>(py)
        });
        let values = floats(&found.unwrap_or_else(|error| fail(&self.plugin, &error)));
        Tensor::from_data(TensorData::new(values, [rows, self.objective.outputs]), &self.device)
    }

    /// Passes the gradient of the output back, and returns that of the memory.
    fn backward(&mut self, gradient: Tensor<2>, shape: [usize; 3]) -> Tensor<3> {
        let module = Arc::clone(&self.module);
        let of_output = gradient.dims();
        let gradient = bytes(&host(gradient));
        let found = call(move |py| {
            let gradient = PyBytes::new(py, &gradient);
            let found = module.call_method1(py, "learn", (gradient, of_output, shape))?;
            found.extract::<(Gradients, Vec<u8>)>(py)
        });
        let (gradients, of_memory) = found.unwrap_or_else(|error| fail(&self.plugin, &error));
        self.learner.learn(&gradients);
        Tensor::from_data(TensorData::new(floats(&of_memory), shape), &self.device)
    }
}

impl Primary for PythonPrimary {
    fn learner(&self) -> &dyn Learner {
        &self.learner
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.learner
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        let seed = pass.stream().cloned().map(|mut stream| {
            let seed = stream.next_u64();
            pass.resume(stream);
            seed
        });
        // The graph of the program begins at the output; that of the class ends there.
        let scores = self.forward(batch, memory.as_ref(), seed.or(Some(0))).autodiff().require_grad();
        let output = self.objective.activate(scores.clone());
        let loss = self.objective.loss(output.clone(), &batch.labels, &batch.weights);
        let gradient = scores.grad(&loss.backward()).expect("the loss depends on the output");
        let shape = memory.as_ref().map(|memory| memory.tensor.dims());
        let of_memory = self.backward(gradient, shape.unwrap_or([scores.dims()[0], 0, 0]));
        TrainOutcome {
            loss: f64::from(host(loss.without_autodiff())[0]),
            memory_gradient: shape.map(|_| of_memory),
            output: output.without_autodiff(),
        }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.objective.activate(self.forward(batch, memory.as_ref(), None))
    }
}

/// Tests the laws of methods on a method with these settings, in JSON, and returns the broken law.
#[pyfunction]
pub(crate) fn check_method(settings: &str, note: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let settings: toml::Table = serde_json::from_str(settings).map_err(|error| raised(&input(error)))?;
    wait(note, move |_| {
        let slot = Slot::<dyn Method>::from_table(settings).map_err(input)?;
        slot.build(&()).map_err(input)?;
        let backend = fet_backends::open("flex").map_err(input)?;
        Ok(plugin::broken_law(|| methods::check(&slot, &backend.device)))
    })
}
