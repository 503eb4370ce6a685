//! Tests of reading text files: kinds, missing cells, notes and errors.

use std::io::Write;
use std::path::PathBuf;

use fet_tables::{Format, Kind, MISSING_CODE, Options, Table, TableError, Texts, Values, read, read_from};

fn from_text(text: &[u8], options: &Options) -> Result<Table, TableError> {
    read_from(text, Some(Format::Csv), options)
}

fn options(kinds: &[(&str, &str)]) -> Options {
    let kind = |kind: &str| kind.parse::<Kind>().expect("a kind");
    let kinds = kinds.iter().map(|(name, text)| (name.to_string(), kind(text))).collect();
    Options { kinds, ..Options::default() }
}

fn categories(names: &[&str], codes: &[u32]) -> Values {
    Values::Category { codes: codes.to_vec(), names: names.iter().map(ToString::to_string).collect() }
}

fn texts(cells: &[Option<&str>]) -> Values {
    Values::Text(cells.iter().copied().collect::<Texts>())
}

const DAY: i64 = 86_400_000_000;
const NAN: f64 = f64::NAN;
const NONE: u32 = MISSING_CODE;

#[test]
fn all_cells_decide_the_kind_of_a_column() {
    // Column `a` is next to a column of ones, so that blank cells do not make blank lines.
    let check = |cells: &[&str], kind: Option<&str>, expected: Values| {
        let rows: String = cells.iter().map(|cell| format!("{cell};1\n")).collect();
        let kinds: Vec<(&str, &str)> = kind.iter().map(|kind| ("a", *kind)).collect();
        let table = from_text(format!("a;b\n{rows}").as_bytes(), &options(&kinds)).expect("a good table");
        assert_eq!(table.columns[0].values, expected, "{cells:?} {kind:?}");
    };
    check(&["1", " 2.5 ", "-3e2"], None, Values::Number(vec![1.0, 2.5, -300.0]));
    check(&["1", "", "na", "N/A", "nan", "NULL", "none", "?", "2"], None, {
        Values::Number(vec![1.0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 2.0])
    });
    check(&["1,5", "2", "NA"], None, Values::Number(vec![1.5, 2.0, NAN]));
    check(&["1,5", "2.5"], None, categories(&["1,5", "2.5"], &[0, 1]));
    check(&["1", "2", "x"], None, categories(&["1", "2", "x"], &[0, 1, 2]));
    check(&["2024-01-02", "?"], None, Values::Date(vec![19_724 * DAY, i64::MIN]));
    check(&["2024/01/02", "02.01.2024"], None, Values::Date(vec![19_724 * DAY; 2]));
    check(&["1970-01-01T01:00:00+01:00", "1970-01-02 00:00"], None, Values::Date(vec![0, DAY]));
    check(&["01/02/2024"], None, categories(&["01/02/2024"], &[0]));
    check(&["02/01/2024"], Some("date:%d/%m/%Y"), Values::Date(vec![19_724 * DAY]));
    check(&["2024-01-02", "2024"], None, categories(&["2024", "2024-01-02"], &[1, 0]));
    check(&["true", "False", "true"], None, categories(&["False", "true"], &[1, 0, 1]));
    check(&["b", "", "a", "b"], None, categories(&["a", "b"], &[1, NONE, 0, 1]));
    check(&["b", "", "a"], Some("text"), texts(&[Some("b"), None, Some("a")]));
    check(&["1", "0", "1"], Some("category"), categories(&["0", "1"], &[1, 0, 1]));
    check(&["01307"], Some("text"), texts(&[Some("01307")]));
    check(&["1,5", "2"], Some("number"), Values::Number(vec![1.5, 2.0]));
}

#[test]
fn strings_are_categories_up_to_fifty_or_five_per_cent() {
    let check = |rows: usize, different: usize, kind: &str| {
        let cells: String = (0..rows).map(|row| format!("v{}\n", row % different)).collect();
        let table = from_text(format!("a\n{cells}").as_bytes(), &Options::default()).expect("a good table");
        assert_eq!(table.columns[0].values.kind(), kind, "{different} in {rows}");
    };
    check(60, 50, "category");
    check(60, 51, "text");
    check(2000, 100, "category");
    check(2000, 101, "text");
    check(300_000, 10_000, "category");
    check(300_000, 10_001, "text");
}

#[test]
fn columns_are_chosen_by_name() {
    let check = |columns: Option<&[&str]>, drop: &[&str], expected: Result<&[&str], &str>| {
        let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let options = Options { columns: columns.map(strings), drop: strings(drop), ..Options::default() };
        let found = from_text(b"price,colour,empty\n1,red,\n2,\xff,\n", &options);
        match (found, expected) {
            (Ok(table), Ok(expected)) => {
                let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
                assert_eq!(names, expected);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "\"{part}\" in {error}"),
            (found, expected) => panic!("{found:?} in place of {expected:?}"),
        }
    };
    // Columns that are not read may contain anything.
    check(Some(&["price"]), &[], Ok(&["price"]));
    check(None, &["colour", "empty"], Ok(&["price"]));
    check(None, &["empty"], Err("line 3 column `colour`: must be valid UTF-8"));
    check(Some(&["price", "empty"]), &[], Err("column `empty`: has only missing cells"));
    check(Some(&["prise"]), &[], Err("lacks the column `prise`; did you mean \"price\"?"));
    check(None, &["color"], Err("did you mean \"colour\"?"));
    check(Some(&["price", "price"]), &[], Err("column `price`: is named twice; name it once"));
    check(Some(&["price"]), &["price"], Err("lacks a column to read"));
}

#[test]
fn notes_inferred_formats() {
    let check = |text: &str, part: &str| {
        let table = from_text(text.as_bytes(), &Options::default()).expect("a good table");
        assert!(table.notes.iter().any(|note| note.contains(part)), "\"{part}\" in {:?}", table.notes);
    };
    check("a;b\n1;2\n", "the delimiter is `;`");
    check("a\tb\n1\t2\n", "the delimiter is tab");
    check("a;b\n1,5;2\n", "column `a`: read with a decimal comma");
    check("a;b\n1,500;2\n", "thousands");
    check("a,b\n01307,2\n", "column `a`: leading zeros of numbers are ignored");
    check("a,b\n9007199254740993,2\n", "of 2^53 and more");
    check("a,b\n31.01.2024,2\n", "DD.MM.YYYY");
    check("a,b\n2024-01-01T00:00Z,2\n2024-01-01T00:00,2\n", "times without a zone are read as UTC");
    check("a,b\n2024-01-01T00:00:00.1234567,2\n", "finer than a microsecond");
    check("a,b\n1/2/2024,2\n", "date:%d/%m/%Y");
    check(",b\n1,2\n", "column 1 lacks a name in the header; it is called `column_1`");
    check("1,2\n1,2\n", "every name in the header is a number");
    check("1,2,red\n1,2,blue\n", "2 of 3 names in the header are numbers");
    check("a\n1\n\n2\n", "1 blank lines were skipped");
}

#[test]
fn errors_name_their_place() {
    let check = |text: &[u8], kinds: &[(&str, &str)], parts: &[&str]| {
        let error = from_text(text, &options(kinds)).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "\"{part}\" in {error}");
        }
    };
    check(b"", &[], &["standard input: is empty"]);
    check(b"\n\n", &[], &["lacks a header"]);
    check(b"a,b\n", &[], &["is empty below its header"]);
    check(b"a,b,a\n1,2,3\n", &[], &["line 1", "two columns are called `a`", "rename"]);
    check(b"a,\xff\n1,2\n", &[], &["line 1", "column 2 is not valid UTF-8"]);
    check(b"\xff\xfea\0\n\0", &[], &["UTF-16", "UTF-8"]);
    check(b"a,b\n1,2\n1\n", &[], &["line 3", "has 1 cells; the header has 2", "`delimiter`"]);
    check(
        b"a,b\nx,2\n",
        &[("a", "number")],
        &["line 2 column `a`", "must be a number", "\"x\"", "`missing`"],
    );
    check(b"a,b\n1/2/2024,2\n", &[("a", "date")], &["line 2 column `a`", "ISO 8601", "date:%d/%m/%Y"]);
    check(b"a,b\n31/31/2024,2\n", &[("a", "date:%d/%m/%Y")], &["line 2 column `a`", "in the form"]);
    check(b"a,b\ninf,2\n", &[], &["line 2 column `a`", "finite", "\"inf\""]);
    check(b"a,b\n1,2\n", &[("c", "number")], &["lacks the column `c`, which is required"]);
    check(b"a,b,c\n1,,\n", &[], &["column `b`", "only missing cells", "the same applies to c", "`drop`"]);
    check(b"PK\x03\x04rest", &[], &["Excel"]);
    check(b"FEA1rest", &[], &["version 1"]);
    check(b"PARErest", &[], &["encryption"]);
    assert_eq!(
        "date:%Q".parse::<Kind>().expect_err("refused").to_string().split(' ').next(),
        Some("\"date:%Q\"")
    );
}

#[test]
fn names_and_first_bytes_tell_the_form() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let text: String = (0..5_000).map(|row| format!("{row},{}\n", row * row % 977)).collect();
    let text = format!("a,b\n{text}").into_bytes();
    let zstd = zstd::encode_all(text.as_slice(), 3).expect("in memory");
    let twice = [gzip(&text[..100]), gzip(&text[100..])].concat();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        path
    };
    let plain = read(&file("t.csv", &text), &Options::default()).expect("a good table");
    assert_eq!((plain.rows, plain.columns.len()), (5_000, 2));
    let same = |name: &str, bytes: &[u8]| {
        let found = read(&file(name, bytes), &Options::default()).expect("a good table");
        assert_eq!(found.columns, plain.columns, "{name}");
    };
    same("t.csv.gz", &gzip(&text));
    same("t.csv.gz", &twice);
    same("t.csv.gz", &text);
    same("t.csv.zst", &zstd);
    same("without", &gzip(&text));
    let refused = |name: &str, bytes: &[u8], parts: &[&str]| {
        let error = read(&file(name, bytes), &Options::default()).expect_err("refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)) && error.contains(name), "{error}");
    };
    let whole = gzip(&text);
    refused("t.csv.gz", &whole[..whole.len() / 2], &["gzip", "is the file complete?"]);
    refused("t.csv.gz", &[&whole[..], b"more"].concat(), &["gzip"]);
    refused("t.csv.zst", &zstd[..zstd.len() / 2], &["zstd", "is the file complete?"]);
    refused("t.parquet", &text, &["file extension of Parquet"]);
    refused("t.feather", &text, &["file extension of Arrow"]);
    let error =
        read(&folder.path().join("absent.csv"), &Options::default()).expect_err("refused").to_string();
    assert!(error.contains("absent.csv: cannot be read"), "{error}");
}

#[test]
fn selects_rows_and_columns() {
    let table =
        from_text(b"a,b,c\n1,x,2024-01-01\n2,y,\n3,x,2024-01-03\n", &Options::default()).expect("good");
    let rows = table.select_rows(&[2, 0, 0]).expect("they are there");
    assert_eq!(rows.columns[0].values, Values::Number(vec![3.0, 1.0, 1.0]));
    assert_eq!(rows.columns[1].values, categories(&["x", "y"], &[0, 0, 0]));
    assert_eq!(rows.rows, 3);
    let columns = table.select_columns(&["c", "a"]).expect("they are there");
    assert_eq!(columns.columns[1], table.columns[0]);
    let says = |error: TableError, part: &str| assert!(error.to_string().contains(part), "{error}");
    says(table.select_rows(&[3]).expect_err("refused"), "has 3 rows; row 3");
    says(table.select_columns(&["a", "a"]).expect_err("refused"), "two columns called `a`");
    let prices = from_text(b"price\n1\n", &Options::default()).expect("good");
    says(prices.column("prise").expect_err("refused"), "lacks the column `prise`; did you mean \"price\"?");
}

/// A build without the feature names the feature in its error.
#[cfg(not(feature = "columnar"))]
#[test]
fn refuses_columnar_files_in_a_build_without_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, b"PAR1 and more PAR1").expect("writable");
    let error = read(&path, &Options::default()).expect_err("refused").to_string();
    assert!(error.contains("--features columnar") && error.contains("t.parquet"), "{error}");
    std::fs::write(folder.path().join("t.csv"), "a\n1\n").expect("writable");
    let table = read(&folder.path().join("t.csv"), &Options::default()).expect("a table");
    let error = fet_tables::write(&folder.path().join("u.arrow"), &table).expect_err("refused").to_string();
    assert!(error.contains("--features columnar"), "{error}");
}

/// A wrong cell in a column of numbers must not turn it into a column of names. The reader refuses the cell
/// and names its place, unless the caller sets the kind.
#[test]
fn refuses_wrong_cells_in_columns_of_nearly_one_kind() {
    let text = |wrong: &str, right: &str, of: usize| {
        let rows: String =
            (0..of).map(|row| format!("{};1\n", if row == of / 2 { wrong } else { right })).collect();
        format!("a;b\n{rows}")
    };
    let refused = |text: &str, parts: &[&str]| {
        let error = from_text(text.as_bytes(), &Options::default()).expect_err("refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    refused(
        &text("three", "3", 20),
        &["line 12 column `a`", "must be a number, like nearly all", "\"three\"", "`missing`"],
    );
    refused(&text("3;", "3", 20), &["has 3 cells"]);
    refused(
        &text("later", "2024-05-01", 20),
        &["line 12 column `a`", "must be a date, like nearly all", "\"later\""],
    );
    refused(&text("-", "3,5", 20), &["line 12 column `a`", "\"-\""]);
    for (given, kind) in [(options(&[("a", "category")]), "category"), (options(&[("a", "text")]), "text")] {
        let table =
            from_text(text("three", "3", 20).as_bytes(), &given).expect("a table of the declared kind");
        assert_eq!(table.columns[0].values.kind(), kind);
    }
    let marked = Options { missing: vec!["three".into()], ..Options::default() };
    let table = from_text(text("three", "3", 20).as_bytes(), &marked).expect("a mark of a missing cell");
    assert_eq!((table.columns[0].values.kind(), table.columns[0].values.missing()), ("number", 1));
    // One wrong cell in five is not a slip.
    let table = from_text(text("three", "3", 5).as_bytes(), &Options::default()).expect("names");
    assert_eq!(table.columns[0].values.kind(), "category");
    // Dates with slashes are never refused: either some cell decides on the order of day and month, or the
    // column is read as names.
    for (other, kind) in [("15/03/2024", "date"), ("5/4/2024", "category")] {
        let table = from_text(text("5/3/2024", other, 20).as_bytes(), &Options::default()).expect("read");
        assert_eq!(table.columns[0].values.kind(), kind, "{other}");
    }
}

/// Reads column `a` next to a column of ones.
fn column(cells: &[&str], options: &Options) -> Result<(Values, Vec<String>), TableError> {
    let rows: String = cells.iter().map(|cell| format!("\"{cell}\",1\n")).collect();
    let mut table = from_text(format!("a,b\n{rows}").as_bytes(), options)?;
    let notes = table.notes.into_iter().filter(|note| note.starts_with("column `a`")).collect();
    Ok((table.columns.remove(0).values, notes))
}

#[test]
fn dates_and_amounts_are_read_where_one_form_fits_all_cells() {
    let check = |cells: &[&str], expected: Values, note: &str| {
        let (values, notes) = column(cells, &Options::default()).expect("a good table");
        assert_eq!(values, expected, "{cells:?}");
        assert!(notes.len() == 1 && notes[0].contains(note), "{cells:?}: {notes:?}");
    };
    let days = |days: [i64; 2]| Values::Date(days.map(|day| day * DAY).to_vec());
    check(&["02/01/2024", "31/01/2024"], days([19_724, 19_753]), "date:%d/%m/%Y");
    check(&["01-02-2024", "01-31-2024"], days([19_724, 19_753]), "date:%m-%d-%Y");
    check(&["2.1.2024", "31.1.2024"], days([19_724, 19_753]), "date:%d.%m.%Y");
    check(&["02/01/2024 00:00", "31/01/2024 00:00"], days([19_724, 19_753]), "date:%d/%m/%Y %H:%M");
    let numbers = |numbers: [f64; 2]| Values::Number(numbers.to_vec());
    check(&["1,234.50", "12"], numbers([1234.5, 12.0]), "number:1,234.5");
    check(&["1.234,50", "12"], numbers([1234.5, 12.0]), "number:1.234,5");
    check(&["1 234,50", "12,5"], numbers([1234.5, 12.5]), "number:1.234,5");
    check(&["1'234", "12.5"], numbers([1234.0, 12.5]), "number:1,234.5");
    check(&["$5", "-$1,234.50"], numbers([5.0, -1234.5]), "number:1,234.5");
    check(&["5 €", "1.234,00 €"], numbers([5.0, 1234.0]), "number:1.234,5");
    check(&["12%", "3.5 %"], numbers([12.0, 3.5]), "per cent");
}

#[test]
fn ambiguous_formats_are_noted_and_can_be_declared() {
    let check = |cells: &[&str], note: &str, declared: &str, expected: Values| {
        let (values, notes) = column(cells, &Options::default()).expect("a good table");
        assert!(matches!(values.kind(), "category" | "text"), "{cells:?}: {}", values.kind());
        assert!(notes.len() == 1 && notes[0].contains(note), "{cells:?}: {notes:?}");
        assert_eq!(
            column(cells, &options(&[("a", declared)])).expect("a good table").0,
            expected,
            "{cells:?} as {declared}"
        );
    };
    let numbers = |numbers: &[f64]| Values::Number(numbers.to_vec());
    check(
        &["01-02-2024", "02-03-2024"],
        "date:%m-%d-%Y",
        "date:%m-%d-%Y",
        Values::Date(vec![19_724 * DAY, 19_756 * DAY]),
    );
    check(
        &["02.01.24", "31.01.24"],
        "two-digit",
        "date:%d.%m.%y",
        Values::Date(vec![19_724 * DAY, 19_753 * DAY]),
    );
    check(&["1,234", "2,500"], "number:1.234,5", "number:1,234.5", numbers(&[1234.0, 2500.0]));
    check(&["1,234", "2,500"], "number:1,234.5", "number:1.234,5", numbers(&[1.234, 2.5]));
    check(&["10:45", "9:30"], "time", "time", numbers(&[10.75, 9.5]));
    let noted = |cells: &[&str], note: &str| {
        let (_, notes) = column(cells, &Options::default()).expect("a good table");
        assert!(notes.iter().any(|found| found.contains(note)), "{cells:?}: {notes:?}");
    };
    noted(&["31/01/2024", "01/31/2024"], "with the day and others with the month");
    noted(&["1,5", "2.50 "], "comma");
    noted(&["$5", "5 €"], "different units");
    noted(&["5%", "5"], "different units");
    noted(&["=A1", "=A2"], "formulas");
    let mut nearly = vec!["1,234.50"; 19];
    nearly.push("on request");
    noted(&nearly, "19 of 20 cells are amounts");
    noted(&["1.234", "999"], "number:1.234,5");
    assert_eq!(column(&["1.234", "999"], &Options::default()).expect("numbers").0, numbers(&[1.234, 999.0]));
    // A declared number is read in the only format that fits, and refused if two formats fit.
    assert_eq!(column(&["1,234.50"], &options(&[("a", "number")])).expect("amounts").0, numbers(&[1234.5]));
    let error = column(&["1,234"], &options(&[("a", "number")])).expect_err("two forms").to_string();
    assert!(error.contains("number:1,234.5"), "{error}");
}

#[test]
fn another_table_is_read_in_the_same_form() {
    let table =
        from_text(b"a,b\n02/01/2024,\"1,234.5\"\n31/01/2024,5\n", &Options::default()).expect("a table");
    let kinds: Vec<(&str, String)> =
        table.forms.iter().map(|(name, kind)| (name.as_str(), kind.to_string())).collect();
    assert_eq!(kinds, [("a", "date:%d/%m/%Y".to_string()), ("b", "number:1,234.5".to_string())]);
    let options = Options { kinds: table.forms, ..Options::default() };
    let other = from_text(b"a,b\n03/02/2024,\"1,234\"\n", &options).expect("the same forms");
    assert_eq!(other.columns[0].values, Values::Date(vec![19_756 * DAY]));
    assert_eq!(other.columns[1].values, Values::Number(vec![1234.0]));
}

/// Cells that can be read in two ways, with a last cell that fits one of them alone.
fn decided_by(last: &str) -> Vec<String> {
    (0..39)
        .map(|row| format!("{}.{:03}", row % 9 + 1, row * 37))
        .map(|cell| cell[..5].to_string())
        .chain([last.to_string()])
        .collect()
}

#[test]
fn refuses_a_column_that_a_few_cells_would_read_again() {
    let read = |cells: &[String], declared: Option<&str>| {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let kinds: Vec<(&str, &str)> = declared.iter().map(|kind| ("a", *kind)).collect();
        column(&cells, &options(&kinds))
    };
    let refused = |cells: &[String], declared: Option<&str>, parts: &[&str]| {
        let error = read(cells, declared).expect_err("refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{declared:?}: {error}");
    };
    let setting = "columns.a = \"number:1.234,5\"";
    for last in ["5,5", "1.234.567", "1.234,50"] {
        let cells = decided_by(last);
        for declared in [None, Some("number")] {
            refused(&cells, declared, &["line 41 column `a`", last, "1 of 40 cells", "1.000", setting]);
        }
        refused(&cells, Some("number:1,234.5"), &["line 41", last]);
        refused(&cells, Some("number:plain"), &["line 41", last]);
        let Values::Number(values) = read(&cells, Some("number:1.234,5")).expect("declared").0 else {
            panic!("numbers")
        };
        assert_eq!(values[0], 1000.0, "{last}");
    }
    // A cell that fits the usual reading changes nothing.
    let Values::Number(values) = read(&decided_by("1,234.5"), None).expect("amounts").0 else {
        panic!("numbers")
    };
    assert_eq!((values[0], values[39]), (1.0, 1234.5));
    // Numbers with a point in all cells but one.
    let mut cells: Vec<String> = (0..39).map(|row| format!("{row}.25")).collect();
    cells.push("5,5".to_string());
    refused(&cells, None, &["line 41 column `a`", "5,5", "number:1,234.5", "1 of 40 cells"]);
    let dates: Vec<String> =
        (0..39).map(|row| format!("0{}/03/2024", row % 9 + 1)).chain(["31/03/2024".to_string()]).collect();
    refused(
        &dates,
        None,
        &["line 41 column `a`", "31/03/2024", "1 of 40 cells", "columns.a = \"date:%d/%m/%Y\""],
    );
    // Enough cells decide, and the note counts them.
    let many: Vec<String> =
        (0..20).map(|row| if row % 4 == 0 { "1.234,50".into() } else { "1.234".to_string() }).collect();
    let (values, notes) = read(&many, None).expect("amounts");
    assert_eq!(values.texts()[1], "1234");
    assert!(notes[0].contains("5 of 20 cells") && notes[0].contains("\"1.234,50\""), "{notes:?}");
}

#[test]
fn reads_another_table_in_the_form_of_the_first() {
    let check = |first: &str, second: &str, expected: Result<&[f64], &str>| {
        let table = from_text(first.as_bytes(), &Options::default()).expect("a table");
        let inferred = ["a".to_string()].into();
        let kind = table.forms.get("a").cloned().unwrap_or(Kind::Number);
        let options = Options { kinds: [("a".to_string(), kind)].into(), inferred, ..Options::default() };
        match (from_text(second.as_bytes(), &options), expected) {
            (Ok(table), Ok(expected)) => {
                assert_eq!(table.columns[0].values, Values::Number(expected.to_vec()), "{second}");
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{second}: {found:?}"),
        }
    };
    let plain = "a;b\n9.916;1\n8.766;2\n";
    check(plain, "a;b\n9.916;1\n", Ok(&[9.916]));
    check(plain, "a;b\n9.916;1\n5,5;2\n", Err("line 3 column `a`"));
    check(plain, "a;b\n5,5;1\n6,5;2\n", Err("line 2 column `a`"));
    check(plain, "a;b\n9.916;1\n1.234.567;2\n", Err("line 3 column `a`"));
    let comma = "a;b\n9,916;1\n0,5;2\n";
    check(comma, "a;b\n9,916;1\n7;2\n", Ok(&[9.916, 7.0]));
    check(comma, "a;b\n1.5;1\n", Err("line 2 column `a`"));
    check(comma, "a;b\n1.234;1\n", Ok(&[1234.0]));
    // Whole numbers fit every form; one cell does not change another.
    let whole = "a;b\n9;1\n12;2\n";
    check(whole, "a;b\n1.234;1\n9;2\n", Ok(&[1.234, 9.0]));
    check(whole, "a;b\n1.234;1\n1.234,5;2\n", Err("line 3 column `a`"));
}

#[test]
fn notes_a_column_of_names_that_is_mostly_numbers_or_dates() {
    let check = |most: fn(usize) -> String, other: &str, parts: &[&str]| {
        let cells: Vec<String> =
            (0..35).map(|row| if row % 7 == 0 { other.to_string() } else { most(row) }).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let (values, notes) = column(&cells, &Options::default()).expect("a table");
        assert_eq!(values.kind(), "category");
        let share = notes.iter().any(|note| note.contains("30 of 35 cells"));
        assert!(share && parts.iter().all(|part| notes[0].contains(part)), "{notes:?}");
        // A declaration silences the note.
        let (_, notes) = column(&cells, &options(&[("a", "category")])).expect("a table");
        assert!(notes.is_empty(), "{notes:?}");
    };
    check(|row| row.to_string(), "-", &["numbers", "\"-\"", "missing = [\"-\"]", "columns.a"]);
    check(|row| row.to_string(), "10k", &["numbers", "\"10k\""]);
    check(|row| format!("{}.5", row), "12 km", &["numbers", "\"12 km\""]);
    check(|row| format!("2024-01-{:02}", row % 28 + 1), "unknown", &["dates", "\"unknown\""]);
    check(|row| format!("{}/01/2024", row % 28 + 1), "unknown", &["dates", "\"unknown\""]);
    check(|row| format!("${row}.50"), "free", &["amounts", "\"free\""]);
    let (_, notes) = column(&["red", "7", "blue"], &Options::default()).expect("a table");
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn warns_of_different_units_in_a_declared_amount() {
    let (_, notes) = column(&["5%", "0.05", "7%"], &options(&[("a", "number:1,234.5")])).expect("amounts");
    assert!(notes.len() == 1 && notes[0].contains("1 with no unit, 2 with the unit %"), "{notes:?}");
    let (_, notes) = column(&["5%", "7%"], &options(&[("a", "number:1,234.5")])).expect("amounts");
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn the_owner_sets_the_marks_of_missing_cells() {
    let cells = ["NA", "EU", "", "None"];
    let check = |kind: Option<&str>, missing: &[&str], expected: Values| {
        let kinds: Vec<(&str, &str)> = kind.iter().map(|kind| ("a", *kind)).collect();
        let missing = missing.iter().map(ToString::to_string).collect();
        let options = Options { missing, ..options(&kinds) };
        let (values, notes) = column(&cells, &options).expect("a table");
        assert_eq!(values, expected, "{kind:?} {missing:?}", missing = options.missing);
        assert_eq!(notes.len(), usize::from(expected.missing() > 1 && kind.is_none()), "{notes:?}");
    };
    check(None, &[], categories(&["EU"], &[NONE, 0, NONE, NONE]));
    check(Some("category"), &[], categories(&["EU", "NA", "None"], &[1, 0, NONE, 2]));
    check(Some("category"), &["na"], categories(&["EU", "None"], &[NONE, 0, NONE, 1]));
    check(None, &["-"], categories(&["EU", "NA", "None"], &[1, 0, NONE, 2]));
    check(None, &[""], categories(&["EU", "NA", "None"], &[1, 0, NONE, 2]));
    check(Some("text"), &["NA"], texts(&[Some("NA"), Some("EU"), None, Some("None")]));
    // A category inferred from another table has the same marks of missing cells as that table.
    let inferred = ["a".to_string()].into();
    let options = Options { inferred, ..options(&[("a", "category")]) };
    assert_eq!(column(&cells, &options).expect("a table").0, categories(&["EU"], &[NONE, 0, NONE, NONE]));
}

#[test]
fn a_spreadsheet_s_hint_names_the_delimiter() {
    for (hint, delimiter) in [("sep=;", ';'), ("SEP=|\r", '|'), ("\"sep=;\"", ';'), ("sep=\t", '\t')] {
        let text = format!("{hint}\na{delimiter}b\n1{delimiter}2\nx{delimiter}\n");
        let table = from_text(text.as_bytes(), &Options::default()).expect("a table");
        assert_eq!((table.columns[1].name.as_str(), table.rows), ("b", 2), "{hint}");
        assert!(table.notes[0].contains("according to the first line"), "{:?}", table.notes);
    }
    let error = from_text(b"sep=;\na;b\n1;2\n3\n", &Options::default()).expect_err("ragged").to_string();
    assert!(error.contains("line 4"), "{error}");
    let column = from_text(b"sep\n1\n2\n", &Options::default()).expect("a table");
    assert_eq!(column.columns[0].name, "sep");
}

#[test]
fn reads_a_large_file_as_its_text_in_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = "1234567,1\n".repeat(900_000);
    let check = |start: &str, end: &str, what: &str| {
        let path = folder.path().join("large.csv");
        let text = format!("{start}{rows}{end}");
        std::fs::write(&path, &text).expect("a writable folder");
        assert!(text.len() > 1 << 23, "a large file");
        let shown = |result: Result<Table, TableError>| match result {
            Ok(table) => {
                (table.rows, format!("{:?}", (table.columns.first().map(|c| &c.name), &table.notes)))
            }
            Err(error) => (0, error.to_string()),
        };
        let options = Options { keep_empty: true, ..Options::default() };
        let expected = shown(fet_tables::read_bytes(text.as_bytes(), &path, &options));
        let found = shown(read(&path, &options));
        assert_eq!(found, expected, "{what}");
    };
    check("a,b\n", "", "plain");
    check("a,b\n", "1,2,3\n", "a long row at the end");
    check("a,b\n", "1,\"2\n", "a quote that is never closed");
    check("id,\"value\n", "", "a header that is never closed");
    check("\u{feff}PARENT_ID,x\n", "", "a mark before a name that begins as a Parquet file does");
    check("PARENT_ID,x\n", "", "a name that begins as a Parquet file does");
    check(&format!("{}a,b\n", "\n".repeat(5 << 20)), "", "blank lines before the header");
    check(&format!("\"{}\",b\n", "long ".repeat(1 << 20)), "", "a long header");
}
