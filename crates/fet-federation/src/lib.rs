//! Training over parties: the primary's trainer, secondary parties, and the messages between them.
//!
//! [`secondary`] is one secondary party, [`federation`] is the group of parties as the primary sees it,
//! [`trainer`] is the primary's training loop, and [`simulation`] runs all parties in one process.
//!
//! The crate depends on no plug-in. It finds components in the registry of `fet-core`, so that it runs any
//! linker, method, aggregator or mechanism that the program links in.

pub mod checkpoint;
pub mod data;
pub mod federation;
mod label_answers;
pub mod lifetime;
pub mod outlook;
pub mod prepare;
pub mod privacy;
pub mod release;
pub mod release_maker;
pub mod releasing;
pub mod report;
mod rows;
pub mod schedule;
pub mod secondary;
pub mod secure_aggregation;
pub mod simulation;
pub mod state_file;
pub mod table_digest;
pub mod trainer;

/// Links the plug-ins that the unit tests build by name.
#[cfg(test)]
use {fet_components as _, fet_linkers as _};
