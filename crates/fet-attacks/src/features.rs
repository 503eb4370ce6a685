//! Attacks on features: the primary attacks a secondary by the messages it receives, or a secondary attacks
//! another party.

mod gradients;
mod reconstruction;

pub use gradients::GradientReconstructionSettings;
pub use reconstruction::{Model, ReconstructionSettings};
