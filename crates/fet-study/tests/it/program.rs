//! Studies whose cells another program runs (`tests/programs/shim.sh`): results, resumption, wrong answers and reports, identity,
//! and the owner of a folder.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::study::{CommandOutcome, STUDY, Study, check};

pub(crate) const FILE: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1, 2]\n\
    [[ablation.variants]]\nname = \"Base\"\nset = [\"hits=40\", \"slope=1\"]\n\
    [[ablation.variants]]\nname = \"Better\"\nset = [\"hits=50\", \"slope=2\"]\n";

/// Files of a study that depend on its results alone.
const RESULTS: [&str; 6] =
    ["results.csv", "curves.csv", "costs.csv", "results.json", "table.md", "report.html"];

pub(crate) fn shim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shim.sh")
}

fn command(study: &Study, environment: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = study.command("", arguments);
    command.arg("--program").arg(shim()).envs(environment.iter().copied());
    command
}

fn ablate(study: &Study, environment: &[(&str, &str)], arguments: &[&str]) -> CommandOutcome {
    CommandOutcome::from_output(command(study, environment, arguments).output().expect("ran"))
}

fn results(study: &Study) -> Vec<String> {
    RESULTS.map(|file| study.read(&format!("runs/tiny/{file}"))).to_vec()
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found} is not a number"));
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn evaluates_the_predictions_of_another_program() {
    let study = Study::new(FILE);
    let outcome = ablate(&study, &[], &[]);
    assert_eq!((outcome.code, study.calls().len()), (0, 6), "{outcome:?}");
    // 40, 41 and 42 of 60 rows, and 50, 52 and 54.
    check(&outcome.stdout, &["test accuracy, % (mean ± std)", "68.33 ± 1.67", "86.67 ± 3.33"]);
    check(&outcome.stderr, &["[6/6]", "Base, seed 0: test accuracy 66.67 % (epoch 1)"]);
    let csv = study.read("runs/tiny/results.csv");
    let row = format!("Better,1,accuracy,1,1,{},0,0,0,0,,,,,,,,,,cells/better-s1-", 52.0 / 60.0);
    check(&csv, &[&row]);
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    let better = &json["variants"][1];
    near(&better["metrics"]["brier"]["seeds"]["1"], 8.0 / 60.0);
    // Differences of 10, 11 and 12 rows: the standard deviation is 1/60 and t = 11 √3 with two degrees of freedom.
    // scipy 1.16: t.ppf(.975, 2) / 60 / sqrt(3), 2 t.sf(11 sqrt(3), 2)
    near(&better["comparison"]["difference"], 11.0 / 60.0);
    near(&better["comparison"]["test"]["interval"][0], 11.0 / 60.0 - 0.041_402_295_195_838_83);
    near(&better["comparison"]["test"]["interval"][1], 11.0 / 60.0 + 0.041_402_295_195_838_83);
    near(&better["comparison"]["test"]["p"], 0.002_743_489_394_425_924);
    // The interval over rows needs the predictions of both runs.
    let over_rows = &better["comparison"]["over_rows"];
    near(&over_rows["estimate"], 11.0 / 60.0);
    assert_eq!((&over_rows["rows"], &over_rows["same_rows"]), (&60.into(), &true.into()));
    // The bootstrap interval of 40 correct rows of 60. The exact binomial interval is 0.533 to 0.783.
    let line = csv.lines().nth(1).expect("a row");
    let [upper, lower] =
        [0, 1].map(|place| line.rsplit(',').nth(place).and_then(|text| text.parse::<f64>().ok()));
    let (lower, upper) = (lower.expect("a number"), upper.expect("a number"));
    assert!((0.5..0.57).contains(&lower) && (0.75..0.8).contains(&upper), "{lower} to {upper}");
    let page = study.read("runs/tiny/report.html");
    check(&page, &["program <b>shim</b>", "version <b>1</b>", "true class", "Calibration"]);
    assert!(!page.contains("results version") && !page.contains("commit"), "both belong to `fet`");
    for cell in study.cells() {
        let log = fs::read_to_string(cell.join("cell.log")).expect("a log");
        check(&log, &["the line above is not a valid event: missing field `epoch`"]);
        assert!(!log.contains("fraction"), "an event that lacks optional fields is an event: {log}");
    }
    let again = ablate(&study, &[], &[]);
    assert_eq!((again.code, study.calls().len()), (0, 6), "{again:?}");
}

/// A killed study and an interrupted study give the same bytes as a study that ran at once.
#[test]
fn resumed_study_gives_equal_bytes() {
    let whole = Study::new(FILE);
    assert_eq!(ablate(&whole, &[], &[]).code, 0);
    let study = Study::new(FILE);
    for (signal, pattern, code) in [("-KILL", "hits=40", -1), ("-INT", "hits=50", 130)] {
        let mut command = command(&study, &[("SHIM_STOP", pattern)], &[]);
        let child = command.process_group(0).spawn().expect("started");
        let start = Instant::now();
        while !study.calls().iter().any(|call| call.contains(pattern)) {
            assert!(start.elapsed() < Duration::from_secs(60), "the cell never ran");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args([signal, "--", &group]).status().expect("ran").success());
        let outcome = CommandOutcome::from_output(child.wait_with_output().expect("ended"));
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(!outcome.stderr.contains("FAILED"), "an interrupted cell is not a failed cell: {outcome:?}");
    }
    let outcome = ablate(&study, &[], &[]);
    // The two stopped cells ran twice.
    assert_eq!((outcome.code, study.calls().len()), (0, 8), "{outcome:?}");
    assert_eq!(results(&study), results(&whole));
}

#[test]
fn refuses_a_wrong_answer_with_one_message() {
    for (answer, expected) in [
        ("s/\"experiment\"/\"experimint\"/", "shim.sh show --batch`, answer 1: unknown field `experimint`"),
        ("s/,\"version\":\"1\"//", "answer 1: missing field `version`"),
        ("s/,\"experiment\".*/}/", "answer 1: missing field `experiment`"),
        ("s/\"program\":{[^}]*},//", "needs the field `program`"),
        (
            "s/\"program\":{[^}]*}/\"data\":\"d\",\"results\":13/",
            "answer 1: missing field `program`. For another build",
        ),
        ("s/\"shim\"/\"fet\"/", "`program.name` must be the name of a program other than `fet`"),
        ("s/.*/Base: fine/", "answer 1: not JSON"),
        ("s/.*//", "gave 0 answers to 6 questions"),
        ("s/.*/{\"error\":\"hits: too many\"}/", "Base, seed 0: hits: too many"),
        ("s/\"seed\":[0-9]*/\"x\":0/", "must contain the seed"),
        (
            "/hits=50/s/\"shim\"/\"other\"/",
            "the program calls itself `other`, and `shim` in the answer for Base, seed 0",
        ),
    ] {
        let study = Study::new(FILE);
        let outcome = ablate(&study, &[("SHIM_ANSWER", answer)], &[]);
        assert_eq!((outcome.code, study.calls().len()), (2, 0), "{answer}: {outcome:?}");
        check(&outcome.stderr, &[expected]);
        assert_eq!(outcome.stderr.trim().lines().count(), 1, "{answer}: {outcome:?}");
        assert!(!study.path("runs").exists(), "{answer}");
    }
}

#[test]
fn refuses_a_path_that_is_no_program() {
    let study = Study::new(FILE);
    fs::write(study.path("plain.sh"), "#!/bin/sh\n").expect("written");
    for (path, expected) in [
        ("missing.sh", "--program: must name a program, but missing.sh is not a file"),
        ("plain.sh", "make the file executable with `chmod +x`"),
    ] {
        let outcome = study.ablate("", &["--program", path]);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        check(&outcome.stderr, &[expected]);
    }
}

/// Returns a sed script that adds an attack to a report.
fn attack(party: &str, measures: &str) -> String {
    format!(
        "s/}}$/,\"attack\":{{\"attack\":\"a\",\"attacker\":\"primary\",\"target\":\"links\",\"party\":{party},\"runs\":0,\
         \"measures\":{measures}}}}}/"
    )
}

#[test]
fn wrong_report_fails_its_cell_and_names_the_field() {
    for (report, predictions, expected) in [
        ("s/\"metric\":\"accuracy\",//", "", "missing field `metric`"),
        ("s/\"rows\"/\"row\"/", "", "unknown field `row`"),
        ("s/\"train\":100,//", "", "missing field `train`"),
        ("s/\"accuracy\"/\"acuracy\"/", "", "unknown variant `acuracy`"),
        ("s/\"accuracy\"/\"rmse\"/", "", "predictions.csv: the metric rmse needs predicted numbers"),
        ("s/\"test\":60/\"test\":61/", "", "60 rows have the part `test`, but `rows.test` is 61"),
        ("s/\"seed\":0/\"seed\":9/", "", "`experiment` differs from the answer of `show --batch`"),
        ("s/\"version\":\"1\"/\"version\":\"2\"/", "", "`program` differs from the answer"),
        ("s/}$/,\"best\":{\"test\":0.5}}/", "", "`best.test` is 0.5, but predictions.csv gives 0.66"),
        ("", "no", "missing field `best.test`; a run without predictions.csv must state"),
        ("s/.*//", "", "not JSON"),
        ("", "s/^7,test/6,test/", "part `test`: row 6 has several lines"),
        ("", "s/^1,validation/2,validation/", "row 2 is in both parts"),
        (
            "",
            "/^9,test/s/,[01],[01]$/,0.9,0.9/",
            "row 9: the probabilities must be from 0 to 1 and have the sum 1",
        ),
        ("", "/^9,test/s/,[01],[01]$/,NaN,1/", "row 9: the probabilities must be"),
        ("", "/^9,test/s/,[01],[01]$/,-1,2/", "row 9: the probabilities must be"),
        ("s/}$/,\"best\":{\"test\":57}}/", "no", "`best.test` must be a value of accuracy, which 57 is not"),
        ("s/}$/,\"cost\":{\"seconds\":-5}}/", "", "`cost.seconds` must be a number from 0; it is -5"),
        (
            "s/}$/,\"privacy\":{\"epsilon\":-1,\"delta\":0,\"statement\":\"\",\"guarantee\":null}}/",
            "",
            "`privacy.epsilon` must be a number from 0; it is -1",
        ),
        (
            "s/}$/,\"labels\":{\"epsilon\":1,\"delta\":2,\"mechanism\":\"\",\"statement\":\"\"}}/",
            "",
            "`labels.delta` must be from 0 to 1; it is 2",
        ),
        (attack("1", "[]").as_str(), "", "`attack.measures` must have at least one measure"),
        (attack("0", "[]").as_str(), "", "`attack.party` must be the number of a secondary"),
        (
            attack("1", "[{\"name\":\"m\",\"value\":5,\"baseline\":1,\"perfect\":1}]").as_str(),
            "",
            "a `baseline` other than `perfect`",
        ),
    ] {
        let study = Study::new(FILE);
        let environment = [("SHIM_REPORT", report), ("SHIM_PREDICTIONS", predictions)];
        let outcome = ablate(&study, &environment, &["--only", "Base", "--seeds", "0"]);
        assert_eq!((outcome.code, study.calls().len()), (1, 1), "{report}: {outcome:?}");
        check(&outcome.stderr, &["FAILED: Base, seed 0: wrote a report that cannot be read", expected]);
        // A later command with a right report needs no help.
        assert_eq!(ablate(&study, &[], &["--only", "Base", "--seeds", "0"]).code, 0);
    }
}

#[test]
fn rows_with_other_labels_are_other_rows() {
    let study = Study::new(FILE);
    let labels = [("SHIM_PREDICTIONS", "/^9,test/{s/,yes,/,x,/;s/,no,/,yes,/;s/,x,/,no,/}")];
    assert_eq!(ablate(&study, &[], &["--only", "Base"]).code, 0);
    let outcome = ablate(&study, &labels, &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    check(&outcome.stdout, &["were run on different rows"]);
}

#[test]
fn report_without_predictions_states_its_test_metric() {
    let study = Study::new(FILE);
    let report = "s/}$/,\"best\":{\"test\":0.75,\"epoch\":3},\"cost\":{\"seconds\":2},\"parameters\":7}/";
    let outcome = ablate(&study, &[("SHIM_REPORT", report), ("SHIM_PREDICTIONS", "no")], &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    check(&study.read("runs/tiny/results.csv"), &["Base,0,accuracy,3,,0.75,7,0,0,0,"]);
    check(&study.read("runs/tiny/costs.csv"), &["Base,0,2,0,0,1,cells/"]);
    check(&study.read("runs/tiny/results.json"), &["the program wrote no predictions"]);
    check(&ablate(&study, &[], &["--dry-run", "--seeds", "0,9"]).stdout, &["2 to run; about 4 s"]);
}

#[test]
fn another_version_recomputes_exactly_its_cells() {
    let study = Study::new(FILE);
    assert_eq!((ablate(&study, &[], &[]).code, study.calls().len()), (0, 6));
    fs::write(study.path("version-hits=50"), "2").expect("written");
    let outcome = ablate(&study, &[], &[]);
    let calls = study.calls();
    assert_eq!((outcome.code, calls.len()), (0, 9), "{outcome:?}");
    assert!(calls[6..].iter().all(|call| call.contains("hits=50")), "{calls:?}");
    check(&study.read("runs/tiny/report.html"), &["version <b>1, 2</b>"]);
    fs::remove_file(study.path("version-hits=50")).expect("there");
    fs::write(study.path("tiny.toml"), FILE.replace("Better", "Best")).expect("written");
    let outcome = ablate(&study, &[], &[]);
    assert_eq!(
        (outcome.code, study.calls().len()),
        (0, 9),
        "the results of version 1 are still there: {outcome:?}"
    );
}

/// Neither `fet` nor another program writes into the folder of the other one.
#[test]
fn folder_belongs_to_one_program() {
    let is_refused = |outcome: &CommandOutcome, owner: &str, own: &str| {
        assert_eq!(outcome.code, 2, "{outcome:?}");
        let expected = format!(
            "--out: the folder runs/tiny has results of the program `{owner}`, and this study runs `{own}`"
        );
        check(&outcome.stderr, &[&expected]);
    };
    let study = Study::new(STUDY);
    assert_eq!(study.ablate("", &[]).code, 0);
    let before = results(&study);
    fs::write(study.path("tiny.toml"), FILE).expect("written");
    for arguments in [&[][..], &["--report"], &["--dry-run"]] {
        is_refused(&ablate(&study, &[], arguments), "fet", "shim");
    }
    assert_eq!(results(&study), before);
    assert_eq!(ablate(&study, &[], &["--out", "others"]).code, 0);

    let study = Study::new(FILE);
    assert_eq!(ablate(&study, &[], &[]).code, 0);
    let before = results(&study);
    is_refused(&study.ablate("", &[]), "shim", "fet");
    is_refused(&ablate(&study, &[("SHIM_ANSWER", "s/\"shim\"/\"other\"/")], &[]), "shim", "other");
    assert_eq!(results(&study), before);
}

/// `FET_BIN` names a program as `--program` does, if its answers name it.
#[test]
fn variable_names_the_program_too() {
    let study = Study::new(FILE);
    let mut command = study.command("", &["--quick"]);
    fs::write(study.path("tiny.toml"), format!("{FILE}[profile.quick]\nseeds = [0]\n")).expect("written");
    let outcome = CommandOutcome::from_output(command.env("FET_BIN", shim()).output().expect("ran"));
    assert_eq!((outcome.code, study.calls().len()), (0, 2), "{outcome:?}");
    assert!(study.path("runs/tiny-quick/program.json").exists(), "the folder has the name of the profile");
}

#[test]
fn two_commands_share_the_cells() {
    let study = Study::new(FILE);
    let start = |_| command(&study, &[("SHIM_PAUSE", "0.3")], &[]).spawn().expect("started");
    let commands: Vec<_> = (0..2).map(start).collect();
    for child in commands {
        let outcome = CommandOutcome::from_output(child.wait_with_output().expect("ended"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }
    assert_eq!(study.calls().len(), 6, "{:?}", study.calls());
}

#[test]
fn folds_are_repetitions() {
    let study = Study::new(FILE);
    let outcome = ablate(&study, &[], &["--folds", "2", "--seeds", "0"]);
    assert_eq!((outcome.code, study.calls().len()), (0, 4), "{outcome:?}");
    check(&study.calls()[1], &["\"hits=40\",\"slope=1\",\"split.folds=2\",\"split.fold=1\""]);
    check(
        &study.read("runs/tiny/results.csv"),
        &["Base,0,1,accuracy,1,1,0.68", "Better,0,1,accuracy,1,1,0.86"],
    );
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    let over_rows = &json["variants"][1]["comparison"]["over_rows"];
    // 50 - 40 rows in fold 0, and 52 - 41 in fold 1.
    near(&over_rows["estimate"], 10.5 / 60.0);
    assert_eq!(over_rows["pairs"], 2);
}
