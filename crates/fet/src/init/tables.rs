//! Tables of the parties, and facts about single columns that decide settings.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use fet_core::registry::did_you_mean;
use fet_io::input::input;
use fet_tables::{ColumnSummary, Kind, MISSING_DATE, Options, Summary, Table, Values, summary};

/// Microseconds of a day.
const DAY: f64 = 86_400e6;
/// Minimum number of present cells that show whether a column identifies rows.
const ENOUGH: usize = 20;
/// Minimum share of distinct texts in a column that identifies rows.
const DISTINCT: f64 = 0.95;
/// Minimum mean number of words in a column of free text.
const FREE_TEXT: f64 = 8.0;

/// Minimum mean number of rows for each value of an identifier that is a category, such as the number of a station.
const MOST_REPEATS: usize = 50;

/// Tables and columns of an experiment.
pub(crate) struct Request<'a> {
    /// Table of the primary, followed by the tables of the other parties.
    pub(crate) tables: &'a [PathBuf],
    /// Column of the primary's table to predict.
    pub(crate) label: &'a str,
    /// Columns that link the records; empty to choose them.
    pub(crate) keys: &'a [String],
    /// Experiment file: it determines the names of the tables' files in the text, and the name of the
    /// experiment.
    pub(crate) file: &'a Path,
}

/// Table with a summary of its content.
pub(super) struct PartyFile {
    /// Name of the party, taken from the file name and unique among the tables.
    pub(super) name: String,
    /// Path of the file as the experiment names it.
    pub(super) file: String,
    /// Path of the file as the user names it.
    pub(super) path: PathBuf,
    /// Cells.
    pub(super) table: Table,
    /// Summary of the cells.
    pub(super) summary: Summary,
    /// Columns with times of day, in hours.
    times: Vec<String>,
}

/// Reads the tables for an experiment in `file`, with a unique name for each party. `keys` are the user's keys,
/// or empty.
///
/// The reader leaves times of day as names. If they may be keys, they become hours.
pub(super) fn read(paths: &[PathBuf], keys: &[String], file: &Path) -> anyhow::Result<Vec<PartyFile>> {
    let no_times = BTreeMap::new();
    let read = |times: &BTreeMap<String, Kind>| -> anyhow::Result<Vec<PartyFile>> {
        paths.iter().map(|path| read_table(path, times, file)).collect()
    };
    let mut found = read(&no_times)?;
    let is_time = |name: &&str| {
        let is_key = keys.is_empty() || keys.iter().any(|key| key == name);
        is_key && found.iter().all(|table| table.column(name).is_some_and(looks_like_time))
    };
    let names: Vec<String> = found
        .first()
        .map(|table| table.names().filter(is_time).map(String::from).collect())
        .unwrap_or_default();
    if !names.is_empty()
        && let Ok(again) = read(&names.into_iter().map(|name| (name, Kind::Time)).collect())
    {
        found = again;
    }
    let mut tables: Vec<PartyFile> = Vec::new();
    for table in found {
        let same =
            tables.iter().filter(|other| other.name.split('#').next() == Some(table.name.as_str())).count();
        let name = if same == 0 { table.name.clone() } else { format!("{}#{}", table.name, same + 1) };
        tables.push(PartyFile { name, ..table });
    }
    Ok(tables)
}

/// Returns true if the first cell of a column of names is a time of day, such as 7:30.
fn looks_like_time(column: &ColumnSummary) -> bool {
    let hour = column.example.as_deref().and_then(|cell| cell.split_once(':')).map(|(hour, _)| hour);
    matches!(column.kind.as_str(), "category" | "text")
        && hour.is_some_and(|hour| (1..=2).contains(&hour.len()) && hour.bytes().all(|c| c.is_ascii_digit()))
}

fn read_table(path: &Path, times: &BTreeMap<String, Kind>, experiment: &Path) -> anyhow::Result<PartyFile> {
    let options = Options { keep_empty: true, kinds: times.clone(), ..Options::default() };
    let table = fet_tables::read(path, &options).map_err(input)?;
    let beside = experiment.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let file = if beside || path.is_absolute() { path.to_path_buf() } else { path.canonicalize()? };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("party").to_string();
    let file =
        file.to_str().ok_or_else(|| input(format!("{}: must have a name in UTF-8", path.display())))?;
    let summary = summary(&table);
    let times = times.keys().cloned().collect();
    Ok(PartyFile { name, file: file.to_string(), path: path.to_path_buf(), table, summary, times })
}

impl PartyFile {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.table.rows
    }

    /// Returns the summary of a column.
    pub(super) fn column(&self, name: &str) -> Option<&ColumnSummary> {
        self.summary.columns.iter().find(|column| column.name == name)
    }

    /// Returns the cells of a column.
    pub(super) fn values(&self, name: &str) -> Option<&Values> {
        self.table.column(name).ok().map(|column| &column.values)
    }

    /// Returns the cells of a column as texts, empty where a cell is missing: as written if a run reads them `as_texts`,
    /// because 00005 and 5 are then different keys.
    pub(super) fn written(&self, name: &str, as_texts: bool) -> Vec<String> {
        match self.values(name) {
            Some(Values::Number(numbers)) if as_texts => {
                let present =
                    |(text, number): (String, &f64)| if number.is_nan() { String::new() } else { text };
                self.unread(name).into_iter().zip(numbers).map(present).collect()
            }
            Some(values) => values.texts(),
            None => vec![String::new(); self.rows()],
        }
    }

    /// Returns the texts that mark a missing cell in a column of numbers, such as NA.
    pub(super) fn marks(&self, name: &str) -> BTreeSet<String> {
        let Some(Values::Number(numbers)) = self.values(name) else { return BTreeSet::new() };
        let missing = self.unread(name).into_iter().zip(numbers).filter(|(_, number)| number.is_nan());
        missing.map(|(text, _)| text.trim().to_string()).filter(|text| !text.is_empty()).collect()
    }

    /// Returns the cells of a column of numbers before they were read as numbers.
    fn unread(&self, name: &str) -> Vec<String> {
        let options = Options {
            keep_empty: true,
            kinds: [(name.to_string(), Kind::Text)].into(),
            columns: Some(vec![name.to_string()]),
            ..Options::default()
        };
        // A file that can only be read as numbers has no other form.
        let again = fet_tables::read(&self.path, &options).ok();
        let again =
            again.as_ref().and_then(|table| table.column(name).ok()).map(|column| column.values.texts());
        let again = again.filter(|texts| texts.len() == self.rows());
        again.or_else(|| self.values(name).map(Values::texts)).unwrap_or_default()
    }

    /// Returns the names of all columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.summary.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the column of this name.
    ///
    /// # Errors
    /// Returns a message that lists the table's columns if there is no such column.
    pub(super) fn find(&self, name: &str, argument: &str) -> anyhow::Result<&ColumnSummary> {
        self.column(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.names());
            let known = self.names().collect::<Vec<_>>().join(", ");
            input(format!(
                "{argument} {name}: there is no such column in {}{hint}; its columns are {known}",
                self.path.display()
            ))
        })
    }

    /// Returns the reader's kind for a key of numbers, if it is not a plain number.
    pub(super) fn form_of_key(&self, name: &str) -> Option<String> {
        match self.table.forms.get(name) {
            Some(kind @ (Kind::Amount(_) | Kind::Date { .. })) => Some(kind.to_string()),
            _ if self.times.iter().any(|time| time == name) => Some(Kind::Time.to_string()),
            _ if self.is_date(name) => Some("date".into()),
            _ => None,
        }
    }

    /// Returns true if the column holds dates.
    pub(super) fn is_date(&self, name: &str) -> bool {
        matches!(self.values(name), Some(Values::Date(_)))
    }

    /// Returns the numbers of a column without missing cells; dates become days.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        match self.values(name)? {
            Values::Number(values) if values.iter().all(|value| value.is_finite()) => Some(values.clone()),
            Values::Date(values) if values.iter().all(|at| *at != MISSING_DATE) => {
                Some(values.iter().map(|&at| at as f64 / DAY).collect())
            }
            _ => None,
        }
    }

    /// Returns the reason to leave out a feature that cannot help a model, if there is one.
    pub(super) fn reason_to_drop(&self, column: &ColumnSummary) -> Option<String> {
        let values = self.values(&column.name)?;
        let present = self.rows() - column.missing;
        if present == 0 {
            return Some("only missing cells".into());
        }
        let distinct = distinct(values);
        if distinct == 1 && column.missing == 0 {
            return Some("the same value in every row".into());
        }
        if present < ENOUGH {
            return None;
        }
        match values {
            Values::Category { .. } | Values::Text(_)
                if distinct as f64 >= DISTINCT * present as f64 && words_per_cell(values) < FREE_TEXT =>
            {
                Some(format!("{distinct} different texts in {present} cells, which name rows"))
            }
            Values::Number(numbers) if distinct == present && numbers_rows(&column.name, numbers) => {
                Some("a different whole number in every row, like a row number".into())
            }
            _ => None,
        }
    }

    /// Returns the columns with identifiers of persons or things that have several rows each.
    pub(super) fn repeated_identifiers(&self) -> Vec<&ColumnSummary> {
        let repeats = |column: &&ColumnSummary| {
            let present = self.rows() - column.missing;
            names_a_thing(&column.name)
                && column.kind != "date"
                && !column.distinct_more
                && column.distinct >= 10
                && (2 * column.distinct..=MOST_REPEATS * column.distinct).contains(&present)
        };
        self.summary.columns.iter().filter(repeats).collect()
    }
}

/// Returns the number of distinct present values.
fn distinct(values: &Values) -> usize {
    match values {
        Values::Number(values) => {
            let present = values.iter().filter(|value| !value.is_nan());
            present.map(|value| (value + 0.0).to_bits()).collect::<HashSet<_>>().len()
        }
        Values::Date(values) => values.iter().filter(|at| **at != MISSING_DATE).collect::<HashSet<_>>().len(),
        Values::Category { codes, names } => {
            codes.iter().filter(|code| (**code as usize) < names.len()).collect::<HashSet<_>>().len()
        }
        Values::Text(texts) => texts.iter().flatten().collect::<HashSet<_>>().len(),
    }
}

/// Mean number of words of the first thousand cells.
fn words_per_cell(values: &Values) -> f64 {
    let texts = values.texts();
    let cells: Vec<&String> = texts.iter().filter(|text| !text.is_empty()).take(1_000).collect();
    let words: usize = cells.iter().map(|cell| cell.split_whitespace().count()).sum();
    words as f64 / cells.len().max(1) as f64
}

/// Returns true if distinct numbers only number rows: whole numbers in a column of that name, or without a gap.
fn numbers_rows(name: &str, numbers: &[f64]) -> bool {
    let present = || numbers.iter().copied().filter(|number| !number.is_nan());
    let (least, most) = present()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    let without_gap = most - least + 1.0 == present().count() as f64;
    present().all(|number| number.fract() == 0.0) && (without_gap || is_identifier(name))
}

/// Returns the words of a column's name in lower case: `YrSold`, `yr_sold` and `yr sold` have the same words.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for sign in name.chars() {
        if (sign.is_uppercase() && before.is_lowercase()) || !sign.is_alphanumeric() {
            words.push(String::new());
        }
        if sign.is_alphanumeric() {
            words.last_mut().expect("one word").extend(sign.to_lowercase());
        }
        before = sign;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if a column's name says that it holds identifiers.
pub(super) fn is_identifier(name: &str) -> bool {
    const WORDS: [&str; 9] = ["id", "ids", "uuid", "guid", "nr", "no", "number", "index", "idx"];
    words(name).last().is_some_and(|word| WORDS.contains(&word.as_str()))
}

/// Returns true if a column's name ends in "id". Other names of identifiers can mean house numbers or positions in a file.
pub(super) fn is_named_id(name: &str) -> bool {
    words(name).last().is_some_and(|word| word == "id" || word == "ids")
}

/// Returns true if a column's name says that it names persons or things.
fn names_a_thing(name: &str) -> bool {
    const THINGS: [&str; 18] = [
        "account",
        "contract",
        "iban",
        "policy",
        "ssn",
        "uid",
        "patient",
        "customer",
        "client",
        "user",
        "person",
        "subject",
        "household",
        "member",
        "employee",
        "student",
        "device",
        "machine",
    ];
    let words = words(name);
    let is_thing = words.len() == 1 && THINGS.contains(&words[0].as_str());
    let ends_with_id =
        words.last().is_some_and(|word| ["id", "ids", "uuid", "guid"].contains(&word.as_str()));
    is_thing || ends_with_id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(columns: &[(&str, Vec<String>)]) -> PartyFile {
        let rows = columns[0].1.len();
        let header = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
        let row =
            |row: usize| columns.iter().map(|(_, cells)| cells[row].clone()).collect::<Vec<_>>().join(",");
        let text = format!("{header}\n{}\n", (0..rows).map(row).collect::<Vec<_>>().join("\n"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).expect("written");
        read_table(&path, &BTreeMap::new(), Path::new("-")).expect("readable")
    }

    #[test]
    fn drops_columns_that_identify_rows_or_never_change() {
        let cells = |cell: &dyn Fn(usize) -> String| (0..60).map(cell).collect::<Vec<_>>();
        let table = file(&[
            ("code", cells(&|row| format!("c{row}x"))),
            ("size", cells(&|row| format!("{}.5", row * row % 97))),
            ("row", cells(&|row| (row + 1).to_string())),
            ("order_id", cells(&|row| (row * 17 + 3).to_string())),
            ("price", cells(&|row| (row * 17 + 3).to_string())),
            ("same", cells(&|_| "x".into())),
            ("sometimes", cells(&|row| if row % 3 == 0 { String::new() } else { "x".into() })),
            ("note", cells(&|row| format!("a long note of the shop keeper about visit {row}"))),
            ("kind", cells(&|row| ["a", "b", "c"][row % 3].into())),
        ]);
        let dropped: Vec<&str> = table
            .summary
            .columns
            .iter()
            .filter(|column| table.reason_to_drop(column).is_some())
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(dropped, ["code", "row", "order_id", "same"]);
    }

    #[test]
    fn splits_names_into_words() {
        for (name, expected) in
            [("YrSold", &["yr", "sold"][..]), ("order_id", &["order", "id"]), ("LAT", &["lat"])]
        {
            assert_eq!(words(name), expected);
        }
        assert!(is_identifier("PassengerId") && is_identifier("ID") && !is_identifier("paid"));
        assert!(is_named_id("PassengerId") && is_identifier("house nr") && !is_named_id("house nr"));
    }
}
