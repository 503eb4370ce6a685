//! Reasons for a participant's refusals. No error contains a value or a secret.

use super::key_share::KeyShareError;

/// Reason why a participant does not answer. Parties are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SumError {
    /// The session has already agreed on keys, which it does once.
    #[error("the parties already agreed on keys: a session agrees on keys only once")]
    AgreedAlready,
    /// A sum was requested before all parties had confirmed the same keys.
    #[error("a secure sum was requested before the parties agreed on keys and confirmed them")]
    NotAgreed,
    /// Parties that are unknown, named twice, or not those of the key agreement.
    #[error("the parties must be in ascending order, include this party, and match the key agreement")]
    Parties,
    /// A public key that its party's identity did not sign for this context.
    #[error(
        "the public key of party {party} is not signed by the identity that this party pinned: the relay may have replaced \
         the key"
    )]
    Unsigned {
        /// The party.
        party: usize,
    },
    /// A public key of small order, which an honest party never has.
    #[error("the public key of party {party} has small order, which the key of an honest party never has")]
    BadKey {
        /// The party.
        party: usize,
    },
    /// A party has not signed that it received the same keys.
    #[error(
        "party {party} did not sign the keys that this party received: the relay sent it other keys, or repeated its key of \
         an earlier session"
    )]
    Unconfirmed {
        /// The party.
        party: usize,
    },
    /// A key share that cannot be used.
    #[error(transparent)]
    KeyShare(#[from] KeyShareError),
    /// Too few parties for keys or for a sum.
    #[error(
        "{found} parties are too few for {what}: at least {needed} are needed, so that only one sum of a round can be unmasked \
         and the parties that may collude are outnumbered"
    )]
    TooFew {
        /// Purpose of the request.
        what: &'static str,
        /// Number of parties that were named.
        found: usize,
        /// Minimum number of parties.
        needed: usize,
    },
    /// Each party shares masks with too few others.
    #[error("a mask graph of degree {degree} can disconnect the parties if {colluding} of {active} collude")]
    Degree {
        /// Number of other parties that each party shares masks with.
        degree: usize,
        /// Number of parties that may collude.
        colluding: usize,
        /// Number of parties that take part.
        active: usize,
    },
    /// The party has already sent a message for this sum. A second message under the same mask, or another
    /// sum of the round, would reveal more than one sum.
    #[error(
        "attempt {attempt} at this sum is not the next one that this party may send: each attempt needs fewer parties than the \
         last, and an unmasked attempt is final"
    )]
    Again {
        /// The attempt.
        attempt: u32,
    },
    /// The attempt to unmask is not the last that the party sent, or the party has not unmasked it.
    #[error(
        "attempt {attempt} is not the last at a sum that this party sent: a party unmasks only its last attempt at a sum"
    )]
    NotSent {
        /// The attempt.
        attempt: u32,
    },
    /// The participant holds no key share of this party.
    #[error("this party holds no key share of party {party}")]
    NoKeyShare {
        /// The party.
        party: usize,
    },
}
