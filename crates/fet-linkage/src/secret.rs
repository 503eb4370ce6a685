//! Secrets of the encodings: derived from what the parties share, one for each purpose.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret for `purpose` that follows from `shared`; secrets for two purposes say nothing of each other.
pub fn derive(shared: &[u8], purpose: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(shared).expect("HMAC takes keys of any length");
    mac.update(b"fet linkage secret v1\0");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::derive;

    #[test]
    fn purposes_and_secrets_are_apart() {
        let all = [derive(b"a", "clk"), derive(b"a", "pivots"), derive(b"b", "clk")];
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
        assert_eq!(all[0], derive(b"a", "clk"));
    }
}
