//! Text form of keys that NATS calls nkeys: base 32 with a prefix and a checksum.
//!
//! The module reads and writes only users' public keys (`U...`) and users' seeds (`SU...`).

use zeroize::{Zeroize, Zeroizing};

/// Prefix of a user's public key; the first letter becomes `U`.
const USER: u8 = 20 << 3;
/// Prefix of a seed; the first letter becomes `S`.
const SEED: u8 = 18 << 3;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Reason why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NkeyError {
    /// The text does not have the length of a key.
    #[error("it has {found} characters; {expected} are expected")]
    Length {
        /// Number of characters found.
        found: usize,
        /// Number of characters expected.
        expected: usize,
    },
    /// A character is outside the alphabet.
    #[error("character {position} is neither A-Z nor 2-7")]
    Character {
        /// Position of the character, from 1.
        position: usize,
    },
    /// The checksum does not fit: a character was mistyped or lost.
    #[error("its checksum does not fit: a character is mistyped")]
    Checksum,
    /// The key is of another kind.
    #[error("it is a key of another kind: {expected} is expected")]
    Kind {
        /// Expected kind of key.
        expected: &'static str,
    },
    /// The key is not a point of the curve, or has small order.
    #[error("no key pair has this public key")]
    NotAKey,
}

/// Returns the 56 characters of a user's public key.
pub(crate) fn encode_public(key: &[u8; 32]) -> String {
    let mut raw = vec![USER];
    raw.extend(key);
    encode(raw)
}

/// Returns the 58 characters of a user's seed.
pub(crate) fn encode_seed(seed: &[u8; 32]) -> Zeroizing<String> {
    let mut raw = Vec::with_capacity(36);
    raw.extend([SEED | USER >> 5, (USER & 31) << 3]);
    raw.extend(seed);
    Zeroizing::new(encode(raw))
}

/// Decodes the 56 characters of a user's public key.
pub(crate) fn decode_public(text: &str) -> Result<[u8; 32], NkeyError> {
    let raw = decode(text, 35)?;
    if raw[0] != USER {
        return Err(NkeyError::Kind { expected: "a user's public key, U..." });
    }
    Ok(raw[1..33].try_into().expect("32 of 35 bytes"))
}

/// Decodes the 58 characters of a user's seed.
pub(crate) fn decode_seed(text: &str) -> Result<Zeroizing<[u8; 32]>, NkeyError> {
    let raw = decode(text, 36)?;
    if raw[..2] != [SEED | USER >> 5, (USER & 31) << 3] {
        return Err(NkeyError::Kind { expected: "a user's seed, SU..." });
    }
    Ok(Zeroizing::new(raw[2..34].try_into().expect("32 of 36 bytes")))
}

fn encode(mut raw: Vec<u8>) -> String {
    let checksum = crc16(&raw);
    raw.extend(checksum.to_le_bytes());
    let mut text = String::with_capacity((raw.len() * 8).div_ceil(5));
    let (mut bits, mut held) = (0_u32, 0);
    for byte in &raw {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(ALPHABET[(bits >> held & 31) as usize]));
        }
    }
    if held > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - held) & 31) as usize]));
    }
    raw.zeroize();
    text
}

/// Decodes the `length` bytes of a text and checks their checksum.
fn decode(text: &str, length: usize) -> Result<Zeroizing<Vec<u8>>, NkeyError> {
    let expected = (length * 8).div_ceil(5);
    let found = text.chars().count();
    if found != expected {
        return Err(NkeyError::Length { found, expected });
    }
    let mut raw = Zeroizing::new(Vec::with_capacity(length));
    let (mut bits, mut held) = (0_u32, 0);
    for (at, character) in text.chars().enumerate() {
        let value = ALPHABET.iter().position(|letter| char::from(*letter) == character);
        let value = value.ok_or(NkeyError::Character { position: at + 1 })?;
        bits = bits << 5 | value as u32;
        held += 5;
        if held >= 8 {
            held -= 8;
            raw.push((bits >> held) as u8);
        }
    }
    // The remaining bits are zero in the only valid text of a key.
    if bits & ((1 << held) - 1) != 0 {
        return Err(NkeyError::Checksum);
    }
    let (body, checksum) = raw.split_at(length - 2);
    if crc16(body).to_le_bytes() != checksum {
        return Err(NkeyError::Checksum);
    }
    Ok(raw)
}

/// Returns the CRC-16/XMODEM checksum.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte) << 8,
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check value of CRC-16/XMODEM in the catalogue of CRC algorithms.
    #[test]
    fn the_checksum_is_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let key = std::array::from_fn(|at| at as u8 * 7);
        let public = encode_public(&key);
        assert_eq!((public.len(), &public[..1]), (56, "U"));
        assert_eq!(decode_public(&public), Ok(key));
        let seed = encode_seed(&key);
        assert_eq!((seed.len(), &seed[..2]), (58, "SU"));
        assert_eq!(*decode_seed(&seed).unwrap(), key);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = encode_public(&[9; 32]);
        let mistyped =
            format!("{}{}{}", &good[..20], if &good[20..21] == "A" { "B" } else { "A" }, &good[21..]);
        for (text, expected) in [
            (good[1..].to_owned(), NkeyError::Length { found: 55, expected: 56 }),
            (String::new(), NkeyError::Length { found: 0, expected: 56 }),
            (good.replacen('U', "é", 1), NkeyError::Character { position: 1 }),
            (good.to_lowercase(), NkeyError::Character { position: 1 }),
            (mistyped, NkeyError::Checksum),
            (
                encode([&[0][..], &[9; 32]].concat()),
                NkeyError::Kind { expected: "a user's public key, U..." },
            ),
        ] {
            assert_eq!(decode_public(&text), Err(expected), "{text}");
        }
        let account = encode([&[SEED, 0][..], &[9; 32]].concat());
        assert_eq!(decode_seed(&account), Err(NkeyError::Kind { expected: "a user's seed, SU..." }));
    }
}
