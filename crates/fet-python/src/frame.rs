//! Tables between Python and files: any frame with the Arrow PyCapsule interface becomes an Arrow stream, and a table of the
//! program becomes a [`Frame`] with the same interface.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use fet_io::input::input;
use fet_tables::{Column, Kind, MISSING_DATE, Options, Table, Values};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{InputError, raised};

/// Name of a capsule with an Arrow stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Name of a key column in the frame, and in the written table.
type Key = (String, String);

/// Labels of a frame's rows.
#[derive(FromPyObject)]
pub(crate) enum Labels {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Names of classes.
    Names(Vec<String>),
}

impl Labels {
    fn array(self) -> ArrayRef {
        match self {
            Self::Numbers(numbers) => Arc::new(Float64Array::from(numbers)),
            Self::Names(names) => Arc::new(LargeStringArray::from(names)),
        }
    }
}

/// Writes a frame to a file as an Arrow stream, and returns the names of its columns.
///
/// `keys` are its key columns, with their new names. `label` is the name and the cells of another column. If `complete`, a key
/// column of numbers must have a number in every row.
///
/// # Errors
/// Fails with `fet.InputError` for an object other than a frame, for missing keys, and for a file that cannot be written.
#[pyfunction]
#[pyo3(signature = (frame, path, keys, label=None, complete=true))]
pub(crate) fn write_table(
    frame: &Bound<'_, PyAny>,
    path: PathBuf,
    keys: Vec<(String, String)>,
    label: Option<(String, Labels)>,
    complete: bool,
) -> PyResult<Vec<String>> {
    let stream = stream(frame)?;
    let complete = if complete { keys.as_slice() } else { &[] };
    write(stream, &path, (&keys, complete), label.map(|(name, labels)| (name, labels.array())))
        .map_err(|error| raised(&error))
}

/// Refuses key columns that the frame lacks.
fn check_keys(schema: &Schema, keys: &[Key]) -> anyhow::Result<()> {
    let has = |key: &&Key| schema.fields().iter().any(|field| *field.name() == key.0);
    match keys.iter().find(|key| !has(key)) {
        Some((key, _)) => {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Err(input(format!(
                "the frame lacks the key column `{key}`; its columns are {}",
                names.join(", ")
            )))
        }
        None => Ok(()),
    }
}

/// Returns the number of missing cells of a column of numbers; 0 for other columns. NaN is a missing cell.
fn missing_numbers(column: &ArrayRef) -> usize {
    if !column.data_type().is_numeric() {
        return 0;
    }
    let nan = match column.data_type() {
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().flatten().filter(|x| x.is_nan()).count()
        }
        DataType::Float32 => {
            column.as_primitive::<Float32Type>().iter().flatten().filter(|x| x.is_nan()).count()
        }
        _ => 0,
    };
    column.logical_null_count() + nan
}

/// Takes the Arrow stream out of a frame.
fn stream(frame: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !frame.hasattr("__arrow_c_stream__")? {
        return Err(raised(&input(format!(
            "a table must be a frame of pandas (2.2 or later), Polars, pyarrow or DuckDB, or the path of a file; it is a {}. In a \
             pipeline, `set_output(transform=\"pandas\")` makes a step return a frame.",
            frame.get_type().qualname()?
        ))));
    }
    // Each library has its own exceptions for cells or names that Arrow cannot hold.
    let capsule = frame.call_method0("__arrow_c_stream__").map_err(|error| {
        let is_ours = error.is_instance_of::<InputError>(frame.py());
        if is_ours { error } else { raised(&input(format!("the frame cannot be an Arrow table: {error}"))) }
    })?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    #[expect(
        unsafe_code,
        reason = "the interface guarantees that a capsule of this name holds a stream; reading moves it out of the capsule"
    )]
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| raised(&input(format!("the Arrow stream of the frame cannot be read: {error}"))))
}

fn write(
    stream: RecordBatchStreamReader,
    path: &Path,
    (keys, complete): (&[Key], &[Key]),
    label: Option<(String, ArrayRef)>,
) -> anyhow::Result<Vec<String>> {
    let given = stream.schema();
    check_keys(&given, keys)?;
    let rename: BTreeMap<&str, &str> = keys.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    let index = index_of_pandas(&given);
    let kept: Vec<usize> =
        (0..given.fields().len()).filter(|at| !index.contains(given.field(*at).name())).collect();
    let renamed = |field: &Field| match rename.get(field.name().as_str()) {
        Some(name) => field.clone().with_name(*name),
        None => field.clone(),
    };
    let mut fields: Vec<Field> = kept.iter().map(|at| renamed(given.field(*at))).collect();
    if let Some((name, cells)) = &label {
        if fields.iter().any(|field| field.name() == name) {
            return Err(input(format!("the frame has a column `{name}`, like the label; rename the column")));
        }
        fields.push(Field::new(name, cells.data_type().clone(), true));
    }
    let names = fields.iter().map(|field| field.name().clone()).collect();
    let schema = Arc::new(Schema::new(fields));
    let refuse = |error: std::io::Error| input(format!("{} cannot be written: {error}", path.display()));
    let mut writer = StreamWriter::try_new(BufWriter::new(File::create(path).map_err(refuse)?), &schema)?;
    let mut rows = 0;
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for batch in stream {
        let batch = batch?;
        for (key, _) in complete {
            let cells = batch.column_by_name(key).map_or(0, missing_numbers);
            *missing.entry(key).or_default() += cells;
        }
        let mut columns: Vec<ArrayRef> = kept.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        if let Some((_, cells)) = &label {
            let length = batch.num_rows().min(cells.len().saturating_sub(rows));
            check_labels(rows + batch.num_rows(), cells.len(), length == batch.num_rows())?;
            columns.push(cells.slice(rows, length));
        }
        rows += batch.num_rows();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    if let Some((_, cells)) = &label {
        check_labels(rows, cells.len(), rows == cells.len())?;
    }
    if let Some((key, count)) = missing.into_iter().find(|(_, count)| *count > 0) {
        return Err(input(format!(
            "key column `{key}`: {count} of {rows} rows have no number, so that they have no place among the others. Drop these \
             rows, or fill the cells"
        )));
    }
    writer.into_inner()?.flush().map_err(refuse)?;
    Ok(names)
}

/// Refuses labels that are not one for each row.
fn check_labels(rows: usize, labels: usize, fit: bool) -> anyhow::Result<()> {
    if fit { Ok(()) } else { Err(input(format!("{labels} labels do not fit a table of {rows} rows"))) }
}

/// Returns the columns that hold the index of a pandas frame, which pandas does not list among its columns.
fn index_of_pandas(schema: &Schema) -> HashSet<String> {
    let described = schema.metadata().get("pandas").and_then(|text| serde_json::from_str(text).ok());
    let described: serde_json::Value = described.unwrap_or_default();
    let columns = described.get("index_columns").and_then(serde_json::Value::as_array);
    columns.into_iter().flatten().filter_map(|name| name.as_str().map(String::from)).collect()
}

/// Reads a table from a file of any supported format. The columns `texts` are read as text.
#[pyfunction]
pub(crate) fn read_frame(py: Python<'_>, path: PathBuf, texts: Vec<String>) -> PyResult<Frame> {
    let kinds = texts.into_iter().map(|name| (name, Kind::Text)).collect();
    let options = Options { kinds, keep_empty: true, ..Options::default() };
    let table = py.detach(|| fet_tables::read(&path, &options)).map_err(|error| raised(&input(error)))?;
    Ok(Frame { table })
}

/// Returns a table without rows.
#[pyfunction]
pub(crate) fn empty_frame(columns: Vec<String>) -> Frame {
    let columns =
        columns.into_iter().map(|name| Column { name, values: Values::Number(Vec::new()) }).collect();
    Frame { table: Table { columns, ..Table::default() } }
}

/// Columns of results that hold whole numbers: rows, ranks, seeds and epochs.
const WHOLE: [&str; 7] = ["row", "primary_row", "secondary_row", "rank", "seed", "epoch", "best_epoch"];

/// Returns a batch whose columns of [`WHOLE`] numbers are integers.
fn with_integers(batch: &RecordBatch) -> RecordBatch {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let numbers =
            column.as_primitive_opt::<Float64Type>().filter(|_| WHOLE.contains(&field.name().as_str()));
        match numbers {
            Some(numbers) => {
                let whole = numbers
                    .iter()
                    .map(|number| number.filter(|number| !number.is_nan()).map(|number| number as i64));
                columns.push(Arc::new(whole.collect::<Int64Array>()));
                fields.push(Arc::new(Field::new(field.name(), DataType::Int64, true)));
            }
            None => {
                columns.push(Arc::clone(column));
                fields.push(Arc::clone(field));
            }
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .expect("the columns have the length of the batch")
}

/// Table of results. Every library that reads Arrow takes it: `pandas.DataFrame.from_arrow(frame)`, `polars.DataFrame(frame)`,
/// `pyarrow.table(frame)`.
#[pyclass(frozen, module = "fet")]
pub(crate) struct Frame {
    table: Table,
}

#[pymethods]
impl Frame {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.table.columns.iter().map(|column| column.name.clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.table.rows
    }

    /// Returns the cells of a column: numbers (NaN if missing), texts, or points in time as microseconds since 1970 UTC.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let found = self.table.columns.iter().find(|column| column.name == name);
        let column = found.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(name.to_string()))?;
        match &column.values {
            Values::Number(numbers)
                if WHOLE.contains(&name) && !numbers.iter().any(|number| number.is_nan()) =>
            {
                numbers.iter().map(|number| *number as i64).collect::<Vec<_>>().into_py_any(py)
            }
            Values::Number(numbers) => numbers.clone().into_py_any(py),
            Values::Date(points) => {
                let points = points.iter().map(|at| (*at != MISSING_DATE).then_some(*at));
                points.collect::<Vec<_>>().into_py_any(py)
            }
            Values::Category { codes, names } => {
                codes.iter().map(|code| names.get(*code as usize)).collect::<Vec<_>>().into_py_any(py)
            }
            Values::Text(texts) => {
                (0..self.table.rows).map(|row| texts.get(row)).collect::<Vec<_>>().into_py_any(py)
            }
        }
    }

    /// Returns the table as a pandas frame; needs pandas and pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method0("to_pandas")
    }

    fn __repr__(&self) -> String {
        format!("<fet.Frame: {} rows, columns {}>", self.table.rows, self.columns().join(", "))
    }

    /// Returns the table as an Arrow stream; the table decides on the types.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let bytes = fet_tables::arrow_bytes(&self.table).map_err(|error| raised(&error.into()))?;
        let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(|error| raised(&error.into()))?;
        let batches =
            reader.map(|batch| batch.map(|batch| with_integers(&batch))).collect::<Result<Vec<_>, _>>();
        let batches = batches.map_err(|error| raised(&error.into()))?;
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}
