//! Transformation of a regression's labels: a model learns transformed labels, and its outputs are transformed back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Objective;
use crate::data::Task;
use crate::registry::Violation;

/// Path of the setting.
const SETTING: &str = "train.target";
/// Largest number of knots of a quantile transformation.
const MOST_KNOTS: usize = 1000;

/// Transformation of a regression's labels before training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetTransformation {
    /// Labels as they are.
    #[default]
    None,
    /// The logarithm ln(1 + label) of labels from 0 on.
    Log,
    /// The rank of a label among the training labels, from 0 to 1.
    Quantile,
}

/// A transformation of labels, fitted to the training labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FittedTarget {
    /// Labels as they are.
    #[default]
    None,
    /// The logarithm ln(1 + label).
    Log,
    /// The level of a label, linear between knots and constant outside them.
    Quantile {
        /// Labels at the knots, ascending; at least two.
        labels: Vec<f64>,
        /// Levels at the knots, ascending.
        levels: Vec<f64>,
    },
}

impl TargetTransformation {
    /// Fits the transformation to the labels of training rows. Refuses a task without numbers, and a logarithm of
    /// labels below 0 in any of `all` rows.
    pub fn fit(
        self,
        objective: &Objective,
        training: &[f64],
        all: &[f64],
    ) -> Result<FittedTarget, Violation> {
        let refuse = |rule: String| Err(Violation::new(SETTING, rule, self.shown()));
        if self != Self::None && objective.task != Task::Regression {
            return refuse(
                "must be \"none\" for classes: only the labels of a regression are numbers".into(),
            );
        }
        match self {
            Self::None => Ok(FittedTarget::None),
            Self::Log => {
                let least = all.iter().copied().fold(objective.minimum, f64::min);
                if least < 0.0 {
                    return refuse(format!(
                        "must be \"quantile\" or \"none\" for labels below 0: \"log\" is ln(1 + label) of labels from 0 \
                         on, and the smallest label is {least}"
                    ));
                }
                Ok(FittedTarget::Log)
            }
            Self::Quantile => quantiles(training)
                .map_or_else(|| refuse("must be \"none\" or \"log\" for equal training labels".into()), Ok),
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Self::None => "\"none\"",
            Self::Log => "\"log\"",
            Self::Quantile => "\"quantile\"",
        }
    }
}

impl FittedTarget {
    /// Returns true if labels stay as they are.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Returns the setting that this is a fit of.
    pub fn setting(&self) -> TargetTransformation {
        match self {
            Self::None => TargetTransformation::None,
            Self::Log => TargetTransformation::Log,
            Self::Quantile { .. } => TargetTransformation::Quantile,
        }
    }

    /// Refuses settings with another transformation than this one of an earlier run.
    pub fn check_setting(&self, setting: TargetTransformation) -> Result<(), Violation> {
        if setting == self.setting() {
            return Ok(());
        }
        let rule = format!("must be {}, as in the earlier run", self.setting().shown());
        Err(Violation::new(SETTING, rule, setting.shown()))
    }

    /// Returns the transformed label.
    fn forward(&self, label: f64) -> f64 {
        match self {
            Self::None => label,
            Self::Log => label.ln_1p(),
            Self::Quantile { labels, levels } => interpolate(labels, levels, label),
        }
    }

    /// Returns the label whose transformation is `value`.
    fn backward(&self, value: f64) -> f64 {
        match self {
            Self::None => value,
            Self::Log => value.exp_m1(),
            Self::Quantile { labels, levels } => interpolate(levels, labels, value),
        }
    }
}

/// Labels in their own unit and as the model sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelScale {
    /// Task and range of the labels, in their own unit.
    pub objective: Objective,
    /// Transformation before the labels are scaled to [0, 1].
    pub target: FittedTarget,
}

impl LabelScale {
    /// Returns a label as the model sees it: transformed and scaled to [0, 1] for a regression, otherwise unchanged.
    pub fn scale(&self, label: f64) -> f32 {
        if self.target.is_none() {
            return self.objective.scale(label);
        }
        let [low, high] = self.ends();
        ((self.target.forward(label) - low) / (high - low)) as f32
    }

    /// Converts activated outputs to predictions in 64 bits, as [`Objective::predictions`] does, in the label's own
    /// unit.
    pub fn predictions(&self, outputs: &[f32]) -> Vec<f64> {
        if self.target.is_none() {
            return self.objective.predictions(outputs);
        }
        let [low, high] = self.ends();
        outputs.iter().map(|&output| self.target.backward(f64::from(output) * (high - low) + low)).collect()
    }

    /// Returns the transformed ends of the labels' range.
    fn ends(&self) -> [f64; 2] {
        let Objective { minimum, range, .. } = self.objective;
        [minimum, minimum + range].map(|end| self.target.forward(end))
    }
}

/// Returns the quantiles of labels as knots; `None` if all labels are equal. A label of several quantiles has the mean of
/// their levels.
fn quantiles(labels: &[f64]) -> Option<FittedTarget> {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().clamp(2, MOST_KNOTS) - 1;
    // Sums and numbers of the levels of each distinct label.
    let mut knots: Vec<(f64, f64, f64)> = Vec::new();
    for knot in 0..=last {
        let level = knot as f64 / last as f64;
        let place = level * sorted.len().saturating_sub(1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let Some(&below) = sorted.get(low) else { continue };
        let above = sorted.get(low + 1).copied().unwrap_or(below);
        let label = below + part * (above - below);
        match knots.last_mut() {
            Some((known, sum, count)) if *known >= label => (*sum, *count) = (*sum + level, *count + 1.0),
            _ => knots.push((label, level, 1.0)),
        }
    }
    (knots.len() > 1).then(|| FittedTarget::Quantile {
        labels: knots.iter().map(|(label, ..)| *label).collect(),
        levels: knots.iter().map(|(_, sum, count)| sum / count).collect(),
    })
}

/// Returns the value at `x` of the function that is linear between the points (`xs`, `ys`), and constant outside them.
fn interpolate(xs: &[f64], ys: &[f64], x: f64) -> f64 {
    let after = xs.partition_point(|&knot| knot <= x);
    let (Some(&first), Some(&last)) = (ys.first(), ys.last()) else { return x };
    if x.is_nan() {
        return x;
    }
    match (after.checked_sub(1), xs.get(after)) {
        (None, _) => first,
        (_, None) => last,
        (Some(before), Some(&next)) => {
            let part = (x - xs[before]) / (next - xs[before]);
            ys[before] + part * (ys[after] - ys[before])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    fn scale(setting: TargetTransformation, labels: &[f64]) -> LabelScale {
        let ends = labels.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], &y| [l.min(y), h.max(y)]);
        let objective =
            Objective { task: Task::Regression, outputs: 1, minimum: ends[0], range: ends[1] - ends[0] };
        let target = setting.fit(&objective, labels, labels).expect("suitable labels");
        LabelScale { objective, target }
    }

    /// Labels with a long tail; every fourth is 0.
    fn skewed(rows: usize) -> Vec<f64> {
        let mut rng = stream(5, 0, Purpose::Source, 0);
        let label = |row| if row % 4 == 0 { 0.0 } else { (6.0 * rng.random::<f64>()).exp() };
        (0..rows).map(label).collect()
    }

    const ALL: [TargetTransformation; 3] =
        [TargetTransformation::None, TargetTransformation::Log, TargetTransformation::Quantile];

    /// The model sees numbers from 0 to 1 in the order of the labels, and its outputs become the labels again, up to
    /// single precision of the output.
    #[test]
    fn outputs_become_labels_again() {
        for rows in [7, 400, 5000] {
            let labels = skewed(rows);
            for setting in ALL {
                let scale = scale(setting, &labels);
                let mut sorted = labels.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                let seen: Vec<f32> = sorted.iter().map(|&label| scale.scale(label)).collect();
                assert!(seen.is_sorted(), "{setting:?}");
                assert_eq!([seen[0], seen[rows - 1]], [0.0, 1.0], "{setting:?}");
                for (label, back) in sorted.iter().zip(scale.predictions(&seen)) {
                    assert!(
                        (label - back).abs() < 1e-4 * (1.0 + label),
                        "{setting:?} of {rows}: {label} {back}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_transformation_gives_the_bits_of_the_objective() {
        let labels = skewed(50);
        let scale = scale(TargetTransformation::None, &labels);
        let seen: Vec<f32> = labels.iter().map(|&label| scale.objective.scale(label)).collect();
        assert_eq!(labels.iter().map(|&label| scale.scale(label)).collect::<Vec<_>>(), seen);
        assert_eq!(scale.predictions(&seen), scale.objective.predictions(&seen));
    }

    /// The transformed labels of a long tail are spread evenly: their mean is near the middle, that of the labels is not.
    #[test]
    fn transformations_spread_a_long_tail() {
        let labels = skewed(2000);
        let mean = |setting| {
            let scale = scale(setting, &labels);
            labels.iter().map(|&label| f64::from(scale.scale(label))).sum::<f64>() / 2000.0
        };
        assert!(mean(TargetTransformation::None) < 0.15, "{}", mean(TargetTransformation::None));
        for setting in [TargetTransformation::Log, TargetTransformation::Quantile] {
            assert!((0.3..0.6).contains(&mean(setting)), "{setting:?}: {}", mean(setting));
        }
    }

    /// Quantiles do not extrapolate; a logarithm does.
    #[test]
    fn quantiles_stay_within_the_training_labels() {
        let labels = skewed(300);
        let largest = labels.iter().copied().fold(0.0, f64::max);
        let quantile = scale(TargetTransformation::Quantile, &labels);
        assert_eq!(quantile.predictions(&[-0.5, 1.5]), [0.0, largest]);
        assert_eq!([quantile.scale(-7.0), quantile.scale(1e9)], [0.0, 1.0]);
        let log = scale(TargetTransformation::Log, &labels);
        assert!(log.predictions(&[1.1])[0] > largest);
        assert!(quantile.predictions(&[f32::NAN])[0].is_nan());
    }

    #[test]
    fn unsuitable_labels_are_refused() {
        let objective = Objective { task: Task::Regression, outputs: 1, minimum: 1.0, range: 4.0 };
        let log = TargetTransformation::Log;
        let refused = log.fit(&objective, &[1.0, 5.0], &[1.0, 5.0, -0.5]).expect_err("a negative label");
        let text = refused.to_string();
        assert!(
            text.contains("train.target") && text.contains("ln(1 + label)") && text.contains("-0.5"),
            "{text}"
        );
        assert!(log.fit(&objective, &[1.0, 5.0], &[0.0, 5.0]).is_ok(), "0 is the smallest label of \"log\"");
        let equal = TargetTransformation::Quantile.fit(&objective, &[2.0, 2.0], &[2.0, 2.0]);
        assert!(equal.expect_err("no quantiles").to_string().contains("equal training labels"));
        let binary = Objective { task: Task::Binary, ..objective };
        for setting in ALL {
            assert_eq!(
                setting.fit(&binary, &[0.0, 1.0], &[0.0, 1.0]).is_ok(),
                setting == TargetTransformation::None
            );
        }
    }
}
