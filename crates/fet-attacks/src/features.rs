//! A party's features: a secondary's from what the primary receives, another party's from what a secondary receives.

mod gradients;
mod reconstruction;

pub use gradients::GradientReconstructionSettings;
pub use reconstruction::{Model, ReconstructionSettings};
