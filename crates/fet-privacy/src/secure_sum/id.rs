//! What a mask is for.

use sha2::{Digest, Sha256};

/// Which sum a mask is for, and over what. A mask follows from all of it, so that a request that differs in anything
/// gets another mask: two messages under one mask would show the difference of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumId<'a> {
    /// The step.
    pub round: u64,
    /// Which tensor of the step.
    pub name: u32,
    /// How often this sum has been tried before.
    pub attempt: u32,
    /// The parties that take part, ascending.
    pub active: &'a [usize],
    /// What the sum is over: a digest of whatever the parties must agree on.
    pub over: [u8; 32],
    /// Sums are taken modulo 2^bits.
    pub bits: u32,
    /// With how many others a party shares masks.
    pub degree: usize,
}

impl SumId<'_> {
    /// SHA-256 of all of it, each part with its length.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new()
            .chain_update(b"fet secure sum, id, 2")
            .chain_update(self.round.to_le_bytes())
            .chain_update(self.name.to_le_bytes())
            .chain_update(self.attempt.to_le_bytes())
            .chain_update(self.bits.to_le_bytes())
            .chain_update((self.degree as u64).to_le_bytes())
            .chain_update(self.over)
            .chain_update((self.active.len() as u64).to_le_bytes());
        for &party in self.active {
            hash.update((party as u64).to_le_bytes());
        }
        hash.finalize().into()
    }
}
