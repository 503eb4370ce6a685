//! `fet link` as a user meets it: what it writes, what it says, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

use crate::command::fet;

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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
            "primary: 1 rows have empty keys",
            "secondary: 1 rows have empty keys",
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
fn numbers_and_texts_get_a_linker_of_their_own_and_equal_keys_need_none_shown() {
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
fn links_are_kept_and_a_damaged_file_is_noticed() {
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
    assert!(again == first && warnings.contains("linked anew"), "{warnings}");
}

/// What is kept was linked under a secret: under another it is not found, though keys and settings are the same.
#[test]
fn links_under_another_secret_are_linked_anew() {
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
fn bad_input_is_one_message_and_leaves_nothing() {
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
    check(&["p.csv", "s.csv", keys, out], &["s.csv", "no column `given`"]);
    check(&["p.csv", "s.csv", keys, "--secondary-keys=first", out], &["--secondary-keys", "3", "1"]);
    check(&["p.csv", "empty.csv", keys, out], &["empty.csv", "no rows"]);
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
    check(&["p.csv", "t.parquet", keys, out], &["t.parquet", "CSV"]);
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--truth=wrong.csv", "--id=id"],
        &["wrong.csv data row 1", "secondary", "\"b9\""],
    );
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--truth=wrong.csv"],
        &["wrong.csv data row 1", "0 to 4", "\"a1\"", "--id"],
    );
    check(&["p.csv", "nothing.csv", keys, out], &["nothing.csv", "cannot be opened"]);
    check(
        &["p.csv", "p.csv", keys, out, "--set=k=1", "--set=secret_env=FET_TEST_NO_SECRET"],
        &["FET_TEST_NO_SECRET", "16 bytes"],
    );
}
