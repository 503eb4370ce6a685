//! Records of an answer: a tag that shows the reader that it has the key, and a payload that only the key
//! opens.
//!
//! Both are derived from a value of the pseudorandom function by HKDF (RFC 5869) with SHA-512, with the
//! exchange as the salt. Without the value a record looks like random bytes. The protocols look up and
//! shuffle the records.

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use hkdf::Hkdf;
use sha2::Sha512;

/// Bytes of a tag. Among 2^32 by 2^32 records, two records of different keys have equal tags with probability
/// 2^-64.
pub const TAG: usize = 16;
/// Bytes that sealing adds to a payload: the tag of Poly1305 (RFC 8439).
const AUTHENTICATION: usize = 16;
/// Bytes of the length before a payload.
const PREFIX: usize = 4;

/// A tag.
pub(super) type Tag = [u8; TAG];

/// Derivation of secrets from the value of one key, in one exchange.
pub(super) struct Derived(Hkdf<Sha512>);

impl Derived {
    pub(super) fn new(salt: &[u8; 64], value: &[u8]) -> Self {
        Self(Hkdf::new(Some(salt), value))
    }

    /// Returns the tag of the key's record `number`, from 0.
    pub(super) fn tag(&self, number: u32) -> Tag {
        let mut tag = [0; TAG];
        self.expand(b"tag\0", number, &mut tag);
        tag
    }

    /// Returns the payload of record `number`, padded to `length` bytes ([`padded`]) and sealed.
    pub(super) fn seal(&self, number: u32, payload: &[u8], length: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(length);
        text.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        text.extend_from_slice(payload);
        text.resize(length, 0);
        self.cipher(number).encrypt(&Nonce::default(), text.as_slice()).expect("it is short enough")
    }

    /// Opens a payload. Returns `None` if it was sealed otherwise or altered.
    pub(super) fn open(&self, number: u32, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut text = self.cipher(number).decrypt(&Nonce::default(), sealed).ok()?;
        let (length, _) = text.split_first_chunk::<PREFIX>()?;
        let end = PREFIX.checked_add(u32::from_le_bytes(*length) as usize)?;
        (end <= text.len()).then(|| {
            text.truncate(end);
            text.split_off(PREFIX)
        })
    }

    /// Each key seals one payload, so the nonce may be 0.
    fn cipher(&self, number: u32) -> ChaCha20Poly1305 {
        let mut key = [0; 32];
        self.expand(b"seal\0", number, &mut key);
        ChaCha20Poly1305::new(&Key::from(key))
    }

    fn expand(&self, purpose: &[u8], number: u32, out: &mut [u8]) {
        let info: [&[u8]; 3] = [b"fet psi labelled v1\0", purpose, &number.to_le_bytes()];
        self.0.expand_multi_info(&info, out).expect("HKDF gives up to 255 blocks of 64 bytes");
    }
}

/// Returns the padded length of payloads, given the length of the longest: a power of two, which reveals
/// little about it.
pub fn padded(longest: usize) -> usize {
    (PREFIX + longest).next_power_of_two()
}

/// Returns the bytes of a record, given the padded length of its payload.
pub fn record(padded: usize) -> usize {
    TAG + padded + AUTHENTICATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_value_exchange_and_number_open_a_record() {
        let derived = |salt: u8, value: &[u8]| Derived::new(&[salt; 64], value);
        let one = derived(1, b"value");
        for payload in [&b""[..], b"row", &[9; 12]] {
            let sealed = one.seal(3, payload, padded(12));
            assert_eq!(TAG + sealed.len(), record(padded(12)));
            assert_eq!(one.open(3, &sealed).as_deref(), Some(payload));
            assert_eq!(one.open(2, &sealed), None);
            for other in [derived(2, b"value"), derived(1, b"other")] {
                assert_eq!(other.open(3, &sealed), None);
                assert_ne!(other.tag(3), one.tag(3));
            }
            for at in 0..sealed.len() {
                let mut altered = sealed.clone();
                altered[at] ^= 1;
                assert_eq!(one.open(3, &altered), None, "byte {at}");
            }
            assert_eq!(one.open(3, &sealed[1..]), None);
        }
        assert_ne!(one.tag(3), one.tag(4));
    }

    #[test]
    fn lengths_are_padded_to_powers_of_two() {
        let cases = [(0, 4), (4, 8), (5, 16), (12, 16), (13, 32), (100, 128)];
        assert_eq!(cases.map(|(longest, _)| padded(longest)), cases.map(|(_, padded)| padded));
    }
}
