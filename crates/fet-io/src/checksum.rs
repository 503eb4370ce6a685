//! SHA-256 of bytes and of files, and bytes as hexadecimal digits.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of a file's content, read block by block.
pub fn sha256_of_file(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = crate::open(path)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(digest.finalize().into()),
            length => digest.update(&block[..length]),
        }
    }
}

/// Formats each byte as two lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors "" and "abc" of FIPS 180-4, and a file of more than one block.
    #[test]
    fn checksums_match_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hex(&sha256(b"")).as_str(), hex(&sha256(b"abc")).as_str()), (empty, abc));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let long: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        for content in [&b"abc"[..], &long] {
            std::fs::write(file.path(), content).expect("written");
            assert_eq!(sha256_of_file(file.path()).expect("readable"), sha256(content));
        }
        sha256_of_file(Path::new("/nowhere")).expect_err("there is no such file");
    }
}
