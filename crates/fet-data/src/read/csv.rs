//! Tables of numbers in CSV: a header, then one row per record.
//!
//! Every cell is parsed once, in double precision. The first thing that is wrong stops the reader, with its
//! line and column.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};
use fet_core::data::{DataError, Matrix};
use fet_core::registry::did_you_mean;

use super::open;

/// A table that was read: numbers by column name, the dropped columns left out.
#[derive(Debug)]
pub(crate) struct NumberTable {
    path: PathBuf,
    names: Vec<String>,
    /// Row by row.
    values: Vec<f64>,
}

impl NumberTable {
    /// Reads `file` without the columns `drop`. `setting` is where the experiment names the file.
    pub(crate) fn read(folder: &Path, file: &str, setting: &str, drop: &[String]) -> Result<Self, DataError> {
        let (path, reader) = open(folder, file, setting)?;
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(reader);
        let unreadable =
            |error: csv::Error| DataError::new(path.display(), format!("cannot be read: {}", why(&error)));
        let header = reader.byte_headers().map_err(unreadable)?.clone();
        let header = header_names(&path, &header)?;
        let dropped =
            drop.iter().map(|name| position(&path, &header, name)).collect::<Result<HashSet<_>, _>>()?;
        let kept: Vec<usize> = (0..header.len()).filter(|column| !dropped.contains(column)).collect();
        let mut values = Vec::new();
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
        }
        if values.is_empty() {
            return Err(DataError::new(path.display(), "has no rows of numbers below its header"));
        }
        let names = kept.iter().map(|&column| header[column].clone()).collect();
        Ok(Self { path, names, values })
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

    /// What is left, as features.
    pub(crate) fn features(self) -> Result<Matrix<f32>, DataError> {
        if self.names.is_empty() {
            let problem = "has no column left for features, keys, label and dropped columns apart";
            return Err(DataError::new(self.path.display(), problem));
        }
        Ok(Matrix::new(self.names.len(), self.values.iter().map(|&x| x as f32).collect()))
    }

    /// Where data row `row` (from 0) stands, for a message. Rows that span lines are not counted.
    pub(crate) fn place(&self, row: usize, column: &str) -> String {
        format!("{} data row {} column `{column}`", self.path.display(), row + 1)
    }
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

/// What a CSV error comes from, without the byte offsets that help nobody.
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
        NumberTable::read(folder.path(), name, "file", &drop)
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
