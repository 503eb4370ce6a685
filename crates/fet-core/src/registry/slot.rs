//! The field of an experiment that holds one plug-in's settings, and its type erasure.
//!
//! Deserialising a [`Slot`] finds the plug-in by `kind`, parses the rest of the table as its settings
//! and checks them; serialising it gives the settings with every default filled in, which the run's
//! report records.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Plugin, Recipe, SettingsError, SlotKind, Violation, did_you_mean, plugins};

/// The checked settings of one plug-in of the slot `T`.
pub struct Slot<T: SlotKind + ?Sized> {
    kind: &'static str,
    recipe: Box<dyn ErasedRecipe<T>>,
}

impl<T> Slot<T>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    /// Reads and checks a table that has the field `kind`.
    pub fn from_table(mut table: toml::Table) -> Result<Self, SettingsError> {
        let known =
            || plugins::<T>().iter().map(|p| format!("\"{}\"", p.kind)).collect::<Vec<_>>().join(", ");
        let kind = match table.remove("kind") {
            Some(toml::Value::String(kind)) => kind,
            Some(other) => {
                let message = format!("must be a string; it is {other}");
                return Err(SettingsError::Field { field: "kind".into(), message });
            }
            None => return Err(SettingsError::MissingKind { slot: T::SLOT, known: known() }),
        };
        let all = plugins::<T>();
        let Some(plugin) = all.iter().find(|p| p.kind == kind) else {
            let hint = did_you_mean(&kind, all.iter().map(|p| p.kind));
            return Err(SettingsError::UnknownKind { slot: T::SLOT, kind, known: known(), hint });
        };
        Ok(Self { kind: plugin.kind, recipe: (plugin.parse)(table)? })
    }

    /// The plug-in of that name with its default settings.
    pub fn of(kind: &str) -> Result<Self, SettingsError> {
        let mut table = toml::Table::new();
        table.insert("kind".into(), kind.into());
        Self::from_table(table)
    }
}

impl<T: SlotKind + ?Sized> Slot<T> {
    /// The name of the plug-in.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The settings with every default filled in, `kind` first.
    pub fn settings(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("kind".into(), self.kind.into());
        table.extend(self.recipe.settings());
        table
    }

    /// Builds the component; the violation names the slot.
    pub fn build(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation> {
        self.recipe.build(context).map_err(|violation| violation.within(T::SLOT))
    }
}

impl<T: SlotKind + ?Sized> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, recipe: self.recipe.clone_box() }
    }
}

impl<T: SlotKind + ?Sized> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind, self.recipe.settings())
    }
}

impl<T: SlotKind + ?Sized> Serialize for Slot<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.settings().serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Slot<T>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_table(toml::Table::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A type-erased recipe.
pub(crate) trait ErasedRecipe<T: SlotKind + ?Sized>: Send + Sync {
    fn settings(&self) -> toml::Table;
    fn build(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation>;
    fn clone_box(&self) -> Box<dyn ErasedRecipe<T>>;
}

/// Reads the settings of one plug-in.
pub(crate) type Parse<T> = fn(toml::Table) -> Result<Box<dyn ErasedRecipe<T>>, SettingsError>;

/// Keeps the type of a recipe behind [`ErasedRecipe`].
struct Typed<R>(R);

impl<T: SlotKind + ?Sized, R: Recipe<T>> ErasedRecipe<T> for Typed<R> {
    fn settings(&self) -> toml::Table {
        table_of(&self.0)
    }

    fn build(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation> {
        self.0.build(context)
    }

    fn clone_box(&self) -> Box<dyn ErasedRecipe<T>> {
        Box::new(Self(self.0.clone()))
    }
}

pub(super) fn parse<T: SlotKind + ?Sized, R: Recipe<T>>(
    table: toml::Table,
) -> Result<Box<dyn ErasedRecipe<T>>, SettingsError> {
    let recipe: R = serde_path_to_error::deserialize(table).map_err(|error| {
        let message = error.inner().message().trim_end().to_string();
        SettingsError::Field { field: error.path().to_string(), message }
    })?;
    recipe.check()?;
    Ok(Box::new(Typed(recipe)))
}

pub(super) fn defaults<T: SlotKind + ?Sized, R: Recipe<T>>() -> toml::Table {
    table_of(&R::default())
}

fn table_of<R: Serialize>(recipe: &R) -> toml::Table {
    toml::Table::try_from(recipe).expect("settings are plain structs, which TOML can hold")
}
