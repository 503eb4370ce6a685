//! A secondary's features from what the primary receives.

mod reconstruction;

pub use reconstruction::{Model, ReconstructionSettings};
