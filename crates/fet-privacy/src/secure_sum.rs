//! Secure aggregation: only the sum of the parties' integer vectors becomes known (Bonawitz et al. 2017; Bell
//! et al. 2020).
//!
//! Every two parties that are neighbours in a [`MaskGraph`] share a key ([`Member`], X25519). For each sum
//! they expand the key to one mask, which one party adds and the other subtracts, modulo 2^b. The masks
//! cancel in the sum. Each party also adds a private second mask. It removes this mask once the messages of
//! all parties have arrived, and for one attempt at a sum only (double masking). A single message is uniform.
//! [`Units`] converts real numbers to integers and refuses values that would wrap around.
//!
//! A party's private mask is a pseudorandom function of the attempt, and the other parties hold shares of the
//! function's key (Naor, Pinkas, Reingold 1999). A [`quorum`] of them unmasks *one attempt* in place of a
//! party that dropped out ([`reconstruct`]). Each message carries a commitment to its unmasking value, so
//! that the receiver detects a wrong unmasking value, direct or reconstructed.
//!
//! Identities that were pinned in advance sign the public keys ([`crate::identity`]). All public keys go into
//! the derivation of each shared key, and all parties sign the transcript before any of them sends a message.
//! A relay therefore cannot stand between two parties, send them different keys, or repeat a key of an
//! earlier session.
//!
//! # Guarantee
//!
//! Let n parties have agreed on keys, and let a of them be scheduled in a round, as all parties know. d is
//! the degree of the mask graph and t the maximum number of colluders. Honest parties are [`Participant`]s.
//! A mask is removed by τ = [`quorum`]\(n, t) holders, and a sum is over at least q = [`quorum`]\(a, t) ≤ τ
//! parties.
//!
//! **A receiver that deviates in any way and colludes with up to t ≤ d−1 parties learns, in each round, the
//! sum over the honest parties of one set of at least q parties, and nothing else about their values.**
//! Proof, for an ideal pseudorandom function, ideal streams and unforgeable signatures:
//!
//! 1. *Without all unmasking values, an attempt shows nothing.* In one attempt, masks that the receiver does
//!    not know connect all honest parties, because the graph stays connected without t ≤ d−1 parties. Any
//!    combination of messages in which those masks cancel has the same coefficient for all honest parties. If
//!    the coefficient is not zero, the combination contains every honest party's private mask. Masks of
//!    different attempts, sets, rows, forms or rounds are independent.
//! 2. *Ways to unmask an attempt.* An honest party's private mask of an attempt becomes known if that party
//!    unmasks the attempt. It also becomes known if τ holders compute their shares of the mask; at least τ−t
//!    of them are honest and have unmasked the same attempt. (Fewer than τ shares, and values at other
//!    attempts, reveal nothing about the mask.) So an attempt is unmasked by all its honest parties, at least
//!    q−t' if t' colluders are among the a, or by at least τ−t honest parties.
//! 3. *Only one attempt of a round can be unmasked.* An honest party unmasks one attempt. Two attempts would
//!    need disjoint sets of honest parties that unmask among the a−t' ≤ n−t honest parties of the round:
//!    2(q−t') ≤ a−t', or (q−t') + (τ−t) ≤ a−t', or 2(τ−t) ≤ n−t. But 2q > a+t, q+τ > a+t, and 2τ > n+t. ∎
//!
//! The set has at least t + 2 parties, two honest ones among them. Any number of parties may drop out while q
//! remain. Any number may drop out during the unmasking if τ holders that took part answer ([`withstands`]
//! returns the number of these that may lie). In a round of τ parties or fewer, a party that drops out during
//! the unmasking cannot be replaced. The values of a round must be the same in all its attempts, or
//! differ by fresh noise that is accounted for. This module does not consider the combined information of
//! sums of *different* rounds.

mod agreement;
mod collect;
mod error;
mod graph;
mod id;
mod key_share;
mod member;
mod participant;
mod prf;
mod quorum;
mod seen;
mod shamir;
mod subsets;
mod units;
mod word;

pub use agreement::{Agreed, SignedKey, Terms};
pub use collect::{Attempt, CollectError, Collected, Message, Parties, collect, total};
pub use error::SumError;
pub use graph::MaskGraph;
pub use id::SumId;
pub use key_share::{KeyShareError, Reconstructed, SEALED_SHARE, holders, reconstruct};
pub use member::{Member, PublicKey, unmask};
pub use participant::Participant;
pub use prf::{Commitment, Evaluation, Unmasking};
pub use quorum::quorum;
pub use subsets::withstands;
pub use units::{BudgetError, Units};
pub use word::Word;
