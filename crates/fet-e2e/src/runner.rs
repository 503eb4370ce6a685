//! Runs the cases of a suite one after another, prints failing cases, and counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::folder::copy;
use crate::mutate::generator;
use crate::process::go_on;
use crate::tally::FaultTally;

/// Options of a suite: its cases, output and kept files.
#[derive(Debug, Clone)]
pub(crate) struct RunnerOptions<'a> {
    /// Folder below which the cases run.
    pub(crate) root: &'a Path,
    /// Name of the suite on the command line.
    pub(crate) suite: &'static str,
    /// Run only the cases of the short form.
    pub(crate) short: bool,
    /// Run only the cases whose title contains this text.
    pub(crate) only: Option<&'a str>,
    /// Seed of all random choices.
    pub(crate) seed: u64,
    /// Number of minutes for which the seeded cases repeat with the following seeds.
    pub(crate) minutes: Option<u64>,
    /// Keep the folder of each failing case below this folder.
    pub(crate) keep: Option<PathBuf>,
    /// Print each case and its result.
    pub(crate) verbose: bool,
}

/// Returns the canonical path of `fet`, and a temporary folder for a suite.
pub(crate) fn prepare(fet: &Path) -> anyhow::Result<(PathBuf, TempDir)> {
    let fet = fet.canonicalize().with_context(|| format!("{}", fet.display()))?;
    let root = tempfile::Builder::new().prefix("fet-e2e-").tempdir();
    Ok((fet, root.context("cannot create a temporary folder")?))
}

/// Returns the folder of the running case.
pub(crate) fn case_folder(root: &Path) -> PathBuf {
    root.join("case")
}

/// Runs the chosen cases. Calls `say` with each line to show. Returns true if no case
/// has a fault.
pub(crate) fn run<C>(
    shared: &C,
    mut cases: Vec<Case<C>>,
    options: &RunnerOptions<'_>,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<bool> {
    let start = Instant::now();
    cases.retain(|case| options.only.is_none_or(|only| case.title().contains(only)));
    cases.retain(|case| case.short || !options.short);
    ensure!(!cases.is_empty(), "no case matches --only");
    let mut tally = FaultTally::default();
    let limit = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    'seeds: for seed in options.seed.. {
        for case in cases.iter().filter(|case| seed == options.seed || case.seeded) {
            if limit.is_some_and(|limit| start.elapsed() > limit) && seed > options.seed {
                break 'seeds;
            }
            let began = Instant::now();
            let verdict = run_case(shared, case, seed, options, say)?;
            if go_on().is_err() {
                say(format!("stopped in {}", case.title()));
                break 'seeds;
            }
            tally.add(case.area, 1, Some(verdict.end), verdict.faults.iter().map(|fault| fault.kind));
            if options.verbose {
                let how =
                    if verdict.faults.is_empty() { format!("{:?}", verdict.end) } else { "FAIL".into() };
                let notes = verdict.notes.join("; ");
                let seconds = began.elapsed().as_secs_f64();
                say(format!("{seconds:6.2} s  {} seed {seed}: {how}  {notes}", case.title()));
            }
        }
        if limit.is_none_or(|limit| start.elapsed() >= limit) || !cases.iter().any(|case| case.seeded) {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    say(format!("{} cases in {seconds:.1} s, seed {}", tally.cases(), options.seed));
    say(tally.table("area"));
    say(format!("{} of {} cases ended as expected", tally.good(), tally.cases()));
    Ok(tally.good() == tally.cases())
}

fn run_case<C>(
    shared: &C,
    case: &Case<C>,
    seed: u64,
    options: &RunnerOptions<'_>,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<CaseResult> {
    let folder = case_folder(options.root);
    std::fs::create_dir_all(&folder)?;
    let number = case.name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
    let mut rng = generator(seed, case.area, number);
    let verdict = (case.run)(shared, &folder, &mut rng).unwrap_or_else(|error| {
        let mut verdict = CaseResult::new(CaseEnd::Refused);
        verdict.fault(FaultKind::WrongCode, format!("cannot run the case: {error:#}"));
        verdict
    });
    if !verdict.faults.is_empty() && go_on().is_ok() {
        say(format!("FAIL {}", case.title()));
        for note in &verdict.notes {
            say(format!("    {note}"));
        }
        for fault in &verdict.faults {
            say(format!("    {}: {}", fault.kind.name(), fault.what.trim_end().replace('\n', "\n        ")));
        }
        let title = quoted(&case.title());
        say(format!("    again: fet-e2e {} FET --seed {seed} --only {title}", options.suite));
        if let Some(keep) = &options.keep {
            let kept = keep.join(format!("{}-s{seed}", case.title().replace(['/', ' ', ','], "-")));
            copy(&folder, &kept).with_context(|| format!("cannot keep {}", kept.display()))?;
            say(format!("    kept: {}", kept.display()));
        }
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(verdict)
}

/// Quotes a word for the shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
