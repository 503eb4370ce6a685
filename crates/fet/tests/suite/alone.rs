//! Tests that a row has the same prediction alone and among the test rows of its run.

use std::fmt::Write;
use std::path::Path;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

use crate::command::{fet, read};
use crate::own_data::{numbers, table};

const EXPERIMENT: &str = r#"
name = "alone"

[train]
epochs = 3
batch_size = 32

[data]
kind = "linked"
task = "regression"
label = "y"
key_kind = "text"
primary = { file = "p.csv", keys = ["name", "town"] }
secondaries = [{ name = "s", file = "s.csv", keys = ["name", "town"] }]

[linker]
kind = "clk"
neighbours = 3

[method]
kind = "fet"
hidden = 16
heads = 2
dropout = 0.0
"#;

/// Writes 300 people with a label that depends on a secondary's column; the secondary's names have typing errors. With
/// `numbers`, the keys are numbers.
fn people(folder: &Path, numbers: bool) {
    let mut rng = stream(9, 0, Purpose::Parties, 0);
    let (mut p, mut s) = ("name,town,x,y\n".to_string(), "name,town,z\n".to_string());
    for _ in 0..300 {
        let mut word = |most: usize| {
            let syllables = ["an", "be", "cor", "da", "el", "fin", "go", "ha", "ik", "jo", "ka", "lu"];
            (0..3).map(|_| syllables[rng.random_range(0..most)]).collect::<String>()
        };
        let (name, town) = (word(12), word(3));
        let (x, z): (f64, f64) = (rng.random(), rng.random());
        let mut typed = name.clone();
        if rng.random_bool(0.5) {
            typed.remove(rng.random_range(0..name.len()));
        }
        if numbers {
            let at: f64 = rng.random();
            let _ = writeln!(p, "{at},{x},{x},{}", x + 3.0 * z);
            let _ = writeln!(s, "{},{},{z}", at + 0.01 * rng.random::<f64>(), x + 0.01 * rng.random::<f64>());
        } else {
            let _ = writeln!(p, "{name},{town},{x},{}", x + 3.0 * z);
            let _ = writeln!(s, "{typed},{town},{z}");
        }
    }
    let kind = if numbers { "key_kind = \"number\"" } else { "key_kind = \"text\"" };
    let experiment = EXPERIMENT.replace("key_kind = \"text\"", if numbers { "" } else { kind });
    for (name, text) in [("p.csv", p), ("s.csv", s), ("e.toml", experiment)] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
}

#[test]
fn test_rows_have_the_same_prediction_alone() {
    for (numeric, sets, is_same) in [
        (false, &["linker.kind=clk"][..], true),
        (false, &["linker.weighting=entropy"], true),
        (
            false,
            &[
                "linker={ kind = \"posterior\", one_to_one = false, inner = { kind = \"clk\", neighbours = 3 } }",
            ],
            true,
        ),
        (
            true,
            &[
                "linker={ kind = \"posterior\", one_to_one = false, inner = { kind = \"nearest\", neighbours = 3 } }",
            ],
            true,
        ),
        // Rows of one file compete for records.
        (true, &["linker={ kind = \"posterior\", inner = { kind = \"nearest\", neighbours = 3 } }"], false),
    ] {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let folder = temporary.path();
        people(folder, numeric);
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = fet(folder, &[&["run", "e.toml", "--out", "run"], sets.as_slice()].concat());
        assert!(output.status.success(), "{output:?}");
        let run = table(folder, "run/predictions.csv");
        let (rows, expected) = (numbers(&run, "row"), numbers(&run, "prediction"));
        let lines: Vec<String> = read(folder, "p.csv").lines().map(String::from).collect();
        let mut different = 0;
        for (&row, expected) in rows.iter().zip(&expected).rev().take(8) {
            std::fs::write(folder.join("new.csv"), format!("{}\n{}\n", lines[0], lines[1 + row as usize]))
                .expect("writable");
            let output = fet(folder, &["predict", "run", "--rows", "new.csv", "--out", "out.csv"]);
            assert!(output.status.success(), "{output:?}");
            let warns = String::from_utf8_lossy(&output.stderr).contains("the other rows of the file");
            assert_eq!(warns, !is_same, "{sets:?}: {output:?}");
            let alone = numbers(&table(folder, "out.csv"), "prediction")[0];
            different += usize::from(alone.to_bits() != expected.to_bits());
        }
        assert_eq!(different == 0, is_same, "{sets:?}: {different} of 8 rows have another prediction alone");
    }
}
