//! `fet run`: trains one experiment and writes the results.
//!
//! The folder of a run holds the primary's files: `checkpoint.safetensors` while it is running, and `report.json` and
//! `model.safetensors` once it is done, with `predictions.csv` for the
//! validation and test rows, and `model-card.md`. In `parties/` each secondary has a folder for its own state and model (and, with
//! `train.randomness = "own"`, each party one for its seed). The
//! report is written last: if it exists, the run is complete. Only one process at a time works on a folder (`lock`).

mod begin;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use fet_core::experiment::{Experiment, Randomness, TrainSettings};
use fet_files::{Journal, PAYLOAD};
use fet_records::{Cost, DataRecord, Program, RESULTS_VERSION, Report};
use fet_train::simulation::Simulation;
use fet_train::trainer::{RunError, SavedModel, StepReport, Trainer};
use fet_train::{checkpoint, report};

use crate::attack;
use crate::card;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::folder::{self, CARD, CHECKPOINT, DATA_FOLDER, MODEL, PARTIES, PREDICTIONS, REPORT};
pub use crate::input::{InputError, machine};
use crate::input::{input, of_json};
use crate::lock;
use crate::memory::peak_memory;
use crate::parties::network::Elsewhere;
use crate::predictions;
use crate::provenance::{Provenance, check_files, files};
use crate::watch::Watch;

pub use self::begin::{party_error, trainer};
pub use crate::watch::Log;

/// What is left of a run besides its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The state of its last epoch, where it can go on from it with more epochs.
    LastState,
    /// Nothing.
    Nothing,
}

/// The warning of a rehearsal among parties elsewhere.
const REHEARSAL: &str = "this run is a rehearsal: the secrets, noise and masks of all parties follow from the experiment's seed, and hide \
                         nothing";

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// The run is complete; this is its report.
    Done(PathBuf),
    /// The folder already held this run's report.
    WasDone(PathBuf),
    /// It was interrupted; the same command resumes it.
    Interrupted(PathBuf),
    /// Another process works on this run.
    Elsewhere(PathBuf),
}

/// Trains `experiment` and writes into `folder`; a finished run with fewer epochs in it goes on. Setting `stop` ends it after
/// the current step.
pub fn run(
    experiment: &Experiment,
    folder: &Path,
    log: Log,
    keep: Keep,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    run_among(experiment, folder, log, keep, stop, None)
}

/// The same with parties elsewhere, if there are any; only the primary's data are read.
pub fn run_among(
    experiment: &Experiment,
    folder: &Path,
    log: Log,
    keep: Keep,
    stop: &AtomicBool,
    elsewhere: Option<&Elsewhere>,
) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    // What the primary draws in secret must not follow from a seed that all parties know.
    let own = match elsewhere {
        Some(elsewhere) if !elsewhere.is_rehearsal() => {
            let train = TrainSettings { randomness: Randomness::Own, ..experiment.train.clone() };
            Some(Experiment { train, ..experiment.clone() })
        }
        _ => None,
    };
    check_keys(experiment)?;
    let made_from = Provenance::of(experiment, &data_folders(experiment)).map_err(input)?;
    let experiment = own.as_ref().unwrap_or(experiment);
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let reads = match elsewhere {
        None => check_files(experiment, &data_folders(experiment))?,
        // The others' files are elsewhere.
        Some(_) => files(experiment, &data_folders(experiment)),
    };
    let goes_on = experiment.can_go_on().map_err(input)?;
    let keeps = keep == Keep::LastState && goes_on;
    if let Some(outcome) = existing(folder, &made_from, goes_on, keeps)? {
        return Ok(outcome);
    }
    folder::check(folder, reads.iter().map(|(_, path)| path)).map_err(input)?;
    let planned = attack::Planned::of(experiment, &backend)?;
    let mut trainer = match elsewhere {
        None => trainer(experiment, &backend, Some(folder))?,
        // Whoever joins parties takes them away from a run under way.
        Some(_) if lock::is_held(folder) => return Ok(Outcome::Elsewhere(folder.to_path_buf())),
        Some(elsewhere) => begin::distributed(experiment, &backend, folder, elsewhere)?,
    };
    let rehearsal = elsewhere.is_some_and(Elsewhere::is_rehearsal).then_some(REHEARSAL);
    if let Some(rehearsal) = rehearsal {
        fet_files::note!("warning: {rehearsal}");
    }
    let mut warned = warn(&trainer, 0);
    // Nothing is written before this point: a run that cannot start leaves no files.
    std::fs::create_dir_all(folder).map_err(|error| {
        input(format!("cannot make the folder {} ({error}); name another with --out", folder.display()))
    })?;
    let Some(_lock) = lock::take(folder)? else { return Ok(Outcome::Elsewhere(folder.to_path_buf())) };
    let network = elsewhere.and_then(Elsewhere::joined);
    // The process that held the lock until now may have finished the run.
    // Where there is a report it protects the folder, and a lock would be a file that a refusal leaves behind.
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
    trainer.keep_seed(&Simulation::store(Some(&folder.join(PARTIES)), 0))?;
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
        let mut training = 0.0;
        watch.epoch_begins(epoch, rows.train);
        let result = trainer.epoch(&mut |step: StepReport| {
            watch.step(epoch, step);
            training = step.rows as f64 / step.rows_per_second;
            !stop.load(Ordering::Relaxed)
        });
        match result {
            Ok(None) => {}
            Ok(Some(report)) => watch.epoch_ends(report, began.elapsed().as_secs_f64()),
            Err(RunError::Interrupted { .. }) => return Ok(Outcome::Interrupted(folder.to_path_buf())),
            Err(error) => return Err(error.into()),
        }
        warned = warn(&trainer, warned);
        trained_rows += rows.train;
        trained_seconds += training;
        if (keeps || !trainer.is_done()) && trainer.can_resume() {
            let seconds = earlier + start.elapsed().as_secs_f64();
            write(&folder.join(CHECKPOINT), &checkpoint::save(&mut trainer, &state, seconds)?)?;
        }
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
        Some(None) => return Ok(Outcome::Interrupted(folder.to_path_buf())),
        found => found.flatten(),
    };
    let mut report = Report { attack, ..report_of(&trainer, experiment, made_from, cost)? };
    report.warnings.extend(rehearsal.map(String::from));
    trainer.finish()?;
    // Where a prediction finds the data files; what the run computed does not follow from it.
    if let Some(place) = experiment.folder.as_deref().and_then(|place| place.canonicalize().ok()) {
        write(&folder.join(DATA_FOLDER), place.to_string_lossy().as_bytes())?;
    }
    let conformal = trainer.conformal(experiment.scores.coverage);
    predictions::write(&trainer, conformal.as_ref(), &folder.join(PREDICTIONS))?;
    write(&folder.join(CARD), card::card(experiment, &trainer, &report, conformal.as_ref())?.as_bytes())?;
    let model = SavedModel::of(&trainer, &identity, conformal).to_bytes();
    write(&folder.join(MODEL), &model)?;
    network.map_or(Ok(()), |network| network.run().keep(folder, Some(&model)))?;
    let path = folder.join(REPORT);
    write(&path, format!("{}\n", serde_json::to_string_pretty(&report)?).as_bytes())?;
    if !keeps {
        remove(&folder.join(CHECKPOINT))?;
        if let Err(error) = trainer.forget() {
            fet_files::note!(
                "warning: the run is complete, but its saved states could not be removed: {error}"
            );
        }
    }
    lock::leave(folder);
    watch.privacy(report.privacy.as_ref());
    watch.done(&path).with_context(|| {
        format!("standard output: not every event could be written; the run is done: {}", path.display())
    })?;
    Ok(Outcome::Done(path))
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

/// Shows the trainer's warnings but for the first `shown`; returns how many there are.
fn warn(trainer: &Trainer, shown: usize) -> usize {
    for warning in &trainer.warnings()[shown..] {
        fet_files::note!("warning: {warning}");
    }
    trainer.warnings().len()
}

/// The present content of the folder: this run, another one, or nothing, or this run with fewer epochs, where it `goes_on`.
fn existing(
    folder: &Path,
    made_from: &Provenance,
    goes_on: bool,
    keeps: bool,
) -> anyhow::Result<Option<Outcome>> {
    let path = folder.join(REPORT);
    let unreadable = |error| input(format!("{}: {error}; move it away", path.display()));
    let Some(text) = there(&path).map_err(unreadable)? else { return Ok(None) };
    let report: Report = serde_json::from_slice(&text).map_err(|e| {
        input(format!("{} is not a report of a run ({}); move it away", path.display(), of_json(&e)))
    })?;
    let same_data = report.data.files == made_from.files && report.program.results == RESULTS_VERSION;
    let other = if same_data && goes_on && is_longer(&made_from.experiment, &report.experiment) {
        if folder.join(CHECKPOINT).exists() {
            return Ok(None);
        }
        "with fewer epochs, which kept no state to go on from"
    } else if report.experiment != made_from.experiment {
        "with other settings"
    } else if report.data.files != made_from.files {
        "on other data"
    } else if report.program.results != RESULTS_VERSION {
        "by a program with another version of the results"
    } else {
        if !keeps {
            tidy(folder);
        }
        FinishedRun::read(folder)?.check()?;
        return Ok(Some(Outcome::WasDone(path)));
    };
    let message = format!("holds the report of a run {other}; name another folder with --out");
    Err(input(format!("{} {message}", folder.display())))
}

/// The content of a file, if there is one. A link to nothing is none, and an error.
fn there(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        // Where the folder is none, the first that is written says so.
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => Ok(None),
        _ => fet_files::read(path).map(Some),
    }
}

/// What a saved state follows from: all that a run follows from, but for the number of epochs where the run `goes_on`.
fn state_identity(identity: &serde_json::Value, goes_on: bool) -> serde_json::Value {
    let mut identity = identity.clone();
    if let Some(epochs) = identity.pointer_mut("/experiment/train/epochs").filter(|_| goes_on) {
        epochs.take();
    }
    identity
}

/// Whether the settings of a run differ from `earlier` ones in having more epochs, and in nothing else.
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
    // A file that cannot be removed does no harm: the report shows that the run is complete.
    let _ = remove(&folder.join(CHECKPOINT));
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    for state in entries(&folder.join(PARTIES)).flat_map(|party| entries(&party.path())) {
        if state.file_name().to_string_lossy().starts_with("state-") {
            let _ = remove(&state.path());
        }
    }
}

/// Resumes from the folder's checkpoint, if it belongs to this run; returns the seconds that the run had taken.
fn resume(trainer: &mut Trainer, identity: &serde_json::Value, folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join(CHECKPOINT);
    let Some(bytes) = there(&path).map_err(|error| unusable(&path, error))? else { return Ok(0.0) };
    match checkpoint::load(trainer, identity, &bytes) {
        Ok(seconds) => {
            let (done, epochs) = (trainer.progress().epochs.len(), trainer.epochs());
            if done > epochs {
                let problem = format!("it is of epoch {done}, and `train.epochs` is {epochs}");
                bail!(unusable(&path, problem));
            }
            fet_files::note!("continuing after epoch {done}");
            Ok(seconds)
        }
        Err(error) => bail!(unusable(&path, error)),
    }
}

/// Notes that a session of a run with its own randomness begins, before anything is released in it, and has the trainer count
/// what the sessions before may have released beyond their checkpoints.
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
            "{}: {error}; it says how often this run was begun, and without it the run cannot be continued",
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

fn unusable(path: &Path, error: impl std::fmt::Display) -> InputError {
    InputError(format!("{}: {error}; remove it to start again", path.display()))
}

/// The report of a finished run.
pub fn report_of(
    trainer: &Trainer,
    experiment: &Experiment,
    made_from: Provenance,
    cost: Cost,
) -> anyhow::Result<Report> {
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
        warnings: trainer.warnings().to_vec(),
        metric: trainer.metric(),
        class_names: trainer.class_names().to_vec(),
        rows: report::rows(trainer),
        secondaries: trainer.federation().len(),
        parameters: trainer.parameters(),
        epochs: trainer.progress().epochs.clone(),
        best: report::best(trainer).context("no epoch had a finite metric")?,
        evaluation: trainer.evaluation().context("no epoch had a finite metric")?,
        privacy: trainer.spent(),
        labels: trainer.label_privacy(),
        attack: None,
        traffic: trainer.federation().traffic(),
        traffic_by_party: report::traffic_by_party(trainer),
        cost,
    })
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fet_files::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
