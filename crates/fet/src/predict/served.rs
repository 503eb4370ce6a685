//! A finished model with its parties, which predicts new records.

use std::sync::Arc;

use fet_core::data::{Column, Columns, DatasetContext, Features, Folders, Matrix, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::linker::{About, Links};
use fet_core::party::Party;
use fet_eval::conformal::Conformal;
use fet_federation::prepare::{NEW_ROWS, warnings};
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{Machine, NewRecords, Predictor, RunError, SavedModel};

use crate::drift::Drift;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::parties;
use crate::parties::network::PartyNetwork;
use crate::parties::remote::PartyLinks;
use crate::predictions::{Predicted, ROW, number, set, text};
use crate::provenance::Provenance;
use crate::run::machine;
use fet_io::input::input;

/// Reason why new records have no predictions.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PredictError {
    /// A party refused or cannot be reached, or a record cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The output of a row is not finite.
    #[error("{0}")]
    Row(String),
}

impl PredictError {
    /// Returns the error of the command.
    pub(crate) fn of_command(self) -> anyhow::Error {
        match self {
            Self::Run(error) => parties::error(error),
            Self::Row(problem) => input(problem),
        }
    }
}

/// Predictions of new records.
pub(crate) struct Answered {
    /// The records, as they were linked.
    pub(crate) new: NewRecords,
    /// Prediction of each row, or the probabilities of its classes.
    pub(crate) values: Vec<f64>,
    /// Columns of the table of predictions, the first of which is the row's number.
    pub(crate) columns: Vec<Column>,
    /// Warnings about these rows.
    pub(crate) warnings: Vec<String>,
}

/// Finished model, together with the parties that serve their models.
pub(crate) struct Served {
    pub(crate) predictor: Predictor,
    pub(crate) parties: Vec<ObservedParty>,
    pub(crate) warnings: Vec<String>,
    /// Links to parties elsewhere.
    pub(crate) links: Option<PartyLinks>,
    /// Parties elsewhere that did not join.
    pub(crate) missing: Vec<String>,
    /// True if the predictions have a column with the missing parties.
    marks_missing: bool,
    dataset: Box<dyn fet_core::data::Dataset>,
    /// The similarity at or below which there is no link.
    floor: Option<f32>,
    /// A warning for predictions whose rows have fewer links than K.
    where_drawn: Option<String>,
}

impl Served {
    /// Creates the parties of a run, with their finished models and their tables in `folders`.
    pub(crate) fn new(run: &FinishedRun, model: &SavedModel, folders: &Folders) -> anyhow::Result<Self> {
        let experiment = &run.experiment;
        let backend = fet_backends::open(&run.experiment.device).map_err(input)?;
        let mut warnings = Vec::new();
        let uses = experiment.method.build(&()).map_err(input)?.plan().secondaries;
        // Without secondaries, predictions read no table of the run.
        if uses
            && Provenance::of_experiment(experiment, folders).map_err(input)?.files != run.report.data.files
        {
            warnings
                .push("the data files have changed since the run; predictions use the present files".into());
        }
        let dataset = dataset(experiment, folders)?;
        let machine = machine(&backend);
        let tell = Arc::new(|warning: String| fet_io::note!("warning: {warning}"));
        let simulation = Simulation { tell, ..Simulation::new(experiment, &machine) };
        let secondaries = if uses { dataset.secondaries().map_err(input)? } else { Vec::new() };
        let dropped_out = model.dropped_out().to_vec();
        let of = |party: usize| {
            if uses && !dropped_out.contains(&party) { run.party(party + 1).map(Some) } else { Ok(None) }
        };
        let models = (0..secondaries.len()).map(of).collect::<Result<Vec<_>, _>>()?;
        warnings.extend(dropped_out.iter().map(|&party| lost(&secondaries[party].name)));
        let parties = simulation.serving(secondaries, models).map_err(input)?;
        let parties: Vec<ObservedParty> = parties.into_iter().map(ObservedParty::new).collect();
        backend.share(parties.len());
        let boxed = parties.iter().map(|party| simulation.wired(party.clone())).collect();
        let predictor = Predictor::new(experiment, model, boxed, dropped_out, &machine).map_err(input)?;
        let about = experiment.linker.build(&()).map_err(input)?.about();
        let apart = linked_apart(experiment, &about, model).filter(|_| !parties.is_empty());
        let (where_drawn, apart) = if draws(&about) { (apart, None) } else { (None, apart) };
        warnings.extend(apart);
        let floor = about.floor;
        Ok(Self {
            predictor,
            parties,
            warnings,
            links: None,
            missing: Vec::new(),
            marks_missing: false,
            dataset,
            floor,
            where_drawn,
        })
    }

    /// Reaches the parties of a run on separate machines, each with its finished model.
    pub(crate) fn elsewhere(
        run: &FinishedRun,
        model: &SavedModel,
        network: &PartyNetwork,
        marks_missing: bool,
    ) -> anyhow::Result<Self> {
        let experiment = &run.experiment;
        let backend = fet_backends::open(&run.experiment.device).map_err(input)?;
        let names: Vec<String> =
            run.report.traffic_by_party.iter().map(|party| party.party.clone()).collect();
        if names.len() != network.len() {
            return Err(input(format!(
                "--parties: the roster has {} parties in addition to the primary, but the run had {}",
                network.len(),
                names.len()
            )));
        }
        let dataset = dataset(experiment, &data_folders(experiment))?;
        let mut dropped_out = model.dropped_out().to_vec();
        let mut warnings: Vec<String> = dropped_out.iter().map(|&party| lost(&names[party])).collect();
        let missing: Vec<usize> =
            network.missing().iter().copied().filter(|party| !dropped_out.contains(party)).collect();
        let missing_names: Vec<String> = missing.iter().map(|&party| names[party].clone()).collect();
        warnings.extend(
            missing_names
                .iter()
                .map(|name| format!("\"{name}\" has not joined; the predictions omit it and lack bounds")),
        );
        dropped_out.extend(missing);
        dropped_out.sort_unstable();
        let machine = Machine { party_threads: names.len(), ..machine(&backend) };
        let parties = network.parties(names);
        let predictor =
            Predictor::new(experiment, model, parties, dropped_out, &machine).map_err(parties::error)?;
        warnings.extend(linked_apart(
            experiment,
            &experiment.linker.build(&()).map_err(input)?.about(),
            model,
        ));
        let missing = missing_names;
        let parties = Vec::new();
        Ok(Self {
            predictor,
            parties,
            warnings,
            links: Some(network.party_links()),
            missing,
            marks_missing,
            dataset,
            floor: None,
            where_drawn: None,
        })
    }

    /// Predicts new records; `name` is that of their table, for errors. `conformal` gives the bounds.
    pub(crate) fn answer(
        &mut self,
        model: &SavedModel,
        name: &str,
        records: PartyTable,
        conformal: Option<&Conformal>,
    ) -> Result<Answered, PredictError> {
        let mut warnings = odd_cells(&records, model);
        let drift = Drift::of_columns(model, &records);
        let new = self.predictor.link_new(records)?;
        let outputs = self.predictor.outputs(&new, &new.parties())?;
        let values = predicted_values(model, name, &outputs)?;
        warnings.extend(drift.warnings(model, &values));
        let columns = self.columns(model, &values, conformal, &mut warnings);
        Ok(Answered { new, values, columns, warnings })
    }

    /// Predicts the records of a request for a service, which may keep representations of earlier ones. Returns the columns
    /// of the table of predictions, and warnings about these rows.
    pub(crate) fn answer_request(
        &mut self,
        model: &SavedModel,
        records: PartyTable,
        conformal: Option<&Conformal>,
    ) -> Result<(Vec<Column>, Vec<String>), PredictError> {
        let mut warnings = odd_cells(&records, model);
        let drift = Drift::of_columns(model, &records);
        let outputs = self.predictor.predict(records)?;
        let values = predicted_values(model, "the request", &outputs)?;
        warnings.extend(drift.warnings(model, &values));
        let columns = self.columns(model, &values, conformal, &mut warnings);
        Ok((columns, warnings))
    }

    /// Returns the columns of the table of predictions, and adds warnings about rows without links.
    fn columns(
        &self,
        model: &SavedModel,
        values: &[f64],
        conformal: Option<&Conformal>,
        warnings: &mut Vec<String>,
    ) -> Vec<Column> {
        let rows = values.len() / model.objective().outputs;
        let predicted = Predicted {
            objective: model.objective(),
            class_names: model.class_names(),
            // The bounds were calibrated with all parties and hold only with all of them.
            conformal: conformal.filter(|_| self.missing.is_empty()),
            values,
        };
        let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
        columns.extend(predicted.columns());
        if self.marks_missing {
            let missing = set(&self.missing);
            columns.push(text("missing", (0..rows).map(|_| missing.clone())));
        }
        let mut drawn = false;
        for party in &self.parties {
            let party = party.lock();
            let Some(links) = party.served() else { continue };
            let is_none =
                |floor: f32| links.all_similarities().is_some_and(|all| all.iter().any(|of| *of <= floor));
            drawn |= self.floor.is_some_and(is_none);
            let Some(best) = best_similarities(links) else { continue };
            warnings.extend(unlinked(party.name(), &best, self.floor));
            columns.push(number(&format!("similarity to {}", party.name()), best));
        }
        warnings.extend(self.where_drawn.clone().filter(|_| drawn));
        columns
    }

    /// Returns the secondaries' tables.
    pub(crate) fn secondaries(&self) -> anyhow::Result<Vec<PartyTable>> {
        self.dataset.secondaries().map_err(input)
    }
}

/// Returns the predictions of a model's outputs.
fn predicted_values(model: &SavedModel, name: &str, outputs: &Matrix<f32>) -> Result<Vec<f64>, PredictError> {
    let values = model.scale().predictions(outputs.values());
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(PredictError::Row(format!(
            "{name} row {} (from 0): the model's output is not finite. A cell of this row, or of a linked record, is far \
             outside the range of the training data.",
            place / model.objective().outputs
        )));
    }
    Ok(values)
}

/// Builds the dataset of an experiment.
pub(crate) fn dataset(
    experiment: &Experiment,
    folders: &Folders,
) -> anyhow::Result<Box<dyn fet_core::data::Dataset>> {
    let context = DatasetContext { folders, seed: experiment.seed, metadata: &[] };
    experiment.data.build(&context).map_err(input)
}

fn lost(party: &str) -> String {
    format!("\"{party}\" dropped out of the run; the predictions do not use it")
}

/// Returns true if rows with an equal key get the same records in any file, and only rows without one get drawn records.
fn draws(about: &About) -> bool {
    about.equality && about.floor.is_some()
}

/// Returns true if the links of a row depend on no other row of its table.
pub(crate) fn are_independent(about: &About, model: &SavedModel) -> bool {
    // A model of an earlier build lacks what the encoding learned from the run's keys.
    let keeps = about.in_the_clear || !model.encodings().is_empty();
    about.independent || (about.independent_of_new && keeps)
}

/// Returns a warning if the links of a row depend on other rows.
fn linked_apart(experiment: &Experiment, about: &About, model: &SavedModel) -> Option<String> {
    let kind = experiment.linker.kind();
    if are_independent(about, model) {
        return None;
    }
    let links = match draws(about) {
        true => "draws records for rows with fewer equal keys than K, depending on",
        false => "links each row depending on",
    };
    Some(format!(
        "the linker \"{kind}\" {links} the other rows of the file; the same rows in another file get other predictions"
    ))
}

/// Returns the similarity of each row's best link; `None` if the linker gives no similarities.
fn best_similarities(links: &Links) -> Option<Vec<f64>> {
    // Use the shortest decimal form of the 32-bit number, and no negative zero.
    let shown =
        |similarity: &f32| similarity.to_string().parse::<f64>().map_or(f64::from(*similarity), |x| x + 0.0);
    (0..links.rows()).map(|row| links.similarities(row).and_then(<[f32]>::first).map(shown)).collect()
}

/// Returns a warning about rows without a link to a party.
fn unlinked(party: &str, best: &[f64], floor: Option<f32>) -> Option<String> {
    let floor = f64::from(floor?);
    let none: Vec<usize> = (0..best.len()).filter(|&row| best[row] <= floor).collect();
    let first = none.first()?;
    Some(format!(
        "{} of {} rows {} a link with \"{party}\" (the first is row {first}); {} use that party",
        none.len(),
        best.len(),
        if none.len() == 1 { "lacks" } else { "lack" },
        if none.len() == 1 { "its prediction does not" } else { "their predictions do not" }
    ))
}

/// Returns warnings about unusual cells in the new records.
fn odd_cells(records: &PartyTable, model: &SavedModel) -> Vec<String> {
    let rows: Vec<usize> = (0..records.rows()).collect();
    let departures = model.preparing().departures(records, &rows);
    let notes = match &records.features {
        Features::Columns(Columns { table, .. }) => table.notes.as_slice(),
        Features::Numbers(_) => &[],
    };
    let notes = notes.iter().filter(|note| note.starts_with("column `")).cloned();
    notes.chain(warnings(&departures, NEW_ROWS, |row| row)).collect()
}
