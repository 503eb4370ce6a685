//! `gradient-norm`: the gradient of a row is long if the model errs, and it errs more on some classes than on
//! others (Li et al. 2022, "Label Leakage and Protection in Two-party Split Learning", section 3.1).

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Setting};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance, classes, needs_classes};
use crate::tools::gradients::{GradientRecorder, Received};
use crate::tools::scores::{shuffled, telling};

/// Settings of `gradient-norm` (Li et al. 2022, section 3.1).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NormSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
}

impl Default for NormSettings {
    fn default() -> Self {
        Self { party: 1 }
    }
}

impl Recipe<dyn Attack> for NormSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Norm(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<NormSettings>("gradient-norm", "labels from the norms of gradients")
}

struct Norm(NormSettings);

impl Attack for Norm {
    fn about(&self) -> About {
        after_labels(self.0.party)
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        needs_classes(setting)
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let (received, _) = GradientRecorder::default().train(environment, self.0.party)?;
        let labels = classes(environment, received.iter().map(|one| one.row));
        let classes = environment.setting().classes;
        let by_chance = shuffled(&labels, &mut chance(environment));
        // The attack computes the measure once for each pass over the rows. The attacker takes the pass that
        // separates the classes best.
        let count = |time: usize| received.iter().filter(|one| one.before == time).count();
        let rows = count(0);
        // With party dropout, few rows reach the maximum number of passes.
        let times: Vec<usize> = (0..).take_while(|&time| rows > 0 && 2 * count(time) > rows).collect();
        let most = |labels: &[usize]| {
            let area = |&time: &usize| mean_area(&received, labels, classes, time);
            times.iter().map(area).fold(0.5, f64::max)
        };
        Ok(vec![Measure::new("AUC of the norm, mean over classes", most(&labels), most(&by_chance), 1.0)])
    }
}

/// Returns the mean area of one class against the others, regardless of which side has longer gradients.
fn mean_area(received: &[Received], labels: &[usize], classes: usize, time: usize) -> f64 {
    let rows = received.iter().zip(labels).filter(|(one, _)| one.before == time);
    let (norms, labels): (Vec<f64>, Vec<usize>) = rows.map(|(one, &label)| (one.norm, label)).unzip();
    let area = |class: usize| telling(&norms, |row| labels[row] == class);
    (0..classes).map(area).sum::<f64>() / classes as f64
}
