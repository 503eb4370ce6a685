//! The step size over epochs: halved on a plateau of the validation metric.
//!
//! The metric is what users read, and it has a direction: accuracy is maximised.

use serde::{Deserialize, Serialize};

use crate::objective::Direction;

/// Reduces the step size when the validation metric stops improving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    learning_rate: f64,
    best: Option<f64>,
    stale: usize,
}

impl Plateau {
    /// A schedule that begins at `learning_rate`.
    pub fn new(learning_rate: f64) -> Self {
        Self { learning_rate, best: None, stale: 0 }
    }

    /// The step size of the next epoch.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Takes note of an epoch's validation metric and says whether it is the best so far. After `patience`
    /// epochs without a better one the step size is multiplied by `factor`.
    pub fn observe(&mut self, metric: f64, direction: Direction, patience: usize, factor: f64) -> bool {
        let improves = self.best.is_none_or(|best| direction.improves(metric, best));
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
                plateau.learning_rate()
            })
            .collect()
    }

    #[test]
    fn the_rate_halves_after_two_epochs_without_improvement_in_the_right_direction() {
        let rising = [0.1, 0.2, 0.3, 0.3, 0.2, 0.4];
        assert_eq!(rates(Direction::Maximise, &rising), [1.0, 1.0, 1.0, 1.0, 0.5, 0.5]);
        assert_eq!(rates(Direction::Minimise, &rising), [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]);
    }
}
