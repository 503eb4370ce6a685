//! The laws of a label protection: it repeats, keeps its declared bounds, and accounts for all exposure.

use fet_core::data::Task;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::objective::Objective;
use fet_core::registry::Slot;

use crate::rng;

const EXPOSED: Exposure = Exposure {
    task: Task::Multiclass,
    classes: 5,
    rows: 3_000,
    times: 3,
    steps_follow_metric: true,
    parties_train: true,
};

/// Tests all laws of a label protection with these settings, for the first task that it takes.
///
/// # Panics
/// If the label protection breaks a law.
pub fn check(slot: &Slot<dyn LabelProtection>) {
    protected_labels_repeat_with_their_generator_and_fit(slot);
    more_exposure_never_lowers_epsilon(slot);
}

/// Returns the plug-in, prepared for the first task that it takes.
fn prepared(slot: &Slot<dyn LabelProtection>) -> (Exposure, Box<dyn LabelProtection>) {
    let ready = [Task::Multiclass, Task::Regression].into_iter().find_map(|task| {
        let exposure = Exposure { task, ..EXPOSED };
        let mut protection = slot.build(&()).expect("sound settings");
        protection.prepare(&exposure).ok().map(|()| (exposure, protection))
    });
    ready.unwrap_or_else(|| panic!("{slot:?} takes no task"))
}

/// Returns ε, with a missing bound as infinity.
fn epsilon(spent: &LabelPrivacy) -> f64 {
    spent.epsilon.unwrap_or(f64::INFINITY)
}

/// Tests that labels and gradients repeat with their generator, that protected labels fit the task, and that
/// a protection with an ε draws random numbers.
pub fn protected_labels_repeat_with_their_generator_and_fit(slot: &Slot<dyn LabelProtection>) {
    let (exposure, protection) = prepared(slot);
    let labels = |round| {
        let mut labels: Vec<f64> = (0..500).map(|row| f64::from(row % 5)).collect();
        let mut objective = Objective { task: exposure.task, outputs: 5, minimum: 0.0, range: 4.0 };
        protection.labels(&mut labels, &mut objective, &mut rng(round));
        assert!(objective.range > 0.0, "{slot:?}");
        labels
    };
    assert_eq!(labels(1), labels(1), "{slot:?}");
    let changed = labels(1) != labels(2);
    if exposure.task == Task::Multiclass {
        assert!(labels(1).iter().all(|label| (0.0..5.0).contains(label) && label.fract() == 0.0), "{slot:?}");
    }
    let given: Vec<f32> = (0..600).map(|i| (i as f32).sin()).collect();
    let gradients = |round| {
        let mut gradients = given.clone();
        protection.gradients(&mut gradients, 6, &mut rng(round));
        gradients
    };
    assert_eq!(gradients(1), gradients(1), "{slot:?}");
    assert_eq!(gradients(1) != given, protection.changes_gradients(), "{slot:?}");
    let claims = protection.spent(&exposure).epsilon.is_some();
    let draws = changed || gradients(1) != gradients(2);
    assert!(!claims || draws, "{slot:?}: an ε without random numbers");
}

/// Tests that more rows and more releases never lower ε, and that the statement names what it covers.
pub fn more_exposure_never_lowers_epsilon(slot: &Slot<dyn LabelProtection>) {
    let (exposure, protection) = prepared(slot);
    let mut last = 0.0;
    for factor in [1, 10, 100] {
        let more = Exposure { rows: factor * exposure.rows, times: factor * exposure.times, ..exposure };
        let spent = protection.spent(&more);
        assert!(epsilon(&spent) >= last, "{slot:?}: {spent:?}");
        last = epsilon(&spent);
        for part in ["validation labels", "label"] {
            assert!(spent.epsilon.is_none() || spent.statement.contains(part), "{slot:?}: {spent:?}");
        }
    }
}
