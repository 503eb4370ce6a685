//! Training over parties: model, plug-ins that compute on tensors, the parties themselves, and the trainer.
//!
//! The contracts of the slots are in `fet-core`. Here are the paper's method (`methods/`), encoders, aggregators and
//! privacy mechanisms, the layers they are made of (`model/`), a secondary party ([`secondary`]), the group of them as
//! the primary meets it ([`federation`]) and the primary's loop ([`trainer`]). No tensor backend is named here and no
//! data file is read; the crates `fet-backends` and `fet-data` do.
//!
//! A binary that wants these plug-ins names the crate: inventory drops a crate that nothing names.

pub mod aggregators;
pub mod checkpoint;
pub mod encoders;
pub mod federation;
mod gather;
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
pub mod trainer;
