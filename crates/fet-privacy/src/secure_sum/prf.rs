//! Pseudorandom function behind a party's private masks, computed in shares (Naor, Pinkas, Reingold 1999).
//!
//! The value at a sum's [`SumId`] is s·H(id) in the group Ristretto, with a secret scalar s and a hash H to
//! the group. A holder of a share s_j of s computes s_j·H(id). A threshold of these values gives s·H(id) and
//! nothing about any other id (decisional Diffie-Hellman, random oracle). The share itself is never sent.

use std::fmt;

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha256, Sha512};

use super::id::SumId;

/// Value that removes a party's private mask from one of its messages, and from no other. `Debug` does not
/// show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unmasking(pub [u8; 32]);

/// Hash of an [`Unmasking`], sent with the message. It exposes a wrong unmasking value from any sender.
pub type Commitment = [u8; 32];

/// Value that a holder computes for the [`Unmasking`] of a party that dropped out: s_j·H(id), 32 bytes.
pub type Evaluation = [u8; 32];

impl Unmasking {
    /// Returns the commitment that the message carries.
    pub fn commitment(&self) -> Commitment {
        Sha256::new().chain_update(b"fet secure sum, commitment, 2").chain_update(self.0).finalize().into()
    }
}

impl fmt::Debug for Unmasking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unmasking")
    }
}

/// Derives a scalar from a label and secret bytes.
pub(super) fn scalar(label: &[u8], secret: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(label).chain_update(secret).finalize();
    Scalar::from_bytes_mod_order_wide(&hash.into())
}

/// Returns the value at `id`, or a share of it, in constant time because the scalar is secret.
pub(super) fn evaluate(scalar: &Scalar, id: &SumId<'_>) -> RistrettoPoint {
    let hash = Sha512::new().chain_update(b"fet secure sum, point, 1").chain_update(id.digest()).finalize();
    RistrettoPoint::from_uniform_bytes(&hash.into()) * scalar
}

/// Returns the unmasking value that belongs to a value at `id`.
pub(super) fn unmasking(value: &RistrettoPoint, id: &SumId<'_>) -> Unmasking {
    let hash = Sha256::new()
        .chain_update(b"fet secure sum, own mask, 2")
        .chain_update(value.compress().as_bytes())
        .chain_update(id.digest());
    Unmasking(hash.finalize().into())
}

/// Returns the point of an evaluation, if the bytes are a point.
pub(super) fn point(evaluation: &Evaluation) -> Option<RistrettoPoint> {
    CompressedRistretto(*evaluation).decompress()
}
