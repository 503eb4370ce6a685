//! `none`: representations leave as they are. There is no privacy guarantee, and the report says so.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{PrivacyMechanism, Release, Spent};
use crate::registry::{Plugin, Recipe, Violation};

/// Settings of `none`: there are none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoneSettings {}

impl Recipe<dyn PrivacyMechanism> for NoneSettings {
    fn check(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn PrivacyMechanism>, Violation> {
        Ok(Box::new(NoProtection))
    }
}

inventory::submit! {
    Plugin::<dyn PrivacyMechanism>::new::<NoneSettings>("none", "no clipping, no noise, no guarantee")
}

struct NoProtection;

impl PrivacyMechanism for NoProtection {
    fn is_identity(&self) -> bool {
        true
    }

    fn protect(&self, representation: Tensor<3>, _release: &mut Release<'_>) -> Tensor<3> {
        representation
    }

    fn spent(&self, releases: u64) -> Spent {
        let epsilon = (releases == 0).then_some(0.0);
        let statement = "representations are sent as they are: no differential-privacy guarantee".to_string();
        Spent { epsilon, delta: 0.0, statement }
    }
}
