//! `fet predict`: applies a finished run's model to new records of the primary.
//!
//! The command links the new rows with the secondaries' records and prepares everything in the same way as
//! the run did. In a simulation it reads the secondaries' tables from the same files as the run.

mod arguments;
mod client;
mod model;
mod reliance;
mod served;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fet_core::data::{Column, PartyTable, Reading};
use fet_core::experiment::Experiment;
use fet_core::privacy::Spent;
use fet_eval::conformal::Conformal;
use fet_federation::release;
use fet_federation::trainer::SavedModel;
use fet_tables::{Format, Kind, Options, Table, TableError};

use crate::bounds;
use crate::calibration::Calibration;
use crate::finished::FinishedRun;
use crate::labelled::{self, Comparison, Labelled, Labels, Times};
use crate::predictions::{ROW, number, table, write_to};
use crate::provenance::files;
use fet_io::input::input;
use fet_io::output;

pub use self::arguments::PredictArguments;
pub(crate) use self::model::Model;
pub use self::model::{MissingParties, ModelArguments};
pub(crate) use self::served::{Answered, PredictError, Served, are_independent};

/// Predicts, writes the predictions, and returns the warnings. The run may be the address of a service.
pub fn predict(arguments: &PredictArguments) -> anyhow::Result<Vec<String>> {
    if let Some(url) = client::address(&arguments.model.run) {
        return client::predict(arguments, &url);
    }
    if arguments.token_file.is_some() {
        return Err(input("--token-file belongs to a service; name its address in place of the run"));
    }
    let place = Model::open(&arguments.model)?;
    check_output(arguments, &place)?;
    let Model { run, model, dataset, calibration, .. } = &place;
    // Ctrl-C ends a prediction at once.
    let elsewhere = place.elsewhere(&arguments.model, &Arc::default())?;
    // A prediction takes the parties from a run, so first check everything that can fail here.
    let NewTable { records, ids, labels, times } =
        records((&run.experiment, dataset.as_ref()), arguments, model)?;
    let labels = labels.map(|column| Labels::read(&column, model, &arguments.rows)).transpose()?;
    if let Some((labels, out)) = labels.as_ref().zip(arguments.recalibrate.as_deref()) {
        check_recalibration(run, labels, out)?;
    }
    let mut served = place.serve(elsewhere.as_ref())?;
    let rows = records.rows();
    if let Some((out, missing)) = arguments.recalibrate.as_ref().zip(served.missing.first()) {
        return Err(input(format!(
            "--recalibrate {}: bounds need all parties, but \"{missing}\" has not joined",
            out.display()
        )));
    }
    let explained = arguments.explain.as_ref().map(|_| records.clone());
    let conformal = place.conformal();
    let rows_from = arguments.rows.display().to_string();
    let Answered { new, values, mut columns, warnings: of_rows } =
        served.answer(model, &rows_from, records, conformal).map_err(PredictError::of_command)?;
    let mut warnings = served.warnings.clone();
    warnings.extend(of_rows);
    // The bounds were calibrated with all parties and hold only with all of them.
    let conformal = conformal.filter(|_| served.missing.is_empty());
    columns.splice(1..1, ids.clone());
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
        let found = reliance::reliance(run, model, &mut served, &new, &table)?;
        let mut columns = vec![number(ROW, (0..rows).map(|row| row as f64).collect())];
        columns.extend(ids);
        columns.extend(found.columns());
        fet_tables::write(out, &with_ids(columns)?)?;
    }
    write_to(&arguments.out, &predictions)?;
    if let Some(spent) = served.predictor.spent() {
        show(&arguments.out, &cost(&spent, elsewhere.is_some()))?;
    }
    if let Some(labels) = labels {
        let labelled = Labelled::new(&labels, run, model.objective(), &values);
        warnings.extend(measure(arguments, &labelled, times.as_ref(), conformal)?);
    }
    if let Some(calibration) = calibration {
        let rows = "rows of the calibration";
        warnings.extend(bounds::unbounded(&calibration.conformal, model.class_names(), rows));
        show(&arguments.out, &format!("the bounds come from {}\n", calibration.described()))?;
    }
    Ok(warnings)
}

/// Returns a line with the cost of predictions with noise. The noise of a simulation hides nothing.
fn cost(spent: &Spent, is_real: bool) -> String {
    let epsilon = spent.epsilon.filter(|epsilon| epsilon.is_finite());
    let epsilon = epsilon.map_or_else(|| "no finite ε".to_string(), |epsilon| format!("ε = {epsilon:.3}"));
    let (cost, reason) = match is_real {
        true => ("cost", ""),
        false => ("would cost", ", with noise that does not follow from a seed as in this simulation"),
    };
    format!("these predictions {cost} {epsilon} at δ = {:e}, in addition to the run{reason}\n", spent.delta)
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

/// Reads a table of new records as the run read its own; `name` is that of the table, for errors.
pub(crate) fn read_records(
    experiment: &Experiment,
    dataset: &dyn fet_core::data::Dataset,
    model: &SavedModel,
    name: &str,
    read: &Reading<'_>,
) -> anyhow::Result<PartyTable> {
    let records = dataset.records(name, &kinds(experiment, model)?, read).map_err(input)?;
    release::joined_table(experiment, records, model.released()).map_err(input)
}

/// Returns the kinds of the columns of new records.
pub(crate) fn kinds(experiment: &Experiment, model: &SavedModel) -> anyhow::Result<BTreeMap<String, Kind>> {
    let mut kinds = model.preparing().features.kinds();
    // The primary's file lacks the columns of releases.
    let joined = release::columns(experiment, model.released()).map_err(input)?;
    kinds.retain(|name, _| !joined.contains(name));
    Ok(kinds)
}

/// Reads new records from a file or standard input, and the identifiers and labels if their columns are named.
fn records(
    (experiment, dataset): (&Experiment, &dyn fet_core::data::Dataset),
    arguments: &PredictArguments,
    model: &SavedModel,
) -> anyhow::Result<NewTable> {
    let kinds = kinds(experiment, model)?;
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
    let records = read_records(experiment, dataset, model, &name, &read)?;
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

/// Refuses an unwritable output before the command does any work.
fn check_output(arguments: &PredictArguments, place: &Model) -> anyhow::Result<()> {
    let run = &place.run;
    let out = &arguments.out;
    let mut read: Vec<PathBuf> =
        files(&run.experiment, &place.folders).map_err(input)?.into_iter().map(|(_, path)| path).collect();
    read.extend(run.files());
    read.push(arguments.rows.clone());
    read.extend(arguments.model.calibration.clone());
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
