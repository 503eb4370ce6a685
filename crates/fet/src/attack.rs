//! `fet attack`, and the attack that an experiment names: what a party learns that the others keep to themselves.

use std::sync::atomic::AtomicBool;

use fet_attacks::Stage;
use fet_backends::Backend;
use fet_core::attack::{Attack, AttackError, AttackRecord};
use fet_core::data::VerticalData;
use fet_core::experiment::Experiment;
use fet_core::registry::{Slot, plugins};

use crate::experiment_file::data_folders;
use crate::input::{input, machine};

/// Puts `experiment` to the attack of that name with its default settings; without a name to its own attack, or to every one
/// that fits it.
pub fn attack(
    experiment: &Experiment,
    name: Option<&str>,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<AttackRecord>> {
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let slots = match (name, &experiment.attack) {
        (Some(name), _) => vec![Slot::<dyn Attack>::of(name).map_err(input)?],
        (None, Some(own)) => vec![own.clone()],
        (None, None) => {
            let all = plugins::<dyn Attack>().into_iter().map(|plugin| Slot::of(plugin.kind));
            all.collect::<Result<_, _>>().map_err(input)?
        }
    };
    let sole = slots.len() == 1;
    let data = load(experiment)?;
    let mut records = Vec::new();
    for slot in slots {
        match one(experiment, &backend, data.clone(), &slot, stop) {
            Ok(record) => records.push(record),
            // Of all attacks, those that are for other tasks are left out.
            Err(AttackError::Refused(_)) if !sole => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(records)
}

/// The attack that an experiment names, checked against its data before anything trains.
pub(crate) struct Planned {
    slot: Slot<dyn Attack>,
    data: VerticalData,
}

impl Planned {
    /// The experiment's attack, if it names one.
    pub(crate) fn of(experiment: &Experiment, backend: &Backend) -> anyhow::Result<Option<Self>> {
        let Some(slot) = experiment.attack.clone() else { return Ok(None) };
        let (data, stop, machine) = (load(experiment)?, AtomicBool::new(false), machine(backend));
        let stage = Stage::new(experiment, data.clone(), &machine, &stop).map_err(failed)?;
        fet_attacks::check(&stage, &slot).map_err(failed)?;
        Ok(Some(Self { slot, data }))
    }

    /// What it finds; nothing if it was interrupted.
    pub(crate) fn run(
        self,
        experiment: &Experiment,
        backend: &Backend,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<AttackRecord>> {
        match one(experiment, backend, self.data, &self.slot, stop) {
            Ok(record) => Ok(Some(record)),
            Err(AttackError::Interrupted) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

fn one(
    experiment: &Experiment,
    backend: &Backend,
    data: VerticalData,
    slot: &Slot<dyn Attack>,
    stop: &AtomicBool,
) -> Result<AttackRecord, AttackError> {
    let machine = machine(backend);
    backend.share(data.secondaries.len());
    let mut stage = Stage::new(experiment, data, &machine, stop)?;
    fet_attacks::attack(&mut stage, slot)
}

fn load(experiment: &Experiment) -> anyhow::Result<VerticalData> {
    let data = fet_train::data::read(experiment, &data_folders(experiment)).map_err(input)?;
    fet_train::data::in_numbers(data).map_err(input)
}

fn failed(error: AttackError) -> anyhow::Error {
    match error {
        AttackError::Refused(violation) => input(violation),
        other => other.into(),
    }
}
