//! Attacks on runs: what a party learns of what the others keep to themselves, or does to the model.
//!
//! Each attack is a plug-in of the slot `attack`. It trains runs of an experiment in a [`Stage`], where it plays one party,
//! and says how far it came beyond what it knew before. A low figure does not show that nothing leaks: it shows what this
//! attack found.
//!
//! A binary references the plug-ins by `use fet_attacks as _;`: inventory drops a crate that nothing references.

mod features;
mod integrity;
mod labels;
mod records;
mod stage;
mod tools;

pub use features::{GradientReconstructionSettings, Model, ReconstructionSettings};
pub use integrity::{BackdoorSettings, Fault, FaultyPartySettings};
pub use labels::{
    ClusteringSettings, CompletionSettings, CosineSettings, NeighbourSettings, NormSettings, SignSettings,
};
pub use records::{LinkageSettings, MembershipSettings};
pub use stage::{Stage, attack, check};
