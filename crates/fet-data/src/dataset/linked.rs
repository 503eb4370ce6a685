//! `linked`: real tables of several organisations, which share a kind of key but no identifier.

use std::collections::BTreeMap;

use fet_core::data::{
    Bounds, DataError, Dataset, DatasetContext, Folders, Keys, PartyTable, Standardise, Task, TextTable,
    VerticalData,
};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::read::classes;
use crate::read::csv::NumberTable;

/// Settings of `linked`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkedSettings {
    /// What is predicted.
    pub task: Task,
    /// The primary's column with the label.
    pub label: String,
    /// Whether the key columns of all parties are numbers or text.
    pub key_kind: LinkedKeys,
    /// Whether keys are standardised before the model sees them.
    pub standardise_keys: bool,
    /// The number of primary rows to use, drawn by seed; 0 for all.
    pub rows: usize,
    /// The party with the labels.
    pub primary: TableSettings,
    /// The other parties.
    pub secondaries: Vec<TableSettings>,
}

/// What the key columns hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkedKeys {
    /// Coordinates and the like.
    #[default]
    Numbers,
    /// Texts such as names and addresses.
    Text,
}

/// One party's table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSettings {
    /// The party's name; empty for the file's name.
    pub name: String,
    /// A CSV file; may end in `.gz`.
    pub file: String,
    /// The columns of the key, in the order that all parties share.
    pub keys: Vec<String>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// The range of each column of a secondary, keys of numbers and features, as `column = [low, high]`: public knowledge,
    /// not computed from the records. It scales by them. If there are none, it scales by the means and deviations of its
    /// columns, which is refused beside a privacy mechanism.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, [f64; 2]>,
}

impl Default for LinkedSettings {
    fn default() -> Self {
        Self {
            task: Task::Regression,
            label: String::new(),
            key_kind: LinkedKeys::Numbers,
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
        if !self.primary.bounds.is_empty() {
            let rule =
                "must be left out: the primary scales by its training rows, and nothing of it is protected";
            return Err(Violation::new("primary.bounds", rule, format!("{:?}", self.primary.bounds)));
        }
        for (place, table) in tables.chain(others) {
            if let Some((column, bounds)) =
                table.bounds.iter().find(|(_, bounds)| !Bounds::is_range(**bounds))
            {
                let place = format!("{place}.bounds.{column}");
                return Err(Violation::new(place, "must be a range [low, high]", format!("{bounds:?}")));
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
        Ok(Box::new(Linked { settings: self.clone(), folders, seed: context.seed }))
    }
}

inventory::submit! {
    Plugin::<dyn Dataset>::new::<LinkedSettings>("linked", "tables of several organisations in CSV files")
}

struct Linked {
    settings: LinkedSettings,
    folders: Folders,
    seed: u64,
}

impl Dataset for Linked {
    fn load(&self) -> Result<VerticalData, DataError> {
        let settings = &self.settings;
        let (label, file) = (&settings.label, &settings.primary.file);
        let mut table = self.read(&settings.primary, "primary.file")?;
        let labels = table.take(std::slice::from_ref(label))?;
        let labels: Vec<f32> = labels.values().iter().map(|&y| y as f32).collect();
        let classes = classes(settings.task, &labels, |row| table.place(row, label))?;
        let mut primary = self.party(table, &settings.primary)?;
        let mut chosen: Vec<usize> = (0..labels.len()).collect();
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
        }
        let labels = chosen.iter().map(|&row| labels[row]).collect();
        let secondaries = settings.secondaries.iter().enumerate().map(|(index, table)| {
            let setting = format!("secondaries[{index}].file");
            self.party(self.read(table, &setting)?, table)
        });
        Ok(VerticalData {
            task: settings.task,
            classes,
            primary,
            labels,
            secondaries: secondaries.collect::<Result<_, _>>()?,
            standardise: Standardise { keys: settings.standardise_keys, features: true },
        })
    }
}

impl Linked {
    fn read(&self, table: &TableSettings, setting: &str) -> Result<NumberTable, DataError> {
        let text = if self.settings.key_kind == LinkedKeys::Text { table.keys.as_slice() } else { &[] };
        NumberTable::read(&self.folders, &table.file, setting, &table.drop, text)
    }

    fn party(&self, mut table: NumberTable, settings: &TableSettings) -> Result<PartyTable, DataError> {
        let keys = match self.settings.key_kind {
            LinkedKeys::Numbers => Keys::Numbers(table.take(&settings.keys)?),
            LinkedKeys::Text => Keys::Text(TextTable::new(settings.keys.len(), table.take_texts())),
        };
        let name = if settings.name.is_empty() { &settings.file } else { &settings.name };
        let bounds = self.bounds(&table, settings)?;
        Ok(PartyTable { name: name.clone(), keys, features: table.features()?, bounds })
    }

    /// The declared ranges of a table whose keys are taken out already, if it declares any: of every column, and of no other.
    fn bounds(&self, table: &NumberTable, settings: &TableSettings) -> Result<Option<Bounds>, DataError> {
        if settings.bounds.is_empty() {
            return Ok(None);
        }
        let keys = if self.settings.key_kind == LinkedKeys::Text { &[] } else { settings.keys.as_slice() };
        let of = |column: &String| {
            let problem = "must have a range in `bounds`, which names some columns of this table";
            let place = || format!("{} column `{column}`", settings.file);
            settings.bounds.get(column).copied().ok_or_else(|| DataError::new(place(), problem))
        };
        let known = |column: &String| keys.contains(column) || table.names().contains(column);
        if let Some(column) = settings.bounds.keys().find(|column| !known(column)) {
            let problem = format!("has no column `{column}` of numbers, which `bounds` names");
            return Err(DataError::new(&settings.file, problem));
        }
        Ok(Some(Bounds {
            keys: keys.iter().map(of).collect::<Result<_, _>>()?,
            features: table.names().iter().map(of).collect::<Result<_, _>>()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::registry::Slot;
    use std::path::{Path, PathBuf};

    const SETTINGS: &str = r#"
        kind = "linked"
        label = "y"
        primary = { file = "p.csv", keys = ["lon", "lat"], drop = ["id"] }
        secondaries = [{ name = "s", file = "s.csv", keys = ["x", "y"] }]
    "#;

    fn load(folder: &Path, changes: &[(&str, toml::Value)]) -> Result<VerticalData, String> {
        let mut table: toml::Table = toml::from_str(SETTINGS).expect("TOML");
        for (name, value) in changes {
            table.insert(name.to_string(), value.clone());
        }
        let slot = Slot::<dyn Dataset>::from_table(table).map_err(|e| e.to_string())?;
        let dataset =
            slot.build(&DatasetContext { folders: &folder.into(), seed: 1 }).map_err(|e| e.to_string())?;
        dataset.load().map_err(|e| e.to_string())
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let primary = "lat,id,y,area,lon\n1.3000000001,a,10,50,103.80000000001\n1.4,b,20,60,103.9\n";
        std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
        std::fs::write(folder.path().join("s.csv"), "x,y,size\n103.8,1.3,5\n").expect("writable");
        folder
    }

    #[test]
    fn keys_are_exact_and_keys_label_and_dropped_columns_are_no_features() {
        let data = load(folder().path(), &[]).expect("good tables");
        assert_eq!(
            data.primary.keys.numbers().expect("numbers").row(0),
            [103.800_000_000_01, 1.300_000_000_1]
        );
        assert_eq!(data.primary.features.values(), [50.0, 60.0]);
        assert_eq!(data.labels, [10.0, 20.0]);
        let secondary = &data.secondaries[0];
        assert_eq!((secondary.name.as_str(), secondary.features.values()), ("s", [5.0].as_slice()));
    }

    #[test]
    fn ranges_are_declared_for_every_column_of_a_secondary() {
        let secondaries = |bounds: &str| -> toml::Value {
            let table = format!("name = 's'\nfile = 's.csv'\nkeys = ['x', 'y']\nbounds = {bounds}");
            vec![toml::Value::Table(table.parse().expect("TOML"))].into()
        };
        let whole = "{ y = [1.2, 1.5], x = [103, 104], size = [0, 9] }";
        let data = load(folder().path(), &[("secondaries", secondaries(whole))]).expect("good tables");
        let keys = vec![[103.0, 104.0], [1.2, 1.5]];
        assert_eq!(data.secondaries[0].bounds, Some(Bounds { keys, features: vec![[0.0, 9.0]] }));
        assert_eq!(data.primary.bounds, None);
        for (bounds, part) in [
            ("{ x = [103, 104], size = [0, 9] }", "s.csv column `y`: must have a range in `bounds`"),
            (
                "{ y = [1, 2], x = [103, 104], size = [0, 9], sise = [0, 9] }",
                "has no column `sise` of numbers",
            ),
            ("{ y = [2, 1], x = [103, 104], size = [0, 9] }", "secondaries[0].bounds.y` must be a range"),
        ] {
            let error = load(folder().path(), &[("secondaries", secondaries(bounds))]).expect_err("refused");
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn text_keys_are_read_as_they_stand() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let primary = "lat,id,y,area,lon\nMain St,a,10,50,\"Smith, Ann\"\n,b,20,60,Bö\n";
        std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
        std::fs::write(folder.path().join("s.csv"), "x,y,size\nSmith,Main,5\n").expect("writable");
        let data = load(folder.path(), &[("key_kind", "text".into())]).expect("good tables");
        assert_eq!(data.primary.keys.text().expect("texts").cells(), ["Smith, Ann", "Main St", "Bö", ""]);
        assert_eq!(data.primary.features.values(), [50.0, 60.0]);
        let refused = load(folder.path(), &[]).expect_err("text where numbers are needed");
        assert!(refused.contains("column `lat`: must be a number"), "{refused}");
    }

    #[test]
    fn rows_are_drawn_by_seed() {
        let data = load(folder().path(), &[("rows", 1.into())]).expect("good tables");
        assert_eq!((data.primary.rows(), data.labels.len()), (1, 1));
        let matching = if data.labels[0] == 10.0 { 50.0 } else { 60.0 };
        assert_eq!(data.primary.features.values(), [matching], "a label stays with its row");
    }

    #[test]
    fn impossible_settings_are_refused() {
        let check = |name: &str, value: toml::Value, part: &str| {
            let error = load(folder().path(), &[(name, value)]).expect_err("refused");
            assert!(error.contains(part), "{part} in {error}");
        };
        check("rows", 3.into(), "must not exceed the 2 rows of p.csv; it is 3");
        check("label", "price".into(), "has no column `price`");
        check("task", "binary".into(), "p.csv data row 1 column `y`: the label must be 0 or 1");
        check(
            "secondaries",
            toml::Value::Array(Vec::new()),
            "`data.secondaries` must hold at least one table",
        );
        let keys = |text| toml::from_str::<toml::Table>(text).expect("TOML").into();
        let bounded = "file = 'p.csv'\nkeys = ['lon', 'lat']\ndrop = ['id']\nbounds = { area = [0, 9] }";
        check("primary", keys(bounded), "primary.bounds` must be left out");
        check("primary", keys("file = 'p.csv'\nkeys = ['lon']\ndrop = ['id']"), "secondaries[0].keys");
        check("primary", keys("file = 'p.csv'\nkeys = ['lon', 'lat']"), "column `id`: must be a number");
    }

    #[test]
    fn the_real_tables_are_read_where_they_are() {
        let Some(folder) = std::env::var_os("FET_DATA").map(PathBuf::from) else {
            fet_testing::left_out("data", "FET_DATA is not set");
            return;
        };
        let settings = r#"
            kind = "linked"
            label = "resale_price"
            primary = { file = "hdb/hdb_clean.csv.gz", keys = ["lon", "lat"] }
            secondaries = [{ file = "hdb/school_clean.csv", keys = ["lon", "lat"], drop = ["school_name"] }]
        "#;
        let slot = Slot::<dyn Dataset>::from_table(toml::from_str(settings).expect("TOML")).expect("sound");
        let context = DatasetContext { folders: &folder.as_path().into(), seed: 0 };
        let data = slot.build(&context).expect("sound").load().expect("the real tables");
        assert_eq!((data.primary.rows(), data.secondaries[0].rows()), (92_240, 165));
        assert_eq!((data.primary.features.columns(), data.secondaries[0].features.columns()), (68, 8));
    }
}
