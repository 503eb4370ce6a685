//! A table's keys, in the form in which both sides compare them.

use std::path::{Path, PathBuf};

use fet_core::data::{KeyKind, Keys};
use fet_data::read_keys;
use fet_linkage::psi::labelled::{Key, key};
use fet_linkers::contents;

use super::files::Kind;
use crate::input::input;

/// The largest number of which all smaller whole ones are told apart in 64 bits, 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The table and its keys, as both sides name them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Named {
    /// Your table: CSV, may end in .gz.
    pub table: PathBuf,
    /// Its key columns, separated by commas; both sides have as many, in the same order, under names of their own.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B")]
    pub keys: Vec<String>,
    /// What counts as missing beside an empty cell of a text, whatever its case, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "WORD,WORD")]
    pub missing: Vec<String>,
}

/// The keys of a table's rows.
pub(super) struct Own {
    pub kind: Kind,
    /// Nothing where a row has none.
    pub keys: Vec<Option<Key>>,
}

impl Own {
    /// What is to be told of rows without a key, if there are any.
    pub(super) fn told(&self) -> String {
        match self.keys.iter().filter(|key| key.is_none()).count() {
            0 => String::new(),
            empty => format!("{empty} rows have empty keys; they are equal to nothing\n"),
        }
    }
}

impl Named {
    /// Reads them: numbers if `kind` says so, or if it does not say and every cell is one; else texts.
    pub(super) fn read(&self, kind: Option<Kind>) -> anyhow::Result<Own> {
        let read = |kind| read_keys(&self.table, &self.keys, kind).map_err(input);
        let keys = match kind {
            Some(Kind::Text) => read(KeyKind::Text)?,
            Some(Kind::Numbers) | None => read(KeyKind::Either)?,
        };
        if kind == Some(Kind::Numbers) && keys.numbers().is_none() {
            return Err(input(format!(
                "{}: the keys of the request are numbers, and {} has other cells too; mend them, or have it asked again as texts (--text)",
                self.table.display(),
                self.keys.join(", "),
            )));
        }
        let kind = if keys.numbers().is_some() { Kind::Numbers } else { Kind::Text };
        if kind == Kind::Numbers && !self.missing.is_empty() {
            return Err(input("--missing: is of texts; these keys are numbers, none of which is missing"));
        }
        self.check_exact(&keys)?;
        Ok(Own { kind, keys: digests(&keys, &self.missing) })
    }

    /// Refuses numbers of which a neighbour is the same as a 64-bit number: equal keys must be equal.
    fn check_exact(&self, keys: &Keys) -> anyhow::Result<()> {
        let Some(numbers) = keys.numbers() else { return Ok(()) };
        let Some(at) = numbers.values().iter().position(|value| value.abs() > EXACT) else { return Ok(()) };
        let (row, column) = (at / self.keys.len(), &self.keys[at % self.keys.len()]);
        Err(input(format!(
            "{} data row {row} column `{column}`: must be at most 2^53 in size, since larger whole numbers are not told apart as numbers; ask with \
             --text, so that keys are compared as they are written",
            self.table.display()
        )))
    }

    /// The place of the table, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.table
    }
}

fn digests(keys: &Keys, missing: &[String]) -> Vec<Option<Key>> {
    contents(keys, missing).into_iter().map(|content| content.map(|content| key(&content))).collect()
}
