//! A run as bytes: the state that lets it go on after an interruption, and the trained model.
//!
//! Both are safetensors. Random streams are keyed by the step, so there is no generator state to keep. The
//! files are written elsewhere.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};

use crate::federation::Traffic;
use crate::trainer::{Progress, Trainer};
use fet_core::optimizer::Moments;
use fet_core::parameters::{ParameterError, Parameters};
use fet_core::trainable::Learner;

/// Everything that is not a tensor.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// What the run follows from: it must be the same where the state is put back.
    experiment: serde_json::Value,
    progress: Progress,
    traffic: Vec<Traffic>,
    steps: Vec<Vec<u64>>,
    seconds: f64,
}

/// What a checkpoint holds besides the trainer's own state.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    /// The best model so far; empty before the first epoch.
    pub best: Parameters,
    /// How long the run has taken so far.
    pub seconds: f64,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It is not a checkpoint, or it is damaged.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// It was made by a run with other settings or data, or by a program with other results.
    #[error(
        "the checkpoint belongs to a run with other settings, other data or other results of the program"
    )]
    OtherSettings,
    /// Its parameters do not fit the model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
}

/// The parameters of all parties, each name prefixed with its party: `primary`, `party1`, ...
pub fn model(trainer: &Trainer) -> Parameters {
    let mut all = Parameters::default();
    for (party, learner) in learners(trainer) {
        append(&mut all, &party, learner.parameters(), learner.parameters().values());
    }
    all
}

/// Parameters as a safetensors file.
pub fn to_safetensors(parameters: &Parameters, metadata: HashMap<String, String>) -> Vec<u8> {
    let bytes: Vec<u8> = parameters.values().iter().flat_map(|value| value.to_le_bytes()).collect();
    let views = parameters.segments().iter().map(|segment| {
        let range = 4 * segment.range.start..4 * segment.range.end;
        let view = TensorView::new(Dtype::F32, segment.shape.clone(), &bytes[range]);
        (segment.name.clone(), view.expect("a segment fills its shape"))
    });
    serialize(views, Some(metadata)).expect("names are distinct and shapes are filled")
}

/// The parameters of a safetensors file, sorted by name.
pub fn from_safetensors(bytes: &[u8]) -> Result<Parameters, CheckpointError> {
    read(&SafeTensors::deserialize(bytes).map_err(|e| CheckpointError::Damaged(e.to_string()))?, "")
}

/// The state of a run.
pub fn save(trainer: &Trainer, experiment: &serde_json::Value, saved: &Saved) -> Vec<u8> {
    let mut all = Parameters::default();
    let mut steps = Vec::new();
    for (party, learner) in learners(trainer) {
        let (parameters, moments) = (learner.parameters(), learner.moments());
        append(&mut all, &format!("now.{party}"), parameters, parameters.values());
        if !moments.first.is_empty() {
            append(&mut all, &format!("first.{party}"), parameters, &moments.first);
            append(&mut all, &format!("second.{party}"), parameters, &moments.second);
        }
        steps.push(moments.steps.clone());
    }
    append(&mut all, "best", &saved.best, saved.best.values());
    let traffic = trainer.federation().traffic_by_party().to_vec();
    let header = Header {
        experiment: experiment.clone(),
        progress: trainer.progress().clone(),
        traffic,
        steps,
        seconds: saved.seconds,
    };
    let header = serde_json::to_string(&header).expect("a header is plain data");
    to_safetensors(&all, HashMap::from([("run".to_string(), header)]))
}

/// Puts a saved state into a trainer made from the same experiment; gives the rest of it.
pub fn load(
    trainer: &mut Trainer,
    experiment: &serde_json::Value,
    bytes: &[u8],
) -> Result<Saved, CheckpointError> {
    let damaged = |error: &dyn std::fmt::Display| CheckpointError::Damaged(error.to_string());
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(&e))?;
    let header = metadata.metadata().as_ref().and_then(|map| map.get("run"));
    let header = header.ok_or_else(|| damaged(&"it has no header"))?;
    let header: Header = serde_json::from_str(header).map_err(|e| damaged(&e))?;
    if header.experiment != *experiment {
        return Err(CheckpointError::OtherSettings);
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e))?;
    let parties: Vec<String> = learners(trainer).into_iter().map(|(party, _)| party).collect();
    for (index, party) in parties.iter().enumerate() {
        let now = read(&tensors, &format!("now.{party}."))?;
        let first = read(&tensors, &format!("first.{party}."))?;
        let second = read(&tensors, &format!("second.{party}."))?;
        let steps = header.steps.get(index).cloned().unwrap_or_default();
        let learner = learner_mut(trainer, index);
        learner.load(&now)?;
        let in_order = |moments: &Parameters| -> Vec<f32> {
            let segments = learner.parameters().segments().iter();
            segments.filter_map(|segment| moments.get(&segment.name)).flatten().copied().collect()
        };
        let moments = Moments { first: in_order(&first), second: in_order(&second), steps };
        learner.restore(moments);
    }
    trainer.restore(header.progress);
    trainer.federation_mut().restore_traffic(header.traffic);
    Ok(Saved { best: read(&tensors, "best.")?, seconds: header.seconds })
}

fn learners(trainer: &Trainer) -> Vec<(String, &dyn Learner)> {
    let parties = trainer.federation().parties().iter().enumerate();
    let parties = parties.map(|(index, party)| (format!("party{}", index + 1), party.encoder().learner()));
    std::iter::once(("primary".to_string(), trainer.primary().learner())).chain(parties).collect()
}

fn learner_mut(trainer: &mut Trainer, index: usize) -> &mut dyn Learner {
    match index.checked_sub(1) {
        None => trainer.primary_mut().learner_mut(),
        Some(party) => trainer.federation_mut().parties_mut()[party].encoder_mut().learner_mut(),
    }
}

fn append(all: &mut Parameters, prefix: &str, layout: &Parameters, values: &[f32]) {
    for segment in layout.segments() {
        all.push(&format!("{prefix}.{}", segment.name), &segment.shape, &values[segment.range.clone()]);
    }
}

fn read(tensors: &SafeTensors<'_>, prefix: &str) -> Result<Parameters, CheckpointError> {
    let mut found = Parameters::default();
    let mut names = tensors.names();
    names.sort_unstable();
    for name in names.into_iter().filter(|name| name.starts_with(prefix)) {
        let view = tensors.tensor(name).map_err(|e| CheckpointError::Damaged(e.to_string()))?;
        if view.dtype() != Dtype::F32 {
            return Err(CheckpointError::Damaged(format!("`{name}` does not hold 32-bit floats")));
        }
        let values: Vec<f32> =
            view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        found.push(&name[prefix.len()..], view.shape(), &values);
    }
    Ok(found)
}
