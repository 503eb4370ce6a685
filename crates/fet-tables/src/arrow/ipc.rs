//! Arrow IPC: files (Feather version 2) and streams, batch by batch.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use rayon::prelude::*;

use super::{columns, damaged, guarded, table};
use crate::error::TableError;
use crate::options::Options;
use crate::table::Table;

/// Reads an Arrow file that is in memory.
pub(crate) fn read_file(bytes: &[u8], file: &str, options: &Options) -> Result<Table, TableError> {
    guarded(file, || {
        let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(|error| damaged(file, error))?;
        read(reader.schema(), reader, file, options)
    })
}

/// Reads an Arrow stream that is in memory.
pub(crate) fn read_stream(bytes: &[u8], file: &str, options: &Options) -> Result<Table, TableError> {
    guarded(file, || {
        let reader = StreamReader::try_new(bytes, None).map_err(|error| damaged(file, error))?;
        read(reader.schema(), reader, file, options)
    })
}

fn read(
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    file: &str,
    options: &Options,
) -> Result<Table, TableError> {
    let mut columns = columns(&schema, file, options)?;
    for batch in batches {
        let batch = batch.map_err(|error| damaged(file, error))?;
        let pushed: Vec<Result<(), TableError>> =
            columns.par_iter_mut().map(|(at, column)| column.push(&**batch.column(*at))).collect();
        pushed.into_iter().collect::<Result<(), _>>()?;
    }
    table(columns.into_iter().map(|(_, column)| column).collect(), file, options)
}
