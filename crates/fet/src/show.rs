//! `fet show --batch`: describes many cells of a study in one process.
//!
//! The process reads each file and computes its checksum only once, so a thousand cells cost little more than
//! one cell.

use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind, Write};

use fet_eval::records::{RunIdentity, ShowAnswer, ShowQuestion};

use crate::experiment_file::{self, ExperimentArguments, data_folders};
use crate::provenance::{Provenance, check_files};
use fet_io::input::{input, of_json};

/// Answers each line of `questions` (a [`ShowQuestion`]) with one line (a [`ShowAnswer`]).
pub fn batch(
    base: &ExperimentArguments,
    questions: impl BufRead,
    mut answers: impl Write,
) -> anyhow::Result<()> {
    // Opening a device takes time; its error applies to every cell with this device.
    let mut devices: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in questions.lines() {
        let line = line.map_err(|error| {
            let is_text = error.kind() != ErrorKind::InvalidData;
            input(if is_text {
                format!("standard input: {error}")
            } else {
                "standard input: must be UTF-8".into()
            })
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match identity(base, &line, &mut devices) {
            Ok(identity) => ShowAnswer::Identity(identity),
            Err(error) => ShowAnswer::Refused(error),
        };
        let written = writeln!(answers, "{}", serde_json::to_string(&answer)?).and_then(|()| answers.flush());
        match written {
            // The reader has closed the pipe and needs no more answers.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

fn identity(
    base: &ExperimentArguments,
    line: &str,
    devices: &mut BTreeMap<String, Option<String>>,
) -> Result<RunIdentity, String> {
    let question: ShowQuestion =
        serde_json::from_str(line).map_err(|e| format!("standard input: not a question: {}", of_json(&e)))?;
    let mut arguments = base.clone();
    arguments.sets.extend(question.set);
    arguments.seed = question.seed.or(arguments.seed);
    let experiment = experiment_file::load(&arguments).map_err(|e| e.to_string())?;
    let device = devices
        .entry(experiment.device.clone())
        .or_insert_with(|| fet_backends::open(&experiment.device).err().map(|e| e.to_string()));
    if let Some(error) = device {
        return Err(error.clone());
    }
    let folders = data_folders(&experiment);
    // Report missing files before a study trains anything, not halfway through.
    check_files(&experiment, &folders).map_err(|e| e.to_string())?;
    Ok(Provenance::of_experiment(&experiment, &folders).map_err(|e| e.to_string())?.identity())
}
