//! Plug-ins: turns a name in a TOML file into a component.
//!
//! A *slot* is a trait (`dyn Linker`, `dyn Encoder`, ...). A *recipe* is the typed, checked settings of one
//! implementation of it. A [`Plugin`] ties a `kind` to a recipe and is submitted through `inventory` from the
//! file that implements it; a [`Slot`] is the field of an experiment that holds one recipe by its kind. This
//! module knows no slot and no plug-in by name, and it does not read files.
//!
//! inventory drops a crate that nothing references: a binary references a plug-in crate by `use that_crate as
//! _;`. inventory has no order either: [`plugins`] sorts by name.

pub(crate) mod error;
mod slot;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::schema::{self, MEANINGS};

pub use error::{SettingsError, Violation};
pub use fet_eval::did_you_mean;
pub use slot::Slot;

/// A trait that plug-ins implement, with the context for building one.
pub trait SlotKind: 'static {
    /// Name of the slot in an experiment file.
    const SLOT: &'static str;
    /// The plug-in for experiments that name none.
    const DEFAULT: Option<&'static str> = None;
    /// The inputs of a recipe, in addition to its settings.
    type Context<'a>;
}

/// The settings of one plug-in of the slot `T`, which build the plug-in.
///
/// Implementors derive `Deserialize` with `#[serde(default, deny_unknown_fields)]`: every field has a
/// default, so that [`Plugin::defaults`] can show it, and an unknown field is an error. They derive
/// `JsonSchema`: doc comments are the help, and `#[schemars(range(...))]` is the enforced range
/// ([`crate::schema`]).
pub trait Recipe<T: SlotKind + ?Sized>:
    Serialize + DeserializeOwned + JsonSchema + Default + Clone + Debug + Send + Sync + 'static
{
    /// Checks rules that the schema cannot express, such as rules between settings. Only checked settings are
    /// built.
    fn check(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Builds the component; refuses settings that are impossible in the context.
    fn build(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation>;
}

/// One implementation of the slot `T`, as registered by its file.
pub struct Plugin<T: ?Sized + 'static> {
    /// Name that selects the plug-in.
    pub kind: &'static str,
    /// One-line description of the plug-in.
    pub summary: &'static str,
    pub(crate) parse: slot::Parse<T>,
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
            parse: slot::parse::<T, R>,
            defaults: slot::defaults::<T, R>,
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
