//! Choices of `fet init` for a user's tables: task, keys, linker, split, method and training.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fet_core::registry::did_you_mean;
use fet_io::input::input;
use fet_io::output;
use fet_tables::{ColumnSummary, Options, Summary, summary};

use super::variants::{Variant, variants};

/// Initial setting for the distance, in days, at which the similarity of two dates becomes 0.
const NEAR_DAYS: f64 = 30.0;

/// Table with a summary of its content.
struct Looked {
    /// Name of the party, taken from the file name.
    name: String,
    /// Path of the file as the experiment names it.
    file: String,
    path: PathBuf,
    summary: Summary,
}

fn read_table(path: &Path, out: &Path) -> anyhow::Result<Looked> {
    let table = fet_tables::read(path, &Options { keep_empty: true, ..Options::default() }).map_err(input)?;
    let beside = out.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let file = if beside || path.is_absolute() { path.to_path_buf() } else { path.canonicalize()? };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("party").to_string();
    let file =
        file.to_str().ok_or_else(|| input(format!("{}: must have a name in UTF-8", path.display())))?;
    Ok(Looked { name, file: file.to_string(), path: path.to_path_buf(), summary: summary(&table) })
}

impl Looked {
    fn column(&self, name: &str) -> Option<&ColumnSummary> {
        self.summary.columns.iter().find(|column| column.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.summary.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the column of this name.
    ///
    /// # Errors
    /// Returns a message that lists the table's columns if there is no such column.
    fn find(&self, name: &str, argument: &str) -> anyhow::Result<&ColumnSummary> {
        self.column(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.names());
            let known = self.names().collect::<Vec<_>>().join(", ");
            input(format!(
                "{argument} {name}: there is no such column in {}{hint}; its columns are {known}",
                self.path.display()
            ))
        })
    }
}

/// Tables and columns of an experiment.
pub(crate) struct Request<'a> {
    /// Table of the primary, followed by the tables of the other parties.
    pub(crate) tables: &'a [PathBuf],
    /// Column of the primary's table to predict.
    pub(crate) label: &'a str,
    /// Columns that link the records; empty to choose them.
    pub(crate) keys: &'a [String],
    /// Experiment file: it determines the names of the tables' files in the text, and the name of the experiment.
    pub(crate) file: &'a Path,
}

/// Experiment for a user's tables, with the reasons of all choices as comments.
pub(crate) struct Plan {
    experiment: String,
    /// Suggested variants for a study: strong models of the primary alone, and methods with the other parties.
    pub(crate) variants: Vec<Variant>,
    /// Facts that a user should know before a run, one sentence each.
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// Returns the text of the experiment, without a study.
    pub(crate) fn experiment_text(&self) -> &str {
        &self.experiment
    }

    /// Returns the text of the experiment with a study of the variants.
    pub(crate) fn study_text(&self) -> String {
        let mut text = self.experiment.clone();
        text += "\n# `fet study` compares these variants with three seeds.\n[ablation]\nseeds = [0, 1, 2]\n";
        for variant in &self.variants {
            let _ = write!(
                text,
                "\n# {}: {}.\n[[ablation.variants]]\nname = {}\n",
                variant.role.description(),
                variant.reason,
                quoted(&variant.name)
            );
            if !variant.set.is_empty() {
                let _ = writeln!(text, "set = {}", list(&variant.set));
            }
            if let Some(control) = &variant.control {
                let _ = writeln!(text, "control = {}", quoted(control));
            }
        }
        text
    }
}

/// Looks at the tables and chooses the settings of an experiment.
///
/// # Errors
/// Returns a message for the user if a table cannot be read, or if the label or the keys do not fit.
pub(crate) fn plan(arguments: &Request<'_>) -> anyhow::Result<Plan> {
    let tables: Vec<Looked> =
        arguments.tables.iter().map(|path| read_table(path, arguments.file)).collect::<Result<_, _>>()?;
    let [primary, others @ ..] = tables.as_slice() else {
        return Err(input("name the primary's table first, then the others"));
    };
    let label = primary.find(arguments.label, "--label")?;
    if arguments.keys.contains(&label.name) {
        return Err(input(format!(
            "--keys {}: is the label, which the other parties must not see",
            label.name
        )));
    }
    if label.missing > 0 {
        let problem = format!(
            "is missing in {} of {} rows; leave out the records without a label",
            label.missing, primary.summary.rows
        );
        return Err(input(format!("--label {}: {problem}", label.name)));
    }
    let task = match (label.kind.as_str(), label.distinct) {
        (_, ..2) => return Err(input(format!("--label {}: has the same value in every row", label.name))),
        (_, 2) => "binary",
        ("number", _) => "regression",
        ("date", _) => {
            return Err(input(format!("--label {}: is a date; name a number or a category", label.name)));
        }
        (_, classes @ 3..=100) if 2 * classes <= primary.summary.rows => "multiclass",
        _ => {
            let rows = primary.summary.rows;
            let problem = format!("has {} values in {rows} rows, too many for classes", label.distinct);
            return Err(input(format!("--label {}: {problem}; name a number or a category", label.name)));
        }
    };
    let (keys, as_text) = keys(arguments, &tables)?;
    for table in tables.iter().filter(|_| !as_text) {
        let missing = |key: &&String| table.column(key).is_some_and(|column| column.missing > 0);
        if let Some(key) = keys.iter().find(missing) {
            let rule =
                "must have a number in every row; leave out the records without one, or name other --keys";
            return Err(input(format!("{} column `{key}`: {rule}", table.path.display())));
        }
    }
    let least = others.iter().map(|table| table.summary.rows).min().unwrap_or(1);
    let neighbours = least.div_ceil(4).clamp(1, 20);
    let (linker, why) = match as_text {
        false => (
            "nearest",
            "the closest keys; the primary's keys are sent in the clear, see docs/choosing-a-linker.md",
        ),
        true => ("clk", "similar texts, compared under a secret; for exactly equal keys use psi"),
    };
    let dates: Vec<usize> = (1..)
        .zip(&keys)
        .filter(|(_, key)| {
            as_text
                && tables.iter().all(|table| table.column(key).is_some_and(|column| column.kind == "date"))
        })
        .map(|(number, _)| number)
        .collect();
    let mut names: Vec<String> = Vec::new();
    for table in &tables {
        let same = names.iter().filter(|name| name.split('#').next() == Some(table.name.as_str())).count();
        names.push(if same == 0 { table.name.clone() } else { format!("{}#{}", table.name, same + 1) });
    }
    let name = match arguments.file.file_stem() {
        Some(stem) if arguments.file != Path::new(output::STANDARD) => stem.to_string_lossy().into_owned(),
        _ => "experiment".to_string(),
    };
    let mut text = String::from(
        "# Written by `fet init`. `fet help SETTING` explains a setting, `fet list` lists all settings.\n",
    );
    let _ = writeln!(text, "name = {}\n", quoted(&name));
    let _ = writeln!(text, "[data]\nkind = \"linked\"");
    let _ = writeln!(text, "# `{}`: {}.", plain(&label.name), about(label));
    let _ = writeln!(text, "task = \"{task}\"  # \"regression\", \"binary\" or \"multiclass\"");
    let _ = writeln!(text, "label = {}", quoted(&label.name));
    if as_text {
        text += "key_kind = \"text\"\n";
    }
    for (at, (table, name)) in tables.iter().zip(&names).enumerate() {
        let _ = writeln!(text, "\n# {} rows. Columns, except for the keys:", table.summary.rows);
        for column in table.summary.columns.iter().filter(|column| !keys.contains(&column.name)) {
            let _ = writeln!(text, "#   {}: {}", plain(&column.name), about(column));
        }
        for note in &table.summary.notes {
            let _ = writeln!(text, "# Note: {}.", plain(note));
        }
        text += if at == 0 { "[data.primary]\n" } else { "[[data.secondaries]]\n" };
        let _ =
            writeln!(text, "name = {}\nfile = {}\nkeys = {}", quoted(name), quoted(&table.file), list(&keys));
        let empty = table.summary.columns.iter().filter(|column| column.missing == table.summary.rows);
        let mut drop: Vec<String> = empty.map(|column| column.name.clone()).collect();
        let mut why = vec!["only missing cells"; usize::from(!drop.is_empty())];
        if at > 0 && table.column(&label.name).is_some() && !keys.contains(&label.name) {
            drop.push(label.name.clone());
            why.push("the label, which this party must not reveal");
        }
        if !drop.is_empty() {
            let _ = writeln!(text, "drop = {}  # {}", list(&drop), why.join("; "));
        }
    }
    let _ = writeln!(text, "\n[linker]\n# {why}.\nkind = \"{linker}\"\nneighbours = {neighbours}");
    if !dates.is_empty() {
        let near: Vec<f64> =
            (1..=keys.len()).map(|number| if dates.contains(&number) { NEAR_DAYS } else { 0.0 }).collect();
        let _ = writeln!(
            text,
            "# Key columns with dates, counted from 1, and the distance in days at which the similarity of two dates \
             is 0.\ndates = {dates:?}\nnear = {near:?}"
        );
    }
    let _ = writeln!(text, "\n[split]\n# Also \"time\", \"group\", or your own column or file.");
    let _ = writeln!(text, "kind = \"{}\"", if task == "regression" { "random" } else { "stratified" });
    text += "\n[method]\n# \"solo\" trains the primary alone, to measure the gain from the other parties.\nkind = \
     \"fet\"\n";
    text += "\n[train]\nepochs = 20\nearly_stopping = 5\n";
    Ok(Plan { experiment: text, variants: variants(), warnings: Vec::new() })
}

/// Returns the key columns, and true if they are text keys.
fn keys(arguments: &Request<'_>, tables: &[Looked]) -> anyhow::Result<(Vec<String>, bool)> {
    let is_number = |name: &str| {
        tables.iter().all(|table| table.column(name).is_some_and(|column| column.kind == "number"))
    };
    if !arguments.keys.is_empty() {
        for table in tables {
            arguments.keys.iter().try_for_each(|key| table.find(key, "--keys").map(drop))?;
        }
        return Ok((arguments.keys.to_vec(), !arguments.keys.iter().all(|key| is_number(key))));
    }
    let (primary, others) = (&tables[0], &tables[1..]);
    let shared =
        |name: &&str| *name != arguments.label && others.iter().all(|table| table.column(name).is_some());
    let shared: Vec<String> = primary.names().filter(shared).map(String::from).collect();
    let is_whole = |name: &&String| {
        tables.iter().all(|table| table.column(name).is_some_and(|column| column.missing == 0))
    };
    let numbers: Vec<String> =
        shared.iter().filter(|name| is_number(name)).filter(is_whole).cloned().collect();
    if !numbers.is_empty() {
        return Ok((numbers, false));
    }
    // Text keys may be missing, and a text key may be a date in one table and a name in another.
    if !shared.is_empty() {
        return Ok((shared, true));
    }
    let columns = |table: &Looked| {
        format!("{} has {}", table.path.display(), table.names().collect::<Vec<_>>().join(", "))
    };
    let known: Vec<String> = tables.iter().map(columns).collect();
    Err(input(format!("no column is in all tables; name the keys with --keys ({})", known.join("; "))))
}

/// Describes a column in a few words.
fn about(column: &ColumnSummary) -> String {
    let more = if column.distinct_more { "more than " } else { "" };
    let mut text = format!("{}, {more}{} values", column.kind, column.distinct);
    if column.missing > 0 {
        let _ = write!(text, ", {:.1} % missing", 100.0 * column.missing_share);
    }
    text
}

/// Makes a name fit on one line of a comment.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list(names: &[String]) -> String {
    toml::Value::from(names.to_vec()).to_string()
}
