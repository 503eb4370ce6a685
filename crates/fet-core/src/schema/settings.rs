//! A flat list of all settings of a schema, for readers: path, meaning, allowed values, default.

use serde_json::Value;

use super::words::{KINDS, MEANINGS, OPTIONAL, SOURCE, allowed};

/// Default of a setting that has no value unless a file gives one.
pub const LEFT_OUT: &str = "left out";

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Name of the setting with the names of the tables around it, and of the plug-in in a slot:
    /// `linker.clk.bits`.
    pub path: String,
    /// Meaning of the setting.
    pub meaning: String,
    /// The allowed values, as a phrase that follows "must be" ("a whole number, at least 1").
    pub allowed: String,
    /// The values with their meanings, if the schema lists them.
    pub choices: Vec<(String, String)>,
    /// The default, as TOML; `None` if the file must give a value.
    pub default: Option<String>,
    /// The Rust module that declares the setting; empty for settings of the experiment itself.
    pub source: String,
    /// Schema of the setting.
    pub schema: Value,
}

/// Returns all settings of a schema, in the order of declaration; `path` is the prefix of their names.
pub fn settings(schema: &Value, path: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    below(schema, &Place { path, defaults: None, source: "" }, &mut found);
    found
}

/// Position of a table of settings in the schema.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    defaults: Option<&'a Value>,
    source: &'a str,
}

fn below(schema: &Value, place: &Place<'_>, found: &mut Vec<Setting>) {
    let source = schema.get(SOURCE).and_then(Value::as_str).unwrap_or(place.source);
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = if place.path.is_empty() { name.clone() } else { format!("{}.{name}", place.path) };
        let default = place.defaults.and_then(|table| table.get(name)).or_else(|| property.get("default"));
        if let Some(kinds) = property.get(KINDS).and_then(Value::as_object) {
            let kind = setting(&format!("{path}.kind"), &property["properties"]["kind"], None, true);
            found.push(Setting { source: source.to_string(), ..kind });
            for (kind, settings) in kinds {
                below(settings, &Place { path: &format!("{path}.{kind}"), defaults: None, source }, found);
            }
            continue;
        }
        let inner = match property.get("type").and_then(Value::as_str) {
            Some("object") => Some(property),
            Some("array") => property.get("items"),
            _ => None,
        };
        match inner.filter(|inner| inner.get("properties").is_some()) {
            Some(inner) => {
                let defaults = default.filter(|default| default.is_object());
                below(inner, &Place { path: &path, defaults, source }, found);
            }
            // The slot lists its `kind` once.
            None if name == "kind" && schema.get(SOURCE).is_some() => {}
            None => {
                let required = required.iter().any(|word| word == name);
                let setting = setting(&path, property, default, required);
                found.push(Setting { source: source.to_string(), ..setting });
            }
        }
    }
}

fn setting(path: &str, schema: &Value, default: Option<&Value>, required: bool) -> Setting {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let list = |word: &str| schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let default =
        match (default.or_else(|| schema.get("default")), schema.get("type").and_then(Value::as_str)) {
            (Some(value), _) => Some(toml_text(value)),
            _ if required => None,
            _ if schema.get(OPTIONAL).is_some() => Some(LEFT_OUT.into()),
            // Such a setting is left out of a file if it is empty.
            (None, Some("string")) if schema.get("enum").is_none() => Some("\"\"".into()),
            (None, Some("array")) => Some("[]".into()),
            (None, Some("object")) => Some("{}".into()),
            (None, _) => Some(LEFT_OUT.into()),
        };
    Setting {
        path: path.to_string(),
        meaning: schema.get("description").map_or_else(String::new, text),
        allowed: allowed(schema),
        choices: list("enum").iter().map(text).zip(list(MEANINGS).iter().map(text)).collect(),
        default,
        source: String::new(),
        schema: schema.clone(),
    }
}

/// Formats a value as in a file.
fn toml_text(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}
