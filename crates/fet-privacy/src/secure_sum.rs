//! Secure sums: of the parties' integer vectors only the sum becomes known (Bonawitz et al. 2017; Bell et al. 2020).
//!
//! Every two parties that are neighbours in a [`MaskGraph`] share a key ([`Member`], X25519). For each sum they expand it
//! to one mask, which one adds and the other subtracts, modulo 2^b: in the sum the masks cancel. A message by itself
//! is uniform. [`Units`] turns reals to integers, and refuses what would wrap around.
//!
//! Who relays public keys and messages is trusted to relay them as they are (honest but curious). A party that
//! vanishes is dealt with by asking again ([`collect`]), not by secret shares of its keys: a round is cheap, and
//! secret shares would have to be set up among all parties in each.

mod collect;
mod graph;
mod member;
mod units;
mod word;

pub use collect::{Attempt, CollectError, Collected, collect, total};
pub use graph::MaskGraph;
pub use member::{MaskId, Member, PublicKey};
pub use units::{BudgetError, Units};
pub use word::Word;
