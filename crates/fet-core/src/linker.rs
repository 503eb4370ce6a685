//! The `Linker` slot: which records of another party belong to a primary record.
//!
//! There is no common identifier. A linker sees only keys, never features or labels, and runs once per run; the model
//! sees its results in the order it returns. It has two sides, which communicate only by messages: the primary *asks*,
//! and the party whose records are searched *owns* them.
//!
//! ```text
//! asker                                  owner
//!   conceal(queries)    -- queries -->
//!                       <- challenge --    challenge(queries, records)   only where `About::challenges`
//!   answer(challenge)   -- answer --->
//!                                          link(queries, records, answer)
//! ```
//!
//! To add a linker, copy `nearest.rs` of `fet-linkers`, or see `examples/custom-linker` for one in a separate crate.

mod about;
mod check;
mod error;
mod links;

use crate::data::{Keys, Sealed};
use crate::registry::{Plugin, SlotKind};

pub use about::{About, Reveals};
pub use check::{APART, check_apart, check_either, check_numbers, check_shapes, check_text};
pub use error::LinkError;
pub use links::Links;

/// Finds the K most similar records for every query. The plug-in: its description and its two sides.
///
/// Laws, checked by the contract suite for every plug-in: the sides may be built in different processes from the same
/// settings, secret and seed; the links depend only on settings, secret, seed and keys, not on other secrets that a
/// side draws; [`Linker::about`] is true.
pub trait Linker: Send + Sync {
    /// Its properties, known before it links.
    fn about(&self) -> About;

    /// Notes for the primary's user on how its keys are compared, where that is not obvious.
    fn notes(&self, _queries: &Keys) -> Vec<String> {
        Vec::new()
    }

    /// The primary's side, with its own secrets. Both sides know `seed`.
    fn asker(&self, _seed: u64) -> Box<dyn Asker> {
        Box::new(InTheClear)
    }

    /// The side of the records' owner, with its own secrets.
    fn owner(&self, seed: u64) -> Box<dyn Owner>;
}

/// The primary's side of one link. It never sees a record.
pub trait Asker: Send {
    /// What the primary sends instead of its keys: the same number of keys and columns, sealed unless
    /// [`About::in_the_clear`].
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError>;

    /// The answer to the owner's challenge. An invalid challenge is an error, never a panic.
    fn answer(&mut self, _challenge: &Sealed) -> Result<Sealed, LinkError> {
        Err(LinkError::Message("it is a challenge, and this linker poses none".into()))
    }
}

/// The side of the party whose records are searched. It never sees a key that the asker conceals.
pub trait Owner: Send {
    /// The challenge for the primary before it can link `records` with `queries`; nothing unless [`About::challenges`].
    fn challenge(&mut self, _queries: &Keys, _records: &Keys) -> Result<Option<Sealed>, LinkError> {
        Ok(None)
    }

    /// Links.
    ///
    /// Laws: indices are valid; each row is sorted by similarity, highest first, if there are similarities; K is
    /// honoured or refused; the progress adds up to the number of queries. Queries and answer come from another party:
    /// if they are invalid, that is an error, never a panic.
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError>;

    /// Warnings for its user; each is given once.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// What an [`Owner`] links.
#[derive(Clone, Copy)]
pub struct LinkTask<'a> {
    /// The primary's keys, as [`Asker::conceal`] returns them.
    pub queries: &'a Keys,
    /// The owner's keys.
    pub records: &'a Keys,
    /// The answer to the challenge, if there was one.
    pub answer: Option<&'a Sealed>,
    /// What the linker estimated when it linked the run's keys ([`Links::estimate`]); nothing while it does that.
    pub estimate: Option<f64>,
    /// Whether the keys are of new records, for predictions, and not of the run's records.
    pub new_rows: bool,
    /// Called with the number of newly answered queries, from any thread.
    pub progress: &'a (dyn Fn(usize) + Sync),
}

impl<'a> LinkTask<'a> {
    /// A task without challenge and without progress reports.
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

/// The asker of a linker that protects nothing: keys are sent unchanged.
#[derive(Debug, Clone, Copy)]
pub struct InTheClear;

impl Asker for InTheClear {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(queries.clone())
    }
}

/// Both sides in one process, start to end; `progress` as in [`LinkTask`].
pub fn link(
    linker: &dyn Linker,
    queries: &Keys,
    records: &Keys,
    seed: u64,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Links, LinkError> {
    link_between(linker.asker(seed).as_mut(), linker.owner(seed).as_mut(), queries, records, progress)
}

/// The same for sides that the caller holds, for example to read [`Owner::warnings`].
pub fn link_between(
    asker: &mut dyn Asker,
    owner: &mut dyn Owner,
    queries: &Keys,
    records: &Keys,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Links, LinkError> {
    let concealed = asker.conceal(queries)?;
    let answer =
        owner.challenge(&concealed, records)?.map(|challenge| asker.answer(&challenge)).transpose()?;
    owner.link(&LinkTask { answer: answer.as_ref(), progress, ..LinkTask::new(&concealed, records) })
}

impl SlotKind for dyn Linker {
    const SLOT: &'static str = "linker";
    const DEFAULT: Option<&'static str> = Some("nearest");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Linker>);
