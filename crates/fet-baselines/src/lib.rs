//! The baseline methods for the Federated Transformer.
//!
//! A binary references them by `use fet_baselines as _;`, because inventory drops a crate without references.

mod boosting;
mod fedsim;
mod fet_alone;
mod fet_trees;
mod gbdt;
mod linear;
mod mixed;
mod solo;
mod split;
mod top1sim;

pub use boosting::Growth;
pub use fedsim::{FedSimSettings, Merge};
pub use fet_alone::FetAloneSettings;
pub use fet_trees::FetTreesSettings;
pub use gbdt::{GbdtPooledSettings, GbdtSoloSettings, GbdtTop1Settings, Pool};
pub use linear::{LinearSoloSettings, LinearTop1Settings, Penalties};
pub use mixed::{Share, WithLinearSettings, WithTreesSettings};
pub use solo::SoloSettings;
pub use split::Local;
pub use top1sim::Top1SimSettings;
