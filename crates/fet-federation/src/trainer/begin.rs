//! The beginning of a run: prepares the primary's records, labels and model, and has the parties agree to the
//! terms and link.

use fet_core::data::Metadata;
use fet_core::experiment::{Experiment, SplitKind};
use fet_core::learning_rate::Plateau;
use fet_core::message::Request;
use fet_core::party::Party;
use fet_core::registry::Violation;
use fet_core::rng::OwnSeed;

use super::core::{Components, CoreSetup, Machine, PrimaryCore, RecordShape};
use super::error::RunError;
use super::labels::{RecordedLabels, TrainingLabels, exposure};
use super::progress::{Progress, Tables, Warnings};
use super::saved_model::SavedModel;
use super::scores::Scoring;
use super::single_release::SingleRelease;
use super::{BestModel, Trainer};
use crate::federation::Federation;
use crate::prepare::{
    ALL_ROWS, HELD_OUT, Period, PreparedPrimary, PrimaryData, Uniform, missing_classes, warnings,
};
use crate::privacy::solvable_sums;
use crate::schedule::{self, Schedule};
use crate::table_digest;

/// Initial state of the primary's side of a session.
#[derive(Debug)]
pub struct Beginning {
    /// Parties that dropped out of an interrupted run, from 0: the primary does not contact them.
    pub dropped_out: Vec<usize>,
    /// Seed that only the primary knows, as a deployment needs. The experiment's seed is in the terms: a
    /// party that knows it could draw the noise on labels again.
    pub own: OwnSeed,
    /// Finished model that training starts from; `None` to start from initial weights.
    pub model: Option<SavedModel>,
}

impl Trainer {
    /// Makes the primary's side of a run in a simulation; the parties agree to the terms and link. The seed
    /// of the primary's private randomness is derived from the experiment's seed. The primary does not
    /// contact the parties `dropped_out` (from 0), which dropped out of an interrupted run
    /// ([`crate::checkpoint::dropped_out`]).
    pub fn new(
        experiment: &Experiment,
        data: PrimaryData,
        parties: Vec<Box<dyn Party>>,
        dropped_out: Vec<usize>,
        machine: &Machine,
    ) -> Result<Self, RunError> {
        let own = OwnSeed::simulated(experiment.seed, 0);
        Self::begin(experiment, data, parties, machine, Beginning { dropped_out, own, model: None })
    }

    /// Makes the primary's side of a run from a given beginning; the parties agree to the terms and link.
    pub fn begin(
        experiment: &Experiment,
        data: PrimaryData,
        parties: Vec<Box<dyn Party>>,
        machine: &Machine,
        beginning: Beginning,
    ) -> Result<Self, RunError> {
        trainer(experiment, data, parties, machine, beginning)
    }
}

/// Makes a trainer that is ready for its first epoch.
fn trainer(
    experiment: &Experiment,
    data: PrimaryData,
    parties: Vec<Box<dyn Party>>,
    machine: &Machine,
    beginning: Beginning,
) -> Result<Trainer, RunError> {
    let Beginning { dropped_out, own, model: earlier } = beginning;
    let settings = &experiment.train;
    let plan = experiment.method.build(&())?.plan();
    let split = schedule::split(&data.parts, data.table.rows(), experiment.seed)?;
    let schedule = Schedule::new(experiment.seed, settings, &plan, split, parties.len());
    let (standardise, parts, classes) = (data.standardise, data.parts.clone(), data.classes);
    let Metadata { class_names, rows: file_rows, columns } = data.metadata.clone();
    let groups = columns.iter().find(|column| column.name == experiment.scores.groups);
    let groups = groups.map(|column| (column.name.clone(), column.values.texts()));
    let by_time = experiment.split.kind == SplitKind::Time;
    let times = columns.iter().find(|column| by_time && column.name == experiment.split.column);
    let period = times.and_then(|column| Period::new(&column.name, &column.values, &schedule.split().train));
    if let Some(earlier) = &earlier {
        earlier.check_beginning(data.task, classes, &class_names)?;
        if earlier.preparing().refined.is_some() != settings.refine_keys {
            let rule = "must have the value that it has in the earlier run";
            return Err(Violation::new("train.refine_keys", rule, settings.refine_keys).into());
        }
    }
    if let Some(earlier) = &earlier
        && earlier.preparing().keys_hidden == settings.key_inputs
    {
        let rule = "must have the value that it has in the earlier run";
        return Err(Violation::new("train.key_inputs", rule, settings.key_inputs).into());
    }
    let primary_table = table_digest::of_primary(&data.table, &data.labels, &data.metadata, &data.parts);
    let one_time = data.releases.clone();
    let notes: Vec<String> = data.table.notes().map(|note| format!("{}: {note}", data.table.name)).collect();
    let preparation = earlier.as_ref().map(|earlier| (earlier.preparing(), earlier.objective()));
    let prepared = PreparedPrimary::new(data, schedule.split(), settings, preparation)?;
    if plan.secondaries == parties.is_empty() {
        let rule = format!("must have secondaries for the method \"{}\"", experiment.method.kind());
        return Err(Violation::new("data", rule, "one party").into());
    }

    let components = Components::build(experiment, schedule.split(), parties.len())?;
    let PreparedPrimary { objective, party: records, labels, departures, reference, .. } = prepared;
    let target = earlier.as_ref().map(|earlier| earlier.scale().target);
    let exposure = exposure(&schedule, settings, objective.task, classes, components.privacy.as_ref());
    let recorded = RecordedLabels { values: labels, objective, target, file_rows: &file_rows };
    let labels = TrainingLabels::new(experiment, exposure, schedule.split(), recorded, own)?;
    let objective = labels.scale().objective;
    let scaled = &records.scaled;
    let shape = RecordShape {
        key_columns: scaled.keys.columns(),
        feature_columns: scaled.features.columns(),
        objective,
    };
    let mut model = components.model(experiment, shape, machine)?;
    if let Some(earlier) = &earlier {
        earlier.load(model.learner_mut())?;
    }
    let metric = experiment.scores.metric.unwrap_or_else(|| objective.metric());
    let validation: Vec<f64> = schedule.split().validation.iter().map(|&row| labels.values()[row]).collect();
    let scoring = Scoring::new(metric, labels.scale().clone(), groups, &validation)?;

    let mut collected = Warnings::default();
    // With protected labels, the warnings depend only on the protected answers, except in a run with a release, which sends no
    // warning.
    collected.extend(missing_classes(labels.values(), &class_names, &objective, schedule.split()));
    let solvable = solvable_sums(components.privacy.as_ref(), components.planned());
    collected.extend(solvable.map(|problem| {
        format!("{problem}. Set `method.party_dropout` to 0, or `privacy.kind` to a mechanism with noise")
    }));
    let nouns = if earlier.is_some() { ALL_ROWS } else { HELD_OUT };
    collected.extend(warnings(&departures, nouns, |row| file_rows.get(row).copied().unwrap_or(row)));
    collected.extend(notes);
    collected.extend(one_time.warnings().iter().cloned());
    if plan.secondaries {
        collected.extend(components.linker.notes(&records.raw_keys));
    }

    let mut core = PrimaryCore::join(CoreSetup {
        experiment,
        components,
        model,
        schedule,
        objective,
        class_names,
        federation: Federation::new(parties, dropped_out, machine.party_threads),
        device: machine.device.clone().autodiff(),
        parts,
        standardise,
        warnings: collected,
    })?;
    // The links serve the whole run.
    let train = core.schedule.split().train.clone();
    let mut similarity_scales: Vec<Option<Uniform>> = vec![None; core.federation.len()];
    let links = core.link(&records.raw_keys, Request::Link, |party, values| {
        let scale = Uniform::fit(values, &train);
        scale.apply(values);
        similarity_scales[party] = Some(scale);
    })?;
    core.agree_on_keys()?;
    let secondaries = core.profiles.iter().map(|profile| profile.table).collect();
    Ok(Trainer {
        settings: settings.clone(),
        records,
        standardise,
        reference: reference.with_period(period),
        file_rows,
        labels,
        scoring,
        links,
        similarity_scales,
        single_release: SingleRelease::default(),
        one_time,
        progress: Progress {
            plateau: Plateau::new(plan.optimizer.learning_rate),
            epochs: Vec::new(),
            best: None,
            tables: Tables { primary: primary_table, secondaries },
            stopped: false,
        },
        best: BestModel::default(),
        core,
    })
}
