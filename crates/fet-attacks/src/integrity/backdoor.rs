//! `backdoor`: a secondary plants a trigger so that the model predicts a chosen class (Bai et al. 2023,
//! "VILLAIN"). During training, the secondary writes the trigger into its records of a few training rows of
//! known class. After training, it writes the trigger into its records of rows of other classes.
//!
//! The secondary can multiply its learning rate so that the model relies on its part. It changes only its own
//! table and its own learning rate, so that clipping, noise and masks do not prevent the attack.

use std::sync::{Arc, Mutex};

use fet_core::attack::{
    About, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Setting, Target,
};
use fet_core::data::{Matrix, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::gradients::GradientRecorder;

use super::{Outputs, numbers, outputs, overwritten};

/// Settings of `backdoor` (Bai et al. 2023, "VILLAIN").
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackdoorSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Target class of rows with the trigger; the first class is 0.
    pub class: usize,
    /// Number of training rows known to be of the target class; their records get the trigger.
    #[schemars(range(min = 1))]
    pub known: usize,
    /// Number of test rows of other classes that get the trigger.
    #[schemars(range(min = 1))]
    pub targets: usize,
    /// Factor by which the attacker multiplies its learning rate, so that the model relies on its part; 1
    /// follows the protocol.
    #[schemars(range(min = 0.1, max = 100))]
    pub boost: f64,
}

impl Default for BackdoorSettings {
    fn default() -> Self {
        Self { party: 1, class: 0, known: 20, targets: 20, boost: 5.0 }
    }
}

impl Recipe<dyn Attack> for BackdoorSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Backdoor(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<BackdoorSettings>("backdoor", "a trigger in a secondary's records that makes the model predict a class")
}

struct Backdoor(BackdoorSettings);

impl Attack for Backdoor {
    fn about(&self) -> About {
        About { attacker: Attacker::Secondary, target: Target::Predictions, party: self.0.party }
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        if setting.task == Task::Regression {
            return Err(Violation::new(
                "kind",
                "must be another attack: this attack needs classes, but labels are numbers",
                "backdoor",
            ));
        }
        if self.0.class >= setting.classes {
            let rule = format!("must be below {}, the number of classes", setting.classes);
            return Err(Violation::new("class", rule, self.0.class));
        }
        Ok(())
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let BackdoorSettings { party, class, known, targets, boost } = self.0;
        let (clean, trained) = outputs(environment, Run::default())?;
        let [train, _, test] = trained.rows().map(<[usize]>::to_vec);
        let labels = environment.data().labels.clone();
        let of_class = |row: &usize| labels[*row] as usize == class;
        let mut poisoned: Vec<usize> = train.into_iter().filter(of_class).collect();
        poisoned.shuffle(&mut stream(environment.setting().seed, 0, Purpose::Attack, 4));
        poisoned.truncate(known);
        // Some of the other test rows get the trigger; the remaining rows show the attack's effect on
        // accuracy.
        let others: Vec<usize> = test.iter().copied().filter(|row| !of_class(row)).collect();
        let (triggered, rest) = others.split_at(targets.min(others.len() / 2));
        let behind = |rows: &[usize]| -> Result<Vec<usize>, AttackError> {
            let mut all: Vec<usize> = trained.shown(party, rows)?.concat();
            all.sort_unstable();
            all.dedup();
            Ok(all)
        };
        let (poisoned, shown) = (behind(&poisoned)?, behind(triggered)?);
        let mut data = environment.data().clone();
        let table = &mut data.secondaries[party - 1];
        let own = numbers(table)?;
        let trigger = trigger(own);
        let trained_on = overwritten(own, &poisoned, |_| trigger.clone());
        let tested = overwritten(&trained_on, &shown, |_| trigger.clone());
        table.features = trained_on.into();
        let run = Run {
            hook: Some((party, Arc::new(Mutex::new(GradientRecorder::hurried(boost))))),
            data: Some(data),
            tested: Some((party, tested)),
            ..Run::default()
        };
        let (found, _) = outputs(environment, run)?;
        let taken =
            |outputs: &Outputs, rows: &[usize]| share(outputs, rows, |_, likeliest| likeliest == class);
        let right =
            |outputs: &Outputs| share(outputs, rest, |row, likeliest| labels[row] as usize == likeliest);
        Ok(vec![
            Measure::new(
                "triggered rows taken for the class",
                taken(&found, triggered),
                taken(&clean, triggered),
                1.0,
            ),
            Measure::new("accuracy on other rows", right(&found), right(&clean), 0.0),
        ])
    }
}

/// Returns a record that is unlike all records: each column alternates between the high and low end of its
/// range.
fn trigger(features: &Matrix<f32>) -> Vec<f32> {
    let end = |column: usize| {
        let values = (0..features.rows()).map(|row| features.row(row)[column]);
        if column.is_multiple_of(2) {
            values.fold(f32::NEG_INFINITY, f32::max)
        } else {
            values.fold(f32::INFINITY, f32::min)
        }
    };
    (0..features.columns()).map(end).collect()
}

/// Returns the share of rows whose most probable class fits. A binary task predicts class 1 above
/// one half.
fn share(outputs: &Outputs, rows: &[usize], fits: impl Fn(usize, usize) -> bool) -> f64 {
    let likeliest = |row: &usize| match outputs.0.get(row)?.as_slice() {
        [one] => Some(usize::from(*one > 0.5)),
        all => all.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(class, _)| class),
    };
    let fitting = rows.iter().filter(|row| likeliest(row).is_some_and(|class| fits(**row, class)));
    fitting.count() as f64 / rows.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_their_likeliest_class() {
        let outputs = Outputs([(0, vec![0.1, 0.7, 0.2]), (1, vec![3.0, 1.0, 2.0]), (5, vec![0.9])].into());
        assert_eq!(share(&outputs, &[0, 1, 5, 9], |_, class| class == 1), 0.5);
        assert_eq!(trigger(&Matrix::new(2, vec![1.0, 5.0, 3.0, 4.0])), [3.0, 4.0]);
    }
}
