//! `secure-average`: the mean of the active parties' representations, of which the primary sees only the sum
//! (SplitAvg; paper, section 6).
//!
//! The secondaries send integers with masks that cancel in the sum (crate `fet-privacy`); `secondary.rs` masks and
//! `trainer.rs` sums. Here are the settings, the form of the integers, and the mean. Averaging positional encodings
//! uses the same form.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Gradients, Role, SecureSum, Sum};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `secure-average`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecureAverageSettings {
    /// Sums are taken modulo 2^bits.
    pub bits: u32,
    /// The largest absolute value of a representation that no mechanism bounds; a larger one ends the run.
    pub range: f64,
    /// The number of other parties that a party shares masks with; rounded up to an even number.
    pub degree: usize,
}

impl Default for SecureAverageSettings {
    fn default() -> Self {
        Self { bits: 32, range: 64.0, degree: 8 }
    }
}

impl Recipe<dyn Aggregator> for SecureAverageSettings {
    fn check(&self) -> Result<(), Violation> {
        if !(8..=32).contains(&self.bits) {
            return Err(Violation::new("bits", "must be 8 to 32", self.bits));
        }
        if !(1e-3..=1e6).contains(&self.range) {
            return Err(Violation::new("range", "must be from 1e-3 to 1e6", self.range));
        }
        if self.degree < 2 {
            let rule =
                "must be at least 2: with one neighbour each, parties only hide from each other in pairs";
            return Err(Violation::new("degree", rule, self.degree));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(SecureAverage(self.sum())))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<SecureAverageSettings>(
        "secure-average",
        "the mean of the active parties, of which the primary sees the sum alone (SplitAvg)",
    )
}

impl SecureAverageSettings {
    fn sum(&self) -> SecureSum {
        SecureSum { bits: self.bits, range: self.range, degree: self.degree }
    }
}

struct SecureAverage(SecureSum);

impl Aggregator for SecureAverage {
    fn role(&self) -> Role<'_> {
        Role::Sum(self)
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        Gradients::Same(gradient.div_scalar(round.active.len() as f64))
    }
}

impl Sum for SecureAverage {
    fn form(&self) -> SecureSum {
        self.0
    }

    fn mean(&self, sum: Tensor<3>, round: &Aggregation) -> Tensor<3> {
        sum.div_scalar(round.active.len() as f64)
    }
}
