//! `none`: releases representations unchanged. The report states that the run lacks a privacy guarantee.

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::privacy::{Form, PrivacyMechanism, Release, Releases, Selection, Share, Spent, Tally};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `none`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoneSettings {}

impl Recipe<dyn PrivacyMechanism> for NoneSettings {
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

    fn clip(&self, representation: Tensor<3>, _active: usize) -> Tensor<3> {
        representation
    }

    fn add_noise(&self, values: Vec<f32>, _release: &mut Release<'_>) -> Share {
        Share::Floats(values)
    }

    fn form(&self, _active: usize, _block: usize) -> Option<Form> {
        None
    }

    fn selection(&self) -> Selection {
        Selection::ALL
    }

    fn prepare(&mut self, _schedule: &Releases) -> Result<(), Violation> {
        Ok(())
    }

    fn spent(&self, schedule: &Releases, tallies: &[Tally]) -> Spent {
        let statement = match schedule.summed {
            true => {
                "sums of representations are sent unchanged: no differential-privacy guarantee; a \
                 primary can compute a party's part from sums that differ only in that party"
            }
            false => "representations are sent unchanged: no differential-privacy guarantee",
        }
        .to_string();
        Spent { epsilon: tallies.is_empty().then_some(0.0), delta: 0.0, statement, guarantee: None }
    }
}
