//! Who a party is: a signing key of its own, which the others know in advance.
//!
//! Whoever relays public keys could put its own in their place. It cannot sign them: each party compares a signature with
//! the identity that it pinned before the run, which reached it by another way than the relay.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};

/// A party's secret signing key (Ed25519). `Debug` does not show it.
pub struct Identity(SigningKey);

/// The public half of an [`Identity`], as others pin it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicIdentity(pub [u8; 32]);

/// A signature of 64 bytes.
pub type Signature = [u8; 64];

impl Identity {
    /// The identity of 32 secret random bytes.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    /// What the others pin.
    pub fn public(&self) -> PublicIdentity {
        PublicIdentity(self.0.verifying_key().to_bytes())
    }

    /// Signs `message` for one `purpose`; a signature for one purpose is none for another.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> Signature {
        self.0.sign(&framed(purpose, message)).to_bytes()
    }
}

impl PublicIdentity {
    /// Whether the identity signed `message` for `purpose`; keys and signatures of small order are refused.
    pub fn signed(&self, purpose: &str, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0)
            .and_then(|key| key.verify_strict(&framed(purpose, message), &signature))
            .is_ok()
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
