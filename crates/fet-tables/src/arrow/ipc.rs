//! Arrow IPC: files (Feather version 2) and streams, batch by batch.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::{ArrowError, SchemaRef};
use rayon::prelude::*;

use super::{columns, damaged, guarded, table};
use crate::error::TableError;
use crate::options::Options;
use crate::table::Table;

/// Reads an Arrow file from memory.
pub(crate) fn read_file(bytes: &[u8], file: &str, options: &Options) -> Result<Table, TableError> {
    guarded(file, || {
        if !is_within(bytes) {
            return Err(damaged(file, "its footer points outside the file"));
        }
        let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(|error| damaged(file, error))?;
        read(reader.schema(), reader, file, options)
    })
}

/// Returns true if every block named in the file's footer lies within the file. The check is necessary
/// because the reader allocates as much memory as the footer says.
fn is_within(bytes: &[u8]) -> bool {
    let Some((rest, [a, b, c, d, magic @ ..])) = bytes.split_last_chunk::<10>() else { return false };
    let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    if magic != b"ARROW1" || length > rest.len() {
        return false;
    }
    let Ok(footer) = root_as_footer(&rest[rest.len() - length..]) else { return false };
    let fits = |block: &Block| {
        let sizes = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let sizes: Option<Vec<u64>> = sizes.into_iter().map(|size| u64::try_from(size).ok()).collect();
        let end = sizes.and_then(|sizes| sizes.into_iter().try_fold(0u64, u64::checked_add));
        end.is_some_and(|end| end <= bytes.len() as u64)
    };
    [footer.dictionaries(), footer.recordBatches()]
        .into_iter()
        .flatten()
        .all(|blocks| blocks.iter().all(fits))
}

/// Reads an Arrow stream from memory.
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
