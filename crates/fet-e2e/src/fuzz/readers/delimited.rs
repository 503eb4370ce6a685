//! CSV, compared with a second, independent parser of the same dialect, byte by byte.

use std::io::Write;

use fet_tables::{Format, MISSING_CODE, MISSING_DATE, Options, Table, Values};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::fuzz::contract::{ReaderOutcome, outcome};

/// Marks of a missing cell.
const MISSING: [&str; 7] = ["", "na", "n/a", "nan", "null", "none", "?"];

pub(super) fn tables() -> Vec<Vec<u8>> {
    let plain = [
        "lon,lat,name\n1.5,-2e3,a\n2,0.25,b\n3,,\n4,4,\"d \"\"x\"\", y\"\n",
        "id;when;kind\r\n1;2024-01-31;x\r\n2;2023-12-01;y\r\n3;NA;x\r\n",
        "a,b\n\"line\nbreak\",1\n\"\",2\nz,3\n",
        "when,postcode,amount\n2024-01-31T10:00:00Z,01307,1e308\n2024-02-29 23:59:59,80331,-0.0\n,null,?\n",
        "\u{feff}x\n1\n\n2\n",
        "n\u{e4}me,\u{e9}\nM\u{fc}ller,\u{930}\n\u{1f600},x\n",
    ];
    let mut all: Vec<Vec<u8>> = plain.map(|text| text.as_bytes().to_vec()).to_vec();
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&all[0]).expect("into memory");
    all.push(gz.finish().expect("into memory"));
    all
}

pub(super) fn read(bytes: &[u8]) -> ReaderOutcome {
    let options = Options { delimiter: Some(b','), ..Options::default() };
    outcome(fet_tables::read_from(bytes, Some(Format::Csv), &options).map(|table| wrong(bytes, &table)))
}

/// Returns the first difference of the table from these bytes. Skips compressed bytes, which have a checksum.
fn wrong(bytes: &[u8], table: &Table) -> Option<String> {
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return None;
    }
    let text = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let Some(records) = records(text) else { return Some("a quote is never closed".into()) };
    let Some((header, rows)) = records.split_first() else { return Some("there are no records".into()) };
    if rows.len() != table.rows || header.len() != table.columns.len() {
        let [rows, columns] = [rows.len(), header.len()];
        return Some(format!(
            "{rows} rows of {columns} cells became {} of {}",
            table.rows,
            table.columns.len()
        ));
    }
    for (number, row) in rows.iter().enumerate() {
        if row.len() != header.len() {
            return Some(format!("row {number} has {} cells", row.len()));
        }
        for (cell, column) in row.iter().zip(&table.columns) {
            let Ok(cell) = std::str::from_utf8(cell) else {
                return Some(format!("row {number} is not UTF-8"));
            };
            if !is(cell.trim(), &column.values, number) {
                return Some(format!("row {number}, `{}`: {cell:?} became {:?}", column.name, column.values));
            }
        }
    }
    None
}

fn is(cell: &str, values: &Values, row: usize) -> bool {
    let missing = MISSING.contains(&cell.to_ascii_lowercase().as_str());
    match values {
        Values::Number(numbers) if missing => numbers[row].is_nan(),
        Values::Number(numbers) => cell.parse() == Ok(numbers[row]),
        Values::Category { codes, .. } if missing => codes[row] == MISSING_CODE,
        Values::Category { codes, names } => names.get(codes[row] as usize).is_some_and(|name| name == cell),
        Values::Date(dates) => (dates[row] == MISSING_DATE) == missing,
        Values::Text(texts) => texts.iter().nth(row).flatten() == Some(cell).filter(|_| !missing),
    }
}

/// Parses the cells of each record. Returns `None` if a quote is never closed. Skips blank lines.
fn records(text: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
    let (mut all, mut record, mut cell) = (Vec::new(), Vec::new(), Vec::new());
    // `any`: the record has any content. `open`: a quote is open. `begun`: the cell has begun.
    let (mut any, mut open, mut begun) = (false, false, false);
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        match byte {
            b'"' if open && text.get(at) == Some(&b'"') => {
                cell.push(b'"');
                at += 1;
            }
            b'"' if open => open = false,
            _ if open => cell.push(byte),
            b'"' if !begun => (any, open, begun) = (true, true, true),
            b',' => {
                record.push(std::mem::take(&mut cell));
                (any, begun) = (true, false);
            }
            b'\r' | b'\n' => {
                if any {
                    record.push(std::mem::take(&mut cell));
                    all.push(std::mem::take(&mut record));
                }
                (any, begun) = (false, false);
            }
            _ => {
                cell.push(byte);
                (any, begun) = (true, true);
            }
        }
    }
    if any {
        record.push(cell);
        all.push(record);
    }
    (!open).then_some(all)
}
