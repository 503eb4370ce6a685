//! `fet show --batch`: what many cells of a study are, in one process.
//!
//! A file is read and its data are summed once per process, so that a thousand cells cost little more than one.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::experiment_file::{self, Source, data_folder};
use crate::provenance::Provenance;

/// One cell, as a line of JSON asks for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Changes after those of the command line, each as `path=value`.
    #[serde(default)]
    set: Vec<String>,
    /// In place of the command line's.
    seed: Option<u64>,
}

/// Answers each line of `questions` with a line: an experiment's provenance, or `{"error": "..."}`.
pub fn batch(base: &Source, questions: impl BufRead, mut answers: impl Write) -> anyhow::Result<()> {
    // Opening a device is not free; a bad one is bad for every cell that names it.
    let mut devices: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in questions.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = answer(base, &line, &mut devices).unwrap_or_else(|error| json!({"error": error}));
        writeln!(answers, "{answer}")?;
    }
    Ok(answers.flush()?)
}

fn answer(
    base: &Source,
    line: &str,
    devices: &mut BTreeMap<String, Option<String>>,
) -> Result<Value, String> {
    let question: Question =
        serde_json::from_str(line).map_err(|e| format!("standard input: no question for a cell: {e}"))?;
    let mut source = base.clone();
    source.sets.extend(question.set);
    source.seed = question.seed.or(source.seed);
    let experiment = experiment_file::load(&source).map_err(|e| e.to_string())?;
    let device = devices
        .entry(experiment.device.clone())
        .or_insert_with(|| fet_backends::open(&experiment.device).err().map(|e| e.to_string()));
    if let Some(error) = device {
        return Err(error.clone());
    }
    Ok(Provenance::of(&experiment, &data_folder()).map_err(|e| e.to_string())?.to_json())
}
