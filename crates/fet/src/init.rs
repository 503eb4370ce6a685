//! `fet init`: writes an experiment for a user's own tables, with a comment on each choice.
//!
//! The experiment is a starting point that runs. The command guesses the keys from the columns that all
//! tables share, and the task from the label. The user must name the label.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fet_core::experiment::Experiment;
use fet_core::registry::did_you_mean;
use fet_tables::{ColumnSummary, Options, Summary, summary};

use fet_io::input::input;
use fet_io::output;

/// Arguments of `fet init`.
#[derive(Debug, Clone, clap::Args)]
pub struct InitArguments {
    /// The primary's table, which has the label, followed by the tables of the other parties.
    #[arg(required = true, num_args = 2.., value_name = "TABLE")]
    pub tables: Vec<PathBuf>,
    /// Column of the primary's table to predict.
    #[arg(long)]
    pub label: String,
    /// Columns that link the records, with the same names in all tables [default: the columns that all tables
    /// share].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub keys: Vec<String>,
    /// Experiment file to write; the command never replaces an existing file. `-` writes to standard output.
    #[arg(long, default_value = "experiment.toml")]
    pub out: PathBuf,
}

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

/// Writes the experiment, and returns the next steps for the user.
pub fn init(arguments: &InitArguments) -> anyhow::Result<String> {
    let out = &arguments.out;
    output::check(out, &arguments.tables)?;
    if out != Path::new(output::STANDARD) && out.symlink_metadata().is_ok() {
        return Err(input(format!("--out {}: the file exists already; name another file", out.display())));
    }
    let tables: Vec<Looked> =
        arguments.tables.iter().map(|path| read_table(path, out)).collect::<Result<_, _>>()?;
    let text = experiment(arguments, &tables)?;
    let to_standard = out == Path::new(output::STANDARD);
    // The written text must be a valid experiment.
    let mut table: toml::Table = text.parse()?;
    table.remove("ablation");
    Experiment::from_table(table).map_err(|error| input(format!("{}: {error}", out.display())))?;
    if to_standard {
        return Ok(text);
    }
    fet_io::write(out, text.as_bytes())?;
    let out = out.display();
    Ok(format!(
        "written: {out}\nRead the file, then run `fet data check {out}` and `fet run {out}`, and explain the run with \
         `fet explain`.\n"
    ))
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

/// Returns the text of the experiment.
fn experiment(arguments: &InitArguments, tables: &[Looked]) -> anyhow::Result<String> {
    let [primary, others @ ..] = tables else {
        return Err(input("name the primary's table first, then the others"));
    };
    let label = primary.find(&arguments.label, "--label")?;
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
    let (keys, as_text) = keys(arguments, tables)?;
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
    for table in tables {
        let same = names.iter().filter(|name| name.split('#').next() == Some(table.name.as_str())).count();
        names.push(if same == 0 { table.name.clone() } else { format!("{}#{}", table.name, same + 1) });
    }
    let name = match arguments.out.file_stem() {
        Some(stem) if arguments.out != Path::new(output::STANDARD) => stem.to_string_lossy().into_owned(),
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
    text += "\n# `fet study` compares both with three seeds.\n[ablation]\nseeds = [0, 1, 2]\n\
             variants = [{ name = \"FeT\" }, { name = \"primary alone\", set = [\"method.kind=solo\"] }]\n";
    Ok(text)
}

/// Returns the key columns, and true if they are text keys.
fn keys(arguments: &InitArguments, tables: &[Looked]) -> anyhow::Result<(Vec<String>, bool)> {
    let is_number = |name: &str| {
        tables.iter().all(|table| table.column(name).is_some_and(|column| column.kind == "number"))
    };
    if !arguments.keys.is_empty() {
        for table in tables {
            arguments.keys.iter().try_for_each(|key| table.find(key, "--keys").map(drop))?;
        }
        return Ok((arguments.keys.clone(), !arguments.keys.iter().all(|key| is_number(key))));
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
