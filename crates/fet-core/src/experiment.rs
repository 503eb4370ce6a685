//! An experiment: one plain struct, read from TOML, that says everything a run depends on.
//!
//! Serialising it gives every setting with its default filled in: the record that stands in the report.
//! This module does not touch files; the `fet` command does.

use serde::{Deserialize, Serialize};

use crate::aggregator::Aggregator;
use crate::data::Dataset;
use crate::encoder::Encoder;
use crate::linker::Linker;
use crate::method::Method;
use crate::privacy::PrivacyMechanism;
use crate::registry::{SettingsError, Slot, Violation};

/// Everything a run depends on, the files of its data apart.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What the results are called.
    pub name: String,
    /// The seed of every random stream.
    #[serde(default)]
    pub seed: u64,
    /// The tensor backend.
    #[serde(default = "defaults::device")]
    pub device: String,
    /// How long and in what portions.
    #[serde(default)]
    pub train: TrainSettings,
    /// Where the parties' tables come from.
    pub data: Slot<dyn Dataset>,
    /// What the parties compute.
    #[serde(default = "defaults::method")]
    pub method: Slot<dyn Method>,
    /// Which records belong together.
    #[serde(default = "defaults::linker")]
    pub linker: Slot<dyn Linker>,
    /// A secondary's local model.
    #[serde(default = "defaults::encoder")]
    pub encoder: Slot<dyn Encoder>,
    /// How representations become one.
    #[serde(default = "defaults::aggregator")]
    pub aggregator: Slot<dyn Aggregator>,
    /// What protects them.
    #[serde(default = "defaults::privacy")]
    pub privacy: Slot<dyn PrivacyMechanism>,
}

/// How long a run is and in what portions it works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows of a training step.
    pub batch_size: usize,
    /// Rows of an evaluation step; it changes speed and memory, not results.
    pub evaluation_batch_size: usize,
    /// Epochs without a better validation metric after which the step size shrinks.
    pub patience: usize,
    /// What the step size is then multiplied by.
    pub factor: f64,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self { epochs: 20, batch_size: 128, evaluation_batch_size: 256, patience: 5, factor: 0.5 }
    }
}

impl Experiment {
    /// Reads and checks a table.
    ///
    /// A slot's table that names no `kind` is for the default plug-in.
    pub fn from_table(mut table: toml::Table) -> Result<Self, SettingsError> {
        for (slot, kind) in defaults::KINDS {
            if let Some(toml::Value::Table(settings)) = table.get_mut(slot) {
                settings.entry("kind").or_insert_with(|| kind.into());
            }
        }
        let experiment: Self = serde_path_to_error::deserialize(table).map_err(|error| {
            let message = error.inner().message().trim_end().to_string();
            SettingsError::Field { field: error.path().to_string(), message }
        })?;
        experiment.train.check()?;
        if experiment.name.is_empty()
            || experiment.name.contains(['/', '\\'])
            || experiment.name.starts_with('.')
        {
            let rule = "must be a plain file name: it names the folder of the results";
            return Err(Violation::new("name", rule, format!("\"{}\"", experiment.name)).into());
        }
        Ok(experiment)
    }

    /// The settings with every default filled in.
    pub fn to_table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are plain structs, which TOML can hold")
    }
}

impl TrainSettings {
    fn check(&self) -> Result<(), Violation> {
        let counts = [
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            ("evaluation_batch_size", self.evaluation_batch_size),
            ("patience", self.patience),
        ];
        for (field, count) in counts {
            if count == 0 {
                return Err(Violation::new(field, "must be at least 1", 0).within("train"));
            }
        }
        if !(self.factor > 0.0 && self.factor <= 1.0) {
            return Err(
                Violation::new("factor", "must be above 0 and at most 1", self.factor).within("train")
            );
        }
        Ok(())
    }
}

/// Changes `table` as `--set path=value` says. A value is TOML where it reads as TOML, else a string.
/// Choosing another `kind` for a slot forgets the slot's other settings: they belong to the old kind.
pub fn set(table: &mut toml::Table, assignment: &str) -> Result<(), SettingsError> {
    let bad = |message: String| SettingsError::Field { field: assignment.to_string(), message };
    let (path, text) =
        assignment.split_once('=').ok_or_else(|| bad("must have the form path=value".into()))?;
    let (path, text) = (path.trim(), text.trim());
    let value = toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_string()));
    let names: Vec<&str> = path.split('.').collect();
    let [tables @ .., field] = names.as_slice() else { return Err(bad("must name a field".into())) };
    if names.iter().any(|name| name.is_empty()) {
        return Err(bad("has an empty name in its path".into()));
    }
    let mut place = table;
    for name in tables {
        let entry = place.entry(name.to_string()).or_insert_with(|| toml::Table::new().into());
        place = entry.as_table_mut().ok_or_else(|| bad(format!("`{name}` is not a table")))?;
    }
    if *field == "kind" && place.get("kind").is_some_and(|kind| *kind != value) {
        place.clear();
    }
    place.insert(field.to_string(), value);
    Ok(())
}

mod defaults {
    //! Which plug-in stands in a slot that the file does not mention.

    use super::{Aggregator, Encoder, Linker, Method, PrivacyMechanism, Slot};
    use crate::registry::{Plugin, SlotKind};

    /// Each slot that has a default, and its default.
    pub(super) const KINDS: [(&str, &str); 5] = [
        ("method", "fet"),
        ("linker", "nearest"),
        ("encoder", "transformer"),
        ("aggregator", "average"),
        ("privacy", "none"),
    ];

    pub(super) fn device() -> String {
        "flex".to_string()
    }

    pub(super) fn method() -> Slot<dyn Method> {
        of()
    }

    pub(super) fn linker() -> Slot<dyn Linker> {
        of()
    }

    pub(super) fn encoder() -> Slot<dyn Encoder> {
        of()
    }

    pub(super) fn aggregator() -> Slot<dyn Aggregator> {
        of()
    }

    pub(super) fn privacy() -> Slot<dyn PrivacyMechanism> {
        of()
    }

    fn of<T>() -> Slot<T>
    where
        T: SlotKind + ?Sized,
        Plugin<T>: inventory::Collect,
    {
        let kind = KINDS.iter().find(|(slot, _)| *slot == T::SLOT).map(|(_, kind)| *kind);
        Slot::of(kind.unwrap_or_default()).expect("fet-core registers its own default plug-ins")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_change_tables() {
        let check = |assignments: &[&str], expected: &str| {
            let mut table: toml::Table = toml::from_str("[method]\nkind = 'fet'\nhidden = 8").expect("TOML");
            for assignment in assignments {
                set(&mut table, assignment).expect("a good assignment");
            }
            assert_eq!(table, toml::from_str(expected).expect("TOML"), "{assignments:?}");
        };
        check(&["method.hidden=16"], "[method]\nkind = 'fet'\nhidden = 16");
        check(&["method.kind=fet"], "[method]\nkind = 'fet'\nhidden = 8");
        check(&["method.kind=solo"], "[method]\nkind = 'solo'");
        check(&["method.kind=solo", "method.hidden=[4]"], "[method]\nkind = 'solo'\nhidden = [4]");
        check(&["a.b.c=text"], "a.b.c = 'text'\n[method]\nkind = 'fet'\nhidden = 8");
        check(&["a = 1e-3"], "a = 1e-3\n[method]\nkind = 'fet'\nhidden = 8");
    }

    #[test]
    fn assignments_that_make_no_sense_are_refused() {
        for assignment in ["method", "=1", "method..x=1", "method.hidden.x=1"] {
            let mut table: toml::Table = toml::from_str("[method]\nhidden = 8").expect("TOML");
            let error = set(&mut table, assignment).expect_err("refused").to_string();
            assert!(error.contains(assignment), "{error}");
        }
    }
}
