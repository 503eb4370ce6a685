//! Keys of a table, in the form in which both sides compare them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fet_core::data::{Comparison, Keys, TextTable, number};
use fet_data::Stored;
use fet_linkage::psi::labelled::{Key, key};
use fet_linkers::{Merged, contents, known, merged};

use fet_io::input::input;

/// Table and key columns, as arguments of both sides.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TableArguments {
    /// Your table: CSV, may end in .gz.
    pub table: PathBuf,
    /// Key columns, separated by commas. Both sides name the same number of columns in the same order; the
    /// names may differ.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B")]
    pub keys: Vec<String>,
    /// Words that mean a missing text, in upper or lower case, separated by commas; an empty cell is always
    /// missing.
    #[arg(long, value_delimiter = ',', value_name = "WORD,WORD")]
    pub missing: Vec<String>,
}

/// Comparison of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyComparison {
    /// As written, without surrounding white space; case, accents, punctuation and leading zeros count.
    Verbatim,
    /// In normal form; case, accents and punctuation do not count.
    Normal,
}

impl KeyComparison {
    fn comparison(self) -> Comparison {
        match self {
            Self::Verbatim => Comparison::Verbatim,
            Self::Normal => Comparison::Normal,
        }
    }
}

/// Keys of a table's rows.
pub(super) struct TableKeys {
    /// Comparison of each key column.
    pub compared: Vec<Comparison>,
    /// Key of each row; `None` for a row without a key.
    pub keys: Vec<Option<Key>>,
    /// Remarks on the columns for people, one line each.
    notes: String,
    /// Snapshot of the file with the keys.
    stored: Stored,
}

impl TableKeys {
    /// Returns lines for people about the comparison of columns, and about rows without a key.
    pub(super) fn describe(&self, names: &[String]) -> String {
        let mut text = String::new();
        for (name, comparison) in names.iter().zip(&self.compared) {
            let _ = writeln!(text, "key `{name}` is compared {}", comparison.description());
        }
        text += &self.notes;
        match self.keys.iter().filter(|key| key.is_none()).count() {
            0 => {}
            empty => {
                let _ = writeln!(text, "{empty} rows have an empty key cell and match no row");
            }
        }
        text
    }

    /// Returns the verbatim cells of these columns, row by row.
    pub(super) fn cells(&self, columns: &[String]) -> anyhow::Result<Vec<String>> {
        self.stored.verbatim(columns).map_err(input)
    }
}

impl TableArguments {
    /// Returns the querier's keys, compared by `compare`, or else by each column's cells; with `text` no
    /// column is compared as numbers.
    pub(super) fn querier_keys(
        &self,
        compare: Option<KeyComparison>,
        text: bool,
    ) -> anyhow::Result<TableKeys> {
        let stored = Stored::read(&self.table).map_err(input)?;
        let as_text = vec![text || compare.is_some(); self.keys.len()];
        let table = stored.cells(&self.keys, &as_text).map_err(input)?;
        let present = known(&table, &self.missing);
        let suggested = |column| match Comparison::detect(present.column(column)) {
            Comparison::Numbers if text => Comparison::Verbatim,
            comparison => comparison,
        };
        let of = |column| compare.map_or_else(|| suggested(column), KeyComparison::comparison);
        let compared: Vec<Comparison> = (0..self.keys.len()).map(of).collect();
        let notes = if compare.is_none() { self.merged(&table, &compared) } else { String::new() };
        Ok(self.table_keys(stored, table, compared, notes))
    }

    /// Returns the data holder's keys, compared as a request says. `accepted` is a comparison that the data
    /// holder allows although the cells suggest another.
    pub(super) fn data_holder_keys(
        &self,
        compared: &[Comparison],
        accepted: Option<KeyComparison>,
    ) -> anyhow::Result<TableKeys> {
        let stored = Stored::read(&self.table).map_err(input)?;
        let as_text: Vec<bool> = compared.iter().map(|how| *how != Comparison::Numbers).collect();
        let table = stored.cells(&self.keys, &as_text).map_err(input)?;
        let mut notes = String::new();
        let known = known(&table, &self.missing);
        for (column, (name, how)) in self.keys.iter().zip(compared).enumerate() {
            let place = format!("{}, column `{name}`", self.table.display());
            let present = || known.column(column).filter(|cell| !cell.trim().is_empty());
            match how {
                Comparison::Numbers => {
                    let (all, others) =
                        (present().count(), present().filter(|cell| number(cell.trim()).is_none()).count());
                    if all > 0 && others == all {
                        return Err(input(format!(
                            "{place}: the request compares this column as numbers, but no cell is a number (077, \
                             1.10 and 1e2 are codes). Name the column of numbers, or ask for a new request with --text."
                        )));
                    }
                    if others > 0 {
                        let _ = writeln!(
                            notes,
                            "{place}: {others} of {all} cells are not numbers and are compared verbatim"
                        );
                    }
                }
                Comparison::Normal
                    if accepted != Some(KeyComparison::Normal)
                        && Comparison::detect(known.column(column)) == Comparison::Verbatim =>
                {
                    return Err(input(format!(
                        "{place}: the request ignores case, accents and punctuation; the cells look like \
                         identifiers, and different identifiers would count as equal. Ask for a new request with \
                         --compare verbatim, or accept it with --compare normal."
                    )));
                }
                _ => {}
            }
        }
        if accepted.is_none() {
            notes += &self.merged(&table, compared);
        }
        Ok(self.table_keys(stored, table, compared.to_vec(), notes))
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

    fn table_keys(
        &self,
        stored: Stored,
        table: TextTable,
        compared: Vec<Comparison>,
        notes: String,
    ) -> TableKeys {
        let keys = contents(&Keys::Text(table), &self.missing, &compared);
        let keys = keys.into_iter().map(|content| content.map(|content| key(&content))).collect();
        TableKeys { compared, keys, notes, stored }
    }

    /// Returns the path of the table, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.table
    }
}
