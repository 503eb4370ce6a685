//! `gradient-clustering`: clusters rows by the direction of their gradients, without known labels.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Setting};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance, classes, directions, needs_classes, own_directions};
use crate::tools::clusters::{cluster, purity};
use crate::tools::gradients::GradientRecorder;
use crate::tools::scores::{commonest, shuffled};

/// Settings of `gradient-clustering`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusteringSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of first epochs whose gradients the attacker uses.
    #[schemars(range(min = 1))]
    pub epochs: usize,
}

impl Default for ClusteringSettings {
    fn default() -> Self {
        Self { party: 1, epochs: 1 }
    }
}

impl Recipe<dyn Attack> for ClusteringSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Clustering(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<ClusteringSettings>("gradient-clustering", "labels from clusters of gradients")
}

struct Clustering(ClusteringSettings);

impl Attack for Clustering {
    fn about(&self) -> About {
        after_labels(self.0.party)
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        needs_classes(setting)
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let (received, trained) = GradientRecorder::default().train(environment, self.0.party)?;
        let (rows, directions) = directions(&received, self.0.epochs);
        let labels = classes(environment, rows.iter().copied());
        let mut rng = chance(environment);
        let found = cluster(&directions, environment.setting().classes, &mut rng);
        let (reached, by_chance) = match rows.is_empty() {
            // The attacker received no gradients and can only guess.
            true => (0.0, 0.0),
            false => (
                purity(&found, &labels),
                purity(&found, &shuffled(&labels, &mut rng)).max(commonest(&labels)),
            ),
        };
        // Baseline: the same clustering of the attacker's own columns, which it has without the run.
        let mut baseline = by_chance;
        for columns in own_directions(trained.as_ref(), self.0.party, &rows)? {
            if !rows.is_empty() {
                baseline = purity(&cluster(&columns, environment.setting().classes, &mut rng), &labels)
                    .max(baseline);
            }
        }
        Ok(vec![Measure::new("purity of the clusters", reached, baseline, 1.0)])
    }
}
