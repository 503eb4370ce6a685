//! Tests of Parquet and Arrow: the kinds of their types, and that a table stays the same in every format.

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use fet_tables::{
    Column, Kind, MISSING_CODE, MISSING_DATE, Options, Table, Texts, Values, arrow_bytes, read, read_from,
    write,
};
use parquet::arrow::ArrowWriter;

const DAY: i64 = 86_400_000_000;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("a good batch")
}

fn parquet_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), None).expect("a good schema");
    for batch in batches {
        writer.write(batch).expect("in memory");
        writer.flush().expect("in memory");
    }
    writer.into_inner().expect("in memory")
}

fn arrow_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).expect("a good schema");
    batches.iter().for_each(|batch| writer.write(batch).expect("in memory"));
    writer.into_inner().expect("in memory")
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("a good schema");
    batches.iter().for_each(|batch| writer.write(batch).expect("in memory"));
    writer.into_inner().expect("in memory")
}

/// Reads a column from Parquet, an Arrow file and an Arrow stream, which must agree. Returns its values, or
/// the error.
fn found(array: ArrayRef, kind: Option<&str>) -> Result<(Values, Vec<String>), String> {
    let batch = batch(vec![("a", array)]);
    let kinds = kind.map(|kind| ("a".to_string(), kind.parse::<Kind>().expect("a kind")));
    let options = Options { kinds: kinds.into_iter().collect(), ..Options::default() };
    let mut all: Vec<Result<(Values, Vec<String>), String>> = Vec::new();
    for bytes in [parquet_of, arrow_of, stream_of].map(|write| write(std::slice::from_ref(&batch))) {
        let table = read_from(bytes.as_slice(), None, &options);
        all.push(table.map_err(|error| error.to_string()).map(|mut table| {
            assert_eq!(table.rows, batch.num_rows());
            (table.columns.remove(0).values, table.notes)
        }));
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[1], all[2]);
    all.remove(0)
}

fn categories(names: &[&str], codes: &[u32]) -> Values {
    Values::Category { codes: codes.to_vec(), names: names.iter().map(ToString::to_string).collect() }
}

#[test]
fn types_become_kinds() {
    let check = |array: ArrayRef, kind: Option<&str>, expected: Values, note: Option<&str>| {
        let shown = format!("{:?} {kind:?}", array.data_type());
        let (values, notes) = found(array, kind).expect("a good column");
        assert_eq!(values, expected, "{shown}");
        let noted = note.is_none_or(|part| notes.iter().any(|note| note.contains(part)));
        assert!(noted && (note.is_some() || notes.is_empty()), "{shown}: {notes:?}");
    };
    let numbers = |values: &[f64]| Values::Number(values.to_vec());
    let nan = f64::NAN;
    check(Arc::new(Int8Array::from(vec![Some(-1), None])), None, numbers(&[-1.0, nan]), None);
    check(Arc::new(UInt16Array::from(vec![Some(7), None])), None, numbers(&[7.0, nan]), None);
    check(Arc::new(UInt32Array::from(vec![u32::MAX])), None, numbers(&[4_294_967_295.0]), None);
    check(
        Arc::new(Int64Array::from(vec![i64::MIN])),
        None,
        numbers(&[-9_223_372_036_854_775_808.0]),
        Some("2^53"),
    );
    check(Arc::new(UInt64Array::from(vec![(1 << 53) - 1])), None, numbers(&[9_007_199_254_740_991.0]), None);
    check(Arc::new(Float32Array::from(vec![0.5, f32::NAN])), None, numbers(&[0.5, nan]), None);
    check(Arc::new(Float64Array::from(vec![Some(0.1), None])), None, numbers(&[0.1, nan]), None);
    let decimal = |values: Vec<i128>, scale| {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).expect("in range"))
            as ArrayRef
    };
    check(decimal(vec![1234, -5], 3), None, numbers(&[1.234, -0.005]), None);
    check(decimal(vec![10_i128.pow(30) + 1], 30), None, numbers(&[1.0]), None);
    check(
        Arc::new(Date32Array::from(vec![Some(1), None])),
        None,
        Values::Date(vec![DAY, MISSING_DATE]),
        None,
    );
    check(Arc::new(TimestampMillisecondArray::from(vec![-1])), None, Values::Date(vec![-1000]), None);
    check(Arc::new(TimestampNanosecondArray::from(vec![1999])), None, Values::Date(vec![1]), Some("finer"));
    let zone = TimestampMicrosecondArray::from(vec![5]).with_timezone("+02:00");
    check(Arc::new(zone), None, Values::Date(vec![5]), None);
    let truth = BooleanArray::from(vec![Some(true), None, Some(false)]);
    check(Arc::new(truth), None, categories(&["false", "true"], &[1, MISSING_CODE, 0]), None);
    let strings = StringArray::from(vec![Some("b "), Some("NA"), None, Some("a")]);
    check(Arc::new(strings), None, categories(&["a", "b"], &[1, MISSING_CODE, MISSING_CODE, 0]), None);
    check(Arc::new(BinaryArray::from(vec![b"x".as_slice()])), None, categories(&["x"], &[0]), None);
    let dictionary: DictionaryArray<Int32Type> = [Some("y"), None, Some("x")].into_iter().collect();
    check(Arc::new(dictionary), None, categories(&["x", "y"], &[1, MISSING_CODE, 0]), None);
    let digits = || Arc::new(StringArray::from(vec!["1", "02"])) as ArrayRef;
    check(digits(), None, categories(&["02", "1"], &[1, 0]), Some("look like numbers"));
    check(digits(), Some("number"), numbers(&[1.0, 2.0]), None);
    check(digits(), Some("text"), Values::Text([Some("1"), Some("02")].into_iter().collect()), None);
    let days = || Arc::new(StringArray::from(vec!["1970-01-02"])) as ArrayRef;
    check(days(), None, categories(&["1970-01-02"], &[0]), Some("look like dates"));
    check(days(), Some("date"), Values::Date(vec![DAY]), None);
    check(Arc::new(Int64Array::from(vec![10, 9])), Some("category"), categories(&["10", "9"], &[0, 1]), None);
    check(Arc::new(Float32Array::from(vec![0.1])), Some("category"), categories(&["0.1"], &[0]), None);
    check(Arc::new(Int32Array::from(vec![19_700_102])), Some("date:%Y%m%d"), Values::Date(vec![DAY]), None);
    check(
        Arc::new(Date32Array::from(vec![1])),
        Some("text"),
        Values::Text([Some("1970-01-02")].into_iter().collect()),
        None,
    );
}

#[test]
fn refuses_values_that_a_table_cannot_hold() {
    let check = |array: ArrayRef, kind: Option<&str>, parts: &[&str]| {
        let error = found(array, kind).expect_err("refused");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    check(Arc::new(list), None, &["column `a`", "contains a list", "`drop`"]);
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let nested = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Int32, true)), inner)]);
    check(Arc::new(nested), None, &["column `a`", "several values", "flatten"]);
    check(Arc::new(Time64MicrosecondArray::from(vec![1])), None, &["column `a`", "without a date"]);
    check(
        Arc::new(Float64Array::from(vec![0.0, f64::INFINITY])),
        None,
        &["row 1 (from 0) column `a`", "finite", "inf"],
    );
    check(Arc::new(Float64Array::from(vec![None, None])), None, &["column `a`", "only missing"]);
    check(Arc::new(Float64Array::from(vec![f64::NAN])), None, &["only missing"]);
    check(
        Arc::new(BinaryArray::from(vec![b"\xff".as_slice()])),
        None,
        &["row 0 (from 0) column `a`", "UTF-8"],
    );
    check(
        Arc::new(TimestampSecondArray::from(vec![i64::MAX])),
        None,
        &["row 0 (from 0) column `a`", "0 to 9999"],
    );
    check(
        Arc::new(StringArray::from(vec!["1", "x"])),
        Some("number"),
        &["row 1 (from 0) column `a`", "must be a number", "\"x\""],
    );
    check(
        Arc::new(Date32Array::from(vec![1])),
        Some("number"),
        &["row 0 (from 0) column `a`", "must be a number"],
    );
}

#[test]
fn rows_of_several_groups_follow_one_another() {
    let part = |from: i64, name: &str| {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![from, from + 1]));
        let names: ArrayRef = Arc::new([name, "m"].into_iter().collect::<DictionaryArray<Int32Type>>());
        batch(vec![("n", numbers), ("c", names)])
    };
    let parts = [part(0, "z"), part(2, "a")];
    for bytes in [parquet_of(&parts), stream_of(&parts)] {
        let table = read_from(bytes.as_slice(), None, &Options::default()).expect("a good table");
        assert_eq!(table.columns[0].values, Values::Number(vec![0.0, 1.0, 2.0, 3.0]));
        assert_eq!(table.columns[1].values, categories(&["a", "m", "z"], &[2, 1, 0, 1]));
    }
}

#[test]
fn nested_columns_that_are_not_read_do_no_harm() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None]);
    let batch = batch(vec![
        ("list", Arc::new(list) as ArrayRef),
        ("b", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
        ("a", Arc::new(Int32Array::from(vec![3, 4])) as ArrayRef),
    ]);
    let columns = Some(vec!["a".to_string(), "b".to_string()]);
    let options = Options { columns, ..Options::default() };
    for bytes in [parquet_of, arrow_of].map(|write| write(std::slice::from_ref(&batch))) {
        let table = read_from(bytes.as_slice(), None, &options).expect("a good table");
        let expected = [("a", vec![3.0, 4.0]), ("b", vec![1.0, 2.0])];
        let expected =
            expected.map(|(name, values)| Column { name: name.into(), values: Values::Number(values) });
        assert_eq!(table.columns, expected);
    }
}

/// Returns a table with every kind, missing cells, and values that are difficult to write.
fn every_kind() -> Table {
    let rows = 200_000;
    let of = |row: usize, every: usize| !row.is_multiple_of(every);
    let hard = [0.1, -0.0, 1e300, 5e-324, 123_456_789.0, 1.0 / 3.0];
    let number =
        (0..rows).map(|row| if of(row, 7) { hard[row % 6] * (1 + row % 3) as f64 } else { f64::NAN });
    let names = ["", "a,b", "\"q\"", "line\nend", "é"].map(|name| format!("n{name}"));
    let mut names = names.to_vec();
    names.sort();
    let codes = (0..rows).map(|row| if of(row, 13) { (row % 5) as u32 } else { MISSING_CODE });
    let date = |step: i64| {
        (0..rows)
            .map(move |row| if of(row, 11) { row as i64 * step - 10 * DAY } else { MISSING_DATE })
            .collect()
    };
    let text = |row: usize| of(row, 3).then(|| format!("text; {row}\r\n\"x\""));
    let texts: Vec<Option<String>> = (0..rows).map(text).collect();
    let columns = vec![
        ("number", Values::Number(number.collect())),
        ("a \"category\", named", Values::Category { codes: codes.collect(), names }),
        ("day", Values::Date(date(DAY / 100 * 100))),
        ("time", Values::Date(date(1_234_567))),
        ("text", Values::Text(texts.iter().map(Option::as_deref).collect::<Texts>())),
    ];
    let columns = columns.into_iter().map(|(name, values)| Column { name: name.into(), values }).collect();
    Table::new(columns).expect("a good table")
}

#[test]
fn a_table_is_the_same_through_every_form() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut table = every_kind();
    // Each format is written from the table that was read from the previous format.
    for name in ["t.csv", "t.parquet", "t.arrow", "t.csv.gz", "t.feather", "t.tsv", "t.parquet", "t.csv"] {
        let path = folder.path().join(name);
        write(&path, &table).expect("a good table");
        let back = read(&path, &Options::default()).expect("what was written");
        assert!(back.columns == table.columns && back.rows == table.rows, "{name}: {:?}", back.notes);
        table = back;
    }
    let bytes = arrow_bytes(&table).expect("a good table");
    let back = read_from(bytes.as_slice(), None, &Options::default()).expect("what was written");
    assert!(back.columns == table.columns, "{:?}", back.notes);
    // The reader records the forms and styles of cells; a table in memory has none.
    let Table { notes, forms, styles, .. } = table.clone();
    assert!(table == Table { notes, forms, styles, ..every_kind() });
}

#[test]
fn a_table_that_cannot_be_read_back_is_not_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let column = |name: &str, values: Vec<f64>| Column { name: name.into(), values: Values::Number(values) };
    let check = |name: &str, columns: Vec<Column>, rows: usize, part: &str| {
        let path = folder.path().join(name);
        let table = Table { columns, rows, ..Table::default() };
        let error = write(&path, &table).expect_err("refused").to_string();
        assert!(error.contains(part) && !Path::exists(&path), "{error}");
    };
    check("t.xlsx", vec![column("a", vec![1.0])], 1, "must end in .csv");
    check("t.parquet.gz", vec![column("a", vec![1.0])], 1, "must end in .csv");
    check(
        "t.csv",
        vec![column("a", vec![1.0, f64::INFINITY])],
        2,
        "row 1 (from 0) column `a`: must be a finite number",
    );
    check("t.csv", vec![column("a", vec![1.0]), column("b", vec![])], 1, "column `b`: has 0 rows");
    check("t.csv", vec![column("a", vec![1.0]), column("a", vec![1.0])], 1, "appears twice");
    check("t.csv", Vec::new(), 0, "without columns");
    let codes = Column { name: "c".into(), values: categories(&["x"], &[4]) };
    check("t.parquet", vec![codes], 1, "cannot be encoded");
    let schema =
        Schema::new(vec![Field::new("a", DataType::Int32, true), Field::new("a", DataType::Int32, true)]);
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let twice = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(&one), one]).expect("a good batch");
    let error = read_from(arrow_of(&[twice]).as_slice(), None, &Options::default()).expect_err("refused");
    assert!(error.to_string().contains("column `a`: appears twice"), "{error}");
}
