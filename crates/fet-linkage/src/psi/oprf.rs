//! The oblivious pseudorandom function OPRF(ristretto255, SHA-512) of RFC 9497 in its mode OPRF (0x00), which
//! is 2HashDH of Jarecki and Liu (2010): F(x) = Hash(x, H(x)^k).
//!
//! This module contains its two hashes, and [`super::group`] contains the exponents. The protocol draws a new
//! key for each use, so it does not need the RFC's key derivation. The RFC's modes with proofs are not
//! implemented.

use curve25519_dalek::ristretto::RistrettoPoint;
use sha2::{Digest, Sha512};

use super::message::ELEMENT;

/// "HashToGroup-" and the context string of section 3.1, then its length (RFC 9380, section 5.3.1).
const GROUP: &[u8] = b"HashToGroup-OPRFV1-\x00-ristretto255-SHA512\x28";
/// Bytes of a block of SHA-512.
const BLOCK: usize = 128;

/// Hashes an input to a group element with an unknown logarithm: hash_to_ristretto255 with expand_message_xmd
/// (RFC 9497, section 4.1; RFC 9380, section 5.3.1, for 64 bytes, which are one block of output).
pub(super) fn hash_to_group(input: &[u8]) -> RistrettoPoint {
    let first = Sha512::new()
        .chain_update([0; BLOCK])
        .chain_update(input)
        .chain_update([0, 64, 0])
        .chain_update(GROUP)
        .finalize();
    let uniform = Sha512::new().chain_update(first).chain_update([1]).chain_update(GROUP).finalize();
    RistrettoPoint::from_uniform_bytes(&uniform.into())
}

/// Returns the function's value at `input`, given the element H(input)^k (section 3.3.1, `Finalize`). Inputs
/// have up to 65,535 bytes.
pub(super) fn finalize(input: &[u8], element: &[u8; ELEMENT]) -> [u8; 64] {
    let length = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes();
    let hash = Sha512::new().chain_update(length(input)).chain_update(input);
    hash.chain_update(length(element)).chain_update(element).chain_update(b"Finalize").finalize().into()
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::scalar::Scalar;

    use super::*;
    use crate::psi::group::Secret;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
    }

    /// Parses an exponent.
    fn secret(hex: &str) -> Secret {
        let scalar = Scalar::from_canonical_bytes(bytes(hex)).expect("a scalar");
        Secret(scalar * Scalar::from(2u8).invert())
    }

    /// RFC 9497, appendix A.1.1, both test vectors.
    #[test]
    fn agrees_with_the_rfc() {
        let key = secret("5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e");
        let blind = secret("64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706");
        let cases = [
            (
                vec![0],
                "609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c",
                "7ec6578ae5120958eb2db1745758ff379e77cb64fe77b0b2d8cc917ea0869c7e",
                "527759c3d9366f277d8c6020418d96bb393ba2afb20ff90df23fb7708264e2f3\
                 ab9135e3bd69955851de4b1f9fe8a0973396719b7912ba9ee8aa7d0b5e24bcf6",
            ),
            (
                vec![0x5a; 17],
                "da27ef466870f5f15296299850aa088629945a17d1f5b7f5ff043f76b3c06418",
                "b4cbf5a4f1eeda5a63ce7b77c7d23f461db3fcab0dd28e4e17cecb5c90d02c25",
                "f4a74c9c592497375e796aa837e907b1a045d34306a749db9f34221f7e750cb4\
                 f2a6413a6bf6fa5e19ba6348eb673934a722a7ede2e7621306d18951e7cf2c73",
            ),
        ];
        for (input, blinded, evaluated, value) in cases {
            let sent = blind.blind_keys(&[&input], hash_to_group, &|_| ());
            assert_eq!(sent, bytes::<ELEMENT>(blinded));
            let answered = key.blind_elements(&sent, &|_| ()).expect("an element");
            assert_eq!(answered, bytes::<ELEMENT>(evaluated));
            let element = blind.inverse().blind_elements(&answered, &|_| ()).expect("an element");
            assert_eq!(
                element,
                key.blind_keys(&[&input], hash_to_group, &|_| ()),
                "the data holder's computation"
            );
            let element = element.try_into().expect("an element");
            assert_eq!(finalize(&input, &element), bytes(value));
        }
    }
}
