//! The share of the fitted model in the mean, and the portions of the model in use: given, or fitted to the validation
//! rows.

use std::collections::BTreeMap;

use fet_core::data::Task;
use fet_core::parameters::{ParameterError, Parameters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of the fitted model in a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be \"fitted\" or a number from 0 to 1")]
pub enum Share {
    /// A rule for the share.
    Rule(ShareRule),
    /// This share.
    Given(#[schemars(range(min = 0, max = 1))] f64),
}

/// A rule for the share of the fitted model in a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShareRule {
    /// The share that fits the validation rows best.
    Fitted,
}

impl Default for Share {
    fn default() -> Self {
        Self::Given(EQUAL)
    }
}

/// The share that gives both parts the same weight.
const EQUAL: f64 = 0.5;
/// Name of the setting.
const SETTING: &str = "share";
/// Parameter name of a fitted share.
const PARAMETER: &str = "mixed.share";
/// Parameter name of the fitted number of portions.
const PORTIONS: &str = "mixed.portions";
/// Standard deviation of the prior of a fitted share.
const DEVIATION: f64 = 0.2;
const PRECISION: f64 = 1.0 / (DEVIATION * DEVIATION);
/// Steps of the bisection for the log loss: more than the bits of a share in single precision.
const STEPS: usize = 40;
/// Smallest probability of a label's class in the log loss.
const SMALLEST: f64 = 1e-12;

/// The share and the portions in use. If they are fitted, they are parameters of the model.
pub(super) struct CurrentShare {
    given: Share,
    /// Number of portions of the fitted model.
    all: usize,
    /// The fitted share and, for a model of several portions, their number, in single precision as they are saved;
    /// empty for a given share.
    parameters: Parameters,
}

impl CurrentShare {
    /// Makes the share of a model of `all` portions.
    pub(super) fn new(given: Share, all: usize) -> Self {
        let mut parameters = Parameters::default();
        if given == Share::Rule(ShareRule::Fitted) {
            parameters.push(PARAMETER, &[1], &[EQUAL as f32]);
            if all > 1 {
                parameters.push(PORTIONS, &[1], &[all as f32]);
            }
        }
        Self { given, all, parameters }
    }

    /// Returns the number of portions of the fitted model in use.
    pub(super) fn portions(&self) -> usize {
        self.fitted_portions(&self.parameters).unwrap_or(self.all)
    }

    /// Returns the number of portions that these parameters of a model contain.
    pub(super) fn fitted_portions(&self, parameters: &Parameters) -> Option<usize> {
        let portions = parameters.get(PORTIONS).and_then(|values| values.first());
        portions.map(|&portions| (portions as usize).clamp(1, self.all))
    }

    /// Returns true if validation rows determine the share.
    pub(super) fn is_fitted(&self) -> bool {
        !self.parameters.segments().is_empty()
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub(super) fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.parameters.overwrite(parameters)
    }

    /// Returns the share.
    pub(super) fn value(&self) -> f64 {
        match self.given {
            Share::Given(share) => share,
            Share::Rule(ShareRule::Fitted) => self.parameters.values().first().map_or(EQUAL, |&x| x.into()),
        }
    }

    /// Returns the fitted share that these parameters of a model contain.
    pub(super) fn setting(&self, parameters: &Parameters) -> BTreeMap<String, f64> {
        let share = parameters.get(PARAMETER).and_then(|values| values.first());
        share.map(|&share| (SETTING.to_string(), share.into())).into_iter().collect()
    }

    /// Fits the share and the number of portions to rows with these weights (empty for equal weights). Equal losses
    /// choose the smaller number.
    ///
    /// `by_portions` has an entry for each number of portions. It holds for each row the method's and the fitted model's
    /// error for a regression, and otherwise the probability that each gives to the row's class.
    pub(super) fn fit(&mut self, task: Task, by_portions: &[Vec<[f64; 2]>], weights: &[f32]) {
        let before = self.value();
        let mut best: Option<(usize, f64, f64)> = None;
        for (portions, pairs) in (1..).zip(by_portions) {
            let rows = Rows::new(task, pairs, weights);
            // The share as it is saved.
            let share = f64::from(rows.share().unwrap_or(before) as f32);
            let loss = rows.penalised_loss(share);
            if best.is_none_or(|(_, _, least)| loss < least) {
                best = Some((portions, share, loss));
            }
        }
        let Some((portions, share, _)) = best else { return };
        for (value, fitted) in self.parameters.split_mut().1.iter_mut().zip([share, portions as f64]) {
            *value = fitted as f32;
        }
    }
}

/// Rows that determine a share, with weights of mean 1.
///
/// The share has the largest posterior density: its likelihood on the rows, with normal errors for a regression, times
/// a normal prior with the mean [`EQUAL`] and the standard deviation [`DEVIATION`]. Few rows so leave it near [`EQUAL`].
struct Rows<'a> {
    task: Task,
    pairs: &'a [[f64; 2]],
    weights: Vec<f64>,
}

impl<'a> Rows<'a> {
    fn new(task: Task, pairs: &'a [[f64; 2]], weights: &[f32]) -> Self {
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let scale = pairs.len() as f64 / sum;
        let scaled = |row: usize| weights.get(row).map_or(1.0, |&weight| f64::from(weight) * scale);
        Self { task, pairs, weights: (0..pairs.len()).map(scaled).collect() }
    }

    /// Returns the sum over rows of a function of the pair.
    fn sum(&self, of_pair: impl Fn(f64, f64) -> f64) -> f64 {
        self.pairs
            .iter()
            .zip(&self.weights)
            .map(|([one, other], weight)| weight * of_pair(*one, *other))
            .sum()
    }

    /// Returns the sum of the squared errors of the means with this share.
    fn squared_errors(&self, share: f64) -> f64 {
        self.sum(|one, other| ((1.0 - share) * one + share * other).powi(2))
    }

    /// Returns the negative logarithm of the posterior density, without constants.
    fn penalised_loss(&self, share: f64) -> f64 {
        let loss = match self.task {
            Task::Regression => self.pairs.len() as f64 / 2.0 * self.squared_errors(share).ln(),
            Task::Binary | Task::Multiclass => {
                self.sum(|one, other| -((1.0 - share) * one + share * other).max(SMALLEST).ln())
            }
        };
        loss + (share - EQUAL).powi(2) * PRECISION / 2.0
    }

    /// Returns the share; `None` if every share has the same loss.
    fn share(&self) -> Option<f64> {
        match self.task {
            Task::Regression => self.of_squared_errors(),
            Task::Binary | Task::Multiclass => self.of_log_loss(),
        }
    }

    /// Returns the share for a regression. The variance of the errors is that of the share with the smallest error.
    fn of_squared_errors(&self) -> Option<f64> {
        let product = self.sum(|one, other| one * (one - other));
        let square = self.sum(|one, other| (one - other).powi(2));
        let least = (product / square).clamp(0.0, 1.0);
        let variance = self.squared_errors(least) / self.pairs.len() as f64;
        let share = (product + EQUAL * PRECISION * variance) / (square + PRECISION * variance);
        (least.is_finite() && share.is_finite()).then(|| share.clamp(0.0, 1.0))
    }

    /// Returns the share for classes. Its loss is convex in the share.
    fn of_log_loss(&self) -> Option<f64> {
        let slope = |share: f64| -> f64 {
            let of_pair =
                |one: f64, other: f64| (one - other) / ((1.0 - share) * one + share * other).max(SMALLEST);
            self.sum(of_pair) + (share - EQUAL) * PRECISION
        };
        let is_sound = self.pairs.iter().all(|[one, other]| (one + other).is_finite());
        if !is_sound || self.pairs.iter().all(|[one, other]| one == other) {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        if slope(low) >= 0.0 {
            return Some(low);
        }
        if slope(high) <= 0.0 {
            return Some(high);
        }
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            if slope(middle) > 0.0 {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some((low + high) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use fet_core::rng::{Purpose, stream};
    use rand::RngExt;

    use super::*;

    /// The fitted share has a posterior density at least as large as a fine grid of shares, and the grid's best is near.
    #[test]
    fn fitted_share_is_the_most_probable() {
        let mut rng = stream(4, 0, Purpose::Source, 0);
        for round in 0..20 {
            let pairs: Vec<[f64; 2]> = (0..50).map(|_| [rng.random(), rng.random()]).collect();
            let weights: Vec<f32> =
                if round % 2 == 0 { Vec::new() } else { (0..50).map(|_| rng.random()).collect() };
            for task in [Task::Regression, Task::Binary, Task::Multiclass] {
                // The errors of a regression are centred, so that the best share is inside.
                let shift = if task == Task::Regression { 0.5 } else { 0.0 };
                let pairs: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.map(|x| x - shift)).collect();
                let sum: f64 =
                    if weights.is_empty() { 50.0 } else { weights.iter().map(|&x| f64::from(x)).sum() };
                let of_rows = |of_mean: &dyn Fn(f64) -> f64, share: f64| -> f64 {
                    let of_row = |(row, [one, other]): (usize, &[f64; 2])| {
                        let weight = weights.get(row).map_or(1.0, |&weight| f64::from(weight)) * 50.0 / sum;
                        weight * of_mean((1.0 - share) * one + share * other)
                    };
                    pairs.iter().enumerate().map(of_row).sum()
                };
                let grid = || (0..=1000).map(|step| f64::from(step) / 1000.0);
                let squares = |share: f64| of_rows(&|mean| mean * mean, share);
                let least = grid().map(squares).fold(f64::INFINITY, f64::min) / 50.0;
                let loss = |share: f64| -> f64 {
                    let of_data = match task {
                        Task::Regression => squares(share) / (2.0 * least),
                        _ => of_rows(&|mean| -mean.ln(), share),
                    };
                    of_data + (share - 0.5).powi(2) / (2.0 * 0.2 * 0.2)
                };
                let mut share = CurrentShare::new(Share::Rule(ShareRule::Fitted), 1);
                share.fit(task, std::slice::from_ref(&pairs), &weights);
                let best = grid().min_by(|a, b| loss(*a).total_cmp(&loss(*b))).expect("a grid");
                let found = share.value();
                assert!(loss(found) <= loss(best) + 1e-4, "{task:?}: {found}, best of the grid {best}");
                assert!((found - best).abs() <= 2e-3, "{task:?}: {found}, best of the grid {best}");
            }
        }
    }

    #[test]
    fn many_rows_choose_the_better_part_and_few_hardly_change_the_share() {
        for (task, better, worse) in [(Task::Regression, 0.5, 1.0), (Task::Binary, 0.9, 0.2)] {
            for (pair, expected) in [([better, worse], 0.0), ([worse, better], 1.0)] {
                let fitted = |rows: usize| {
                    let mut share = CurrentShare::new(Share::Rule(ShareRule::Fitted), 1);
                    share.fit(task, &[vec![pair; rows]], &[]);
                    share.value()
                };
                assert_eq!(fitted(1000), expected, "{task:?}");
                let few = fitted(1);
                assert!((few - EQUAL).abs() < 0.1, "{task:?}: {few}");
                assert_eq!(few < EQUAL, expected < EQUAL, "{task:?}: {few}");
            }
            // Equal parts leave the share as it is.
            let mut share = CurrentShare::new(Share::Rule(ShareRule::Fitted), 1);
            share.fit(task, &[vec![[better, better]; 3]], &[]);
            assert_eq!(share.value(), EQUAL, "{task:?}");
        }
    }

    /// Of three numbers of portions, the one with the smallest loss is in use; among equal ones the smallest.
    #[test]
    fn portions_have_the_smallest_loss() {
        let bad = vec![[1.0, 0.9], [-1.0, -0.8]];
        let good = vec![[1.0, -0.1], [-1.0, 0.2]];
        for (by_portions, expected) in [
            ([bad.clone(), good.clone(), bad.clone()], 2),
            ([good.clone(), good.clone(), bad.clone()], 1),
            ([bad.clone(), bad.clone(), good.clone()], 3),
        ] {
            let mut share = CurrentShare::new(Share::Rule(ShareRule::Fitted), 3);
            assert_eq!(share.portions(), 3);
            share.fit(Task::Regression, &by_portions, &[]);
            assert_eq!(share.portions(), expected);
            assert_eq!(share.fitted_portions(share.parameters()), Some(expected));
        }
    }

    #[test]
    fn given_share_has_no_parameter_and_stays() {
        let mut share = CurrentShare::new(Share::Given(0.25), 20);
        share.fit(Task::Regression, &[vec![[0.0, 1.0]]], &[]);
        assert_eq!((share.value(), share.parameters().segments().len()), (0.25, 0));
        assert!(share.setting(&Parameters::default()).is_empty());
    }
}
