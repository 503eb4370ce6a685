//! `fet schema`: prints the JSON schema of an experiment file, a roster or a party's own file, for editors with
//! completion, explanations and error marks.
//!
//! The program reads files by the same schema ([`Experiment::schema`]); this form contains only keywords of
//! JSON Schema. The `kind` of a slot selects its settings with `if` and `then`. The `properties` of a slot
//! name the settings of every plug-in, for completion in editors. The schema of an experiment
//! requires no settings, because a file may extend another file.

use fet_core::experiment::Experiment;
use fet_core::schema::{KINDS, MEANINGS, OPTIONAL, RULE, SOURCE};
use serde_json::{Map, Value, json};

use crate::parties::PartyFileKind;

/// Kind of file whose schema the program prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SchemaFile {
    /// An experiment.
    #[default]
    Experiment,
    /// The roster of a run between organisations.
    Roster,
    /// A party's own file.
    Party,
}

/// Returns the schema of a kind of file (JSON Schema, draft 7).
pub fn of_file(file: SchemaFile) -> Value {
    let (kind, title) = match file {
        SchemaFile::Experiment => return for_editors(),
        SchemaFile::Roster => (PartyFileKind::Roster, "A roster of fet"),
        SchemaFile::Party => (PartyFileKind::Party, "A party's own file of fet"),
    };
    let mut schema = kind.schema();
    plain(&mut schema, Required::Keep);
    schema["title"] = title.into();
    draft_7(schema)
}

/// Returns the schema of an experiment (JSON Schema, draft 7).
pub fn for_editors() -> Value {
    let mut schema = Experiment::schema().clone();
    plain(&mut schema, Required::Remove);
    let properties = &mut schema["properties"];
    properties["device"]["enum"] = fet_backends::NAMES.into();
    properties["extends"] = json!({
        "type": "string",
        "description": "An experiment in the same folder, from which this file lists only its differences.",
    });
    properties["ablation"] = json!({
        "type": "object",
        "description": "The study of `fet study` and `cargo xtask ablate`: seeds, variants, axes.",
    });
    properties["profile"] = json!({
        "type": "object",
        "description": "Smaller forms of the study, by name, such as `quick`.",
    });
    properties["tune"] = json!({
        "type": "object",
        "description": "The search of `fet tune` and `cargo xtask tune`: the settings to draw and the number of candidates.",
    });
    schema["title"] = "An experiment of fet".into();
    let required = json!({ "required": ["name", "data"] });
    schema["if"] = json!({ "required": ["extends"] });
    schema["then"] = Value::Bool(true);
    schema["else"] = required;
    draft_7(schema)
}

/// Puts the keyword that names the version of JSON Schema before all others.
fn draft_7(schema: Value) -> Value {
    let mut whole = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
    if let (Some(whole), Value::Object(words)) = (whole.as_object_mut(), schema) {
        whole.extend(words);
    }
    whole
}

/// Treatment of the settings that a table must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    Keep,
    Remove,
}

/// Replaces the program's own keywords by those of JSON Schema, in this schema and all nested schemas.
fn plain(schema: &mut Value, required: Required) {
    let Some(words) = schema.as_object_mut() else { return };
    if required == Required::Remove {
        words.remove("required");
    }
    for word in [SOURCE, OPTIONAL] {
        words.remove(word);
    }
    if let Some(Value::String(rule)) = words.remove(RULE) {
        let description = words.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{description} It must be {rule}.");
        words.insert("description".into(), description.trim_start().into());
    }
    if let Some(meanings) = words.remove(MEANINGS) {
        words.insert("x-taplo".into(), json!({ "docs": { "enumValues": meanings } }));
    }
    let kinds = words.remove(KINDS);
    for (word, value) in words.iter_mut() {
        match (word.as_str(), value) {
            ("properties", Value::Object(named)) => {
                named.values_mut().for_each(|value| plain(value, required))
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(list)) => {
                list.iter_mut().for_each(|value| plain(value, required))
            }
            ("items" | "additionalProperties", value @ Value::Object(_)) => plain(value, required),
            _ => {}
        }
    }
    if let Some(Value::Object(kinds)) = kinds {
        by_kind(words, kinds, required);
    }
}

/// Selects the settings of a slot by its `kind`, in a chain of `if`, `then` and `else`. A missing `kind`
/// means the default.
fn by_kind(words: &mut Map<String, Value>, kinds: Map<String, Value>, required: Required) {
    let default = words["properties"]["kind"].get("default").cloned();
    let mut chain = Value::Bool(true);
    let mut properties = words["properties"].clone();
    for (kind, mut settings) in kinds.into_iter().rev() {
        plain(&mut settings, required);
        if let Some(own) = settings["properties"].as_object() {
            for (name, setting) in own.iter().filter(|(name, _)| *name != "kind") {
                let known = &mut properties[name.as_str()];
                if known.is_null() {
                    *known = explained(setting, &kind);
                }
            }
        }
        let is_it = if default.as_ref().and_then(Value::as_str) == Some(kind.as_str()) {
            json!({ "properties": { "kind": { "const": kind } } })
        } else {
            json!({ "properties": { "kind": { "const": kind } }, "required": ["kind"] })
        };
        chain = json!({ "if": is_it, "then": settings, "else": chain });
    }
    words.insert("properties".into(), properties);
    if let Value::Object(chain) = chain {
        words.extend(chain);
    }
}

/// Returns the description that an editor shows before the plug-in is known, without constraints on the
/// value.
fn explained(setting: &Value, kind: &str) -> Value {
    let meaning = setting.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut shown = json!({ "description": format!("({kind}) {meaning}") });
    if let Some(default) = setting.get("default") {
        shown["default"] = default.clone();
    }
    // Editors also complete nested tables.
    if let Some(properties) = setting.get("properties") {
        shown["properties"] = properties.clone();
    }
    shown
}
