//! Plug-ins: how a name in a TOML file becomes a component.
//!
//! A *slot* is a trait (`dyn Linker`, `dyn Encoder`, ...). A *recipe* is the typed, checked settings of
//! one implementation of it. A [`Plugin`] ties a `kind` to a recipe and is submitted through `inventory`
//! from the file that implements it; a [`Slot`] is the field of an experiment that holds one recipe by
//! its kind. This module knows no slot and no plug-in by name, and it does not read files.
//!
//! inventory drops a crate that nothing references: a binary references a plug-in crate by `use that_crate as _;`.
//! inventory has no order either: [`plugins`] sorts by name.

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

/// A trait that plug-ins implement, and the context for building one.
pub trait SlotKind: 'static {
    /// The name of the slot in an experiment file.
    const SLOT: &'static str;
    /// The plug-in that fills it where an experiment names none.
    const DEFAULT: Option<&'static str> = None;
    /// The inputs of a recipe besides its own settings.
    type Context<'a>;
}

/// The settings of one plug-in of the slot `T`, and how to build it.
///
/// Implementors derive `Deserialize` with `#[serde(default, deny_unknown_fields)]`: every field has a
/// default, so that [`Plugin::defaults`] can show it, and an unknown field is an error. They derive `JsonSchema`: doc comments are
/// the help, `#[schemars(range(...))]` the range that is enforced ([`crate::schema`]).
pub trait Recipe<T: SlotKind + ?Sized>:
    Serialize + DeserializeOwned + JsonSchema + Default + Clone + Debug + Send + Sync + 'static
{
    /// Checks what the schema does not say: a rule of its own, or between settings. Only checked settings are built.
    fn check(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Builds the component; refuses settings that are impossible in the context.
    fn build(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation>;
}

/// One implementation of the slot `T`, as registered by its file.
pub struct Plugin<T: ?Sized + 'static> {
    /// The name that selects it.
    pub kind: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    pub(crate) parse: slot::Parse<T>,
    defaults: fn() -> toml::Table,
    derive: fn() -> serde_json::Value,
    source: fn() -> &'static str,
}

impl<T: SlotKind + ?Sized> Plugin<T> {
    /// A plug-in with the settings `R`.
    pub const fn new<R: Recipe<T>>(kind: &'static str, summary: &'static str) -> Self {
        Self {
            kind,
            summary,
            parse: slot::parse::<T, R>,
            defaults: slot::defaults::<T, R>,
            derive: schema::of::<R>,
            source: std::any::type_name::<R>,
        }
    }

    /// The JSON schema of its settings, without `kind`.
    pub fn schema(&self) -> &'static serde_json::Value {
        // Each is derived once, when it is first asked for, and stays: a plug-in is a constant and cannot hold it.
        static DERIVED: Mutex<BTreeMap<&str, &'static serde_json::Value>> = Mutex::new(BTreeMap::new());
        let derived = DERIVED.lock().unwrap_or_else(PoisonError::into_inner).get(self.source()).copied();
        derived.unwrap_or_else(|| {
            let schema = Box::leak(Box::new((self.derive)()));
            DERIVED.lock().unwrap_or_else(PoisonError::into_inner).insert(self.source(), schema);
            schema
        })
    }

    /// The Rust type of its settings, with crate and module.
    pub fn source(&self) -> &'static str {
        (self.source)()
    }

    /// Every setting of the plug-in with its default.
    pub fn defaults(&self) -> toml::Table {
        (self.defaults)()
    }
}

/// The plug-ins of a slot that are linked into this program, sorted by name.
pub fn plugins<T>() -> Vec<&'static Plugin<T>>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let mut all: Vec<_> = inventory::iter::<Plugin<T>>.into_iter().collect();
    all.sort_by_key(|plugin| plugin.kind);
    all
}

/// The schema of a table that names a plug-in of a slot inside another of the same slot. It leaves the plug-ins' own settings out, for
/// the schema would hold itself; they are checked when the inner plug-in is read. Only kinds that `suits` may be named.
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
