//! `noisy-gradients`: clips the gradient of each row and adds Gaussian noise each time before it is sent.
//!
//! A changed label moves the clipped gradient of its own row by at most 2C in each release. However, the
//! primary's model learns from true labels, and through its weights a label may change the gradients of all
//! rows in all later steps. `counted` treats all of these gradients as moved by 2C. `assumed` counts only the
//! row's own gradients, as much of the literature does. The noise consists of 32-bit floats, an idealisation.

use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::not_covered;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::ChaCha8Rng;
use fet_privacy::accountant::{Event, gaussian};

/// Settings of `noisy-gradients`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoisyGradientsSettings {
    /// C, the maximum L2 norm of a row's clipped gradient: the gradient of the row's own loss with respect to
    /// the memory.
    #[schemars(range(min = 1e-6, max = 1_000_000))]
    pub clip: f64,
    /// σ, the noise multiplier: each value gets Gaussian noise with the standard deviation σ·C. Computed from
    /// `target_epsilon` unless that is 0.
    #[schemars(range(min = 1e-6, max = 1_000_000))]
    pub noise: f64,
    /// Target ε of the whole run, which determines σ; with 0, `noise` is σ.
    #[schemars(range(min = 0, max = 20), extend("x-rule" = "at least 0.001 unless it is 0"))]
    pub target_epsilon: f64,
    /// δ, the probability that the bound ε fails: well below one divided by the number of training rows.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub delta: f64,
    /// Treatment of the primary's model, which learns from the protected labels, in ε.
    pub learning: Account,
}

/// Treatment of the primary's model, which learns from the protected labels, in ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// ε counts that a label may, through the model, change every gradient that is sent.
    Counted,
    /// ε counts only the row's own gradients. It is not a guarantee against an attacker who uses the
    /// gradients of other rows.
    Assumed,
}

impl Default for NoisyGradientsSettings {
    fn default() -> Self {
        Self { clip: 0.1, noise: 4.0, target_epsilon: 0.0, delta: 1e-5, learning: Account::Counted }
    }
}

impl Recipe<dyn LabelProtection> for NoisyGradientsSettings {
    fn check(&self) -> Result<(), Violation> {
        let target = self.target_epsilon;
        if target == 0.0 || target >= 1e-3 {
            return Ok(());
        }
        Err(Violation::new("target_epsilon", "must be at least 0.001 unless it is 0", target))
    }

    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        Ok(Box::new(NoisyGradients(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<NoisyGradientsSettings>(
        "noisy-gradients",
        "the gradient of each row is clipped and gets noise before it is sent",
    )
}

/// Settings; after calibration, with the calibrated noise.
struct NoisyGradients(NoisyGradientsSettings);

impl NoisyGradients {
    /// Returns the number of gradients that a label can move.
    fn moved(&self, exposure: &Exposure) -> u64 {
        match self.0.learning {
            Account::Counted => exposure.rows,
            Account::Assumed => exposure.times,
        }
    }

    /// Returns μ of all gradients that a label can move, each by 2C.
    fn mu(&self, exposure: &Exposure) -> f64 {
        let event = Event { noise: self.0.noise / 2.0, rate: 1.0, steps: self.moved(exposure) };
        gaussian::compose(&[event])
    }
}

impl LabelProtection for NoisyGradients {
    fn is_identity(&self) -> bool {
        false
    }

    fn changes_gradients(&self) -> bool {
        true
    }

    fn prepare(&mut self, exposure: &Exposure) -> Result<(), Violation> {
        let NoisyGradientsSettings { target_epsilon, delta, .. } = self.0;
        if target_epsilon > 0.0 && exposure.rows > 0 {
            let one = gaussian::noise(target_epsilon, delta).map_err(|error| {
                Violation::new("target_epsilon", format!("cannot be met ({error})"), target_epsilon)
            })?;
            // The noise is a millionth larger than needed, so that ε computed from it cannot exceed the
            // target by rounding.
            self.0.noise = 2.0 * one * (self.moved(exposure) as f64).sqrt() * (1.0 + 1e-6);
        }
        Ok(())
    }

    fn gradients(&self, gradients: &mut [f32], width: usize, rng: &mut ChaCha8Rng) {
        let NoisyGradientsSettings { clip, noise, .. } = self.0;
        for row in gradients.chunks_mut(width) {
            let norm = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            // A gradient with NaN or infinity is sent as zeros with noise.
            let factor = if !norm.is_finite() { 0.0 } else { (clip / norm).min(1.0) };
            for value in row {
                let clipped = if factor == 0.0 { 0.0 } else { f64::from(*value) * factor };
                let unit: f64 = StandardNormal.sample(rng);
                *value = (clipped + noise * clip * unit) as f32;
            }
        }
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        let NoisyGradientsSettings { clip, noise, delta, learning, .. } = self.0;
        let epsilon = gaussian::epsilon(self.mu(exposure), delta);
        let counted = match learning {
            Account::Counted => {
                "a label may change the gradient of every row through the primary's model, and all \
                 these gradients are counted"
            }
            Account::Assumed => {
                "NOT COUNTED: the primary's model learns from true labels, and through its weights a label changes the \
                 gradients of other rows"
            }
        };
        let statement = format!(
            "{} gradients of at most {clip}, each value with noise of {:.4}; neighbouring data sets \
             differ in one training label; {counted}; noise in floats approximates real numbers; the \
             primary's own seed is secret; the choice of the best epoch also depends on training \
             labels, through the model, and is not counted; {}",
            self.moved(exposure),
            noise * clip,
            not_covered(exposure)
        );
        let epsilon = epsilon.is_finite().then_some(epsilon);
        LabelPrivacy { epsilon, delta, mechanism: "noisy-gradients".into(), statement }
    }
}
