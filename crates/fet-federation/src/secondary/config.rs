//! A party's private data and settings.

use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::Device;
use fet_core::data::PartyTable;
use fet_core::encoder::Computation;
use fet_core::experiment::CommonSettings;
use fet_core::policy::Policy;
use fet_core::rng::OwnSeed;
use fet_privacy::identity::{Identities, Identity};

use super::state::{FinishedModel, Store};
use crate::lifetime::SharedLifetime;

/// A party's private data and settings. The party never sends them.
pub struct PartyConfig {
    /// The party's records.
    pub table: PartyTable,
    /// Name of the records' file, for messages; the name of the party without such a file.
    pub file: String,
    /// The party's copy of the common settings; the primary's must be equal.
    pub settings: CommonSettings,
    /// Seed of the party's randomness.
    pub seed: OwnSeed,
    /// Identity that signs the party's messages.
    pub identity: Identity,
    /// Identities of all secondaries, in their order. The party must get them by another channel than the
    /// primary.
    pub roster: Identities,
    /// Limits on the disclosure to the primary, independent of the common settings.
    pub policy: Policy,
    /// Device on which the party computes, without autodiff.
    pub device: Device,
    /// Settings of the computation.
    pub computation: Computation,
    /// Maximum size in bytes of the cache of representations during an evaluation, for rows with the same
    /// neighbours.
    pub evaluation_cache: usize,
    /// Storage of the party's state.
    pub store: Store,
    /// Place of the lifetime account; `None` in a simulation.
    pub lifetime: Option<LifetimePlace>,
    /// Finished model of a party that answers only prediction requests; `None` if the party takes part in a
    /// run.
    pub model: Option<FinishedModel>,
    /// Finished model that training starts from; `None` to start from initial weights.
    pub start: Option<FinishedModel>,
    /// Receives warnings for the party's operator.
    pub tell: WarnOperator,
}

/// The place of a party's lifetime account.
#[derive(Debug, Clone)]
pub struct LifetimePlace {
    /// The party's own folder.
    pub folder: PathBuf,
    /// The account in that folder, which all sessions of the party share.
    pub account: SharedLifetime,
    /// Checksum of the party's table, which the account notes for the operator's information.
    pub table: Option<String>,
}

/// Receives a warning for the party's operator.
pub type WarnOperator = Arc<dyn Fn(String) + Send + Sync>;
