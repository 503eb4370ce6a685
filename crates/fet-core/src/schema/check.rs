//! Checks a table against a schema before it is read; reports the first fault in words for the author of the
//! table.

use fet_eval::did_you_mean;
use serde_json::Value;
use toml::Value as Toml;

use super::words::{KINDS, RULE, allowed, bounds, length, list};
use crate::registry::error::{SettingsError, Violation};

/// Maximum length of a value that a message repeats, in characters.
const LONGEST: usize = 60;

/// Refuses a table that the schema does not allow. The error names the setting by its path from the table.
pub fn check(table: &toml::Table, schema: &Value) -> Result<(), SettingsError> {
    object("", table, schema, "")
}

fn walk(path: &str, value: &Toml, schema: &Value) -> Result<(), SettingsError> {
    if let Some(kinds) = schema.get(KINDS) {
        let Toml::Table(table) = value else { return refuse(path, "a table of settings", value) };
        return slot(path, table, schema, kinds);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(word).and_then(Value::as_array) {
            return any(path, value, schema, choices);
        }
    }
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return choice(path, value, names);
    }
    match (schema.get("type").and_then(Value::as_str), value) {
        (Some("integer"), Toml::Integer(number)) => within(path, *number as f64, value, schema),
        (Some("number"), Toml::Integer(number)) => within(path, *number as f64, value, schema),
        (Some("number"), Toml::Float(number)) if number.is_finite() => within(path, *number, value, schema),
        (Some("boolean"), Toml::Boolean(_)) => Ok(()),
        (Some("string"), Toml::String(text)) => match length(schema, "minLength") {
            Some(least) if (text.chars().count() as u64) < least => refuse(path, &allowed(schema), value),
            _ => Ok(()),
        },
        (Some("array"), Toml::Array(items)) => array(path, items, value, schema),
        (Some("object"), Toml::Table(table)) => object(path, table, schema, ""),
        (None, _) => Ok(()),
        (Some(_), _) => refuse(path, &allowed(schema), value),
    }
}

/// Checks the table of a slot against the settings of the plug-in that its `kind` names.
fn slot(path: &str, table: &toml::Table, schema: &Value, kinds: &Value) -> Result<(), SettingsError> {
    let place = below(path, "kind");
    let kind = match (table.get("kind"), schema["properties"]["kind"].get("default")) {
        (Some(Toml::String(kind)), _) => kind.as_str(),
        (Some(other), _) => return refuse(&place, "a text in quotes", other),
        (None, Some(Value::String(default))) => default,
        // A missing kind is filled in later.
        (None, _) => return Ok(()),
    };
    match kinds.get(kind) {
        Some(settings) => object(path, table, settings, kind),
        None => {
            let names = schema["properties"]["kind"]["enum"].as_array().map_or(&[][..], Vec::as_slice);
            choice(&place, &Toml::String(kind.to_string()), names)
        }
    }
}

fn any(path: &str, value: &Toml, schema: &Value, choices: &[Value]) -> Result<(), SettingsError> {
    let results: Vec<_> = choices.iter().map(|choice| walk(path, value, choice)).collect();
    if results.iter().any(Result::is_ok) {
        return Ok(());
    }
    // The fault within the one choice of this type is more helpful than the list of all choices.
    let same_type = |choice: &&Value| {
        let name = choice.get("type").and_then(Value::as_str);
        matches!((name, value), (Some("object"), Toml::Table(_)) | (Some("array"), Toml::Array(_)))
    };
    match choices.iter().position(|choice| same_type(&choice)) {
        Some(at) => results.into_iter().nth(at).unwrap_or(Ok(())),
        None => refuse(path, &allowed(schema), value),
    }
}

fn choice(path: &str, value: &Toml, names: &[Value]) -> Result<(), SettingsError> {
    let known = names.iter().filter_map(Value::as_str);
    match value {
        Toml::String(name) if known.clone().any(|known| known == name) => Ok(()),
        Toml::String(name) => {
            let hint = did_you_mean(name, known);
            let rule = format!("must be one of {}", list(names));
            Err(Violation::new(path, rule, format!("{}{hint}", shown(value))).into())
        }
        other => refuse(path, &format!("one of {}", list(names)), other),
    }
}

fn array(path: &str, items: &[Toml], value: &Toml, schema: &Value) -> Result<(), SettingsError> {
    let count = items.len() as u64;
    if length(schema, "minItems").is_some_and(|least| count < least)
        || length(schema, "maxItems").is_some_and(|most| count > most)
    {
        return refuse(path, &allowed(schema), value);
    }
    let Some(each) = schema.get("items") else { return Ok(()) };
    items.iter().enumerate().try_for_each(|(at, item)| walk(&format!("{path}[{at}]"), item, each))
}

/// Checks a table of settings; `kind` is the plug-in that they belong to, if any.
fn object(path: &str, table: &toml::Table, schema: &Value, kind: &str) -> Result<(), SettingsError> {
    let none = serde_json::Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let others = schema.get("additionalProperties");
    for (name, value) in table {
        let place = below(path, name);
        match (known.get(name), others) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => walk(&place, value, schema)?,
            (None, Some(Value::Bool(false))) => {
                let hint = did_you_mean(name, known.keys().map(String::as_str));
                let known = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                let of = if kind.is_empty() { String::new() } else { format!(" of \"{kind}\"") };
                return Err(SettingsError::Unknown { field: place, of, hint, known });
            }
            _ => {}
        }
    }
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for name in required.iter().filter_map(Value::as_str) {
        if !table.contains_key(name) {
            let what = known.get(name).map_or_else(String::new, allowed);
            return Err(SettingsError::Missing { field: below(path, name), what });
        }
    }
    Ok(())
}

fn within(path: &str, number: f64, value: &Toml, schema: &Value) -> Result<(), SettingsError> {
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let right = bound("minimum").is_none_or(|least| number >= least)
        && bound("maximum").is_none_or(|most| number <= most)
        && bound("exclusiveMinimum").is_none_or(|least| number > least)
        && bound("exclusiveMaximum").is_none_or(|most| number < most);
    if right {
        return Ok(());
    }
    let rule = schema.get(RULE).and_then(Value::as_str).map_or(String::new(), |rule| format!(", {rule}"));
    refuse(path, &format!("{}{rule}", bounds(schema).unwrap_or_default()), value)
}

fn refuse(path: &str, allowed: &str, value: &Toml) -> Result<(), SettingsError> {
    Err(Violation::new(path, format!("must be {allowed}"), shown(value)).into())
}

/// Formats a value as in a file, shortened.
fn shown(value: &Toml) -> String {
    let text = match value {
        Toml::Table(_) => "a table".to_string(),
        Toml::Array(items) if items.iter().any(|item| matches!(item, Toml::Table(_) | Toml::Array(_))) => {
            format!("a list of {}", items.len())
        }
        Toml::String(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
        None => text,
    }
}

/// Returns the path of a setting in a table.
fn below(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let name = if plain { name.to_string() } else { shown(&Toml::String(name.to_string())) };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::MEANINGS;

    fn schema() -> Value {
        let clk = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "kind": {},
                "bits": { "type": "integer", "minimum": 128, "maximum": 65536, RULE: "a power of two" },
                "weights": { "type": "array", "items": { "type": "number", "minimum": 0 } },
            },
        });
        json!({
            "type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 1 },
                "rate": { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
                "decay": { "type": "string", "enum": ["plateau", "cosine"], MEANINGS: ["", ""] },
                "on": { "type": "boolean" },
                "class_weights": { "anyOf": [
                    { "type": "string", "enum": ["none", "balanced"] },
                    { "type": "array", "items": { "type": "number", "minimum": 0 }, "minItems": 2 },
                ] },
                "linker": { "type": "object", "properties": { "kind": { "enum": ["clk"] } }, KINDS: { "clk": clk } },
                "columns": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        })
    }

    #[test]
    fn each_fault_is_said_in_words() {
        for (text, expected) in [
            ("", "`name` is missing; it must be a text that is not empty"),
            ("name = ''", "`name` must be a text that is not empty; it is \"\""),
            ("name = 1", "`name` must be a text that is not empty; it is 1"),
            ("rat = 1", "`rat` is not a setting; did you mean \"rate\"?"),
            ("zzzzzz = 1", "`zzzzzz` is not a setting; the settings are name, rate, decay"),
            ("rate = 0", "`rate` must be above 0 and at most 1; it is 0"),
            ("rate = nan", "`rate` must be a number, above 0 and at most 1; it is nan"),
            ("rate = 'a'", "`rate` must be a number, above 0 and at most 1; it is \"a\""),
            ("on = 1", "`on` must be true or false; it is 1"),
            (
                "decay = 'cosin'",
                "`decay` must be one of \"plateau\", \"cosine\"; it is \"cosin\"; did you mean \"cosine\"?",
            ),
            ("decay = 3", "`decay` must be one of \"plateau\", \"cosine\"; it is 3"),
            (
                "class_weights = 'all'",
                "`class_weights` must be one of \"none\", \"balanced\", or a list of 2 or more, each a number",
            ),
            ("class_weights = [1, -1]", "`class_weights[1]` must be at least 0; it is -1"),
            ("class_weights = [1]", "`class_weights` must be a list of 2 or more"),
            ("linker = 1", "`linker` must be a table of settings; it is 1"),
            (
                "linker.kind = 'clkk'",
                "`linker.kind` must be one of \"clk\"; it is \"clkk\"; did you mean \"clk\"?",
            ),
            (
                "linker = { kind = 'clk', bits = 64 }",
                "`linker.bits` must be at least 128 and at most 65536, a power of two; it is 64",
            ),
            (
                "linker = { kind = 'clk', bits = 200.5 }",
                "`linker.bits` must be a whole number, a power of two",
            ),
            (
                "linker = { kind = 'clk', bit = 6 }",
                "`linker.bit` is not a setting of \"clk\"; did you mean \"bits\"?",
            ),
            (
                "linker = { kind = 'clk', weights = [[1]] }",
                "`linker.weights[0]` must be a number, at least 0; it is [1]",
            ),
            ("columns.\"a\\nb\" = 1", "`columns.\"a\\nb\"` must be a text in quotes; it is 1"),
        ] {
            let table: toml::Table = text.parse().expect("TOML");
            let error = check(&table, &schema()).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }

    #[test]
    fn what_is_right_passes() {
        let text = "name = 'a'\nrate = 1\ndecay = 'cosine'\non = true\nclass_weights = 'balanced'\ncolumns.x = 'text'\n\
                    linker = { kind = 'clk', bits = 256, weights = [0, 1.5] }";
        check(&text.parse().expect("TOML"), &schema()).expect("right");
    }

    #[test]
    fn long_values_are_shortened() {
        let table = format!("name = 'a'\nrate = '{}'", "x".repeat(100_000)).parse().expect("TOML");
        assert!(check(&table, &schema()).expect_err("no number").to_string().len() < 300);
    }
}
