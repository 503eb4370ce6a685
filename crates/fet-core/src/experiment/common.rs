//! The settings that all parties must share, and the differences between two parties' settings.

use serde::{Deserialize, Serialize};

use super::TrainSettings;
use crate::aggregator::Aggregator;
use crate::encoder::Encoder;
use crate::linker::Linker;
use crate::method::Method;
use crate::privacy::PrivacyMechanism;
use crate::registry::Slot;

/// The settings that all parties must share. Each party chooses its own files and its way of computing. These
/// settings are not included: `device`, `data`, `split` (which the terms contain), `scores`,
/// `train.evaluation_cache`, `train.recompute`, `train.kernels`, `train.wire`, `train.randomness`,
/// `train.class_weights`, `train.target` and `train.refine_keys`. `labels` is not included either: it protects data that only
/// the primary has, and does not change the other parties' computation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonSettings {
    /// Seed of the shared randomness.
    pub seed: u64,
    /// Length of the run and batch sizes.
    pub train: TrainSettings,
    /// The method.
    pub method: Slot<dyn Method>,
    /// Linker that finds the records that belong together.
    pub linker: Slot<dyn Linker>,
    /// Local model of a secondary.
    pub encoder: Slot<dyn Encoder>,
    /// Aggregator that combines the parties' representations.
    pub aggregator: Slot<dyn Aggregator>,
    /// The privacy mechanism.
    pub privacy: Slot<dyn PrivacyMechanism>,
}

impl CommonSettings {
    /// Writes the settings as TOML, with every default filled in: equal settings give equal text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain structs, which TOML can hold")
    }

    /// Returns the settings that determine a saved state. The number of epochs is left out if the steps
    /// before the last epoch do not depend on it, so that a run with more epochs can continue from the state.
    pub fn of_state(&self, privacy: &dyn PrivacyMechanism) -> Self {
        let mut settings = self.clone();
        if settings.train.can_go_on(privacy) {
            settings.train.epochs = 0;
        }
        settings
    }

    /// Returns the first setting that differs from `theirs`, the text of another party's
    /// [`CommonSettings::to_toml`]: its name, our value and their value.
    pub fn difference(&self, theirs: &str) -> Option<(String, String, String)> {
        let mut ours = Vec::new();
        leaves("", &self.to_toml().parse().unwrap_or_default(), &mut ours);
        let mut others = Vec::new();
        match theirs.parse() {
            Ok(table) => leaves("", &table, &mut others),
            Err(_) => return Some(("settings".into(), "TOML".into(), "something else".into())),
        }
        let missing = || "nothing".to_string();
        let find = |all: &[(String, String)], name: &str| {
            all.iter().find(|(other, _)| other == name).map_or_else(missing, |(_, value)| value.clone())
        };
        let names = ours.iter().chain(&others).map(|(name, _)| name);
        names.map(|name| (name.clone(), find(&ours, name), find(&others, name))).find(|(_, a, b)| a != b)
    }
}

/// Collects every setting below a table, by its full name.
fn leaves(prefix: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => leaves(&path, inner, found),
            value => found.push((path, value.to_string())),
        }
    }
}
