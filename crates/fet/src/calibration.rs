//! Recalibrated bounds: `fet predict --labels COLUMN --recalibrate FILE` computes intervals or sets of classes
//! from rows with known labels, and `--calibration FILE` uses them in place of the model's.

use std::path::Path;

use fet_core::objective::Objective;
use fet_eval::conformal::{Bounds, Conformal};
use fet_io::input::{input, of_json};
use fet_io::{hex, sha256_of_file};
use serde::{Deserialize, Serialize};

use crate::finished::FinishedRun;
use crate::folder::MODEL;

/// Content of a calibration file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calibration {
    /// SHA-256 of the model whose predictions the bounds fit.
    model: String,
    /// Column of the labels.
    labels: String,
    /// The bounds.
    pub(crate) conformal: Conformal,
}

impl Calibration {
    /// Creates the calibration of a run's model.
    pub(crate) fn new(run: &FinishedRun, labels: &str, conformal: Conformal) -> anyhow::Result<Self> {
        Ok(Self { model: model(run)?, labels: labels.to_string(), conformal })
    }

    /// Reads the calibration of a run's model. Refuses that of another model, and bounds of another task.
    pub(crate) fn read(path: &Path, run: &FinishedRun, objective: Objective) -> anyhow::Result<Self> {
        let refuse = |problem: String| input(format!("--calibration {}: {problem}", path.display()));
        let bytes = fet_io::read(path).map_err(|error| refuse(error.to_string()))?;
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| {
            refuse(format!("is not a file that `fet predict --recalibrate` wrote: {}", of_json(&error)))
        })?;
        if found.model != model(run)? {
            return Err(refuse(
                "belongs to another model. Write a calibration of this run with `fet predict --recalibrate`."
                    .to_string(),
            ));
        }
        let Conformal { alpha, .. } = found.conformal;
        let stated = 1.0 - run.experiment.scores.coverage;
        // Settings and the file round in different places.
        let is_stated = (alpha - stated).abs() < 1e-9;
        if !is_stated || !found.conformal.is_calibrated(objective.scored()) || !found.conformal.is_bounded() {
            return Err(refuse(
                "is damaged: no calibration of this model has such bounds. Write it again with `fet predict --recalibrate`."
                    .to_string(),
            ));
        }
        Ok(found)
    }

    /// Refuses an output without the ending of a calibration, or a file that is not one.
    pub(crate) fn check_output(path: &Path) -> anyhow::Result<()> {
        let refuse = |problem: &str| Err(input(format!("--recalibrate {}: {problem}", path.display())));
        if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("json")) {
            return refuse("must end in .json, because the file holds JSON");
        }
        let is_other = |bytes: Vec<u8>| serde_json::from_slice::<Self>(&bytes).is_err();
        if path.is_file() && fet_io::read(path).map_or(true, is_other) {
            return refuse("exists, and is not a calibration; name another file");
        }
        Ok(())
    }

    /// Writes the calibration.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        fet_io::write(path, text.as_bytes())
            .map_err(|error| anyhow::anyhow!("--recalibrate: cannot write {}: {error}", path.display()))
    }

    /// Returns a sentence about the rows of the calibration.
    pub(crate) fn described(&self) -> String {
        let rows = match &self.conformal.bounds {
            // Half of the rows fit the spread of the errors.
            Bounds::Scaled { .. } => format!("{} of the rows", self.conformal.rows),
            Bounds::Width(_) | Bounds::Classes(_) | Bounds::AllClasses(_) => {
                format!("{} rows", self.conformal.rows)
            }
        };
        format!("{rows} with a label in `{}`", self.labels)
    }
}

/// Returns the checksum of a run's model.
fn model(run: &FinishedRun) -> anyhow::Result<String> {
    let path = run.folder.join(MODEL);
    let checksum = sha256_of_file(&path).map_err(|error| input(format!("{}: {error}", path.display())))?;
    Ok(hex(&checksum))
}
