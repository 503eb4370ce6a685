//! `gradient-cosine`: gradients of rows of the same class have similar directions (Li et al. 2022, section
//! 3.2).

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Setting};
use fet_core::registry::{Plugin, Recipe, Violation};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance, classes, directions, needs_classes, own_directions};
use crate::tools::clusters::dot;
use crate::tools::gradients::GradientRecorder;
use crate::tools::scores::{auc, shuffled};

/// Settings of `gradient-cosine` (Li et al. 2022, section 3.2).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CosineSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of first epochs whose gradients the attacker uses.
    #[schemars(range(min = 1))]
    pub epochs: usize,
}

impl Default for CosineSettings {
    fn default() -> Self {
        Self { party: 1, epochs: 1 }
    }
}

impl Recipe<dyn Attack> for CosineSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Cosine(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<CosineSettings>("gradient-cosine", "pairs of rows with the same label, from the angles of gradients")
}

struct Cosine(CosineSettings);

impl Attack for Cosine {
    fn about(&self) -> About {
        after_labels(self.0.party)
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        needs_classes(setting)
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        /// Number of random pairs of rows.
        const PAIRS: usize = 20_000;
        let (received, trained) = GradientRecorder::default().train(environment, self.0.party)?;
        let (rows, directions) = directions(&received, self.0.epochs);
        let labels = classes(environment, rows.iter().copied());
        let mut rng = chance(environment);
        let by_chance = shuffled(&labels, &mut rng);
        let pairs: Vec<(usize, usize)> = match rows.len() {
            0 | 1 => Vec::new(),
            count => (0..PAIRS)
                .map(|_| (rng.random_range(0..count), rng.random_range(0..count)))
                .filter(|(a, b)| a != b)
                .collect(),
        };
        let area = |directions: &[Vec<f64>], labels: &[usize]| {
            let scores: Vec<f64> = pairs.iter().map(|&(a, b)| dot(&directions[a], &directions[b])).collect();
            auc(&scores, |pair| labels[pairs[pair].0] == labels[pairs[pair].1])
        };
        // Baseline: the same measure on the attacker's own columns, which it has without the run.
        let mut baseline = area(&directions, &by_chance);
        for columns in own_directions(trained.as_ref(), self.0.party, &rows)? {
            baseline = area(&columns, &labels).max(baseline);
        }
        Ok(vec![Measure::new("AUC of the cosine of pairs", area(&directions, &labels), baseline, 1.0)])
    }
}
