//! Training over parties: model, plug-ins that compute on tensors, the parties themselves, and the trainer.
//!
//! The contracts of the slots are in `fet-core`. This crate holds the paper's method (`methods/`), encoders,
//! aggregators, privacy mechanisms, and the layers they consist of (`model/`). It also holds a secondary
//! party ([`secondary`]), the group of secondaries as the primary sees it ([`federation`]) and the primary's
//! loop ([`trainer`]). Tensor backends are in `fet-backends`, data files in `fet-data`.
//!
//! A binary that uses these plug-ins must reference the crate: inventory drops a crate without references.

pub mod aggregators;
pub mod checkpoint;
pub mod data;
pub mod encoders;
pub mod federation;
mod gather;
pub mod labels;
mod lanes;
pub mod lifetime;
pub mod mechanisms;
pub mod methods;
pub mod model;
pub mod prepare;
pub mod privacy;
pub mod report;
pub mod schedule;
pub mod secondary;
pub mod secret_sum;
pub mod simulation;
pub mod state_file;
pub mod table_digest;
pub mod trainer;
