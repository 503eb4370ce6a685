//! The `Linker` slot: finds the records of another party that belong to a primary record.
//!
//! The parties share no common identifier. A linker sees only keys, never features or labels, and links once
//! per run; the model sees the neighbours in the order that the linker returns. A linker has two sides, which
//! communicate only by messages: the querier ([`Querier`]) at the primary, and the data holder ([`DataHolder`]),
//! whose records are searched.
//!
//! ```text
//! querier (Querier)                        data holder (DataHolder)
//!   encode(queries)    -- queries -->
//!                       <- challenge --    challenge(queries, records)   only if `About::challenges`
//!   answer(challenge)   -- answer --->
//!                                          link(queries, records, answer)
//! ```
//!
//! To add a linker, copy `nearest.rs` of `fet-linkers`, or see `examples/custom-linker` for a linker in a
//! separate crate.

mod about;
mod cache;
mod check;
mod error;
mod links;

use crate::data::{Keys, Sealed};
use crate::registry::{Plugin, SlotKind};

pub use about::{About, Reveals};
pub use cache::{CACHE_VARIABLE, Cached};
pub use check::{APART, check_apart, check_either, check_numbers, check_shapes, check_text};
pub use error::LinkError;
pub use links::Links;

/// A plug-in that finds the K most similar records for every query: its properties and its two sides.
///
/// Laws, checked by the contract suite for every plug-in:
///
/// - The sides may be built in different processes from the same settings, secret and seed.
/// - The links depend only on settings, secret, seed and keys, not on other secrets that a side draws.
/// - [`Linker::about`] is true.
pub trait Linker: Send + Sync {
    /// Returns the linker's properties, which are known before it links.
    fn about(&self) -> About;

    /// Notes for the primary's user on how its keys are compared, where that is not obvious.
    fn notes(&self, _queries: &Keys) -> Vec<String> {
        Vec::new()
    }

    /// The primary's side, with its own secrets. Both sides know `seed`.
    fn querier(&self, _seed: u64) -> Box<dyn Querier> {
        Box::new(InTheClear)
    }

    /// Creates the data holder's side, with its own secrets.
    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder>;
}

/// The querier: the primary's side of one link. It never sees a record.
pub trait Querier: Send {
    /// Encodes or blinds the primary's keys for sending. The result has the same number of keys and columns,
    /// and is sealed unless [`About::in_the_clear`].
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError>;

    /// Returns what the encoding learned from the keys that were encoded last, for [`Querier::encode_like`].
    /// `None` if the encoding of a key depends on no other key.
    fn learned(&self) -> Option<Vec<u8>> {
        None
    }

    /// Encodes keys with the [`Querier::learned`] of the run's keys, so that a key has the same encoding as in
    /// the run.
    fn encode_like(&mut self, queries: &Keys, _learned: &[u8]) -> Result<Keys, LinkError> {
        self.encode(queries)
    }

    /// Answers the data holder's challenge. An invalid challenge is an error, never a panic.
    fn answer(&mut self, _challenge: &Sealed) -> Result<Sealed, LinkError> {
        Err(LinkError::Message("it is a challenge, and this linker uses none".into()))
    }
}

/// The data holder: the side of the party whose records are searched. It sees the primary's keys only as the
/// querier encodes them.
pub trait DataHolder: Send {
    /// Returns the challenge that the primary must answer before `records` can be linked with `queries`;
    /// `None` unless [`About::challenges`].
    fn challenge(&mut self, _queries: &Keys, _records: &Keys) -> Result<Option<Sealed>, LinkError> {
        Ok(None)
    }

    /// Links the queries with the records.
    ///
    /// Laws:
    ///
    /// - Indices are valid.
    /// - Each row is sorted by similarity, highest first, if there are similarities.
    /// - K is honoured or refused.
    /// - The progress adds up to the number of queries.
    /// - Queries and answer come from another party: invalid ones are an error, never a panic.
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError>;

    /// Returns warnings for the data holder's user; each warning is returned once.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Input of [`DataHolder::link`].
#[derive(Clone, Copy)]
pub struct LinkTask<'a> {
    /// The primary's keys, as [`Querier::encode`] returns them.
    pub queries: &'a Keys,
    /// The data holder's keys.
    pub records: &'a Keys,
    /// The answer to the challenge, if there was one.
    pub answer: Option<&'a Sealed>,
    /// The linker's estimate from linking the run's keys ([`Links::estimate`]); `None` while it links these
    /// keys.
    pub estimate: Option<f64>,
    /// True if the keys belong to new records, for predictions, and not to the run's records.
    pub new_rows: bool,
    /// Progress callback: receives the number of newly answered queries, from any thread.
    pub progress: &'a (dyn Fn(usize) + Sync),
}

impl<'a> LinkTask<'a> {
    /// Creates a task without challenge and without progress reports.
    pub fn new(queries: &'a Keys, records: &'a Keys) -> Self {
        Self { queries, records, answer: None, estimate: None, new_rows: false, progress: &|_| () }
    }
}

/// Shows shapes, never keys.
impl std::fmt::Debug for LinkTask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LinkTask({:?}, {:?}, {:?})", self.queries, self.records, self.answer)
    }
}

/// The querier of a linker that sends keys unchanged.
#[derive(Debug, Clone, Copy)]
pub struct InTheClear;

impl Querier for InTheClear {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(queries.clone())
    }
}

/// Links with both sides in one process, from start to end; `progress` as in [`LinkTask`].
pub fn link(
    linker: &dyn Linker,
    queries: &Keys,
    records: &Keys,
    seed: u64,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Links, LinkError> {
    link_between(linker.querier(seed).as_mut(), linker.data_holder(seed).as_mut(), queries, records, progress)
}

/// Links with sides that the caller holds, for example to read [`DataHolder::warnings`].
pub fn link_between(
    querier: &mut dyn Querier,
    data_holder: &mut dyn DataHolder,
    queries: &Keys,
    records: &Keys,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Links, LinkError> {
    let encoded = querier.encode(queries)?;
    let answer =
        data_holder.challenge(&encoded, records)?.map(|challenge| querier.answer(&challenge)).transpose()?;
    data_holder.link(&LinkTask { answer: answer.as_ref(), progress, ..LinkTask::new(&encoded, records) })
}

impl SlotKind for dyn Linker {
    const SLOT: &'static str = "linker";
    const DEFAULT: Option<&'static str> = Some("nearest");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Linker>);
