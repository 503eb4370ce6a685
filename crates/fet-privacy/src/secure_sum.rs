//! Secure sums: of the parties' integer vectors only the sum becomes known (Bonawitz et al. 2017; Bell et al. 2020).
//!
//! Every two parties that are neighbours in a [`MaskGraph`] share a key ([`Member`], X25519). For each sum they expand it
//! to one mask, which one adds and the other subtracts, modulo 2^b: in the sum the masks cancel. Each party adds a
//! second mask of its own, which it takes off ([`Member::opening`]) once the messages of all are there, and for one
//! attempt at a sum alone (double masking). A message by itself is uniform. [`Units`] turns reals to integers, and
//! refuses what would wrap around.
//!
//! Public keys are signed by identities that were pinned in advance ([`crate::identity`]), and all keys go into the
//! derivation of each: whoever relays them cannot stand between two parties.
//!
//! **Thresholds.** Let n parties agree on keys, d be the degree of the mask graph and τ = ⌊(n−1)/2⌋ + 1 the [`threshold`] for
//! backups. A receiver that deviates in any way and colludes with t ≤ min(d−1, τ−2) parties learns one sum of a round over the
//! honest parties, if three of them or more take part. That rests on each party opening one attempt at a sum, and giving out the
//! backup of one other party at most: who calls [`Member`] sees to it. Any number may vanish before an attempt's
//! messages are complete, while two are left; within an opening one may, if τ of those that took part in the sum hold shares of
//! its secret.

mod backup;
mod collect;
mod graph;
mod id;
mod member;
mod units;
mod word;

pub use backup::{BackupError, SEALED_SHARE, holders, recover, threshold};
pub use collect::{Attempt, CollectError, Collected, Parties, collect, total};
pub use graph::MaskGraph;
pub use id::SumId;
pub use member::{Commitment, Member, Opening, PublicKey, unmask};
pub use units::{BudgetError, Units};
pub use word::Word;
