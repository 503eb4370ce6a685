//! What a participant refuses, and why. Nothing here holds a value or a secret.

use super::backup::BackupError;

/// Why a participant does not answer. Parties are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SumError {
    /// Keys were agreed on, and a session does so once.
    #[error("keys were agreed on already; a session agrees once")]
    AgreedAlready,
    /// A sum was asked for before all parties had confirmed the same keys.
    #[error("a secret sum was asked for before keys were agreed on and confirmed")]
    NotAgreed,
    /// Parties that are not known, are named twice, or are not those that were agreed with.
    #[error("the parties must be ascending, this one among them, and those that keys are agreed on with")]
    Parties,
    /// A public key that its party's identity did not sign for this context.
    #[error(
        "the public key of party {party} is not signed by the identity that this party knows: whoever relays keys may have \
         put another in its place"
    )]
    Unsigned {
        /// The party.
        party: usize,
    },
    /// A public key of small order, which no honest party has.
    #[error("the public key of party {party} is of small order: no honest party has such a key")]
    BadKey {
        /// The party.
        party: usize,
    },
    /// A party has not signed that it was told the same keys.
    #[error(
        "party {party} did not sign the keys that this party was told: it was told others, or a key of an earlier session \
         stands in its place"
    )]
    Unconfirmed {
        /// The party.
        party: usize,
    },
    /// A backup that cannot be used.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Too few parties for keys or for a sum.
    #[error(
        "{found} parties are too few for {what}: it takes {needed}, so that no two sums of one round can be opened and those that \
         may collude are outnumbered"
    )]
    TooFew {
        /// What for.
        what: &'static str,
        /// How many were named.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// Parties share masks with too few others.
    #[error("a degree of {degree} leaves parties apart if {colluding} of {active} collude")]
    Degree {
        /// With how many others a party shares masks.
        degree: usize,
        /// How many may collude.
        colluding: usize,
        /// How many take part.
        active: usize,
    },
    /// A message for this sum was sent before: a second one under the same mask, or another sum of the round, would show more
    /// than one sum.
    #[error(
        "attempt {attempt} at this sum is not the next that this party may send: each is over fewer parties than the last, and \
         there is none after one is opened"
    )]
    Again {
        /// The attempt.
        attempt: u32,
    },
    /// An attempt at a sum is to be opened that is not the last that the party sent, or was not opened.
    #[error(
        "attempt {attempt} is not the last at a sum that this party sent and may open: of all attempts at a sum one is opened"
    )]
    NotSent {
        /// The attempt.
        attempt: u32,
    },
    /// There is no backup for this party.
    #[error("this party keeps no backup of party {party}")]
    NoBackup {
        /// The party.
        party: usize,
    },
}
