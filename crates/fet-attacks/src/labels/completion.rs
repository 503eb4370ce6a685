//! `model-completion`: the secondary adds a head to its half of the model and trains the head on a few known
//! labels (Fu et al. 2022, "Label Inference Attacks Against Vertical Federated Learning", sections 4.1 and
//! 4.2).
//!
//! In the active attack the secondary learns faster than agreed, so that the primary's half relies on it. The
//! paper multiplies gradients. Our optimisers are invariant to the scale of gradients, so that the attack
//! multiplies the learning rate.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Run, Setting};
use fet_core::data::Matrix;
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance, classes, known, needs_classes};
use crate::tools::gradients::GradientRecorder;
use crate::tools::network::{Loss, Network};

/// Settings of `model-completion` (Fu et al. 2022, sections 4.1 and 4.2).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompletionSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of known labels of each class.
    #[schemars(range(min = 1))]
    pub known: usize,
    /// Factor by which the attacker multiplies its learning rate, so that the primary's half relies on the
    /// attacker's half (active model completion; Fu et al. 2022, section 4.2); 1 follows the protocol.
    #[schemars(range(min = 0.1, max = 100))]
    pub boost: f64,
}

impl Default for CompletionSettings {
    fn default() -> Self {
        Self { party: 1, known: 4, boost: 1.0 }
    }
}

impl Recipe<dyn Attack> for CompletionSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Completion(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<CompletionSettings>(
        "model-completion",
        "labels from the party's own half of the model and a few known labels",
    )
}

struct Completion(CompletionSettings);

impl Attack for Completion {
    fn about(&self) -> About {
        after_labels(self.0.party)
    }

    fn check(&self, setting: &Setting) -> Result<(), Violation> {
        needs_classes(setting)
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let CompletionSettings { party, known: each, boost } = self.0;
        let (_, mut trained) = GradientRecorder::hurried(boost).train(environment, party)?;
        let [rows, _, test] = trained.rows().map(<[usize]>::to_vec);
        let labels = classes(environment, rows.iter().copied());
        let (known, hidden) = known(&labels, each, &mut chance(environment));
        let count = environment.setting().classes;
        let new: Vec<usize> = classes(environment, test.iter().copied());
        let both = |inputs: [Matrix<f32>; 2]| {
            let head = head(&inputs[0].select_rows(&known), &pick(&labels, &known), count);
            let right = share(&head.classes(&inputs[0].select_rows(&hidden)), &pick(&labels, &hidden));
            (right, share(&head.classes(&inputs[1]), &new))
        };
        let metric = if trained.metric().is_finite() { trained.metric() } else { 0.0 };
        let (found, reached) = both([trained.encoded(party, &rows)?, trained.encoded(party, &test)?]);
        // Baseline: the same head on the attacker's columns, and on its half before training.
        let columns = both([trained.features(party, &rows)?, trained.features(party, &test)?]);
        let mut drawn = environment.train(Run { untrained: true, ..Run::default() })?;
        let drawn = both([drawn.encoded(party, &rows)?, drawn.encoded(party, &test)?]);
        let (baseline, without) = (columns.0.max(drawn.0), columns.1.max(drawn.1));
        Ok(vec![
            Measure::new("accuracy on training rows", found, baseline, 1.0),
            Measure::new("accuracy on test rows", reached, without, 1.0),
            Measure::new("test accuracy of the attacked run", metric, metric, 1.0),
        ])
    }
}

fn head(inputs: &Matrix<f32>, labels: &[usize], classes: usize) -> Network {
    let targets =
        labels.iter().flat_map(|&label| (0..classes).map(move |class| f32::from(u8::from(class == label))));
    Network::fit(Loss::Classes, (inputs, &Matrix::new(classes, targets.collect())), None)
}

fn pick(labels: &[usize], places: &[usize]) -> Vec<usize> {
    places.iter().map(|&place| labels[place]).collect()
}

fn share(found: &[usize], labels: &[usize]) -> f64 {
    found.iter().zip(labels).filter(|(a, b)| a == b).count() as f64 / labels.len().max(1) as f64
}
