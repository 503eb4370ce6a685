//! End-to-end tests of the search over settings, with a stand-in for `fet`: survivors, output and resuming.
//! The stand-in's result is best at a dropout of 0.25. Without a dropout setting the stand-in deducts
//! nothing.

use serde_json::Value;

use crate::study::{CommandOutcome, Study, check};

const SEARCH: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1]\n\
    [[ablation.variants]]\nname = \"Full\"\nset = [\"method.dropout=0.9\"]\n\
    [[ablation.variants]]\nname = \"Plain\"\n\
    [profile.quick]\nset = [\"data.rows=5\"]\n\
    [tune]\ncandidates = 9\n\
    [tune.space]\n\"method.dropout\" = { from = 0.0, to = 1.0 }\n";

fn tune(study: &Study, fake: &str, arguments: &[&str]) -> CommandOutcome {
    CommandOutcome::from_output(study.command(fake, &[arguments, &["tune"]].concat()).output().expect("ran"))
}

#[test]
fn promotes_the_best_candidates_and_compares_with_the_unchanged_experiment() {
    let study = Study::new(SEARCH);
    let found = tune(&study, "", &["--variant", "Full"]);
    assert_eq!(found.code, 0, "{found:?}");
    // 9 candidates, then 3 (and the unchanged experiment, if it is not one of these), then 1 and the
    // unchanged experiment.
    let calls = study.calls();
    let with =
        |epochs: &str| calls.iter().filter(|call| call.contains(&format!("train.epochs={epochs} "))).count();
    assert_eq!((with("1"), with("9")), (9, 2), "{calls:?}");
    assert!((3..=4).contains(&with("3")) && calls.len() == 11 + with("3"), "{calls:?}");
    assert!(
        calls.iter().all(|call| call.contains("split.tuning=true") && call.contains("--seed 0")),
        "{calls:?}"
    );
    check(
        &found.stdout,
        &[
            "Rung 1 of 3: 9 candidates, 1 epoch",
            "Rung 3 of 3: 2 candidates, 9 epochs",
            "Best: candidate",
            "on 1 validation rows that were not used to select an epoch",
            "the unchanged experiment has accuracy -15.00 %",
            "No test row was used",
            "fet run tiny.toml --set method.dropout=0.9 --set method.dropout=0.",
        ],
    );
    check(&found.stderr, &["compared by accuracy"]);
    assert!(!found.stderr.contains("test accuracy"), "{}", found.stderr);
    let json: Value = serde_json::from_str(&study.read("runs/tiny-tune-full/tune.json")).expect("JSON");
    let first = json["rungs"][0]["candidates"].as_array().expect("candidates");
    let drawn = |candidate: &Value| {
        let set = candidate["set"][0].as_str().unwrap_or("method.dropout=0.9");
        set.strip_prefix("method.dropout=").expect("a dropout").parse::<f64>().expect("a number")
    };
    let distances: Vec<f64> = first.iter().map(|candidate| (drawn(candidate) - 0.25).abs()).collect();
    assert!(distances.is_sorted(), "best first: {distances:?}");
    assert_eq!(json["best"]["set"], first[0]["set"], "the stand-in is the same in every rung");

    let again = tune(&study, "", &["--variant", "Full"]);
    assert_eq!((again.code, study.calls().len()), (0, calls.len()), "{again:?}");
    assert_eq!(again.stdout, found.stdout);
    let others = tune(&study, "", &["--variant", "Full", "--draw", "1"]);
    assert_eq!(others.code, 0, "{others:?}");
    assert_ne!(others.stdout, found.stdout, "another draw, other candidates");
}

#[test]
fn ranks_by_the_mean_over_seeds_and_applies_the_profile() {
    let study = Study::new(SEARCH);
    let found =
        tune(&study, "", &["--seeds", "0,1", "--candidates", "2", "--profile", "quick", "--set", "a.b=1"]);
    assert_eq!(found.code, 0, "{found:?}");
    let calls = study.calls();
    assert!(
        calls.iter().all(|call| call.contains("data.rows=5 --set a.b=1 --set name=tiny-tune-quick")),
        "{calls:?}"
    );
    // With two seeds: two candidates in the first rung, and only the better one in the next two rungs.
    assert_eq!(calls.len(), 8, "{calls:?}");
    // The results 0.5 and 0.6, with nothing deducted.
    check(&found.stdout, &["│ as it is ", "55.00 ± 7.07", "no drawn candidate is better"]);
}

#[test]
fn leaves_out_failed_and_refused_candidates() {
    let study = Study::new(SEARCH);
    let whole = tune(&study, "", &["--candidates", "4"]);
    assert_eq!(whole.code, 0, "{whole:?}");
    let json: Value = serde_json::from_str(&study.read("runs/tiny-tune/tune.json")).expect("JSON");
    let rung = json["rungs"][0]["candidates"].as_array().expect("candidates");
    let drawn =
        rung.iter().find_map(|candidate| candidate["set"][0].as_str()).expect("a drawn one").to_string();

    let study = Study::new(SEARCH);
    let refused = tune(&study, &format!("bad={drawn}"), &["--candidates", "4"]);
    assert_eq!(refused.code, 0, "{refused:?}");
    check(
        &refused.stderr,
        &["1 of 4 candidates are invalid and left out; the first: tiny.toml: encoder.mask"],
    );
    check(&refused.stdout, &["Rung 1 of 3: 3 candidates"]);

    let study = Study::new(SEARCH);
    let failed = tune(&study, &format!("fail={drawn}"), &["--candidates", "4"]);
    assert_eq!(failed.code, 0, "{failed:?}");
    check(&failed.stderr, &["leaves the search"]);
    assert!(!failed.stdout.contains(&drawn), "{}", failed.stdout);

    let study = Study::new(SEARCH);
    let none = tune(&study, "fail=train.epochs", &[]);
    assert_eq!(none.code, 1, "{none:?}");
    check(&none.stderr, &["no candidate completed the rung; the first problem"]);
    assert!(!study.path("runs/tiny-tune/tune.json").exists());
}

#[test]
fn explains_invalid_searches() {
    let check_fault = |text: &str, arguments: &[&str], parts: &[&str]| {
        let study = Study::new(text);
        let outcome = tune(&study, "", arguments);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        check(&outcome.stderr, parts);
        assert!(study.calls().is_empty(), "{outcome:?}");
    };
    check_fault("name = \"tiny\"\n", &[], &["tiny.toml", "table `[tune]`"]);
    check_fault(SEARCH, &["--variant", "Fall"], &["--variant", "\"Fall\"", "[\"Full\", \"Plain\"]"]);
    check_fault(SEARCH, &["--profile", "slow"], &["--profile", "\"slow\"", "quick"]);
    check_fault(SEARCH, &["--candidates", "1"], &["tune.candidates", "from 2"]);
    check_fault(SEARCH, &["--seeds", "0,0"], &["--seeds", "must differ"]);
    let unknown = SEARCH.replace("[tune.space]", "[tune.variants.Fall]\na = [1]\n[tune.space]");
    check_fault(&unknown, &[], &["tune.variants", "\"Fall\""]);
    let alike =
        SEARCH.replace("{ from = 0.0, to = 1.0 }", "[0.5]").replace("candidates = 9", "candidates = 3");
    let study = Study::new(&alike);
    let outcome = tune(&study, "", &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    check(&outcome.stderr, &["1 of 3 candidates are duplicates and run only once"]);
    let empty = "name = \"tiny\"\n[tune]\n";
    check_fault(empty, &[], &["tune.space", "is empty"]);
}

#[test]
fn ranks_by_the_mean_over_folds() {
    let study = Study::new(&SEARCH.replace("candidates = 9", "candidates = 2\nrungs = 1\nfolds = 3"));
    let found = tune(&study, "", &[]);
    assert_eq!(found.code, 0, "{found:?}");
    let calls = study.calls();
    assert_eq!(calls.len(), 6, "{calls:?}");
    for fold in 0..3 {
        let set = format!("--set split.folds=3 --set split.fold={fold}");
        assert_eq!(calls.iter().filter(|call| call.contains(&set)).count(), 2, "{set} in {calls:?}");
    }
    check(
        &found.stdout,
        &["validation rows of each fold", "a cross-validation with these settings is optimistic"],
    );
    assert!(!found.stdout.contains("No test row was used"), "{found:?}");
    let json: Value = serde_json::from_str(&study.read("runs/tiny-tune/tune.json")).expect("JSON");
    assert_eq!(json["best"]["values"].as_array().map(Vec::len), Some(3), "{json}");

    // A candidate that fails on one fold leaves the search.
    let study = Study::new(&SEARCH.replace("candidates = 9", "candidates = 2\nrungs = 1"));
    let failed = tune(&study, "fail=split.fold=1", &["--folds", "2"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(tune(&study, "", &["--folds", "1"]).code, 2);
}
