//! JSON values that know where they stand, so that each refusal names its place. Nothing of linkage is known here.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::SchemaError;

/// A value and its path.
pub(super) struct Node<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: "$".into(), value }
    }

    /// This value is refused because it is not as `rule` says.
    pub(super) fn refuse(&self, rule: impl Into<String>) -> SchemaError {
        SchemaError::Rule { path: self.path.clone(), rule: rule.into(), value: shown(self.value) }
    }

    /// An object with none but the `known` properties.
    pub(super) fn object(&self, known: &[&str]) -> Result<Object<'a>, SchemaError> {
        let map = self.value.as_object().ok_or_else(|| self.refuse("must be an object"))?;
        let object = Object { path: self.path.clone(), map };
        match map.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, value)) => Err(object.node(name, value).refuse(format!(
                "is not a property here; known are {}",
                if known.is_empty() { "none".into() } else { known.join(", ") }
            ))),
            None => Ok(object),
        }
    }

    /// The property `name` of an object whose other properties do not matter yet.
    pub(super) fn property(&self, name: &str) -> Result<Node<'a>, SchemaError> {
        let map = self.value.as_object().ok_or_else(|| self.refuse("must be an object"))?;
        Object { path: self.path.clone(), map }.need(name)
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, SchemaError> {
        let items = self.value.as_array().ok_or_else(|| self.refuse("must be an array"))?;
        let node = |(at, value)| Node { path: format!("{}[{at}]", self.path), value };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// A string.
    pub(super) fn text(&self) -> Result<&'a str, SchemaError> {
        self.value.as_str().ok_or_else(|| self.refuse("must be a string"))
    }

    /// One of some strings: its place among them.
    pub(super) fn choice(&self, choices: &[&str]) -> Result<usize, SchemaError> {
        let place = self.value.as_str().and_then(|text| choices.iter().position(|choice| *choice == text));
        place.ok_or_else(|| self.refuse(format!("must be one of {}", choices.join(", "))))
    }

    /// True or false.
    pub(super) fn truth(&self) -> Result<bool, SchemaError> {
        self.value.as_bool().ok_or_else(|| self.refuse("must be true or false"))
    }

    /// A whole number, written without a fraction.
    pub(super) fn whole(&self, range: RangeInclusive<i64>) -> Result<i64, SchemaError> {
        let inside = self.value.as_i64().filter(|number| range.contains(number));
        inside.ok_or_else(|| {
            self.refuse(format!("must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A whole number that counts something.
    pub(super) fn count(&self, range: RangeInclusive<usize>) -> Result<usize, SchemaError> {
        Ok(self.whole(*range.start() as i64..=*range.end() as i64)? as usize)
    }

    /// A number.
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

    /// A property that may be missing.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        self.map.get(name).map(|value| self.node(name, value))
    }

    /// A property that must be there.
    pub(super) fn need(&self, name: &str) -> Result<Node<'a>, SchemaError> {
        self.get(name).ok_or_else(|| SchemaError::Missing { path: self.path.clone(), property: name.into() })
    }
}

/// A value for a message: on one line, and not the whole schema.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
