//! Aggregators of the parties' representations. To add one, copy `average.rs` and add one `mod` line.

mod average;
mod concat;
mod secure_average;
mod similarity_weighted;
mod sum;

pub use average::AverageSettings;
pub use concat::ConcatSettings;
pub use secure_average::SecureAverageSettings;
pub use similarity_weighted::SimilarityWeightedSettings;
pub use sum::SumSettings;
