//! Protections of training labels. To add one, copy `none.rs` and add one `mod` line.

mod compressed_gradients;
mod laplace;
mod max_norm;
mod noisy_gradients;
mod none;
mod randomised_response;

pub use compressed_gradients::CompressedGradientsSettings;
pub use laplace::LaplaceSettings;
pub use max_norm::MaxNormSettings;
pub use noisy_gradients::{Account, NoisyGradientsSettings};
pub use none::OpenSettings;
pub use randomised_response::RandomisedResponseSettings;

use fet_core::labels::Exposure;
use fet_core::registry::Violation;
use fet_privacy::labels::LabelError;

/// Returns the text on leaks that no protection of training labels covers.
fn not_covered(exposure: &Exposure) -> String {
    let steps = if exposure.steps_follow_metric { " and the step sizes" } else { "" };
    format!(
        "NOT COVERED: validation labels, which decide the best epoch{steps} that all parties learn; \
         other runs on the same labels"
    )
}

/// Returns the text on the guarantee of a randomised label.
fn randomised_once(exposure: &Exposure, mechanism: &str) -> String {
    if !exposure.parties_train {
        return format!(
            "each secondary received one label of each training row, randomised once by {mechanism}; neighbouring data sets \
             differ in one training label; the primary's own seed is secret, and a run with the same seed, labels and \
             protection repeats a row's randomised label; NOT COVERED: the primary's model, scores and warnings, which follow \
             from the true labels; which rows are training rows; the number of classes; several rows of one person; other runs \
             on the same labels"
        );
    }
    format!(
        "each training label was randomised once, before training, by {mechanism}: everything sent is \
         computed from the randomised labels, for any number of epochs; neighbouring data sets differ \
         in one training label; the primary's own seed is secret, and a run with the same seed repeats \
         a row's randomised label; {}",
        not_covered(exposure)
    )
}

fn refused(error: LabelError) -> Violation {
    match error {
        LabelError::Value { field, rule, value } => Violation::new(field, rule, value),
        other => Violation::new("kind", other.to_string(), "this"),
    }
}
