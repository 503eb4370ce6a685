//! Experiment for a user's tables, and its text: every setting stands below the reason for it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use fet_data::TableSettings;
use fet_eval::Fractions;
use fet_io::input::input;
use fet_io::output;
use fet_tables::ColumnSummary;

use super::keys::{self, KeyChoice};
use super::linking::{self, Linking};
pub(crate) use super::tables::Request;
use super::tables::{self, PartyFile};
use super::training::{self, Label, MetricChoice, SplitChoice};
use super::variants::{BASE, SMALL, Variant, settings_of_pool, variants};

/// Greatest width of a comment in characters.
const WIDTH: usize = 118;
/// Maximum number of the primary's rows in a quick study.
const QUICK: usize = 4_000;
/// Seeds of the study.
const SEEDS: &str = "[0, 1, 2]";

/// Experiment for a user's tables, with the reasons of all choices as comments.
pub(crate) struct Plan {
    experiment: String,
    /// Number of the primary's rows.
    rows: usize,
    /// Suggested variants for a study: strong models of the primary alone, and methods with the other parties.
    pub(crate) variants: Vec<Variant>,
    /// Facts that a user should know before a run, one sentence each.
    pub(crate) warnings: Vec<String>,
    /// Ambiguity of the links to each other table, one sentence each.
    pub(crate) links: Vec<String>,
}

impl Plan {
    /// Returns the text of the experiment, without a study.
    pub(crate) fn experiment_text(&self) -> &str {
        &self.experiment
    }

    /// Returns the text of the experiment with a study of the variants.
    pub(crate) fn study_text(&self) -> String {
        let mut text = self.experiment.clone();
        text.push('\n');
        comment(
            &mut text,
            "`fet study` runs these variants with each seed. Its report has the contribution of the other parties: a method \
             minus its `control`, the same method without them.",
        );
        let _ = writeln!(text, "[ablation]\nseeds = {SEEDS}\nbase = {}", quoted(BASE));
        for variant in &self.variants {
            text.push('\n');
            comment(&mut text, &format!("{}: {}.", variant.role.description(), variant.reason));
            let _ = writeln!(text, "[[ablation.variants]]\nname = {}", quoted(&variant.name));
            if !variant.set.is_empty() {
                let _ = writeln!(text, "set = {}", list(&variant.set));
            }
            if let Some(control) = &variant.control {
                let _ = writeln!(text, "control = {}", quoted(control));
            }
        }
        text +=
            "\n# `fet study --quick`: a short look.\n[profile.quick]\nseeds = [0]\nset = [\"train.epochs=5\"";
        if self.rows > QUICK {
            let _ = write!(text, ", \"data.rows={QUICK}\"");
        }
        text += "]\n";
        text
    }
}

/// Looks at the tables and chooses the settings of an experiment.
///
/// # Errors
/// Returns a message for the user if a table cannot be read, or if the label or the keys do not fit.
pub(crate) fn plan(request: &Request<'_>) -> anyhow::Result<Plan> {
    require_different_files(request)?;
    let tables = tables::read(request.tables, request.keys, request.file)?;
    let [primary, _, ..] = tables.as_slice() else {
        return Err(input("name the primary's table first, then the others"));
    };
    primary.find(request.label, "--label")?;
    require_different_contents(&tables)?;
    if request.keys.iter().any(|key| key == request.label) {
        let label = request.label;
        return Err(input(format!("--keys {label}: is the label, which the other parties must not see")));
    }
    let label = Label::new(request.label, primary)?;
    let keys = keys::choose(request, &tables)?;
    require_enough(request, &tables, &keys)?;
    let linking = linking::choose(&keys, &tables);
    let metric = training::metric(&label);
    let split = training::split(&label, primary, &keys);
    let pool = settings_of_pool(&keys, split.train);
    let variants = variants(&pool, &linking, split.train);

    let mut text = String::from(
        "# Written by `fet init`. `fet help SETTING` explains a setting, `fet list` lists all settings.\n",
    );
    let _ = writeln!(text, "name = {}", quoted(&name_of(request.file)));
    write_data(&mut text, request, &tables, &keys, label.task.name());
    write_linker(&mut text, &linking);
    write_split(&mut text, &split);
    let _ = writeln!(text, "\n[scores]");
    comment(&mut text, &format!("{}.", metric.reason));
    let _ = writeln!(text, "metric = \"{}\"", metric.metric);
    write_method(&mut text, &pool, split.train);
    write_training(&mut text, &metric, split.train);
    if keys.are_identifiers(&tables) {
        comment(
            &mut text,
            "The keys are identifiers: they only link records, and no model sees them. Set true if their order says something about \
             the label.",
        );
        text.push_str("key_inputs = false\n");
    }
    let mut warnings = Vec::new();
    let have_label = tables[1..].iter().filter(|table| table.column(request.label).is_some());
    warnings.extend(have_label.filter(|_| !keys.names.iter().any(|key| key == request.label)).map(|table| {
        format!(
            "{}: has a column `{}`, like the label; the file leaves it out",
            table.path.display(),
            request.label
        )
    }));
    warnings.extend(labels_elsewhere(request.label, &tables, &keys));
    warnings.extend([linking.warnings, metric.warnings, split.warnings].concat());
    Ok(Plan { experiment: text, rows: primary.rows(), variants, warnings, links: linking.facts })
}

/// Checks that the request names no file twice.
///
/// # Errors
/// Returns a message for the user.
fn require_different_files(request: &Request<'_>) -> anyhow::Result<()> {
    for (at, path) in request.tables.iter().enumerate() {
        if request.tables[..at].iter().any(|other| same_file(other, path)) {
            let path = path.display();
            return Err(input(format!("{path}: is named twice; name a different table for each party")));
        }
    }
    Ok(())
}

/// Minimum share of a table's rows that are rows of another one, in a copy.
const COPIED: f64 = 0.9;
/// Minimum number of distinct labels that a column cannot have by chance.
const DISTINCT: usize = 50;

/// Checks that no table is a copy of an earlier one, also without some of its columns or in another order.
///
/// # Errors
/// Returns a message for the user.
fn require_different_contents(tables: &[PartyFile]) -> anyhow::Result<()> {
    for (at, table) in tables.iter().enumerate() {
        let contains = |other: &&PartyFile| {
            let names: Vec<&str> = table.names().collect();
            let has_all = names.iter().all(|name| other.values(name).is_some());
            has_all && common_share(&rows(table, &names), &rows(other, &names)) >= COPIED
        };
        if let Some(other) = tables[..at].iter().find(contains) {
            return Err(input(format!(
                "{}: nearly every row is a row of {} with the same cells, so this party adds nothing; name a different table for \
                 each party",
                table.path.display(),
                other.path.display()
            )));
        }
    }
    Ok(())
}

/// Returns the cells of these columns as one text for each row.
fn rows(table: &PartyFile, names: &[&str]) -> Vec<String> {
    let mut rows = vec![String::new(); table.rows()];
    for cells in names.iter().filter_map(|name| table.values(name)) {
        for (row, cell) in rows.iter_mut().zip(cells.texts()) {
            row.push_str(&cell);
            row.push('\0');
        }
    }
    rows
}

/// Returns the share of cells that also occur in others, each as often as there.
fn common_share(cells: &[String], others: &[String]) -> f64 {
    let mut left: HashMap<&str, usize> = HashMap::new();
    others.iter().for_each(|cell| *left.entry(cell).or_default() += 1);
    let is_common = |cell: &&String| match left.get_mut(cell.as_str()) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    cells.iter().filter(is_common).count() as f64 / cells.len().max(1) as f64
}

/// Returns a warning for each column of another party with the values of the label, under any name and in any order.
fn labels_elsewhere(label: &str, tables: &[PartyFile], keys: &KeyChoice) -> Vec<String> {
    let labels = rows(&tables[0], &[label]);
    if labels.iter().collect::<HashSet<_>>().len() < DISTINCT {
        return Vec::new();
    }
    let mut found = Vec::new();
    for table in &tables[1..] {
        let is_other = |name: &&str| *name != label && !keys.names.iter().any(|key| key == name);
        for name in table.names().filter(is_other) {
            if common_share(&labels, &rows(table, &[name])) >= COPIED {
                found.push(format!(
                    "{}: the column `{name}` has the same values as the label `{label}`; leave it out if it is the label",
                    table.path.display()
                ));
            }
        }
    }
    found
}

/// Checks that a run can use the tables.
///
/// # Errors
/// Returns a message for the user if a table lacks a column for a model, or the primary's rows are too few for a
/// split.
fn require_enough(request: &Request<'_>, tables: &[PartyFile], keys: &KeyChoice) -> anyhow::Result<()> {
    for (at, table) in tables.iter().enumerate() {
        let path = table.path.display();
        let is_key_or_label = |name: &str| name == request.label || keys.names.iter().any(|key| key == name);
        if table.names().all(is_key_or_label) {
            let besides = if at == 0 { "the keys and the label" } else { "the keys" };
            return Err(input(format!(
                "{path}: needs a column other than {besides} ({})",
                keys.names.join(", ")
            )));
        }
    }
    let primary = &tables[0];
    Fractions::default()
        .sizes(primary.rows())
        .map(|_| ())
        .map_err(|error| input(format!("{}: {error}", primary.path.display())))
}

/// Returns true if two paths name the same file.
fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the name of an experiment in `file`.
fn name_of(file: &Path) -> String {
    match file.file_stem() {
        Some(stem) if file != Path::new(output::STANDARD) => stem.to_string_lossy().into_owned(),
        _ => "experiment".to_string(),
    }
}

fn write_data(text: &mut String, request: &Request<'_>, tables: &[PartyFile], keys: &KeyChoice, task: &str) {
    let _ = writeln!(text, "\n[data]\nkind = \"linked\"");
    if let Some(label) = tables[0].column(request.label) {
        comment(text, &format!("`{}`: {}.", plain(&label.name), about(label)));
    }
    let _ = writeln!(text, "task = \"{task}\"  # \"regression\", \"binary\" or \"multiclass\"");
    let _ = writeln!(text, "label = {}", quoted(request.label));
    comment(text, &format!("Keys: {}. `--keys A,B` names others.", keys.reason));
    let _ = writeln!(text, "key_kind = \"{}\"", if keys.are_texts { "text" } else { "numbers" });
    if tables.iter().any(|table| has_key_features(table, keys)) {
        comment(
            text,
            "Models also see the distance of two points, and the parts of dates and times, which they cannot compute from the keys \
             well.",
        );
        let _ = writeln!(text, "key_features = true");
    }
    for (at, table) in tables.iter().enumerate() {
        let label = (at > 0 && !keys.names.iter().any(|key| key == request.label)).then_some(request.label);
        write_table(text, table, keys, if at == 0 { Some(request.label) } else { None }, label);
    }
}

/// Returns true if `key_features` computes columns from the keys of a table.
fn has_key_features(table: &PartyFile, keys: &KeyChoice) -> bool {
    let form = |key: &String| Some((key.clone(), table.form_of_key(key)?.parse().ok()?));
    let settings = TableSettings {
        keys: keys.names.clone(),
        columns: keys.names.iter().filter_map(form).collect(),
        ..TableSettings::default()
    };
    !keys.are_texts && !settings.key_features().is_empty()
}

/// Writes the table of a party. `own_label` is the label's column in the primary's table, and `foreign_label` the name of a
/// column that another party must not use.
fn write_table(
    text: &mut String,
    table: &PartyFile,
    keys: &KeyChoice,
    own_label: Option<&str>,
    foreign_label: Option<&str>,
) {
    let is_feature = |column: &&ColumnSummary| {
        !keys.names.contains(&column.name) && Some(column.name.as_str()) != own_label
    };
    let _ = writeln!(text, "\n# {} rows. Columns, except for the keys:", table.rows());
    let features = || table.summary.columns.iter().filter(is_feature);
    for column in features() {
        let _ = writeln!(text, "#   {}: {}", plain(&column.name), about(column));
    }
    for note in &table.summary.notes {
        comment(text, &format!("Note: {}.", plain(note)));
    }
    let _ = writeln!(text, "{}", if own_label.is_some() { "[data.primary]" } else { "[[data.secondaries]]" });
    let _ = writeln!(text, "name = {}\nfile = {}", quoted(&table.name), quoted(&table.file));
    let _ = writeln!(text, "keys = {}", list(&keys.names));
    let forms: Vec<String> = keys
        .names
        .iter()
        .filter(|_| !keys.are_texts)
        .filter_map(|key| Some(format!("{} = {}", key_of(key), quoted(&table.form_of_key(key)?))))
        .collect();
    if !forms.is_empty() {
        comment(text, "Keys that are dates are compared in days, and times in hours.");
        let _ = writeln!(text, "columns = {{ {} }}", forms.join(", "));
    }
    let mut dropped: Vec<(String, String)> = Vec::new();
    let mut useless: Vec<(String, String)> = Vec::new();
    for column in features() {
        let name = column.name.clone();
        if Some(name.as_str()) == foreign_label {
            dropped.push((name, "the label, which this party must not reveal".into()));
        } else if let Some(reason) = table.reason_to_drop(column) {
            useless.push((name, reason));
        }
    }
    let remaining = features().count() - dropped.len();
    if remaining == useless.len() && remaining > 0 {
        comment(text, "The columns hardly help a model, but they are the only ones of the table:");
    }
    for (name, reason) in dropped.iter().chain(&useless) {
        let _ = writeln!(text, "# `{}`: {reason}.", plain(name));
    }
    if remaining > useless.len() {
        dropped.append(&mut useless);
    }
    if !dropped.is_empty() {
        let names: Vec<String> = dropped.into_iter().map(|(name, _)| name).collect();
        let _ = writeln!(text, "drop = {}", list(&names));
    }
}

fn write_linker(text: &mut String, linking: &Linking) {
    let _ = writeln!(text, "\n[linker]");
    for reason in linking.facts.iter().chain(&linking.reasons) {
        comment(text, &format!("{reason}."));
    }
    for warning in &linking.warnings {
        comment(text, &format!("Warning: {warning}."));
    }
    if let Some(one_to_one) = linking.one_to_one {
        let _ = writeln!(text, "kind = \"posterior\"\none_to_one = {one_to_one}\n\n[linker.inner]");
    }
    let _ = writeln!(text, "kind = \"{}\"\nneighbours = {}", linking.kind, linking.neighbours);
    for setting in &linking.settings {
        let _ = writeln!(text, "{setting}");
    }
}

fn write_split(text: &mut String, split: &SplitChoice) {
    let _ = writeln!(text, "\n[split]");
    for reason in &split.reasons {
        comment(text, &format!("{}.", plain(reason)));
    }
    let _ = writeln!(text, "kind = \"{}\"", split.kind);
    if let Some(column) = &split.column {
        let _ = writeln!(text, "column = {}", quoted(column));
    }
}

fn write_method(text: &mut String, pool: &[(&str, &str)], train: usize) {
    let _ = writeln!(text, "\n[method]");
    comment(
        text,
        "A network and boosted trees on the primary's own columns, averaged: their mean often has a smaller error than either. The \
         validation rows choose the share of the trees. \"gbdt-solo\" is the trees alone.",
    );
    let _ =
        writeln!(text, "kind = \"with-trees\"\nshare = \"fitted\"\n\n[method.inner]\nkind = \"fet-pool\"");
    for (path, value) in pool {
        match *path {
            "key_encoding.grid.width" => comment(text, "Keys are places: learned grids over the place."),
            "dropout" => comment(text, "Few rows: dropout limits overfitting."),
            _ => {}
        }
        let _ = writeln!(text, "{path} = {value}");
    }
    if train < SMALL {
        let _ = writeln!(text, "\n[method.growth]");
        comment(text, "Few rows: trees that see all columns; the validation rows choose their number.");
        let _ = writeln!(text, "column_share = 1.0\ntrees = 1000");
    }
    let _ = writeln!(text, "\n[encoder]");
    comment(text, "`fet-pool` pools the neighbours, so each is encoded separately.");
    let _ = writeln!(text, "kind = \"mlp\"");
}

fn write_training(text: &mut String, metric: &MetricChoice, rows: usize) {
    let training = training::training(rows);
    let _ = writeln!(text, "\n[train]");
    comment(text, &format!("{}.", training.reason));
    let _ = writeln!(
        text,
        "batch_size = {}\nepochs = {}\nearly_stopping = {}\ndecay = \"cosine\"",
        training.batch_size, training.epochs, training.early_stopping
    );
    if metric.balanced {
        comment(text, "The metric counts every class equally, so the loss does, too.");
        let _ = writeln!(text, "class_weights = \"balanced\"");
    }
}

/// Writes comment lines of a limited width.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    // A number and its per cent sign stay on one line.
    let words = words.replace(" %", "\u{a0}%");
    for word in words.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        let word = word.replace('\u{a0}', " ");
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(&word);
    }
    let _ = writeln!(text, "{line}");
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

/// Writes a name as the key of a TOML table.
fn key_of(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare { name.to_string() } else { toml::Value::from(name).to_string() }
}

fn list(names: &[String]) -> String {
    toml::Value::from(names.to_vec()).to_string()
}
