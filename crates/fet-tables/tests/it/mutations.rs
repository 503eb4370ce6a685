//! Tests that the reader never panics, hangs or exhausts the memory. Files of every format, damaged in
//! thousands of ways, give a consistent table or a meaningful error.

use std::io::Write;
use std::time::{Duration, Instant};

use fet_tables::{
    Column, Format, Options, Table, TableError, Texts, Values, read, read_from, summary, write,
};

/// Deterministic pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound.max(1)
    }
}

fn small_table() -> Table {
    let texts: Vec<Option<String>> =
        (0..60).map(|row| (row % 4 > 0).then(|| format!("text {row}, \"q\"\n"))).collect();
    let names = ["one", "two", "zéro"].map(String::from).to_vec();
    let columns = vec![
        (
            "n",
            Values::Number(
                (0..60).map(|row| if row % 5 == 0 { f64::NAN } else { f64::from(row) / 3.0 }).collect(),
            ),
        ),
        ("c", Values::Category { codes: (0..60).map(|row| row % 3).collect(), names }),
        ("d", Values::Date((0..60).map(|row| row * 86_400_000_000 + row % 2).collect())),
        ("t", Values::Text(texts.iter().map(Option::as_deref).collect::<Texts>())),
    ];
    let columns = columns.into_iter().map(|(name, values)| Column { name: name.into(), values }).collect();
    Table::new(columns).expect("a good table")
}

/// Changes, repeats, removes or truncates some bytes. Half of the changes are near an end of the file, where
/// the formats store their metadata.
fn damage(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        let at = match random.below(4) {
            0 => random.below(length.min(64)),
            1 => length - 1 - random.below(length.min(600)),
            _ => random.below(length),
        };
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'"', b'\n', b'\r', b','][random.below(8)],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..(at + random.below(9)).min(length))),
            5 => {
                let again = bytes[at..(at + random.below(40)).min(length)].to_vec();
                let to = random.below(length);
                bytes.splice(to..to, again);
            }
            _ => {
                let end = (at + 4).min(length);
                bytes[at..end].copy_from_slice(&(random.next() as u32).to_le_bytes()[..end - at]);
            }
        }
    }
    bytes
}

fn check(found: Result<Table, TableError>) -> bool {
    match found {
        Ok(table) => {
            assert!(table.rows > 0 && !table.columns.is_empty());
            for column in &table.columns {
                assert_eq!(column.values.len(), table.rows);
                match &column.values {
                    Values::Number(values) => assert!(!values.iter().any(|value| value.is_infinite())),
                    Values::Category { codes, names } => {
                        assert!(names.is_sorted());
                        assert!(codes.iter().all(|code| *code == u32::MAX || (*code as usize) < names.len()));
                    }
                    Values::Date(_) | Values::Text(_) => {}
                }
            }
            assert!(summary(&table).to_string().contains("rows"));
            true
        }
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            false
        }
    }
}

#[test]
fn damaged_files_are_tables_or_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = |name: &str| {
        let path = folder.path().join(name);
        write(&path, &small_table()).expect("a good table");
        std::fs::read(path).expect("what was written")
    };
    let csv = bytes("t.csv");
    let zstd = zstd::encode_all(csv.as_slice(), 3).expect("in memory");
    let files = [
        ("csv", csv, 3_000),
        ("tsv", bytes("t.tsv"), 1_000),
        ("gzip", bytes("t.csv.gz"), 1_000),
        ("zstd", zstd, 1_000),
        ("parquet", bytes("t.parquet"), 3_000),
        ("arrow", bytes("t.arrow"), 3_000),
    ];
    let mut random = Random(7);
    for (name, bytes, times) in files {
        let start = Instant::now();
        let (mut whole, mut refused) = (0, 0);
        for _ in 0..times {
            let damaged = damage(&bytes, &mut random);
            let good = check(read_from(damaged.as_slice(), None, &Options::default()));
            *(if good { &mut whole } else { &mut refused }) += 1;
            if start.elapsed() > Duration::from_secs(60) {
                break;
            }
        }
        // Both outcomes must occur; otherwise the damage would be none or total.
        assert!(refused > 50, "{name}: {whole} tables, {refused} errors");
        assert!(whole > 0 || matches!(name, "gzip" | "zstd"), "{name}: {whole} tables, {refused} errors");
    }
}

#[test]
fn random_bytes_are_tables_or_errors() {
    let mut random = Random(11);
    let marks: [&[u8]; 6] =
        [b"", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"];
    let mut refused = 0;
    for round in 0..3_000 {
        let mut bytes = marks[round % marks.len()].to_vec();
        let few = [b'1', b',', b'\n', b'"', b'\r', b';', b'a', 0xc3, b'-'];
        for _ in 0..random.below(60) {
            bytes.push(if round % 12 == 0 { few[random.below(few.len())] } else { random.next() as u8 });
        }
        let format = (round % 6 == 0).then_some(Format::Csv);
        refused += usize::from(!check(read_from(bytes.as_slice(), format, &Options::default())));
    }
    assert!((2_000..3_000).contains(&refused), "{refused} of 3000");
}

#[test]
fn a_damaged_parquet_file_on_the_disk_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.parquet");
    write(&path, &small_table()).expect("a good table");
    let bytes = std::fs::read(&path).expect("what was written");
    let mut random = Random(13);
    for _ in 0..200 {
        let mut file = std::fs::File::create(&path).expect("writable");
        file.write_all(&damage(&bytes, &mut random)).expect("writable");
        drop(file);
        check(read(&path, &Options::default()));
    }
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("writable");
    let error = read(&path, &Options::default()).expect_err("refused").to_string();
    assert!(error.contains("t.parquet") && error.contains("is damaged, truncated"), "{error}");
}
