//! An experiment: one plain struct, read from TOML, with everything that a run depends on.
//!
//! Serialising it gives every setting with its default filled in, as recorded in the report.
//! This module does not touch files; the `fet` command does.

mod changes;
mod common;
mod scores;
mod split;
mod train;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::aggregator::Aggregator;
use crate::attack::Attack;
use crate::data::Dataset;
use crate::encoder::Encoder;
use crate::labels::LabelProtection;
use crate::linker::Linker;
use crate::method::{Method, Plan, Slots};
use crate::policy::Policy;
use crate::privacy::{PrivacyMechanism, Selection};
use crate::registry::{SettingsError, Slot, Violation};

pub use changes::{overlay, set};
pub use common::CommonSettings;
pub use fet_records::Randomness;
pub use scores::ScoreSettings;
pub use split::{PART, SplitKind, SplitSettings};
pub use train::{Batches, Kernels, TrainSettings, Weighting, WeightingRule, Wire};

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
    /// Which of the primary's records are trained on, validated on and tested on.
    #[serde(default)]
    pub split: SplitSettings,
    /// How the run is scored.
    #[serde(default)]
    pub scores: ScoreSettings,
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
    /// What the secondaries of a simulation let the primary have; a party of its own has a policy of its own.
    #[serde(default)]
    pub policy: Policy,
    /// The protection of the primary's labels: the primary's own affair, and not among the common settings.
    pub labels: Slot<dyn LabelProtection>,
    /// An attack that the run is put to once it is done; none where the table is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attack: Option<Slot<dyn Attack>>,
    /// Where its data files come from, for people who do not have them. A run does not follow from it.
    #[serde(default, skip_serializing)]
    pub origin: String,
    /// The folder of the file that it was read from, where its data files may be too. No setting.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

impl Experiment {
    /// Reads and checks a table.
    ///
    /// A slot that is missing, or whose table has no `kind`, gets the default plug-in; for encoder and aggregator the
    /// method chooses it.
    pub fn from_table(mut table: toml::Table) -> Result<Self, SettingsError> {
        for (slot, kind) in
            [("method", "fet"), ("linker", "nearest"), ("privacy", "none"), ("labels", "none")]
        {
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
        experiment.split.check()?;
        experiment.scores.check()?;
        experiment.policy.check().map_err(|violation| violation.within("policy"))?;
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
            return match &self.attack {
                Some(attack) => {
                    let rule = format!(
                        "must be missing for the method \"{}\": it has no secondaries",
                        self.method.kind()
                    );
                    Err(Violation::new("attack", rule, format!("\"{}\"", attack.kind())))
                }
                None => Ok(()),
            };
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
        self.check_labels(&plan)?;
        self.check_privacy(&plan, &slots)
    }

    /// Refuses settings that bypass a protection of labels.
    fn check_labels(&self, plan: &Plan) -> Result<(), Violation> {
        let stratified = self.split.kind == SplitKind::Stratified && self.split.column.is_empty();
        if stratified && self.labels.kind() != "none" {
            let rule = format!(
                "must not be \"stratified\" by the label where `labels.kind` is \"{}\": the secondaries are told which record is in \
                 which part",
                self.labels.kind()
            );
            return Err(Violation::new("split.kind", rule, "\"stratified\""));
        }
        match plan.averaged {
            Some(averaged) if self.labels.build(&())?.changes_gradients() => {
                let kind = self.labels.kind();
                let rule = format!(
                    "must be 0 where `labels.kind` is \"{kind}\": averaged parameters have learned from labels and bear no \
                     noise"
                );
                Err(Violation::new(averaged.setting, rule, averaged.every))
            }
            _ => Ok(()),
        }
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
                        requires new neighbours for each batch";
            return Err(slots.refuse::<dyn Linker>(rule));
        }
        if selection.occurrences > about.neighbours {
            let rule = format!("must be at most `linker.neighbours` ({}), or 0", about.neighbours);
            return Err(Violation::new("privacy.max_occurrences", rule, selection.occurrences));
        }
        Ok(())
    }

    /// The columns of the primary's table that its split and its scores go by.
    pub fn aside(&self) -> Vec<String> {
        let mut columns = vec![self.split.column.clone(), self.scores.groups.clone()];
        columns.retain(|column| !column.is_empty());
        columns.dedup();
        columns
    }

    /// The settings that all parties must share.
    pub fn common(&self) -> CommonSettings {
        let TrainSettings { recompute, kernels, wire, randomness, class_weights, .. } =
            TrainSettings::default();
        CommonSettings {
            seed: self.seed,
            train: TrainSettings {
                recompute,
                kernels,
                wire,
                randomness,
                class_weights,
                ..self.train.clone()
            },
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
