//! Tables for datasets: found in the data folders, read by [`fet_tables`], and split into columns.

use std::path::{Path, PathBuf};

use fet_core::data::{Comparison, DataError, Folders, KeyKind, Keys, Matrix, TextTable};
use fet_core::linker::APART;
use fet_tables::{Column, Kind, MISSING_DATE, Options, Table, TableError, Values};

use super::locate;

/// Largest number of a key or a feature: it must be finite in 32 bits, and its square in 64 bits.
const LARGEST: f64 = 1e38;
/// Microseconds of a day, the unit of dates as keys.
const MICROSECONDS_OF_A_DAY: f64 = 86_400e6;

/// Table with the name of its file.
#[derive(Debug)]
pub(crate) struct FileTable {
    file: String,
    table: Table,
}

impl FileTable {
    /// Reads `file` from one of `folders`. `setting` is the name of the setting that names the file.
    pub(crate) fn read(
        folders: &Folders,
        file: &str,
        setting: &str,
        options: &Options,
    ) -> Result<Self, DataError> {
        let path = locate(folders, file, setting)?;
        let table = fet_tables::read(&path, options).map_err(unusable)?;
        Ok(Self { file: path.display().to_string(), table })
    }

    /// Parses a file in memory.
    fn parse(stored: &Stored, options: &Options) -> Result<Self, DataError> {
        let table = fet_tables::read_bytes(&stored.bytes, &stored.path, options).map_err(unusable)?;
        Ok(Self { file: stored.path.display().to_string(), table })
    }

    /// Wraps a table that another module has read.
    pub(crate) fn from_table(file: &str, table: Table) -> Self {
        Self { file: file.to_string(), table }
    }

    /// Returns the number of records.
    pub(crate) fn rows(&self) -> usize {
        self.table.rows
    }

    /// Returns the names of the remaining columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.table.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns a column without removing it.
    pub(crate) fn column(&self, name: &str) -> Result<&Column, DataError> {
        self.table.column(name).map_err(|error| self.refuse(error))
    }

    /// Removes and returns a column.
    pub(crate) fn take(&mut self, name: &str) -> Result<Column, DataError> {
        self.column(name)?;
        let at = self.table.columns.iter().position(|column| column.name == name);
        Ok(self.table.columns.remove(at.expect("it was found")))
    }

    /// Adds a column that the settings `key_features` computed.
    pub(crate) fn add(&mut self, column: Column) -> Result<(), DataError> {
        if self.names().any(|name| name == column.name) {
            let name = &column.name;
            return Err(self.error(format!(
                "has a column `{name}`, which `data.key_features` computes: rename it, or set `data.key_features = false`"
            )));
        }
        self.table.columns.push(column);
        Ok(())
    }

    /// Removes number columns from the table and refuses missing cells. [rows, names]
    pub(crate) fn take_numbers(&mut self, names: &[String]) -> Result<Matrix<f64>, DataError> {
        let columns = names.iter().map(|name| self.numbers(name)).collect::<Result<Vec<_>, _>>()?;
        let rows = self.table.rows;
        let values = (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
        self.table.columns.retain(|column| !names.contains(&column.name));
        Ok(Matrix::new(names.len(), values))
    }

    /// Removes text columns from the table. A missing text becomes an empty text.
    pub(crate) fn take_texts(&mut self, names: &[String]) -> Result<TextTable, DataError> {
        let columns = names.iter().map(|name| self.take(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(texts(&columns, self.table.rows))
    }

    /// Removes columns from the table, each cell as text. A missing cell becomes an empty text.
    fn take_cells(&mut self, names: &[String]) -> Result<TextTable, DataError> {
        let columns = names
            .iter()
            .map(|name| Ok(self.take(name)?.values.texts()))
            .collect::<Result<Vec<_>, DataError>>()?;
        let rows = self.table.rows;
        Ok(TextTable::from_cells(
            names.len(),
            (0..rows).flat_map(|row| columns.iter().map(move |column| &column[row])),
        ))
    }

    /// Returns the remaining columns.
    pub(crate) fn into_rest(self) -> Table {
        self.table
    }

    /// Returns the place of a cell for a message.
    pub(crate) fn place(&self, row: usize, column: &str) -> String {
        format!("{} row {row} (from 0) column `{column}`", self.file)
    }

    /// Returns an error about this file.
    pub(crate) fn error(&self, problem: impl Into<String>) -> DataError {
        DataError::new(&self.file, problem.into())
    }

    fn refuse(&self, error: TableError) -> DataError {
        let text = error.to_string();
        self.error(text.strip_prefix("the table ").unwrap_or(&text))
    }

    /// Returns the numbers of a column. Dates become days since 1970-01-01, with the time as a fraction.
    fn numbers(&self, name: &str) -> Result<Vec<f64>, DataError> {
        let days = |&at: &i64| if at == MISSING_DATE { f64::NAN } else { at as f64 / MICROSECONDS_OF_A_DAY };
        let dates: Vec<f64>;
        let values = match &self.column(name)?.values {
            Values::Number(values) => values,
            Values::Date(values) => {
                dates = values.iter().map(days).collect();
                &dates
            }
            _ => return Err(self.error(format!("column `{name}` must hold numbers"))),
        };
        match values.iter().position(|value| value.is_nan()) {
            Some(row) => {
                let problem = "must be a number; it is missing (leave out records without one)";
                Err(DataError::new(self.place(row, name), problem))
            }
            None => match values.iter().position(|value| value.abs() > LARGEST) {
                Some(row) => {
                    let problem = format!("must be within ±{LARGEST:e}; it is {:e}", values[row]);
                    Err(DataError::new(self.place(row, name), problem))
                }
                None => Ok(values.clone()),
            },
        }
    }
}

/// Converts a reader's error to a data error with the same text.
pub(crate) fn unusable(error: TableError) -> DataError {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((place, problem)) => DataError::new(place, problem),
        None => DataError::new("table", text),
    }
}

/// Joins text columns to a table.
fn texts(columns: &[Column], rows: usize) -> TextTable {
    fn cell(column: &Column, row: usize) -> &str {
        match &column.values {
            Values::Text(texts) => texts.get(row).unwrap_or_default(),
            Values::Category { codes, names } => names.get(codes[row] as usize).map_or("", String::as_str),
            Values::Number(_) | Values::Date(_) => "",
        }
    }
    TextTable::from_cells(
        columns.len(),
        (0..rows).flat_map(|row| columns.iter().map(move |column| cell(column, row))),
    )
}

/// Options that read only the named columns, as texts.
fn as_texts(columns: &[String]) -> Options {
    let kinds = columns.iter().map(|name| (name.clone(), Kind::Text)).collect();
    Options { kinds, columns: Some(columns.to_vec()), ..Options::default() }
}

/// Options that read only the named columns, as keys that are compared for equality.
fn identifiers(columns: &[String]) -> Options {
    Options {
        columns: Some(columns.to_vec()),
        identifiers: true,
        missing: Vec::new(),
        keep_empty: true,
        ..Options::default()
    }
}

/// Contents of a table's file at one time. Repeated reads are consistent even if the file changes.
#[derive(Debug)]
pub struct Stored {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Stored {
    /// Reads the bytes of a file.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let path = locate(&Folders::default(), &path.display().to_string(), "file")?;
        let unreadable =
            |error| DataError::new(path.display().to_string(), format!("cannot be read: {error}"));
        let bytes = fet_io::read(&path).map_err(unreadable)?;
        Ok(Self { path, bytes })
    }

    /// Returns the named columns as texts, row by row, without the spaces around the cells. In a column of
    /// only numbers without leading zeros, equal numbers get one spelling, unless `as_text` is true for the
    /// column.
    pub fn cells(&self, columns: &[String], as_text: &[bool]) -> Result<TextTable, DataError> {
        let read = |as_text: &[bool]| {
            let texts = columns.iter().zip(as_text).filter(|(_, as_text)| **as_text);
            let kinds = texts.map(|(name, _)| (name.clone(), Kind::Text)).collect();
            FileTable::parse(self, &Options { kinds, ..identifiers(columns) })
        };
        let table = read(as_text)?;
        // Large whole numbers can be equal in 64-bit floats although their digits differ, so that such
        // columns are read as text.
        let is_long = |name: &String| {
            table.column(name).is_ok_and(|column| {
                matches!(&column.values, Values::Number(values) if values.iter().any(|value| value.abs() >= APART))
            })
        };
        let is_number =
            |name: &String| table.column(name).is_ok_and(|column| matches!(column.values, Values::Number(_)));
        let codes = if columns.iter().any(is_number) {
            with_signs_of_codes(&read(&vec![true; columns.len()])?.take_cells(columns)?)
        } else {
            vec![false; columns.len()]
        };
        let again: Vec<bool> = (columns.iter().zip(as_text).zip(codes))
            .map(|((name, as_text), codes)| *as_text || is_long(name) || (is_number(name) && codes))
            .collect();
        let mut table = if again == as_text { table } else { read(&again)? };
        table.take_cells(columns)
    }

    /// Returns the named columns as [`read_verbatim`] does.
    pub fn verbatim(&self, columns: &[String]) -> Result<Vec<String>, DataError> {
        cells(FileTable::parse(self, &verbatim(columns))?, columns)
    }
}

/// Reads only the named columns of a table, as keys. The keys are numbers if `kind` requires numbers. If
/// `kind` allows both, the keys are numbers if every cell is a number without a leading zero, and every whole
/// number is small enough to be exact ([`APART`]). Otherwise the keys are texts.
///
/// The function also returns the reader's notes on these columns.
pub fn read_keys(path: &Path, columns: &[String], kind: KeyKind) -> Result<(Keys, Vec<String>), DataError> {
    let file = path.display().to_string();
    keys(&|options| FileTable::read(&Folders::default(), &file, "file", options), columns, kind)
}

/// As [`read_keys`] for a linker of equal keys, which takes either: texts also where a number has a sign of an identifier.
pub fn read_equal_keys(path: &Path, columns: &[String]) -> Result<(Keys, Vec<String>), DataError> {
    let (keys, notes) = read_keys(path, columns, KeyKind::Either)?;
    if keys.numbers().is_some() {
        let (texts, notes) = read_keys(path, columns, KeyKind::Text)?;
        if texts.text().is_some_and(|texts| with_signs_of_codes(texts).contains(&true)) {
            return Ok((texts, notes));
        }
    }
    Ok((keys, notes))
}

/// Returns the columns of numbers with signs of identifiers, such as 1.10 and 1e2: different cells may be one number.
fn with_signs_of_codes(table: &TextTable) -> Vec<bool> {
    // A comma can precede decimals.
    let point = |cell: &str| if cell.contains('.') { cell.to_string() } else { cell.replacen(',', ".", 1) };
    let looks_like_codes = |column| {
        let cells: Vec<String> = table.column(column).map(point).collect();
        Comparison::detect(cells.iter().map(String::as_str)) == Comparison::Verbatim
    };
    (0..table.columns()).map(looks_like_codes).collect()
}

/// The notes on columns, with the file.
fn notes(table: &FileTable) -> Vec<String> {
    let notes = table.table.notes.iter().filter(|note| note.starts_with("column `"));
    notes.map(|note| format!("{} {note}", table.file)).collect()
}

fn keys(
    read: &dyn Fn(&Options) -> Result<FileTable, DataError>,
    columns: &[String],
    kind: KeyKind,
) -> Result<(Keys, Vec<String>), DataError> {
    let named = Options { columns: Some(columns.to_vec()), ..Options::default() };
    match kind {
        KeyKind::Text => {
            let mut table = read(&as_texts(columns))?;
            let notes = notes(&table);
            Ok((Keys::Text(table.take_texts(columns)?), notes))
        }
        KeyKind::Numbers => {
            let kinds = columns.iter().map(|name| (name.clone(), Kind::Number)).collect();
            let numbers = read(&Options { kinds, ..named }).and_then(|mut table| {
                let notes = notes(&table);
                Ok((Keys::Numbers(table.take_numbers(columns)?), notes))
            });
            let hint = " (for text choose a linker such as \"clk\")";
            numbers.map_err(|error| DataError {
                problem: if error.problem.starts_with("must be") {
                    error.problem + hint
                } else {
                    error.problem
                },
                ..error
            })
        }
        KeyKind::Either => {
            let mut table = read(&identifiers(columns))?;
            let are_apart =
                |numbers: &Matrix<f64>| numbers.values().iter().all(|number| number.abs() < APART);
            let notes = notes(&table);
            match table.take_numbers(columns) {
                Ok(numbers) if are_apart(&numbers) => Ok((Keys::Numbers(numbers), notes)),
                _ => keys(read, columns, KeyKind::Text),
            }
        }
    }
}

/// Reads the cells of the named columns, row by row, without the spaces around them. A missing cell is empty.
pub fn read_texts(path: &Path, columns: &[String]) -> Result<Vec<String>, DataError> {
    read_cells(path, columns, &as_texts(columns))
}

/// Reads the cells of the named columns unchanged, row by row, with the spaces around them.
pub fn read_verbatim(path: &Path, columns: &[String]) -> Result<Vec<String>, DataError> {
    read_cells(path, columns, &verbatim(columns))
}

fn verbatim(columns: &[String]) -> Options {
    Options { keep_spaces: true, ..as_texts(columns) }
}

fn read_cells(path: &Path, columns: &[String], options: &Options) -> Result<Vec<String>, DataError> {
    let file = path.display().to_string();
    cells(FileTable::read(&Folders::default(), &file, "file", options)?, columns)
}

fn cells(mut table: FileTable, columns: &[String]) -> Result<Vec<String>, DataError> {
    Ok(table.take_texts(columns)?.cells().into_iter().map(String::from).collect())
}

/// Reads the names of the columns of a table.
pub fn read_names(path: &Path) -> Result<Vec<String>, DataError> {
    let table =
        FileTable::read(&Folders::default(), &path.display().to_string(), "file", &Options::default())?;
    Ok(table.names().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_texts_or_numbers_as_the_linker_wants_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.csv");
        let keys = |text: &[u8], columns: &[&str], kind| {
            std::fs::write(&path, text).expect("writable");
            let columns: Vec<String> = columns.iter().map(|name| name.to_string()).collect();
            read_keys(&path, &columns, kind).map(|(keys, _)| keys)
        };
        let table = b"id, name ,x\n1,\"Smith, Ann\",0.5\n2, ,7\n";
        let text = keys(table, &["name"], KeyKind::Text).expect("texts");
        assert_eq!(text.text().expect("texts").cells(), ["Smith, Ann", ""]);
        let spaced = |read: fn(&Path, &[String]) -> Result<Vec<String>, DataError>| {
            std::fs::write(&path, "name,x\n Ann ,1\n\u{3000}B,2\n , 3\n").expect("writable");
            read(&path, &["name".to_string(), "x".to_string()]).expect("texts")
        };
        assert_eq!(spaced(read_texts), ["Ann", "1", "B", "2", "", "3"]);
        assert_eq!(spaced(read_verbatim), [" Ann ", "1", "\u{3000}B", "2", " ", " 3"]);
        let numbers = keys(table, &["x", "id"], KeyKind::Numbers).expect("numbers");
        assert_eq!(numbers.numbers().expect("numbers").values(), [0.5, 1.0, 7.0, 2.0]);
        assert!(keys(table, &["x"], KeyKind::Either).expect("either").numbers().is_some());
        assert!(keys(table, &["x", "name"], KeyKind::Either).expect("either").text().is_some());
        // 2^53 and 2^53 + 1 are the same number in a 64-bit float.
        let whole = |text: &str| keys(text.as_bytes(), &["x"], KeyKind::Either).expect("either");
        assert!(whole("x\n9007199254740991\n-9007199254740991\n").numbers().is_some());
        let long = whole("x\n1\n9007199254740993\n");
        assert_eq!(long.text().expect("texts").cells(), ["1", "9007199254740993"]);
        // Cells with a leading zero are identifiers, and identifiers with mostly digits are texts.
        let codes = whole("x\n0123\n123\n");
        assert_eq!(codes.text().expect("texts").cells(), ["0123", "123"]);
        let mostly = format!("x\n{}12X\nNA\n", "7\n".repeat(50));
        assert_eq!(whole(&mostly).text().expect("texts").rows(), 52);
        let refused = |text: &[u8], columns: &[&str], kind, parts: &[&str]| {
            let error = keys(text, columns, kind).expect_err("refused").to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        refused(table, &["nam"], KeyKind::Text, &["lacks the column `nam`", "did you mean \"name\""]);
        refused(table, &["name"], KeyKind::Numbers, &["line 2 column `name`", "Smith, Ann", "\"clk\""]);
        refused(b"x\n1\ninf\n", &["x"], KeyKind::Numbers, &["line 3 column `x`", "inf"]);
        refused(b"a,b\nx,\xff\n", &["b"], KeyKind::Text, &["line 2 column `b`", "UTF-8", "byte 1"]);
        refused(b"a,b\n", &["b"], KeyKind::Text, &["is empty below its header"]);
        refused(b"a,b\n1,2\n3\n", &["b"], KeyKind::Text, &["line 3", "1 cells"]);
    }

    #[test]
    fn what_is_stored_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.csv");
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        std::fs::write(&path, "id,note\n1, a \n2,b\n").expect("writable");
        let stored = Stored::read(&path).expect("readable");
        std::fs::write(&path, "id,note\n3,c\n").expect("writable");
        assert_eq!(stored.cells(&names(&["id"]), &[false]).expect("cells").cells(), ["1", "2"]);
        assert_eq!(stored.verbatim(&names(&["note", "id"])).expect("cells"), [" a ", "1", "b", "2"]);
        let error = stored.verbatim(&names(&["gone"])).expect_err("no such column").to_string();
        assert!(error.contains("t.csv") && error.contains("lacks the column `gone`"), "{error}");
    }
}
