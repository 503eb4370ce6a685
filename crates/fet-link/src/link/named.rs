//! Resolves rows that a file names by number or by id.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use super::spreadsheet::from_spreadsheet;
use fet_io::input::input;

/// Row of a file that names rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowInFile<'a> {
    pub(super) file: &'a Path,
    /// Row number in the file, from 0.
    pub(super) row: usize,
}

impl fmt::Display for RowInFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} row {} (from 0)", self.file.display(), self.row)
    }
}

/// One of the two tables whose rows a file names.
pub(super) struct Side<'a> {
    name: &'static str,
    rows: usize,
    ids: HashMap<&'a str, Vec<u32>>,
}

impl<'a> Side<'a> {
    /// Returns the primary and the secondary.
    pub(super) fn both(ids: Option<&'a [Vec<String>; 2]>, rows: [usize; 2]) -> [Self; 2] {
        [0, 1].map(|side| {
            let mut places: HashMap<&str, Vec<u32>> = HashMap::new();
            for (row, id) in ids.map(|ids| &ids[side]).into_iter().flatten().enumerate() {
                places.entry(id).or_default().push(row as u32);
            }
            Self { name: ["primary", "secondary"][side], rows: rows[side], ids: places }
        })
    }

    /// Returns the row whose number, from 0, is in a cell.
    pub(super) fn by_number(&self, place: RowInFile<'_>, cell: &str) -> anyhow::Result<u32> {
        cell.parse::<u32>().ok().filter(|&row| (row as usize) < self.rows).ok_or_else(|| {
            let rule = format!("must be a row of the {} table, 0 to {}", self.name, self.rows - 1);
            input(format!("{place}: {rule}; it is \"{cell}\" (for ids, name their column with --id)"))
        })
    }

    /// Returns the row whose id is in a cell, verbatim or as a review writes it. If several rows have the id,
    /// the row with this number.
    pub(super) fn by_id(
        &self,
        place: RowInFile<'_>,
        cell: &str,
        number: Option<&str>,
    ) -> anyhow::Result<u32> {
        let name = self.name;
        let found = self
            .ids
            .get(from_spreadsheet(cell))
            .or_else(|| self.ids.get(cell))
            .ok_or_else(|| input(format!("{place}: no row of the {name} table has the id \"{cell}\"")))?;
        let number = number.and_then(|number| number.parse::<u32>().ok());
        match found.as_slice() {
            [only] => Ok(*only),
            several => match number.filter(|number| several.contains(number)) {
                Some(number) => Ok(number),
                None => Err(input(format!(
                    "{}: the id \"{cell}\" occurs in rows {} and {} (from 0) of the {name} table; name a column with \
                     unique ids (--id)",
                    place.file.display(),
                    several[0],
                    several[1]
                ))),
            },
        }
    }
}
