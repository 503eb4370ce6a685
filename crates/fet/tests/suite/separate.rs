//! Tests `fet link schema`, `encode` and `match`: owners and a linkage unit who share only files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::command::text;

const SECRET: &str = "the secret of all owners";

/// Runs `fet link` with a secret.
fn link(folder: &Path, secret: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fet"))
        .arg("link")
        .args(arguments)
        .current_dir(folder)
        .env("FET_LINK_SECRET", secret)
        .output()
        .expect("fet runs")
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = link(folder, SECRET, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

/// Returns a table of persons with names and town; each table misspells a different quarter of them.
fn people(table: usize) -> String {
    let word = |seed: usize| -> String {
        let letter = |at: usize| char::from(b'a' + ((seed * 7 + 3) * (at * 5 + 11) + seed / 3) as u8 % 26);
        (0..7).map(letter).collect()
    };
    let mut text = String::from("first,last,town\n");
    // Each table has a different order.
    for place in 0..90 {
        let person = (place * 7 + table * 13) % 90;
        let mut last = word(person + 200);
        if (person + table).is_multiple_of(4) {
            last.remove(3);
        }
        text += &format!("{},{last},{}\n", word(person), word(person % 9 + 500));
    }
    text
}

/// Returns the row of a person in a table.
fn place(table: usize, person: usize) -> usize {
    (0..90).find(|place| (place * 7 + table * 13) % 90 == person).expect("everybody is there")
}

/// Creates three owners' tables, and their encodings by the first owner's schema.
fn owners() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (table, name) in ["a.csv", "b.csv", "c.csv"].iter().enumerate() {
        fs::write(folder.path().join(name), people(table)).expect("writable");
    }
    done(folder.path(), &["schema", "a.csv", "--keys=first,last,town", "--out=schema.json"]);
    for name in ["a", "b", "c"] {
        let (table, out) = (format!("{name}.csv"), format!("--out={name}.clks"));
        done(folder.path(), &["encode", &table, "--schema=schema.json", &out]);
    }
    folder
}

#[test]
fn linkage_unit_finds_the_pairs_without_keys() {
    let folder = owners();
    let truth: String =
        (0..90).map(|person| format!("{},{}\n", place(0, person), place(1, person))).collect();
    fs::write(folder.path().join("truth.csv"), format!("a,b\n{truth}")).expect("writable");
    for more in [&[][..], &["--assign=one-to-one"]] {
        let told = done(
            folder.path(),
            &[&["match", "a.clks", "b.clks", "--out=p.csv", "--truth=truth.csv"], more].concat(),
        );
        let best = told.lines().find(|line| line.contains("best F1")).expect("the best threshold");
        let f1: f64 = best.split_whitespace().nth(3).and_then(|cell| cell.parse().ok()).expect("a figure");
        assert!(f1 > 0.98, "{told}");
        assert!(told.contains("estimated"), "{told}");
    }
    // Files for other parties contain no word of a table, not even in part.
    for file in ["schema.json", "a.clks", "b.clks"] {
        let bytes = fs::read(folder.path().join(file)).expect("readable");
        let all = people(0);
        let words = all.lines().skip(1).flat_map(|line| line.split(','));
        for word in words {
            assert!(!bytes.windows(5).any(|part| part == &word.as_bytes()[..5]), "{word} in {file}");
        }
    }
}

#[test]
fn groups_rows_of_three_tables_into_clusters() {
    let folder = owners();
    let told = done(folder.path(), &["match", "a.clks", "b.clks", "c.clks", "--out=clusters.csv"]);
    let clusters = fs::read_to_string(folder.path().join("clusters.csv")).expect("clusters");
    let mut lines = clusters.lines();
    assert_eq!(lines.next(), Some("cluster,file,row"));
    let mut members = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in lines {
        let (cluster, member) = line.split_once(',').expect("three cells");
        members.entry(cluster.to_string()).or_default().push(member.to_string());
    }
    let right = (0..90).filter(|&person| {
        let all: Vec<String> = ["a", "b", "c"]
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{name}.clks,{}", place(at, person)))
            .collect();
        members.values().any(|cluster| *cluster == all)
    });
    let right = right.count();
    assert!(right >= 85, "{right} of 90 people have the right cluster; {told}");
    let zipped = done(folder.path(), &["match", "a.clks", "b.clks", "c.clks", "--out=clusters.csv.gz"]);
    assert_eq!(zipped.replace(".gz", ""), told);
}

/// Compares encodings with clkhash's for the same table and schema: they are equal bit for bit, and both can
/// be matched.
#[test]
fn links_encodings_of_clkhash() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../fet-linkage/tests/clkhash/shipped-names.json");
    let golden: serde_json::Value =
        serde_json::from_slice(&fs::read(golden).expect("readable")).expect("JSON");
    let features = golden["schema"]["features"].as_array().expect("features");
    // No table contains the ignored feature.
    let header: Vec<&str> =
        features[1..].iter().filter_map(|feature| feature["identifier"].as_str()).collect();
    let mut table = header.join(",") + "\n";
    for row in golden["rows"].as_array().expect("rows") {
        let cells: Vec<String> = row.as_array().expect("cells")[1..]
            .iter()
            .filter_map(|cell| Some(format!("\"{}\"", cell.as_str()?)))
            .collect();
        table += &(cells.join(",") + "\n");
    }
    let theirs = serde_json::json!({ "clks": golden["clks"] }).to_string();
    let schema = golden["schema"].to_string();
    for (name, text) in [("a.csv", &table), ("theirs.json", &theirs), ("schema.json", &schema)] {
        fs::write(path.join(name), text).expect("writable");
    }
    let secret = golden["secret"].as_str().expect("a secret");
    for out in ["--out=ours.json", "--out=ours.clks"] {
        let encoded = link(path, secret, &["encode", "a.csv", "--schema=schema.json", out]);
        assert!(encoded.status.success(), "{encoded:?}");
        let of_four = link(path, "four", &["encode", "a.csv", "--schema=schema.json", "--out=x.clks"]);
        assert!(text(&of_four.stderr).contains("warning: the secret has only 4 bytes"), "{of_four:?}");
    }
    let ours = fs::read(path.join("ours.json")).expect("readable");
    let ours: serde_json::Value = serde_json::from_slice(&ours).expect("JSON");
    assert_eq!(ours["clks"], golden["clks"]);
    for file in ["ours.json", "ours.clks"] {
        done(path, &["match", file, "theirs.json", "--threshold=none", "--out=p.csv"]);
        let pairs = fs::read_to_string(path.join("p.csv")).expect("pairs");
        assert!(
            pairs.lines().count() > 2 && pairs.lines().skip(1).all(|line| line.ends_with(",1,1")),
            "{pairs}"
        );
    }
    // The message names a cell that the schema refuses.
    fs::write(path.join("bad.csv"), table.replace('/', "-").replace("YYYY-MM-DD", "YYYY/MM/DD"))
        .expect("writable");
    let refused = link(path, secret, &["encode", "bad.csv", "--schema=schema.json", "--out=bad.clks"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("bad.csv: row 0 (from 0), DOB YYYY/MM/DD: the value"),
        "{refused:?}"
    );
    // Encodings by fet's own schema lack a clkhash format, and cannot be compared with clkhash's.
    fs::write(path.join("p.csv"), people(0)).expect("writable");
    done(path, &["schema", "p.csv", "--keys=first", "--set=bits=1024", "--out=own.json"]);
    let refused = link(path, SECRET, &["encode", "p.csv", "--schema=own.json", "--out=own-clks.json"]);
    assert!(text(&refused.stderr).contains("needs a .clks file"), "{refused:?}");
    done(path, &["encode", "p.csv", "--schema=own.json", "--out=own.clks"]);
    let refused = link(path, SECRET, &["match", "own.clks", "theirs.json", "--out=q.csv"]);
    assert!(text(&refused.stderr).contains("another similarity measure"), "{refused:?}");
}

/// Two schemas of the same table under the same secret reveal nothing about each other.
#[test]
fn draws_another_salt_for_another_schema() {
    let folder = owners();
    let path = folder.path();
    done(path, &["schema", "a.csv", "--keys=first,last,town", "--out=later.json"]);
    done(path, &["encode", "a.csv", "--schema=later.json", "--out=later.clks"]);
    let of = |name: &str| fs::read(path.join(name)).expect("readable");
    let (one, two) = (of("a.clks"), of("later.clks"));
    assert_eq!(one.len(), two.len());
    assert_ne!(one, two);
    done(path, &["encode", "a.csv", "--schema=schema.json", "--out=again.clks"]);
    assert_eq!(of("again.clks"), one, "the same schema and secret repeat");
    let refused = link(path, SECRET, &["match", "later.clks", "b.clks", "--out=p.csv"]);
    assert!(text(&refused.stderr).contains("another schema or secret"), "{refused:?}");
}

#[test]
fn refuses_invalid_input_without_writing_files() {
    let folder = owners();
    let path = folder.path();
    let mut damaged = fs::read(path.join("a.clks")).expect("readable");
    damaged[2_000] ^= 4;
    fs::write(path.join("damaged.clks"), damaged).expect("writable");
    let schema = fs::read_to_string(path.join("schema.json")).expect("readable");
    fs::write(path.join("strange.json"), schema.replacen("\"q\": 3", "\"q\": 99", 1)).expect("writable");
    fs::write(path.join("more.json"), schema.replacen("\"q\": 3", "\"q\": 3, \"zz\": 1", 1))
        .expect("writable");
    let other = "another secret, as long";
    assert!(
        link(path, other, &["encode", "b.csv", "--schema=schema.json", "--out=other.clks"]).status.success()
    );
    let encode = ["encode", "a.csv", "--out=x"];
    let compare = ["match", "a.clks", "--out=x"];
    let schema = ["schema", "a.csv", "--out=x"];
    let cases: [(&[&str], &[&str], &str, &str); 18] = [
        (&compare, &[], SECRET, "two or more tables"),
        (&compare, &["damaged.clks"], SECRET, "damaged.clks: is damaged"),
        (&compare, &["other.clks"], SECRET, "other.clks: was encoded with another schema or secret"),
        (&compare, &["b.csv"], SECRET, "b.csv: must be encodings"),
        (&compare, &["gone.clks"], SECRET, "gone.clks"),
        (&compare, &["a.clks"], SECRET, "a.clks: is named twice"),
        (
            &compare,
            &["b.clks", "c.clks", "--assign=one-to-one"],
            SECRET,
            "--assign: works only with two tables",
        ),
        (&compare, &["b.clks", "--neighbours=91"], SECRET, "--neighbours 91: must be at most 90"),
        (&compare, &["b.clks", "--threshold=nan"], SECRET, "finite number"),
        (
            &encode,
            &["--schema=schema.json"],
            "short",
            "FET_LINK_SECRET must hold the data holders' secret, 16 bytes",
        ),
        (
            &encode,
            &["--schema=schema.json", "--keys=first"],
            SECRET,
            "must name as many columns as schema.json (3",
        ),
        (&encode, &["--schema=schema.json", "--keys=first,last,street"], SECRET, "street"),
        (&encode, &["--schema=strange.json"], SECRET, "strange.json: "),
        (&encode, &["--schema=more.json"], SECRET, "more.json: must be a file from `fet link schema`"),
        (&encode, &["--schema=a.csv"], SECRET, "a.csv: must be a file from `fet link schema`"),
        (&schema, &["--keys=first", "--set=bits=1000"], SECRET, "must be a power of two"),
        (
            &schema,
            &["--keys=first", "--set=secret_env=X"],
            SECRET,
            "--set secret_env: is not a setting of a schema",
        ),
        (&schema, &["--keys=first,last", "--set=weights=[1.0]"], SECRET, "weights"),
    ];
    for (command, more, secret, told) in cases {
        let output = link(path, secret, &[command, more].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
        assert!(error.contains(told) && error.trim_end().lines().count() <= 6, "{more:?}: {error}");
        assert!(!path.join("x").exists(), "{more:?}");
    }
}
