//! A finished run that is ready to predict, before its parties join.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fet_core::data::{Dataset, Folders};
use fet_core::experiment::Experiment;
use fet_eval::conformal::Conformal;
use fet_federation::trainer::SavedModel;

use super::served::{Served, are_independent, dataset};
use crate::calibration::Calibration;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::parties::JoinPurpose;
use crate::parties::network::Elsewhere;
use fet_io::input::input;

/// Arguments that name a finished run and its parties.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ModelArguments {
    /// Folder of a finished run; for `fet predict` also the address of a service, as in `http://localhost:8787`.
    pub run: PathBuf,
    /// Roster (TOML) of parties on other machines. Each of these parties runs `fet party`.
    #[arg(long, value_name = "ROSTER", requires = "key")]
    pub parties: Option<PathBuf>,
    /// The primary's key, to reach parties on other machines.
    #[arg(long, requires = "parties")]
    pub key: Option<PathBuf>,
    /// Reaction to a party that does not join.
    #[arg(long, value_enum, default_value_t, requires = "parties")]
    pub missing: MissingParties,
    /// Seconds to wait for a party on another machine [default: `wait` in the roster], or for a service [default: 600].
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<u64>,
    /// Folder that is searched first for the secondaries' tables: tables with other records than the run's,
    /// in the same columns.
    #[arg(long, value_name = "FOLDER", conflicts_with = "parties")]
    pub data: Option<PathBuf>,
    /// File of `fet predict --recalibrate`, whose intervals or sets of classes replace those of the model.
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Tensor backend [default: the backend of the run].
    #[arg(long)]
    pub device: Option<String>,
}

/// Reaction to a party that does not join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MissingParties {
    /// Fail without predictions.
    #[default]
    Error,
    /// Predict without the party and mark the predictions; needs a model that was trained with
    /// `method.party_dropout`.
    Drop,
}

/// Finished run that is ready to predict.
pub(crate) struct Model {
    pub(crate) run: FinishedRun,
    pub(crate) model: SavedModel,
    pub(crate) dataset: Box<dyn Dataset>,
    /// File of `--calibration`.
    pub(crate) calibration: Option<Calibration>,
    pub(crate) calibration_file: Option<PathBuf>,
    /// Folders with the tables of a simulation.
    pub(crate) folders: Folders,
    /// True if parties that do not join are left out.
    drops: bool,
}

impl Model {
    /// Reads a finished run and checks everything that can fail before parties join.
    pub(crate) fn open(arguments: &ModelArguments) -> anyhow::Result<Self> {
        let mut run = FinishedRun::read(&arguments.run)?;
        if let Some(device) = &arguments.device {
            run.experiment.device.clone_from(device);
        }
        let folders = folders(arguments, &run.experiment)?;
        let model = run.model()?;
        let drops = arguments.missing == MissingParties::Drop;
        if drops {
            check_dropout(&run.experiment)?;
        }
        let calibration = arguments.calibration.as_deref();
        let calibration =
            calibration.map(|path| Calibration::read(path, &run, model.objective())).transpose()?;
        let dataset = dataset(&run.experiment, &folders)?;
        let calibration_file = arguments.calibration.clone();
        Ok(Self { run, model, dataset, calibration, calibration_file, folders, drops })
    }

    /// Returns the bounds of predictions by all parties.
    pub(crate) fn conformal(&self) -> Option<&Conformal> {
        self.calibration.as_ref().map(|calibration| &calibration.conformal).or(self.model.conformal())
    }

    /// Returns true if the links of a row depend on no other row.
    pub(crate) fn links_rows_alone(&self) -> anyhow::Result<bool> {
        let linker = self.run.experiment.linker.build(&()).map_err(input)?;
        Ok(are_independent(&linker.about(), &self.model))
    }

    /// Reads the roster of parties on other machines, if the arguments name one. Setting `stop` ends the wait for them.
    pub(crate) fn elsewhere(
        &self,
        arguments: &ModelArguments,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Elsewhere>> {
        let Some((roster, key)) = arguments.parties.as_deref().zip(arguments.key.as_deref()) else {
            return Ok(None);
        };
        let mut elsewhere = Elsewhere::new(roster, key, JoinPurpose::Predictions, stop)?;
        if let Some(seconds) = arguments.wait {
            elsewhere = elsewhere.waiting(seconds);
        }
        Ok(Some(if self.drops { elsewhere.dropping() } else { elsewhere }))
    }

    /// Waits for the parties elsewhere, or creates those of a simulation.
    pub(crate) fn serve(&self, elsewhere: Option<&Elsewhere>) -> anyhow::Result<Served> {
        let Self { run, model, .. } = self;
        match elsewhere {
            None => Served::new(run, model, &self.folders),
            Some(elsewhere) => {
                let network = elsewhere.join(&run.experiment, &run.folder)?;
                let served = Served::elsewhere(run, model, network, self.drops)?;
                elsewhere.see(&served.predictor.standings())?;
                Ok(served)
            }
        }
    }
}

/// Returns the folders with tables; the folder of the `--data` argument comes first.
fn folders(arguments: &ModelArguments, experiment: &Experiment) -> anyhow::Result<Folders> {
    let of_run = data_folders(experiment);
    match &arguments.data {
        None => Ok(of_run),
        Some(folder) if folder.is_dir() => {
            Ok(Folders::new(std::iter::once(folder.clone()).chain(of_run.all().iter().cloned())))
        }
        Some(folder) => Err(input(format!("--data {}: must be a folder that exists", folder.display()))),
    }
}

/// Refuses a model that was trained without party dropout.
fn check_dropout(experiment: &Experiment) -> anyhow::Result<()> {
    let dropout = experiment.method.build(&()).map_err(input)?.plan().party_dropout;
    if dropout > 0.0 {
        return Ok(());
    }
    Err(input(
        "--missing drop: the model was trained without `method.party_dropout` and cannot handle a missing party. \
         Remove this option, or train with party dropout.",
    ))
}
