//! Tables: a valid table with one error, read by each command that reads tables, and seeded changes.

use crate::abuse::base::{shops, streets};
use crate::abuse::script::{Base, Expect, Script, Step};
use crate::mutate;

use Edit::{Bytes, Cell, Column, First, Row, Swap, Tail};

const AREA: &str = "table";

/// Change of a table.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// Replaces every occurrence of a text.
    Swap(&'static str, &'static str),
    /// Replaces the first occurrence of a text.
    First(&'static str, &'static str),
    /// Replaces a cell by row and column (row 0 is the header).
    Cell(usize, usize, &'static str),
    /// Replaces a whole row.
    Row(usize, &'static str),
    /// Replaces a column below the header.
    Column(usize, &'static str),
    /// Appends a text.
    Tail(&'static str),
    /// Replaces the whole content.
    Bytes(&'static [u8]),
}

/// Name, change, expected results, and text that a refusal must contain. The letters are for `run` with the
/// table as the primary's, `run` with the table as a secondary's, `data show`, `link` and `predict`: R
/// refused, A accepted, E either, - not tried.
type TableCase = (&'static str, Edit, &'static str, &'static str);

const CASES: &[TableCase] = &[
    ("semicolons", Swap(",", ";"), "AAAAA", ""),
    ("tabs", Swap(",", "\t"), "AAAAA", ""),
    ("bars", Swap(",", "|"), "AAAAA", ""),
    ("colons", Swap(",", ":"), "EEEEE", "t.csv"),
    ("spaces", Swap(",", " "), "EEEEE", "t.csv"),
    ("header with semicolons", Row(0, "lon;lat;kind;opened;size;busy"), "RRERR", "t.csv"),
    ("a row with semicolons", Row(9, "0.1;0.2;cafe;2001-01-15;40;no"), "RRRRR", "t.csv"),
    ("CRLF", Swap("\n", "\r\n"), "AAAAA", ""),
    ("CR", Swap("\n", "\r"), "EEEEE", "t.csv"),
    ("CR CR LF", Swap("\n", "\r\r\n"), "EEEEE", "t.csv"),
    ("BOM", First("lon", "\u{feff}lon"), "AAAAA", ""),
    ("BOM in the middle", Cell(7, 2, "\u{feff}cafe"), "E-EEE", "t.csv"),
    ("no line end", Tail(""), "AAAAA", ""),
    ("blank lines at the end", Tail("\n\n\n"), "AAAAA", ""),
    ("a blank line", First("\n0", "\n\n0"), "EEEEE", "t.csv"),
    ("a line of blanks", Row(9, "   "), "RRRRR", "t.csv"),
    ("a comment first", First("lon", "# by me\nlon"), "RRERR", "t.csv"),
    ("quoted cells", Cell(9, 2, "\"cafe\""), "A-AAA", ""),
    ("a quoted line end", Cell(9, 2, "\"ca\nfe\""), "E-EEE", "t.csv"),
    ("a quoted delimiter", Cell(9, 2, "\"ca,fe\""), "A-AAA", ""),
    ("an unclosed quote in a row", Cell(20, 2, "\"cafe"), "RRRRR", "t.csv"),
    ("an unclosed quote in a key", Cell(20, 0, "\"0.5"), "RRRRR", "t.csv"),
    ("an unclosed quote in the header", Cell(0, 2, "\"kind"), "RRRRR", "t.csv"),
    ("an unclosed quote at the end", Tail("0.5,0.5,\"cafe"), "RRRRR", "t.csv"),
    ("a quote in a cell", Cell(9, 2, "ca\"fe"), "E-EEE", "t.csv"),
    ("text behind a quote", Cell(9, 2, "\"ca\"fe"), "E-EEE", "t.csv"),
    ("a quoted quote", Cell(9, 2, "\"ca\"\"fe\""), "A-AAA", ""),
    ("NUL in a text", Cell(9, 2, "ca\0fe"), "E-EEE", "t.csv"),
    ("NUL in a key", Cell(9, 0, "0.\x005"), "RREEE", "t.csv"),
    ("ESC in a text", Cell(9, 2, "\u{1b}[31mcafe"), "E-EEE", "t.csv"),
    ("a right-to-left mark", Cell(9, 2, "\u{202e}cafe"), "E-EEE", "t.csv"),
    ("a short row", Row(9, "0.1,0.2"), "RRRRR", "9|10|t.csv"),
    ("a long row", Row(9, "0.1,0.2,cafe,2001-01-15,40,no,1,2"), "RRRRR", "9|10|t.csv"),
    ("a row of one cell", Row(9, "0.1"), "RRRRR", "9|10|t.csv"),
    ("the last row cut", Tail("0.5,0.5,ca"), "RRRRR", "t.csv"),
    ("no header", First("lon,lat,", ""), "RRERR", "t.csv"),
    ("header alone", Bytes(b"lon,lat,kind,opened,size,busy\n"), "RRERR", "t.csv"),
    (
        "one row",
        Bytes(b"lon,lat,kind,opened,size,busy\n0.1,0.2,cafe,2001-01-15,40,no\n"),
        "RRAEA",
        "t.csv|record|neighbours|row",
    ),
    ("nothing", Bytes(b""), "RRRRR", "t.csv"),
    ("a line end alone", Bytes(b"\n"), "RRRRR", "t.csv"),
    ("NUL alone", Bytes(&[0; 4096]), "RRRRR", "t.csv"),
    ("UTF-16", Bytes(b"\xff\xfel\0o\0n\0,\0l\0a\0t\0\n\x001\0,\x002\0\n\0"), "RRRRR", "t.csv"),
    ("UTF-16, big end first", Bytes(b"\xfe\xff\0l\0o\0n\0,\0l\0a\0t\0\n\x001\0,\x002\0\n"), "RRRRR", "t.csv"),
    ("Latin-1", Bytes(b"lon,lat,kind,opened,size,busy\n1,2,caf\xe9,2001-01-15,4,no\n"), "RREEE", "t.csv"),
    ("a zip archive", Bytes(b"PK\x03\x04\x14\0\0\0\x08\0\x21\x52\x9b\x5e\xa3\xc0"), "RRRRR", "t.csv"),
    ("a gzip archive", Bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\xc9\xcf\xd3\x01"), "RRRRR", "t.csv"),
    ("a key that is a word", Cell(9, 0, "east"), "RRERR", "lon"),
    ("a key that is empty", Cell(9, 0, ""), "RRARR", "lon"),
    ("a key that is NA", Cell(9, 0, "NA"), "RRARR", "lon"),
    ("a key that is nan", Cell(9, 0, "nan"), "RRERR", "lon"),
    ("a key that is inf", Cell(9, 0, "inf"), "RRERR", "lon"),
    ("a key that is 1e400", Cell(9, 0, "1e400"), "RRERR", "lon"),
    ("a key that is 1e300", Cell(9, 0, "1e300"), "RRERR", "lon"),
    ("a key with a decimal comma", Cell(9, 0, "\"0,5\""), "RRERR", "lon"),
    ("a key with letters behind", Cell(9, 0, "12abc"), "RRERR", "lon"),
    ("a key in hexadecimal", Cell(9, 0, "0x10"), "RRERR", "lon"),
    ("a key with an underscore", Cell(9, 0, "1_000"), "RRERR", "lon"),
    ("a key in other digits", Cell(9, 0, "\u{661}"), "RRERR", "lon"),
    ("a key with blanks", Cell(9, 0, " 0.5 "), "EEEEE", "lon"),
    ("a key with a unit", Cell(9, 0, "0.5 km"), "RRERR", "lon"),
    (
        "a key of a long text",
        Cell(9, 0, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        "RRERR",
        "lon",
    ),
    ("keys that are all empty", Column(0, ""), "RREEE", "lon"),
    ("keys that are all equal", Column(0, "0.5"), "EEAAE", "lon"),
    ("a column twice", Cell(0, 2, "lat"), "RRRRR", "lat"),
    ("a feature twice", Swap("opened,size", "size,size"), "R-REE", "size"),
    ("a column without a name", Cell(0, 2, ""), "EEEEE", "t.csv"),
    ("a name with a line end", Cell(0, 2, "\"ki\nnd\""), "RRREE", "t.csv"),
    ("a name with ESC", Cell(0, 2, "ki\u{1b}[31mnd"), "RRREE", "t.csv"),
    ("a name with NUL", Cell(0, 2, "ki\0nd"), "RRREE", "t.csv"),
    ("a name with a quote", Cell(0, 2, "\"ki\"\"nd\""), "EEEEE", "t.csv"),
    ("names that differ in case", Cell(0, 2, "LON"), "EEEEE", "t.csv"),
    ("a name with a blank", Cell(0, 0, " lon"), "EEEEE", "lon"),
    ("a missing key", Cell(0, 0, "longitude"), "RRARR", "lon"),
    ("no label", Swap(",busy", ",bus"), "R-AEE", "busy"),
    ("one class", Swap("yes", "no"), "R-AAE", "busy"),
    ("three classes", Cell(9, 5, "maybe"), "R-AAE", "busy"),
    ("a missing label", Cell(9, 5, ""), "R-AAE", "busy"),
    ("a label in capitals", Cell(9, 5, "NO"), "R-AAE", "busy"),
    ("a number beyond 32 bits", Cell(9, 4, "1e300"), "R-EAR", "size"),
    ("a negative number beyond 32 bits", Cell(9, 4, "-1e39"), "R-EAR", "size"),
    ("a number near the end of 32 bits", Cell(9, 4, "3e38"), "E-EAE", "size|t.csv"),
    ("a number beyond 64 bits", Cell(9, 4, "1e400"), "R-EAE", "size"),
    ("a tiny number", Cell(9, 4, "1e-320"), "E-AAE", "size"),
    ("an infinite number", Cell(9, 4, "inf"), "E-EAE", "size"),
    ("a number that is a word", Cell(9, 4, "many"), "E-EAR", "size"),
    ("a column of nothing", Column(4, ""), "E-EAE", "size"),
    ("a column of NA", Column(4, "NA"), "E-EAE", "size"),
    ("a column of one value", Column(4, "7"), "E-AAE", "size"),
    ("a day that is none", Cell(9, 3, "2001-02-30"), "E-EAE", "opened"),
    ("a year of 9 digits", Cell(9, 3, "999999999-01-01"), "E-EAE", "opened"),
    ("a date that is a word", Cell(9, 3, "soon"), "E-EAR", "opened"),
    ("a new category", Cell(9, 2, "zoo"), "A-AAA", ""),
    (
        "a row twice",
        Tail("0.5000,0.5000,cafe,2001-01-15,40,no\n0.5000,0.5000,cafe,2001-01-15,40,no\n"),
        "A-AAA",
        "",
    ),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let lines = CASES.iter().flat_map(|(name, edit, right, names)| {
        let of = |(place, mark): (usize, char)| {
            let expect = match mark {
                'R' => Expect::Refused,
                'A' => Expect::Accepted,
                'E' => Expect::Either,
                _ => return None,
            };
            Some(reader(place, name, &edited(*edit, place == 1), expect, names))
        };
        right.chars().enumerate().filter_map(of)
    });
    let mutated = (0..150u64).map(|number| {
        let mut rng = mutate::generator(seed, AREA, number);
        let place = number as usize % 5;
        let text = if place == 1 { streets() } else { shops() };
        let bytes = match number / 5 % 2 {
            0 => mutate::bytes(text.as_bytes(), &mut rng),
            _ => mutate::values(&text, &[','], &mut rng).into_bytes(),
        };
        reader(place, &format!("change {number}"), &bytes, Expect::Either, "")
    });
    let large = large().into_iter().flat_map(|(name, text)| {
        [0, 2, 3].map(|place| {
            let mut case = reader(place, name, text.as_bytes(), Expect::Either, "t.csv|column");
            // The command should end at once; the limit allows for a slow machine.
            case.steps[0].seconds = 10;
            case.slow()
        })
    });
    lines.chain(large).chain(mutated).chain(aligned()).collect()
}

/// Cases of tables whose records correspond to the primary's rows by order: other lengths, drawn records, and
/// new rows.
fn aligned() -> Vec<Script> {
    const ALIGNED: &str = "--set 'linker={ kind = \"aligned\", neighbours = 1 }'";
    let streets = streets();
    let (header, body) = streets.split_once('\n').expect("a table has a header");
    let first = body.lines().next().expect("a table has rows");
    let run = format!("run shops.toml --out out {ALIGNED}");
    let lengths = [
        ("a record more on top", format!("{header}\n{first}\n{body}")),
        ("a record more at the end", format!("{streets}{first}\n")),
        ("a record less on top", format!("{header}\n{}", body.split_once('\n').map_or("", |(_, rest)| rest))),
        ("each record twice", format!("{streets}{body}")),
        ("one record", format!("{header}\n{first}\n")),
    ];
    let other = |(name, table): (&str, String)| {
        let link = "link shops.csv streets.csv --keys lon,lat --linker aligned --out l.csv".to_string();
        [(run.clone(), "run"), (link, "link")].map(|(command, by)| {
            let step = Step::new(command, Expect::Refused).names("60 primary records");
            let case = Script::new(AREA, format!("aligned, {name}: {by}"), Base::Tables);
            case.step(step).file("streets.csv", table.as_bytes())
        })
    };
    let drawn = Step::new(format!("{run} --set data.rows=60"), Expect::Refused).names("data.rows");
    let drawn = Script::new(AREA, "aligned, drawn records", Base::Tables).step(drawn);
    let new = [
        ("predict out --rows shops.csv --out p.csv", "their own records"),
        ("predict out --rows new.csv --out p.csv", "their own records"),
        ("predict out --rows new.csv --out p.csv --data nowhere", "--data nowhere"),
        ("predict out --rows new.csv --out p.csv --data shops.csv", "--data shops.csv"),
        ("explain out", "aligned"),
    ];
    let new = new.into_iter().map(|(command, names)| {
        let case = Script::new(AREA, format!("aligned, new rows: {command}"), Base::Tables);
        let refused = Step::new(command, Expect::Refused).prepare("head -4 shops.csv > new.csv").names(names);
        case.step(Step::new(run.clone(), Expect::Accepted)).step(refused)
    });
    lengths.into_iter().flat_map(other).chain([drawn]).chain(new).collect()
}

/// Returns a case of a command that reads the table `t.csv`.
fn reader(place: usize, name: &str, table: &[u8], expect: Expect, names: &str) -> Script {
    let (by, base, command) = [
        ("run", Base::Tables, "run shops.toml --out out --set data.primary.file=t.csv"),
        ("run, a secondary", Base::Tables, "run other.toml --out out"),
        ("data show", Base::Tables, "data show t.csv"),
        (
            "link",
            Base::Tables,
            "link t.csv streets.csv --keys lon,lat --linker nearest --set k=2 --out l.csv",
        ),
        ("predict", Base::Finished, "predict result --rows t.csv"),
    ][place];
    let case = Script::new(AREA, format!("{name}: {by}"), base);
    let case = case.step(Step::new(command, expect).names(names)).file("t.csv", table);
    if place == 1 {
        case.file("other.toml", crate::abuse::base::SHOPS.replace("streets.csv", "t.csv"))
    } else {
        case
    }
}

/// Returns the table with a change. A secondary's table has only the columns 0 to 3.
fn edited(edit: Edit, secondary: bool) -> Vec<u8> {
    let text = if secondary { streets() } else { shops() };
    let rows =
        || text.lines().map(|line| line.split(',').map(String::from).collect()).collect::<Vec<Vec<String>>>();
    let joined = |rows: Vec<Vec<String>>| rows.iter().map(|row| row.join(",") + "\n").collect::<String>();
    match edit {
        Swap(from, to) => text.replace(from, to),
        First(from, to) => text.replacen(from, to, 1),
        Cell(row, column, cell) => {
            let mut rows = rows();
            rows[row][column] = cell.to_string();
            joined(rows)
        }
        Row(row, line) => {
            let mut rows = rows();
            rows[row] = vec![line.to_string()];
            joined(rows)
        }
        Column(column, cell) => {
            let mut rows = rows();
            rows.iter_mut().skip(1).for_each(|row| row[column] = cell.to_string());
            joined(rows)
        }
        Tail("") => text.trim_end().to_string(),
        Tail(tail) => text + tail,
        Bytes(bytes) => return bytes.to_vec(),
    }
    .into_bytes()
}

fn large() -> Vec<(&'static str, String)> {
    let add = |header: &str, cell: &dyn Fn(usize) -> String| {
        let line = |(row, line): (usize, &str)| {
            format!("{line},{}\n", if row == 0 { header.to_string() } else { cell(row) })
        };
        shops().lines().enumerate().map(line).collect::<String>()
    };
    let names: Vec<String> = (0..20_000).map(|column| format!("c{column}")).collect();
    let numbers = vec!["1"; 20_000].join(",");
    vec![
        ("20,000 columns", add(&names.join(","), &|_| numbers.clone())),
        ("cells of 100,000 characters", add("note", &|row| "x".repeat(100_000 + row))),
        ("a name of 1,000,000 characters", add(&"n".repeat(1_000_000), &|row| row.to_string())),
        ("a key of 100,000 digits", shops().replacen("0.0000", &format!("0.{}", "1".repeat(100_000)), 1)),
        ("a number of 100,000 digits", add("note", &|row| "1".repeat(100_000 + row % 2))),
    ]
}
