//! `gradient-neighbour`: the attacker knows a few labels and gives every other row the label of the known
//! rows whose gradients have the most similar direction. It adapts direct label inference (Fu et al. 2022,
//! section 4.3) to models in which the sign of a gradient does not reveal the class, because the primary's
//! model is between logits and representations.

use fet_core::attack::{About, Attack, AttackEnvironment, AttackError, Measure, Setting};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{after_labels, chance, classes, directions, known, needs_classes, own_directions};
use crate::tools::clusters::{dot, unit};
use crate::tools::gradients::GradientRecorder;
use crate::tools::scores::commonest;

/// Settings of `gradient-neighbour` (after Fu et al. 2022, section 4.3).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NeighbourSettings {
    /// Number of the attacking secondary, from 1.
    #[schemars(range(min = 1))]
    pub party: usize,
    /// Number of known labels of each class.
    #[schemars(range(min = 1))]
    pub known: usize,
    /// Number of first epochs whose gradients the attacker uses.
    #[schemars(range(min = 1))]
    pub epochs: usize,
}

impl Default for NeighbourSettings {
    fn default() -> Self {
        Self { party: 1, known: 1, epochs: 1 }
    }
}

impl Recipe<dyn Attack> for NeighbourSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Attack>, Violation> {
        Ok(Box::new(Neighbour(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Attack>::new::<NeighbourSettings>(
        "gradient-neighbour",
        "labels from the gradients of a few rows whose labels are known",
    )
}

struct Neighbour(NeighbourSettings);

impl Attack for Neighbour {
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
        let (known, others) = known(&labels, self.0.known, &mut chance(environment));
        if others.is_empty() {
            return Ok(vec![Measure::new("accuracy", 0.0, 0.0, 1.0)]);
        }
        let count = environment.setting().classes;
        let reached = accuracy(&directions, &labels, count, &known, &others);
        // Baseline: the same attack with the attacker's own columns, which it has without the run.
        let hidden: Vec<usize> = others.iter().map(|&place| labels[place]).collect();
        let mut baseline = commonest(&hidden);
        for columns in own_directions(trained.as_ref(), self.0.party, &rows)? {
            baseline = accuracy(&columns, &labels, count, &known, &others).max(baseline);
        }
        Ok(vec![Measure::new("accuracy on the other rows", reached, baseline, 1.0)])
    }
}

/// Returns the share of rows for which the nearest centre of the known rows belongs to the row's class.
fn accuracy(
    directions: &[Vec<f64>],
    labels: &[usize],
    classes: usize,
    known: &[usize],
    others: &[usize],
) -> f64 {
    let mut centres = vec![vec![0.0; directions[0].len()]; classes];
    for &place in known {
        centres[labels[place]].iter_mut().zip(&directions[place]).for_each(|(sum, x)| *sum += x);
    }
    let centres: Vec<Vec<f64>> = centres.into_iter().map(unit).collect();
    let guess = |place: usize| {
        let scores = centres.iter().map(|centre| dot(centre, &directions[place])).enumerate();
        scores.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(class, _)| class)
    };
    let right = others.iter().filter(|&&place| guess(place) == labels[place]).count();
    right as f64 / others.len().max(1) as f64
}
