//! The laws of an attack: its figures are finite and repeat, and an attack that changes no message does not change a run.

use fet_core::attack::{Attack, AttackEnvironment, AttackError, Measure, Run, Setting, Trained};
use fet_core::data::VerticalData;
use fet_core::registry::Slot;

/// Attack environment that records the results of runs on the experiment's own tables.
struct Recording<E> {
    environment: E,
    metrics: Vec<f64>,
}

impl<E: AttackEnvironment> AttackEnvironment for Recording<E> {
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

/// Tests all laws of an attack with these settings, in environments that `open` makes of one experiment without a privacy mechanism.
/// `expected` is the metric of a run without the attack; with `None` the attack may change its runs. Returns false if the attack
/// refuses the experiment.
///
/// # Panics
/// If the attack breaks a law.
pub fn check<E: AttackEnvironment>(
    slot: &Slot<dyn Attack>,
    mut open: impl FnMut() -> E,
    expected: Option<f64>,
) -> bool {
    let mut attacked = || {
        let mut environment = Recording { environment: open(), metrics: Vec::new() };
        let attack = slot.build(&()).expect("sound settings");
        attack.check(environment.setting()).ok()?;
        match attack.attack(&mut environment) {
            Ok(measures) => Some((measures, environment.metrics)),
            Err(error) => panic!("{slot:?}: the attack failed: {error}"),
        }
    };
    let Some((measures, metrics)) = attacked() else { return false };
    assert!(!measures.is_empty(), "{slot:?}: the attack returned an empty list of measures");
    for measure in &measures {
        let Measure { name, value, baseline, perfect } = measure;
        assert!(
            [value, baseline, perfect].iter().all(|x| x.is_finite()),
            "{slot:?}: a figure is not finite: {measure:?}"
        );
        assert!(!name.is_empty(), "{slot:?}: a measure lacks a name: {measure:?}");
    }
    assert_ne!(
        measures[0].baseline, measures[0].perfect,
        "{slot:?}: the baseline of the first measure is a complete success"
    );
    if let Some(expected) = expected {
        assert!(!metrics.is_empty(), "{slot:?}: the attack trains no run of the experiment itself");
        assert!(
            metrics.iter().all(|metric| *metric == expected),
            "{slot:?}: the attack changes the run: the metric is {expected} without it and {metrics:?} with it"
        );
    }
    assert_eq!(Some((measures, metrics)), attacked(), "{slot:?}: the attack does not repeat");
    true
}
