//! Identifier of a sum, which determines its masks.

use sha2::{Digest, Sha256};

/// Identifier of a sum and its inputs. A mask follows from all fields, so that a request that differs in any
/// field gets another mask. Two messages under one mask would show the difference of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumId<'a> {
    /// Step of the session.
    pub round: u64,
    /// Number of the tensor in the step.
    pub name: u32,
    /// Number of earlier attempts at this sum.
    pub attempt: u32,
    /// Parties that take part, ascending.
    pub active: &'a [usize],
    /// Digest of the inputs of the sum: of everything that the parties must agree on.
    pub over: [u8; 32],
    /// Number of bits; sums are taken modulo 2^bits.
    pub bits: u32,
    /// Number of other parties that each party shares masks with.
    pub degree: usize,
}

impl SumId<'_> {
    /// Returns the SHA-256 digest of all fields, with the number of parties.
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
