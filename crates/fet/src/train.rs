//! The `fet run` command: its messages and its exit code.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::experiment_file::{self, ExperimentArguments};
use crate::finished::FinishedRun;
use crate::folder::CHECKPOINT;
use crate::parties::network::Elsewhere;
use crate::parties::{JoinPurpose, Unreached};
use crate::run::{self, InputError, Keep, Log, RunOptions, RunOutcome};

/// Maximum number of restarts of a party in one command; after more restarts the run gives up.
const MOST_RESTARTS: usize = 100;

/// Arguments of a run with parties on other machines.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ElsewhereArguments {
    /// Roster (TOML) of parties on other machines. Each of these parties runs `fet party`.
    #[arg(long, value_name = "ROSTER", requires = "key")]
    pub parties: Option<PathBuf>,
    /// The primary's key from `fet keys new`, to reach parties on other machines.
    #[arg(long, requires = "parties")]
    pub key: Option<PathBuf>,
    /// Address of this machine on which Prometheus asks for the epochs and links of the run, such as 127.0.0.1:9465.
    #[arg(long, value_name = "ADDRESS", requires = "parties")]
    pub monitor: Option<SocketAddr>,
}

impl ElsewhereArguments {
    /// Reads the roster and the key, if the run has parties elsewhere.
    fn open(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<Option<Elsewhere>> {
        let Some((roster, key)) = self.parties.as_deref().zip(self.key.as_deref()) else { return Ok(None) };
        let elsewhere = Elsewhere::new(roster, key, JoinPurpose::Run, stop)?;
        Ok(Some(match self.monitor {
            Some(address) => elsewhere.monitored(address)?,
            None => elsewhere,
        }))
    }
}

/// Returns a flag that becomes true on Ctrl-C and similar signals.
pub fn stopped_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let ask = move || {
        // A second signal ends the process at once, without waiting for the current step or for a computing
        // party.
        if asked.swap(true, Ordering::Relaxed) {
            fet_io::leave(130);
        }
    };
    ctrlc::set_handler(ask).context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// Trains an experiment into `out` and returns the exit code.
pub fn train(
    arguments: &ExperimentArguments,
    out: Option<PathBuf>,
    log: Log,
    keep: Keep,
    parties: &ElsewhereArguments,
) -> anyhow::Result<ExitCode> {
    let experiment = experiment_file::load(arguments).map_err(|e| InputError(e.to_string()))?;
    let default = || PathBuf::from(format!("runs/{}-s{}", experiment.name, experiment.seed));
    let folder = out.unwrap_or_else(default);
    let stop = stopped_by_signals()?;
    let elsewhere = parties.open(&stop)?;
    let resumes = experiment.method.build(&())?.plan().at_once.is_none();
    let interrupted = || {
        let has_epochs = folder.join(CHECKPOINT).exists();
        let folder = folder.display();
        match resumes && has_epochs {
            true => fet_io::note!(
                "interrupted; the finished epochs are saved in {folder}, and the same command resumes the run"
            ),
            false => fet_io::note!(
                "interrupted; the same command starts the run in {folder} again from its first step"
            ),
        }
        Ok(ExitCode::from(130))
    };
    let options = RunOptions { log, keep, stop: &stop, elsewhere: elsewhere.as_ref() };
    let mut restarts = 0;
    let outcome = loop {
        match run::run_among(&experiment, &folder, &options) {
            Err(error) if stop.load(Ordering::Relaxed) && error.is::<Unreached>() => return interrupted(),
            Err(error) => match run::party_error(&error) {
                Some(party) if party.is_restart() && restarts < MOST_RESTARTS => {
                    restarts += 1;
                    let from = if resumes { "returns to its last finished epoch" } else { "starts again" };
                    fet_io::note!("{party}; the run {from}");
                }
                Some(party) if party.is_unreached() && stop.load(Ordering::Relaxed) => return interrupted(),
                Some(party) if party.is_unreached() || party.is_restart() => {
                    let goes_on = match resumes {
                        true => "the finished epochs are saved, and the same command resumes the run",
                        false => "the same command starts the run again",
                    };
                    return Err(Unreached(format!("{party}; {goes_on}")).into());
                }
                _ => return Err(error),
            },
            Ok(outcome) => break outcome,
        }
    };
    match outcome {
        RunOutcome::Done(report) => {
            if let Ok(run) = FinishedRun::read(&folder) {
                let (metric, score) = (run.report.metric, run.report.best.test);
                // In a search over settings, no split contains test rows.
                let rows = if experiment.split.tuning {
                    "validation rows that selected no settings"
                } else {
                    "test rows"
                };
                match score.is_finite() {
                    true => fet_io::note!("{} on the {rows}", metric.phrase(score)),
                    false => fet_io::note!("warning: {} is undefined on the {rows}", metric.title()),
                }
            }
            fet_io::note!("done: {}", report.display());
        }
        RunOutcome::WasDone(report) => fet_io::note!("was already done: {}", report.display()),
        RunOutcome::Interrupted(_) => return interrupted(),
        RunOutcome::Elsewhere(folder) => {
            fet_io::note!(
                "fet: another process works on the run in {}; wait for it, or stop it",
                folder.display()
            );
            return Ok(ExitCode::from(75));
        }
    }
    Ok(ExitCode::SUCCESS)
}
