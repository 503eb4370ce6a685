//! Tables of numbers in CSV, with optional text columns: a header, then one row per record.
//!
//! Every number is parsed once, in double precision; texts are trimmed. The first error stops the reader, with its line
//! and column.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};
use fet_core::data::{DataError, Folders, KeyKind, Keys, Matrix, TextTable};
use fet_core::registry::did_you_mean;

use super::open;

/// A table: numbers by column name, without the dropped columns.
#[derive(Debug)]
pub(crate) struct NumberTable {
    path: PathBuf,
    names: Vec<String>,
    /// Row by row.
    values: Vec<f64>,
    /// The requested text columns, row by row, in the requested order.
    texts: Vec<String>,
}

impl NumberTable {
    /// Reads `file` without the columns `drop`, and the columns `text` as texts. `setting` is where the experiment
    /// names the file.
    pub(crate) fn read(
        folders: &Folders,
        file: &str,
        setting: &str,
        drop: &[String],
        text: &[String],
    ) -> Result<Self, DataError> {
        let (path, reader) = open(folders, file, setting)?;
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(reader);
        let unreadable =
            |error: csv::Error| DataError::new(path.display(), format!("cannot be read: {}", why(&error)));
        let header = reader.byte_headers().map_err(unreadable)?.clone();
        let header = header_names(&path, &header)?;
        let dropped =
            drop.iter().map(|name| position(&path, &header, name)).collect::<Result<HashSet<_>, _>>()?;
        let texts_at =
            text.iter().map(|name| position(&path, &header, name)).collect::<Result<Vec<_>, _>>()?;
        let is_number = |column: &usize| !dropped.contains(column) && !texts_at.contains(column);
        let kept: Vec<usize> = (0..header.len()).filter(is_number).collect();
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        let mut record = ByteRecord::new();
        let mut line = 1;
        while reader.read_byte_record(&mut record).map_err(unreadable)? {
            line = record.position().map_or(line + 1, csv::Position::line);
            if record.len() != header.len() {
                let problem = format!("has {} cells; the header has {}", record.len(), header.len());
                return Err(DataError::new(format!("{} line {line}", path.display()), problem));
            }
            for &column in &kept {
                let cell = record[column].trim_ascii();
                let number = std::str::from_utf8(cell).ok().and_then(|text| text.parse::<f64>().ok());
                match number {
                    Some(number) if number.is_finite() => values.push(number),
                    found => return Err(bad_cell(&path, line, &header[column], cell, found)),
                }
            }
            for &column in &texts_at {
                texts.push(text_cell(&path, line, &header[column], &record[column])?);
            }
        }
        if values.is_empty() && texts.is_empty() {
            return Err(DataError::new(path.display(), "has no rows below its header"));
        }
        let names = kept.iter().map(|&column| header[column].clone()).collect();
        Ok(Self { path, names, values, texts })
    }

    /// Takes the named columns out of the table, in the order given.
    pub(crate) fn take(&mut self, names: &[String]) -> Result<Matrix<f64>, DataError> {
        let columns = names
            .iter()
            .map(|name| position(&self.path, &self.names, name))
            .collect::<Result<Vec<_>, _>>()?;
        let width = self.names.len();
        let rows = self.values.chunks_exact(width);
        let taken = rows.clone().flat_map(|row| columns.iter().map(|&column| row[column])).collect();
        let kept: Vec<usize> = (0..width).filter(|column| !columns.contains(column)).collect();
        self.values = rows.flat_map(|row| kept.iter().map(|&column| row[column])).collect();
        self.names = kept.iter().map(|&column| self.names[column].clone()).collect();
        Ok(Matrix::new(names.len(), taken))
    }

    /// The columns of numbers that are left.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Takes the text columns out of the table.
    pub(crate) fn take_texts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }

    /// What is left, as features.
    pub(crate) fn features(self) -> Result<Matrix<f32>, DataError> {
        if self.names.is_empty() {
            let problem = "has no column left for features, keys, label and dropped columns apart";
            return Err(DataError::new(self.path.display(), problem));
        }
        Ok(Matrix::new(self.names.len(), self.values.iter().map(|&x| x as f32).collect()))
    }

    /// The place of data row `row` (from 0), for a message. It assumes that no row spans several lines.
    pub(crate) fn place(&self, row: usize, column: &str) -> String {
        format!("{} data row {} column `{column}`", self.path.display(), row + 1)
    }
}

/// A trimmed text; an empty one is a missing value.
fn text_cell(path: &Path, line: u64, column: &str, cell: &[u8]) -> Result<String, DataError> {
    let text = std::str::from_utf8(cell).map_err(|error| {
        let problem = format!(
            "must be valid UTF-8; byte {} of the cell is not (save the file as UTF-8)",
            error.valid_up_to() + 1
        );
        DataError::new(format!("{} line {line} column `{column}`", path.display()), problem)
    })?;
    Ok(text.trim().to_string())
}

/// The named columns of a table as keys; other columns are not read. Numbers if `kind` requires them; if it allows
/// either, numbers if every cell is one, else texts.
pub fn read_keys(path: &Path, columns: &[String], kind: KeyKind) -> Result<Keys, DataError> {
    let (cells, lines) = read_columns(path, columns)?;
    let number = |cell: &String| cell.parse::<f64>().ok().filter(|number| number.is_finite());
    let all = cells.iter().map(number).collect::<Option<Vec<f64>>>();
    match (kind, all) {
        (KeyKind::Numbers | KeyKind::Either, Some(values)) => Ok(Matrix::new(columns.len(), values).into()),
        (KeyKind::Numbers, None) => {
            let place = cells.iter().position(|cell| number(cell).is_none()).unwrap_or(0);
            let shown = &cells[place];
            let found =
                if shown.is_empty() { "the cell is empty".into() } else { format!("it is \"{shown}\"") };
            let problem = format!(
                "must be a finite number for this linker; {found} (for text choose a linker such as \"clk\")"
            );
            let (line, column) = (lines[place / columns.len()], &columns[place % columns.len()]);
            Err(DataError::new(format!("{} line {line} column `{column}`", path.display()), problem))
        }
        _ => Ok(Keys::Text(TextTable::new(columns.len(), cells))),
    }
}

/// The cells of the named columns, row by row, and the line where each row begins.
pub fn read_columns(path: &Path, columns: &[String]) -> Result<(Vec<String>, Vec<u64>), DataError> {
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return Err(DataError::new(
            path.display(),
            "is a Parquet file; this build reads CSV (convert it, as with duckdb or pandas)",
        ));
    }
    let (path, reader) = open(&Folders::default(), &path.display().to_string(), "file")?;
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(reader);
    let unreadable =
        |error: csv::Error| DataError::new(path.display(), format!("cannot be read: {}", why(&error)));
    let header = reader.byte_headers().map_err(unreadable)?.clone();
    let header = header_names(&path, &header)?;
    let places = columns.iter().map(|name| position(&path, &header, name)).collect::<Result<Vec<_>, _>>()?;
    let (mut cells, mut lines) = (Vec::new(), Vec::new());
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(unreadable)? {
        let line = record.position().map_or(lines.len() as u64 + 2, csv::Position::line);
        if record.len() != header.len() {
            let problem = format!("has {} cells; the header has {}", record.len(), header.len());
            return Err(DataError::new(format!("{} line {line}", path.display()), problem));
        }
        for &place in &places {
            cells.push(text_cell(&path, line, &header[place], &record[place])?);
        }
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(DataError::new(path.display(), "has no rows below its header; both sides need records"));
    }
    Ok((cells, lines))
}

/// The names of the columns of a table.
pub fn read_header(path: &Path) -> Result<Vec<String>, DataError> {
    let (path, reader) = open(&Folders::default(), &path.display().to_string(), "file")?;
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(reader);
    let header = reader
        .byte_headers()
        .map_err(|error| DataError::new(path.display(), format!("cannot be read: {}", why(&error))))?
        .clone();
    header_names(&path, &header)
}

fn header_names(path: &Path, header: &ByteRecord) -> Result<Vec<String>, DataError> {
    let bad = |problem: String| Err(DataError::new(format!("{} line 1", path.display()), problem));
    if header.is_empty() || (header.len() == 1 && header[0].is_empty()) {
        return Err(DataError::new(path.display(), "is empty; a header line with column names is expected"));
    }
    let mut names: Vec<String> = Vec::with_capacity(header.len());
    for (index, name) in header.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(name) else {
            return bad(format!("the name of column {} is not valid UTF-8", index + 1));
        };
        let name = name.trim_start_matches('\u{feff}').trim().to_string();
        if names.contains(&name) {
            return bad(format!("two columns are called `{name}`"));
        }
        names.push(name);
    }
    Ok(names)
}

fn position(path: &Path, names: &[String], name: &str) -> Result<usize, DataError> {
    names.iter().position(|known| known == name).ok_or_else(|| {
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        DataError::new(path.display(), format!("has no column `{name}`{hint}"))
    })
}

fn bad_cell(path: &Path, line: u64, column: &str, cell: &[u8], number: Option<f64>) -> DataError {
    let shown = String::from_utf8_lossy(cell);
    let problem = match number {
        Some(_) => format!("must be a finite number; it is {shown}"),
        None if cell.is_empty() => "must be a number; the cell is empty".to_string(),
        None => format!("must be a number; it is \"{shown}\" (a column of text belongs in `drop`)"),
    };
    DataError::new(format!("{} line {line} column `{column}`", path.display()), problem)
}

/// The cause of a CSV error, without the useless byte offsets.
fn why(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(io) => format!("{io} (is the file complete?)"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(text: &[u8], name: &str, drop: &[&str]) -> Result<NumberTable, DataError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(name), text).expect("writable");
        let drop: Vec<String> = drop.iter().map(|name| name.to_string()).collect();
        NumberTable::read(&folder.path().into(), name, "file", &drop, &[])
    }

    #[test]
    fn a_table_is_read_and_taken_apart() {
        let text = b"\xef\xbb\xbfa,\"b c\",t,y\n1, 2.5 ,text,0.1\n-3,4e2,\"more, text\",103.84567890123\n";
        let mut table = read(text, "t.csv", &["t"]).expect("a good table");
        let taken = table.take(&["y".to_string(), "a".to_string()]).expect("its columns");
        assert_eq!(taken.values(), [0.1, 1.0, 103.845_678_901_23, -3.0]);
        assert_eq!(table.features().expect("a column is left").values(), [2.5, 400.0]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let check = |text: &[u8], parts: &[&str]| {
            let error = read(text, "t.csv", &[]).expect_err("refused").to_string();
            for part in parts {
                assert!(error.contains(part), "\"{part}\" in {error}");
            }
        };
        check(b"", &["t.csv", "is empty"]);
        check(b"a,b\n", &["t.csv", "no rows"]);
        check(b"a,b\n1,2\n1\n", &["line 3", "has 1 cells; the header has 2"]);
        check(b"a,b\n1,2\n1,2,3\n", &["line 3", "has 3 cells"]);
        check(b"a,b\n1,x\n", &["line 2 column `b`", "\"x\"", "`drop`"]);
        check(b"a,b\n1,\n", &["line 2 column `b`", "empty"]);
        check(b"a,b\n1,2\nNaN,2\n", &["line 3 column `a`", "finite", "NaN"]);
        check(b"a,b\n1,-inf\n", &["line 2 column `b`", "finite", "-inf"]);
        check(b"a,b,a\n1,2,3\n", &["line 1", "two columns are called `a`"]);
        check(b"a,\xff\n1,2\n", &["line 1", "column 2 is not valid UTF-8"]);
        let missing = read(b"price,b\n1,2\n", "t.csv", &["prise"]).expect_err("refused").to_string();
        assert!(missing.contains("no column `prise`; did you mean \"price\"?"), "{missing}");
    }

    #[test]
    fn keys_are_texts_or_numbers_as_the_linker_wants_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.csv");
        let keys = |text: &[u8], columns: &[&str], kind| {
            std::fs::write(&path, text).expect("writable");
            read_keys(&path, &columns.iter().map(|name| name.to_string()).collect::<Vec<_>>(), kind)
        };
        let table = b"id, name ,x\n1,\"Smith, Ann\",0.5\n2, ,7\n";
        let text = keys(table, &["name"], KeyKind::Text).expect("texts");
        assert_eq!(text.text().expect("texts").cells(), ["Smith, Ann", ""]);
        let numbers = keys(table, &["x", "id"], KeyKind::Numbers).expect("numbers");
        assert_eq!(numbers.numbers().expect("numbers").values(), [0.5, 1.0, 7.0, 2.0]);
        assert!(keys(table, &["x"], KeyKind::Either).expect("either").numbers().is_some());
        assert!(keys(table, &["x", "name"], KeyKind::Either).expect("either").text().is_some());
        let refused = |text: &[u8], columns: &[&str], kind, parts: &[&str]| {
            let error = keys(text, columns, kind).expect_err("refused").to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        refused(table, &["nam"], KeyKind::Text, &["no column `nam`", "did you mean \"name\""]);
        refused(table, &["name"], KeyKind::Numbers, &["line 2 column `name`", "Smith, Ann", "\"clk\""]);
        refused(b"x\n1\ninf\n", &["x"], KeyKind::Numbers, &["line 3 column `x`", "inf"]);
        refused(b"a,b\nx,\xff\n", &["b"], KeyKind::Text, &["line 2 column `b`", "UTF-8", "byte 1"]);
        refused(b"a,b\n", &["b"], KeyKind::Text, &["no rows", "both sides"]);
        refused(b"a,b\n1,2\n3\n", &["b"], KeyKind::Text, &["line 3", "1 cells"]);
    }

    #[test]
    fn gzip_is_decompressed_and_a_cut_file_is_noticed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let rows: String = (0..5_000).map(|i| format!("{i},{}\n", i * i % 977)).collect();
        encoder.write_all(format!("a,b\n{rows}").as_bytes()).expect("in memory");
        let whole = encoder.finish().expect("in memory");
        assert_eq!(read(&whole, "t.csv.gz", &[]).expect("a good table").values.len(), 10_000);
        let cut = read(&whole[..whole.len() / 2], "t.csv.gz", &[]).expect_err("refused").to_string();
        assert!(cut.contains("is the file complete?"), "{cut}");
    }
}
