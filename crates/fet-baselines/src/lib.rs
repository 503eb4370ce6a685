//! The methods that the Federated Transformer is compared with.
//!
//! A binary that wants them says `use fet_baselines as _;`: inventory drops a crate that nothing names.

mod fedsim;
mod gbdt;
mod solo;
mod split;
mod top1sim;

pub use fedsim::{FedSimSettings, Merge};
pub use gbdt::{GbdtSoloSettings, GbdtTop1Settings, Growth};
pub use solo::SoloSettings;
pub use split::Local;
pub use top1sim::Top1SimSettings;
