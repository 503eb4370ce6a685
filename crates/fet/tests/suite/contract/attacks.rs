//! Tests the laws of attacks: the same attack environment gives the same finite figures, and a passive attack
//! changes nothing.

use std::sync::atomic::AtomicBool;

use fet_attacks::Environment;
use fet_contract::attacks as laws;
use fet_core::attack::Attack;
use fet_core::data::Task;
use fet_core::registry::Slot;

use super::all;
use crate::support::{experiment, flex, square, trainer};

const ROWS: usize = 160;
const SETS: [&str; 2] = ["train.epochs=2", "linker.neighbours=2"];

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
    let (experiment, machine, stop) = (experiment(&SETS), fet::run::machine(&flex()), AtomicBool::new(false));
    for slot in all::<dyn Attack>() {
        let mut tasks = 0;
        for task in [Task::Multiclass, Task::Regression] {
            let open = || {
                Environment::new(&experiment, square(ROWS, task), &machine, &stop).expect("an environment")
            };
            tasks += usize::from(laws::check(&slot, open, Some(plain(task))));
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
