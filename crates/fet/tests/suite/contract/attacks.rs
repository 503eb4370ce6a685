//! Tests the laws of attacks: the same attack environment gives the same finite figures, and a passive attack
//! changes nothing.

use std::sync::atomic::AtomicBool;

use fet_attacks::Environment;
use fet_core::attack::{Attack, AttackEnvironment, AttackError, Measure, Run, Setting, Trained};
use fet_core::data::{Task, VerticalData};
use fet_core::registry::Slot;

use super::all;
use crate::support::{experiment, flex, square, trainer};

const ROWS: usize = 160;
const SETS: [&str; 2] = ["train.epochs=2", "linker.neighbours=2"];

/// Attack environment that records the results of runs on the experiment's own tables.
struct Recording<'a> {
    environment: Environment<'a>,
    metrics: Vec<f64>,
}

impl AttackEnvironment for Recording<'_> {
    fn setting(&self) -> &Setting {
        self.environment.setting()
    }

    fn data(&self) -> &VerticalData {
        self.environment.data()
    }

    fn train(&mut self, run: Run) -> Result<Box<dyn Trained>, AttackError> {
        let own = run.data.is_none() && run.tested.is_none() && !run.quiet && !run.untrained;
        let trained = self.environment.train(run)?;
        self.metrics.extend(own.then(|| trained.metric()));
        Ok(trained)
    }
}

/// Returns the measures of an attack and the results of its runs on the experiment's own tables; `None` if
/// the attack is for another task.
fn attacked(slot: &Slot<dyn Attack>, task: Task) -> Option<(Vec<Measure>, Vec<f64>)> {
    let (experiment, machine, stop) = (experiment(&SETS), fet::run::machine(&flex()), AtomicBool::new(false));
    let environment =
        Environment::new(&experiment, square(ROWS, task), &machine, &stop).expect("an environment");
    let mut environment = Recording { environment, metrics: Vec::new() };
    let attack = slot.build(&()).expect("sound defaults");
    attack.check(environment.setting()).ok()?;
    let measures = attack.attack(&mut environment).expect("it can be attacked");
    Some((measures, environment.metrics))
}

fn plain(task: Task) -> f64 {
    let mut trainer = trainer(&experiment(&SETS), square(ROWS, task), &flex()).expect("a trainer");
    while !trainer.is_done() {
        trainer.epoch(&mut |_| true).expect("an epoch");
    }
    let progress = trainer.progress();
    progress.best.and_then(|best| progress.epochs[best].test).expect("a best epoch")
}

#[test]
fn attacks_repeat_and_do_not_change_the_run() {
    for slot in all::<dyn Attack>() {
        let mut tasks = 0;
        for task in [Task::Multiclass, Task::Regression] {
            let Some((measures, metrics)) = attacked(&slot, task) else { continue };
            tasks += 1;
            assert!(!measures.is_empty(), "{slot:?}");
            for measure in &measures {
                let Measure { name, value, baseline, perfect } = measure;
                assert!([value, baseline, perfect].iter().all(|x| x.is_finite()), "{slot:?}: {measure:?}");
                assert!(
                    !name.is_empty() && (0.0..=1.0).contains(&measure.leakage()),
                    "{slot:?}: {measure:?}"
                );
            }
            assert_ne!(measures[0].baseline, measures[0].perfect, "{slot:?}: there is something to learn");
            let expected = plain(task);
            assert!(
                !metrics.is_empty() && metrics.iter().all(|metric| *metric == expected),
                "{slot:?}: {metrics:?}"
            );
            assert_eq!(Some((measures, metrics)), attacked(&slot, task), "{slot:?}");
        }
        assert!(tasks > 0, "{slot:?} takes no task");
    }
}

#[test]
fn every_attack_refuses_a_missing_party() {
    let (experiment, machine, stop) = (experiment(&SETS), fet::run::machine(&flex()), AtomicBool::new(false));
    for slot in all::<dyn Attack>() {
        let mut settings = slot.settings();
        assert!(settings.contains_key("party"), "{slot:?}");
        settings.insert("party".into(), 3.into());
        let slot = Slot::<dyn Attack>::from_table(settings).expect("a number of a party");
        for task in [Task::Multiclass, Task::Regression] {
            let mut environment =
                Environment::new(&experiment, square(ROWS, task), &machine, &stop).expect("an environment");
            let error = fet_attacks::attack(&mut environment, &slot).expect_err("there are two").to_string();
            assert!(error.contains("attack.party") && error.contains("1 to 2"), "{error}");
        }
    }
}
