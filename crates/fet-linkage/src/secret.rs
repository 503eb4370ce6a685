//! Secrets of the encodings: derived from what the parties share, one for each purpose; memory is cleared when they are dropped.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The secret for `purpose` that follows from `shared`; secrets for two purposes say nothing of each other.
pub fn derive(shared: &[u8], purpose: &str) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(shared).expect("HMAC takes keys of any length");
    mac.update(b"fet linkage secret v1\0");
    mac.update(purpose.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// The secret for `purpose` in the project of this salt, by HKDF (RFC 5869): what is known of one project's says nothing of another's.
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
    fn projects_are_apart() {
        let all = [
            for_project(b"a", b"1", "x"),
            for_project(b"a", b"2", "x"),
            for_project(b"b", b"1", "x"),
            for_project(b"a", b"1", "y"),
        ];
        assert!((0..4).all(|a| (0..a).all(|b| all[a] != all[b])));
    }

    #[test]
    fn purposes_and_secrets_are_apart() {
        let all = [derive(b"a", "clk"), derive(b"a", "pivots"), derive(b"b", "clk")];
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
        assert_eq!(all[0], derive(b"a", "clk"));
    }
}
