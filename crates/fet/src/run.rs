//! `fet run`: trains one experiment and writes the results.
//!
//! The folder of a run contains the primary's files. While the run is active, this is
//! `checkpoint.safetensors`. A finished run has `report.json`, `model.safetensors`, `predictions.csv` for the
//! validation and test rows, `model-card.md`, and `report.html` with charts.
//!
//! In `parties/` each secondary has a folder for its own state and model. With `train.randomness = "own"`,
//! each party also has a folder for its seed.
//!
//! The run writes the report last, so a run with a report is complete. Only one process at a time works on a
//! folder (`lock`).

mod begin;
mod gate;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use fet_core::experiment::{Experiment, Randomness, TrainSettings};
use fet_eval::records::{Cost, DataRecord, Program, RESULTS_VERSION, Report};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::{RunError, SavedModel, StepReport, Trainer};
use fet_federation::{checkpoint, report};
use fet_io::input::{input, of_json};
use fet_io::memory::peak_memory;
use fet_io::{Journal, PAYLOAD};
use tracing::info_span;

use crate::attack;
use crate::bounds;
use crate::card;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::folder::{self, CARD, CHECKPOINT, DATA_FOLDER, MODEL, PAGE, PARTIES, PREDICTIONS, REPORT};
use crate::lock;
use crate::page;
use crate::parties::network::Elsewhere;
use crate::predictions;
use crate::provenance::{Provenance, check_files, files};
use crate::watch::Watch;

use self::begin::{not_resumed, unusable};
pub use self::begin::{party_error, trainer};
pub use crate::experiment_file::machine;
pub use crate::reporter::Log;
pub use fet_io::input::InputError;

/// Files of a run that remain in addition to its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// State of the last epoch, if the run can continue from it with more epochs.
    LastState,
    /// Results only.
    Nothing,
}

/// Warning about a rehearsal with parties elsewhere.
const REHEARSAL: &str = "this run is a rehearsal: the secrets, noise and masks of all parties derive from the \
 experiment's seed and hide nothing";

/// Outcome of a run.
#[derive(Debug)]
pub enum RunOutcome {
    /// The run is complete; contains the path of its report.
    Done(PathBuf),
    /// The folder already held this run's report.
    WasDone(PathBuf),
    /// The user interrupted the run; the same command resumes it.
    Interrupted(PathBuf),
    /// Another process works on this run.
    Elsewhere(PathBuf),
}

/// Trains `experiment` and writes the results into `folder`.
///
/// If the folder contains a finished run with fewer epochs, training continues from there. Setting `stop`
/// ends the run after the current step.
pub fn run(
    experiment: &Experiment,
    folder: &Path,
    log: Log,
    keep: Keep,
    stop: &AtomicBool,
) -> anyhow::Result<RunOutcome> {
    run_among(experiment, folder, &RunOptions { log, keep, stop, elsewhere: None })
}

/// Options of a run that do not change its results.
pub struct RunOptions<'a> {
    /// Form of progress messages.
    pub log: Log,
    /// Files that remain in addition to the results.
    pub keep: Keep,
    /// Flag that ends the run after the current step.
    pub stop: &'a AtomicBool,
    /// Parties elsewhere; the run then reads only the primary's data.
    pub elsewhere: Option<&'a Elsewhere>,
}

/// Like [`run()`], optionally with parties elsewhere.
pub fn run_among(
    experiment: &Experiment,
    folder: &Path,
    options: &RunOptions<'_>,
) -> anyhow::Result<RunOutcome> {
    let RunOptions { log, keep, stop, elsewhere } = *options;
    let start = Instant::now();
    let _span = info_span!(target: "fet", "run", experiment = experiment.name).entered();
    // The primary's secret randomness must not depend on a seed that all parties know.
    let own = match elsewhere {
        Some(elsewhere) if !elsewhere.is_rehearsal() => {
            let train = TrainSettings { randomness: Randomness::Own, ..experiment.train.clone() };
            Some(Experiment { train, ..experiment.clone() })
        }
        _ => None,
    };
    check_keys(experiment)?;
    let made_from = Provenance::of_experiment(experiment, &data_folders(experiment)).map_err(input)?;
    let experiment = own.as_ref().unwrap_or(experiment);
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let reads = match elsewhere {
        None => check_files(experiment, &data_folders(experiment))?,
        // The other parties' files are on other machines.
        Some(_) => files(experiment, &data_folders(experiment)).map_err(input)?,
    };
    let goes_on = experiment.can_go_on().map_err(input)?;
    let keeps = keep == Keep::LastState && goes_on;
    if let Some(outcome) = existing(folder, &made_from, goes_on, keeps)? {
        return Ok(outcome);
    }
    folder::check(folder, reads.iter().map(|(_, path)| path)).map_err(input)?;
    let planned = attack::Planned::from_experiment(experiment, &backend)?;
    let mut trainer = match elsewhere {
        None => trainer(experiment, &backend, Some(folder))?,
        // Joining parties would interrupt a run that is already under way.
        Some(_) if lock::is_held(folder) => return Ok(RunOutcome::Elsewhere(folder.to_path_buf())),
        Some(elsewhere) => begin::distributed(experiment, &backend, folder, elsewhere)?,
    };
    let rehearsal = elsewhere.is_some_and(Elsewhere::is_rehearsal).then_some(REHEARSAL);
    if let Some(rehearsal) = rehearsal {
        fet_io::note!("warning: {rehearsal}");
    }
    let mut warned = warn(&trainer, 0);
    // The function writes nothing before this point, so a run that cannot start leaves no files.
    std::fs::create_dir_all(folder).map_err(|error| {
        input(format!(
            "cannot create the folder {} ({error}); name another folder with --out",
            folder.display()
        ))
    })?;
    let Some(_lock) = lock::take(folder)? else { return Ok(RunOutcome::Elsewhere(folder.to_path_buf())) };
    let network = elsewhere.and_then(Elsewhere::joined);
    // The process that held the lock until now may have finished the run. A report protects the folder by
    // itself, so a refusal must not leave a lock file behind.
    let refused = |error: anyhow::Error| {
        if folder.join(REPORT).exists() {
            lock::leave(folder);
        }
        error
    };
    if let Some(outcome) = existing(folder, &made_from, goes_on, keeps).map_err(refused)? {
        return Ok(outcome);
    }
    network.map_or(Ok(()), |network| network.run().keep(folder, None))?;
    let _mirror = network.map(|network| network.mirror(folder));
    let parties = folder.join(PARTIES);
    trainer.keep_seed(&Simulation::store(Some(&parties), 0))?;
    // A release is written before the training, which depends on it, can begin.
    trainer.one_time_releases().keep(|number| Simulation::party_folder(&parties, number))?;
    let identity = serde_json::to_value(made_from.identity())?;
    let state = state_identity(&identity, goes_on);
    let earlier = resume(&mut trainer, &state, folder).map_err(refused)?;
    count_sessions(&mut trainer, experiment, &state, folder, earlier)?;
    let setup_seconds = start.elapsed().as_secs_f64();
    let rows = report::rows(&trainer);
    let mut watch = Watch::start(log, trainer.epochs(), trainer.metric(), rows);
    watch.parties(network);
    let (mut trained_rows, mut trained_seconds) = (0usize, 0.0);
    while !trainer.is_done() {
        let epoch = trainer.progress().epochs.len() + 1;
        let began = Instant::now();
        let (mut training, mut done) = (0.0, 0);
        watch.epoch_begins(epoch, rows.train);
        let result = trainer.epoch(&mut |step: StepReport| {
            watch.step(epoch, step);
            (training, done) = (step.rows as f64 / step.rows_per_second, step.rows);
            !stop.load(Ordering::Relaxed)
        });
        match result {
            Ok(None) => {}
            Ok(Some(report)) => watch.epoch_ends(report, began.elapsed().as_secs_f64()),
            Err(RunError::Interrupted { .. }) => return Ok(RunOutcome::Interrupted(folder.to_path_buf())),
            Err(error) => return Err(error.into()),
        }
        warned = warn(&trainer, warned);
        trained_rows += done;
        trained_seconds += training;
        if (keeps || !trainer.is_done()) && trainer.can_resume() {
            let seconds = earlier + start.elapsed().as_secs_f64();
            write(&folder.join(CHECKPOINT), &checkpoint::save(&mut trainer, &state, seconds)?)?;
        }
    }
    if experiment.release.is_some() && experiment.train.gate {
        let place = (&backend, folder);
        let Some(better) = gate::better(trainer, experiment, place, elsewhere, stop)? else {
            return Ok(RunOutcome::Interrupted(folder.to_path_buf()));
        };
        trainer = better;
    }
    let cost = Cost {
        seconds: earlier + start.elapsed().as_secs_f64(),
        setup_seconds,
        train_rows_per_second: if trained_seconds > 0.0 {
            trained_rows as f64 / trained_seconds
        } else {
            0.0
        },
        phases: trainer.phases(),
        peak_memory_bytes: peak_memory(),
    };
    let attack = match planned.map(|planned| planned.run(experiment, &backend, stop)).transpose()? {
        Some(None) => return Ok(RunOutcome::Interrupted(folder.to_path_buf())),
        found => found.flatten(),
    };
    let mut report = Report { attack, ..report_of(&trainer, experiment, made_from, cost)? };
    for warning in report.warnings.iter().skip(trainer.warnings().len()) {
        fet_io::note!("warning: {warning}");
    }
    report.warnings.extend(rehearsal.map(String::from));
    trainer.finish()?;
    // Predictions look for the data files there; the results of the run do not depend on this path.
    if let Some(place) = experiment.folder.as_deref().and_then(|place| place.canonicalize().ok()) {
        write(&folder.join(DATA_FOLDER), place.to_string_lossy().as_bytes())?;
    }
    let conformal = trainer.conformal(experiment.scores.coverage);
    predictions::write(&trainer, conformal.as_ref(), &folder.join(PREDICTIONS))?;
    write(&folder.join(CARD), card::card(experiment, &trainer, &report, conformal.as_ref())?.as_bytes())?;
    write(&folder.join(PAGE), page::text(experiment, &report, None)?.as_bytes())?;
    let model = SavedModel::from_trainer(&trainer, &identity, conformal).to_bytes();
    write(&folder.join(MODEL), &model)?;
    network.map_or(Ok(()), |network| network.run().keep(folder, Some(&model)))?;
    let path = folder.join(REPORT);
    write(&path, format!("{}\n", serde_json::to_string_pretty(&report)?).as_bytes())?;
    if !keeps {
        remove(&folder.join(CHECKPOINT))?;
        if let Err(error) = trainer.forget() {
            fet_io::note!("warning: the run is complete; its saved states could not be removed: {error}");
        }
    }
    lock::leave(folder);
    watch.privacy(report.privacy.as_ref());
    watch.release(report.release.as_ref());
    watch.done(&path).with_context(|| {
        format!("standard output: some events could not be written; the run is finished: {}", path.display())
    })?;
    Ok(RunOutcome::Done(path))
}

/// Refuses keys in an order that the linker does not take them in.
pub(crate) fn check_keys(experiment: &Experiment) -> anyhow::Result<()> {
    let (data, linker) = (experiment.data.settings(), experiment.linker.settings());
    let secondaries = data.get("secondaries").and_then(toml::Value::as_array).into_iter().flatten();
    let secondaries = secondaries.enumerate().map(|(at, table)| (format!("secondaries[{at}]"), table));
    let primary = data.get("primary").map(|table| ("primary".to_string(), table));
    for (table, settings) in primary.into_iter().chain(secondaries) {
        let keys = settings.get("keys").and_then(toml::Value::as_array).into_iter().flatten();
        let keys: Vec<String> = keys.filter_map(|key| key.as_str().map(String::from)).collect();
        if let Some(problem) = fet_linkers::latitude_first(&linker, &keys) {
            return Err(input(format!("`data.{table}.keys`: {problem}")));
        }
    }
    Ok(())
}

/// Shows the trainer's warnings after the first `shown`; returns the number of all warnings.
fn warn(trainer: &Trainer, shown: usize) -> usize {
    for warning in &trainer.warnings()[shown..] {
        fet_io::note!("warning: {warning}");
    }
    trainer.warnings().len()
}

/// Inspects the content of the folder.
///
/// Returns the outcome if the folder already contains this run's report. Returns `None` if there is no
/// report, or only that of the same run with fewer epochs, which can continue if `goes_on` is true. Refuses
/// any other report.
fn existing(
    folder: &Path,
    made_from: &Provenance,
    goes_on: bool,
    keeps: bool,
) -> anyhow::Result<Option<RunOutcome>> {
    let path = folder.join(REPORT);
    let unreadable = |error| input(format!("{}: {error}; move it away", path.display()));
    let Some(text) = read_if_present(&path).map_err(unreadable)? else { return Ok(None) };
    let report: Report = serde_json::from_slice(&text).map_err(|e| {
        input(format!("{} is not a report of a run ({}); move it away", path.display(), of_json(&e)))
    })?;
    let same_data = report.data.files == made_from.files && report.program.results == RESULTS_VERSION;
    let other = if same_data && goes_on && is_longer(&made_from.experiment, &report.experiment) {
        if folder.join(CHECKPOINT).exists() {
            return Ok(None);
        }
        "with fewer epochs and without a state to continue from"
    } else if report.experiment != made_from.experiment {
        "with other settings"
    } else if report.data.files != made_from.files {
        "on other data"
    } else if report.program.results != RESULTS_VERSION {
        "from a program with another version of the results"
    } else {
        if !keeps {
            tidy(folder);
        }
        FinishedRun::read(folder)?.check()?;
        return Ok(Some(RunOutcome::WasDone(path)));
    };
    let message = format!("contains the report of a run {other}; name another folder with --out");
    Err(input(format!("{} {message}", folder.display())))
}

/// Returns the content of a file, or `None` if the file does not exist. A broken symbolic link is an error.
fn read_if_present(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        // If a parent of the path is not a folder, the first write reports the error.
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => Ok(None),
        _ => fet_io::read(path).map(Some),
    }
}

/// Returns the identity of a saved state: the identity of the run, without the number of epochs if `goes_on`
/// is true.
fn state_identity(identity: &serde_json::Value, goes_on: bool) -> serde_json::Value {
    let mut identity = identity.clone();
    if let Some(epochs) = identity.pointer_mut("/experiment/train/epochs").filter(|_| goes_on) {
        epochs.take();
    }
    identity
}

/// Returns true if the settings differ from `earlier` ones only by a larger number of epochs.
fn is_longer(settings: &serde_json::Value, earlier: &serde_json::Value) -> bool {
    let place = "/train/epochs";
    let epochs = |settings: &serde_json::Value| settings.pointer(place).and_then(serde_json::Value::as_u64);
    let mut same = earlier.clone();
    if let (Some(old), Some(new)) = (same.pointer_mut(place), settings.pointer(place)) {
        *old = new.clone();
    }
    same == *settings && epochs(settings) > epochs(earlier)
}

/// Removes the saved states of a run that was killed after it wrote its report.
fn tidy(folder: &Path) {
    // A failed removal does no harm, because the report shows that the run is complete.
    let _ = remove(&folder.join(CHECKPOINT));
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    for state in entries(&folder.join(PARTIES)).flat_map(|party| entries(&party.path())) {
        if state.file_name().to_string_lossy().starts_with("state-") {
            let _ = remove(&state.path());
        }
    }
}

/// Resumes from the folder's checkpoint if it belongs to this run; returns the seconds that the run has taken
/// so far.
fn resume(trainer: &mut Trainer, identity: &serde_json::Value, folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join(CHECKPOINT);
    let Some(bytes) = read_if_present(&path).map_err(|error| unusable(&path, error))? else { return Ok(0.0) };
    match checkpoint::load(trainer, identity, &bytes) {
        Ok(seconds) => {
            let (done, epochs) = (trainer.progress().epochs.len(), trainer.epochs());
            if done > epochs {
                let problem = format!("its epoch is {done}, but `train.epochs` is {epochs}");
                bail!(unusable(&path, problem));
            }
            fet_io::note!("continuing after epoch {done}");
            Ok(seconds)
        }
        Err(error) => Err(not_resumed(&path, error)),
    }
}

/// Records the start of a session of a run with its own randomness, before the session releases anything.
///
/// The trainer then accounts for releases of earlier sessions that no checkpoint records.
fn count_sessions(
    trainer: &mut Trainer,
    experiment: &Experiment,
    identity: &serde_json::Value,
    folder: &Path,
    seconds: f64,
) -> anyhow::Result<()> {
    if experiment.train.randomness != Randomness::Own {
        return Ok(());
    }
    let path = folder.join(PARTIES).join("primary").join("sessions");
    let failed = |error: &dyn std::fmt::Display| {
        input(format!(
            "{}: {error}. The file counts the sessions of this run; without it the run cannot continue.",
            path.display()
        ))
    };
    let (mut journal, _) = Journal::open(&path).map_err(|error| failed(&error))?;
    let earlier = journal.records();
    let counted = trainer.count_sessions(earlier);
    journal.append(&[0; PAYLOAD], true).map_err(|error| failed(&error))?;
    if counted && !trainer.progress().epochs.is_empty() {
        write(&folder.join(CHECKPOINT), &checkpoint::save(trainer, identity, seconds)?)?;
    }
    Ok(())
}

/// Returns the report of a finished run.
pub fn report_of(
    trainer: &Trainer,
    experiment: &Experiment,
    made_from: Provenance,
    cost: Cost,
) -> anyhow::Result<Report> {
    let conformal = trainer.conformal(experiment.scores.coverage);
    let coverage = conformal.as_ref().and_then(|conformal| trainer.coverage(conformal));
    let mut warnings = trainer.warnings().to_vec();
    if let Some((conformal, coverage)) = conformal.as_ref().zip(coverage.as_ref()) {
        warnings.extend(bounds::warnings(conformal, coverage, trainer.class_names(), bounds::TEST_ROWS));
    }
    Ok(Report {
        program: Program {
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: env!("FET_COMMIT").to_string(),
            results: RESULTS_VERSION,
        },
        experiment: made_from.experiment,
        data: DataRecord {
            files: made_from.files,
            split: crate::provenance::split(trainer.split()),
            tables: report::tables(trainer),
        },
        seed: experiment.seed,
        device: experiment.device.clone(),
        warnings,
        metric: trainer.metric(),
        class_names: trainer.class_names().to_vec(),
        rows: report::rows(trainer),
        secondaries: trainer.federation().len(),
        parameters: trainer.parameters(),
        fitted: trainer.fitted_settings(),
        epochs: trainer.progress().epochs.clone(),
        best: report::best(trainer).context("no epoch had a finite metric")?,
        evaluation: trainer.evaluation().context("no epoch had a finite metric")?,
        constant: report::constant(trainer),
        coverage,
        privacy: trainer.spent(),
        release: trainer.one_time_releases().record().cloned(),
        labels: trainer.label_privacy(),
        attack: None,
        traffic: trainer.federation().traffic(),
        traffic_by_party: report::traffic_by_party(trainer),
        cost,
    })
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fet_io::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
