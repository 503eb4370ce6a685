//! The function behind a party's own masks: pseudorandom, and computed in shares (Naor, Pinkas, Reingold 1999).
//!
//! The value at a sum's [`SumId`] is s·H(id) in the group Ristretto, s a secret scalar and H a hash to the group. Who holds a
//! share s_j of s computes s_j·H(id), from which so many as the threshold give s·H(id) and nothing about any other id
//! (decisional Diffie-Hellman, random oracle). The share itself never leaves.

use std::fmt;

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha256, Sha512};

use super::id::SumId;

/// What takes a party's own mask off one of its messages, and off no other. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Opening(pub [u8; 32]);

/// A hash of an [`Opening`], which goes with the message: whoever opens it later, wrong openings are noticed.
pub type Commitment = [u8; 32];

/// What a holder computes of a vanished party's [`Opening`]: s_j·H(id), 32 bytes.
pub type Evaluation = [u8; 32];

impl Opening {
    /// What the message says about it in advance.
    pub fn commitment(&self) -> Commitment {
        Sha256::new().chain_update(b"fet secure sum, commitment, 2").chain_update(self.0).finalize().into()
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opening")
    }
}

/// A scalar of 32 secret bytes.
pub(super) fn scalar(label: &[u8], secret: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(label).chain_update(secret).finalize();
    Scalar::from_bytes_mod_order_wide(&hash.into())
}

/// The value, or a share of it, at `id`: in constant time, since the scalar is secret.
pub(super) fn evaluate(scalar: &Scalar, id: &SumId<'_>) -> RistrettoPoint {
    let hash = Sha512::new().chain_update(b"fet secure sum, point, 1").chain_update(id.digest()).finalize();
    RistrettoPoint::from_uniform_bytes(&hash.into()) * scalar
}

/// The opening that a value at `id` stands for.
pub(super) fn opening(value: &RistrettoPoint, id: &SumId<'_>) -> Opening {
    let hash = Sha256::new()
        .chain_update(b"fet secure sum, own mask, 2")
        .chain_update(value.compress().as_bytes())
        .chain_update(id.digest());
    Opening(hash.finalize().into())
}

/// The point of an evaluation, if it is one.
pub(super) fn point(evaluation: &Evaluation) -> Option<RistrettoPoint> {
    CompressedRistretto(*evaluation).decompress()
}
