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

/// Describes an exception of the user's code with the places of the code.
pub(crate) fn described(error: &PyErr) -> String {
    Python::attach(|py| {
        let text = py.import(MODULE).and_then(|module| module.call_method1("described", (error.value(py),)));
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
