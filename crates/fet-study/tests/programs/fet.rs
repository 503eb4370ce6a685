//! Stand-in for `fet` in the tests of the harness: prints the same lines and writes the same files, but
//! trains no model. The lines and files consist of records from `fet-eval`, so that the stand-in cannot
//! drift from `fet`.
//!
//! `show --batch` and `run` resolve an experiment to the file's name, the settings, the device and the seed.
//! FAKE_FET controls the behaviour:
//!
//! - `bad=PATTERN`: `show` refuses a cell whose command line contains PATTERN
//! - `fail=PATTERN`: `run` fails on such a cell
//! - `slow=PATTERN`: `run` waits on such a cell until it is interrupted, at most 30 seconds
//! - `limited=PATTERN`: `run` is ended from outside after each epoch, five times; the sixth call completes
//! - `stuck=PATTERN`: `run` is ended from outside before its first epoch ends
//! - `elsewhere=PATTERN`: `run` ends with the exit code for another process that works on the cell
//!
//! A setting `attack.kind=KIND` is separate from the other settings, and the report contains the result of
//! the attack. The target is the labels for a kind that begins with "gradient", otherwise the features.
//! `defence.leak=L` sets the leakage to L + seed / 8, and `defence.test=T` sets the test metric to T + 0.01 ·
//! seed. The kind "blind" finds nothing.
//!
//! `predictions.hits=H` writes `predictions.csv` with H + seed + fold · (H - 30) / 10 correct predictions of 60 test rows
//! that differ between folds, and sets the test metric to their share.
//!
//! FAKE_DATA is the checksum of the data. Every `run` records its command line in FAKE_FET_CALLS.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fet_eval::records::{
    AttackRecord, Attacker, Best, Cost, DataRecord, EpochReport, Measure, Program, RESULTS_VERSION, Report,
    Rows, RunEvent, RunIdentity, ShowAnswer, ShowQuestion, Target, Traffic,
};
use fet_eval::{ChaCha8Rng, Predictions, SeedableRng, Task};
use fet_eval::{Estimate, Evaluation, Metric, ScoreValue};
use serde_json::{Value, json};

/// The command line.
#[derive(Debug, Default)]
struct CommandLine {
    verb: String,
    file: PathBuf,
    sets: Vec<String>,
    device: String,
    seed: u64,
    out: PathBuf,
    /// Whole command line, as one line.
    line: String,
}

fn main() -> Result<ExitCode> {
    let arguments = CommandLine::parse()?;
    match arguments.verb.as_str() {
        "show" => show(&arguments),
        "run" => run(&arguments),
        other => bail!("the stand-in for `fet` does not know the command {other:?}"),
    }
}

impl CommandLine {
    fn parse() -> Result<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let mut parsed = Self { device: "flex".into(), line: words.join(" "), ..Self::default() };
        let mut words = words.into_iter();
        let mut next = || words.next();
        parsed.verb = next().context("a command")?;
        parsed.file = next().context("a file")?.into();
        while let Some(flag) = next() {
            if ["--batch", "--forget"].contains(&flag.as_str()) {
                continue;
            }
            let value = next().with_context(|| format!("a value of {flag}"))?;
            match flag.as_str() {
                "--set" => parsed.sets.push(value),
                "--device" => parsed.device = value,
                "--seed" => parsed.seed = value.parse()?,
                "--out" => parsed.out = value.into(),
                "--log" => {}
                _ => bail!("the stand-in for `fet` does not know the option {flag}"),
            }
        }
        Ok(parsed)
    }

    /// Returns the identity that `fet` would resolve the experiment to.
    fn identity(&self, sets: &[String], seed: u64) -> Result<RunIdentity> {
        let text = std::fs::read_to_string(&self.file)?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        Ok(RunIdentity {
            program: None,
            experiment: experiment(name.unwrap_or_default(), sets, &self.device, seed),
            data: std::env::var("FAKE_DATA").unwrap_or_else(|_| "data".into()),
            results: RESULTS_VERSION,
        })
    }

    /// Returns true if FAKE_FET asks for the behaviour `how` on this command line.
    fn is_steered(&self, how: &str) -> bool {
        pattern(how).is_some_and(|pattern| self.line.contains(&pattern))
    }
}

fn experiment(name: &str, sets: &[String], device: &str, seed: u64) -> Value {
    let (attack, others): (Vec<&str>, Vec<&str>) =
        sets.iter().map(String::as_str).partition(|set| set.starts_with("attack."));
    let name = sets.iter().filter_map(|set| set.strip_prefix("name=")).next_back().unwrap_or(name);
    let mut experiment = json!({"name": name, "sets": others.join(" "), "device": device, "seed": seed});
    experiment["train"] = json!({"epochs": number(sets, "train.epochs").unwrap_or(9.0) as u64});
    experiment["split"] = json!({"tuning": sets.iter().any(|set| set == "split.tuning=true")});
    if let Some(fold) = number(sets, "split.fold") {
        experiment["split"]["fold"] = json!(fold as usize);
    }
    if let Some(kind) = attack.iter().find_map(|set| set.strip_prefix("attack.kind=")) {
        experiment["attack"] = json!({"kind": kind.trim_matches('"')});
    }
    experiment
}

/// Returns the number that `sets` assign to `path`.
fn number(sets: &[String], path: &str) -> Option<f64> {
    let mut own = sets.iter().filter_map(|set| set.strip_prefix(path)?.strip_prefix('='));
    own.next_back()?.parse().ok()
}

/// Returns the result of the experiment's attack, if it has one.
fn attack(experiment: &Value, sets: &[String], seed: u64) -> Option<AttackRecord> {
    let kind = experiment["attack"]["kind"].as_str()?.to_string();
    let found = number(sets, "defence.leak").unwrap_or(0.0) + seed as f64 / 8.0;
    let leakage = if kind == "blind" { 0.0 } else { found };
    let area = Measure::new("AUC", 0.5 + leakage / 2.0, 0.5, 1.0);
    let error = Measure::new("error", 2.0 - 2.0 * leakage, 2.0, 0.0);
    let (attacker, target, measures) = if kind.starts_with("gradient") {
        (Attacker::Secondary, Target::Labels, vec![area, error])
    } else {
        (Attacker::Primary, Target::Features, vec![error])
    };
    Some(AttackRecord { attack: kind, attacker, target, party: 1, runs: 1, measures })
}

fn pattern(how: &str) -> Option<String> {
    let steer = std::env::var("FAKE_FET").ok()?;
    steer.strip_prefix(how)?.strip_prefix('=').map(str::to_string)
}

fn show(arguments: &CommandLine) -> Result<ExitCode> {
    for line in stdin().lock().lines() {
        let question: ShowQuestion = serde_json::from_str(&line?)?;
        let sets = [arguments.sets.as_slice(), question.set.as_slice()].concat();
        let is_bad = pattern("bad").is_some_and(|pattern| sets.join(" ").contains(&pattern));
        let answer = if is_bad {
            ShowAnswer::Refused(format!("{}: encoder.mask: unknown field", arguments.file.display()))
        } else {
            ShowAnswer::Identity(arguments.identity(&sets, question.seed.unwrap_or_default())?)
        };
        writeln!(stdout(), "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &CommandLine) -> Result<ExitCode> {
    let calls = std::env::var_os("FAKE_FET_CALLS").context("FAKE_FET_CALLS")?;
    let mut calls = OpenOptions::new().create(true).append(true).open(calls)?;
    calls.write_all(format!("{}\n", arguments.line).as_bytes())?;
    let path = arguments.out.join("report.json");
    if path.exists() {
        eprintln!("fet: {} holds a report", arguments.out.display());
        return Ok(ExitCode::from(2));
    }
    let rows = Rows { train: 8, validation: 1, test: 1 };
    tell(&RunEvent::Start { epochs: 2, metric: Metric::Accuracy, rows })?;
    writeln!(stdout(), "a line that is not an event")?;
    tell(&RunEvent::Progress { epoch: 1, epochs: 2, fraction: 0.5, loss: 0.5, rows_per_second: 80.0 })?;
    if arguments.is_steered("fail") {
        eprintln!("the log says why");
        return Ok(ExitCode::from(101));
    }
    if arguments.is_steered("slow") {
        ctrlc::set_handler(|| std::process::exit(130))?;
        std::thread::sleep(Duration::from_secs(30));
        return Ok(ExitCode::from(1));
    }
    if arguments.is_steered("elsewhere") {
        eprintln!("fet: the disk is full, say");
        return Ok(ExitCode::from(75));
    }
    if arguments.is_steered("stuck") {
        return Ok(ExitCode::from(143));
    }
    if arguments.is_steered("limited") {
        let path = arguments.out.join("epochs");
        let done = std::fs::read_to_string(&path).ok().and_then(|text| text.parse().ok()).unwrap_or(0usize);
        fet_io::write(&path, (done + 1).to_string().as_bytes())?;
        if done < 5 {
            let (loss, validation, seconds) = (0.25, 0.5, 0.1);
            tell(&RunEvent::Epoch { epoch: done + 1, epochs: 6, loss, validation, test: None, seconds })?;
            return Ok(ExitCode::from(143));
        }
    }
    tell(&RunEvent::Epoch {
        epoch: 2,
        epochs: 2,
        loss: 0.25,
        validation: 0.5,
        test: Some(0.5),
        seconds: 0.1,
    })?;
    let report = report(arguments, rows)?;
    if let Some(hits) = hits(arguments) {
        let text = predictions(hits, fold(arguments));
        fet_io::write(&arguments.out.join("predictions.csv"), text.as_bytes())?;
    }
    fet_io::write(&path, serde_json::to_string(&report)?.as_bytes())?;
    tell(&RunEvent::Done { report: path })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the number of correct test rows, if the settings state it.
fn hits(arguments: &CommandLine) -> Option<usize> {
    let hits = number(&arguments.sets, "predictions.hits")?;
    Some(hits as usize + arguments.seed as usize + fold(arguments) * (hits as usize - 30) / 10)
}

/// Returns the fold of the settings, or 0.
fn fold(arguments: &CommandLine) -> usize {
    number(&arguments.sets, "split.fold").unwrap_or(0.0) as usize
}

/// Returns two validation rows and 60 test rows, with the right class in `hits` test rows.
fn predictions(hits: usize, fold: usize) -> String {
    let mut text = "row,part,label,prediction,probability of no,probability of yes\n".to_string();
    for row in 0..62 {
        let part = if row < 2 { "validation" } else { "test" };
        let label = row % 2;
        let is_right = row < 2 || (row * 7) % 60 < hits;
        let predicted = if is_right { label } else { 1 - label };
        let (name, other) = (["no", "yes"][label], ["no", "yes"][predicted]);
        let number = row + 60 * fold;
        text.push_str(&format!("{number},{part},{name},{other},{},{}\n", 1 - predicted, predicted));
    }
    text
}

fn report(arguments: &CommandLine, rows: Rows) -> Result<Report> {
    let RunIdentity { experiment, data, results, .. } =
        arguments.identity(&arguments.sets, arguments.seed)?;
    let seed = arguments.seed;
    let epoch = |epoch, train_loss, result| EpochReport {
        epoch,
        learning_rate: 0.1,
        train_loss,
        validation: result,
        test: Some(result),
        traffic: Traffic::default(),
    };
    // The result varies with the number of neighbours or with the dropout, if the study sets one of them.
    let sets = arguments.sets.join(" ");
    let vary = |byte: u8| f64::from(byte) / 256.0 / 10.0;
    let test = number(&arguments.sets, "defence.test").map(|test| test + 0.01 * seed as f64);
    let varied = if let Some(share) = number(&arguments.sets, "method.dropout") {
        // A dropout of 0.25 is best, for any number of epochs.
        -(share - 0.25).abs()
    } else if sets.contains("neighbours") {
        vary(fet_io::sha256(sets.as_bytes())[0])
    } else {
        0.0
    };
    let test = test.unwrap_or((seed + 5) as f64 / 10.0) + varied;
    let test = hits(arguments).map_or(test, |hits| hits as f64 / 60.0);
    let rows = if hits(arguments).is_some() { Rows { train: 100, validation: 20, test: 60 } } else { rows };
    Ok(Report {
        program: Program { version: "0.1.0".into(), commit: "abc".into(), results },
        attack: attack(&experiment, &arguments.sets, seed),
        experiment,
        data: DataRecord { files: data, split: format!("s{seed}"), tables: Vec::new() },
        seed,
        device: arguments.device.clone(),
        warnings: Vec::new(),
        metric: Metric::Accuracy,
        class_names: vec!["no".into(), "yes".into()],
        rows,
        secondaries: 0,
        parameters: 12,
        fitted: BTreeMap::new(),
        epochs: vec![epoch(1, 0.9, 0.3), epoch(2, 0.5, 0.5)],
        best: Best { epoch: 2, validation: 0.5, test },
        evaluation: evaluation(seed, test)?,
        constant: None,
        coverage: None,
        privacy: None,
        release: None,
        labels: None,
        traffic: Traffic::default(),
        traffic_by_party: Vec::new(),
        cost: Cost {
            seconds: 1.5,
            setup_seconds: 0.5,
            train_rows_per_second: 80.0,
            peak_memory_bytes: 1024,
            ..Cost::default()
        },
    })
}

/// Evaluates 60 rows that differ with the seed. The accuracy is replaced by `test`, with an interval of 0.1
/// on either side.
fn evaluation(seed: u64, test: f64) -> Result<Evaluation> {
    let truth: Vec<f64> = (0..60).map(|row| f64::from(row % 2)).collect();
    let output: Vec<f64> =
        (0..60).map(|row| ((row * 7 + seed * 13) % 31) as f64 / 40.0 + (row % 2) as f64 / 4.0).collect();
    let names: Vec<String> = (0..60).map(|row| ["north", "south", "east"][row % 3].to_string()).collect();
    let rows = Predictions::new(Task::Binary, &truth, &output)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut evaluation =
        Evaluation::compute(Metric::Accuracy, &rows, &rows, Some(("region", &names)), &mut rng);
    let mut scores = BTreeMap::from(evaluation.test);
    scores.insert(Metric::Accuracy, ScoreValue::Value(test));
    evaluation.test = scores.try_into()?;
    if let Estimate::Interval(interval) = &mut evaluation.interval {
        (interval.estimate, interval.lower, interval.upper) = (test, test - 0.1, test + 0.1);
    }
    Ok(evaluation)
}

fn tell(event: &RunEvent) -> Result<()> {
    Ok(writeln!(stdout(), "{}", serde_json::to_string(event)?)?)
}
