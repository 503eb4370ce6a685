//! Settings of a plug-in, with and without their type.

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{SettingsError, Violation};

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
/// default, so that [`super::Plugin::defaults`] can show it, and an unknown field is an error. They derive
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
    let table = filled(table, &defaults::<T, R>());
    let recipe: R = serde_path_to_error::deserialize(table).map_err(|error| {
        let message = error.inner().message().trim_end().to_string();
        SettingsError::Field { field: error.path().to_string(), message }
    })?;
    recipe.check()?;
    Ok(Box::new(Typed(recipe)))
}

/// Fills in the plug-in's defaults in nested tables: setting a method's weight decay does not change its
/// optimiser. A nested table with another kind than the default's does not get these defaults, because that
/// kind has different ones.
fn filled(mut table: toml::Table, defaults: &toml::Table) -> toml::Table {
    for (name, value) in &mut table {
        if let (toml::Value::Table(inner), Some(toml::Value::Table(default))) =
            (&mut *value, defaults.get(name))
            && inner.get("kind").is_none_or(|kind| default.get("kind") == Some(kind))
        {
            let mut whole = default.clone();
            whole.extend(filled(std::mem::take(inner), default));
            *inner = whole;
        }
    }
    table
}

pub(super) fn defaults<T: SlotKind + ?Sized, R: Recipe<T>>() -> toml::Table {
    table_of(&R::default())
}

fn table_of<R: Serialize>(recipe: &R) -> toml::Table {
    toml::Table::try_from(recipe).expect("settings are plain structs, which TOML can hold")
}
