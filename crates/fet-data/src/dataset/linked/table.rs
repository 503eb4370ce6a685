//! The settings of one party's table: its file, its keys, and what its columns are and become.

use std::collections::BTreeMap;

use fet_core::data::{Bounds, DataError};
use fet_core::registry::Violation;
use fet_tables::prepare::{Declared, Rules, Scaling};
use fet_tables::{Kind, Options, Values, delimiter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::table::FileTable;

/// One party's table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TableSettings {
    /// The party's name in reports; empty for the name of its file.
    pub name: String,
    /// The file of the table: CSV with any delimiter, Parquet or Arrow; may end in `.gz` or `.zst`. It is looked for beside
    /// the experiment, then in the data folder.
    pub file: String,
    /// The names of the columns of the key, in the order that all parties share.
    #[schemars(extend("x-rule" = "at least one column, each named once, as many as the primary's"))]
    pub keys: Vec<String>,
    /// The names of columns to leave out; empty to use all.
    pub drop: Vec<String>,
    /// What columns are, as `column = "kind"`, where it is not what `fet data show` infers; empty to infer all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, Kind>,
    /// What stands between the cells of a line: one character, or "tab"; empty to detect it.
    #[schemars(extend("x-rule" = "one character (no quote, no line end), \"tab\" or empty"))]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub delimiter: String,
    /// What stands for a missing cell beside an empty one, in place of the usual marks (NA, N/A, NaN, null, None, ?); empty for those,
    /// which do not count in a column that `columns` calls a category; [""] for an empty cell alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// How columns of numbers are scaled, where `bounds` declares no range of theirs.
    #[schemars(extend("default" = "standard"))]
    #[serde(skip_serializing_if = "is_default")]
    pub scaling: Scaling,
    /// The names of columns that are clipped to their quantiles of 1 % and 99 % before they are scaled, as they have
    /// wild values; empty for those of `scaling` "robust" alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clip: Vec<String>,
    /// A category of at most so many values gets a column for each value; one of more is hashed; 0 to hash every category.
    #[schemars(range(min = 0, max = MOST_COLUMNS), extend("default" = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_hot: Option<usize>,
    /// The number of columns that a hashed category, or a text, gets.
    #[schemars(range(min = 1, max = MOST_COLUMNS), extend("default" = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<usize>,
    /// The range of each column of numbers of a secondary, keys included, as `column = [low, high]`, from public knowledge, by
    /// which it scales; empty with `dates` and `categories` to scale by means and deviations, which is refused beside a
    /// privacy mechanism. A secondary declares every column but texts, or none.
    #[schemars(extend("x-rule" = "ranges [low, high]: finite, low below high"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// The range of each date of a secondary, as `column = [first, last]` in ISO 8601, from public knowledge; empty with
    /// `bounds` and `categories` to declare nothing.
    #[schemars(extend("x-rule" = "ranges [first, last] of dates in ISO 8601"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dates: BTreeMap<String, [String; 2]>,
    /// All values of each category of a secondary, as `column = [values]`, from public knowledge; empty with `bounds` and
    /// `dates` to declare nothing. Any other value counts as unknown.
    #[schemars(extend("x-rule" = "lists of at least one value"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, Vec<String>>,
}

fn is_default(scaling: &Scaling) -> bool {
    *scaling == Scaling::default()
}

/// The most columns of a hashed column, and the most values of a category with a column each.
const MOST_COLUMNS: usize = 1 << 16;

impl TableSettings {
    /// Refuses settings that fit no table.
    pub(super) fn check(&self) -> Result<(), Violation> {
        if let Some((column, bounds)) = self.bounds.iter().find(|(_, bounds)| !Bounds::is_range(**bounds)) {
            let field = format!("bounds.{column}");
            return Err(Violation::new(field, "must be a range [low, high]", format!("{bounds:?}")));
        }
        if let Some((column, _)) = self.categories.iter().find(|(_, values)| values.is_empty()) {
            return Err(Violation::new(format!("categories.{column}"), "must name at least one value", "[]"));
        }
        if !self.delimiter.is_empty() && delimiter(&self.delimiter).is_none() {
            let rule = "must be one character (no quote, no line end) or \"tab\"";
            return Err(Violation::new("delimiter", rule, format!("{:?}", self.delimiter)));
        }
        for (index, key) in self.keys.iter().enumerate() {
            if self.keys[..index].contains(key) {
                return Err(Violation::new("keys", "must name each column once", format!("{:?}", self.keys)));
            }
        }
        let is_no_form = |kind: &Kind| !matches!(kind, Kind::Plain | Kind::Amount(_));
        if let Some(key) = self.keys.iter().find(|key| self.columns.get(*key).is_some_and(is_no_form)) {
            let rule = "must not name a key, except with the form of its numbers, as number:1,234.5: `key_kind` says what keys are";
            return Err(Violation::new("columns", rule, format!("{key:?}")));
        }
        if let Some(key) = self.drop.iter().find(|name| self.keys.contains(name)) {
            let rule = "must not name a key: keys are no features anyway";
            return Err(Violation::new("drop", rule, format!("{key:?}")));
        }
        if let Some(key) = self.clip.iter().find(|name| self.keys.contains(name)) {
            return Err(Violation::new("clip", "must name features, not a key", format!("{key:?}")));
        }
        Ok(())
    }

    /// What the party is called.
    pub(super) fn party_name(&self) -> &str {
        if self.name.is_empty() { &self.file } else { &self.name }
    }

    /// The first setting that declares something, and what.
    pub(super) fn declares(&self) -> Option<(&'static str, String)> {
        let Self { bounds, dates, categories, .. } = self;
        let all = [
            ("bounds", !bounds.is_empty(), format!("{bounds:?}")),
            ("dates", !dates.is_empty(), format!("{dates:?}")),
            ("categories", !categories.is_empty(), format!("{categories:?}")),
        ];
        all.into_iter().find(|(_, given, _)| *given).map(|(field, _, value)| (field, value))
    }

    /// How the file is read: keys as numbers or texts, and dropped columns only where they are `kept`.
    pub(super) fn options(&self, text_keys: bool, kept: &[String]) -> Options {
        let key = if text_keys { Kind::Text } else { Kind::Number };
        let mut kinds = self.columns.clone();
        // A declaration says what a column is: no record of the table has a say in it.
        let declared = self.bounds.keys().map(|name| (name, Kind::Number));
        let declared = declared.chain(self.dates.keys().map(|name| (name, Kind::Date { format: None })));
        for (name, kind) in declared.chain(self.categories.keys().map(|name| (name, Kind::Category))) {
            kinds.entry(name.clone()).or_insert(kind);
        }
        // The owner may say in which form a key's numbers are written.
        let is_said = |name: &String| !text_keys && self.columns.contains_key(name);
        kinds.extend(self.keys.iter().filter(|name| !is_said(name)).map(|name| (name.clone(), key.clone())));
        let drop = self.drop.iter().filter(|name| !kept.contains(name)).cloned().collect();
        let missing = self.missing.clone();
        Options { kinds, drop, missing, delimiter: delimiter(&self.delimiter), ..Options::default() }
    }

    /// How columns become numbers.
    pub(super) fn rules(&self) -> Rules {
        let usual = Rules::default();
        let ranges = self.bounds.iter().filter(|(name, _)| !self.keys.contains(name));
        let ranges = ranges.map(|(name, range)| (name.clone(), Declared::Range(*range)));
        let dates = self.dates.iter().map(|(name, range)| (name.clone(), Declared::Dates(range.clone())));
        let categories =
            self.categories.iter().map(|(name, values)| (name.clone(), Declared::Categories(values.clone())));
        Rules {
            scaling: self.scaling,
            clip: self.clip.clone(),
            one_hot: self.one_hot.unwrap_or(usual.one_hot),
            buckets: self.buckets.unwrap_or(usual.buckets),
            declared: ranges.chain(dates).chain(categories).collect(),
            only_declared: self.declares().is_some(),
        }
    }

    /// The declared ranges of the keys of a table that has its keys taken out already, if it declares anything: of every
    /// column but texts, and of no other.
    pub(super) fn bounds_of(
        &self,
        table: &FileTable,
        number_keys: bool,
    ) -> Result<Option<Bounds>, DataError> {
        if self.declares().is_none() {
            return Ok(None);
        }
        let place = |column: &str| format!("{} column `{column}`", self.file);
        let keys: &[String] = if number_keys { &self.keys } else { &[] };
        let of = |column: &String| {
            let problem = "must have a range in `bounds`, which names some columns of this table";
            let range = self.bounds.get(column).copied();
            range.ok_or_else(|| DataError::new(place(column), problem))
        };
        let keys: Vec<[f64; 2]> = keys.iter().map(of).collect::<Result<_, _>>()?;
        for name in table.names() {
            let (field, declared) = match &table.column(name)?.values {
                Values::Number(_) => ("a range in `bounds`", self.bounds.contains_key(name)),
                Values::Date(_) => ("a range in `dates`", self.dates.contains_key(name)),
                Values::Category { .. } => ("its values in `categories`", self.categories.contains_key(name)),
                Values::Text(_) => continue,
            };
            if !declared {
                let problem = format!("must have {field}, since this table declares some of its columns");
                return Err(DataError::new(place(name), problem));
            }
        }
        let names: Vec<&str> = table.names().collect();
        let declared = self.bounds.keys().filter(|name| !number_keys || !self.keys.contains(name));
        let mut declared = declared.chain(self.dates.keys()).chain(self.categories.keys());
        if let Some(column) = declared.find(|column| !names.contains(&column.as_str())) {
            let problem =
                format!("has no column `{column}` to declare; `bounds`, `dates` or `categories` names it");
            return Err(DataError::new(&self.file, problem));
        }
        Ok(Some(Bounds { keys, features: Vec::new() }))
    }
}
