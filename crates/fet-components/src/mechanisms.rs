//! Privacy mechanisms. To add one, copy `none.rs` and add one `mod` line.

mod clip;
mod ledger;
mod noise;
mod none;
mod settings;

pub use clip::clip_blocks;
pub use noise::{DiscreteGaussianSettings, GaussianSettings};
pub use none::NoneSettings;
pub use settings::NoiseSettings;
