//! `laplace`: clips each training label to declared bounds and adds Laplace noise on a grid, once. For
//! numbers; `randomised-response` is for classes.
//!
//! The objective scales labels by the declared bounds. The bounds of the training labels would disclose the
//! smallest and the largest label.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{randomised_once, refused};
use fet_core::data::Task;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::objective::Objective;
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::ChaCha8Rng;
use fet_privacy::labels::{EPSILON_RANGE, GridLaplace};

/// Settings of `laplace` (on a grid: Ghosh, Roughgarden, Sundararajan 2009).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaplaceSettings {
    /// ε, the privacy loss of one training label over the whole run.
    #[schemars(range(min = EPSILON_RANGE.0, max = EPSILON_RANGE.1))]
    pub epsilon: f64,
    /// Smallest label, in its own unit, from knowledge other than the training labels; a smaller label is
    /// clipped to it.
    #[schemars(extend("x-rule" = "below `high`"))]
    pub low: f64,
    /// Largest label, in its own unit, from knowledge other than the training labels; a larger label is
    /// clipped to it.
    #[schemars(extend("x-rule" = "above `low`"))]
    pub high: f64,
}

impl Default for LaplaceSettings {
    fn default() -> Self {
        Self { epsilon: 1.0, low: 0.0, high: 1.0 }
    }
}

impl Recipe<dyn LabelProtection> for LaplaceSettings {
    fn check(&self) -> Result<(), Violation> {
        GridLaplace::new(self.epsilon, self.low, self.high).map(|_| ()).map_err(refused)
    }

    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        let noise = GridLaplace::new(self.epsilon, self.low, self.high).map_err(refused)?;
        Ok(Box::new(Laplace { settings: self.clone(), noise }))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<LaplaceSettings>(
        "laplace",
        "for numbers: training labels get Laplace noise once, within declared bounds",
    )
}

struct Laplace {
    settings: LaplaceSettings,
    noise: GridLaplace,
}

impl LabelProtection for Laplace {
    fn is_identity(&self) -> bool {
        false
    }

    fn prepare(&mut self, exposure: &Exposure) -> Result<(), Violation> {
        if exposure.task == Task::Regression {
            return Ok(());
        }
        let rule =
            "must be \"randomised-response\" or \"noisy-gradients\" for classes: Laplace noise needs numbers";
        Err(Violation::new("kind", rule, "\"laplace\""))
    }

    fn labels(&self, labels: &mut [f64], objective: &mut Objective, rng: &mut ChaCha8Rng) {
        labels.iter_mut().for_each(|label| *label = self.noise.answer(*label, rng));
        (objective.minimum, objective.range) = (self.settings.low, self.settings.high - self.settings.low);
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        LabelPrivacy {
            epsilon: Some(self.settings.epsilon),
            delta: 0.0,
            mechanism: "laplace".into(),
            statement: randomised_once(
                exposure,
                "discrete Laplace noise within bounds that do not depend on the training labels",
            ),
        }
    }
}
