//! The data of an experiment: reads the parties' tables, splits the primary's records, and converts tables to
//! plain numbers.
//!
//! In a simulation one process reads the data of all parties. Even there, each party's table is processed
//! without any other party's table.

use fet_core::data::{
    Bounds, Column, Columns, DataError, Dataset, DatasetContext, Features, Folders, Matrix, PartyTable,
    VerticalData,
};
use fet_core::experiment::{Experiment, PART, SplitKind};
use fet_core::message::Parts;
use fet_core::registry::Violation;
use fet_core::rng::{OwnSeed, Purpose};
use fet_tables::prepare::{Declared, Scaling};
use fet_tables::{Options, Values};
use rand::seq::SliceRandom;

use crate::prepare::{PrimaryData, divide};
use crate::release::check_joined;
use crate::schedule::{self, SplitData};
use crate::trainer::RunError;

/// Reads the experiment's data, with the columns that its split and its scores use. If the method uses no secondaries, their
/// tables may be on their own machines.
pub fn read(experiment: &Experiment, folders: &Folders) -> Result<VerticalData, RunError> {
    let reader = reader(experiment, folders)?;
    if !reader.elsewhere().is_empty() && !experiment.method.build(&())?.plan().secondaries {
        return Ok(read_primary(experiment, folders)?.0);
    }
    let data = reader.load()?;
    let names = std::iter::once(&data.primary).chain(&data.secondaries).map(|table| table.name.as_str());
    check_names(&names.collect::<Vec<_>>())?;
    complete(experiment, folders, data)
}

/// Returns the names of the secondaries whose tables are on their own machines.
pub fn elsewhere(experiment: &Experiment, folders: &Folders) -> Result<Vec<String>, RunError> {
    Ok(reader(experiment, folders)?.elsewhere())
}

/// Reads the primary's own data, and the names of the secondaries in their order.
pub fn read_primary(
    experiment: &Experiment,
    folders: &Folders,
) -> Result<(VerticalData, Vec<String>), RunError> {
    let (data, names) = reader(experiment, folders)?.primary()?;
    let all = std::iter::once(&data.primary.name).chain(&names).map(String::as_str);
    check_names(&all.collect::<Vec<_>>())?;
    Ok((complete(experiment, folders, data)?, names))
}

fn reader(experiment: &Experiment, folders: &Folders) -> Result<Box<dyn Dataset>, RunError> {
    let label = experiment.data.settings().get("label").and_then(toml::Value::as_str).map(String::from);
    let groups = &experiment.scores.groups;
    if !groups.is_empty() && label.as_ref() == Some(groups) {
        return Err(Violation::new(
            "scores.groups",
            "must be a column other than the label",
            format!("{groups:?}"),
        )
        .into());
    }
    let metadata = experiment.metadata_columns();
    let context = DatasetContext { folders, seed: experiment.seed, metadata: &metadata };
    let dataset = experiment.data.build(&context)?;
    let by_position = experiment.linker.build(&())?.about().by_position;
    if dataset.draws_records() && by_position && experiment.method.build(&())?.plan().secondaries {
        let rule = format!(
            "must be 0 with the linker \"{}\", which links by row number: a sample of the rows no \
             longer matches the secondaries' rows",
            experiment.linker.kind()
        );
        let rows = experiment.data.settings().get("rows").map_or_else(String::new, ToString::to_string);
        return Err(Violation::new("data.rows", rule, rows).into());
    }
    Ok(dataset)
}

/// Returns the data with the column that determines the split.
fn complete(
    experiment: &Experiment,
    folders: &Folders,
    mut data: VerticalData,
) -> Result<VerticalData, RunError> {
    if experiment.split.kind == SplitKind::File {
        let part = part_of(&experiment.split.file, folders, &data)?;
        data.metadata.columns.push(part);
    }
    // The split column must not be a feature: it is constant over all rows that a model learns from.
    if experiment.split.kind == SplitKind::Column
        && let Features::Columns(columns) = &mut data.primary.features
    {
        columns.table.columns.retain(|column| column.name != experiment.split.column);
    }
    Ok(data)
}

/// Refuses names of parties that are not unique, or that do not fit in one line.
fn check_names(names: &[&str]) -> Result<(), DataError> {
    for (place, name) in names.iter().enumerate() {
        let refuse = |problem: String| Err(DataError::new("`data`", problem));
        if names[..place].contains(name) {
            return refuse(format!(
                "the parties must have different names; two are called \"{name}\" (see `name`)"
            ));
        }
        if name.is_empty() || name.contains(char::is_control) {
            return refuse(format!("a party must have a name without control characters; it is {name:?}"));
        }
    }
    Ok(())
}

/// Name of the optional column that numbers the rows of a split file.
const ROW: &str = "row";

/// Reads the split of the primary's records from the column of a split file.
fn part_of(file: &str, folders: &Folders, data: &VerticalData) -> Result<Column, DataError> {
    let path = folders.find(file);
    let place = || format!("`split.file` {}", path.display());
    let read = |columns: &[&str]| {
        let columns = Some(columns.iter().map(|name| (*name).to_string()).collect());
        fet_tables::read(&path, &Options { columns, ..Options::default() })
    };
    let table = read(&[PART, ROW])
        .or_else(|_| read(&[PART]))
        .map_err(|error| DataError::new("`split.file`", error))?;
    // Rows of the split file correspond to records by position. Row numbers that contradict the position are
    // an error.
    if let Ok(rows) = table.column(ROW)
        && let Values::Number(numbers) = &rows.values
        && let Some(at) = (0..table.rows).find(|&at| ![at as f64, at as f64 + 1.0].contains(&numbers[at]))
    {
        let problem = format!(
            "must have its rows in the order of the primary's table; `{ROW}` is {} in row {at} (from 0): sort the \
             file by it",
            numbers[at]
        );
        return Err(DataError::new(place(), problem));
    }
    let column = table.column(PART).map_err(|error| DataError::new(place(), error))?;
    let all: Vec<usize>;
    let rows = if data.metadata.rows.is_empty() {
        all = (0..data.labels.len()).collect();
        &all
    } else {
        &data.metadata.rows
    };
    // The split file may have more rows than the data if the dataset sampled its records from a file.
    if rows.iter().enumerate().all(|(place, row)| place == *row) && table.rows > rows.len() {
        let problem = format!(
            "must have a row for each of the primary's {} records, in their order; it has {}",
            rows.len(),
            table.rows
        );
        return Err(DataError::new(place(), problem));
    }
    if let Some(row) = rows.iter().find(|row| **row >= table.rows) {
        let problem = format!(
            "must have a row for each row of the primary's table; it has {}, and row {row} (from 0) is used",
            table.rows
        );
        return Err(DataError::new(place(), problem));
    }
    Ok(Column { name: PART.to_string(), values: column.values.select(rows) })
}

/// Returns the primary's data, split as the experiment requires, and the secondaries' tables.
pub fn divided(
    experiment: &Experiment,
    data: VerticalData,
) -> Result<(PrimaryData, Vec<PartyTable>), DataError> {
    check_joined(experiment, &data)?;
    let parts = parts_of(experiment, &data)?;
    let (primary, tables) = divide(data);
    Ok((PrimaryData { parts, ..primary }, tables))
}

/// Returns the description of the experiment's split of the primary's records.
pub(crate) fn parts_of(experiment: &Experiment, data: &VerticalData) -> Result<Parts, DataError> {
    let settings = &experiment.split;
    let name = if settings.kind == SplitKind::File { PART } else { settings.column.as_str() };
    // The column of the split file is the last one: the primary may have a column of the same name.
    let column = data.metadata.columns.iter().rev().find(|column| column.name == name);
    let known = SplitData { task: data.task, labels: &data.labels, column };
    schedule::parts(settings, &known, experiment.seed)
}

/// Returns the data with the primary's rows in an order that follows from its private seed. In a file sorted
/// by the label, the original order would disclose labels to the secondaries. `metadata.rows` holds each row's
/// place in the file.
pub fn reordered(mut data: VerticalData, own: &OwnSeed) -> VerticalData {
    let mut order: Vec<usize> = (0..data.labels.len()).collect();
    order.shuffle(&mut own.stream(Purpose::Rows, 0));
    let file_row = |&row: &usize| data.metadata.rows.get(row).copied().unwrap_or(row);
    data.metadata.rows = order.iter().map(file_row).collect();
    for column in &mut data.metadata.columns {
        column.values = column.values.select(&order);
    }
    data.labels = order.iter().map(|&row| data.labels[row]).collect();
    data.primary.keys = data.primary.keys.select_rows(&order);
    data.primary.features = data.primary.features.select_rows(&order);
    data
}

/// Returns the data with every party's columns as one table of raw numbers, for attacks and audits, which
/// change single numbers.
///
/// # Errors
/// A column is not numeric or has missing values, or the table's scaling is not the standard one.
pub fn in_numbers(data: VerticalData) -> Result<VerticalData, DataError> {
    let VerticalData { primary, secondaries, .. } = data;
    let secondaries = secondaries.into_iter().map(table_in_numbers).collect::<Result<_, _>>()?;
    Ok(VerticalData { primary: table_in_numbers(primary)?, secondaries, ..data })
}

fn table_in_numbers(party: PartyTable) -> Result<PartyTable, DataError> {
    let Features::Columns(Columns { table, rules }) = &party.features else { return Ok(party) };
    let refuse = |problem: String| DataError::new(format!("data of {}", party.name), problem);
    if rules.scaling != Scaling::Standard || !rules.clip.is_empty() {
        return Err(refuse(
            "must have `scaling = \"standard\"` and no `clip` for an attack or an audit".to_string(),
        ));
    }
    let numbers = |column: &Column| match &column.values {
        Values::Number(values) if !values.iter().any(|value| value.is_nan()) => Ok(values.clone()),
        values => {
            let found = if values.missing() > 0 { "missing values" } else { values.kind() };
            let name = &column.name;
            Err(refuse(format!(
                "column `{name}` must hold a number in every record for an attack or an audit; it has \
                 {found}. Drop the column"
            )))
        }
    };
    let columns = table.columns.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
    let values = (0..table.rows).flat_map(|row| columns.iter().map(move |column| column[row] as f32));
    let features = Features::Numbers(Matrix::new(columns.len(), values.collect()));
    let range = |column: &Column| match rules.declared.get(&column.name) {
        Some(Declared::Range(range)) => Some(*range),
        _ => None,
    };
    let ranges: Option<Vec<[f64; 2]>> = table.columns.iter().map(range).collect();
    let bounds = party.bounds.as_ref().zip(ranges);
    let bounds = bounds.map(|(bounds, features)| Bounds { keys: bounds.keys.clone(), features });
    Ok(PartyTable { name: party.name, keys: party.keys, features, bounds })
}
