//! Settings that plug-ins in Python share, and their errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fet_core::registry::Violation;
use pyo3::prelude::*;
use schemars::{Schema, SchemaGenerator, json_schema};

pyo3::import_exception!(fet.plugins, Invalid);
pyo3::import_exception!(fet.plugins, Refused);

/// Module of the package that holds the classes.
pub(crate) const MODULE: &str = "fet.plugins";

/// Returns the schema of a table with any settings.
pub(crate) fn table(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": true })
}

/// Checks the form of a class's path.
pub(crate) fn check(plugin: &str) -> Result<(), Violation> {
    match plugin.split_once(':') {
        Some((module, class)) if !module.is_empty() && !class.is_empty() => Ok(()),
        _ => {
            let rule = "must be the module and the name of a class, as \"package.module:Class\"";
            Err(Violation::new("plugin", rule, format!("{plugin:?}")))
        }
    }
}

/// Returns the bytes of 32-bit floats.
pub(crate) fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Returns the 32-bit floats of bytes.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
}

/// Returns the options as a dictionary.
pub(crate) fn options<'py>(py: Python<'py>, options: &toml::Table) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(options).unwrap_or_default();
    py.import("json")?.call_method1("loads", (text,))
}

/// Makes a violation of an exception. `fet.plugins.Refused` has the setting, the rule and the value as its arguments.
pub(crate) fn violation(error: &PyErr, plugin: &str) -> Violation {
    let refused = Python::attach(|py| {
        let refused = error.is_instance_of::<Refused>(py);
        refused
            .then(|| error.value(py).getattr("args")?.extract::<(String, String, String)>())
            .and_then(Result::ok)
    });
    match refused {
        Some((field, rule, value)) => Violation::new(field, rule, value),
        None => Violation::new("plugin", format!("must name a class that works ({error})"), plugin),
    }
}

/// Returns the text of an exception of the package itself, which contains no data of a party.
pub(crate) fn stated(error: &PyErr) -> Option<String> {
    Python::attach(|py| error.is_instance_of::<Invalid>(py).then(|| error.value(py).to_string()))
}

/// Returns the text of an exception for the operator: that of the package itself, or the places of the user's code.
pub(crate) fn told(plugin: &str, error: &PyErr) -> String {
    let text = stated(error).unwrap_or_else(|| described(error));
    if text.contains(plugin) { text } else { format!("{plugin}: {text}") }
}

/// Describes an exception of the user's code with the places of the code.
pub(crate) fn described(error: &PyErr) -> String {
    Python::attach(|py| {
        // Before Python 3.12 the value of an exception has its traceback only after this conversion.
        let value = error.clone_ref(py).into_value(py);
        let text = py.import(MODULE).and_then(|module| module.call_method1("described", (value,)));
        text.map_or_else(|_| error.to_string(), |text| text.to_string())
    })
}

/// Tests laws of the contract suite and returns the message of the first that is broken.
pub(crate) fn broken_law(test: impl FnOnce()) -> Option<String> {
    // A broken law is an answer here, not a fault to report.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let tested = catch_unwind(AssertUnwindSafe(test));
    std::panic::set_hook(hook);
    let panic = tested.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    Some(text.unwrap_or_else(|| "the test failed".into()))
}
