//! Identity of a party: a signing key that the other parties know in advance.
//!
//! A relay of public keys could replace them with other keys, but it cannot sign these. Each party checks a
//! signature against the identity that it pinned before the run. The party received that identity over a
//! different channel than the relay.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

/// Secret signing key of a party (Ed25519). `Debug` does not show the secret.
pub struct Identity(SigningKey);

/// Public half of an [`Identity`], which other parties pin.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicIdentity(pub [u8; 32]);

/// Ed25519 signature of 64 bytes.
pub type Signature = [u8; 64];

impl Identity {
    /// Creates the identity from 32 secret random bytes.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    /// Returns the public identity, which other parties pin.
    pub fn public(&self) -> PublicIdentity {
        PublicIdentity(self.0.verifying_key().to_bytes())
    }

    /// Signs `message` for one `purpose`. The signature is invalid for any other purpose.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> Signature {
        self.0.sign(&framed(purpose, message)).to_bytes()
    }
}

impl PublicIdentity {
    /// Returns true if the identity signed `message` for `purpose`. Refuses keys and signatures of small
    /// order.
    pub fn signed(&self, purpose: &str, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0)
            .and_then(|key| key.verify_strict(&framed(purpose, message), &signature))
            .is_ok()
    }
}

/// Identities of all parties, in their order.
///
/// Clones share the signatures that one of them found valid. A simulation has all parties in one process, and
/// so verifies each signature once instead of once for each party.
#[derive(Debug, Clone)]
pub struct Identities {
    all: Arc<[PublicIdentity]>,
    /// Digests of identity, message and signature.
    valid: Arc<Mutex<HashSet<[u8; 32]>>>,
}

impl FromIterator<PublicIdentity> for Identities {
    fn from_iter<I: IntoIterator<Item = PublicIdentity>>(identities: I) -> Self {
        Self { all: identities.into_iter().collect(), valid: Arc::default() }
    }
}

impl Deref for Identities {
    type Target = [PublicIdentity];

    fn deref(&self) -> &[PublicIdentity] {
        &self.all
    }
}

impl Identities {
    /// Returns true if `party` signed `message` for `purpose`, as [`PublicIdentity::signed`] does.
    ///
    /// # Panics
    /// If there is no such party.
    pub fn signed(&self, party: usize, purpose: &str, message: &[u8], signature: &Signature) -> bool {
        let identity = self.all[party];
        let digest = Sha256::new().chain_update(identity.0).chain_update(signature);
        let digest: [u8; 32] = digest.chain_update(framed(purpose, message)).finalize().into();
        let valid = || self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if valid().contains(&digest) {
            return true;
        }
        let signed = identity.signed(purpose, message, signature);
        if signed {
            let mut valid = valid();
            // A session has two signatures of each party: a party that runs for months keeps those of the last sessions alone.
            if valid.len() >= 8 * self.all.len() {
                valid.clear();
            }
            valid.insert(digest);
        }
        signed
    }
}

fn framed(purpose: &str, message: &[u8]) -> Vec<u8> {
    [&(purpose.len() as u64).to_le_bytes(), purpose.as_bytes(), message].concat()
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity of {:?}", self.public())
    }
}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_signature_is_remembered_for_itself_alone() {
        let [first, second] = [1, 2].map(|byte| Identity::from_secret([byte; 32]));
        let all: Identities = [first.public(), second.public()].into_iter().collect();
        let signature = first.sign("keys", b"message");
        for identities in [&all, &all.clone()] {
            assert!(identities.signed(0, "keys", b"message", &signature));
            assert!(!identities.signed(1, "keys", b"message", &signature));
            assert!(!identities.signed(0, "key", b"smessage", &signature));
            assert!(!identities.signed(0, "keys", b"another", &signature));
            assert!(!identities.signed(0, "keys", b"message", &[0; 64]));
        }
    }

    #[test]
    fn a_signature_holds_for_one_identity_one_purpose_and_one_message() {
        let identity = Identity::from_secret([1; 32]);
        let signature = identity.sign("keys", b"message");
        assert!(identity.public().signed("keys", b"message", &signature));
        assert!(!identity.public().signed("key", b"smessage", &signature));
        assert!(!identity.public().signed("keys", b"another", &signature));
        assert!(!Identity::from_secret([2; 32]).public().signed("keys", b"message", &signature));
        let mut flipped = signature;
        flipped[9] ^= 1;
        assert!(!identity.public().signed("keys", b"message", &flipped));
        assert!(!PublicIdentity([0; 32]).signed("keys", b"message", &[0; 64]), "of small order");
        assert_eq!(format!("{identity:?}").len(), "Identity of ".len() + 64);
    }
}
