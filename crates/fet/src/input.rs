//! Invalid input of the command, and the device that it computes on.

use fet_backends::Backend;
use fet_federation::trainer::Machine;

/// The input of a command is invalid: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// An error that the input is at fault for.
pub(crate) fn input(error: impl std::fmt::Display) -> anyhow::Error {
    InputError(error.to_string()).into()
}

/// The backend for the trainer.
pub fn machine(backend: &Backend) -> Machine {
    let Backend { device, on_host, party_threads, .. } = backend.clone();
    Machine { device, on_host, party_threads }
}

/// The field that an error says is missing.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.split_once('`').map(|(field, _)| field)
}

/// What is wrong with JSON, without the names of Rust's types.
pub(crate) fn of_json(error: &serde_json::Error) -> String {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Eof => format!("it is cut off at {place}"),
        serde_json::error::Category::Syntax => format!("it is no JSON at {place}"),
        serde_json::error::Category::Data => match missing(&error.to_string()) {
            Some(field) => format!("it is not what this program writes: the field `{field}` is missing"),
            None => format!("what is at {place} is not what this program writes"),
        },
        serde_json::error::Category::Io => error.to_string(),
    }
}
