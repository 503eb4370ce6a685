//! The primary's finished model: its best parameters and everything else for predictions for new records,
//! except the secondaries.

use fet_core::data::{Standardise, Task};
use fet_core::objective::{FittedTarget, LabelScale, Objective};
use fet_core::parameters::Parameters;
use fet_core::registry::Violation;
use fet_core::release::Released;
use fet_core::trainable::Learner;
use fet_eval::conformal::Conformal;
use serde::{Deserialize, Serialize};

use super::Trainer;
use crate::prepare::{Preparing, Reference, Uniform};
use crate::state_file::{StateError, StateFile, load_all};

/// The primary's finished model.
#[derive(Debug, Clone)]
pub struct SavedModel {
    header: Header,
    parameters: Parameters,
}

/// The header of a model file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    party: String,
    /// Identity of the run: everything that determines its result.
    identity: serde_json::Value,
    /// Preparation of the primary's records.
    preparing: Preparing,
    /// Numbers of key and feature columns that models saw.
    columns: [usize; 2],
    standardise: Standardise,
    /// Number of records in the run.
    rows: usize,
    /// Parties that dropped out of the run, from 0.
    gone: Vec<usize>,
    objective: Objective,
    /// Transformation of the labels.
    #[serde(default, skip_serializing_if = "FittedTarget::is_none")]
    target: FittedTarget,
    class_names: Vec<String>,
    /// Standardisation of each secondary's similarities, if the method uses them.
    similarities: Vec<Option<Uniform>>,
    /// Information that the encoding of keys for each secondary learned from the run's keys; empty in a model of an
    /// earlier build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    encodings: Vec<Option<Vec<u8>>>,
    /// Bounds of intervals and sets of classes, from the validation rows; `None` if there are none.
    conformal: Option<Conformal>,
    /// Releases whose columns the model sees, for new records; empty without a release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    released: Vec<Released>,
    /// Summary of the training rows; `None` in a model of an earlier build.
    #[serde(default)]
    reference: Option<Reference>,
}

impl SavedModel {
    /// Returns the best model of a trainer.
    pub fn from_trainer(
        trainer: &Trainer,
        identity: &serde_json::Value,
        conformal: Option<Conformal>,
    ) -> Self {
        let scaled = &trainer.records().scaled;
        Self {
            header: Header {
                party: scaled.name.clone(),
                identity: identity.clone(),
                preparing: scaled.preparing.clone(),
                columns: [scaled.keys.columns(), scaled.features.columns()],
                standardise: trainer.standardise(),
                rows: trainer.split().rows(),
                gone: trainer.federation().dropped().to_vec(),
                objective: trainer.objective(),
                target: trainer.label_scale().target.clone(),
                class_names: trainer.class_names().to_vec(),
                similarities: trainer.similarity_scales().to_vec(),
                encodings: trainer.encodings().to_vec(),
                conformal,
                released: trainer.one_time_releases().in_model(),
                reference: Some(trainer.reference()),
            },
            parameters: trainer.best().clone(),
        }
    }

    /// Returns the content of a model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        StateFile::new(&self.header, self.parameters.clone()).to_bytes()
    }

    /// Reads a model file.
    pub fn read(bytes: &[u8]) -> Result<Self, StateError> {
        let (header, file) = StateFile::read::<Header>(bytes)?;
        Ok(Self { header, parameters: file.parameters })
    }

    /// Returns the identity of the run.
    pub fn identity(&self) -> &serde_json::Value {
        &self.header.identity
    }

    /// Returns the preparation of the primary's records.
    pub fn preparing(&self) -> &Preparing {
        &self.header.preparing
    }

    /// Returns the loss, the metric and the number of outputs.
    pub fn objective(&self) -> Objective {
        self.header.objective
    }

    /// Returns the scale of the labels.
    pub fn scale(&self) -> LabelScale {
        LabelScale { objective: self.header.objective, target: self.header.target.clone() }
    }

    /// Returns the parties that dropped out of the run, from 0.
    pub fn dropped_out(&self) -> &[usize] {
        &self.header.gone
    }

    /// Returns the names of the classes; empty if the classes are numbers.
    pub fn class_names(&self) -> &[String] {
        &self.header.class_names
    }

    /// Refuses to continue from this model if the run predicts something else.
    pub(super) fn check_beginning(
        &self,
        task: Task,
        classes: usize,
        names: &[String],
    ) -> Result<(), Violation> {
        let Header { objective, class_names, .. } = &self.header;
        let outputs = if task == Task::Multiclass { classes } else { 1 };
        let refuse = |rule: &str, value: String| Err(Violation::new("from", rule, value));
        if (objective.task, objective.outputs) != (task, outputs) {
            let name = |task, outputs| match task {
                Task::Regression => "a regression".to_string(),
                Task::Binary => "two classes".to_string(),
                Task::Multiclass => format!("{outputs} classes"),
            };
            let rule = format!("must be a run that predicts {}", name(task, outputs));
            return refuse(&rule, format!("one that predicts {}", name(objective.task, objective.outputs)));
        }
        if class_names != names {
            let called = |names: &[String]| match names {
                [] => "classes that are numbers".to_string(),
                names => format!("the classes {}", names.join(", ")),
            };
            let rule = format!("must be a run that predicts {}", called(names));
            return refuse(&rule, format!("one that predicts {}", called(class_names)));
        }
        Ok(())
    }

    /// Loads the parameters into a model, which must have the same parameters.
    pub(super) fn load(&self, learner: &mut dyn Learner) -> Result<(), Violation> {
        let rule = "must be a run of a model with the same parameters (`method`, `encoder`, `aggregator` and their sizes)";
        load_all(learner, &self.parameters)
            .map_err(|error| Violation::new("from", rule, format!("one of another model: {error}")))
    }

    /// Returns the summary of the training rows; `None` if an earlier build saved the model.
    pub fn reference(&self) -> Option<&Reference> {
        self.header.reference.as_ref()
    }

    /// Returns the releases whose columns the model sees.
    pub fn released(&self) -> &[Released] {
        &self.header.released
    }

    /// Returns the bounds of intervals and sets of classes.
    pub fn conformal(&self) -> Option<&Conformal> {
        self.header.conformal.as_ref()
    }

    /// Returns what the encoding of keys for each secondary learned from the run's keys; empty in a model of
    /// an earlier build.
    pub fn encodings(&self) -> &[Option<Vec<u8>>] {
        &self.header.encodings
    }

    /// Returns the numbers of key and feature columns that the model sees.
    pub(super) fn columns(&self) -> [usize; 2] {
        self.header.columns
    }

    /// Returns the number of records in the run.
    pub(super) fn rows(&self) -> usize {
        self.header.rows
    }

    /// Returns the standardisation of the run.
    pub(super) fn standardise(&self) -> Standardise {
        self.header.standardise
    }

    /// Returns the standardisation of each secondary's similarities, if the method uses them.
    pub(super) fn similarity_scales(&self) -> &[Option<Uniform>] {
        &self.header.similarities
    }

    /// Returns the parameters of the best model.
    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
