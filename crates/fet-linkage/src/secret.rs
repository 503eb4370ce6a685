//! Secrets of the encodings, one for each purpose, derived from a shared secret. Dropping a secret clears its
//! memory.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Derives the secret for `purpose` from `shared`. Secrets for different purposes reveal nothing about each
/// other.
pub fn derive(shared: &[u8], purpose: &str) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(shared).expect("HMAC takes keys of any length");
    mac.update(b"fet linkage secret v1\0");
    mac.update(purpose.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// Derives the secret for `purpose` in the project with this salt, by HKDF (RFC 5869). The secrets of one
/// project reveal nothing about those of another project.
pub fn for_project(shared: &[u8], salt: &[u8], purpose: &str) -> Zeroizing<[u8; 32]> {
    let mut secret = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), shared)
        .expand_multi_info(&[b"fet linkage v1\0", purpose.as_bytes()], &mut secret[..])
        .expect("HKDF gives up to 255 blocks of 32 bytes");
    secret
}

#[cfg(test)]
mod tests {
    use super::{derive, for_project};

    #[test]
    fn projects_have_different_secrets() {
        let all = [
            for_project(b"a", b"1", "x"),
            for_project(b"a", b"2", "x"),
            for_project(b"b", b"1", "x"),
            for_project(b"a", b"1", "y"),
        ];
        assert!((0..4).all(|a| (0..a).all(|b| all[a] != all[b])));
    }

    #[test]
    fn purposes_and_secrets_give_different_keys() {
        let all = [derive(b"a", "clk"), derive(b"a", "pivots"), derive(b"b", "clk")];
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
        assert_eq!(all[0], derive(b"a", "clk"));
    }
}
