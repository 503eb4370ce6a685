//! Converts a table to Arrow batches, and writes them as Parquet or Arrow. Categories become dictionaries, so
//! that they are read back as categories whatever their number.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, LargeStringArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::table::{MISSING_CODE, MISSING_DATE, Table, Values};

/// Number of rows in a batch.
const BATCH: usize = 1 << 16;

/// Returns the bytes of a Parquet file.
pub(super) fn parquet(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
    let schema = Arc::new(schema(table));
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?;
    for batch in batches(table, &schema) {
        writer.write(&batch?)?;
    }
    writer.into_inner()
}

/// Returns the bytes of an Arrow file.
pub(super) fn arrow(table: &Table) -> Result<Vec<u8>, ArrowError> {
    let schema = Arc::new(schema(table));
    let mut writer = FileWriter::try_new(Vec::new(), &schema)?;
    for batch in batches(table, &schema) {
        writer.write(&batch?)?;
    }
    writer.into_inner()
}

fn schema(table: &Table) -> Schema {
    let fields = table.columns.iter().map(|column| {
        let data_type = match &column.values {
            Values::Number(_) => DataType::Float64,
            Values::Date(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Values::Category { .. } => {
                DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
            }
            Values::Text(_) => DataType::LargeUtf8,
        };
        Field::new(&column.name, data_type, true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn batches<'a>(
    table: &'a Table,
    schema: &'a Arc<Schema>,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'a {
    let dictionaries: Vec<ArrayRef> = table
        .columns
        .iter()
        .map(|column| match &column.values {
            Values::Category { names, .. } => Arc::new(StringArray::from_iter_values(names)) as ArrayRef,
            _ => Arc::new(StringArray::new_null(0)) as ArrayRef,
        })
        .collect();
    (0..table.rows).step_by(BATCH).map(move |start| {
        let rows = start..(start + BATCH).min(table.rows);
        let arrays = table.columns.iter().zip(&dictionaries);
        let arrays = arrays.map(|(column, names)| array(&column.values, names, rows.clone()));
        RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<_, _>>()?)
    })
}

fn array(values: &Values, dictionary: &ArrayRef, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
    Ok(match values {
        Values::Number(values) => {
            let cells = values[rows].iter().map(|value| (!value.is_nan()).then_some(*value));
            Arc::new(cells.collect::<Float64Array>())
        }
        Values::Date(values) => {
            let cells = values[rows].iter().map(|value| (*value != MISSING_DATE).then_some(*value));
            Arc::new(cells.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        Values::Category { codes, .. } => {
            let keys = codes[rows].iter().map(|code| (*code != MISSING_CODE).then_some(*code));
            let keys: UInt32Array = keys.collect();
            Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(dictionary))?)
        }
        Values::Text(texts) => Arc::new(rows.map(|row| texts.get(row)).collect::<LargeStringArray>()),
    })
}
