//! The plug-ins of a slot.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use schemars::{Schema, json_schema};

use super::recipe::{self, Recipe, SlotKind};
use crate::schema::{self, MEANINGS};

/// One implementation of the slot `T`, as registered by its file.
pub struct Plugin<T: ?Sized + 'static> {
    /// Name that selects the plug-in.
    pub kind: &'static str,
    /// One-line description of the plug-in.
    pub summary: &'static str,
    pub(crate) parse: recipe::Parse<T>,
    defaults: fn() -> toml::Table,
    derive: fn() -> serde_json::Value,
    source: fn() -> &'static str,
}

impl<T: SlotKind + ?Sized> Plugin<T> {
    /// Creates a plug-in with the settings `R`.
    pub const fn new<R: Recipe<T>>(kind: &'static str, summary: &'static str) -> Self {
        Self {
            kind,
            summary,
            parse: recipe::parse::<T, R>,
            defaults: recipe::defaults::<T, R>,
            derive: schema::for_type::<R>,
            source: std::any::type_name::<R>,
        }
    }

    /// Returns the JSON schema of the plug-in's settings, without `kind`.
    pub fn schema(&self) -> &'static serde_json::Value {
        // Each schema is derived on first use and kept here, because a plug-in is a constant and cannot hold
        // it.
        static DERIVED: Mutex<BTreeMap<&str, &'static serde_json::Value>> = Mutex::new(BTreeMap::new());
        let derived = DERIVED.lock().unwrap_or_else(PoisonError::into_inner).get(self.source()).copied();
        derived.unwrap_or_else(|| {
            let schema = Box::leak(Box::new((self.derive)()));
            DERIVED.lock().unwrap_or_else(PoisonError::into_inner).insert(self.source(), schema);
            schema
        })
    }

    /// Returns the Rust type of the plug-in's settings, with crate and module.
    pub fn source(&self) -> &'static str {
        (self.source)()
    }

    /// Returns every setting of the plug-in with its default.
    pub fn defaults(&self) -> toml::Table {
        (self.defaults)()
    }
}

/// Returns the plug-ins of a slot that are linked into this program, sorted by name.
pub fn plugins<T>() -> Vec<&'static Plugin<T>>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let mut all: Vec<_> = inventory::iter::<Plugin<T>>.into_iter().collect();
    all.sort_by_key(|plugin| plugin.kind);
    all
}

/// Returns the schema of a table that names a plug-in of a slot inside another plug-in of the same slot. Only
/// kinds that `suits` accepts may be named. The schema omits the inner plug-ins' own settings, because it
/// would otherwise contain itself; reading the inner plug-in checks them.
pub fn schema_of_inner<T>(meaning: &str, suits: impl Fn(&str) -> bool) -> Schema
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let mut all = plugins::<T>();
    all.retain(|plugin| suits(plugin.kind));
    let kinds: Vec<&str> = all.iter().map(|plugin| plugin.kind).collect();
    let meanings: Vec<&str> = all.iter().map(|plugin| plugin.summary).collect();
    json_schema!({
        "type": "object",
        "properties": {
            "kind": { "description": meaning, "type": "string", "enum": kinds, (MEANINGS): meanings },
        },
    })
}
