//! A party as the primary sees it: a request in, a reply or a refusal out.
//!
//! A party may be in this process, behind the codec, or on another machine; this trait hides which. The crate
//! `fet-federation` implements parties.

use serde::{Deserialize, Serialize};

use crate::message::{CodecError, Reply, Request};

/// A secondary party. The primary holds only a `Box<dyn Party>`.
pub trait Party: Send {
    /// Its name at the primary.
    fn name(&self) -> &str;

    /// Answers a request.
    fn ask(&mut self, request: Request) -> Result<Reply, Failure>;
}

impl<P: Party + ?Sized> Party for Box<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        (**self).ask(request)
    }
}

/// Why a party refuses a request: a sentence for the primary's operator, which reveals nothing about the party's
/// records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The rule, the value, and what to do.
    pub reason: String,
    /// Whether the party's account allows no more releases: the run can end here with what it has.
    pub spent: bool,
}

impl Refusal {
    /// A refusal for `reason`.
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self { reason: reason.to_string(), spent: false }
    }

    /// The refusal of a party whose account allows no more releases.
    pub fn spent(reason: impl std::fmt::Display) -> Self {
        Self { spent: true, ..Self::new(reason) }
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The party refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The party no longer answers.
    #[error("it no longer answers")]
    Gone,
    /// The party's program was started again and knows nothing of the run: the run must go back to its last checkpoint.
    #[error("its program was started again")]
    Restarted,
    /// The party cannot be reached, or its transport fails: a sentence that says how.
    #[error("{0}")]
    Unreached(String),
    /// The reply cannot be decoded.
    #[error(transparent)]
    Unreadable(#[from] CodecError),
}

/// A party behind the codec: every message is serialised both ways, as between machines.
#[derive(Debug)]
pub struct AsBytes<P>(pub P);

impl<P: Party> Party for AsBytes<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let sent = crate::message::encode(&request)?;
        drop(request);
        let answer = match self.0.ask(crate::message::decode(&sent, crate::message::LARGEST_FRAME)?) {
            Ok(reply) => Ok(reply),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(failure) => return Err(failure),
        };
        let sent = crate::message::encode(&answer)?;
        drop(answer);
        let answer: crate::message::Answer = crate::message::decode(&sent, crate::message::LARGEST_FRAME)?;
        Ok(answer?)
    }
}
