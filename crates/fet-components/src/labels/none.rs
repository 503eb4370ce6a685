//! `none`: labels and gradients stay unchanged. The report states that labels are not protected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `none`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenSettings {}

impl Recipe<dyn LabelProtection> for OpenSettings {
    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        Ok(Box::new(Open))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<OpenSettings>("none", "labels are not protected")
}

struct Open;

impl LabelProtection for Open {
    fn is_identity(&self) -> bool {
        true
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        let statement = if exposure.rows == 0 {
            "secondaries do not learn and receive no gradient: labels are not exposed through \
             gradients; the choice of the best epoch depends on validation labels, and all parties \
             learn it"
        } else {
            "labels are not protected: a secondary can read them from the gradients that it receives"
        };
        LabelPrivacy { epsilon: None, delta: 0.0, mechanism: "none".into(), statement: statement.into() }
    }
}
