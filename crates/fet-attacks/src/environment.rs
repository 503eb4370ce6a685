//! Attack environment: trains runs of an experiment with all parties in this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fet_core::aggregator::Role;
use fet_core::attack::{
    Attack, AttackEnvironment, AttackError, AttackRecord, MessageHook, Run, Setting, Trained,
};
use fet_core::data::{Matrix, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::message::{Reply, Request, Round};
use fet_core::party::{Failure, Party, Refusal};
use fet_core::registry::{Slot, Violation};
use fet_federation::privacy::without_noise;
use fet_federation::secondary::SecondaryError;
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{Machine, RunError, Trainer};

/// Refuses an attack that does not fit the experiment, before any training.
pub fn check(environment: &Environment<'_>, slot: &Slot<dyn Attack>) -> Result<(), AttackError> {
    let attack = slot.build(&())?;
    let (party, secondaries) = (attack.about().party, environment.setting.secondaries);
    let within = |violation: Violation| violation.within("attack");
    if !(1..=secondaries).contains(&party) {
        let rule = format!("must be 1 to {secondaries}, the number of secondaries");
        return Err(within(Violation::new("party", rule, party)).into());
    }
    Ok(attack.check(&environment.setting).map_err(within)?)
}

/// Runs an attack on an experiment.
pub fn attack(
    environment: &mut Environment<'_>,
    slot: &Slot<dyn Attack>,
) -> Result<AttackRecord, AttackError> {
    check(environment, slot)?;
    let attack = slot.build(&())?;
    let measures = attack.attack(environment)?;
    let about = attack.about();
    let (attacker, target, party) = (about.attacker, about.target, about.party);
    let name = attack.name().unwrap_or_else(|| slot.kind().into());
    Ok(AttackRecord { attack: name, attacker, target, party, runs: environment.runs, measures })
}

/// Refuses an experiment whose secondaries take no part in the training, because attacks observe a training.
pub fn check_training(experiment: &Experiment) -> Result<(), Violation> {
    let Some(release) = &experiment.release else { return Ok(()) };
    let rule = format!(
        "must be missing where `release.kind` is \"{}\": attacks observe a training, and the secondaries take no part in it. \
         `fet audit` attacks the release",
        release.kind()
    );
    Err(Violation::new("attack", rule, "there"))
}

/// Attack environment of one experiment.
pub struct Environment<'a> {
    experiment: Experiment,
    machine: &'a Machine,
    data: VerticalData,
    setting: Setting,
    stop: &'a AtomicBool,
    runs: usize,
}

impl<'a> Environment<'a> {
    /// Creates an environment for `experiment` on `data`, the data of its dataset. Setting `stop` ends a run
    /// after the current step.
    pub fn new(
        experiment: &Experiment,
        data: VerticalData,
        machine: &'a Machine,
        stop: &'a AtomicBool,
    ) -> Result<Self, AttackError> {
        check_training(experiment)?;
        let method = experiment.method.build(&())?;
        if !method.plan().secondaries {
            let rule = format!(
                "must be missing for the method \"{}\": it works without secondaries",
                experiment.method.kind()
            );
            return Err(Violation::new("attack", rule, "there").into());
        }
        let setting = Setting {
            task: data.task,
            classes: data.classes,
            secondaries: data.secondaries.len(),
            seed: experiment.seed,
            learning: !experiment.privacy.build(&())?.freezes_secondaries(),
            summed: matches!(experiment.aggregator.build(&())?.role(), Role::Sum(_)),
        };
        Ok(Self { experiment: experiment.clone(), machine, data, setting, stop, runs: 0 })
    }

    /// Returns an environment of the same experiment without any run.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            experiment: self.experiment.clone(),
            machine: self.machine,
            data: self.data.clone(),
            setting: self.setting.clone(),
            stop: self.stop,
            runs: 0,
        }
    }
}

impl AttackEnvironment for Environment<'_> {
    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn data(&self) -> &VerticalData {
        &self.data
    }

    fn train(&mut self, run: Run) -> Result<Box<dyn Trained>, AttackError> {
        let failed = |error: RunError| match error {
            RunError::Interrupted { .. } => AttackError::Interrupted,
            RunError::Settings(violation) => AttackError::Refused(violation),
            other => AttackError::Run(Box::new(other)),
        };
        // Run 0 is the reported run. Shadow runs have other run numbers, because noise that they share with
        // the attacked run would cancel.
        let mut experiment = self.experiment.clone();
        // Attacks report the default metric of the task.
        experiment.scores.metric = None;
        if run.quiet {
            let refused = |error| AttackError::Run(Box::new(error));
            experiment.privacy = without_noise(&experiment.privacy).map_err(refused)?;
            // The observer adds the parts itself.
            if self.setting.summed {
                experiment.aggregator = Slot::with_defaults("average").map_err(refused)?;
            }
        }
        let simulation = Simulation { run: self.runs as u64, ..Simulation::new(&experiment, self.machine) };
        self.runs += usize::from(!run.untrained);
        let data = run.data.unwrap_or_else(|| self.data.clone());
        let (primary, tables) = simulation.divided(data).map_err(failed)?;
        let tested = run.tested.map(|(number, tested)| {
            let usual = tables[number - 1].features.numbers().cloned().unwrap_or_else(|| tested.clone());
            (number, Features { usual, tested, testing: false })
        });
        let parties: Vec<ObservedParty> =
            simulation.secondaries(tables).map_err(failed)?.into_iter().map(ObservedParty::new).collect();
        let mine = |index: usize, number: usize| number == index + 1;
        let wired = parties.iter().cloned().enumerate().map(|(index, party)| {
            let hook =
                run.hook.as_ref().filter(|(number, _)| mine(index, *number)).map(|(_, hook)| hook.clone());
            let features =
                tested.as_ref().filter(|(number, _)| mine(index, *number)).map(|(_, all)| all.clone());
            simulation.wired(AttackedParty { party, hook, features, withheld: run.withhold })
        });
        let mut trainer = simulation.trainer(primary, wired.collect()).map_err(failed)?;
        if let Some(observer) = run.observer {
            trainer.observe(observer);
        }
        while !run.untrained && !trainer.is_done() {
            trainer.epoch(&mut |_| !self.stop.load(Ordering::Relaxed)).map_err(failed)?;
        }
        Ok(Box::new(FinishedRun { trainer, parties }))
    }
}

/// Party with an optional malicious-party hook, and with optional features for testing.
struct AttackedParty {
    party: ObservedParty,
    hook: Option<Arc<Mutex<dyn MessageHook>>>,
    features: Option<Features>,
    /// True if the party receives neither gradients nor parameters.
    withheld: bool,
}

/// Features of a party during training and during the test.
#[derive(Clone)]
struct Features {
    usual: Matrix<f32>,
    tested: Matrix<f32>,
    testing: bool,
}

impl AttackedParty {
    fn hook(&self) -> Option<MutexGuard<'_, dyn MessageHook + 'static>> {
        self.hook.as_ref().map(|hook| hook.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Switches to the features of the round.
    fn show(&mut self, round: Round) -> Result<(), SecondaryError> {
        let Some(features) = &mut self.features else { return Ok(()) };
        let testing = matches!(round, Round::Test { .. } | Round::Once { .. });
        if testing == features.testing {
            return Ok(());
        }
        features.testing = testing;
        let shown = if testing { &features.tested } else { &features.usual };
        self.party.lock().replace_features(shown.clone().into())
    }
}

impl Party for AttackedParty {
    fn name(&self) -> &str {
        self.party.name()
    }

    fn ask(&mut self, mut request: Request) -> Result<Reply, Failure> {
        if let Request::Forward(message) = &request {
            let round = message.round;
            self.show(round).map_err(|error| Failure::Refused(Refusal::new(error)))?;
        }
        if self.withheld && matches!(request, Request::Backward(_) | Request::LoadParameters(_)) {
            return Ok(Reply::Done);
        }
        let Some(mut hook) = self.hook() else { return self.party.ask(request) };
        hook.request(&mut request);
        drop(hook);
        let mut reply = self.party.ask(request.clone())?;
        if let Some(mut hook) = self.hook() {
            hook.reply(&request, &mut reply);
        }
        Ok(reply)
    }
}

/// Finished run with its parties.
struct FinishedRun {
    trainer: Trainer,
    parties: Vec<ObservedParty>,
}

impl FinishedRun {
    fn party(&self, number: usize) -> Result<&ObservedParty, AttackError> {
        let none = || {
            let rule = format!("must be 1 to {}", self.parties.len());
            AttackError::Refused(Violation::new("party", rule, number))
        };
        number.checked_sub(1).and_then(|index| self.parties.get(index)).ok_or_else(none)
    }

    /// Returns features and keys of the nearest record of each row.
    fn records(&self, party: usize, rows: &[usize]) -> Result<(Matrix<f32>, Matrix<f32>), AttackError> {
        let [features, keys] = self.party(party)?.lock().nearest_records(rows).map_err(failed)?;
        Ok((features, keys))
    }
}

/// Converts the error of a party.
fn failed(error: SecondaryError) -> AttackError {
    AttackError::Run(Box::new(error))
}

impl Trained for FinishedRun {
    fn metric(&self) -> f64 {
        let progress = self.trainer.progress();
        progress.best.and_then(|best| progress.epochs[best].test).unwrap_or(f64::NAN)
    }

    fn rows(&self) -> [&[usize]; 3] {
        let split = self.trainer.split();
        [&split.train, &split.validation, &split.test]
    }

    fn features(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError> {
        Ok(self.records(party, rows)?.0)
    }

    fn keys(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError> {
        Ok(self.records(party, rows)?.1)
    }

    fn shown(&self, party: usize, rows: &[usize]) -> Result<Vec<Vec<usize>>, AttackError> {
        self.party(party)?.lock().shown(rows).map_err(failed)
    }

    fn similarity(&self, party: usize, rows: &[usize]) -> Result<Option<Vec<f32>>, AttackError> {
        let party = self.party(party)?.lock();
        let links = party.links().ok_or_else(|| AttackError::Run(Box::new(SecondaryError::NotLinked)))?;
        Ok(rows.iter().map(|&row| links.similarities(row).map(|all| all[0])).collect())
    }

    fn encoded(&mut self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError> {
        /// Number of rows per encoded batch.
        const BATCH: usize = 256;
        let mut party = self.party(party)?.lock();
        let mut values = Vec::new();
        let mut columns = 0;
        for rows in rows.chunks(BATCH) {
            let part = party.encoded(rows).map_err(|error| AttackError::Run(Box::new(error)))?;
            columns = part.columns();
            values.extend_from_slice(part.values());
        }
        Ok(Matrix::new(columns, values))
    }

    fn own_columns(&self, rows: &[usize]) -> Matrix<f32> {
        self.trainer.own_columns(rows)
    }
}
