//! Attacks on runs: a party learns private data of other parties, or manipulates the model.
//!
//! Each attack is a plug-in of the slot `attack`. It trains runs of an experiment in an [`Environment`], where it
//! plays one party. It reports its success compared with a baseline of prior knowledge. A low figure does not
//! show the absence of leakage; it shows only the success of this attack.
//!
//! A binary references the plug-ins by `use fet_attacks as _;`, because inventory drops a crate without
//! references.

pub mod audit;
mod environment;
mod features;
mod integrity;
mod labels;
mod records;
mod tools;

pub use environment::{Environment, attack, check, check_training};
pub use features::{GradientReconstructionSettings, Model, ReconstructionSettings};
pub use integrity::{BackdoorSettings, Fault, FaultyPartySettings};
pub use labels::{
    ClusteringSettings, CompletionSettings, CosineSettings, NeighbourSettings, NormSettings, SignSettings,
};
pub use records::{LinkageSettings, MembershipSettings};
