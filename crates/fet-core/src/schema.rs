//! The JSON schema of experiment settings, as their Rust types declare it.
//!
//! One declaration serves three readers: the check of a file before it is read ([`check()`]), the help at the
//! prompt ([`settings`]) and the schema for editors. Doc comments give the meaning, `#[schemars(range(...))]`
//! the range, and `Default` the default. The schema has additional keywords. `x-kinds` holds the plug-ins of
//! a slot with their schemas, and `x-rule` a rule in words for which JSON Schema has no keyword ("a power of
//! two"). `x-optional` marks a setting without a default that a file may leave out.

mod check;
mod settings;
mod tidy;
mod words;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub use check::check;
pub use settings::{LEFT_OUT, Setting, settings};
pub use words::{KINDS, MEANINGS, OPTIONAL, RULE, SOURCE};

/// Returns the schema of a type of settings (JSON Schema, draft 7), without references.
pub fn for_type<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy::tidy(&mut schema);
    schema
}
