//! `gradient-sign`: for a regression, the gradient of a row is its residual times a direction common to all
//! rows. The gradient's side of the main axis gives the sign of the residual. In the first epoch the model
//! predicts nearly the same number for all rows, so that the sign shows if the label is large.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Setting};
use fet_core::data::Task;
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance};
use crate::tools::clusters::{dot, unit};
use crate::tools::gradients::{GradientRecorder, Received};
use crate::tools::scores::{shuffled, telling};

/// Settings of `gradient-sign`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
}

impl Default for SignSettings {
    fn default() -> Self {
        Self { party: 1 }
    }
}

impl Recipe<dyn Attack> for SignSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Sign(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<SignSettings>("gradient-sign", "large labels, from the side of gradients")
}

struct Sign(SignSettings);

impl Attack for Sign {
    fn about(&self) -> About {
        after_labels(self.0.party)
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        if setting.task == Task::Regression {
            return Ok(());
        }
        Err(Violation::new(
            "kind",
            "must be another attack: this attack needs numbers, but labels are classes",
            "gradient-sign",
        ))
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let (mut received, _) = GradientRecorder::default().train(environment, self.0.party)?;
        received.retain(|one| one.before == 0);
        let labels = &environment.data().labels;
        let mut sorted: Vec<f64> = received.iter().map(|one| labels[one.row]).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let large: Vec<usize> = received.iter().map(|one| usize::from(labels[one.row] > median)).collect();
        let axis = main_axis(&received);
        let sides: Vec<f64> = received.iter().map(|one| dot(&one.sum, &axis)).collect();
        let by_chance = shuffled(&large, &mut chance(environment));
        let area = |large: &[usize]| telling(&sides, |row| large[row] == 1);
        Ok(vec![Measure::new(
            "AUC of the side, for labels above the median",
            area(&large),
            area(&by_chance),
            1.0,
        )])
    }
}

/// Returns the first eigenvector of the gradients' second moments, by the power method.
fn main_axis(received: &[Received]) -> Vec<f64> {
    const STEPS: usize = 50;
    let width = received.first().map_or(0, |one| one.sum.len());
    let mut axis = unit(vec![1.0; width]);
    for _ in 0..STEPS {
        let mut next = vec![0.0; width];
        for one in received {
            let along = dot(&one.sum, &axis);
            next.iter_mut().zip(&one.sum).for_each(|(sum, x)| *sum += along * x);
        }
        axis = unit(next);
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_axis_is_found() {
        let one = |x: f64, y: f64| Received { row: 0, before: 0, sum: vec![x, y], norm: 0.0 };
        let axis = main_axis(&[one(3.0, 4.0), one(-6.0, -8.0), one(0.4, -0.3)]);
        assert!((axis[0].abs() - 0.6).abs() < 1e-3 && (axis[1].abs() - 0.8).abs() < 1e-3, "{axis:?}");
        assert!(main_axis(&[]).is_empty());
    }
}
