//! `fet predict`: applies a finished run's model to new records of the primary.
//!
//! The command links the new rows with the secondaries' records and prepares everything in the same way as
//! the run did. In a simulation it reads the secondaries' tables from the same files as the run.

use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fet_core::data::{Column, Columns, DatasetContext, Features, Folders, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::linker::{About, Links};
use fet_core::party::Party;
use fet_federation::prepare::{NEW_ROWS, warnings};
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{Machine, Predictor, SavedModel};
use fet_tables::{Format, Kind, Options, Table};

use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::parties::network::{Elsewhere, PartyNetwork};
use crate::parties::{self, JoinPurpose};
use crate::predictions::{Predicted, ROW, number, table, text};
use crate::provenance::{Provenance, files};
use crate::run::machine;
use fet_io::input::input;
use fet_io::output;

/// Arguments of `fet predict`.
#[derive(Debug, Clone, clap::Args)]
pub struct PredictArguments {
    /// Folder of a finished run.
    pub run: PathBuf,
    /// New records: a table with the primary's key and feature columns; `-` reads standard input.
    #[arg(long)]
    pub rows: PathBuf,
    /// Output file for the predictions: .csv, .tsv (either with .gz), .parquet or .arrow. `-`, the default,
    /// writes CSV to standard output.
    #[arg(long, default_value = "-")]
    pub out: PathBuf,
    /// Roster (TOML) of parties on other machines. Each of these parties runs `fet party`.
    #[arg(long, value_name = "ROSTER", requires = "key")]
    pub parties: Option<PathBuf>,
    /// The primary's key, to reach parties on other machines.
    #[arg(long, requires = "parties")]
    pub key: Option<PathBuf>,
    /// Reaction to a party that does not join.
    #[arg(long, value_enum, default_value_t, requires = "parties")]
    pub missing: MissingParties,
    /// Seconds to wait for a party on another machine [default: `wait` in the roster].
    #[arg(long, value_name = "SECONDS", requires = "parties")]
    pub wait: Option<u64>,
    /// Folder that is searched first for the secondaries' tables: tables with other records than the run's,
    /// in the same columns.
    #[arg(long, value_name = "FOLDER", conflicts_with = "parties")]
    pub data: Option<PathBuf>,
    /// Column of the new records, such as an identifier, to copy into the predictions.
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Tensor backend [default: the backend of the run].
    #[arg(long)]
    pub device: Option<String>,
}

/// Reaction to a party that does not join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MissingParties {
    /// Fail without predictions.
    #[default]
    Error,
    /// Predict without the party and mark the predictions; needs a model that was trained with
    /// `method.party_dropout`.
    Drop,
}

/// Predicts, writes the predictions, and returns the warnings.
pub fn predict(arguments: &PredictArguments) -> anyhow::Result<Vec<String>> {
    let mut run = FinishedRun::read(&arguments.run)?;
    if let Some(device) = &arguments.device {
        run.experiment.device.clone_from(device);
    }
    let folders = folders(arguments, &run.experiment)?;
    check_output(arguments, &run, &folders)?;
    let model = run.model()?;
    let roster = arguments.parties.as_deref().zip(arguments.key.as_deref());
    // Ctrl-C ends a prediction at once.
    let stop = Arc::new(AtomicBool::new(false));
    let elsewhere = roster.map(|(roster, key)| Elsewhere::new(roster, key, JoinPurpose::Predictions, &stop));
    let elsewhere = elsewhere.transpose()?.map(|elsewhere| {
        let elsewhere = match arguments.wait {
            Some(seconds) => elsewhere.waiting(seconds),
            None => elsewhere,
        };
        if arguments.missing == MissingParties::Drop { elsewhere.dropping() } else { elsewhere }
    });
    if arguments.missing == MissingParties::Drop {
        check_dropout(&run.experiment)?;
    }
    // Joining parties interrupts their current run, so first check everything that can fail here.
    let (records, ids) = records(dataset(&run.experiment, &folders)?.as_ref(), arguments, &model)?;
    let mut served = match &elsewhere {
        None => Served::new(&run, &model, &folders)?,
        Some(elsewhere) => Served::elsewhere(&run, &model, elsewhere.join(&run.experiment, &run.folder)?)?,
    };
    let rows = records.rows();
    let mut warnings = served.warnings.clone();
    warnings.extend(odd_cells(&records, &model));
    let outputs = served.predictor.predict(records).map_err(parties::error)?;
    let values = model.scale().predictions(outputs.values());
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(input(format!(
            "{} row {} (from 0): the model's output is not finite. A cell of this row, or of a linked record, is far \
             outside the range of the training data.",
            arguments.rows.display(),
            place / model.objective().outputs
        )));
    }
    let predicted = Predicted {
        objective: model.objective(),
        class_names: model.class_names(),
        // The bounds were calibrated with all parties and hold only with all of them.
        conformal: model.conformal().filter(|_| served.missing.is_empty()),
        values: &values,
    };
    let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
    columns.extend(ids);
    columns.extend(predicted.columns());
    if arguments.missing == MissingParties::Drop {
        let missing = served.missing.join(" | ");
        columns.push(text("missing", (0..rows).map(|_| missing.clone())));
    }
    let mut drawn = false;
    for party in &served.parties {
        let party = party.lock();
        let Some(links) = party.served() else { continue };
        let is_none =
            |floor: f32| links.all_similarities().is_some_and(|all| all.iter().any(|of| *of <= floor));
        drawn |= served.floor.is_some_and(is_none);
        let Some(best) = best_similarities(links) else { continue };
        warnings.extend(unlinked(party.name(), &best, served.floor));
        columns.push(number(&format!("similarity to {}", party.name()), best));
    }
    warnings.extend(served.where_drawn.take().filter(|_| drawn));
    let predictions = table(columns).map_err(|error| match &arguments.id {
        Some(id) => input(format!(
            "--id {id}: {error} (of the predictions); rename the column in {}",
            arguments.rows.display()
        )),
        None => input(error),
    })?;
    write(&arguments.out, &predictions)?;
    Ok(warnings)
}

/// Finished model, together with the parties that serve their models.
pub(crate) struct Served {
    pub(crate) predictor: Predictor,
    pub(crate) parties: Vec<ObservedParty>,
    pub(crate) warnings: Vec<String>,
    /// Parties elsewhere that did not join.
    missing: Vec<String>,
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
        let checksum = Provenance::of_experiment(experiment, folders).map_err(input)?.files;
        if checksum != run.report.data.files {
            warnings
                .push("the data files have changed since the run; predictions use the present files".into());
        }
        let dataset = dataset(experiment, folders)?;
        let machine = machine(&backend);
        let tell = Arc::new(|warning: String| fet_io::note!("warning: {warning}"));
        let simulation = Simulation { tell, ..Simulation::new(experiment, &machine) };
        let secondaries = dataset.secondaries().map_err(input)?;
        let dropped_out = model.dropped_out().to_vec();
        let uses = experiment.method.build(&()).map_err(input)?.plan().secondaries;
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
        let apart = linked_apart(experiment, &about).filter(|_| !parties.is_empty());
        let (where_drawn, apart) = if draws(&about) { (apart, None) } else { (None, apart) };
        warnings.extend(apart);
        let floor = about.floor;
        Ok(Self { predictor, parties, warnings, missing: Vec::new(), dataset, floor, where_drawn })
    }

    /// Reaches the parties of a run on separate machines, each with its finished model.
    fn elsewhere(run: &FinishedRun, model: &SavedModel, network: &PartyNetwork) -> anyhow::Result<Self> {
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
        warnings.extend(linked_apart(experiment, &experiment.linker.build(&()).map_err(input)?.about()));
        let missing = missing_names;
        let parties = Vec::new();
        Ok(Self { predictor, parties, warnings, missing, dataset, floor: None, where_drawn: None })
    }

    /// Returns the secondaries' tables.
    pub(crate) fn secondaries(&self) -> anyhow::Result<Vec<PartyTable>> {
        self.dataset.secondaries().map_err(input)
    }
}

/// Returns the folders with tables; the folder of the `--data` argument comes first.
fn folders(arguments: &PredictArguments, experiment: &Experiment) -> anyhow::Result<Folders> {
    let of_run = data_folders(experiment);
    match &arguments.data {
        None => Ok(of_run),
        Some(folder) if folder.is_dir() => {
            Ok(Folders::new(std::iter::once(folder.clone()).chain(of_run.all().iter().cloned())))
        }
        Some(folder) => Err(input(format!("--data {}: must be a folder that exists", folder.display()))),
    }
}

/// Builds the dataset of an experiment.
fn dataset(experiment: &Experiment, folders: &Folders) -> anyhow::Result<Box<dyn fet_core::data::Dataset>> {
    let context = DatasetContext { folders, seed: experiment.seed, metadata: &[] };
    experiment.data.build(&context).map_err(input)
}

/// Reads new records from a file or standard input, and the identifiers if their column is named.
fn records(
    dataset: &dyn fet_core::data::Dataset,
    arguments: &PredictArguments,
    model: &SavedModel,
) -> anyhow::Result<(PartyTable, Option<Column>)> {
    let kinds = model.preparing().features.kinds();
    let (name, bytes) = if arguments.rows == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| input(format!("standard input: {e}")))?;
        ("standard input".to_string(), Some(bytes))
    } else {
        (arguments.rows.display().to_string(), None)
    };
    let read_table = |options: &Options| match &bytes {
        Some(bytes) => fet_tables::read_from(bytes.as_slice(), None::<Format>, options),
        None => fet_tables::read(&arguments.rows, options),
    };
    let id = arguments.id.as_deref();
    let ids = RefCell::new(None);
    let read = |options: &Options| {
        if let Some(id) = id {
            let mut table = read_table(&as_text(id, options))?;
            ids.replace(table.columns.pop());
        }
        read_table(options)
    };
    let records = dataset.records(&name, &kinds, &read).map_err(input)?;
    let ids = ids.into_inner();
    if let Some(ids) = ids.as_ref().filter(|ids| ids.values.len() != records.rows()) {
        return Err(input(format!(
            "{name}: --id: column `{}` has {} cells for {} rows",
            ids.name,
            ids.values.len(),
            records.rows()
        )));
    }
    Ok((records, ids))
}

/// Returns the options that read one column of a table as verbatim text.
fn as_text(column: &str, options: &Options) -> Options {
    Options {
        kinds: [(column.to_string(), Kind::Text)].into(),
        inferred: Default::default(),
        columns: Some(vec![column.to_string()]),
        keep_empty: true,
        keep_spaces: true,
        ..options.clone()
    }
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

/// Refuses a model that was trained without party dropout.
fn check_dropout(experiment: &Experiment) -> anyhow::Result<()> {
    let dropout = experiment.method.build(&()).map_err(input)?.plan().party_dropout;
    if dropout > 0.0 {
        return Ok(());
    }
    Err(input(
        "--missing drop: the model was trained without `method.party_dropout` and cannot handle a missing party. \
         Remove this option, or train with party dropout.",
    ))
}

fn lost(party: &str) -> String {
    format!("\"{party}\" dropped out of the run; the predictions do not use it")
}

/// Returns true if rows with an equal key get the same records in any file, and only rows without one get drawn records.
fn draws(about: &About) -> bool {
    about.equality && about.floor.is_some()
}

/// Returns a warning if the links of a row depend on other rows.
fn linked_apart(experiment: &Experiment, about: &About) -> Option<String> {
    let kind = experiment.linker.kind();
    if about.independent {
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
        "{} of {} rows lack a link with \"{party}\" (the first is row {}); their predictions do not use that party",
        none.len(),
        best.len(),
        first
    ))
}

/// Refuses an unwritable output before the command does any work.
fn check_output(arguments: &PredictArguments, run: &FinishedRun, folders: &Folders) -> anyhow::Result<()> {
    let out = &arguments.out;
    if out == Path::new("-") {
        return Ok(());
    }
    fet_tables::check_name(out).map_err(|error| input(format!("--out: {error}")))?;
    let read: Vec<PathBuf> =
        files(&run.experiment, folders).map_err(input)?.into_iter().map(|(_, path)| path).collect();
    output::check(out, run.files().iter().chain(&read).chain([&arguments.rows]))
}

fn write(out: &Path, table: &Table) -> anyhow::Result<()> {
    if out != Path::new("-") {
        return Ok(fet_tables::write(out, table)?);
    }
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, table)?;
    Ok(fet_io::answer(&String::from_utf8_lossy(&bytes))?)
}
