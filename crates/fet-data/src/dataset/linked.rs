//! `linked`: real tables of several organisations with the same kind of key but without a common identifier.

mod derived;
mod labels;
mod table;

use std::collections::{BTreeMap, HashSet};

use fet_core::data::{
    Columns, DataError, Dataset, DatasetContext, Features, Folders, Keys, Matrix, Metadata, PartyTable,
    Reading, Standardise, Task, VerticalData,
};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use fet_tables::{Column, Kind, Options, Values};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::labels::LARGEST_LABEL;
use self::labels::labels;
pub use self::table::TableSettings;
use crate::read::table::FileTable;

/// Settings of `linked`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkedSettings {
    /// Prediction task: a number, one of two classes or one of several.
    pub task: Task,
    /// Name of the primary's label column.
    pub label: String,
    /// Kind of values in the key columns of all parties.
    pub key_kind: LinkedKeys,
    /// True if each party's model also sees numbers computed from the party's keys: for two points (`start_lon`,
    /// `start_lat`, `end_lon`, `end_lat`) their differences, distance and direction, and for a date or time cosines
    /// and sines of the hour, the day of the week and the day of the year, also with `train.key_inputs = false`. A
    /// table with declared ranges has none of them.
    pub key_features: bool,
    /// True if the models see keys with mean 0 and standard deviation 1, false if they see keys in their own
    /// unit. Linkers always see keys in their own unit.
    pub standardise_keys: bool,
    /// Number of primary rows to use, drawn by seed; 0 for all.
    pub rows: usize,
    /// Table of the primary, the party with the labels.
    pub primary: TableSettings,
    /// Tables of the secondaries, one per secondary.
    #[schemars(extend("x-rule" = "at least one table"))]
    pub secondaries: Vec<TableSettings>,
}

/// Kind of values in the key columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkedKeys {
    /// Numbers, such as coordinates.
    #[default]
    Numbers,
    /// Texts such as names and addresses.
    Text,
}

impl Default for LinkedSettings {
    fn default() -> Self {
        Self {
            task: Task::Regression,
            label: String::new(),
            key_kind: LinkedKeys::Numbers,
            key_features: false,
            standardise_keys: true,
            rows: 0,
            primary: TableSettings::default(),
            secondaries: Vec::new(),
        }
    }
}

impl Recipe<dyn Dataset> for LinkedSettings {
    fn check(&self) -> Result<(), Violation> {
        let tables = std::iter::once(("primary".to_string(), &self.primary));
        let others =
            self.secondaries.iter().enumerate().map(|(i, table)| (format!("secondaries[{i}]"), table));
        if let Some((field, value)) = self.primary.declares() {
            let rule = "must be left out: the primary scales by its training rows, and no mechanism protects its table";
            return Err(Violation::new(format!("primary.{field}"), rule, value));
        }
        if self.key_features && self.key_kind == LinkedKeys::Text {
            return Err(Violation::new("key_features", "must be false for keys of texts", "true"));
        }
        let mut every = std::iter::once(&self.primary).chain(&self.secondaries);
        if self.key_features && every.all(|table| table.key_features().is_empty()) {
            let rule = "must be false if no table has two points as keys, named as in `start_lon`, `start_lat`, `end_lon`, \
                        `end_lat`, or a date or time";
            return Err(Violation::new("key_features", rule, "true"));
        }
        if self.primary.keys.contains(&self.label) {
            let rule =
                "must not be a key of the primary: the primary links the other parties' records by its keys";
            return Err(Violation::new("label", rule, format!("{:?}", self.label)));
        }
        for (field, names) in [("drop", &self.primary.drop), ("clip", &self.primary.clip)] {
            if names.contains(&self.label) {
                let rule = "must not name the label, because the label is not a feature";
                return Err(Violation::new(format!("primary.{field}"), rule, format!("{:?}", self.label)));
            }
        }
        for (at, table) in self.secondaries.iter().enumerate() {
            let same = |other: &&TableSettings| {
                TableSettings { name: table.name.clone(), ..(*other).clone() } == *table
            };
            // The file is empty if the secondary runs on another machine.
            let other = self.secondaries[..at].iter().position(|other| same(&other));
            if let Some(other) = other.filter(|_| !table.file.is_empty()) {
                let rule = format!("must not be the table of secondaries[{other}] again");
                return Err(Violation::new(
                    format!("secondaries[{at}].file"),
                    rule,
                    format!("{:?}", table.file),
                ));
            }
        }
        for (place, table) in tables.chain(others) {
            table.check().map_err(|violation| violation.within(&place))?;
            let texts = self.key_kind == LinkedKeys::Text;
            if let Some(key) = table.keys.iter().find(|key| texts && table.columns.contains_key(*key)) {
                let rule = "must not name a text key: only numbers have a form";
                return Err(Violation::new(format!("{place}.columns"), rule, format!("{key:?}")));
            }
            if table.keys.len() != self.primary.keys.len() {
                let rule =
                    format!("must name as many columns as the primary's ({})", self.primary.keys.len());
                return Err(Violation::new(format!("{place}.keys"), rule, format!("{:?}", table.keys)));
            }
        }
        Ok(())
    }

    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Dataset>, Violation> {
        if self.primary.keys.is_empty() {
            return Err(Violation::new("primary.keys", "must name at least one column", "[]"));
        }
        if self.secondaries.is_empty() {
            return Err(Violation::new("secondaries", "must hold at least one table", "[]"));
        }
        let folders = context.folders.clone();
        let metadata = context.metadata.to_vec();
        Ok(Box::new(Linked { settings: self.clone(), folders, seed: context.seed, metadata }))
    }
}

inventory::submit! {
    Plugin::<dyn Dataset>::new::<LinkedSettings>("linked", "tables of several organisations: CSV, Parquet, Arrow")
}

struct Linked {
    settings: LinkedSettings,
    folders: Folders,
    seed: u64,
    /// Metadata columns of the primary, returned with its features.
    metadata: Vec<String>,
}

impl Dataset for Linked {
    fn files(&self) -> Vec<String> {
        let tables = [&self.settings.primary].into_iter().chain(&self.settings.secondaries);
        tables.map(|table| table.file.clone()).filter(|file| !file.is_empty()).collect()
    }

    fn elsewhere(&self) -> Vec<String> {
        let tables = self.settings.secondaries.iter().filter(|table| table.file.is_empty());
        tables.map(|table| table.party_name().to_string()).collect()
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn load(&self) -> Result<VerticalData, DataError> {
        let (primary, label) = self.primary_and_label()?;
        let secondaries = self.secondaries()?;
        for (party, table) in secondaries.iter().zip(&self.settings.secondaries) {
            label.iter().try_for_each(|label| refuse_label(party, &table.file, label))?;
        }
        Ok(VerticalData { secondaries, ..primary })
    }

    fn primary(&self) -> Result<(VerticalData, Vec<String>), DataError> {
        let names = self.settings.secondaries.iter().map(|table| table.party_name().to_string()).collect();
        Ok((self.primary_and_label()?.0, names))
    }

    fn draws_records(&self) -> bool {
        self.settings.rows > 0
    }

    fn secondaries(&self) -> Result<Vec<PartyTable>, DataError> {
        (0..self.settings.secondaries.len()).map(|index| self.secondary(index)).collect()
    }

    fn secondary(&self, index: usize) -> Result<PartyTable, DataError> {
        let Some(table) = self.settings.secondaries.get(index) else {
            let problem = format!("must have at least {} tables", index + 1);
            return Err(DataError::new("`data.secondaries`", problem));
        };
        if table.file.is_empty() {
            let problem = format!(
                "must name a file; it is \"\", because the table of {:?} is on its own machine. Join the parties (`--parties \
                 ROSTER --key KEY`), or name a file here for a simulation",
                table.party_name()
            );
            return Err(DataError::new(format!("`data.secondaries[{index}].file`"), problem));
        }
        self.party(self.read(table, &format!("secondaries[{index}].file"), &[])?, table)
    }

    fn records(
        &self,
        name: &str,
        kinds: &BTreeMap<String, Kind>,
        read: &Reading<'_>,
    ) -> Result<PartyTable, DataError> {
        let table = read(&self.of_new_records(kinds)).map_err(crate::read::table::unusable)?;
        let is_known = |column: &Column| kinds.contains_key(&column.name);
        self.party_with(FileTable::from_table(name, table), &self.settings.primary, is_known)
    }
}

impl Linked {
    /// Returns the primary's table, and its label column if present.
    fn primary_and_label(&self) -> Result<(VerticalData, Option<Column>), DataError> {
        let settings = &self.settings;
        let file = &settings.primary.file;
        let mut table = self.read(&settings.primary, "primary.file", &self.metadata)?;
        let (mut metadata, mut chosen) = (Vec::new(), (0..table.rows()).collect::<Vec<usize>>());
        for name in &self.metadata {
            metadata.push(table.column(name)?.clone());
        }
        // `labels` reports a missing column.
        let label = table.column(&settings.label).ok().cloned();
        let (labels, class_names) = labels(&mut table, &settings.label, settings.task)?;
        let classes = crate::read::classes(settings.task, &labels, |row| table.place(row, &settings.label))?;
        for name in self.metadata.iter().filter(|name| settings.primary.drop.contains(name)) {
            table.take(name)?;
        }
        let mut primary = self.party(table, &settings.primary)?;
        if settings.rows > labels.len() {
            let problem =
                format!("must not exceed the {} rows of {file}; it is {}", labels.len(), settings.rows);
            return Err(DataError::new("`data.rows`", problem));
        }
        if settings.rows > 0 {
            chosen.shuffle(&mut stream(self.seed, 0, Purpose::Parties, 0));
            chosen.truncate(settings.rows);
            primary.keys = primary.keys.select_rows(&chosen);
            primary.features = primary.features.select_rows(&chosen);
            metadata.iter_mut().for_each(|column| column.values = column.values.select(&chosen));
        }
        let labels = chosen.iter().map(|&row| labels[row]).collect();
        let data = VerticalData {
            task: settings.task,
            // A named class can be without records.
            classes: classes.max(class_names.len()),
            primary,
            labels,
            secondaries: Vec::new(),
            standardise: Standardise { keys: settings.standardise_keys, features: true },
            metadata: Metadata { rows: chosen, class_names, columns: metadata },
        };
        Ok((data, label))
    }

    /// Returns the primary's read options for a table that can have columns other than keys and features.
    fn of_new_records(&self, kinds: &BTreeMap<String, Kind>) -> Options {
        let settings = &self.settings.primary;
        let options = settings.options(self.settings.key_kind == LinkedKeys::Text, &[]);
        // Forms of the label and of dropped columns come with the kinds of features.
        let derived = if self.settings.key_features { settings.key_features() } else { Vec::new() };
        let is_other = |name: &String| {
            *name == self.settings.label
                || settings.drop.contains(name)
                || settings.keys.contains(name)
                || derived.contains(name)
        };
        let columns: Vec<String> =
            settings.keys.iter().chain(kinds.keys().filter(|name| !is_other(name))).cloned().collect();
        let mut kinds = kinds.clone();
        kinds.retain(|name, _| columns.contains(name));
        // The table's owner declares a form; if the declaration gives only the kind of cells, the form of training applies.
        let says_a_form = |kind: &Kind| !matches!(kind, Kind::Number | Kind::Date { format: None });
        for (name, kind) in options.kinds.into_iter().filter(|(name, _)| columns.contains(name)) {
            if says_a_form(&kind) || !kinds.contains_key(&name) {
                kinds.insert(name, kind);
            }
        }
        let is_said = |name: &String| settings.columns.get(name).is_some_and(says_a_form);
        let inferred = columns.iter().filter(|name| !is_said(name)).cloned().collect();
        Options { kinds, inferred, columns: Some(columns), drop: Vec::new(), ..options }
    }

    /// Reads a party's table. Includes dropped columns that are listed in `kept`.
    fn read(&self, table: &TableSettings, setting: &str, kept: &[String]) -> Result<FileTable, DataError> {
        let texts = self.settings.key_kind == LinkedKeys::Text;
        FileTable::read(&self.folders, &table.file, setting, &table.options(texts, kept))
    }

    /// Returns the columns computed from keys of numbers, if the settings want them.
    fn derived(&self, settings: &TableSettings, keys: &Matrix<f64>) -> Vec<Column> {
        let is_wanted = self.settings.key_features && settings.declares().is_none();
        if is_wanted { derived::columns(settings, keys) } else { Vec::new() }
    }

    fn party(&self, table: FileTable, settings: &TableSettings) -> Result<PartyTable, DataError> {
        self.party_with(table, settings, derived::varies)
    }

    /// Divides a table into keys and features, which include the columns computed from keys that `is_feature` accepts.
    fn party_with(
        &self,
        mut table: FileTable,
        settings: &TableSettings,
        is_feature: impl Fn(&Column) -> bool,
    ) -> Result<PartyTable, DataError> {
        let keys = match self.settings.key_kind {
            LinkedKeys::Numbers => {
                let keys = table.take_numbers(&settings.keys)?;
                let derived = self.derived(settings, &keys).into_iter().filter(is_feature);
                derived.into_iter().try_for_each(|column| table.add(column))?;
                Keys::Numbers(keys)
            }
            LinkedKeys::Text => Keys::Text(table.take_texts(&settings.keys)?),
        };
        if table.names().next().is_none() {
            return Err(table.error(
                "must have a feature column in addition to the keys, the label and the dropped columns",
            ));
        }
        let numbers = self.settings.key_kind == LinkedKeys::Numbers;
        let bounds = settings.bounds_of(&table, numbers)?;
        let features = Features::Columns(Columns { rules: settings.rules(), table: table.into_rest() });
        Ok(PartyTable { name: settings.party_name().to_string(), keys, features, bounds })
    }
}

/// Refuses a secondary with a column that has the name and possible values of the label.
fn refuse_label(party: &PartyTable, file: &str, label: &Column) -> Result<(), DataError> {
    let Features::Columns(Columns { table, .. }) = &party.features else { return Ok(()) };
    match table.column(&label.name) {
        Ok(column) if may_be_the_same(label, column) => Err(DataError::new(
            file,
            format!(
                "has the column `{}`, which has the name and the values of the primary's label: leave it out (`drop`), or rename \
                 it if it has another meaning",
                label.name
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns true if `column` could hold the labels: if both columns are numeric, or if every value of `column`
/// is also a value of the label.
fn may_be_the_same(label: &Column, column: &Column) -> bool {
    if let (Values::Number(_), Values::Number(_)) = (&label.values, &column.values) {
        return true;
    }
    let known: HashSet<String> = label.values.texts().into_iter().collect();
    column.values.texts().iter().all(|text| text.is_empty() || known.contains(text))
}

#[cfg(test)]
mod tests;
