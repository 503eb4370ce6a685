//! Places of the bits of a token.

use blake2::Blake2bMac512;
use blake2::digest::Mac as _;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::json::{Node, Object, SchemaError};

/// Maximum number of bits of a filter before folding, and maximum number of bits that one token or value
/// sets.
pub(super) const MOST_BITS: usize = 1 << 20;

/// Hash function of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    /// Slices of keyed BLAKE2b, which give independent places.
    Blake,
    /// Double hashing with steps of constant length (Schnell, Bachteler, Reiher 2011).
    Double {
        /// True if the hash draws another step length in place of zero.
        prevent_singularity: bool,
    },
}

impl Hash {
    pub(super) fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        match node.property("type")?.choice(&["blakeHash", "doubleHash"])? {
            0 => node.object(&["type"]).map(|_| Self::Blake),
            _ => {
                let object = node.object(&["type", "prevent_singularity"])?;
                let prevent_singularity =
                    object.get("prevent_singularity").map_or(Ok(false), |node| node.truth())?;
                Ok(Self::Double { prevent_singularity })
            }
        }
    }

    /// Extends `known` to the first `wanted` places of a token in a filter of `bits` bits.
    pub(super) fn places(self, token: &[u8], keys: &Keys, bits: usize, wanted: usize, known: &mut Vec<u32>) {
        if known.len() >= wanted {
            return;
        }
        match self {
            Self::Blake => {
                for block in known.len() / 32..wanted.div_ceil(32) {
                    let digest = blake(&keys.0, block, token);
                    let slices = digest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
                    known.extend(slices.map(|slice| (usize::from(slice) % bits) as u32));
                }
            }
            Self::Double { prevent_singularity } => {
                let start = hmac::<Hmac<Sha1>>(&keys.0, token, bits);
                let mut step = hmac::<Hmac<Md5>>(&keys.1, token, bits);
                let suffixes = ('\0'..=char::MAX).take_while(|_| prevent_singularity);
                for suffix in suffixes {
                    if step != 0 {
                        break;
                    }
                    let longer = [token, suffix.encode_utf8(&mut [0; 4]).as_bytes()].concat();
                    step = hmac::<Hmac<Md5>>(&keys.1, &longer, bits);
                }
                known.clear();
                known.extend((0..wanted).map(|turn| ((start + turn * step) % bits) as u32));
            }
        }
    }
}

/// Returns block `block` of the digest of a token. The salt is the block's number in decimal.
fn blake(key: &[u8], block: usize, token: &[u8]) -> [u8; 64] {
    let mac = Blake2bMac512::new_with_salt_and_personal(key, block.to_string().as_bytes(), &[]);
    let mut mac = mac.expect("the schema's keys are at most 64 bytes");
    mac.update(token);
    mac.finalize().into_bytes().into()
}

/// Returns an HMAC as one big-endian number, modulo `bits`.
fn hmac<M: Mac + KeyInit>(key: &[u8], token: &[u8], bits: usize) -> usize {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(token);
    mac.finalize().into_bytes().iter().fold(0, |number, byte| ((number << 8) | usize::from(*byte)) % bits)
}

/// Keys of one feature: one for BLAKE2b or SHA-1, and one for MD5.
pub(super) struct Keys(Vec<u8>, Vec<u8>);

/// Derivation of keys from a secret by HKDF (RFC 5869).
#[derive(Debug, Clone)]
pub(super) struct Kdf {
    sha512: bool,
    salt: Vec<u8>,
    info: Vec<u8>,
    size: usize,
}

impl Kdf {
    pub(super) fn parse(node: &Node<'_>, features: usize, blake: bool) -> Result<Self, SchemaError> {
        let object = node.object(&["type", "hash", "salt", "info", "keySize"])?;
        object.need("type")?.choice(&["HKDF"])?;
        let hash = object.get("hash").map_or(Ok(0), |node| node.choice(&["SHA256", "SHA512"]))?;
        let sha512 = hash == 1;
        let digest = if sha512 { 64 } else { 32 };
        let size = match object.get("keySize") {
            Some(node) => {
                let size = node.count(1..=255 * 64)?;
                if blake && size > 64 {
                    return Err(node.refuse("must be at most 64 if a feature uses blakeHash"));
                }
                size
            }
            None => 64,
        };
        if 2 * features * size > 255 * digest {
            let most = 255 * digest;
            return Err(node.refuse(format!(
                "must allow two keys of {size} bytes for each of {features} features, but HKDF gives at most {most} bytes"
            )));
        }
        Ok(Self { sha512, salt: base64(&object, "salt")?, info: base64(&object, "info")?, size })
    }

    /// Derives the keys of each feature.
    pub(super) fn keys(&self, secret: &[u8], features: usize) -> Vec<Keys> {
        let mut bytes = vec![0; 2 * features * self.size];
        let salt = Some(self.salt.as_slice());
        let made = match self.sha512 {
            true => Hkdf::<Sha512>::new(salt, secret).expand(&self.info, &mut bytes),
            false => Hkdf::<Sha256>::new(salt, secret).expand(&self.info, &mut bytes),
        };
        made.expect("the schema limits keys to the output of HKDF");
        let pairs = bytes.chunks_exact(2 * self.size).map(|pair| pair.split_at(self.size));
        pairs.map(|(first, second)| Keys(first.to_vec(), second.to_vec())).collect()
    }
}

/// Returns the bytes of a base64 property, or no bytes if the property is missing.
fn base64(object: &Object<'_>, name: &str) -> Result<Vec<u8>, SchemaError> {
    let Some(node) = object.get(name) else { return Ok(Vec::new()) };
    super::serial::bytes(node.text()?).map_err(|error| node.refuse(format!("must be base64: {error}")))
}
