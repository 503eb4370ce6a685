//! The settings that all parties must share, and how those of two parties differ.

use serde::{Deserialize, Serialize};

use super::TrainSettings;
use crate::aggregator::Aggregator;
use crate::encoder::Encoder;
use crate::linker::Linker;
use crate::method::Method;
use crate::privacy::PrivacyMechanism;
use crate::registry::Slot;

/// The settings that all parties must share. Each party chooses its own files and how and on what it computes:
/// `device`, `data`, `split` (which the terms tell), `scores`, `train.recompute`, `train.kernels`, `train.wire`,
/// `train.randomness`, `train.class_weights` and `train.refine_keys` are not included; nor is `labels`, by which the primary protects what only it
/// has: the other parties compute the same whatever it chooses.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonSettings {
    /// The seed of the shared randomness.
    pub seed: u64,
    /// Length of the run and batch sizes.
    pub train: TrainSettings,
    /// The method.
    pub method: Slot<dyn Method>,
    /// Which records belong together.
    pub linker: Slot<dyn Linker>,
    /// A secondary's local model.
    pub encoder: Slot<dyn Encoder>,
    /// How representations are combined.
    pub aggregator: Slot<dyn Aggregator>,
    /// The privacy mechanism.
    pub privacy: Slot<dyn PrivacyMechanism>,
}

impl CommonSettings {
    /// As TOML, with every default filled in: equal settings give equal text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain structs, which TOML can hold")
    }

    /// The settings that a saved state follows from: without the number of epochs, if what is done before the last does not
    /// depend on it. A run with more epochs can then go on from the state.
    pub fn of_state(&self, privacy: &dyn PrivacyMechanism) -> Self {
        let mut settings = self.clone();
        if settings.train.can_go_on(privacy) {
            settings.train.epochs = 0;
        }
        settings
    }

    /// The first setting in which `theirs`, as [`CommonSettings::to_toml`] writes them, differs: its name, our value
    /// and theirs.
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

/// Every setting below a table by its full name.
fn leaves(prefix: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => leaves(&path, inner, found),
            value => found.push((path, value.to_string())),
        }
    }
}
