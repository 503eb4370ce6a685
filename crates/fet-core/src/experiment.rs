//! An experiment: one plain struct, read from TOML, with everything that determines a run.
//!
//! Serialising an experiment writes every setting with its default filled in, as the report records it. This
//! module does not touch files; the `fet` command does.

mod common;
mod scores;
mod split;
mod train;

use std::path::PathBuf;
use std::sync::OnceLock;

use schemars::JsonSchema;
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
use crate::release::Release;
use crate::schema;

pub use crate::changes::{overlay, set, set_all, syntax};
pub use common::CommonSettings;
pub use fet_eval::records::Randomness;
pub use scores::ScoreSettings;
pub use split::{PART, SplitKind, SplitSettings};
pub use train::{Batches, Kernels, NeighboursShown, TrainSettings, Weighting, WeightingRule, Wire};

/// Everything that determines a run, except its data files.
// Each field is a setting that users write, so nesting the fields would change their files.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the results: a plain file name, which also names the results folder.
    pub name: String,
    /// Seed of every random stream: the same seed gives the same run.
    #[serde(default)]
    pub seed: u64,
    /// Compute device: "flex" or "ndarray" on the CPU; "wgpu" or "cuda" on a GPU, "libtorch" or "libtorch-cuda",
    /// if the program includes them (`fet list device`).
    #[serde(default = "default_device")]
    pub device: String,
    /// Length of the run and batch sizes.
    #[serde(default)]
    pub train: TrainSettings,
    /// Split of the primary's records into training, validation and test records.
    #[serde(default)]
    pub split: SplitSettings,
    /// Scores of the run.
    #[serde(default)]
    pub scores: ScoreSettings,
    /// Source of the parties' tables.
    pub data: Slot<dyn Dataset>,
    /// Training method.
    pub method: Slot<dyn Method>,
    /// Linker that finds the records that belong together.
    pub linker: Slot<dyn Linker>,
    /// Local model of a secondary.
    pub encoder: Slot<dyn Encoder>,
    /// Aggregator that combines the parties' representations.
    pub aggregator: Slot<dyn Aggregator>,
    /// Privacy mechanism.
    pub privacy: Slot<dyn PrivacyMechanism>,
    /// Release that each secondary makes once, in place of taking part in the training; none if the table is
    /// missing, or if its `kind` is "none".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Slot<dyn Release>>,
    /// Limits that the secondaries of a simulation put on the primary's requests; a separate party has a
    /// separate policy.
    #[serde(default)]
    pub policy: Policy,
    /// Protection of the primary's labels. It concerns only the primary and is not one of the common
    /// settings.
    pub labels: Slot<dyn LabelProtection>,
    /// Attack that is run after the experiment; none if the table is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attack: Option<Slot<dyn Attack>>,
    /// Folder of a finished run whose models every party starts from, next to this file or in the folder of
    /// data files; empty to start with new models. The parties then prepare their records as that run did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Origin of the data files, for people who do not have them. The run does not depend on it.
    #[serde(default, skip_serializing)]
    pub origin: String,
    /// Folder of the experiment file, which may also contain the data files. Not a setting.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

impl Experiment {
    /// Reads and checks a table.
    ///
    /// A slot that is missing, or whose table has no `kind`, gets the default plug-in. The method chooses the
    /// defaults of encoder and aggregator.
    pub fn from_table(mut table: toml::Table) -> Result<Self, SettingsError> {
        // So that a variant of a study can leave the release out.
        let kind = table.get("release").and_then(|release| release.get("kind"));
        if kind.and_then(toml::Value::as_str) == Some("none") {
            table.remove("release");
        }
        schema::check(&table, Self::schema())?;
        for slot in ["method", "linker", "privacy", "labels"] {
            fill_in(&mut table, slot, "");
        }
        if let Some(toml::Value::Table(method)) = table.get("method") {
            // The code below reports a method that cannot be read, with its path.
            if let Ok(method) = Slot::<dyn Method>::from_table(method.clone()) {
                let plan = method.build(&())?.plan();
                fill_in(&mut table, "encoder", plan.encoder);
                fill_in(&mut table, "aggregator", plan.aggregator);
            }
        }
        for slot in ["encoder", "aggregator"] {
            fill_in(&mut table, slot, "");
        }
        let experiment: Self = serde_path_to_error::deserialize(table)
            .map_err(|error| read_error(&error.path().to_string(), error.inner().message().trim_end()))?;
        experiment.split.check()?;
        experiment.policy.check()?;
        if experiment.name.is_empty()
            || experiment.name.contains(['/', '\\'])
            || experiment.name.starts_with('.')
            || experiment.name.contains(char::is_control)
        {
            let rule = "must be a plain file name: it names the folder of the results";
            return Err(Violation::new("name", rule, format!("{:?}", experiment.name)).into());
        }
        experiment.check_slots()?;
        experiment.check_from()?;
        Ok(experiment)
    }

    /// Returns the JSON schema of an experiment with the plug-ins that are linked into this program.
    pub fn schema() -> &'static serde_json::Value {
        static SCHEMA: OnceLock<serde_json::Value> = OnceLock::new();
        SCHEMA.get_or_init(|| {
            let mut schema = schema::for_type::<Self>();
            // The method chooses the plug-ins of slots without a default.
            schema["required"] = serde_json::json!(["name", "data"]);
            schema
        })
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
        self.check_release(&plan, privacy.as_ref())?;
        if !plan.secondaries {
            return match &self.attack {
                Some(attack) => {
                    let rule = format!(
                        "must be missing for the method \"{}\": it works without secondaries",
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
        self.check_shown(&plan, slots.privacy)?;
        self.check_labels(&plan)?;
        self.check_privacy(&plan, &slots)
    }

    /// Refuses a release next to other messages of the secondaries, whose privacy loss its account would not
    /// cover.
    fn check_release(&self, plan: &Plan, privacy: &dyn PrivacyMechanism) -> Result<(), Violation> {
        let Some(release) = &self.release else { return Ok(()) };
        let needs = release.build(&())?.needs();
        let kind = release.kind();
        let labels = self.labels.build(&())?;
        let rule = match needs {
            _ if labels.is_identity() => None,
            None => Some("must be \"none\": the secondaries receive no labels"),
            Some(_) if labels.truth().is_none() => Some(
                "must be \"none\", or \"randomised-response\" without `prior`: the secondaries receive the training labels \
                 once, as classes",
            ),
            Some(_) => None,
        };
        if let Some(rule) = rule {
            let rule = format!("{rule} (`release.kind` is \"{kind}\")");
            return Err(Violation::new("labels.kind", rule, format!("\"{}\"", self.labels.kind())));
        }
        self.check_split_hides_labels(labels.as_ref())?;
        if plan.secondaries {
            let rule = format!(
                "must work on the primary's columns alone where `release.kind` is \"{kind}\": the secondaries release once \
                 and take no part in the training. Use \"gbdt-solo\", \"linear-solo\", \"solo\", \"fet-alone\" or \
                 \"fet-pool\" with `others = false`, also inside \"with-trees\""
            );
            return Err(Violation::new("method.kind", rule, format!("\"{}\"", self.method.kind())));
        }
        if !privacy.is_identity() {
            let rule = format!(
                "must be left out where `release.kind` is \"{kind}\": the release has its own noise, and nothing \
                 else leaves a secondary"
            );
            return Err(Violation::new("privacy.kind", rule, format!("\"{}\"", self.privacy.kind())));
        }
        if !self.from.is_empty() {
            let rule = format!(
                "must be empty where `release.kind` is \"{kind}\": the earlier run may have had another release"
            );
            return Err(Violation::new("from", rule, format!("\"{}\"", self.from)));
        }
        Ok(())
    }

    /// Refuses `neighbours_per_step` if the method, the mechanism or an attack needs all neighbours in every
    /// step.
    fn check_shown(&self, plan: &Plan, privacy: &dyn PrivacyMechanism) -> Result<(), Violation> {
        let rule = if self.train.neighbours_per_step == 0 {
            return Ok(());
        } else if !plan.any_neighbours {
            format!(
                "must be 0 for the method \"{}\": its model needs all linked neighbours",
                self.method.kind()
            )
        } else if !privacy.is_identity() {
            let kind = self.privacy.kind();
            format!("must be 0 where `privacy.kind` is \"{kind}\": every release covers all neighbours")
        } else if self.attack.is_some() {
            "must be 0 where an attack is set: the attack observes releases of all neighbours".to_string()
        } else {
            return Ok(());
        };
        Err(Violation::new("train.neighbours_per_step", rule, self.train.neighbours_per_step))
    }

    /// Refuses to start from an earlier run's models if their privacy loss would not be counted, or if the
    /// method or an attack rules it out.
    fn check_from(&self) -> Result<(), Violation> {
        if self.from.is_empty() {
            return Ok(());
        }
        let rule = if !self.privacy.build(&())?.is_identity() {
            format!(
                "must be empty where `privacy.kind` is \"{}\": the ε of this run does not cover the releases of \
                 the earlier run",
                self.privacy.kind()
            )
        } else if !self.labels.build(&())?.is_identity() {
            format!(
                "must be empty where `labels.kind` is \"{}\": the ε of this run does not cover the label \
                 information that the earlier run released",
                self.labels.kind()
            )
        } else if self.method.build(&())?.plan().at_once.is_some() {
            format!(
                "must be empty for the method \"{}\", which fits all training rows at once",
                self.method.kind()
            )
        } else if self.attack.is_some() {
            "must be empty where an attack is set: the attack trains the run again from the start".to_string()
        } else {
            return Ok(());
        };
        Err(Violation::new("from", rule, format!("\"{}\"", self.from)))
    }

    /// Refuses a split by protected labels, which the secondaries receive.
    fn check_split_hides_labels(&self, labels: &dyn LabelProtection) -> Result<(), Violation> {
        let data = self.data.settings();
        let label = data.get("label").and_then(toml::Value::as_str);
        let by_label = match self.split.kind {
            SplitKind::Stratified if self.split.column.is_empty() => true,
            _ => label.is_some_and(|label| label == self.split.column),
        };
        if labels.is_identity() || !by_label {
            return Ok(());
        }
        let rule = format!(
            "must not be \"stratified\" by the label, or follow from it, where `labels.kind` is \"{}\": the secondaries learn \
             which rows are training rows, which would reveal labels",
            self.labels.kind()
        );
        Err(Violation::new(
            "split.kind",
            rule,
            format!("\"{}\"", format!("{:?}", self.split.kind).to_lowercase()),
        ))
    }

    /// Refuses settings that bypass a protection of labels.
    fn check_labels(&self, plan: &Plan) -> Result<(), Violation> {
        self.check_split_hides_labels(self.labels.build(&())?.as_ref())?;
        let several_steps = plan.at_once.is_some_and(|at_once| at_once.steps > 1);
        if several_steps && !self.labels.build(&())?.keeps_every_value() {
            let rule = format!(
                "must send every value of a gradient for the method \"{}\": all parties get equal values, and those of some \
                 parties would be left out",
                self.method.kind()
            );
            return Err(Violation::new("labels.kind", rule, format!("\"{}\"", self.labels.kind())));
        }
        match plan.averaged {
            Some(averaged) if self.labels.build(&())?.changes_gradients() => {
                let kind = self.labels.kind();
                let rule = format!(
                    "must be 0 where `labels.kind` is \"{kind}\": averaged parameters depend on labels and carry no \
                     noise"
                );
                Err(Violation::new(self.method.path_of(averaged.setting), rule, averaged.every))
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
                format!("must be 0 where `privacy.kind` is \"{kind}\": averaged parameters carry no noise");
            return Err(Violation::new(self.method.path_of(averaged.setting), rule, averaged.every));
        }
        if plan.similarities || slots.aggregator.uses_similarities() {
            let rule = format!(
                "must be a mechanism without protection, such as \"none\", for the method \"{}\" with the aggregator \"{}\": the secondaries \
                 reveal similarities without noise",
                self.method.kind(),
                self.aggregator.kind()
            );
            return Err(slots.refuse::<dyn PrivacyMechanism>(rule));
        }
        if privacy.claims_amplification() && self.train.batches != Batches::Poisson {
            let rule = "must be \"poisson\" where `privacy.amplification` is claimed: the ε of Poisson sampling does \
                        not hold for shuffled batches";
            return Err(Violation::new("train.batches", rule, "\"shuffled\""));
        }
        if privacy.freezes_secondaries() && plan.party_dropout > 0.0 {
            let rule = "must be 0 where `privacy.learning` is \"frozen\": every row is released once, by all parties";
            return Err(Violation::new(self.method.path_of("party_dropout"), rule, plan.party_dropout));
        }
        let selection = privacy.selection();
        if selection.occurrences > 0 && !about.independent {
            let rule = "must link each record independently, as \"nearest\" and \"edit\" do, where `privacy.max_occurrences` is \
                        set: the rows that a record serves must not depend on other records";
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

    /// Returns the metadata columns: the columns of the primary's table that the split and the scores use.
    pub fn metadata_columns(&self) -> Vec<String> {
        let mut columns = vec![self.split.column.clone(), self.scores.groups.clone()];
        columns.retain(|column| !column.is_empty());
        columns.dedup();
        columns
    }

    /// Returns true if the finished run can continue with more epochs, with the result of a run that had
    /// these epochs from the start.
    pub fn can_go_on(&self) -> Result<bool, SettingsError> {
        let at_once = self.method.build(&())?.plan().at_once.is_some();
        let open = self.labels.build(&())?.is_identity();
        Ok(open && !at_once && self.train.can_go_on(self.privacy.build(&())?.as_ref()))
    }

    /// Returns the settings that all parties must share.
    pub fn common(&self) -> CommonSettings {
        let TrainSettings {
            evaluation_cache,
            recompute,
            kernels,
            wire,
            randomness,
            class_weights,
            target,
            gate,
            refine_keys,
            ..
        } = TrainSettings::default();
        CommonSettings {
            seed: self.seed,
            train: TrainSettings {
                evaluation_cache,
                recompute,
                kernels,
                wire,
                randomness,
                class_weights,
                target,
                gate,
                refine_keys,
                ..self.train.clone()
            },
            method: self.method.clone(),
            linker: self.linker.clone(),
            encoder: self.encoder.clone(),
            aggregator: self.aggregator.clone(),
            privacy: self.privacy.clone(),
            release: self.release.clone(),
        }
    }

    /// Returns the settings with every default filled in.
    pub fn to_table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are plain structs, which TOML can hold")
    }
}

/// Returns an error with the path of the slot, if the message names one of the slot's settings; otherwise the
/// message unchanged.
fn read_error(path: &str, message: &str) -> SettingsError {
    match message.strip_prefix('`').and_then(|rest| rest.split_once("` ")) {
        Some((field, rule)) if !path.ends_with(field) => {
            let field = format!("{path}.{field}");
            match rule.rsplit_once("; it is ") {
                Some((rule, value)) => Violation::new(field, rule, value).into(),
                None => SettingsError::Field { field, message: rule.to_string() },
            }
        }
        _ => SettingsError::Field { field: path.to_string(), message: message.to_string() },
    }
}

fn default_device() -> String {
    "flex".to_string()
}

/// Adds the table `slot` with the kind `kind`, unless they are present.
fn fill_in(table: &mut toml::Table, slot: &str, kind: &str) {
    if let toml::Value::Table(settings) = table.entry(slot).or_insert_with(|| toml::Table::new().into())
        && !kind.is_empty()
    {
        settings.entry("kind").or_insert_with(|| kind.into());
    }
}
