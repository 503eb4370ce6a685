//! Encoders of the secondaries. To add one, copy `mlp.rs` and add one `mod` line.

mod mlp;
mod transformer;

pub use mlp::MlpSettings;
pub use transformer::TransformerSettings;
