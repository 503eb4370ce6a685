//! An experiment: one plain struct, read from TOML, with everything that a run depends on.
//!
//! Serialising it gives every setting with its default filled in, as recorded in the report.
//! This module does not touch files; the `fet` command does.

use serde::{Deserialize, Serialize};

use crate::aggregator::Aggregator;
use crate::data::Dataset;
use crate::encoder::{Computation, Encoder};
use crate::learning_rate::Decay;
use crate::linker::Linker;
use crate::method::{Method, Plan, Slots};
use crate::privacy::{PrivacyMechanism, Selection};
use crate::registry::{SettingsError, Slot, Violation};

/// Everything that a run depends on, except its data files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the results.
    pub name: String,
    /// The seed of every random stream.
    #[serde(default)]
    pub seed: u64,
    /// The tensor backend.
    #[serde(default = "default_device")]
    pub device: String,
    /// Length of the run and batch sizes.
    #[serde(default)]
    pub train: TrainSettings,
    /// The source of the parties' tables.
    pub data: Slot<dyn Dataset>,
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

/// The settings that all parties must share. Each party chooses its own files and how and on what it computes:
/// `device`, `data`, `train.recompute`, `train.kernels` and `train.wire` are not included.
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

/// Length of a run and batch sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows per training step.
    pub batch_size: usize,
    /// Rows per evaluation step; affects speed and memory, not results.
    pub evaluation_batch_size: usize,
    /// The schedule of the learning rate.
    pub decay: Decay,
    /// Epochs without a better validation metric that count as a plateau.
    pub patience: usize,
    /// The factor on the learning rate at a plateau.
    pub factor: f64,
    /// Whether secondaries drop their graphs and compute forward passes twice: the same results up to rounding, and
    /// less memory with many parties.
    pub recompute: bool,
    /// What runs the blocks that have fused kernels: the same results up to rounding.
    pub kernels: Kernels,
    /// How the rows of a training step are sampled.
    pub batches: Batches,
    /// Whether messages between parties in one process are serialised: the same results, more slowly.
    pub wire: Wire,
}

/// How messages pass between parties in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Passed as values.
    #[default]
    Direct,
    /// Serialised to the bytes that would go between machines, and back.
    Bytes,
}

/// How the rows of a training step are sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// All rows, shuffled for each epoch, in batches.
    #[default]
    Shuffled,
    /// Each row with probability batch size / rows, independently for each step.
    Poisson,
}

/// What computes the blocks of a transformer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernels {
    /// The fused kernels if tensors are in the host's memory, else the device.
    #[default]
    Auto,
    /// The fused kernels, on the host.
    Fused,
    /// The device, with tensor operations.
    Tensor,
}

impl TrainSettings {
    /// Whether secondaries use the kernels, given whether tensors are on the host.
    pub fn computation(&self, on_host: bool) -> Computation {
        let fused = match self.kernels {
            Kernels::Auto => on_host,
            Kernels::Fused => true,
            Kernels::Tensor => false,
        };
        Computation { recompute: self.recompute, fused }
    }
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            epochs: 20,
            batch_size: 128,
            evaluation_batch_size: 256,
            decay: Decay::Plateau,
            patience: 5,
            factor: 0.5,
            recompute: false,
            kernels: Kernels::Auto,
            batches: Batches::Shuffled,
            wire: Wire::Direct,
        }
    }
}

impl Experiment {
    /// Reads and checks a table.
    ///
    /// A slot that is missing, or whose table has no `kind`, gets the default plug-in; for encoder and aggregator the
    /// method chooses it.
    pub fn from_table(mut table: toml::Table) -> Result<Self, SettingsError> {
        for (slot, kind) in [("method", "fet"), ("linker", "nearest"), ("privacy", "none")] {
            fill_in(&mut table, slot, kind);
        }
        if let Some(toml::Value::Table(method)) = table.get("method") {
            // A method that cannot be read is reported below, with its path.
            if let Ok(method) = Slot::<dyn Method>::from_table(method.clone()) {
                let plan = method.build(&())?.plan();
                fill_in(&mut table, "encoder", plan.encoder);
                fill_in(&mut table, "aggregator", plan.aggregator);
            }
        }
        for slot in ["encoder", "aggregator"] {
            fill_in(&mut table, slot, "");
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
        experiment.check_slots()?;
        Ok(experiment)
    }

    /// Refuses incompatible slots.
    fn check_slots(&self) -> Result<(), Violation> {
        let method = self.method.build(&())?;
        let linker = self.linker.build(&())?;
        let aggregator = self.aggregator.build(&())?;
        let privacy = self.privacy.build(&())?;
        let slots = Slots::new(
            (linker.as_ref(), self.linker.kind()),
            (aggregator.as_ref(), self.aggregator.kind()),
            (privacy.as_ref(), self.privacy.kind()),
        );
        method.check(&slots)?;
        let plan = method.plan();
        if !plan.secondaries {
            return Ok(());
        }
        if !linker.about().similarities {
            let wants = [
                (plan.similarities, "method", self.method.kind()),
                (aggregator.uses_similarities(), "aggregator", self.aggregator.kind()),
            ];
            if let Some((_, slot, kind)) = wants.into_iter().find(|(wants, ..)| *wants) {
                return Err(
                    slots.refuse::<dyn Linker>(format!("must give similarities for the {slot} \"{kind}\""))
                );
            }
        }
        self.check_privacy(&plan, &slots)
    }

    /// Refuses settings that bypass a privacy mechanism, or claim more than it guarantees.
    fn check_privacy(&self, plan: &Plan, slots: &Slots<'_>) -> Result<(), Violation> {
        let (about, privacy) = (slots.linker.about(), slots.privacy);
        if privacy.is_identity() {
            return Ok(());
        }
        let kind = self.privacy.kind();
        if let Some(averaged) = plan.averaged {
            let rule =
                format!("must be 0 where `privacy.kind` is \"{kind}\": averaged parameters bear no noise");
            return Err(Violation::new(averaged.setting, rule, averaged.every));
        }
        if plan.similarities || slots.aggregator.uses_similarities() {
            let rule = format!(
                "must protect nothing, as \"none\" does, for the method \"{}\" with the aggregator \"{}\": similarities are \
                 told without noise",
                self.method.kind(),
                self.aggregator.kind()
            );
            return Err(slots.refuse::<dyn PrivacyMechanism>(rule));
        }
        if privacy.claims_amplification() && self.train.batches != Batches::Poisson {
            let rule = "must be \"poisson\" where `privacy.amplification` is claimed: a figure for Poisson sampling does \
                        not hold for shuffled batches";
            return Err(Violation::new("train.batches", rule, "\"shuffled\""));
        }
        if privacy.freezes_secondaries() && plan.party_dropout > 0.0 {
            let rule = "must be 0 where `privacy.learning` is \"frozen\": every row is released once, by all parties";
            return Err(Violation::new("method.party_dropout", rule, plan.party_dropout));
        }
        let selection = privacy.selection();
        if selection.occurrences > 0 && !about.independent {
            let rule = "must link each record by itself, as \"nearest\" and \"edit\" do, where `privacy.max_occurrences` is \
                        set: which rows a record serves must depend on no other record";
            return Err(slots.refuse::<dyn Linker>(rule));
        }
        if selection != Selection::ALL && !about.in_the_clear {
            let rule = "must be one that sends keys in the clear where `privacy.sample_rate` or `privacy.max_occurrences` \
                        has neighbours chosen anew for each batch";
            return Err(slots.refuse::<dyn Linker>(rule));
        }
        if selection.occurrences > about.neighbours {
            let rule = format!("must be at most `linker.neighbours` ({}), or 0", about.neighbours);
            return Err(Violation::new("privacy.max_occurrences", rule, selection.occurrences));
        }
        Ok(())
    }

    /// The settings that all parties must share.
    pub fn common(&self) -> CommonSettings {
        let TrainSettings { recompute, kernels, wire, .. } = TrainSettings::default();
        CommonSettings {
            seed: self.seed,
            train: TrainSettings { recompute, kernels, wire, ..self.train.clone() },
            method: self.method.clone(),
            linker: self.linker.clone(),
            encoder: self.encoder.clone(),
            aggregator: self.aggregator.clone(),
            privacy: self.privacy.clone(),
        }
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
        if self.epochs >= 1 << 16 {
            return Err(Violation::new("epochs", "must be below 65536", self.epochs).within("train"));
        }
        if !(self.factor > 0.0 && self.factor <= 1.0) {
            return Err(
                Violation::new("factor", "must be above 0 and at most 1", self.factor).within("train")
            );
        }
        Ok(())
    }
}

fn default_device() -> String {
    "flex".to_string()
}

/// Gives `slot` a table with a kind, if it has none.
fn fill_in(table: &mut toml::Table, slot: &str, kind: &str) {
    if let toml::Value::Table(settings) = table.entry(slot).or_insert_with(|| toml::Table::new().into())
        && !kind.is_empty()
    {
        settings.entry("kind").or_insert_with(|| kind.into());
    }
}

/// Changes `table` by `--set path=value`. A value is TOML if it parses as TOML, else a string. A new `kind` for a slot
/// drops the slot's other settings: they belong to the old kind. A new method drops encoder and aggregator too: they
/// were chosen for the old one.
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
    let mut changed_method = false;
    let mut place = &mut *table;
    for name in tables {
        let entry = place.entry(name.to_string()).or_insert_with(|| toml::Table::new().into());
        place = entry.as_table_mut().ok_or_else(|| bad(format!("`{name}` is not a table")))?;
    }
    if *field == "kind" && place.get("kind").is_some_and(|kind| *kind != value) {
        place.clear();
        changed_method = names == ["method", "kind"];
    }
    place.insert(field.to_string(), value);
    if changed_method {
        table.remove("encoder");
        table.remove("aggregator");
    }
    Ok(())
}

/// Merges `changes` into `base`, table by table. As with [`set`], a new `kind` replaces a slot's whole table, and a new
/// method drops the encoder and the aggregator of the base.
pub fn overlay(base: &mut toml::Table, changes: toml::Table) {
    let kind = |table: &toml::Table, slot: &str| table.get(slot).and_then(|slot| slot.get("kind")).cloned();
    if kind(&changes, "method").is_some_and(|method| kind(base, "method") != Some(method)) {
        base.remove("encoder");
        base.remove("aggregator");
    }
    for (name, value) in changes {
        let other_kind = |old: &toml::Table, new: &toml::Table| {
            new.get("kind").is_some_and(|kind| old.get("kind") != Some(kind))
        };
        match (base.get_mut(&name), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) if !other_kind(old, &new) => {
                overlay(old, new);
            }
            (_, value) => {
                base.insert(name, value);
            }
        }
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
        check(&["encoder.blocks=2", "method.kind=solo"], "[method]\nkind = 'solo'");
        check(&["method.kind=solo", "encoder.blocks=2"], "[method]\nkind = 'solo'\n[encoder]\nblocks = 2");
        check(&["a = 1e-3"], "a = 1e-3\n[method]\nkind = 'fet'\nhidden = 8");
    }

    #[test]
    fn overlays_change_what_they_name() {
        let base =
            "a = 1\n[method]\nkind = 'fet'\nhidden = 8\n[encoder]\nblocks = 3\n[data]\nx = { p = 1, q = 2 }";
        let check = |changes: &str, expected: &str| {
            let mut table: toml::Table = toml::from_str(base).expect("TOML");
            overlay(&mut table, toml::from_str(changes).expect("TOML"));
            assert_eq!(table, toml::from_str(expected).expect("TOML"), "{changes}");
        };
        check("", base);
        let method = "[method]\nkind = 'fet'\nhidden = 8\n[encoder]\nblocks = 3\n";
        check("[data]\nx = { q = 3 }", &format!("a = 1\n{method}[data]\nx = {{ p = 1, q = 3 }}"));
        check("a = 2\n[method]\nhidden = 9", &base.replace("a = 1", "a = 2").replace('8', "9"));
        check("[method]\nkind = 'solo'", "a = 1\n[method]\nkind = 'solo'\n[data]\nx = { p = 1, q = 2 }");
        check("[data]\nkind = 'csv'", &format!("a = 1\n{method}[data]\nkind = 'csv'"));
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
