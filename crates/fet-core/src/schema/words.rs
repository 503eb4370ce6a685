//! Keywords that the settings add to JSON Schema, and the rule for a value in words.

use serde_json::Value;

/// The plug-ins of a slot, by name, with the schema of their settings.
pub const KINDS: &str = "x-kinds";

/// The rule for a setting, in words that follow "must be".
pub const RULE: &str = "x-rule";

/// The Rust module that declares the settings of a table.
pub const SOURCE: &str = "x-source";

/// The meaning of each value of `enum`, in the same order.
pub const MEANINGS: &str = "x-meanings";

/// Marks a setting without a default that a file may leave out.
pub const OPTIONAL: &str = "x-optional";

/// Returns the rule for a value of the schema, as a phrase that follows "must be" ("a whole number, at least
/// 1").
pub(super) fn allowed(schema: &Value) -> String {
    if let Some(rule) = schema.get(RULE).and_then(Value::as_str) {
        let bounds = bounds(schema).map_or(String::new(), |bounds| format!(", {bounds}"));
        return match schema.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => format!("{}, {rule}{bounds}", one(schema)),
            _ => format!("{rule}{bounds}"),
        };
    }
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return match names.as_slice() {
            [only] => only.to_string(),
            several => format!("one of {}", list(several)),
        };
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(word).and_then(Value::as_array) {
            return choices.iter().map(allowed).collect::<Vec<_>>().join(", or ");
        }
    }
    match bounds(schema) {
        Some(bounds) => format!("{}, {bounds}", one(schema)),
        None => one(schema),
    }
}

/// Returns the bounds of a number or of a list's length ("at least 1 and at most 8"), if the schema has any.
pub(super) fn bounds(schema: &Value) -> Option<String> {
    let numbers = [
        ("minimum", "at least "),
        ("exclusiveMinimum", "above "),
        ("maximum", "at most "),
        ("exclusiveMaximum", "below "),
    ];
    let found = |(word, phrase): (&str, &str)| {
        schema.get(word).and_then(Value::as_f64).map(|bound| format!("{phrase}{}", number(bound)))
    };
    let bounds: Vec<String> = numbers.into_iter().filter_map(found).collect();
    (!bounds.is_empty()).then(|| bounds.join(" and "))
}

/// Returns the type of a value, in words.
fn one(schema: &Value) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => "a whole number".into(),
        Some("number") => "a number".into(),
        Some("boolean") => "true or false".into(),
        Some("string") if schema.get("minLength").is_some() => "a text that is not empty".into(),
        Some("string") => "a text in quotes".into(),
        Some("array") => {
            let items =
                schema.get("items").map_or_else(String::new, |items| format!(", each {}", allowed(items)));
            let lengths = match (length(schema, "minItems"), length(schema, "maxItems")) {
                (Some(least), Some(most)) if least == most => format!(" of {least}"),
                (Some(1), None) => " that is not empty".into(),
                (Some(least), None) => format!(" of {least} or more"),
                (_, Some(most)) => format!(" of at most {most}"),
                (None, None) => String::new(),
            };
            format!("a list{lengths}{items}")
        }
        Some("object") => "a table of settings".into(),
        _ => "something else".into(),
    }
}

/// Returns the bound of a list's length.
pub(super) fn length(schema: &Value, word: &str) -> Option<u64> {
    schema.get(word).and_then(Value::as_u64)
}

/// Formats a number in its usual form: 1 instead of 1.0.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { value.to_string() }
}

/// Formats names in quotes, separated by commas.
pub(super) fn list(names: &[Value]) -> String {
    names.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}
