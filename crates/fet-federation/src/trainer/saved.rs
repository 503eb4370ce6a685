//! The primary's finished model: its best parameters and everything else for predictions for new records,
//! except the secondaries.

use fet_core::data::{Keys, Matrix, Standardise, Task, TextTable};
use fet_core::experiment::{Experiment, TrainSettings};
use fet_core::message::Parts;
use fet_core::objective::Objective;
use fet_core::parameters::Parameters;
use fet_core::party::Party;
use fet_core::registry::{Slot, Violation};
use fet_core::rng::OwnSeed;
use fet_core::trainable::Learner;
use fet_eval::conformal::Conformal;
use serde::{Deserialize, Serialize};

use super::{Machine, RunError, Similarities, Trainer};
use crate::prepare::{PreparedParty, PreparedPrimary, Preparing, ScaledTable, Uniform};
use crate::schedule::{self, Schedule};
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
    class_names: Vec<String>,
    /// Standardisation of each secondary's similarities, if the method uses them.
    similarities: Vec<Option<Uniform>>,
    /// Bound of intervals and sets of classes, from the validation rows; `None` if there is none.
    conformal: Option<Conformal>,
}

impl SavedModel {
    /// Returns the best model of a trainer.
    pub fn of(trainer: &Trainer, identity: &serde_json::Value, conformal: Option<Conformal>) -> Self {
        let scaled = &trainer.records.scaled;
        let standard = |similarities: &Option<Similarities>| similarities.as_ref().map(|all| all.standard);
        Self {
            header: Header {
                party: scaled.name.clone(),
                identity: identity.clone(),
                preparing: scaled.preparing.clone(),
                columns: [scaled.keys.columns(), scaled.features.columns()],
                standardise: trainer.standardise,
                rows: trainer.split().rows(),
                gone: trainer.progress.gone.clone(),
                objective: trainer.objective,
                class_names: trainer.class_names.clone(),
                similarities: trainer.similarities.iter().map(standard).collect(),
                conformal,
            },
            parameters: trainer.best.clone(),
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

    /// Returns the parties that dropped out of the run, from 0.
    pub fn gone(&self) -> &[usize] {
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

    /// Returns the bound of intervals and sets of classes.
    pub fn conformal(&self) -> Option<&Conformal> {
        self.header.conformal.as_ref()
    }
}

impl Trainer {
    /// Makes the primary's side of predictions by a finished model, with parties that serve their models.
    /// Parties that dropped out of the run (from 0) are not used. The trainer cannot train: only
    /// [`Trainer::predict`] has a meaning.
    pub fn serving(
        experiment: &Experiment,
        model: &SavedModel,
        parties: Vec<Box<dyn Party>>,
        gone: Vec<usize>,
        machine: &Machine,
    ) -> Result<Self, RunError> {
        let Header {
            party, preparing, columns, standardise, rows, objective, class_names, similarities, ..
        } = model.header.clone();
        let [key_columns, feature_columns] = columns;
        let mut experiment = experiment.clone();
        // Without labels, neither class weights nor a label protection apply.
        experiment.train.class_weights = TrainSettings::default().class_weights;
        experiment.labels = Slot::of("none").map_err(|error| RunError::Data(error_of(&error)))?;
        let method = experiment.method.build(&())?;
        let split = schedule::split(&Parts::default(), rows, experiment.seed)?;
        let schedule =
            Schedule::new(experiment.seed, &experiment.train, &method.plan(), split, parties.len());
        let numbers = experiment.linker.build(&())?.about().takes != fet_core::data::KeyKind::Text;
        let raw_keys = if numbers {
            Keys::Numbers(Matrix::new(key_columns, Vec::new()))
        } else {
            Keys::Text(TextTable::new(1, Vec::new()))
        };
        let scaled = ScaledTable {
            name: party,
            keys: Matrix::new(key_columns, Vec::new()),
            features: Matrix::new(feature_columns, Vec::new()),
            preparing,
        };
        let party = PreparedParty { raw_keys, scaled };
        let prepared = PreparedPrimary {
            objective,
            party,
            labels: vec![0.0; rows],
            file_rows: Vec::new(),
            departures: Vec::new(),
        };
        let own = OwnSeed::simulated(experiment.seed, 0);
        let classes = if objective.outputs > 1 { objective.outputs } else { 2 };
        let mut trainer =
            Self::assemble(&experiment, prepared, schedule, classes, parties, gone, machine, own)?;
        trainer.primary.learner_mut().load(&model.parameters)?;
        trainer.class_names = class_names;
        let known = |standard: Option<Uniform>| {
            standard.map(|standard| Similarities { values: Matrix::new(0, Vec::new()), standard })
        };
        trainer.similarities = similarities.into_iter().map(known).collect();
        trainer.similarities.resize_with(trainer.federation.len(), || None);
        trainer.available = vec![0; trainer.federation.len()];
        trainer.join(&experiment.common().to_toml(), &Parts::default(), standardise)?;
        Ok(trainer)
    }
}

fn error_of(error: &fet_core::registry::SettingsError) -> fet_core::data::DataError {
    fet_core::data::DataError::new("labels", error)
}
