//! JSON values with their paths, so that each error names its place. Only the
//! errors name the schema.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// Reason for refusing a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    Json(String),
    /// The schema has an earlier version.
    #[error(
        "the schema has version {0}, but only version 3 is supported: convert it with clkhash's function \
         clkhash.schema.convert_to_latest_version, which preserves the encoding"
    )]
    Old(u8),
    /// A property is missing.
    #[error("{path}: the property {property} is missing")]
    Missing {
        /// Path of the object without the property, from the root `$`.
        path: String,
        /// Name of the property.
        property: String,
    },
    /// A value breaks a rule.
    #[error("{path}: {rule}; it is {value}")]
    Rule {
        /// Path of the value, from the root `$`.
        path: String,
        /// Rule for every value at this path.
        rule: String,
        /// The value.
        value: String,
    },
}

/// A value and its path.
pub(super) struct Node<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    /// Returns the node of the whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: "$".into(), value }
    }

    /// Returns the error for a value that breaks `rule`.
    pub(super) fn refuse(&self, rule: impl Into<String>) -> SchemaError {
        SchemaError::Rule { path: self.path.clone(), rule: rule.into(), value: shown(self.value) }
    }

    /// Returns the object, if it only has `known` properties.
    pub(super) fn object(&self, known: &[&str]) -> Result<Object<'a>, SchemaError> {
        let map = self.value.as_object().ok_or_else(|| self.refuse("must be an object"))?;
        let object = Object { path: self.path.clone(), map };
        match map.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, value)) => Err(object.node(name, value).refuse(format!(
                "is an unknown property (known: {})",
                if known.is_empty() { "none".into() } else { known.join(", ") }
            ))),
            None => Ok(object),
        }
    }

    /// Returns the property `name` of an object whose other properties are not checked yet.
    pub(super) fn property(&self, name: &str) -> Result<Node<'a>, SchemaError> {
        let map = self.value.as_object().ok_or_else(|| self.refuse("must be an object"))?;
        Object { path: self.path.clone(), map }.need(name)
    }

    /// Returns the items of an array.
    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, SchemaError> {
        let items = self.value.as_array().ok_or_else(|| self.refuse("must be an array"))?;
        let node = |(at, value)| Node { path: format!("{}[{at}]", self.path), value };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// Returns a string.
    pub(super) fn text(&self) -> Result<&'a str, SchemaError> {
        self.value.as_str().ok_or_else(|| self.refuse("must be a string"))
    }

    /// Returns the place of a string among `choices`.
    pub(super) fn choice(&self, choices: &[&str]) -> Result<usize, SchemaError> {
        let place = self.value.as_str().and_then(|text| choices.iter().position(|choice| *choice == text));
        place.ok_or_else(|| self.refuse(format!("must be one of {}", choices.join(", "))))
    }

    /// Returns a Boolean.
    pub(super) fn truth(&self) -> Result<bool, SchemaError> {
        self.value.as_bool().ok_or_else(|| self.refuse("must be true or false"))
    }

    /// Returns a whole number in `range`, written without a fraction.
    pub(super) fn whole(&self, range: RangeInclusive<i64>) -> Result<i64, SchemaError> {
        let inside = self.value.as_i64().filter(|number| range.contains(number));
        inside.ok_or_else(|| {
            self.refuse(format!("must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns a count in `range`.
    pub(super) fn count(&self, range: RangeInclusive<usize>) -> Result<usize, SchemaError> {
        Ok(self.whole(*range.start() as i64..=*range.end() as i64)? as usize)
    }

    /// Returns a number.
    pub(super) fn number(&self) -> Result<f64, SchemaError> {
        self.value.as_f64().ok_or_else(|| self.refuse("must be a number"))
    }
}

/// An object and its path.
pub(super) struct Object<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    fn node(&self, name: &str, value: &'a Value) -> Node<'a> {
        Node { path: format!("{}.{name}", self.path), value }
    }

    /// Returns an optional property.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        self.map.get(name).map(|value| self.node(name, value))
    }

    /// Returns a required property.
    pub(super) fn need(&self, name: &str) -> Result<Node<'a>, SchemaError> {
        self.get(name).ok_or_else(|| SchemaError::Missing { path: self.path.clone(), property: name.into() })
    }
}

/// Formats a value for a message on one line, shortened if necessary.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
