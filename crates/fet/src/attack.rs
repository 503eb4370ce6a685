//! `fet attack`, and the attack that an experiment names: measures how much one party learns of another
//! party's private data.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fet_attacks::Environment;
use fet_backends::Backend;
use fet_core::attack::{Attack, AttackError, AttackRecord, Attacker, Target};
use fet_core::data::VerticalData;
use fet_core::experiment::Experiment;
use fet_core::registry::{Slot, plugins};

use crate::experiment_file::data_folders;
use crate::experiment_file::machine;
use fet_io::input::input;

/// Runs attacks on `experiment` and passes the result of each attack to `found`.
///
/// With a name, the function runs that attack with its default settings. Without a name, it runs the
/// experiment's own attack, or every attack that fits the experiment if the experiment names none. Progress
/// goes to standard error.
pub fn attack(
    experiment: &Experiment,
    name: Option<&str>,
    stop: &AtomicBool,
    mut found: impl FnMut(&AttackRecord) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let slots = match (name, &experiment.attack) {
        (Some(name), _) => vec![Slot::<dyn Attack>::with_defaults(name).map_err(input)?],
        (None, Some(own)) => vec![own.clone()],
        (None, None) => {
            // A plug-in that refuses its defaults needs settings, such as the class of an attack in Python.
            let all = plugins::<dyn Attack>().into_iter();
            all.filter_map(|plugin| Slot::with_defaults(plugin.kind).ok()).collect()
        }
    };
    let sole = slots.len() == 1;
    let data = load(experiment)?;
    let all = slots.len();
    for (slot, number) in slots.iter().zip(1..) {
        let began = Instant::now();
        fet_io::note!("attack {number}/{all}  {}", slot.kind());
        match run_attack(experiment, &backend, data.clone(), slot, stop) {
            Ok(record) => {
                let seconds = began.elapsed().as_secs_f64();
                let runs =
                    if record.runs == 1 { "1 run".to_string() } else { format!("{} runs", record.runs) };
                fet_io::note!("attack {number}/{all}  {}  {runs}, {seconds:.1} s", slot.kind());
                found(&record)?;
            }
            // When all attacks run, those for other tasks are skipped.
            Err(AttackError::Refused(why)) if !sole => {
                fet_io::note!("attack {number}/{all}  {}  skipped: {why}", slot.kind());
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Formats a record for people.
///
/// The text names the attacker and the target. Each figure is shown between the attacker's result without the
/// run and a complete success.
pub fn words(record: &AttackRecord) -> String {
    let what = match record.target {
        Target::Labels => "about the training labels",
        Target::Features => "about the features",
        Target::Membership => "about the records in a table",
        Target::Links => "about the linked records",
        Target::Predictions => "to change predictions",
    };
    let who = match record.attacker {
        Attacker::Primary => format!("the primary, attacking secondary {}", record.party),
        Attacker::Secondary => format!("secondary {}", record.party),
    };
    let mut text = format!("{}: what {who} learns {what}\n", record.attack);
    let widest = record.measures.iter().map(|measure| measure.name.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        text,
        "  {:widest$}  {:>9}  {:>11}  {:>8}  {:>7}",
        "figure", "reached", "without run", "complete", "leaked"
    );
    for measure in &record.measures {
        let _ = writeln!(
            text,
            "  {:widest$}  {:>9.4}  {:>11.4}  {:>8.4}  {:>5.1} %",
            measure.name,
            measure.value,
            measure.baseline,
            measure.perfect,
            100.0 * measure.leakage()
        );
    }
    text
}

/// Attack that an experiment names, checked against its data before anything trains.
pub(crate) struct Planned {
    slot: Slot<dyn Attack>,
    data: VerticalData,
}

impl Planned {
    /// Returns the experiment's attack, or `None` if the experiment names none.
    pub(crate) fn from_experiment(
        experiment: &Experiment,
        backend: &Backend,
    ) -> anyhow::Result<Option<Self>> {
        let Some(slot) = experiment.attack.clone() else { return Ok(None) };
        let (data, stop, machine) = (load(experiment)?, AtomicBool::new(false), machine(backend));
        let environment = Environment::new(experiment, data.clone(), &machine, &stop).map_err(failed)?;
        fet_attacks::check(&environment, &slot).map_err(failed)?;
        Ok(Some(Self { slot, data }))
    }

    /// Runs the attack; returns `None` if the user interrupted it.
    pub(crate) fn run(
        self,
        experiment: &Experiment,
        backend: &Backend,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<AttackRecord>> {
        match run_attack(experiment, backend, self.data, &self.slot, stop) {
            Ok(record) => Ok(Some(record)),
            Err(AttackError::Interrupted) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Calls `work` with the environment of attacks on an experiment.
///
/// # Errors
/// Fails if attacks cannot run on the experiment, or with the error of the work.
pub fn in_environment<T>(
    experiment: &Experiment,
    stop: &AtomicBool,
    work: impl FnOnce(&mut Environment<'_>) -> Result<T, AttackError>,
) -> anyhow::Result<T> {
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let (data, machine) = (load(experiment)?, machine(&backend));
    backend.share(data.secondaries.len());
    let mut environment = Environment::new(experiment, data, &machine, stop).map_err(failed)?;
    work(&mut environment).map_err(failed)
}

fn run_attack(
    experiment: &Experiment,
    backend: &Backend,
    data: VerticalData,
    slot: &Slot<dyn Attack>,
    stop: &AtomicBool,
) -> Result<AttackRecord, AttackError> {
    let machine = machine(backend);
    backend.share(data.secondaries.len());
    let mut environment = Environment::new(experiment, data, &machine, stop)?;
    fet_attacks::attack(&mut environment, slot)
}

fn load(experiment: &Experiment) -> anyhow::Result<VerticalData> {
    fet_attacks::check_training(experiment).map_err(input)?;
    let data = fet_federation::data::read(experiment, &data_folders(experiment)).map_err(input)?;
    fet_federation::data::in_numbers(data).map_err(input)
}

fn failed(error: AttackError) -> anyhow::Error {
    match error {
        AttackError::Refused(violation) => input(violation),
        other => other.into(),
    }
}
