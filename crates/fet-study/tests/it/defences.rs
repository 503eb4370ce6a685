//! End-to-end tests of studies with attacks: attacks that lack seeds, attacks that find nothing, and a
//! variant without attacks.

use serde_json::{Value, json};

use crate::study::{Study, check};

/// Two defences under three attacks; one of the attacks finds nothing.
const ATTACKED: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1, 2]\n\
    [ablation.axes]\n\"attack.kind\" = [\"gradient-norm\", \"reconstruction\", \"blind\"]\n\
    [[ablation.variants]]\nname = \"plain\"\nset = [\"defence.leak=0.5\", \"defence.test=0.9\"]\n\
    [[ablation.variants]]\nname = \"noise\"\nset = [\"defence.leak=0.125\", \"defence.test=0.8\"]\n";

/// Variant without attacks.
const ALONE: &str =
    "[[ablation.variants]]\nname = \"alone\"\nattacked = false\nset = [\"defence.test=0.7\"]\n";

fn defences(study: &Study) -> Value {
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    json["defences"].clone()
}

#[test]
fn shows_the_number_of_seeds_of_an_attack_with_fewer() {
    let study = Study::new(ATTACKED);
    let only = |kind: &str, seeds: &str| {
        for name in ["plain", "noise"] {
            let outcome = study.ablate("", &["--only", &format!("{name} · kind={kind}"), "--seeds", seeds]);
            assert_eq!(outcome.code, 0, "{outcome:?}");
        }
    };
    only("gradient-norm", "0,1,2");
    only("blind", "0,1,2");
    only("reconstruction", "0");
    let outcome = study.ablate("", &["--report"]);
    assert_eq!(study.calls().len(), 14, "{outcome:?}");
    let lacking = "No C-DCS for plain, noise: attacks do not all have the same seeds (reconstruction lacks seeds 1, 2).";
    let nothing = "Left out of T-DCS and C-DCS: blind.";
    for text in [&outcome.stdout, &study.read("runs/tiny/table.md"), &study.read("runs/tiny/report.html")] {
        check(text, &["0.500 (n = 1)", "0.625 ± 0.125 (n = 3)", "0.125 (n = 1)", lacking, nothing]);
    }
    let defences = defences(&study);
    for defence in [&defences["defences"][0], &defences["defences"][1]] {
        assert_eq!(
            (&defence["c_dcs"], &defence["lacking_seeds"]),
            (&Value::Null, &json!({"reconstruction": [1, 2]}))
        );
    }

    // After the remaining seeds have run, there is a score for the two attacks that find something.
    let outcome = study.ablate("", &[]);
    assert_eq!((outcome.code, study.calls().len()), (0, 18), "{outcome:?}");
    let table = study.read("runs/tiny/table.md");
    check(&table, &[nothing, "a leakage of 1 without loss of utility scores 0.586"]);
    assert!(!table.contains("(n = ") && !table.contains("No C-DCS"), "{table}");
    // `ablate.rs` computes the same score for these two attacks alone.
    check(&table, &["0.841 ± 0.057"]);
    let mean = self::defences(&study)["defences"][1]["c_dcs"]["mean"].as_f64().expect("a score");
    assert!((mean - 0.841_013).abs() < 1e-6, "{mean}");
}

#[test]
fn variant_without_attacks_is_a_row_of_dashes() {
    let study = Study::new(&format!("{ATTACKED}{ALONE}"));
    let outcome = study.ablate("", &[]);
    assert_eq!((outcome.code, study.calls().len()), (0, 21), "{outcome:?}");
    let calls = study.calls();
    assert_eq!(calls.iter().filter(|call| !call.contains("attack.kind")).count(), 3, "{calls:?}");
    let table = study.read("runs/tiny/table.md");
    let row = table.lines().rfind(|line| line.starts_with("| alone")).expect("a row");
    let fields: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(fields[1..fields.len() - 1], ["alone", "71.00 ± 1.00", "—", "—", "—", "—", "—", "—"]);
    check(&table, &["Not attacked: alone."]);
    check(&study.read("runs/tiny/report.html"), &["alone is worse than plain by 20.00 points"]);
    assert!(!study.read("runs/tiny/leakage.svg").contains("alone"));
}
