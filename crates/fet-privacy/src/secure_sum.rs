//! Secure sums: of the parties' integer vectors only the sum becomes known (Bonawitz et al. 2017; Bell et al. 2020).
//!
//! Every two parties that are neighbours in a [`MaskGraph`] share a key ([`Member`], X25519). For each sum they expand it
//! to one mask, which one adds and the other subtracts, modulo 2^b: in the sum the masks cancel. Each party adds a
//! second mask of its own, which it takes off once the messages of all are there, and for one attempt at a sum alone (double
//! masking). A message by itself is uniform. [`Units`] turns reals to integers, and refuses what would wrap around.
//!
//! A party's own mask follows from a pseudorandom function of the attempt whose key the others hold in shares (Naor, Pinkas,
//! Reingold 1999): a [`quorum`] of them opens *one attempt* in the place of a party that vanished ([`recover`]). Each message carries a
//! commitment to its opening, so that a wrong opening, direct or recovered, is noticed.
//!
//! Public keys are signed by identities that were pinned in advance ([`crate::identity`]), all keys go into the derivation of
//! each, and all parties sign the transcript before one sends anything: whoever relays them cannot stand between two parties, tell
//! them different things, or repeat a key of an earlier session.
//!
//! # What holds
//!
//! Let n parties have agreed on keys, and let a of them be those that a round has, as all know. d is the degree of the mask graph and
//! t the number of colluders that is provided for. Honest parties are [`Participant`]s. τ = [`quorum`]\(n, t) holders open a mask, and a
//! sum is over q = [`quorum`]\(a, t) ≤ τ parties or more.
//!
//! **A receiver that deviates in any way and colludes with up to t ≤ d−1 parties learns, of each round, the sum over the honest
//! parties of one set of q parties or more, and nothing else about their values.** Proof, for an ideal pseudorandom function, ideal
//! streams and unforgeable signatures:
//!
//! 1. *Without all openings an attempt shows nothing.* Of the honest parties of one attempt, those that no colluder parts from the
//!    others are joined by masks that the receiver does not know: the graph stays connected without t ≤ d−1 parties. Any combination
//!    of messages in which those masks cancel has the same coefficient for all of them, and with a coefficient other than zero it bears every
//!    honest party's own mask. Masks of different attempts, sets, rows, forms or rounds are independent.
//! 2. *What opens an attempt.* An honest party's own mask of an attempt becomes known if that party opens the attempt, or if τ holders
//!    compute their shares of it, of which τ−t or more are honest and have opened the same attempt. (Fewer than τ shares, and values at
//!    other attempts, say nothing about it.) So an attempt over A is opened by all its honest parties, at least q−t' where t' colluders are
//!    among the a, or by τ−t honest parties or more.
//! 3. *There is one such attempt in a round.* An honest party opens one. Two would need disjoint sets of honest openers among the a−t' ≤ n−t
//!    that the round has: 2(q−t') ≤ a−t', or (q−t') + (τ−t) ≤ a−t', or 2(τ−t) ≤ n−t. But 2q > a+t, q+τ > a+t, and 2τ > n+t. ∎
//!
//! The set has t + 2 parties or more, two honest ones among them. Any number may vanish while q are left, and any number within the
//! opening, if τ holders that took part answer ([`withstands`] says how many of these may lie). In a round of τ parties or
//! fewer nobody can be replaced within the opening. The values of a round must be the same in all its attempts, or differ by fresh
//! noise that is accounted for; what sums of *different* rounds tell together is not the concern of this module.

mod agreement;
mod backup;
mod collect;
mod error;
mod graph;
mod id;
mod member;
mod participant;
mod prf;
mod quorum;
mod shamir;
mod subsets;
mod units;
mod word;

pub use agreement::{Agreed, SignedKey, Terms};
pub use backup::{BackupError, Recovered, SEALED_SHARE, holders, recover};
pub use collect::{Attempt, CollectError, Collected, Message, Parties, collect, total};
pub use error::SumError;
pub use graph::MaskGraph;
pub use id::SumId;
pub use member::{Member, PublicKey, unmask};
pub use participant::Participant;
pub use prf::{Commitment, Evaluation, Opening};
pub use quorum::quorum;
pub use subsets::withstands;
pub use units::{BudgetError, Units};
pub use word::Word;
