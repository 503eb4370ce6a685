//! Parquet and Arrow. Without checksums, a reader cannot detect a changed value. An accepted
//! input must give a consistent table.

use fet_tables::{Column, MISSING_CODE, Options, Table, Values};

use crate::fuzz::contract::{ReaderOutcome, outcome};

fn table() -> Table {
    let column = |name: &str, values: Values| Column { name: name.to_string(), values };
    let names = ["x", "y"].map(String::from).to_vec();
    Table::new(vec![
        column("number", Values::Number(vec![1.5, f64::NAN, -3.0, 1e300])),
        column("kind", Values::Category { codes: vec![0, 1, MISSING_CODE, 1], names }),
        column("when", Values::Date(vec![0, 86_400_000_000, 5, 1_700_000_000_000_000])),
    ])
    .expect("as many rows")
}

fn written(ending: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("table.{ending}"));
    fet_tables::write(&path, &table()).expect("written");
    vec![std::fs::read(path).expect("written")]
}

pub(super) fn parquet() -> Vec<Vec<u8>> {
    written("parquet")
}

/// Returns a file, and the stream inside the file.
pub(super) fn arrow() -> Vec<Vec<u8>> {
    let mut files = written("arrow");
    files.push(files[0][8..].to_vec());
    files
}

pub(super) fn read(bytes: &[u8]) -> ReaderOutcome {
    let read = fet_tables::read_from(bytes, None, &Options { keep_empty: true, ..Options::default() });
    outcome(read.map(|table| {
        table.columns.iter().find_map(|column| {
            let sound = match &column.values {
                Values::Number(numbers) => numbers.iter().all(|number| !number.is_infinite()),
                Values::Category { codes, names } => codes.iter().all(|&code| {
                    code == MISSING_CODE || names.get(code as usize).is_some_and(|name| !name.is_empty())
                }),
                Values::Date(_) | Values::Text(_) => true,
            };
            let rows = column.values.len();
            (!sound || rows != table.rows)
                .then(|| format!("`{}` has {rows} of {} rows", column.name, table.rows))
        })
    }))
}
