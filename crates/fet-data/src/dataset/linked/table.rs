//! Settings of one party's table: file, keys, and kinds and encoding of columns.

use std::collections::BTreeMap;

use fet_core::data::{Bounds, DataError};
use fet_core::registry::Violation;
use fet_tables::prepare::{Declared, Rules, Scaling};
use fet_tables::{Kind, Options, Values, delimiter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::table::FileTable;

/// Table of one party.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TableSettings {
    /// Name of the party in reports; empty to use the name of its file.
    pub name: String,
    /// File of the table: CSV with any delimiter, Parquet or Arrow; may end in `.gz` or `.zst`. The program
    /// searches the experiment's folder, then the data folder.
    pub file: String,
    /// Names of the key columns, in the same order for all parties.
    #[schemars(extend("x-rule" = "at least one column, each named once, as many as the primary's"))]
    pub keys: Vec<String>,
    /// Names of columns to leave out; empty to use all.
    pub drop: Vec<String>,
    /// Kinds of columns, as `column = "kind"`, that replace the kinds shown by `fet data show`; empty to
    /// infer all. A key of numbers may be a "date", which becomes days since 1970, or a "time", which becomes
    /// hours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, Kind>,
    /// Delimiter between the cells of a line: one character, or "tab"; empty to detect the delimiter.
    #[schemars(extend("x-rule" = "one character (no quote, no line end), \"tab\" or empty"))]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub delimiter: String,
    /// Marks of a missing cell, in addition to an empty cell; empty for the usual marks (NA, N/A, NaN, null,
    /// None, ?); [""] for empty cells only. The usual marks do not count in a column that `columns` declares
    /// as a category.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Scaling of number columns without a range in `bounds`.
    #[schemars(extend("default" = "standard"))]
    #[serde(skip_serializing_if = "is_default")]
    pub scaling: Scaling,
    /// Names of columns with outliers, clipped to their quantiles of 1 % and 99 % before scaling; empty for
    /// only the clipping of `scaling` "robust".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clip: Vec<String>,
    /// Maximum number of values of a category with one column per value. Categories with more values are
    /// hashed; 0 hashes every category.
    #[schemars(range(min = 0, max = MOST_COLUMNS), extend("default" = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_hot: Option<usize>,
    /// Number of columns for a hashed category or a text.
    #[schemars(range(min = 1, max = MOST_COLUMNS), extend("default" = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<usize>,
    /// Ranges of the number columns of a secondary, including keys, as `column = [low, high]`, from public
    /// knowledge. The secondary scales by these ranges. If `bounds`, `dates` and `categories` are all empty,
    /// it scales by means and deviations, which is refused with a privacy mechanism. A secondary declares
    /// either every column except texts, or no column.
    #[schemars(extend("x-rule" = "ranges [low, high]: finite, low below high"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// Ranges of the date columns of a secondary, as `column = [first, last]` in ISO 8601, from public
    /// knowledge; empty, together with `bounds` and `categories`, to declare no column.
    #[schemars(extend("x-rule" = "ranges [first, last] of dates in ISO 8601"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dates: BTreeMap<String, [String; 2]>,
    /// All values of each category of a secondary, as `column = [values]`, from public knowledge; empty,
    /// together with `bounds` and `dates`, to declare no column. Other values count as unknown.
    #[schemars(extend("x-rule" = "lists of at least one value"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, Vec<String>>,
}

fn is_default(scaling: &Scaling) -> bool {
    *scaling == Scaling::default()
}

/// Maximum number of columns of a hashed column, and of values of a category with one column per value.
const MOST_COLUMNS: usize = 1 << 16;

impl TableSettings {
    /// Refuses invalid settings.
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
        let is_no_form =
            |kind: &Kind| !matches!(kind, Kind::Plain | Kind::Amount(_) | Kind::Date { .. } | Kind::Time);
        if let Some(key) = self.keys.iter().find(|key| self.columns.get(*key).is_some_and(is_no_form)) {
            let rule = "must not name a key, except with the form of its numbers, such as number:1,234.5, or as a date or time: `key_kind` sets the kind of keys";
            return Err(Violation::new("columns", rule, format!("{key:?}")));
        }
        if let Some(key) = self.drop.iter().find(|name| self.keys.contains(name)) {
            let rule = "must not name a key: keys are not features";
            return Err(Violation::new("drop", rule, format!("{key:?}")));
        }
        if let Some(key) = self.clip.iter().find(|name| self.keys.contains(name)) {
            return Err(Violation::new("clip", "must name features, not a key", format!("{key:?}")));
        }
        Ok(())
    }

    /// Returns the name of the party.
    pub(super) fn party_name(&self) -> &str {
        if self.name.is_empty() { &self.file } else { &self.name }
    }

    /// Returns the name and value of the first setting that declares columns.
    pub(super) fn declares(&self) -> Option<(&'static str, String)> {
        let Self { bounds, dates, categories, .. } = self;
        let all = [
            ("bounds", !bounds.is_empty(), format!("{bounds:?}")),
            ("dates", !dates.is_empty(), format!("{dates:?}")),
            ("categories", !categories.is_empty(), format!("{categories:?}")),
        ];
        all.into_iter().find(|(_, given, _)| *given).map(|(field, _, value)| (field, value))
    }

    /// Returns the read options of the file: keys as numbers or texts, without dropped columns unless listed
    /// in `kept`.
    pub(super) fn options(&self, text_keys: bool, kept: &[String]) -> Options {
        let key = if text_keys { Kind::Text } else { Kind::Number };
        let mut kinds = self.columns.clone();
        // A declaration determines the kind of a column, regardless of its records.
        let declared = self.bounds.keys().map(|name| (name, Kind::Number));
        let declared = declared.chain(self.dates.keys().map(|name| (name, Kind::Date { format: None })));
        for (name, kind) in declared.chain(self.categories.keys().map(|name| (name, Kind::Category))) {
            kinds.entry(name.clone()).or_insert(kind);
        }
        // The table's owner may declare the form of a key's numbers.
        let is_said = |name: &String| !text_keys && self.columns.contains_key(name);
        kinds.extend(self.keys.iter().filter(|name| !is_said(name)).map(|name| (name.clone(), key.clone())));
        let drop = self.drop.iter().filter(|name| !kept.contains(name)).cloned().collect();
        let missing = self.missing.clone();
        Options { kinds, drop, missing, delimiter: delimiter(&self.delimiter), ..Options::default() }
    }

    /// Returns the rules that encode columns as numbers.
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

    /// Returns the declared ranges of the keys, or `None` if the settings declare no column. `table` must no
    /// longer contain the keys. Checks that every column except texts is declared, and that every declared
    /// column exists.
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
        let range = |column: &String| {
            let problem = "must have a range in `bounds`, since this table declares some of its columns";
            let range = self.bounds.get(column).copied();
            range.ok_or_else(|| DataError::new(place(column), problem))
        };
        let keys: Vec<[f64; 2]> = keys.iter().map(range).collect::<Result<_, _>>()?;
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
                format!("lacks the column `{column}`, but `bounds`, `dates` or `categories` declares it");
            return Err(DataError::new(&self.file, problem));
        }
        Ok(Some(Bounds { keys, features: Vec::new() }))
    }
}
