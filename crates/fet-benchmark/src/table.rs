//! CSV tables in memory.

use csv::StringRecord;

use crate::error::BenchmarkError;

/// Table with named columns. Cells are texts, as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// Name of the file or member, for messages.
    place: String,
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// Rows.
    pub(crate) rows: Vec<StringRecord>,
}

impl Table {
    /// Makes a table without rows.
    pub(crate) fn new<'a>(file: &str, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let columns = columns.into_iter().map(String::from).collect();
        Self { place: file.into(), columns, rows: Vec::new() }
    }

    /// Reads a table with a header. Bytes that are not UTF-8 become replacement characters.
    pub(crate) fn read(place: &str, bytes: &[u8]) -> Result<Self, BenchmarkError> {
        let failed = |error: csv::Error| BenchmarkError::Content {
            place: place.into(),
            problem: format!("this is not a CSV table ({error})"),
        };
        let mut reader = csv::ReaderBuilder::new().from_reader(bytes);
        let text = |record: &csv::ByteRecord| -> StringRecord {
            record.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_string()).collect()
        };
        let header = text(reader.byte_headers().map_err(failed)?);
        let columns = header.iter().map(|name| name.trim_start_matches('\u{feff}').to_string()).collect();
        let rows = reader.byte_records().map(|row| row.map(|row| text(&row)).map_err(failed));
        Ok(Self { place: place.into(), columns, rows: rows.collect::<Result<_, _>>()? })
    }

    /// Returns the name of the file.
    pub(crate) fn file(&self) -> &str {
        &self.place
    }

    /// Returns the position of a column.
    pub(crate) fn column(&self, name: &str) -> Result<usize, BenchmarkError> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| BenchmarkError::Content {
            place: self.place.clone(),
            problem: format!("the table lacks the column `{name}`"),
        })
    }

    /// Returns the positions of several columns.
    pub(crate) fn positions<const N: usize>(&self, names: [&str; N]) -> Result<[usize; N], BenchmarkError> {
        let mut found = [0; N];
        for (position, name) in found.iter_mut().zip(names) {
            *position = self.column(name)?;
        }
        Ok(found)
    }

    /// Returns the number in a cell.
    pub(crate) fn number(&self, row: &StringRecord, column: usize) -> Result<f64, BenchmarkError> {
        row[column].parse().map_err(|_| BenchmarkError::Content {
            place: self.place.clone(),
            problem: format!(
                "column `{}` has a cell that is not a number: {:?}",
                self.columns[column], &row[column]
            ),
        })
    }

    /// Appends a row.
    pub(crate) fn push<T: AsRef<[u8]>>(&mut self, cells: impl IntoIterator<Item = T>)
    where
        StringRecord: FromIterator<T>,
    {
        let row: StringRecord = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.place);
        self.rows.push(row);
    }

    /// Returns a copy with another file name and with its rows in this order.
    pub(crate) fn picked(&self, file: &str, order: &[usize]) -> Self {
        let rows = order.iter().map(|&row| self.rows[row].clone()).collect();
        Self { place: file.into(), columns: self.columns.clone(), rows }
    }

    /// Returns the table as CSV with line feeds.
    pub(crate) fn to_csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let columns = std::iter::once(self.columns.iter().collect::<StringRecord>());
        for row in columns.chain(self.rows.iter().cloned()) {
            writer.write_record(&row).expect("all rows have one length, and memory takes all bytes");
        }
        writer.into_inner().expect("memory takes all bytes")
    }
}

/// Returns a cell, or an empty one for marks of a missing value.
pub(crate) fn present(cell: &str) -> &str {
    if matches!(cell, "NA" | "?" | "") { "" } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_survive_a_round_trip_and_name_missing_columns() {
        let table =
            Table::read("t.csv", b"\xef\xbb\xbfa,b\r\n1,\"x, y\"\r\n2,caf\xe9\r\n").expect("readable");
        assert_eq!(table.to_csv(), "a,b\n1,\"x, y\"\n2,caf\u{fffd}\n".as_bytes());
        assert_eq!(
            table.column("c").expect_err("absent").to_string(),
            "t.csv: the table lacks the column `c`"
        );
        let error = table.number(&table.rows[0], 1).expect_err("no number").to_string();
        assert!(error.contains("column `b`"), "{error}");
        Table::read("t.csv", b"a,b\n1\n").expect_err("a short row");
    }
}
