//! Tests that the boundaries of pieces change neither the table nor the error.

use std::io::Write;

use super::*;
use crate::table::Values;

/// Reads a text in memory and in a file, which must give the same. The file is plain or compressed in turn.
fn read(text: &[u8], file: &str, options: &Options, piece: usize) -> Result<Table, TableError> {
    let expected = Content::memory(text, file).and_then(|text| super::read(&text, file, options, piece));
    let stored = match text.len().wrapping_add(piece) % 3 {
        0 => text.to_vec(),
        1 => zstd::encode_all(text, 1).expect("memory is writable"),
        _ => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text).expect("memory is writable");
            gzip.finish().expect("memory is writable")
        }
    };
    let mut stored_file = tempfile::NamedTempFile::new().expect("a temporary file");
    stored_file.write_all(&stored).expect("a writable file");
    let content = Content::file(stored_file.path(), file);
    match (&expected, content.and_then(|text| super::read(&text, file, options, piece))) {
        (Ok(expected), Ok(found)) => assert_eq!(format!("{expected:?}"), format!("{found:?}")),
        (Err(expected), Err(found)) => assert_eq!(expected.to_string(), found.to_string()),
        (expected, found) => panic!("{expected:?} and {found:?}"),
    }
    expected
}

/// Deterministic pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn choose<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// Returns random cells and the text that contains them.
fn random_text(random: &mut Random) -> (Vec<[Option<String>; 3]>, Vec<u8>) {
    let end = random.choose(&["\n", "\r\n"]);
    let mut text = random.choose(&["", "\u{feff}"]).to_string() + "a,\"b,b\",c" + end;
    let rows = 1 + random.below(40);
    let mut cells = Vec::new();
    for row in 0..rows {
        let number = format!("{}.{}", random.below(2000), random.below(10));
        let parts = ["x", "\"", "\n", "\r\n", ",", "é", " y ", "\"\"", "z"];
        let string: String = (0..random.below(6)).map(|_| random.choose(&parts)).collect();
        let string = format!("s{string}");
        let number = (row == 0 || random.below(4) > 0).then_some(number);
        let quoted = format!("\"{}\"", string.replace('"', "\"\""));
        // In a cell without a leading quote, a quote is an ordinary character.
        let bare = !string.contains([',', '\n', '\r']) && random.below(2) == 0;
        let middle = if bare { &string } else { &quoted };
        let blank = if random.below(6) == 0 { end } else { "" };
        let shown = number.as_deref().unwrap_or_else(|| random.choose(&["", "NA", "\"\"", " null "]));
        let day = format!("2024-01-{:02}", 1 + random.below(28));
        text += &format!("{blank}{shown},{middle},{day}");
        if row + 1 < rows || random.below(2) == 0 {
            text += end;
        }
        cells.push([number, Some(string.trim().to_string()), Some(day)]);
    }
    (cells, text.into_bytes())
}

/// Returns the cells of a table as text.
fn cells(table: &Table) -> Vec<[Option<String>; 3]> {
    let cell = |values: &Values, row: usize| match values {
        Values::Number(values) => (!values[row].is_nan()).then(|| format!("{:.1}", values[row])),
        Values::Category { codes, names } => names.get(codes[row] as usize).cloned(),
        Values::Date(values) => Some(date::text(values[row])),
        Values::Text(texts) => texts.get(row).map(String::from),
    };
    (0..table.rows).map(|row| std::array::from_fn(|at| cell(&table.columns[at].values, row))).collect()
}

#[test]
fn reads_a_text_equally_at_any_cut() {
    let mut random = Random(20_240_305);
    for _ in 0..100 {
        let (expected, text) = random_text(&mut random);
        let options = Options { delimiter: Some(b','), ..Options::default() };
        let whole = read(&text, "t", &options, usize::MAX).expect("a good table");
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(cells(&whole), expected, "{shown}");
        let kinds: Vec<&str> = whole.columns.iter().map(|column| column.values.kind()).collect();
        assert_eq!(kinds, ["number", "category", "date"], "{shown}");
        for piece in (1..40).chain([64, 100, 1000]) {
            let cut = read(&text, "t", &options, piece).expect("a good table");
            assert_eq!(cut, whole, "in pieces of {piece}: {shown}");
        }
    }
}

#[test]
fn many_strings_become_texts_at_any_cut() {
    // The second column exceeds 10,000 different strings in the middle of the text; the third never exceeds 5
    // %.
    let rows: String = (0..25_000).map(|row| format!("{row};n{};c{}\n", row / 2, row % 1000)).collect();
    let text = format!("id;name;class\n{rows}");
    let whole = read(text.as_bytes(), "t", &Options::default(), usize::MAX).expect("a good table");
    let kinds: Vec<&str> = whole.columns.iter().map(|column| column.values.kind()).collect();
    assert_eq!(kinds, ["number", "text", "category"]);
    for piece in [1 << 8, 1 << 12, 1 << 16] {
        let cut = read(text.as_bytes(), "t", &Options::default(), piece).expect("a good table");
        assert!(cut == whole, "in pieces of {piece}");
    }
}

#[test]
fn reports_the_same_error_at_any_cut() {
    let check = |text: &[u8], kind: Option<Kind>, expected: &str| {
        let mut options = Options { delimiter: Some(b','), ..Options::default() };
        options.kinds.extend(kind.map(|kind| ("a".to_string(), kind)));
        for piece in (1..30).chain([usize::MAX]) {
            let error = read(text, "t", &options, piece).expect_err("refused").to_string();
            assert!(error.starts_with(expected), "in pieces of {piece}: {error}");
        }
    };
    check(b"a,b\n1,\"x\ny\"\n2\n3\n", None, "t line 4: has 1 cells; the header has 2");
    check(b"a,b\r\n1,2\r\n\r\n\r\n1,2,3\r\n", None, "t line 5: has 3 cells");
    check(b"\xef\xbb\xbfa,b\n1,2\n1,\xff\n", None, "t line 3 column `b`: must be valid UTF-8; byte 1");
    check(b"a,b\n1,2\nx,2\ny,2\n", Some(Kind::Number), "t line 3 column `a`: must be a number; it is \"x\"");
    check(b"a,b\n1,2\n\n1e999,2\n", None, "t line 4 column `a`: must be a finite number; it is \"1e999\"");
    check(b"a,b\n1,2\n3,\"4\n5,6\n", None, "t line 3: opens a quote that is never closed");
    check(b"a,b\r1,2\r3\r", None, "t line 3: has 1 cells");
}

#[test]
fn accepts_a_byte_order_mark_in_a_cell_at_any_cut() {
    let text = "\u{feff}\u{feff}a,b\n\u{feff}x,1\n\u{feff}y,2\nz,3\n";
    for piece in 1..40 {
        let table = read(text.as_bytes(), "x.csv", &Options::default(), piece).expect("a table");
        assert_eq!(table.columns[0].values.texts(), ["\u{feff}x", "\u{feff}y", "z"], "in pieces of {piece}");
        // The first byte order mark is the file's; the second belongs to the name.
        assert_eq!(table.columns[0].name, "\u{feff}a");
    }
}

#[test]
fn refuses_a_file_that_changes_between_two_passes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text.csv");
    let text = format!("a,b\n{}", "1,2\n".repeat(1000));
    for changed in [text.replacen("1,2", "1,3", 1), text[..text.len() - 8].to_string(), "a,b\n".to_string()] {
        std::fs::write(&path, &text).expect("a writable folder");
        let content = Content::file(&path, "text.csv").expect("a readable file");
        let Ok(cut) = content.cut(4, b',', false, 100) else { panic!("no quotes") };
        let pieces = |content: &Content<'_>| -> Result<Vec<usize>, TableError> {
            content.pieces(&cut)?.map(|piece| piece.map(|piece| piece.start)).collect()
        };
        assert_eq!(pieces(&content).expect("the same text").len(), 40);
        std::fs::write(&path, &changed).expect("a writable folder");
        let error = pieces(&content).expect_err("another text").to_string();
        assert!(error.contains("text.csv: changed while it was read"), "{error}");
        std::fs::write(&path, &text).expect("a writable folder");
        assert!(pieces(&content).is_ok(), "the text is back");
    }
}
