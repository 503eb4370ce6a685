//! The primary's checkpoint: its own state, and the tags of the secondaries' saved states.
//!
//! Every party first saves its state in its own storage and replies with a tag. The primary then makes the
//! checkpoint. It holds the primary's parameters, moments and best model, the progress of the run, and the
//! parties that dropped out. If every row is released once, it also holds that release, so that a resumed run
//! does not request it again. The caller writes the bytes.

use fet_core::message::{Epoch, Reply, Request, Saved};
use fet_core::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::federation::{Federation, PartyError, Traffic};
use crate::state_file::{Learned, StateError, StateFile};
use crate::table_digest::short;
use crate::trainer::{InterruptedRun, Progress, ReleaseCount, SingleRelease, Tables, Trainer};

/// Name of the single release of a run with frozen secondaries.
const RELEASED: &str = "released";
/// Names of the best epoch's outputs.
const OUTPUTS: [&str; 2] = ["outputs.validation", "outputs.test"];

/// Header of a checkpoint: everything except the tensors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Identity of the run: everything that determines its result. It must be equal when the state is
    /// restored.
    identity: serde_json::Value,
    progress: Progress,
    releases: ReleaseCount,
    /// Secondaries that dropped out, from 0.
    dropped: Vec<usize>,
    /// Warnings about events of the run.
    warnings: Vec<String>,
    traffic: Vec<Traffic>,
    steps: Vec<u64>,
    /// Number of real neighbours in the single release, if every row is released once.
    released: Option<usize>,
    /// Saved states of the remaining secondaries: number from 0, epoch and tag.
    secondaries: Vec<(usize, Saved)>,
    seconds: f64,
}

/// Error while a checkpoint is made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A run with other settings or data, or a program with other results, made the checkpoint.
    #[error(
        "the checkpoint belongs to a run with other settings, other data or other results of the program"
    )]
    OtherSettings,
    /// The checkpoint is damaged, or does not fit the model.
    #[error(transparent)]
    State(#[from] StateError),
    /// A party cannot save or restore its state.
    #[error(transparent)]
    Party(#[from] PartyError),
}

/// Asks every party to save its state, and returns the primary's checkpoint.
pub fn save(
    trainer: &mut Trainer,
    identity: &serde_json::Value,
    seconds: f64,
) -> Result<Vec<u8>, CheckpointError> {
    let epoch = trainer.progress().epochs.len() as u32;
    let secondaries = save_parties(trainer.federation_mut(), epoch)?;
    let Learned { mut parameters, steps } =
        Learned::from_learner(trainer.primary().learner(), trainer.best());
    for (name, outputs) in OUTPUTS.iter().zip(trainer.best_outputs().into_iter().flatten()) {
        parameters.push(name, &[outputs.len()], outputs);
    }
    let released = trainer.single_release().saved().map(|(shape, values, available)| {
        parameters.push(RELEASED, &shape, &values);
        available
    });
    let header = Header {
        identity: identity.clone(),
        progress: trainer.progress().clone(),
        releases: trainer.releases().clone(),
        dropped: trainer.federation().dropped().to_vec(),
        warnings: trainer.lasting_warnings().to_vec(),
        traffic: trainer.federation().traffic_by_party().to_vec(),
        steps,
        released,
        secondaries,
        seconds,
    };
    Ok(StateFile::new(&header, parameters).to_bytes())
}

/// Returns the secondaries, from 0, that had dropped out when the checkpoint was made. The primary must not
/// contact these secondaries again.
pub fn dropped_out(bytes: &[u8]) -> Result<Vec<usize>, StateError> {
    Ok(StateFile::read::<Header>(bytes)?.0.dropped)
}

/// Restores a saved state into a trainer made from the same experiment, and asks every remaining party to
/// restore its state. Returns the seconds that the run had taken.
pub fn load(
    trainer: &mut Trainer,
    identity: &serde_json::Value,
    bytes: &[u8],
) -> Result<f64, CheckpointError> {
    let (header, file) = StateFile::read::<Header>(bytes)?;
    if header.identity != *identity {
        return Err(CheckpointError::OtherSettings);
    }
    check_table(trainer, &header.progress.tables)?;
    let mut single_release = None;
    if let Some(available) = header.released {
        let all = file.parameters.segments();
        let segment = all.iter().find(|segment| segment.name == RELEASED);
        let shape = segment.and_then(|segment| <[usize; 3]>::try_from(segment.shape.as_slice()).ok());
        let (shape, values) = shape
            .zip(file.parameters.get(RELEASED))
            .ok_or_else(|| StateError::Damaged("the release that its header names is missing".into()))?;
        let device = trainer.device();
        single_release = Some(SingleRelease::restored(shape, values.to_vec(), available, &device));
    }
    let outputs = OUTPUTS.map(|name| file.parameters.get(name).map(<[f32]>::to_vec));
    let outputs = match outputs {
        [Some(validation), Some(test)] => Some([validation, test]),
        _ if header.progress.best.is_none() => None,
        _ => return Err(StateError::Damaged("the outputs of its best epoch are missing".into()).into()),
    };
    let learned = Learned { parameters: file.parameters, steps: header.steps };
    let best = learned.restore(trainer.primary_mut().learner_mut())?;
    let Header { progress, releases, dropped, warnings, .. } = header;
    let run = InterruptedRun { progress, releases, dropped, warnings, best, outputs, single_release };
    restore_parties(trainer, &run, header.traffic, &header.secondaries)?;
    trainer.continue_from(run);
    Ok(header.seconds)
}

/// Returns the parameters of a model file, sorted by name.
pub fn parameters(bytes: &[u8]) -> Result<Parameters, StateError> {
    let (_, file) = StateFile::read::<serde_json::Value>(bytes)?;
    Ok(file.parameters)
}

fn other_table(table: &str, known: &[u8; 32], found: &[u8; 32]) -> StateError {
    StateError::OtherTable { table: table.to_string(), known: short(known), found: short(found) }
}

/// Asks every active party to save its state, and returns the tags of the states by party, from 0.
fn save_parties(federation: &mut Federation, epoch: u32) -> Result<Vec<(usize, Saved)>, PartyError> {
    let active = federation.active();
    let requests = vec![Request::Save(Epoch { epoch }); active.len()];
    let mut saved = Vec::with_capacity(active.len());
    for (&party, (sent, reply)) in active.iter().zip(federation.exchange_all(&active, requests)?) {
        match reply {
            Reply::Saved(state) if state.epoch == epoch => saved.push((party, state)),
            Reply::Saved(state) => {
                return Err(sent.wrong("epoch", format!("must be {epoch}"), state.epoch));
            }
            other => return Err(sent.unexpected(&other)),
        }
    }
    Ok(saved)
}

/// Asks every remaining party of an interrupted run to restore its saved state.
fn restore_parties(
    trainer: &mut Trainer,
    run: &InterruptedRun,
    traffic: Vec<Traffic>,
    secondaries: &[(usize, Saved)],
) -> Result<(), CheckpointError> {
    let InterruptedRun { progress, dropped, .. } = run;
    let federation = trainer.federation_mut();
    let parties: Vec<usize> = secondaries.iter().map(|(party, _)| *party).collect();
    let sound = parties.is_sorted_by(|a, b| a < b)
        && parties.iter().chain(dropped).all(|&party| party < federation.len())
        && progress.best.is_none_or(|best| best < progress.epochs.len());
    if !sound {
        return Err(StateError::Damaged("it names parties or epochs that do not exist".into()).into());
    }
    federation.restore_traffic(traffic);
    let requests = secondaries.iter().map(|(_, saved)| Request::Load(*saved)).collect();
    federation.command(&parties, requests)?;
    let joined = &trainer.progress().tables.secondaries;
    // A party itself refuses a table that the run did not begin with. This check covers a party that does
    // not.
    let known = &progress.tables.secondaries;
    let other = parties.iter().find(|&&party| known.get(party) != joined.get(party));
    if let Some(&party) = other {
        let tables = [known, joined].map(|tables| tables.get(party).copied().flatten().unwrap_or_default());
        return Err(other_table(trainer.federation().name(party), &tables[0], &tables[1]).into());
    }
    Ok(())
}

/// Refuses to continue if the primary's own table has changed.
fn check_table(trainer: &Trainer, known: &Tables) -> Result<(), StateError> {
    let found = &trainer.progress().tables.primary;
    if known.primary == *found {
        return Ok(());
    }
    Err(other_table(&trainer.records().scaled.name, &known.primary, found))
}
