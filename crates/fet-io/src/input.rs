//! Errors about invalid input, and the device of the computation.

/// The input of a command is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// Makes an [`InputError`] of a message.
pub fn input(error: impl std::fmt::Display) -> anyhow::Error {
    InputError(error.to_string()).into()
}

/// Returns the name of the field that an error calls missing.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.split_once('`').map(|(field, _)| field)
}

/// Describes an error in JSON without the names of Rust's types.
pub fn of_json(error: &serde_json::Error) -> String {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Eof => format!("it is cut off at {place}"),
        serde_json::error::Category::Syntax => format!("it is not JSON at {place}"),
        serde_json::error::Category::Data => match missing(&error.to_string()) {
            Some(field) => format!("this program did not write it: the field `{field}` is missing"),
            None => format!("this program did not write the value at {place}"),
        },
        serde_json::error::Category::Io => error.to_string(),
    }
}
