//! The learning rate over epochs: reduced at a plateau of the validation metric, or along half a cosine.
//!
//! The validation metric is the metric that users read, and its direction matters: accuracy is maximised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objective::Direction;

/// Schedule of the learning rate over epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// At a plateau, as in the paper: `train.patience` epochs without a better validation metric multiply the
    /// rate by `train.factor`.
    #[default]
    Plateau,
    /// By epoch, independently of the metric: half a cosine from the method's learning rate to nearly zero in
    /// the last epoch (Loshchilov and Hutter 2017, without restarts). `patience` and `factor` then have no
    /// effect.
    Cosine,
}

impl Decay {
    /// Returns the learning rate of `epoch`, counted from 0, of `epochs`; `plateau` holds the rate after
    /// plateaus.
    pub fn learning_rate(self, plateau: &Plateau, epoch: usize, epochs: usize) -> f64 {
        match self {
            Self::Plateau => plateau.learning_rate,
            Self::Cosine => {
                let done = epoch as f64 / epochs as f64;
                plateau.initial * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
        }
    }
}

/// Reduces the learning rate when the validation metric stops improving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    initial: f64,
    learning_rate: f64,
    best: Option<f64>,
    stale: usize,
}

impl Plateau {
    /// Creates a schedule that starts at `learning_rate`.
    pub fn new(learning_rate: f64) -> Self {
        Self { initial: learning_rate, learning_rate, best: None, stale: 0 }
    }

    /// Records an epoch's validation metric and returns true if it is the best so far. After `patience`
    /// epochs without a better metric, multiplies the learning rate by `factor`.
    pub fn observe(&mut self, metric: f64, direction: Direction, patience: usize, factor: f64) -> bool {
        // A NaN or infinite metric is never the best, neither now nor after a checkpoint is read back.
        let improves = metric.is_finite() && self.best.is_none_or(|best| direction.improves(metric, best));
        if improves {
            self.best = Some(metric);
            self.stale = 0;
        } else {
            self.stale += 1;
            if self.stale >= patience {
                self.learning_rate *= factor;
                self.stale = 0;
            }
        }
        improves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(direction: Direction, metrics: &[f64]) -> Vec<f64> {
        let mut plateau = Plateau::new(1.0);
        metrics
            .iter()
            .map(|&metric| {
                plateau.observe(metric, direction, 2, 0.5);
                plateau.learning_rate
            })
            .collect()
    }

    #[test]
    fn the_rate_halves_after_two_epochs_without_improvement_in_the_right_direction() {
        let rising = [0.1, 0.2, 0.3, 0.3, 0.2, 0.4];
        assert_eq!(rates(Direction::Maximise, &rising), [1.0, 1.0, 1.0, 1.0, 0.5, 0.5]);
        assert_eq!(rates(Direction::Minimise, &rising), [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]);
    }

    #[test]
    fn a_cosine_falls_from_the_whole_to_nearly_nothing_whatever_a_plateau_does() {
        let mut plateau = Plateau::new(2.0);
        let rates: Vec<f64> = (0..4)
            .map(|epoch| {
                let rate = Decay::Cosine.learning_rate(&plateau, epoch, 4);
                plateau.observe(1.0, Direction::Maximise, 1, 0.5);
                rate
            })
            .collect();
        let half = std::f64::consts::FRAC_1_SQRT_2;
        for (rate, expected) in rates.iter().zip([2.0, 1.0 + half, 1.0, 1.0 - half]) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
    }
}
