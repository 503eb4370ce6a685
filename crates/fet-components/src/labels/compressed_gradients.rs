//! `compressed-gradients`: sends only the largest values of each row's gradient, and zeros instead of the
//! others (Fu et al. 2022, section 6.2, "gradient compression"; Lin et al. 2018). Its privacy loss is
//! unbounded; only an attack measures its protection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::not_covered;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::ChaCha8Rng;

/// Settings of `compressed-gradients` (Fu et al. 2022, section 6.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompressedGradientsSettings {
    /// Share of the values of a row's gradient that are sent, the largest first; at least one value is sent.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub share: f64,
}

impl Default for CompressedGradientsSettings {
    fn default() -> Self {
        Self { share: 0.1 }
    }
}

impl Recipe<dyn LabelProtection> for CompressedGradientsSettings {
    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        Ok(Box::new(CompressedGradients(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<CompressedGradientsSettings>(
        "compressed-gradients",
        "only the largest values of each row's gradient are sent; no guarantee",
    )
}

struct CompressedGradients(CompressedGradientsSettings);

impl LabelProtection for CompressedGradients {
    fn is_identity(&self) -> bool {
        false
    }

    fn changes_gradients(&self) -> bool {
        true
    }

    fn keeps_every_value(&self) -> bool {
        self.0.share == 1.0
    }

    fn gradients(&self, gradients: &mut [f32], width: usize, _: &mut ChaCha8Rng) {
        let kept = ((width as f64 * self.0.share).round() as usize).clamp(1, width);
        if kept == width {
            return;
        }
        let mut order: Vec<usize> = Vec::with_capacity(width);
        for row in gradients.chunks_mut(width) {
            order.clear();
            order.extend(0..row.len());
            // The first of equal values are sent, so that the result does not depend on the order after
            // selection.
            order
                .select_nth_unstable_by(kept, |&a, &b| row[b].abs().total_cmp(&row[a].abs()).then(a.cmp(&b)));
            order[kept..].iter().for_each(|&at| row[at] = 0.0);
        }
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        let statement = format!(
            "a share of {} of each gradient's values is sent, the largest ones; this gives no bound; {}",
            self.0.share,
            not_covered(exposure)
        );
        LabelPrivacy { epsilon: None, delta: 0.0, mechanism: "compressed-gradients".into(), statement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::rng::{Purpose, stream};

    #[test]
    fn the_largest_values_stay() {
        let protection = CompressedGradients(CompressedGradientsSettings { share: 0.5 });
        let mut rows = vec![1.0, -3.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0];
        protection.gradients(&mut rows, 4, &mut stream(0, 0, Purpose::Labels, 0));
        assert_eq!(rows, [0.0, -3.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }
}
