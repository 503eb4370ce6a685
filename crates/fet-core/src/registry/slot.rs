//! The field of an experiment that holds one plug-in's settings.
//!
//! Deserialising a [`Slot`] finds the plug-in by `kind`, parses the rest of the table as its settings and
//! checks them. Serialising a slot gives the settings with every default filled in, as the run's report
//! records them.

use std::borrow::Cow;
use std::fmt;

use fet_eval::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{SettingsError, Violation};
use super::plugin::{Plugin, plugins};
use super::recipe::{ErasedRecipe, SlotKind};
use crate::schema;

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
            Some(other) => return Err(Violation::new("kind", "must be a text in quotes", other).into()),
            None => match T::DEFAULT {
                Some(kind) => kind.to_string(),
                None => return Err(SettingsError::MissingKind { slot: T::SLOT, known: known() }),
            },
        };
        let all = plugins::<T>();
        let Some(plugin) = all.iter().find(|p| p.kind == kind) else {
            let hint = did_you_mean(&kind, all.iter().map(|p| p.kind));
            return Err(SettingsError::UnknownKind { slot: T::SLOT, kind, known: known(), hint });
        };
        if let Some(other) = all.iter().filter(|p| p.kind == kind).nth(1) {
            let rule = format!(
                "must be the name of one plug-in; this program contains two ({} and {})",
                plugin.source(),
                other.source()
            );
            return Err(Violation::new("kind", rule, format!("\"{kind}\"")).into());
        }
        schema::check(&table, plugin.schema())?;
        Ok(Self { kind: plugin.kind, recipe: (plugin.parse)(table)? })
    }

    /// Returns the plug-in with that name and its default settings.
    pub fn with_defaults(kind: &str) -> Result<Self, SettingsError> {
        let mut table = toml::Table::new();
        table.insert("kind".into(), kind.into());
        Self::from_table(table)
    }
}

impl<T: SlotKind + ?Sized> Slot<T> {
    /// Returns the name of the plug-in.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the settings with every default filled in, `kind` first.
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

    /// Builds the plug-in as a part of another plug-in of its slot, which holds its settings in the table
    /// `inner`.
    pub fn build_inner(&self, context: &T::Context<'_>) -> Result<Box<T>, Violation> {
        self.recipe.build(context).map_err(|violation| violation.within("inner"))
    }

    /// Returns the path of a setting of the plug-in or of an inner plug-in, as in
    /// `method.inner.party_dropout`.
    pub fn path_of(&self, setting: &str) -> String {
        let (settings, mut path) = (self.settings(), T::SLOT.to_string());
        let mut table = &settings;
        while let (false, Some(inner)) =
            (table.contains_key(setting), table.get("inner").and_then(toml::Value::as_table))
        {
            (path, table) = (path + ".inner", inner);
        }
        format!("{path}.{setting}")
    }

    /// Returns the kind of the plug-in with the kinds of its inner plug-ins, as in `posterior(nearest)`.
    pub fn kinds(&self) -> String {
        let settings = self.settings();
        let mut inner = settings.get("inner").and_then(toml::Value::as_table);
        let (mut kinds, mut depth) = (self.kind.to_string(), 0);
        while let Some(table) = inner {
            kinds += &format!("({}", table.get("kind").and_then(toml::Value::as_str).unwrap_or_default());
            depth += 1;
            inner = table.get("inner").and_then(toml::Value::as_table);
        }
        kinds + &")".repeat(depth)
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

impl<T> JsonSchema for Slot<T>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    fn schema_name() -> Cow<'static, str> {
        T::SLOT.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = plugins::<T>();
        let names: Vec<&str> = all.iter().map(|plugin| plugin.kind).collect();
        let meanings: Vec<&str> = all.iter().map(|plugin| plugin.summary).collect();
        let mut kind = serde_json::json!({
            "description": format!("The plug-in of the slot `{}`.", T::SLOT),
            "type": "string",
            "enum": names,
            schema::MEANINGS: meanings,
        });
        if let Some(default) = T::DEFAULT {
            kind["default"] = default.into();
        }
        let settings = |plugin: &&Plugin<T>| {
            let mut settings = plugin.schema().clone();
            settings["properties"]["kind"] = kind.clone();
            settings[schema::SOURCE] = plugin.source().into();
            (plugin.kind.to_string(), settings)
        };
        let kinds: serde_json::Map<_, _> = all.iter().map(settings).collect();
        schemars::json_schema!({ "type": "object", "properties": { "kind": kind }, (schema::KINDS): kinds })
    }
}

#[cfg(test)]
mod tests {
    use super::super::recipe::Recipe;
    use super::*;

    /// A slot for this test.
    trait Thing {}

    impl SlotKind for dyn Thing {
        const SLOT: &'static str = "thing";
        type Context<'a> = ();
    }

    inventory::collect!(Plugin<dyn Thing>);

    macro_rules! recipe {
        ($settings:ident, $kind:literal) => {
            /// Settings.
            #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
            #[serde(default, deny_unknown_fields)]
            struct $settings {
                /// A number of things.
                #[schemars(range(min = 1, max = 3))]
                count: usize,
            }

            impl Recipe<dyn Thing> for $settings {
                fn build(&self, (): &()) -> Result<Box<dyn Thing>, Violation> {
                    struct Nothing;
                    impl Thing for Nothing {}
                    Ok(Box::new(Nothing))
                }
            }

            inventory::submit! { Plugin::<dyn Thing>::new::<$settings>($kind, "a thing") }
        };
    }

    recipe!(First, "one");
    recipe!(Second, "two");
    recipe!(Third, "two");

    #[test]
    fn two_plugins_of_one_name_are_refused() {
        let error = Slot::<dyn Thing>::with_defaults("two").expect_err("two of them").to_string();
        assert!(error.contains("First") || error.contains("Second") && error.contains("Third"), "{error}");
        assert!(error.contains("contains two"), "{error}");
    }

    #[test]
    fn settings_are_held_against_their_schema() {
        let parse = |text: &str| Slot::<dyn Thing>::from_table(text.parse().expect("TOML"));
        assert_eq!(parse("kind = 'one'\ncount = 3").expect("right").build(&()).map(drop), Ok(()));
        for (text, expected) in [
            ("kind = 'one'\ncount = 4", "`count` must be at least 1 and at most 3; it is 4"),
            ("kind = 'one'\ncounts = 1", "`counts` is not a setting; did you mean \"count\"?"),
            ("count = 1", "`thing.kind` is missing; it must be one of \"one\", \"two\", \"two\""),
            ("kind = 7", "`kind` must be a text in quotes; it is 7"),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), expected);
        }
    }
}
