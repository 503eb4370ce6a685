//! Tests `fet psi ask`, `answer` and `open`: a querier and a data holder who exchange only two files.

mod refusals;

use std::fs;
use std::path::Path;

use crate::command::{fet, read, text};

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = fet(folder, &[&["psi"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

/// Checks that the command fails with this short message and leaves the folder unchanged.
fn refused(folder: &Path, arguments: &[&str], told: &str) {
    let files = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> =
            entries.map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect();
        files.sort();
        files
    };
    let before = files(folder);
    let output = fet(folder, &[&["psi"], arguments].concat());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(error.contains(told) && error.trim_end().lines().count() <= 6, "{arguments:?}: {error}");
    assert!(files(folder) == before, "{arguments:?} changed the folder");
}

/// Returns the start of a file's binary part, after two lines.
fn body(file: &[u8]) -> usize {
    let mut ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.nth(1).expect("two lines").0 + 1
}

/// Creates two tables with repeated keys, different spellings, and missing keys in some rows.
fn tables() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut a = String::from("name,town,more\n");
    let mut b = String::from("wealth,last name,place,note\n");
    for row in 0..60_usize {
        let (name, town) = (row * 7 % 23, row % 2);
        match row % 9 {
            4 => a += ",,x\n",
            _ => a += &format!("Pérson {name},Town. {town},x\n"),
        }
    }
    for row in 0..45_usize {
        let (name, town) = (row * 5 % 31, row % 2);
        match row % 7 {
            3 => b += &format!("{row},,,empty\n"),
            _ => {
                b += &format!("{row},person {name},TOWN {town},\"note, \"\"{row}\"\"{}\"\n", "!".repeat(row))
            }
        }
    }
    fs::write(folder.path().join("a.csv"), a).expect("writable");
    fs::write(folder.path().join("b.csv"), b).expect("writable");
    fs::write(folder.path().join("numbers.csv"), "x\n1\n2.5\n0\n2\n2\n").expect("writable");
    fs::write(folder.path().join("others.csv"), "x\n-0\n2\n2.5\n7\n1.0\n2\n").expect("writable");
    folder
}

const ASK: [&str; 3] = ["ask", "a.csv", "--keys=name,town"];
const ANSWER: [&str; 4] = ["answer", "r.psi", "b.csv", "--keys=last name,place"];

/// Creates a request and an answer, in files of these names.
fn exchange(folder: &Path, form: &str, more: &[&str], name: &str) {
    let [request, secret, answer] =
        [format!("{name}.psi"), format!("{name}.secret"), format!("{name}.answer")];
    let want = format!("--want={form}");
    let (out, own) = (format!("--out={request}"), format!("--secret={secret}"));
    let told = done(folder, &[&ASK[..], &[&want, &out, &own]].concat());
    assert!(
        told.contains(&format!("asked for {form} of 60 rows"))
            && told.contains("key `town` is compared as names"),
        "{told}"
    );
    assert!(told.contains("7 rows have an empty key cell"), "{told}");
    let (give, out) = (format!("--give={form}"), format!("--out={answer}"));
    let told = done(folder, &[&["answer", &request], &ANSWER[2..], &[&give, &out], more].concat());
    assert!(
        told.contains("answered a request of 60 rows from a table of 45 rows")
            && told.contains("the querier learns"),
        "{told}"
    );
}

/// Returns the links that `fet link` finds with this linker, with all equal records.
fn linked(folder: &Path, linker: &str, tables: [&str; 2], keys: [&str; 2], neighbours: usize) -> String {
    let (linker, out) = (format!("--linker={linker}"), "--out=linked.csv");
    let [keys, others] = [format!("--keys={}", keys[0]), format!("--secondary-keys={}", keys[1])];
    let set = format!("--set=neighbours={neighbours}");
    let output = fet(folder, &["link", tables[0], tables[1], &keys, &others, &linker, &set, out]);
    assert!(output.status.success(), "{output:?}");
    read(folder, "linked.csv")
}

#[test]
fn finds_the_same_links_as_the_linkers() {
    let folder = tables();
    let path = folder.path();
    exchange(path, "links", &[], "r");
    let told = done(path, &["open", "r.answer", "--secret=r.secret", "--out=links.csv"]);
    let links = read(path, "links.csv");
    assert!(links.lines().count() > 20, "{links}");
    assert!(told.contains(&format!("{} pairs written", links.lines().count() - 1)), "{told}");
    for linker in ["exact", "psi"] {
        let names = ["name,town", "last name,place"];
        assert_eq!(linked(path, linker, ["a.csv", "b.csv"], names, 45), links, "{linker}");
    }
    // Files for the other side contain no part of a table, and only their owners may read the files.
    for file in ["r.psi", "r.answer"] {
        let bytes = fs::read(path.join(file)).expect("readable").to_ascii_lowercase();
        for word in [&b"person"[..], b"town", b"note", b"name"] {
            assert!(!bytes.windows(word.len()).any(|part| part == word), "{} in {file}", text(word));
        }
    }
    #[cfg(unix)]
    for file in ["r.psi", "r.answer", "r.secret"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path.join(file)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn compares_numbers_by_value_and_prints_links() {
    let folder = tables();
    let path = folder.path();
    done(path, &["ask", "numbers.csv", "--keys=x", "--out=r.psi", "--secret=s"]);
    done(path, &["answer", "r.psi", "others.csv", "--keys=x", "--give=links", "--out=answer"]);
    let output = fet(path, &["psi", "open", "answer", "--secret=s", "--out=-"]);
    assert!(text(&output.stderr).contains("7 pairs"), "{output:?}");
    assert_eq!(text(&output.stdout), linked(path, "psi", ["numbers.csv", "others.csv"], ["x", "x"], 6));
    // As texts, 1e0 differs from 1 and 2.50 from 2.5, and a missing key equals no key.
    for (missing, empty, pairs) in
        [("--missing=unknown", false, "5 pairs"), ("--missing=x,2", true, "1 pairs")]
    {
        let secret = format!("--secret={}", &missing[10..]);
        let ask = ["ask", "numbers.csv", "--keys=x", "--text", missing, "--out=r.psi", &secret];
        assert_eq!(done(path, &ask).contains("2 rows have an empty key cell"), empty);
        done(path, &["answer", "r.psi", "others.csv", "--keys=x", "--give=links", "--out=answer"]);
        let told = done(path, &["open", "answer", &secret, "--out=l.csv.gz"]);
        assert!(told.contains(pairs), "{told}");
        assert!(fs::read(path.join("l.csv.gz")).expect("readable").starts_with(&[0x1f, 0x8b]));
    }
    done(path, &["ask", "numbers.csv", "--keys=x", "--out=r.psi", "--secret=u"]);
    refused(
        path,
        &["answer", "r.psi", "b.csv", "--keys=place", "--give=links", "--out=x"],
        "b.csv, column `place`: the request compares this column as numbers, but no cell is a number",
    );
}

/// Splits a line of CSV into cells.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut().expect("one at least");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    cells
}

#[test]
fn reveals_the_payload_of_common_rows_only() {
    let folder = tables();
    let path = folder.path();
    exchange(path, "links", &[], "l");
    done(path, &["open", "l.answer", "--secret=l.secret", "--out=links.csv"]);
    exchange(path, "payload", &["--payload=note,wealth"], "p");
    let told = done(path, &["open", "p.answer", "--secret=p.secret", "--out=payload.csv"]);
    let (links, payload, owned) = (read(path, "links.csv"), read(path, "payload.csv"), read(path, "b.csv"));
    let owned: Vec<Vec<String>> = owned.lines().skip(1).map(cells).collect();
    let mut expected = vec!["primary_row,secondary_row,rank,similarity,note,wealth".to_string()];
    for line in links.lines().skip(1) {
        let row = &owned[cells(line)[1].parse::<usize>().expect("a row")];
        expected.push(format!("{line},\"{}\",{}", row[3].replace('"', "\"\""), row[0]));
    }
    assert_eq!(payload.lines().collect::<Vec<_>>(), expected, "{told}");
    // Each record consists of a tag, the longest row's 68 bytes padded to 128, and an authentication tag, and
    // contains no cell in the clear.
    let answer = fs::read(path.join("p.answer")).expect("readable");
    assert_eq!(answer.len() - body(&answer) - 32, 60 * 32 + 45 * (16 + 128 + 16));
    // Six such bytes in a row occur in random bytes of this length with probability 10^-10.
    assert!(!text(&answer).contains("!!!!!!"));
}

#[test]
fn cardinality_counts_distinct_common_keys() {
    let folder = tables();
    let path = folder.path();
    exchange(path, "links", &[], "l");
    done(path, &["open", "l.answer", "--secret=l.secret", "--out=links.csv"]);
    let names = read(path, "a.csv");
    let names: Vec<&str> = names.lines().skip(1).collect();
    let links = read(path, "links.csv");
    let rows = links.lines().skip(1).filter_map(|line| line.split(',').next()?.parse::<usize>().ok());
    let common: std::collections::BTreeSet<&str> = rows.map(|row| names[row]).collect();
    exchange(path, "cardinality", &[], "c");
    let told = done(path, &["open", "c.answer", "--secret=c.secret"]);
    assert!(told.starts_with(&format!("{} distinct keys are in both tables", common.len())), "{told}");
    assert!(common.len() > 5, "{told}");
}

/// A count that could not be printed is not lost.
#[cfg(target_os = "linux")]
#[test]
fn uses_up_the_secret_only_after_printing_the_count() {
    let folder = tables();
    let path = folder.path();
    exchange(path, "cardinality", &[], "c");
    let full = fs::File::options().write(true).open("/dev/full").expect("there");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_fet"))
        .current_dir(path)
        .args(["psi", "open", "c.answer", "--secret=c.secret"])
        .stdout(full)
        .output()
        .expect("it runs");
    let error = text(&output.stderr);
    assert!(
        output.status.code() == Some(75) && error.contains("the secret can still open the answer"),
        "{output:?}"
    );
    assert!(
        done(path, &["open", "c.answer", "--secret=c.secret"]).contains("distinct keys are in both tables")
    );
}

/// Numbers that are equal in 64 bits differ as texts.
#[test]
fn compares_long_numbers_as_text() {
    let folder = tables();
    let path = folder.path();
    fs::write(path.join("long.csv"), "id\n1234567890123456789\n42\n").expect("writable");
    fs::write(path.join("longer.csv"), "id\n1234567890123456788\n42\n").expect("writable");
    done(path, &["ask", "long.csv", "--keys=id", "--out=t.psi", "--secret=t.secret"]);
    done(path, &["answer", "t.psi", "longer.csv", "--keys=id", "--give=links", "--out=t.answer"]);
    done(path, &["open", "t.answer", "--secret=t.secret", "--out=t.csv"]);
    assert_eq!(read(path, "t.csv"), "primary_row,secondary_row,rank,similarity\n1,1,1,1\n");
    for linker in ["exact", "psi"] {
        let linked = linked(path, linker, ["long.csv", "longer.csv"], ["id", "id"], 1);
        let equal: Vec<&str> = linked.lines().filter(|line| line.ends_with(",1")).collect();
        assert_eq!(equal, ["1,1,1,1"], "{linker}");
    }
}

/// The cells of an account go only to a querier with its exact identifier, in the same letters and signs.
#[test]
fn compares_identifiers_verbatim() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let wants = ["--want=payload", "--keys=id"];
    let payload = |primary: &[&str], others: &[&str], more: &[&str]| {
        let table =
            |cells: &[&str]| -> String { cells.iter().map(|cell| format!("{cell},of {cell}\n")).collect() };
        fs::write(path.join("a.csv"), format!("id,x\n{}", table(primary))).expect("writable");
        fs::write(path.join("b.csv"), format!("id,x\n{}", table(others))).expect("writable");
        let _ = fs::remove_file(path.join("s"));
        let told = done(path, &[&["ask", "a.csv", "--out=r.psi", "--secret=s"], &wants[..], more].concat());
        assert!(told.contains("key `id` is compared "), "{told}");
        let give = ["--keys=id", "--give=payload", "--payload=x", "--out=b.psi"];
        done(path, &[&["answer", "r.psi", "b.csv"], &give[..]].concat());
        done(path, &["open", "b.psi", "--secret=s", "--out=l.csv"]);
        let links = read(path, "l.csv");
        links
            .lines()
            .skip(1)
            .map(|line| line.rsplit(',').next().unwrap_or_default().to_string())
            .collect::<Vec<_>>()
    };
    let account = ["001A0000006Vm9r"];
    assert_eq!(payload(&account, &["001A0000006VM9R", "001A0000006Vm9r"], &[]), ["of 001A0000006Vm9r"]);
    let mail = ["john-smith@example.org"];
    assert_eq!(
        payload(&mail, &["john.smith@example.org", "John-Smith@example.org"], &[]),
        Vec::<String>::new()
    );
    assert_eq!(payload(&["0123", "77"], &["123", "0123", "77.0"], &[]), ["of 0123"]);
    assert_eq!(
        payload(&["123", "77"], &["0123", "77.0"], &[]),
        ["of 77.0"],
        "numbers, and a code that is none"
    );
    assert_eq!(payload(&["77"], &["77.0", "77"], &["--text"]), ["of 77"]);
    assert_eq!(payload(&["1.1", "1.10"], &["1.10"], &[]), ["of 1.10"]);
    assert_eq!(payload(&["1.1", "2.5"], &["1.10", "2.5"], &[]), ["of 2.5"]);
    assert_eq!(payload(&["1E2", "7"], &["100", "7"], &[]), ["of 7"]);
    assert_eq!(payload(&["100", "7"], &["1E2", "7.0"], &[]), ["of 7.0"]);
    assert_eq!(payload(&["123456789X", "1234567890"], &["1234567890", "123456789x"], &[]), ["of 1234567890"]);
    assert_eq!(payload(&["M\u{fc}ller"], &["MULLER"], &[]), ["of MULLER"], "names keep their normal form");
    assert_eq!(payload(&["M\u{fc}ller"], &["MULLER"], &["--compare=verbatim"]), Vec::<String>::new());
    // The data holder decides whether to ignore case.
    done(path, &["ask", "a.csv", "--keys=id", "--compare=normal", "--out=n.psi", "--secret=n"]);
    fs::write(path.join("b.csv"), "id,x\na1,1\nA1,2\n").expect("writable");
    let answer = ["answer", "n.psi", "b.csv", "--keys=id", "--give=links", "--out=n.answer"];
    refused(path, &answer, "b.csv, column `id`: the request ignores case");
    done(path, &[&answer[..], &["--compare=normal"]].concat());
}

/// A request with many more rows than the table could list all possible keys.
#[test]
fn refuses_a_request_with_too_many_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let rows: String = (0..10_001).map(|row| format!("{row}\n")).collect();
    fs::write(path.join("all.csv"), format!("id\n{rows}")).expect("writable");
    fs::write(path.join("few.csv"), "id\n5\n7\n").expect("writable");
    done(path, &["ask", "all.csv", "--keys=id", "--out=r.psi", "--secret=s"]);
    let answer = ["answer", "r.psi", "few.csv", "--keys=id", "--give=links", "--out=a.psi"];
    refused(path, &answer, "asks about 10001 rows, and --at-most refuses more than 10000 (this table has 2)");
    done(path, &[&answer[..], &["--at-most=10001"]].concat());
}
