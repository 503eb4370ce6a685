//! Tests `fet link` from a user's point of view: its files, messages and refusals.

use std::path::Path;
use std::process::{Command, Output};

use crate::command::{fet, text};

const PEOPLE: &str = "id,given,surname,town\n\
    a1,Anna,Müller,Springfield\na2,Robert,Jones,Shelbyville\na3,Chloe,O'Brien,Ogdenville\na4,,,\na5,Zoe,Quimby,Brockway\n";
const OTHERS: &str = "no,first,last,city\n\
    b1,chloe,OBRIEN,ogdenvile\nb2,Rob,Jonse,Shelbyville\nb3,,,\nb4,anna,MUELLER,springfield\nb5,Xu,Fei,North Haverbrook\n";
const TRUTH: &str = "p,s\na1,b4\na2,b2\na3,b1\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("p.csv", PEOPLE), ("s.csv", OTHERS), ("truth.csv", TRUTH)] {
        std::fs::write(folder.path().join(name), text).expect("writable");
    }
    folder
}

const NAMED: [&str; 5] =
    ["p.csv", "s.csv", "--keys=given,surname,town", "--secondary-keys=first,last,city", "--out=links.csv"];

const NUMBERED: [&str; 4] = ["x.csv", "x.csv", "--keys=x,y", "--out=links.csv"];

fn link(folder: &Path, arguments: &[&str]) -> Output {
    fet(folder, &[["link"].as_slice(), arguments].concat())
}

#[test]
fn text_linkers_find_the_people() {
    for linker in ["clk", "edit"] {
        let folder = folder();
        let more = ["--linker", linker, "--set", "k=1", "--id=id,no", "--truth=truth.csv"];
        let output = link(folder.path(), &[NAMED.as_slice(), &more].concat());
        assert!(output.status.success(), "{output:?}");
        let summary = text(&output.stdout);
        let best = summary.lines().find(|line| line.contains("best F1")).expect("the best threshold");
        assert!(best.contains("1.0000     1.0000     1.0000"), "{linker}: {summary}");
        for part in [
            "primary: 1 rows have empty keys and get no links",
            "secondary: 1 rows have empty keys and get no links",
            "rank   1",
            "never chosen",
        ] {
            assert!(summary.contains(part), "{part} in {summary}");
        }
        let links = std::fs::read_to_string(folder.path().join("links.csv")).expect("the links");
        let mut lines = links.lines();
        assert_eq!(lines.next(), Some("primary_row,secondary_row,rank,similarity,primary_id,secondary_id"));
        let pairs: Vec<(String, String)> = lines
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                (cells[4].to_string(), cells[5].to_string())
            })
            .collect();
        for pair in [("a1", "b4"), ("a2", "b2"), ("a3", "b1")] {
            assert!(pairs.contains(&(pair.0.to_string(), pair.1.to_string())), "{pair:?} in {pairs:?}");
        }
        assert!(
            pairs.iter().all(|(a, b)| a != "a4" && b != "b3"),
            "empty keys are linked with nothing: {pairs:?}"
        );
    }
}

#[test]
fn chooses_the_linker_by_the_kind_of_keys() {
    let folder = folder();
    std::fs::write(folder.path().join("x.csv"), "x,y\n0,0\n1,1\n5,5\n").expect("writable");
    std::fs::write(folder.path().join("y.csv"), "x,y\n1,1.5\n5,5\n9,9\n").expect("writable");
    let numbers = |more: &[&str]| {
        let output = link(
            folder.path(),
            &[["x.csv", "y.csv", "--keys=x,y", "--out=links.csv", "--set=k=1"].as_slice(), more].concat(),
        );
        assert!(output.status.success(), "{output:?}");
        (text(&output.stdout), std::fs::read_to_string(folder.path().join("links.csv")).expect("the links"))
    };
    let (summary, links) = numbers(&[]);
    assert!(summary.contains("by `nearest`"), "{summary}");
    assert_eq!(links, "primary_row,secondary_row,rank,similarity\n0,0,1,-1.8027756\n1,0,1,-0.5\n2,1,1,-0\n");
    assert_eq!(numbers(&["--threshold=-1"]).1.lines().count(), 3);
    for linker in ["psi", "exact"] {
        let (summary, links) = numbers(&["--linker", linker]);
        assert_eq!(links, "primary_row,secondary_row,rank,similarity\n2,1,1,1\n", "{linker}");
        assert!(summary.contains("primary rows with a link: 1 of 3"), "{summary}");
    }
    let output = link(folder.path(), &[NAMED.as_slice(), &["--set=k=2"]].concat());
    assert!(text(&output.stdout).contains("by `clk`"), "{output:?}");
}

#[test]
fn caches_links_and_detects_damaged_files() {
    let folder = folder();
    let run = || {
        let output = link(folder.path(), &[NAMED.as_slice(), &["--set=k=2", "--cache=kept"]].concat());
        assert!(output.status.success(), "{output:?}");
        (std::fs::read(folder.path().join("links.csv")).expect("the links"), text(&output.stderr))
    };
    let (first, warnings) = run();
    assert_eq!(warnings, "");
    let files: Vec<_> = std::fs::read_dir(folder.path().join("kept")).expect("a folder").collect();
    assert_eq!(files.len(), 1);
    assert_eq!(run(), (first.clone(), String::new()));
    let file = files.into_iter().next().expect("one").expect("readable").path();
    std::fs::write(&file, b"something else").expect("writable");
    let (again, warnings) = run();
    assert!(again == first && warnings.contains("computed again"), "{warnings}");
}

/// The cache stores links under the secret: the linker computes links again under another secret,
/// even for the same keys and settings.
#[test]
fn computes_links_under_another_secret_again() {
    let folder = folder();
    std::fs::write(folder.path().join("x.csv"), "x,y\n0,0\n1,1\n5,5\n").expect("writable");
    for (linker, tables) in [("clk", &NAMED[..]), ("federal", &NUMBERED), ("rotation", &NUMBERED)] {
        let cache = folder.path().join(linker);
        for (secret, files) in
            [("one pair's secret", 1), ("another pair's secret", 2), ("one pair's secret", 2)]
        {
            let output = Command::new(env!("CARGO_BIN_EXE_fet"))
                .current_dir(folder.path())
                .args(["link", "--linker", linker, "--set=k=2", "--set=secret_env=FET_TEST_SECRET"])
                .args(tables)
                .arg("--cache")
                .arg(&cache)
                .env("FET_TEST_SECRET", secret)
                .output()
                .expect("the program starts");
            assert!(output.status.success(), "{output:?}");
            let kept = std::fs::read_dir(&cache).expect("a folder").count();
            assert_eq!(kept, files, "{linker} under {secret}");
        }
    }
}

#[test]
fn refuses_bad_input_with_one_message_and_no_files() {
    let check = |arguments: &[&str], parts: &[&str]| {
        let folder = folder();
        std::fs::write(folder.path().join("empty.csv"), "given,surname,town\n").expect("writable");
        std::fs::write(folder.path().join("latin.csv"), b"given,surname,town\nJos\xe9,Lima,Rio\n")
            .expect("writable");
        std::fs::write(folder.path().join("wrong.csv"), "p,s\na1,b9\n").expect("writable");
        std::fs::write(folder.path().join("t.parquet"), "PAR1").expect("writable");
        let output = link(folder.path(), arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        for part in parts {
            assert!(message.contains(part), "{arguments:?}: {part} in {message}");
        }
        assert!(!folder.path().join("links.csv").exists() && !folder.path().join("links.csv.part").exists());
    };
    let keys = "--keys=given,surname,town";
    let out = "--out=links.csv";
    check(
        &["p.csv", "s.csv", "--keys=given,surnam", "--secondary-keys=first,last", out],
        &["p.csv", "`surnam`", "did you mean \"surname\""],
    );
    check(&["p.csv", "s.csv", keys, out], &["s.csv", "lacks the column `given`"]);
    check(&["p.csv", "s.csv", keys, "--secondary-keys=first", out], &["--secondary-keys", "3", "1"]);
    check(&["p.csv", "empty.csv", keys, out], &["empty.csv", "is empty below its header"]);
    check(&["latin.csv", "p.csv", keys, out], &["latin.csv line 2 column `given`", "UTF-8"]);
    check(
        &["p.csv", "p.csv", keys, out, "--linker=nearest"],
        &["p.csv line 2 column `given`", "must be a number", "Anna", "clk"],
    );
    check(&["p.csv", "p.csv", keys, out, "--linker=nearst"], &["did you mean \"nearest\""]);
    check(
        &["p.csv", "p.csv", keys, out, "--linker=clk", "--set=bits=1000"],
        &["`bits`", "power of two", "1000"],
    );
    check(&["p.csv", "p.csv", keys, out, "--set=k=6"], &["neighbours", "5 records", "6"]);
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--set=weights=[1,2]"],
        &["weights", "3 key columns", "2"],
    );
    check(&["p.csv", "p.csv", keys, "--out=nowhere/links.csv"], &["nowhere", "does not exist"]);
    check(&["p.csv", "p.csv", keys, "--out=p.csv"], &["would overwrite"]);
    let damaged = if cfg!(feature = "columnar") { "is damaged" } else { "CSV" };
    check(&["p.csv", "t.parquet", keys, out], &["t.parquet", damaged]);
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--truth=wrong.csv", "--id=id"],
        &["wrong.csv row 0 (from 0)", "secondary", "\"b9\""],
    );
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--truth=wrong.csv"],
        &["wrong.csv row 0 (from 0)", "0 to 4", "\"a1\"", "--id"],
    );
    check(&["p.csv", "nothing.csv", keys, out], &["nothing.csv", "cannot be opened"]);
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--set=secret_env=FET_TEST_NO_SECRET"],
        &["FET_TEST_NO_SECRET", "16 bytes"],
    );
}

/// Creates a hundred titles. The other table has sixty of them, mistyped, and fifteen further titles that are
/// similar to one of the hundred.
pub(crate) fn catalogues(folder: &Path) {
    let word = |at: usize| {
        ["red", "blue", "large", "small", "chair", "table", "lamp", "shelf", "oak", "steel"][at % 10]
    };
    let title = |row: usize| {
        format!(
            "{} {} {} {:x}{:x}",
            word(row),
            word(row / 3 + 4),
            word(row * 7),
            row * 2_654_435_761 % 4_093,
            row * 40_503 % 997
        )
    };
    let (mut ours, mut theirs, mut truth) =
        ("id,title\n".to_string(), "id,title\n".to_string(), "a,b\n".to_string());
    for row in 0..100 {
        ours += &format!("a{row},{}\n", title(row));
    }
    for row in 0..60 {
        theirs += &format!("b{row},{}\n", title(row).replacen('e', "", 1).replacen("la", "al", 1));
        truth += &format!("a{row},b{row}\n");
    }
    for row in 60..90 {
        theirs += &format!("c{row},{}\n", title(row + 1_000));
    }
    for row in 0..15 {
        theirs += &format!("d{row},{} new\n", title(row).replacen('a', "o", 1));
    }
    for (name, text) in [("ours.csv", ours), ("theirs.csv", theirs), ("both.csv", truth)] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
}

/// Without a given threshold, links are not every row's best record.
#[test]
fn estimates_and_prints_a_threshold() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    catalogues(folder.path());
    let run = |more: &[&str]| {
        let arguments = [
            "ours.csv",
            "theirs.csv",
            "--keys=title",
            "--linker=clk",
            "--set=k=1",
            "--out=links.csv",
            "--id=id",
        ];
        let output = link(folder.path(), &[arguments.as_slice(), &["--truth=both.csv"], more].concat());
        assert!(output.status.success(), "{output:?}");
        let links = std::fs::read_to_string(folder.path().join("links.csv")).expect("the links");
        let pairs: Vec<[String; 2]> = links
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                [cells[4].to_string(), cells[5].to_string()]
            })
            .collect();
        (text(&output.stdout), pairs)
    };
    let right =
        |pairs: &[[String; 2]]| pairs.iter().filter(|[a, b]| a[1..] == b[1..] && b.starts_with('b')).count();
    let (summary, all) = run(&["--threshold=none"]);
    assert_eq!(all.len(), 100, "each row has a best record");
    assert!(!summary.contains("estimated"), "{summary}");
    let (summary, links) = run(&[]);
    assert!(summary.contains("estimated: ") && summary.contains("written at threshold"), "{summary}");
    assert!((50..75).contains(&links.len()), "{}: {summary}", links.len());
    assert!(right(&links) >= 50, "{summary}");
    assert_eq!(run(&["--threshold=auto"]).1, links);

    let (summary, links) = run(&["--set=scoring=match-weights"]);
    assert!(summary.contains("estimated: ") && summary.contains("written at threshold"), "{summary}");
    assert!(right(&links) >= 45 && links.len() < 80, "{}: {summary}", links.len());

    let (_, one) = run(&["--assign=one-to-one", "--threshold=none"]);
    let distinct =
        |side: usize| one.iter().map(|pair| &pair[side]).collect::<std::collections::HashSet<_>>().len();
    assert_eq!((distinct(0), distinct(1)), (one.len(), one.len()), "each row in one pair");
    let (_, both) = run(&["--assign=one-to-one"]);
    assert!(both.len() <= one.len() && right(&both) >= right(&links), "{} {}", right(&both), right(&links));
}

#[test]
fn refuses_an_invalid_threshold() {
    let folder = folder();
    for wrong in ["x", "nan", "inf", ""] {
        let output = link(folder.path(), &[NAMED.as_slice(), &[&format!("--threshold={wrong}")]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("--threshold"), "{output:?}");
        assert!(!folder.path().join("links.csv").exists());
    }
    // Five rows are too few for an estimate: the command writes all links, and says so if the user asked for
    // a threshold.
    let output = link(folder.path(), &[NAMED.as_slice(), &["--set=k=1", "--threshold=auto"]].concat());
    assert!(
        output.status.success() && text(&output.stdout).contains("no threshold could be estimated"),
        "{output:?}"
    );
}

/// Codes are not numbers, and identifiers that consist mostly of digits can be linked.
#[test]
fn links_identifiers_verbatim() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).expect("writable");
    write("a.csv", "id\n0123\n123\n77\n");
    write("b.csv", "id\n0123\n123\n99\n");
    let isbn = |reverse: bool| -> String {
        let of = |row: usize| {
            format!(
                "{:09}{}",
                31 * row,
                if row.is_multiple_of(11) { "X".into() } else { (row % 10).to_string() }
            )
        };
        let all = (1..=200).map(|row| of(if reverse { 201 - row } else { row }) + "\n");
        "id\n".to_string() + &all.collect::<String>()
    };
    write("c.csv", &isbn(false));
    write("d.csv", &isbn(true));
    for linker in ["exact", "psi"] {
        let linked = |tables: [&str; 2], more: &[&str]| {
            let output =
                link(path, &[&tables[..], &["--keys=id", "--linker", linker, "--out=l.csv"], more].concat());
            assert!(output.status.success(), "{output:?}");
            let links = std::fs::read_to_string(path.join("l.csv")).expect("the links");
            let pair = |line: &str| line.rsplit_once(",1,1").map(|(rows, _)| rows.to_string());
            (links.lines().skip(1).filter_map(pair).collect::<Vec<_>>(), text(&output.stdout))
        };
        let (pairs, told) = linked(["a.csv", "b.csv"], &[]);
        assert_eq!(pairs, ["0,0", "1,1"], "{linker}");
        assert!(told.contains("key `id` is compared as written"), "{told}");
        assert_eq!(linked(["a.csv", "b.csv"], &["--numbers"]).0.len(), 2, "0123 is 123");
        assert_eq!(linked(["a.csv", "b.csv"], &["--text", "--set=compare=normal"]).0, ["0,0", "1,1"]);
        let (pairs, _) = linked(["c.csv", "d.csv"], &[]);
        assert_eq!(pairs.len(), 200, "{linker}");
        assert_eq!(pairs[0], "0,199");
    }
    // The command shows the reader's notes on keys.
    let output = link(path, &["a.csv", "b.csv", "--keys=id", "--linker=exact", "--numbers", "--out=l.csv"]);
    assert!(text(&output.stderr).contains("a.csv column `id`: leading zeros of numbers"), "{output:?}");
}

/// `fet link` by `exact` and `psi`: the pairs of rows, and all output.
fn equal(primary: &str, secondary: &str, more: &[&str]) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    std::fs::write(path.join("a.csv"), primary).expect("writable");
    std::fs::write(path.join("b.csv"), secondary).expect("writable");
    let by = |linker: &str| {
        let output =
            link(path, &[&["a.csv", "b.csv", "--linker", linker, "--out=l.csv", "--set=k=1"], more].concat());
        assert!(output.status.success(), "{output:?}");
        let links = std::fs::read_to_string(path.join("l.csv")).expect("the links");
        let pair = |line: &str| line.rsplit_once(",1,1").map(|(rows, _)| rows.to_string());
        let told = text(&output.stdout) + &text(&output.stderr);
        (links.lines().skip(1).filter_map(pair).collect::<Vec<_>>(), told)
    };
    let (exact, psi) = (by("exact"), by("psi"));
    assert_eq!(exact.0, psi.0, "exact and psi");
    exact
}

#[test]
fn does_not_link_different_codes_that_look_like_decimals() {
    let id = ["--keys=id"];
    for (primary, secondary, expected) in [
        ("id\n1.1\n1.10\n", "id\n1.10\n1.1\n", &["0,1", "1,0"][..]),
        ("id\n1E2\n100\n", "id\n100\n1E2\n", &["0,1", "1,0"]),
        ("id\n1.1\n2.5\n", "id\n1.10\n2.5\n", &["1,1"]),
        ("id\n+491\n7\n", "id\n491\n7\n", &["1,1"]),
        ("id\n0.12345678901234567890\n7\n", "id\n0.12345678901234567891\n7\n", &["1,1"]),
        ("id\n77.0\n78.0\n", "id\n77\n78\n", &["0,0", "1,1"]),
        ("id\n77\n78\n", "id\n77.0\n78.0\n", &["0,0", "1,1"]),
    ] {
        for more in [&[][..], &["--text"]] {
            if more.is_empty() || !expected.contains(&"0,0") {
                assert_eq!(
                    equal(primary, secondary, &[&id[..], more].concat()).0,
                    expected,
                    "{primary} {more:?}"
                );
            }
        }
    }
    // Read as numbers, as the command asks: they are equal, and a warning says so.
    let (pairs, told) = equal("id\n1.1\n1.10\n", "id\n1.10\n1.1\n", &["--keys=id", "--numbers"]);
    assert_eq!(pairs.len(), 2);
    assert!(told.contains("a.csv, column `id`: 2 different cells equal another one"), "{told}");
    assert!(told.contains("\"1.1\" and \"1.10\""), "{told}");
}

#[test]
fn text_option_compares_no_column_as_numbers() {
    let (pairs, told) = equal("id\n77\n78\n", "id\n77.0\n78\n", &["--keys=id", "--text"]);
    assert_eq!(pairs, ["1,1"]);
    assert!(told.contains("key `id` is compared as written"), "{told}");
    let (pairs, told) = equal("id\nAnn\n", "id\nANN\n", &["--keys=id", "--text"]);
    assert_eq!((pairs.len(), told.contains("compared as names")), (1, true), "{told}");
}

#[test]
fn rows_with_an_empty_key_cell_get_no_links() {
    let table = "name,dob\nAnn,\nAnn,1990-01-02\n,1990-01-02\nBob,1991-02-03\n";
    let (pairs, told) = equal(table, table, &["--keys=name,dob"]);
    assert_eq!(pairs, ["1,1", "3,3"]);
    assert!(told.contains("primary: 2 rows have an empty key cell"), "{told}");
}

#[test]
fn refuses_latitude_before_longitude() {
    let folder = folder();
    std::fs::write(
        folder.path().join("x.csv"),
        "lat,lon,school_lng,Latitude\n48.8,2.3,2.3,48.8\n48.9,2.4,2.4,48.9\n",
    )
    .expect("writable");
    for keys in ["--keys=lat,lon", "--keys=Latitude,school_lng", "--keys=lat,school_lng"] {
        let output = link(
            folder.path(),
            &["x.csv", "x.csv", keys, "--set=metric=haversine", "--set=k=1", "--out=l.csv"],
        );
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains("--keys: ") && error.contains("longitude comes first"), "{error}");
    }
    let output = link(
        folder.path(),
        &["x.csv", "x.csv", "--keys=lon,lat", "--set=metric=haversine", "--set=k=1", "--out=l.csv"],
    );
    assert!(output.status.success(), "{output:?}");
}
