//! A table's keys, in the form in which both sides compare them.

use std::path::{Path, PathBuf};

use fet_core::data::{KeyKind, Keys};
use fet_data::Stored;
use fet_linkage::psi::labelled::{Key, key};
use fet_linkers::contents;

use super::files::Kind;
use crate::input::input;

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
    /// The file that they are of, as it was then.
    stored: Stored,
}

impl Own {
    /// What is to be told of rows without a key, if there are any.
    pub(super) fn told(&self) -> String {
        match self.keys.iter().filter(|key| key.is_none()).count() {
            0 => String::new(),
            empty => format!("{empty} rows have empty keys; they are equal to nothing\n"),
        }
    }

    /// The cells of these columns as they stand, row by row.
    pub(super) fn cells(&self, columns: &[String]) -> anyhow::Result<Vec<String>> {
        self.stored.verbatim(columns).map_err(input)
    }
}

impl Named {
    /// Reads them: numbers if `kind` says so, or if it does not say and every cell is one that is told from others; else texts.
    pub(super) fn read(&self, kind: Option<Kind>) -> anyhow::Result<Own> {
        let stored = Stored::read(&self.table).map_err(input)?;
        let read = |kind| stored.keys(&self.keys, kind).map_err(input);
        let keys = match kind {
            Some(Kind::Text) => read(KeyKind::Text)?,
            Some(Kind::Numbers) | None => read(KeyKind::Either)?,
        };
        if kind == Some(Kind::Numbers) && keys.numbers().is_none() {
            return Err(input(format!(
                "{}: the keys of the request are numbers, and {} has other cells too, or whole numbers too long to be told apart as such; mend \
                 them, or have it asked again as texts (--text)",
                self.table.display(),
                self.keys.join(", "),
            )));
        }
        let kind = if keys.numbers().is_some() { Kind::Numbers } else { Kind::Text };
        if kind == Kind::Numbers && !self.missing.is_empty() {
            return Err(input("--missing: is of texts; these keys are numbers, none of which is missing"));
        }
        Ok(Own { kind, keys: digests(&keys, &self.missing), stored })
    }

    /// The place of the table, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.table
    }
}

fn digests(keys: &Keys, missing: &[String]) -> Vec<Option<Key>> {
    contents(keys, missing).into_iter().map(|content| content.map(|content| key(&content))).collect()
}
