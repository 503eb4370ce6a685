//! A table's keys, in the form in which both sides compare them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fet_core::data::{Comparison, Keys, TextTable, number};
use fet_data::Stored;
use fet_linkage::psi::labelled::{Key, key};
use fet_linkers::{Merged, contents, merged};

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

/// How keys are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compare {
    /// As they stand, without the white space around them: case, accents, punctuation and leading zeros count.
    Verbatim,
    /// In their normal form: case, accents and punctuation do not count.
    Normal,
}

impl Compare {
    fn comparison(self) -> Comparison {
        match self {
            Self::Verbatim => Comparison::Verbatim,
            Self::Normal => Comparison::Normal,
        }
    }
}

/// The keys of a table's rows.
pub(super) struct Own {
    /// The comparison of each key column.
    pub compared: Vec<Comparison>,
    /// Nothing where a row has none.
    pub keys: Vec<Option<Key>>,
    /// What a person should know of the columns, one line each.
    notes: String,
    /// The file that they are of, as it was then.
    stored: Stored,
}

impl Own {
    /// What is to be told of the comparison of columns, and of rows without a key, if there are any.
    pub(super) fn told(&self, names: &[String]) -> String {
        let mut text = String::new();
        for (name, comparison) in names.iter().zip(&self.compared) {
            let _ = writeln!(text, "key `{name}` is compared {}", comparison.told());
        }
        text += &self.notes;
        match self.keys.iter().filter(|key| key.is_none()).count() {
            0 => {}
            empty => {
                let _ = writeln!(text, "{empty} rows have an empty key cell; they are equal to nothing");
            }
        }
        text
    }

    /// The cells of these columns as they stand, row by row.
    pub(super) fn cells(&self, columns: &[String]) -> anyhow::Result<Vec<String>> {
        self.stored.verbatim(columns).map_err(input)
    }
}

impl Named {
    /// The asker's keys: compared as `compare` says, or as each column's cells suggest; with `text` none is compared as numbers.
    pub(super) fn asked(&self, compare: Option<Compare>, text: bool) -> anyhow::Result<Own> {
        let stored = Stored::read(&self.table).map_err(input)?;
        let as_text = vec![text || compare.is_some(); self.keys.len()];
        let table = stored.cells(&self.keys, &as_text).map_err(input)?;
        let suggested = |column| match Comparison::of(table.column(column)) {
            Comparison::Numbers if text => Comparison::Verbatim,
            comparison => comparison,
        };
        let of = |column| compare.map_or_else(|| suggested(column), Compare::comparison);
        let compared: Vec<Comparison> = (0..self.keys.len()).map(of).collect();
        let notes = if compare.is_none() { self.merged(&table, &compared) } else { String::new() };
        Ok(self.own(stored, table, compared, notes))
    }

    /// The owner's keys, compared as a request says. `accepted` is what the owner agrees to although its cells suggest otherwise.
    pub(super) fn answering(
        &self,
        compared: &[Comparison],
        accepted: Option<Compare>,
    ) -> anyhow::Result<Own> {
        let stored = Stored::read(&self.table).map_err(input)?;
        let as_text: Vec<bool> = compared.iter().map(|how| *how != Comparison::Numbers).collect();
        let table = stored.cells(&self.keys, &as_text).map_err(input)?;
        let mut notes = String::new();
        for (column, (name, how)) in self.keys.iter().zip(compared).enumerate() {
            let place = format!("{}, column `{name}`", self.table.display());
            let present = || table.column(column).filter(|cell| !cell.trim().is_empty());
            match how {
                Comparison::Numbers => {
                    let (all, others) =
                        (present().count(), present().filter(|cell| number(cell.trim()).is_none()).count());
                    if all > 0 && others == all {
                        return Err(input(format!(
                            "{place}: the request compares it as numbers, and no cell is a number (077, 1.10 and 1e2 are codes). Name the column of \
                             numbers, or have it asked again with --text."
                        )));
                    }
                    if others > 0 {
                        let _ = writeln!(
                            notes,
                            "{place}: {others} of {all} cells are no plain numbers; they are compared as they stand"
                        );
                    }
                }
                Comparison::Normal
                    if accepted != Some(Compare::Normal)
                        && Comparison::of(table.column(column)) == Comparison::Verbatim =>
                {
                    return Err(input(format!(
                        "{place}: the request ignores case, accents and punctuation, and the cells look like identifiers: different ones would \
                         count as equal. Have it asked again with --compare verbatim, or accept it with --compare normal."
                    )));
                }
                _ => {}
            }
        }
        if accepted.is_none() {
            notes += &self.merged(&table, compared);
        }
        Ok(self.own(stored, table, compared.to_vec(), notes))
    }

    /// Lines on different cells that a comparison makes equal.
    fn merged(&self, table: &TextTable, compared: &[Comparison]) -> String {
        let line = |merged: Merged| {
            format!(
                "{}, column `{}`: {merged}; --compare verbatim of `fet psi ask` compares cells as they stand\n",
                self.table.display(),
                self.keys[merged.column]
            )
        };
        merged(table, compared).into_iter().map(line).collect()
    }

    fn own(&self, stored: Stored, table: TextTable, compared: Vec<Comparison>, notes: String) -> Own {
        let keys = contents(&Keys::Text(table), &self.missing, &compared);
        let keys = keys.into_iter().map(|content| content.map(|content| key(&content))).collect();
        Own { compared, keys, notes, stored }
    }

    /// The place of the table, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.table
    }
}
