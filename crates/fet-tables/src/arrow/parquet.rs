//! Parquet reader. It decodes the columns in parallel, so that even a wide file needs only the memory of its
//! table and a few pages.

use std::path::Path;

use arrow_array::RecordBatchReader as _;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;
use rayon::prelude::*;

use super::column::ArrowColumn;
use super::{columns, damaged, guarded, table};
use crate::error::TableError;
use crate::options::Options;
use crate::table::Table;

/// Number of rows that are decoded at a time.
const BATCH: usize = 8192;

/// Location of a Parquet file.
pub(crate) enum Source<'a> {
    Path(&'a Path),
    Bytes(Bytes),
}

/// Reads a Parquet file.
pub(crate) fn read_parquet(source: &Source<'_>, file: &str, options: &Options) -> Result<Table, TableError> {
    guarded(file, || match source {
        Source::Path(path) => read(|| fet_io::open(path), file, options),
        Source::Bytes(bytes) => read(|| Ok(bytes.clone()), file, options),
    })
}

/// Reads the file. Each call of `open` must return a reader with an independent position.
fn read<R: ChunkReader + 'static>(
    open: impl Fn() -> std::io::Result<R> + Sync,
    file: &str,
    options: &Options,
) -> Result<Table, TableError> {
    let unreadable = |error: std::io::Error| TableError::file(file, format!("cannot be read: {error}"));
    let metadata = ArrowReaderMetadata::load(&open().map_err(unreadable)?, ArrowReaderOptions::new())
        .map_err(|error| damaged(file, error))?;
    let filled: Vec<Result<ArrowColumn<'_>, TableError>> = columns(metadata.schema(), file, options)?
        .into_par_iter()
        .map(|(at, mut column)| {
            let mask = ProjectionMask::roots(metadata.parquet_schema(), [at]);
            let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(
                open().map_err(unreadable)?,
                metadata.clone(),
            )
            .with_projection(mask)
            .with_batch_size(BATCH)
            .build()
            .map_err(|error| damaged(file, error))?;
            if batches.schema().fields().len() != 1 {
                return Err(damaged(file, "its two schemas differ"));
            }
            for batch in batches {
                let batch = batch.map_err(|error| damaged(file, error))?;
                column.push(&**batch.column(0))?;
            }
            Ok(column)
        })
        .collect();
    table(filled.into_iter().collect::<Result<_, _>>()?, file, options)
}
