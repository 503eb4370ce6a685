//! `python`: an attack in Python.
//!
//! The runs of an attack may call other Python code, such as a linker. So the code of the attack has its own thread. It sends its
//! questions to the thread of the program, which trains and answers, and waits for the answers. `fet/attacks.py` converts the
//! arrays.

mod bridge;
mod messages;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use fet::experiment_file::{self, ExperimentArguments};
use fet_contract::attacks;
use fet_core::attack::{
    About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Setting, Target,
};
use fet_core::data::Task;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_io::input::input;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::bridge::{AttackBridge, Event, Stage};
use crate::calls::{self, call};
use crate::errors::raised;
use crate::plugin::{self, MODULE};
use crate::work::wait;

/// Settings of `python`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PythonAttackSettings {
    /// Class of the attack, as `package.module:Class`.
    pub plugin: String,
    /// SHA-256 of the file with the class, as 64 hexadecimal digits. The attack refuses code from a file with another hash.
    pub source: String,
    /// Number of the attacked secondary, or of the attacking one, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Arguments of the class.
    #[schemars(schema_with = "plugin::table")]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub options: toml::Table,
}

impl Default for PythonAttackSettings {
    fn default() -> Self {
        Self { plugin: String::new(), source: String::new(), party: 1, options: toml::Table::new() }
    }
}

impl Recipe<dyn Attack> for PythonAttackSettings {
    fn check(&self) -> Result<(), Violation> {
        plugin::check(&self.plugin)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        let Self { plugin, source, party, options } = self.clone();
        let about = call(move |py| {
            let options = plugin::options(py, &options)?;
            let about = py.import(MODULE)?.getattr("attack_about")?;
            about.call1((plugin, source, options))?.extract::<(String, String)>()
        });
        let (attacker, target) = about.map_err(|error| plugin::violation(&error, &self.plugin))?;
        let attacker = match attacker.as_str() {
            "primary" => Attacker::Primary,
            _ => Attacker::Secondary,
        };
        let target = match target.as_str() {
            "features" => Target::Features,
            "membership" => Target::Membership,
            "links" => Target::Links,
            "predictions" => Target::Predictions,
            _ => Target::Labels,
        };
        Ok(Box::new(PythonAttack { settings: self.clone(), about: About { attacker, target, party } }))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<PythonAttackSettings>("python", "a class in Python")
}

struct PythonAttack {
    settings: PythonAttackSettings,
    about: About,
}

/// The properties of an experiment: task, classes, secondaries, seed, and if secondaries learn and send sums.
type Described = (&'static str, usize, usize, u64, bool, bool);

fn described(setting: &Setting) -> Described {
    let task = match setting.task {
        Task::Regression => "regression",
        Task::Binary => "binary",
        Task::Multiclass => "multiclass",
    };
    (task, setting.classes, setting.secondaries, setting.seed, setting.learning, setting.summed)
}

impl Attack for PythonAttack {
    fn about(&self) -> About {
        self.about
    }

    fn name(&self) -> Option<String> {
        Some(self.settings.plugin.clone())
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        let PythonAttackSettings { plugin, source, options, .. } = self.settings.clone();
        let setting = described(setting);
        let checked = call(move |py| {
            let options = plugin::options(py, &options)?;
            let check = py.import(MODULE)?.getattr("attack_check")?;
            check.call1((plugin, source, options, setting)).map(drop)
        });
        checked.map_err(|error| plugin::violation(&error, &self.settings.plugin))
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let PythonAttackSettings { plugin, source, party, options } = self.settings.clone();
        let setting = described(environment.setting());
        let (sender, events) = channel::<Event>();
        let bridge = AttackBridge { events: sender.clone(), plugin: plugin.clone(), party };
        let thread = calls::start(move |py| {
            let _ends = Ends(sender);
            let options = plugin::options(py, &options)?;
            let run = py.import(MODULE)?.getattr("attack_run")?;
            let bridge = Py::new(py, bridge)?;
            run.call1((plugin, source, options, bridge, setting))?.extract::<Vec<(String, f64, f64, f64)>>()
        });
        let thread = thread.map_err(|error| AttackError::Run(Box::new(error)))?;
        let mut stage = Stage { environment, runs: BTreeMap::new(), next: 0, failure: None };
        let served = catch_unwind(AssertUnwindSafe(|| {
            // Objects of the attack's code may outlive it, so the end is a separate event.
            while let Ok(Event::Ask(ask)) = events.recv() {
                ask(&mut stage);
            }
        }));
        drop(events);
        let found = thread.join();
        if let Err(panic) = served {
            resume_unwind(panic);
        }
        if let Some(failure) = stage.failure {
            return Err(failure);
        }
        let found = found.unwrap_or_else(|panic| resume_unwind(panic));
        let measures =
            found.map_err(|error| AttackError::Code(plugin::told(&self.settings.plugin, &error)))?;
        let measure = |(name, value, baseline, perfect)| Measure::new(name, value, baseline, perfect);
        Ok(measures.into_iter().map(measure).collect())
    }
}

/// Sends the last event when the attack's code ends, also after a panic.
struct Ends(std::sync::mpsc::Sender<Event>);

impl Drop for Ends {
    fn drop(&mut self) {
        drop(self.0.send(Event::Done));
    }
}

/// Tests the laws of attacks on an attack with these settings, in JSON, on the experiment of a file, and returns the broken law.
/// `passive` is true if the attack changes no message.
#[pyfunction]
pub(crate) fn check_attack(
    settings: &str,
    experiment: PathBuf,
    passive: bool,
    note: &Bound<'_, PyAny>,
) -> PyResult<Option<String>> {
    let settings: toml::Table = serde_json::from_str(settings).map_err(|error| raised(&input(error)))?;
    wait(note, move |stop: &AtomicBool| {
        let slot = Slot::<dyn Attack>::from_table(settings).map_err(input)?;
        let arguments = ExperimentArguments { file: experiment, ..ExperimentArguments::default() };
        let experiment = experiment_file::load(&arguments).map_err(input)?;
        fet::attack::in_environment(&experiment, stop, |environment| {
            fet_attacks::check(environment, &slot)?;
            let expected = environment.fresh().train(Run::default())?.metric();
            let open = || environment.fresh();
            Ok(plugin::broken_law(|| _ = attacks::check(&slot, open, passive.then_some(expected))))
        })
    })
}
