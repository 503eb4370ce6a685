//! A party as the primary sees it: it receives a request and returns a reply or a refusal.
//!
//! A party may be in this process, behind the codec, or on another machine; this trait hides the difference.
//! The crate `fet-federation` implements parties.

use crate::message::{CodecError, Reply, Request};

pub use crate::message::Refusal;

/// A secondary party. The primary holds only a `Box<dyn Party>`.
pub trait Party: Send {
    /// Returns the primary's name for the party.
    fn name(&self) -> &str;

    /// Sends a request to the party and returns its reply.
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

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The party refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The party no longer answers.
    #[error("it no longer answers")]
    Gone,
    /// The party's program was restarted and has lost the state of the run: the run must return to its last
    /// checkpoint.
    #[error("its program was started again")]
    Restarted,
    /// The primary cannot reach the party, or the transport fails: a sentence that says how.
    #[error("{0}")]
    Unreached(String),
    /// The primary cannot decode the reply.
    #[error(transparent)]
    Unreadable(#[from] CodecError),
}

/// A party behind the codec: every message is serialised in both directions, as between machines.
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
