//! `tune`: a search over the settings of an experiment by successive halving (Jamieson, Talwalkar 2016). No
//! candidate sees the test rows.
//!
//! The candidates are the unchanged experiment and random draws from the file's table `[tune]`. All
//! candidates run for a few epochs, the best of them and the unchanged experiment for more epochs, and so on.
//! Every cell runs with `split.tuning`: the test rows are held out, half of the validation rows select the
//! epoch, and the other half compares the candidates. Cells work as in a study: their address identifies
//! them, so that an interrupted search resumes.

mod outcome;
pub(crate) mod space;

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail, ensure};
use fet_eval::records::ShowAnswer;
use fet_eval::{ChaCha8Rng, SeedableRng};

use super::cell::{self, Cell, make_folder};
use super::composed::Composed;
use super::engine::local::LocalEngine;
use super::engine::{self, Engine, EngineOutcome, Work};
use super::failure::CellFailure;
use super::fet::{Base, Fet, Variation};
use super::file::StudyFile;
use super::grid::{StudyGrid, Variant};
use super::repetition::check_seeds;
use super::report::say_unreadable;
use super::results::finished;
use super::view::{LogForm, ProgressView};
use outcome::{CandidateScore, Rung};
use space::{Range, Tune};

/// The arguments of `tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct TuneArguments {
    /// Experiment file with the table `tune`, or its bare name, such as `hdb`.
    file: PathBuf,
    /// Variant of the file's study whose settings are the base; `[tune.variants."NAME"]` adds settings to the
    /// search space.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Change a setting of the base; can be given many times. A variant's change to the same setting wins,
    /// and a drawn value wins over both.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Smaller form of the study, from the file's table `profile.NAME`.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Number of cells that run at the same time.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Seeds of every candidate's runs; candidates are ranked by the mean over them. [default: the first of
    /// the study]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    seeds: Option<Vec<u64>>,
    /// Number of cross-validation folds, instead of the file's; candidates are ranked by the mean over the folds.
    #[arg(long, value_name = "N")]
    folds: Option<usize>,
    /// Seed for drawing candidates: another number draws other candidates.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    draw: u64,
    /// Number of candidates, instead of the file's.
    #[arg(long, value_name = "N")]
    candidates: Option<usize>,
    /// Tensor backend, such as flex, ndarray, libtorch or libtorch-cuda.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Form of the progress output.
    #[arg(long, value_enum, default_value_t)]
    log: LogForm,
    /// Folder of the results.
    #[arg(long, default_value = "runs", value_name = "DIR")]
    out: PathBuf,
}

const AFTER_HELP: &str = "\
A search reads one more table of an experiment file:

  [tune]
  candidates = 27                        # the unchanged experiment and 26 random draws
  keep = 3                               # one in three continues
  folds = 5                              # optional: every candidate on each of 5 cross-validation folds
  rungs = 3                              # with a ninth of the epochs, then a third, then all
  [tune.space]
  \"method.dropout\" = { from = 0.0, to = 0.4 }
  \"method.optimizer.learning_rate\" = { from = 0.0003, to = 0.03, log = true }
  \"linker.neighbours\" = [5, 20, 50]
  [tune.variants.\"FeT-Pool\"]             # additional settings for one variant, with --variant
  \"encoder.hidden\" = [[64], [128]]

The test rows are held out (`split.tuning`): the search neither trains on them nor scores them. Half of the validation rows
select the epoch; the other half compares candidates. A random split has different test rows for each seed. The settings
chosen with one seed may thus depend on the test rows of another seed. Only a split by a column, by time or by a file keeps
the test rows unseen over all seeds. With folds, the test rows of one fold are training and validation rows of the others: a
cross-validation of the chosen settings is optimistic, and only rows outside the table give an unbiased estimate.
The results are in DIR/NAME-tune (and -VARIANT, -PROFILE, -drawN): tune.md, tune.json, and a folder per cell in cells/. The same command resumes.

Exit codes: 0 the search is done; 1 no candidate could be run; 2 the input is invalid; 130 interrupted.";

/// Candidate of a search: one choice of settings.
#[derive(Debug, Clone)]
struct Candidate {
    /// Number of the candidate; 0 is the unchanged experiment.
    number: usize,
    /// Drawn settings, each as `path=value`.
    drawn: Vec<String>,
    /// Number of epochs in the last rung.
    epochs: u64,
}

/// Runs the search that `arguments` describe, with the `fet` that `locate` finds or builds.
///
/// The exit code is 0 if every rung ran, 1 if no candidate completed a rung, and 130 if the search was
/// interrupted. An [`output::Failed`](crate::output::Failed) error means exit code 1. Any other error means
/// that the input is invalid.
pub fn tune(arguments: &TuneArguments, locate: impl FnOnce() -> Result<Fet>) -> Result<ExitCode> {
    let path = fet_io::experiment(&arguments.file);
    let file = StudyFile::read(&path)?;
    let place = path.display().to_string();
    let tune = search(&file, arguments).context(place.clone())?;
    let name = file
        .name
        .clone()
        .unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    let seeds = match (&arguments.seeds, &file.ablation) {
        (Some(seeds), _) => seeds.clone(),
        (None, Some(study)) => study.seeds.first().copied().into_iter().collect(),
        (None, None) => vec![file.seed],
    };
    check_seeds("--seeds", &seeds)?;
    let own = base(&file, arguments).context(place)?;
    let sets =
        [own.clone(), vec![format!("name={}", study(&name, arguments)), "split.tuning=true".into()]].concat();
    let base = Base { file: &path, sets: &sets, device: arguments.device.as_deref() };
    let fet = locate()?;
    let candidates = drawn(&tune, arguments, &fet, &base, seeds[0])?;
    let stop = engine::stop_on_interrupt()?;
    let search = TuneContext {
        arguments,
        tune: &tune,
        name: &name,
        seeds: &seeds,
        fet: &fet,
        base: &base,
        stop: &stop,
    };
    let mut rungs: Vec<Rung> = Vec::new();
    let mut composed = Composed::default();
    let (started, mut left) = (candidates.len(), candidates);
    for number in 0..tune.rungs {
        let (rung, folder) = match search.rung(number, &left, &mut composed)? {
            RungOutcome::Ranked(rung, folder) => (rung, folder),
            RungOutcome::Interrupted => {
                fet_io::note!(
                    "interrupted in rung {} of {}; the same command resumes",
                    number + 1,
                    tune.rungs
                );
                return Ok(ExitCode::from(130));
            }
            RungOutcome::Nothing(problem) => {
                fet_io::note!("no candidate completed the rung; the first problem: {problem}");
                return Ok(ExitCode::from(1));
            }
        };
        let is_last = number + 1 == tune.rungs;
        let survivors = if is_last { rung.scores.len() } else { tune.survivors(started, number) };
        // The unchanged experiment stays in every rung, because the result is compared with it.
        let goes_on = |(place, score): &(usize, &CandidateScore)| *place < survivors || score.number == 0;
        let order: Vec<usize> =
            rung.scores.iter().enumerate().filter(goes_on).map(|(_, score)| score.number).collect();
        left = order
            .iter()
            .filter_map(|number| left.iter().find(|candidate| candidate.number == *number).cloned())
            .collect();
        rungs.push(rung);
        if is_last {
            outcome::conclude(
                &outcome::TuneResults {
                    rungs: &rungs,
                    seeds: &seeds,
                    folds: tune.folds,
                    file: &path,
                    own: &own,
                    warning: composed.warning(),
                    log: arguments.log,
                },
                &folder,
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the search's study: the experiment's name, followed by variant, profile and draw,
/// which distinguish searches of the same file.
fn study(name: &str, arguments: &TuneArguments) -> String {
    let parts =
        [arguments.variant.as_deref(), arguments.profile.as_deref()].into_iter().flatten().map(cell::slug);
    let draw = (arguments.draw > 0).then(|| format!("draw{}", arguments.draw));
    parts.chain(draw).fold(format!("{name}-tune"), |study, part| format!("{study}-{part}"))
}

/// Context common to all rungs of a search.
struct TuneContext<'a> {
    arguments: &'a TuneArguments,
    tune: &'a Tune,
    /// Name of the experiment.
    name: &'a str,
    seeds: &'a [u64],
    fet: &'a Fet,
    base: &'a Base<'a>,
    stop: &'a AtomicBool,
}

/// Outcome of a rung.
enum RungOutcome {
    /// Ranked scores, best first, and the folder of the search.
    Ranked(Rung, PathBuf),
    Interrupted,
    /// First problem, if no candidate completed the rung.
    Nothing(String),
}

impl TuneContext<'_> {
    /// Runs the remaining candidates with the epochs of rung `number`, from 0, and ranks them. Adds their
    /// privacy loss to that of the search.
    fn rung(&self, number: usize, left: &[Candidate], composed: &mut Composed) -> Result<RungOutcome> {
        let variants = left.iter().map(|candidate| variant(candidate, self.tune, number)).collect();
        let grid = StudyGrid::of_variants(self.name, variants, self.seeds.to_vec(), self.tune.folds);
        let cells = cell::resolve(&grid, self.fet, self.base, &self.arguments.out)?;
        if self.run(&cells)? == EngineOutcome::Interrupted {
            return Ok(RungOutcome::Interrupted);
        }
        let done = finished(&cells);
        done.iter().for_each(|result| composed.add(&result.report));
        let failures: Vec<_> =
            cells.iter().filter_map(|cell| Some((cell, CellFailure::read(cell)?))).collect();
        for (cell, failure) in &failures {
            fet_io::note!("{} leaves the search: {}", cell.title(), failure.problem);
        }
        let epochs = left.iter().map(|own| self.tune.epochs(own.epochs, number)).collect();
        let mut rung = Rung { epochs, scores: Vec::new() };
        for (index, candidate) in left.iter().enumerate() {
            let own: Vec<_> = done.iter().filter(|result| result.cell.index == index).collect();
            // A candidate that fails with one seed or fold leaves the search, even if its others have results.
            let whole = own.len() == grid.repetitions().len();
            rung.scores
                .extend(whole.then(|| CandidateScore::from_runs(candidate.number, &candidate.drawn, &own)));
        }
        rung.rank()?;
        Ok(match cells.first() {
            Some(cell) if !rung.scores.is_empty() => RungOutcome::Ranked(rung, cell.study.clone()),
            _ => RungOutcome::Nothing(first(&failures)),
        })
    }

    /// Runs those cells that have no result yet.
    fn run(&self, cells: &[Cell]) -> Result<EngineOutcome> {
        let done: HashSet<PathBuf> =
            finished(cells).iter().map(|result| result.cell.folder.clone()).collect();
        let missing: Vec<&Cell> = cells.iter().filter(|cell| !done.contains(&cell.folder)).collect();
        if missing.is_empty() {
            return Ok(EngineOutcome::Ended);
        }
        say_unreadable(&missing);
        make_folder(missing[0])?;
        let view = ProgressView::new(self.arguments.log, done.len(), cells.len());
        let work = Work { fet: self.fet, base: self.base, view: &view, stop: self.stop };
        LocalEngine { jobs: self.arguments.jobs }.run(&missing, &work)
    }
}

fn first(failures: &[(&Cell, CellFailure)]) -> String {
    failures
        .first()
        .map_or_else(String::new, |(cell, failure)| format!("{}: {}", cell.title(), failure.problem))
}

/// Returns the file's table `[tune]`, with the changes of the command line.
fn search(file: &StudyFile, arguments: &TuneArguments) -> Result<Tune> {
    let Some(mut tune) = file.tune.clone() else {
        bail!(
            "the table `[tune]`, which defines the search space, is missing; `fet tune --help` shows an example"
        );
    };
    tune.candidates = arguments.candidates.unwrap_or(tune.candidates);
    tune.folds = arguments.folds.unwrap_or(tune.folds);
    tune.check()?;
    let known: Vec<&str> = file
        .ablation
        .iter()
        .flat_map(|study| study.variants.iter().map(|variant| variant.name.as_str()))
        .collect();
    for name in tune.variants.keys() {
        ensure!(
            known.contains(&name.as_str()),
            "tune.variants: unknown variant {name:?}; the variants are {known:?}"
        );
    }
    let space = tune.space_of(arguments.variant.as_deref());
    ensure!(!space.is_empty(), "tune.space: is empty; name at least one setting to draw");
    Ok(tune)
}

/// Returns the changes of the profile, the command line and the variant, in this order.
fn base(file: &StudyFile, arguments: &TuneArguments) -> Result<Vec<String>> {
    let mut sets = Vec::new();
    if let Some(wanted) = &arguments.profile {
        let profile = file.profile.get(wanted).with_context(|| {
            let known: Vec<&String> = file.profile.keys().collect();
            format!("--profile: unknown profile {wanted:?}; the profiles are {known:?}")
        })?;
        sets.extend(profile.set.iter().cloned());
    }
    sets.extend(arguments.sets.iter().cloned());
    if let Some(wanted) = &arguments.variant {
        let variants = file.ablation.as_ref().map(|study| study.variants.as_slice()).unwrap_or_default();
        let variant = variants.iter().find(|variant| variant.name == *wanted).with_context(|| {
            let known: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
            format!("--variant: unknown variant {wanted:?}; the variants are {known:?}")
        })?;
        sets.extend(variant.set.iter().cloned());
    }
    Ok(sets)
}

/// Returns the candidates that `fet` accepts, without duplicates. The first is the unchanged experiment.
fn drawn(
    tune: &Tune,
    arguments: &TuneArguments,
    fet: &Fet,
    base: &Base<'_>,
    seed: u64,
) -> Result<Vec<Candidate>> {
    let space: BTreeMap<&str, &Range> = tune.space_of(arguments.variant.as_deref());
    let mut rng = ChaCha8Rng::seed_from_u64(arguments.draw);
    let draw = |_| space.iter().map(|(path, range)| format!("{path}={}", range.draw(&mut rng))).collect();
    let settings: Vec<Vec<String>> =
        std::iter::once(Vec::new()).chain((1..tune.candidates).map(draw)).collect();
    let variations: Vec<Variation<'_>> =
        settings.iter().map(|sets| Variation { sets, seed, is_of_fet: true }).collect();
    let mut seen: HashSet<String> = HashSet::new();
    let (mut candidates, mut refused, mut twice) = (Vec::new(), Vec::new(), 0);
    for (number, (drawn, answer)) in settings.iter().zip(fet.show(base, &variations)?).enumerate() {
        let identity = match answer {
            ShowAnswer::Identity(identity) => identity,
            ShowAnswer::Refused(error) if number == 0 => bail!("{error}"),
            ShowAnswer::Refused(error) => {
                refused.push(error);
                continue;
            }
        };
        ensure!(
            identity.experiment["split"]["tuning"] == serde_json::Value::Bool(true),
            "tune.space: candidate {number} must not change `split.tuning`, because it would see the test rows"
        );
        if seen.insert(identity.experiment.to_string()) {
            let epochs = identity.experiment["train"]["epochs"]
                .as_u64()
                .context("the experiment lacks `train.epochs`")?;
            candidates.push(Candidate { number, drawn: drawn.clone(), epochs });
        } else {
            twice += 1;
        }
    }
    if twice > 0 {
        fet_io::note!("{twice} of {} candidates are duplicates and run only once", tune.candidates);
    }
    if let Some(error) = refused.first() {
        fet_io::note!(
            "{} of {} candidates are invalid and left out; the first: {error}",
            refused.len(),
            tune.candidates
        );
    }
    ensure!(
        candidates.len() > 1,
        "tune.space: must give at least two valid candidates; of the drawn candidates {} are invalid and {twice} are duplicates{}",
        refused.len(),
        refused.first().map_or_else(String::new, |error| format!(" (the first: {error})"))
    );
    Ok(candidates)
}

/// Returns a candidate in rung `rung`, from 0, as a variant of a study.
fn variant(candidate: &Candidate, tune: &Tune, rung: usize) -> Variant {
    let epochs = tune.epochs(candidate.epochs, rung);
    let name = match candidate.number {
        0 => "as it is".to_string(),
        number => format!("candidate {number}"),
    };
    let mut sets = candidate.drawn.clone();
    sets.push(format!("train.epochs={epochs}"));
    Variant::new(format!("{name}, {epochs} epoch{}", if epochs == 1 { "" } else { "s" }), sets)
}
