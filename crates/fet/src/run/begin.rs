//! Start of a run: builds its trainer, with the other parties in this process or elsewhere.

use std::path::Path;
use std::sync::Arc;

use fet_backends::Backend;
use fet_core::data::VerticalData;
use fet_core::experiment::{Experiment, Randomness};
use fet_core::registry::Slot;
use fet_core::rng::OwnSeed;
use fet_federation::checkpoint::{self, CheckpointError};
use fet_federation::data::{divided, read_primary, reordered};
use fet_federation::federation::PartyError;
use fet_federation::releasing::ReleasingParties;
use fet_federation::simulation::Simulation;
use fet_federation::trainer::{Machine, RunError, Trainer};

use crate::experiment_file::{data_folders, machine};
use crate::finished::FinishedRun;
use crate::folder::{CHECKPOINT, PARTIES};
use crate::parties;
use crate::parties::network::Elsewhere;
use fet_io::input::{InputError, input};

/// Loads the data, links it and builds the models; a failure here means invalid input. Parties keep their
/// state in the `folder` of the run, or in memory.
pub fn trainer(experiment: &Experiment, backend: &Backend, folder: Option<&Path>) -> anyhow::Result<Trainer> {
    let machine = machine(backend);
    let tell = Arc::new(|warning: String| fet_io::note!("warning: {warning}"));
    let dropped_out = folder.map_or_else(|| Ok(Vec::new()), dropped_parties)?;
    let parties = folder.map(|folder| folder.join(PARTIES));
    let folders = data_folders(experiment);
    let start = if experiment.from.is_empty() {
        None
    } else {
        Some(FinishedRun::read(&folders.find(&experiment.from))?.start()?)
    };
    let simulation = Simulation {
        experiment,
        machine: &machine,
        folder: parties.as_deref(),
        dropped_out,
        run: 0,
        // Labels may be randomised before the folder has the seed.
        primary: Some(Simulation::store(None, 0).own_seed(false).map_err(input)?),
        start,
        tell,
    };
    let trainer = simulation.load(&folders).map_err(input)?;
    backend.share(trainer.federation().len());
    Ok(trainer)
}

/// Like [`trainer()`], with parties on separate machines; reads only the primary's data.
pub(super) fn distributed(
    experiment: &Experiment,
    backend: &Backend,
    folder: &Path,
    elsewhere: &Elsewhere,
) -> anyhow::Result<Trainer> {
    let releases = experiment.release.is_some();
    if !releases && !experiment.method.build(&()).map_err(input)?.plan().secondaries {
        let kind = experiment.method.kind();
        return Err(input(format!(
            "--parties: the method \"{kind}\" uses only the primary, and no `[release]` names columns of other parties; \
             remove --parties"
        )));
    }
    let rehearsal = elsewhere.is_rehearsal();
    parties::check_secrets(experiment, rehearsal).map_err(input)?;
    if !rehearsal && experiment.labels.build(&()).map_err(input)?.changes_gradients() {
        let kind = experiment.labels.kind();
        return Err(input(format!(
            "--parties: `labels.kind` must not be \"{kind}\": a restarted party would get gradients that ε does not \
             cover. Use \"randomised-response\" or \"laplace\", which protect labels before the primary sends anything"
        )));
    }
    if !experiment.from.is_empty() {
        return Err(input("--parties: a run cannot yet start from the models of another run (--from)"));
    }
    let (data, names) = read_primary(experiment, &data_folders(experiment)).map_err(input)?;
    let data = ordered(experiment, data, elsewhere)?;
    // All parties compute at the same time.
    let machine = Machine { party_threads: names.len(), ..machine(backend) };
    let network = || {
        let network = elsewhere.join(experiment, folder)?;
        match names.len() == network.len() {
            true => Ok(network.parties(names.clone())),
            false => Err(input(format!(
                "--parties: the roster has {} parties in addition to the primary, but the experiment has {}",
                network.len(),
                names.len()
            ))),
        }
    };
    // The primary reports problems in its data before it waits for the parties.
    let (primary, parties) = if releases {
        let own = match experiment.train.randomness {
            Randomness::Experiment => OwnSeed::simulated(experiment.seed, 0),
            Randomness::Own => elsewhere.own_seed(),
        };
        let mut releasing = ReleasingParties::new(experiment, &data, &names, &own).map_err(input)?;
        releasing.join(network()?, data.labels.len(), names.len()).map_err(parties::error)?;
        elsewhere.see(releasing.standings())?;
        let primary = releasing.release(data).map_err(parties::error)?;
        elsewhere.see(releasing.standings())?;
        (primary, Vec::new())
    } else {
        let (primary, _) = divided(experiment, data).map_err(input)?;
        (primary, network()?)
    };
    let own = folder.join(PARTIES);
    let simulation = Simulation {
        folder: Some(&own),
        dropped_out: dropped_parties(folder)?,
        primary: Some(elsewhere.own_seed()),
        ..Simulation::new(experiment, &machine)
    };
    let begin = || simulation.trainer(primary, parties);
    let trainer = match elsewhere.joined() {
        Some(network) => network.showing_links(begin),
        None => begin(),
    };
    let trainer = trainer.map_err(parties::error)?;
    if !releases {
        elsewhere.see(&trainer.standings())?;
    }
    Ok(trainer)
}

/// Builds the trainer of the same experiment without its release, on the primary's data alone.
pub(super) fn alone(
    experiment: &Experiment,
    backend: &Backend,
    folder: &Path,
    elsewhere: Option<&Elsewhere>,
) -> anyhow::Result<Trainer> {
    // Nothing leaves this training, so that its labels need no protection.
    let labels = Slot::with_defaults("none").map_err(input)?;
    let alone = Experiment { release: None, labels, ..experiment.clone() };
    let machine = machine(backend);
    let (data, _) = read_primary(&alone, &data_folders(&alone)).map_err(input)?;
    let data = match elsewhere {
        Some(elsewhere) => ordered(&alone, data, elsewhere)?,
        None => data,
    };
    let (primary, _) = divided(&alone, data).map_err(input)?;
    let own = folder.join(PARTIES);
    let simulation = Simulation {
        folder: Some(&own),
        primary: elsewhere.map(Elsewhere::own_seed),
        ..Simulation::new(&alone, &machine)
    };
    simulation.trainer(primary, Vec::new()).map_err(input)
}

/// Returns the primary's data in the order in which the parties know the rows.
///
/// The order of a file that is sorted by label would reveal the labels. A rehearsal hides nothing and gives the same bytes
/// as a simulation.
fn ordered(
    experiment: &Experiment,
    data: VerticalData,
    elsewhere: &Elsewhere,
) -> anyhow::Result<VerticalData> {
    let by_position = experiment.linker.build(&()).map_err(input)?.about().by_position;
    Ok(if elsewhere.is_rehearsal() || by_position { data } else { reordered(data, &elsewhere.own_seed()) })
}

/// Returns the parties that have dropped out of the interrupted run in a folder.
fn dropped_parties(folder: &Path) -> Result<Vec<usize>, InputError> {
    let path = folder.join(CHECKPOINT);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = fet_io::read(&path).map_err(|error| unusable(&path, error))?;
    checkpoint::dropped_out(&bytes).map_err(|error| unusable(&path, error))
}

/// Returns the error of a party, if it has ended the run.
pub fn party_error(error: &anyhow::Error) -> Option<&PartyError> {
    match error.downcast_ref() {
        Some(RunError::Party(error)) => return Some(error),
        Some(_) => return None,
        None => {}
    }
    match error.downcast_ref() {
        Some(CheckpointError::Party(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

/// Returns the error of a run that cannot continue from a checkpoint. A party that is away, busy or started again leaves the
/// checkpoint usable.
pub(super) fn not_resumed(path: &Path, error: CheckpointError) -> anyhow::Error {
    match error {
        CheckpointError::Party(party) if party.is_restart() || party.is_unreached() || party.is_not_now() => {
            CheckpointError::Party(party).into()
        }
        error => unusable(path, error).into(),
    }
}

pub(super) fn unusable(path: &Path, error: impl std::fmt::Display) -> InputError {
    InputError(format!("{}: {error}. Remove the file to start again.", path.display()))
}

#[cfg(test)]
mod tests {
    use fet_core::party::Refusal;
    use fet_federation::federation::{PartyIndex, Problem, SentRequest};

    use super::*;

    #[test]
    fn a_party_that_is_away_leaves_the_checkpoint_usable() {
        let found = |problem: Problem| {
            let (party, index) = ("shop".to_string(), PartyIndex::new(0));
            let sent = Box::new(SentRequest { party, index, message: "Load", round: None });
            let error = CheckpointError::Party(PartyError { sent, problem: Box::new(problem) });
            let error = not_resumed(Path::new("checkpoint"), error);
            (crate::exit::code(&error), error.to_string())
        };
        for (problem, code) in [
            (Problem::Restarted, 75),
            (Problem::Refused(Refusal::not_now("it is busy")), 75),
            (Problem::Refused(Refusal::new("it has no such state")), 2),
        ] {
            let (found, said) = found(problem);
            assert_eq!(found, code, "{said}");
            assert_eq!(said.contains("Remove the file"), code == 2, "{said}");
        }
        let error = not_resumed(Path::new("checkpoint"), CheckpointError::OtherSettings);
        assert!(error.to_string().contains("Remove the file to start again"), "{error}");
    }
}
