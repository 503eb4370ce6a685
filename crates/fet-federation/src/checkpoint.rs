//! The primary's checkpoint: its own state, and the tags of the secondaries' saved states.
//!
//! Every party first saves its state in its own storage and replies with a tag. The primary then makes the
//! checkpoint. It holds the primary's parameters, moments and best model, the progress of the run, and the
//! parties that dropped out. If every row is released once, it also holds that release, so that a resumed run
//! does not request it again. The caller writes the bytes.

use fet_core::message::{Epoch, Reply, Request, Saved};
use fet_core::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::federation::{PartyError, Traffic};
use crate::state_file::{Learned, StateError, StateFile};
use crate::table_digest::short;
use crate::trainer::{Progress, Tables, Trainer};

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
    let secondaries = trainer.save_parties(epoch)?;
    let Learned { mut parameters, steps } = Learned::of(trainer.primary().learner(), trainer.best());
    for (name, outputs) in OUTPUTS.iter().zip(trainer.best_outputs().into_iter().flatten()) {
        parameters.push(name, &[outputs.len()], outputs);
    }
    let released = trainer.kept_release().map(|(shape, values, available)| {
        parameters.push(RELEASED, &shape, &values);
        available
    });
    let header = Header {
        identity: identity.clone(),
        progress: trainer.progress().clone(),
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
pub fn gone(bytes: &[u8]) -> Result<Vec<usize>, StateError> {
    Ok(StateFile::read::<Header>(bytes)?.0.progress.gone)
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
    trainer.check_table(&header.progress.tables)?;
    if let Some(available) = header.released {
        let all = file.parameters.segments();
        let segment = all.iter().find(|segment| segment.name == RELEASED);
        let shape = segment.and_then(|segment| <[usize; 3]>::try_from(segment.shape.as_slice()).ok());
        let (shape, values) = shape.zip(file.parameters.get(RELEASED)).ok_or_else(|| {
            StateError::Damaged("it does not have the release that its header names".into())
        })?;
        trainer.keep_release(shape, values.to_vec(), available);
    }
    let outputs = OUTPUTS.map(|name| file.parameters.get(name).map(<[f32]>::to_vec));
    let outputs = match outputs {
        [Some(validation), Some(test)] => Some([validation, test]),
        _ if header.progress.best.is_none() => None,
        _ => return Err(StateError::Damaged("it does not have the outputs of its best epoch".into()).into()),
    };
    trainer.keep_outputs(outputs);
    let learned = Learned { parameters: file.parameters, steps: header.steps };
    let best = learned.restore(trainer.primary_mut().learner_mut())?;
    trainer.restore(header.progress, header.traffic, best, &header.secondaries)?;
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

impl Trainer {
    fn save_parties(&mut self, epoch: u32) -> Result<Vec<(usize, Saved)>, PartyError> {
        let here = self.here();
        let requests = vec![Request::Save(Epoch { epoch }); here.len()];
        let mut saved = Vec::with_capacity(here.len());
        for (&party, (asked, reply)) in here.iter().zip(self.federation_mut().exchange_all(&here, requests)?)
        {
            match reply {
                Reply::Saved(state) if state.epoch == epoch => saved.push((party, state)),
                Reply::Saved(state) => {
                    return Err(asked.wrong("epoch", format!("must be {epoch}"), state.epoch));
                }
                other => return Err(asked.unexpected(&other)),
            }
        }
        Ok(saved)
    }

    fn restore(
        &mut self,
        progress: Progress,
        traffic: Vec<Traffic>,
        best: Parameters,
        secondaries: &[(usize, Saved)],
    ) -> Result<(), CheckpointError> {
        let parties: Vec<usize> = secondaries.iter().map(|(party, _)| *party).collect();
        let known = parties.is_sorted_by(|a, b| a < b)
            && parties.iter().chain(&progress.gone).all(|&party| party < self.federation().len())
            && progress.best.is_none_or(|best| best < progress.epochs.len());
        if !known {
            return Err(StateError::Damaged("it names parties or epochs that do not exist".into()).into());
        }
        self.federation_mut().restore_traffic(traffic);
        let requests = secondaries.iter().map(|(_, saved)| Request::Load(*saved)).collect();
        self.federation_mut().command(&parties, requests)?;
        let joined = &self.progress().tables.secondaries;
        // A party itself refuses a table that the run did not begin with. This check covers a party that does
        // not.
        let known = &progress.tables.secondaries;
        let other = parties.iter().find(|&&party| known.get(party) != joined.get(party));
        if let Some(&party) = other {
            let tables =
                [known, joined].map(|tables| tables.get(party).copied().flatten().unwrap_or_default());
            return Err(other_table(self.federation().name(party), &tables[0], &tables[1]).into());
        }
        self.continue_from(progress, best);
        Ok(())
    }

    /// Refuses to continue if the primary's own table has changed.
    fn check_table(&self, known: &Tables) -> Result<(), StateError> {
        let found = &self.progress().tables.primary;
        if known.primary == *found {
            return Ok(());
        }
        Err(other_table(&self.records().scaled.name, &known.primary, found))
    }
}
