//! `fet predict`: what a finished run's model makes of new records of the primary.
//!
//! The new rows are linked with the secondaries' records, and everything is prepared as it was for the run. In a simulation
//! the secondaries' tables are read where the run read them.

use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fet_backends::Backend;
use fet_core::data::{Column, Columns, DatasetContext, Features, Folders, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::linker::Links;
use fet_core::party::Party;
use fet_tables::{Format, Kind, Options, Table};
use fet_train::prepare::{NEW_ROWS, warnings};
use fet_train::simulation::{Simulation, Watched};
use fet_train::trainer::{Machine, SavedModel, Trainer};

use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::input::{input, machine};
use crate::output;
use crate::parties::network::{Elsewhere, Network};
use crate::parties::{self, Purpose};
use crate::predictions::{Predicted, ROW, number, table, text};
use crate::provenance::{Provenance, files};

/// The arguments of `fet predict`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The folder of a finished run.
    pub run: PathBuf,
    /// The new records: a table with the primary's columns of keys and features; `-` is standard input.
    #[arg(long)]
    pub rows: PathBuf,
    /// The predictions: .csv, .tsv (either with .gz), .parquet or .arrow; `-`, the default, is standard output, as CSV.
    #[arg(long, default_value = "-")]
    pub out: PathBuf,
    /// The other parties are elsewhere: their roster (TOML). Each of them runs `fet party`.
    #[arg(long, value_name = "ROSTER", requires = "key")]
    pub parties: Option<PathBuf>,
    /// The primary's key, to reach parties elsewhere.
    #[arg(long, requires = "parties")]
    pub key: Option<PathBuf>,
    /// What becomes of the predictions where a party elsewhere does not join.
    #[arg(long, value_enum, default_value_t, requires = "parties")]
    pub missing: Missing,
    /// How many seconds a party elsewhere is waited for [default: `wait` of the roster].
    #[arg(long, value_name = "SECONDS", requires = "parties")]
    pub wait: Option<u64>,
    /// A folder in which the secondaries' tables are looked for first: tables with other records than those of the run, in the
    /// same columns.
    #[arg(long, value_name = "FOLDER", conflicts_with = "parties")]
    pub data: Option<PathBuf>,
    /// A column of the new records, such as an identifier, that the predictions repeat as it is.
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// The tensor backend [default: that of the run].
    #[arg(long)]
    pub device: Option<String>,
}

/// What becomes of predictions where a party does not join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Missing {
    /// There are none.
    #[default]
    Error,
    /// They are made without it, and marked; only by a model that was trained with `method.party_dropout`.
    Drop,
}

/// Predicts and writes; returns the warnings.
pub fn predict(arguments: &Arguments) -> anyhow::Result<Vec<String>> {
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
    let elsewhere = roster.map(|(roster, key)| Elsewhere::new(roster, key, Purpose::Predictions, &stop));
    let elsewhere = elsewhere.transpose()?.map(|elsewhere| {
        let elsewhere = match arguments.wait {
            Some(seconds) => elsewhere.waiting(seconds),
            None => elsewhere,
        };
        if arguments.missing == Missing::Drop { elsewhere.dropping() } else { elsewhere }
    });
    if arguments.missing == Missing::Drop {
        check_dropout(&run.experiment)?;
    }
    // Whoever joins parties takes them away from a run: first what can be wrong here.
    let (records, ids) = records(dataset(&run.experiment, &folders)?.as_ref(), arguments, &model)?;
    let mut served = match &elsewhere {
        None => Served::new(&run, &model, &folders)?,
        Some(elsewhere) => Served::elsewhere(&run, &model, elsewhere.join(&run.experiment, &run.folder)?)?,
    };
    let rows = records.rows();
    let mut warnings = served.warnings.clone();
    warnings.extend(odd_cells(&records, &model));
    let outputs = served.trainer.predict(records).map_err(parties::error)?;
    let values = model.objective().predictions(outputs.values());
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(input(format!(
            "{} row {} (from 0): the model has no number for it; a cell of this row, or of a record that it is linked with, is far \
             beyond all that the model has seen",
            arguments.rows.display(),
            place / model.objective().outputs
        )));
    }
    let predicted = Predicted {
        objective: model.objective(),
        class_names: model.class_names(),
        // The bounds were calibrated with all parties.
        conformal: model.conformal().filter(|_| served.missing.is_empty()),
        values: &values,
    };
    let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
    columns.extend(ids);
    columns.extend(predicted.columns());
    if arguments.missing == Missing::Drop {
        let missing = served.missing.join(" | ");
        columns.push(text("missing", (0..rows).map(|_| missing.clone())));
    }
    for party in &served.parties {
        let party = party.look();
        let Some(links) = party.served() else { continue };
        let Some(best) = best_similarities(links) else { continue };
        warnings.extend(unlinked(party.name(), &best, served.floor));
        columns.push(number(&format!("similarity to {}", party.name()), best));
    }
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

/// A finished model and the parties that serve theirs.
pub(crate) struct Served {
    pub(crate) trainer: Trainer,
    pub(crate) parties: Vec<Watched>,
    pub(crate) warnings: Vec<String>,
    /// The parties elsewhere that did not join.
    missing: Vec<String>,
    dataset: Box<dyn fet_core::data::Dataset>,
    floor: Option<f32>,
}

impl Served {
    /// The parties of a run, with their finished models and their tables in `folders`.
    pub(crate) fn new(run: &FinishedRun, model: &SavedModel, folders: &Folders) -> anyhow::Result<Self> {
        let experiment = &run.experiment;
        let backend = backend(run)?;
        let mut warnings = Vec::new();
        let checksum = Provenance::of(experiment, folders).map_err(input)?.files;
        if checksum != run.report.data.files {
            warnings.push(
                "the data files are not as they were when the run read them: predictions use them as they are now".into(),
            );
        }
        let dataset = dataset(experiment, folders)?;
        let machine = machine(&backend);
        let tell = Arc::new(|warning: String| fet_files::note!("warning: {warning}"));
        let simulation = Simulation { tell, ..Simulation::new(experiment, &machine) };
        let secondaries = dataset.secondaries().map_err(input)?;
        let gone = model.gone().to_vec();
        let uses = experiment.method.build(&()).map_err(input)?.plan().secondaries;
        let of = |party: usize| {
            if uses && !gone.contains(&party) { run.party(party + 1).map(Some) } else { Ok(None) }
        };
        let models = (0..secondaries.len()).map(of).collect::<Result<Vec<_>, _>>()?;
        warnings.extend(gone.iter().map(|&party| lost(&secondaries[party].name)));
        let parties = simulation.serving(secondaries, models).map_err(input)?;
        let parties: Vec<Watched> = parties.into_iter().map(Watched::new).collect();
        backend.share(parties.len());
        let boxed = parties.iter().map(|party| simulation.wired(party.clone())).collect();
        let trainer = Trainer::serving(experiment, model, boxed, gone, &machine).map_err(input)?;
        let floor = linked_apart(experiment, !parties.is_empty(), &mut warnings)?;
        Ok(Self { trainer, parties, warnings, missing: Vec::new(), dataset, floor })
    }

    /// The parties of a run on machines of their own, each of which has its finished model.
    fn elsewhere(run: &FinishedRun, model: &SavedModel, network: &Network) -> anyhow::Result<Self> {
        let experiment = &run.experiment;
        let backend = backend(run)?;
        let names: Vec<String> =
            run.report.traffic_by_party.iter().map(|party| party.party.clone()).collect();
        if names.len() != network.len() {
            return Err(input(format!(
                "--parties: the roster has {} parties besides the primary, and the run had {}",
                network.len(),
                names.len()
            )));
        }
        let dataset = dataset(experiment, &data_folders(experiment))?;
        let mut gone = model.gone().to_vec();
        let mut warnings: Vec<String> = gone.iter().map(|&party| lost(&names[party])).collect();
        let missing: Vec<usize> =
            network.missing().iter().copied().filter(|party| !gone.contains(party)).collect();
        let missing_names: Vec<String> = missing.iter().map(|&party| names[party].clone()).collect();
        warnings.extend(missing_names.iter().map(|name| {
            format!("\"{name}\" has not joined: predictions are made without it, and without bounds")
        }));
        gone.extend(missing);
        gone.sort_unstable();
        let machine = Machine { party_threads: names.len(), ..machine(&backend) };
        let parties = network.parties(names);
        let trainer = Trainer::serving(experiment, model, parties, gone, &machine).map_err(parties::error)?;
        linked_apart(experiment, true, &mut warnings)?;
        Ok(Self { trainer, parties: Vec::new(), warnings, missing: missing_names, dataset, floor: None })
    }

    /// The secondaries' tables.
    pub(crate) fn secondaries(&self) -> anyhow::Result<Vec<PartyTable>> {
        self.dataset.secondaries().map_err(input)
    }
}

/// Where tables are looked for: first in the folder that an argument names.
fn folders(arguments: &Arguments, experiment: &Experiment) -> anyhow::Result<Folders> {
    let of_run = data_folders(experiment);
    match &arguments.data {
        None => Ok(of_run),
        Some(folder) if folder.is_dir() => {
            Ok(Folders::new(std::iter::once(folder.clone()).chain(of_run.all().iter().cloned())))
        }
        Some(folder) => Err(input(format!("--data {}: must be a folder that exists", folder.display()))),
    }
}

/// The tables of an experiment.
fn dataset(experiment: &Experiment, folders: &Folders) -> anyhow::Result<Box<dyn fet_core::data::Dataset>> {
    let context = DatasetContext { folders, seed: experiment.seed, aside: &[] };
    experiment.data.build(&context).map_err(input)
}

/// New records out of a file, or out of standard input, and their identifiers, if their column is named.
fn records(
    dataset: &dyn fet_core::data::Dataset,
    arguments: &Arguments,
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

/// How one column of a table is read as the text that it is.
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

/// What a reader of the predictions should know of the cells that they follow from.
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

/// Refuses a model that has never seen a party missing.
fn check_dropout(experiment: &Experiment) -> anyhow::Result<()> {
    let dropout = experiment.method.build(&()).map_err(input)?.plan().party_dropout;
    if dropout > 0.0 {
        return Ok(());
    }
    Err(input(
        "--missing drop: the run was trained without `method.party_dropout`: its model has never seen a party missing; leave it out, \
         or train with party dropout",
    ))
}

/// What a model that is asked computes on; refuses a method that keeps none.
fn backend(run: &FinishedRun) -> anyhow::Result<Backend> {
    let experiment = &run.experiment;
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    if experiment.method.build(&()).map_err(input)?.plan().at_once.is_some() {
        return Err(input(format!(
            "the method \"{}\" keeps no model that could be asked: only its report is left",
            experiment.method.kind()
        )));
    }
    Ok(backend)
}

fn lost(party: &str) -> String {
    format!("the run lost \"{party}\": predictions know nothing of it")
}

/// The similarity below which there is no link; warns where rows are linked by what rows are beside them.
fn linked_apart(
    experiment: &Experiment,
    any: bool,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<f32>> {
    let about = experiment.linker.build(&()).map_err(input)?.about();
    if !about.independent && any {
        warnings.push(format!(
            "the linker \"{}\" links rows by what rows are beside them: predictions of the same rows in another file differ",
            experiment.linker.kind()
        ));
    }
    Ok(about.floor)
}

/// The similarity of each row's best link; nothing where the linker gives none.
fn best_similarities(links: &Links) -> Option<Vec<f64>> {
    // As short as the number is in 32 bits, and without a sign of zero.
    let shown =
        |similarity: &f32| similarity.to_string().parse::<f64>().map_or(f64::from(*similarity), |x| x + 0.0);
    (0..links.rows()).map(|row| links.similarities(row).and_then(<[f32]>::first).map(shown)).collect()
}

/// A warning where rows have no link with a party.
fn unlinked(party: &str, best: &[f64], floor: Option<f32>) -> Option<String> {
    let floor = f64::from(floor?);
    let none: Vec<usize> = (0..best.len()).filter(|&row| best[row] <= floor).collect();
    let first = none.first()?;
    Some(format!(
        "{} of {} rows have no link with \"{party}\" (the first is row {}): their predictions know nothing of that party",
        none.len(),
        best.len(),
        first
    ))
}

/// Refuses an output that cannot be written before any work is done.
fn check_output(arguments: &Arguments, run: &FinishedRun, folders: &Folders) -> anyhow::Result<()> {
    let out = &arguments.out;
    if out == Path::new("-") {
        return Ok(());
    }
    fet_tables::check_name(out).map_err(|error| input(format!("--out: {error}")))?;
    let read: Vec<PathBuf> = files(&run.experiment, folders).into_iter().map(|(_, path)| path).collect();
    output::check(out, output::of_run(run).iter().chain(&read).chain([&arguments.rows]))
}

fn write(out: &Path, table: &Table) -> anyhow::Result<()> {
    if out != Path::new("-") {
        return Ok(fet_tables::write(out, table)?);
    }
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, table)?;
    Ok(fet_files::answer(&String::from_utf8_lossy(&bytes))?)
}
