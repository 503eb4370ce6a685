//! `secure-average`: the mean of the active parties' representations; the primary sees only their sum
//! (SplitAvg; paper, section 6).
//!
//! The secondaries send integers with masks that cancel in the sum (crate `fet-privacy`);
//! `fet-federation` masks in `secondary/sums.rs` and sums in `trainer/sums.rs`. This file defines the settings, the form of the integers, and the mean.
//! Averaging positional encodings uses the same form.

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Gradients, Role, SecureSum, Sum};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `secure-average` (paper, section 6).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecureAverageSettings {
    /// Width of the summed integers, in bits: masks and sums are taken modulo 2^bits.
    #[schemars(range(min = 8, max = 32))]
    pub bits: u32,
    /// Largest absolute value in a representation without a mechanism that clips; a larger value ends the
    /// run.
    #[schemars(range(min = 1e-3, max = 1_000_000))]
    pub range: f64,
    /// Number of other parties that each party shares masks with, rounded up to an even number. With 1,
    /// parties hide from each other only in pairs.
    #[schemars(range(min = 2))]
    pub degree: usize,
}

impl Default for SecureAverageSettings {
    fn default() -> Self {
        Self { bits: 32, range: 64.0, degree: 8 }
    }
}

impl Recipe<dyn Aggregator> for SecureAverageSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(SecureAverage(self.form())))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<SecureAverageSettings>(
        "secure-average",
        "the mean of the active parties; the primary sees only their sum (SplitAvg)",
    )
}

impl SecureAverageSettings {
    /// Returns the parameters of the secure aggregation.
    pub fn form(&self) -> SecureSum {
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
