//! The methods that the Federated Transformer is compared with.
//!
//! A binary that wants them says `use fet_baselines as _;`: inventory drops a crate that nothing names.

mod solo;

pub use solo::SoloSettings;
