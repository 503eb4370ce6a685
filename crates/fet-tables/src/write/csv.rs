//! Writes cells with a delimiter, in quotes where necessary.

use std::io::{self, Write};

use csv::{ByteRecord, WriterBuilder};

use crate::date;
use crate::number;
use crate::table::{MISSING_DATE, Table, Values};

pub(super) fn write(out: impl Write, table: &Table, delimiter: u8) -> io::Result<()> {
    let mut writer = WriterBuilder::new().delimiter(delimiter).from_writer(out);
    writer.write_record(table.columns.iter().map(|column| column.name.as_bytes()))?;
    let mut record = ByteRecord::new();
    for row in 0..table.rows {
        record.clear();
        for column in &table.columns {
            match &column.values {
                Values::Number(values) if values[row].is_nan() => record.push_field(b""),
                Values::Number(values) => record.push_field(number::text(values[row]).as_bytes()),
                Values::Date(values) if values[row] == MISSING_DATE => record.push_field(b""),
                Values::Date(values) => record.push_field(date::text(values[row]).as_bytes()),
                Values::Category { codes, names } => {
                    record.push_field(names.get(codes[row] as usize).map_or(b"", |name| name.as_bytes()));
                }
                Values::Text(texts) => record.push_field(texts.get(row).unwrap_or_default().as_bytes()),
            }
        }
        writer.write_byte_record(&record)?;
    }
    writer.flush()
}
