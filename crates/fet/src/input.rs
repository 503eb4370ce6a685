//! Invalid input of the command, and the device that it computes on.

use fet_backends::Backend;
use fet_train::trainer::Machine;

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

/// What is wrong with JSON, without the names of Rust's types.
pub(crate) fn of_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let types = ["invalid type", "invalid value", "expected struct", "unknown variant"];
    let of_types = types.iter().any(|part| text.contains(part));
    if error.is_data() && of_types {
        return format!("line {} column {} is not what this program writes", error.line(), error.column());
    }
    text
}
