//! `fet predict`: applies a finished run's model to new records of the primary.
//!
//! The command links the new rows with the secondaries' records and prepares everything in the same way as
//! the run did. In a simulation it reads the secondaries' tables from the same files as the run.

mod reliance;

use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fet_core::data::{Column, Columns, DatasetContext, Features, Folders, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::linker::{About, Links};
use fet_core::party::Party;
use fet_eval::conformal::Conformal;
use fet_federation::prepare::{NEW_ROWS, warnings};
use fet_federation::release;
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{Machine, Predictor, SavedModel};
use fet_tables::{Format, Kind, Options, Table, TableError};

use crate::bounds;
use crate::calibration::Calibration;
use crate::drift::Drift;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::labelled::{self, Comparison, Labelled, Labels, Times};
use crate::parties::network::{Elsewhere, PartyNetwork};
use crate::parties::{self, JoinPurpose};
use crate::predictions::{Predicted, ROW, number, set, table, text};
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
    /// Column of the new records with their labels, where they are known. The command prints the run's metrics,
    /// the bias and the coverage on these records, and warns if they are worse than on the run's test rows.
    #[arg(long, value_name = "COLUMN")]
    pub labels: Option<String>,
    /// Column of dates for the error and coverage by time [default: the column of a split by time, or else
    /// the first column of dates].
    #[arg(long, value_name = "COLUMN", requires = "labels")]
    pub time: Option<String>,
    /// File for intervals or sets of classes that are calibrated again, on the records with a label.
    /// `--calibration FILE` uses them. The model does not change.
    #[arg(long, value_name = "FILE", requires = "labels")]
    pub recalibrate: Option<PathBuf>,
    /// File of `--recalibrate`, whose intervals or sets of classes replace those of the model.
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// File for the reliance of each prediction on each party and column: .csv, .tsv (either with .gz),
    /// .parquet or .arrow. It needs the tables of all parties and the training rows, and takes as long as 20
    /// predictions for each party and column.
    #[arg(long, value_name = "FILE", conflicts_with = "parties")]
    pub explain: Option<PathBuf>,
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
    let calibration = arguments.calibration.as_deref();
    let calibration = calibration.map(|path| Calibration::read(path, &run, model.objective())).transpose()?;
    let NewTable { records, ids, labels, times } =
        records((&run.experiment, dataset(&run.experiment, &folders)?.as_ref()), arguments, &model)?;
    let labels = labels.map(|column| Labels::read(&column, &model, &arguments.rows)).transpose()?;
    if let Some((labels, out)) = labels.as_ref().zip(arguments.recalibrate.as_deref()) {
        check_recalibration(&run, labels, out)?;
    }
    let mut served = match &elsewhere {
        None => Served::new(&run, &model, &folders)?,
        Some(elsewhere) => Served::elsewhere(&run, &model, elsewhere.join(&run.experiment, &run.folder)?)?,
    };
    let rows = records.rows();
    let mut warnings = served.warnings.clone();
    if let Some((out, missing)) = arguments.recalibrate.as_ref().zip(served.missing.first()) {
        return Err(input(format!(
            "--recalibrate {}: bounds need all parties, but \"{missing}\" has not joined",
            out.display()
        )));
    }
    warnings.extend(odd_cells(&records, &model));
    let drift = Drift::of_columns(&model, &records);
    let explained = arguments.explain.as_ref().map(|_| records.clone());
    let new = served.predictor.link_new(records).map_err(parties::error)?;
    let outputs = served.predictor.outputs(&new, &new.parties()).map_err(parties::error)?;
    let values = model.scale().predictions(outputs.values());
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(input(format!(
            "{} row {} (from 0): the model's output is not finite. A cell of this row, or of a linked record, is far \
             outside the range of the training data.",
            arguments.rows.display(),
            place / model.objective().outputs
        )));
    }
    warnings.extend(drift.warnings(&model, &values));
    let predicted = Predicted {
        objective: model.objective(),
        class_names: model.class_names(),
        // The bounds were calibrated with all parties and hold only with all of them.
        conformal: calibration
            .as_ref()
            .map(|calibration| &calibration.conformal)
            .or(model.conformal())
            .filter(|_| served.missing.is_empty()),
        values: &values,
    };
    let conformal = predicted.conformal;
    let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
    columns.extend(ids.clone());
    columns.extend(predicted.columns());
    if arguments.missing == MissingParties::Drop {
        let missing = set(&served.missing);
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
    let with_ids = |columns: Vec<Column>| {
        table(columns).map_err(|error| match &arguments.id {
            Some(id) => input(format!(
                "--id {id}: {error} (of the predictions); rename the column in {}",
                arguments.rows.display()
            )),
            None => input(error),
        })
    };
    let predictions = with_ids(columns)?;
    if let Some((out, table)) = arguments.explain.as_ref().zip(explained) {
        let found = reliance::reliance(&run, &model, &mut served, &new, &table)?;
        let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
        columns.extend(ids);
        columns.extend(found.columns());
        fet_tables::write(out, &with_ids(columns)?)?;
    }
    write(&arguments.out, &predictions)?;
    if let Some(labels) = labels {
        let labelled = Labelled::new(&labels, &run, model.objective(), &values);
        warnings.extend(measure(arguments, &labelled, times.as_ref(), conformal)?);
    }
    if let Some(calibration) = &calibration {
        let rows = "rows of the calibration";
        warnings.extend(bounds::unbounded(&calibration.conformal, model.class_names(), rows));
        show(&arguments.out, &format!("the bounds come from {}\n", calibration.described()))?;
    }
    Ok(warnings)
}

/// Shows the error and the coverage of the records with a label, writes their calibration if the arguments
/// name a file, and returns the warnings.
fn measure(
    arguments: &PredictArguments,
    labelled: &Labelled<'_>,
    times: Option<&Times>,
    conformal: Option<&Conformal>,
) -> anyhow::Result<Vec<String>> {
    let Comparison { mut text, mut warnings } = labelled.compare(conformal)?;
    let by_time = times.map(|times| labelled.by_time(times, conformal)).transpose()?.flatten();
    if let Some((table, warning)) = by_time {
        text += &format!("\n{table}");
        warnings.extend(warning);
    }
    if let Some(out) = &arguments.recalibrate {
        let calibration = labelled.recalibrated()?;
        calibration.write(out)?;
        warnings.extend(bounds::unbounded(
            &calibration.conformal,
            labelled.class_names(),
            "rows with a label",
        ));
        text += &format!(
            "\nwritten: {} with bounds from {}. They fit these rows by construction; measure their coverage on later \
             rows with `--calibration`.\n",
            out.display(),
            calibration.described()
        );
    }
    show(&arguments.out, &text)?;
    Ok(warnings)
}

/// Refuses a calibration with too few labels, before the command does any work.
fn check_recalibration(run: &FinishedRun, labels: &Labels, out: &Path) -> anyhow::Result<()> {
    let (alpha, found) = (labelled::alpha(run), labels.known());
    let least = Conformal::least_rows(alpha);
    if found >= least {
        return Ok(());
    }
    Err(input(format!(
        "--recalibrate {}: {found} {} a label, but bounds for {} need at least {least}. Use more rows.",
        out.display(),
        if found == 1 { "row has" } else { "rows have" },
        bounds::shown(1.0 - alpha)
    )))
}

/// Shows a text on standard output, or on standard error if the predictions are on standard output.
fn show(out: &Path, text: &str) -> anyhow::Result<()> {
    if out == Path::new("-") {
        text.lines().for_each(|line| fet_io::note!("{line}"));
        return Ok(());
    }
    Ok(fet_io::answer(text)?)
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
        warnings.extend(linked_apart(
            experiment,
            &experiment.linker.build(&()).map_err(input)?.about(),
            model,
        ));
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

/// Table of new records.
struct NewTable {
    records: PartyTable,
    /// Column of `--id`.
    ids: Option<Column>,
    /// Column of `--labels`.
    labels: Option<Column>,
    /// Dates for the error by time.
    times: Option<Times>,
}

/// Reads new records from a file or standard input, and the identifiers and labels if their columns are named.
fn records(
    (experiment, dataset): (&Experiment, &dyn fet_core::data::Dataset),
    arguments: &PredictArguments,
    model: &SavedModel,
) -> anyhow::Result<NewTable> {
    let mut kinds = model.preparing().features.kinds();
    // The columns of releases are no columns of the table.
    let joined = release::columns(experiment, model.released()).map_err(input)?;
    kinds.retain(|name, _| !joined.contains(name));
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
    let (ids, labels, times) = (RefCell::new(None), RefCell::new(None), RefCell::new(None));
    let read = |options: &Options| {
        if let Some(id) = &arguments.id {
            ids.replace(read_table(&as_text(id, options))?.columns.pop());
        }
        if let Some(label) = &arguments.labels {
            let as_labels = labelled::options(label, model.objective(), &kinds, options);
            labels.replace(read_table(&as_labels)?.columns.pop());
            let read = |column: &str| read_table(&labelled::time_options(column, &kinds, options));
            times.replace(dates(arguments, model, &read)?);
        }
        read_table(options)
    };
    let records = dataset.records(&name, &kinds, &read).map_err(input)?;
    let records = release::joined_table(experiment, records, model.released()).map_err(input)?;
    let (ids, labels, times) = (ids.into_inner(), labels.into_inner(), times.into_inner());
    for (argument, column) in [("--id", &ids), ("--labels", &labels), ("--time", &times)] {
        if let Some(column) = column.as_ref().filter(|column| column.values.len() != records.rows()) {
            return Err(input(format!(
                "{name}: {argument}: column `{}` has {} cells for {} rows",
                column.name,
                column.values.len(),
                records.rows()
            )));
        }
    }
    let times = times.as_ref().and_then(Times::from_column);
    if let Some(column) = arguments.time.as_ref().filter(|_| times.is_none()) {
        return Err(input(format!("{name}: --time {column}: the column must hold at least one date")));
    }
    Ok(NewTable { records, ids, labels, times })
}

/// Returns the column of `--time`, or that of the training rows' period if the new table has it.
fn dates(
    arguments: &PredictArguments,
    model: &SavedModel,
    read: &dyn Fn(&str) -> Result<Table, TableError>,
) -> Result<Option<Column>, TableError> {
    if let Some(column) = &arguments.time {
        return read(column).map(|mut table| table.columns.pop());
    }
    let period = model.reference().and_then(|reference| reference.period.as_ref());
    // New rows can lack the column of a split by time, which the model does not read.
    Ok(period.and_then(|period| read(&period.column).ok()?.columns.pop()))
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
fn linked_apart(experiment: &Experiment, about: &About, model: &SavedModel) -> Option<String> {
    let kind = experiment.linker.kind();
    // A model of an earlier build lacks what the encoding learned from the run's keys.
    let keeps = about.in_the_clear || !model.encodings().is_empty();
    if about.independent || (about.independent_of_new && keeps) {
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

/// Refuses an unwritable output before the command does any work.
fn check_output(arguments: &PredictArguments, run: &FinishedRun, folders: &Folders) -> anyhow::Result<()> {
    let out = &arguments.out;
    let mut read: Vec<PathBuf> =
        files(&run.experiment, folders).map_err(input)?.into_iter().map(|(_, path)| path).collect();
    read.extend(run.files());
    read.push(arguments.rows.clone());
    read.extend(arguments.calibration.clone());
    if out != Path::new("-") {
        fet_tables::check_name(out).map_err(|error| input(format!("--out: {error}")))?;
        output::check(out, &read)?;
    }
    if let Some(explain) = arguments.explain.as_ref().filter(|explain| *explain != Path::new("-")) {
        fet_tables::check_name(explain).map_err(|error| input(format!("--explain: {error}")))?;
    }
    let mut outs = vec![out];
    for (argument, other) in [("--recalibrate", &arguments.recalibrate), ("--explain", &arguments.explain)] {
        let Some(other) = other else { continue };
        if other == Path::new("-") {
            return Err(input(format!("{argument} -: name a file; standard output has the predictions")));
        }
        if outs.iter().any(|out| output::are_same(out, other)) {
            let problem = "is the file of another output; name another file";
            return Err(input(format!("{argument} {}: {problem}", other.display())));
        }
        output::check_as(argument, other, &read)?;
        outs.push(other);
    }
    if let Some(out) = &arguments.recalibrate {
        Calibration::check_output(out)?;
    }
    Ok(())
}

fn write(out: &Path, table: &Table) -> anyhow::Result<()> {
    if out != Path::new("-") {
        return Ok(fet_tables::write(out, table)?);
    }
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, table)?;
    Ok(fet_io::answer(&String::from_utf8_lossy(&bytes))?)
}
