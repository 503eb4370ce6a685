//! `max-norm`: adds noise along each row's gradient, so that the expected norm of every row is the largest
//! norm of the batch.
//!
//! This is the heuristic of Li et al. 2022, "Label Leakage and Protection in Two-party Split Learning",
//! section 4.1; their other method, Marvell, needs two classes. It hides the norm, not the direction. Its
//! privacy loss is unbounded; only an attack measures its protection.

use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::not_covered;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::ChaCha8Rng;

/// Settings of `max-norm`, which has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MaxNormSettings {}

impl Recipe<dyn LabelProtection> for MaxNormSettings {
    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        Ok(Box::new(MaxNorm))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<MaxNormSettings>(
        "max-norm",
        "each row's gradient gets noise along itself, up to the largest norm of the batch; no guarantee",
    )
}

struct MaxNorm;

impl LabelProtection for MaxNorm {
    fn is_identity(&self) -> bool {
        false
    }

    fn changes_gradients(&self) -> bool {
        true
    }

    fn gradients(&self, gradients: &mut [f32], width: usize, rng: &mut ChaCha8Rng) {
        let square = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        let longest =
            gradients.chunks(width).map(square).filter(|square| square.is_finite()).fold(0.0, f64::max);
        for row in gradients.chunks_mut(width) {
            let square = square(row);
            // E|g(1 + σz)|² = |g|²(1 + σ²).
            let deviation = if square > 0.0 { (longest / square - 1.0).max(0.0).sqrt() } else { 0.0 };
            let unit: f64 = StandardNormal.sample(rng);
            let factor = 1.0 + deviation * unit;
            row.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
        }
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        let statement = format!(
            "each gradient has noise along itself that hides its length; its direction is unchanged; \
             this gives no bound; {}",
            not_covered(exposure)
        );
        LabelPrivacy { epsilon: None, delta: 0.0, mechanism: "max-norm".into(), statement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::rng::{Purpose, stream};

    /// The mean of n squares (1 + σz)² has the standard deviation √((2σ⁴ + 4σ²)/n); five deviations give α <
    /// 1e-6.
    #[test]
    fn rows_are_as_long_as_the_longest_in_expectation() {
        let (width, rows) = (3, 40_000);
        let mut values = vec![1.0f32; width * rows];
        values[..width].fill(2.0);
        MaxNorm.gradients(&mut values, width, &mut stream(0, 0, Purpose::Labels, 0));
        assert_eq!(values[..width], [2.0; 3], "the longest stays");
        let squares =
            values[width..].chunks(width).map(|row| row.iter().map(|x| f64::from(x * x)).sum::<f64>());
        let mean = squares.sum::<f64>() / (rows - 1) as f64 / 3.0;
        let deviation = ((2.0 * 9.0 + 4.0 * 3.0) / rows as f64).sqrt();
        assert!((mean - 4.0).abs() < 5.0 * deviation, "{mean}");
        assert!(values.chunks(width).all(|row| row[0] == row[1] && row[1] == row[2]), "the direction stays");
    }
}
