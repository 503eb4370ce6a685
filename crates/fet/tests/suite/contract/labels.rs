//! Tests the laws of label protections: they repeat, keep their declared bounds, and account for all
//! exposure.

use fet_contract::{all, labels};
use fet_core::labels::LabelProtection;

#[test]
fn protected_labels_repeat_with_their_generator_and_fit() {
    all::<dyn LabelProtection>()
        .iter()
        .for_each(labels::protected_labels_repeat_with_their_generator_and_fit);
}

#[test]
fn more_exposure_never_lowers_epsilon() {
    all::<dyn LabelProtection>().iter().for_each(labels::more_exposure_never_lowers_epsilon);
}
