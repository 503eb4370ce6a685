//! The settings that all parties must share, and the differences between two parties' settings.

use serde::{Deserialize, Serialize};

use super::TrainSettings;
use crate::aggregator::Aggregator;
use crate::encoder::Encoder;
use crate::linker::Linker;
use crate::method::Method;
use crate::privacy::PrivacyMechanism;
use crate::registry::Slot;
use crate::release::Release;

/// The settings that all parties must share. Each party chooses its own files and its way of computing. These
/// settings are not included: `device`, `data`, `split` (which the terms contain), `scores`,
/// `train.evaluation_cache`, `train.recompute`, `train.kernels`, `train.wire`, `train.randomness`,
/// `train.class_weights`, `train.target`, `train.gate` and `train.refine_keys`. `labels` is not included either: it protects data that only
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
    /// Release that each secondary makes in place of taking part in the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Slot<dyn Release>>,
}

/// The settings that the parties share in a run with a release. The others concern the primary alone.
#[derive(Serialize)]
struct SharedForRelease<'a> {
    seed: u64,
    linker: &'a Slot<dyn Linker>,
    release: &'a Slot<dyn Release>,
}

impl CommonSettings {
    /// Writes the settings as TOML, with every default filled in: equal settings give equal text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain structs, which TOML can hold")
    }

    /// Returns the settings that all parties must share, as TOML with every default filled in. In a run with a release
    /// these are the seed, the linker and the release.
    pub fn terms(&self) -> String {
        let Self { seed, linker, .. } = self;
        let Some(release) = &self.release else { return self.to_toml() };
        let shared = SharedForRelease { seed: *seed, linker, release };
        toml::to_string(&shared).expect("settings are plain structs, which TOML can hold")
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
    /// [`CommonSettings::terms`]: its name, our value and their value.
    pub fn difference(&self, theirs: &str) -> Option<(String, String, String)> {
        let mut ours = Vec::new();
        leaves("", &self.terms().parse().unwrap_or_default(), &mut ours);
        let mut others = Vec::new();
        match theirs.parse() {
            Ok(table) => leaves("", &table, &mut others),
            Err(_) => return Some(("settings".into(), "TOML".into(), "something else".into())),
        }
        let missing = || "nothing".to_string();
        // Without a release the parties share other settings, whose names would only confuse.
        let kind = |all: &[(String, String)]| {
            all.iter().find(|(name, _)| name == "release.kind").map_or_else(missing, |(_, kind)| kind.clone())
        };
        if kind(&ours) != kind(&others) {
            return Some(("release.kind".into(), kind(&ours), kind(&others)));
        }
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
