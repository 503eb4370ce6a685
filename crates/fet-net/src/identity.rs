//! Identity of a party: one key pair, whose public half the other parties know in advance.
//!
//! The same Ed25519 key signs the relay's challenge and, in its X25519 form, begins the sessions between
//! parties. Two organisations exchange one short text, `U...`, over a channel that the relay does not
//! control.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::nkey::{self, NkeyError};

/// Secret key of a party. `Debug` does not show it, and memory is cleared on drop.
pub struct Keys(SigningKey);

/// Public half of [`Keys`], displayed and parsed as 56 characters `U...`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicIdentity([u8; 32]);

/// Failure to read or create keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file cannot be read.
    #[error("the key file {path} cannot be read: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("the key file {path} cannot be written: {error}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The file exists already; a key file is never overwritten.
    #[error("{0} exists already, and a key is never overwritten: name another file, or move this one")]
    Exists(PathBuf),
    /// Other users may read the file.
    #[error("other users may read the key file {path} (mode {mode:04o}): run `chmod 600 {path}`")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// The file does not contain exactly one key.
    #[error("the key file {path} has {lines} lines that are not comments; exactly one (SU...) is expected")]
    Lines {
        /// The file.
        path: PathBuf,
        /// Number of lines that are neither empty nor a comment.
        lines: usize,
    },
    /// The text is not a key.
    #[error("the key in {path} cannot be used: {error}")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// Reason why the text is not a key.
        error: NkeyError,
    },
}

impl Keys {
    /// Creates new keys from the system's randomness.
    ///
    /// # Panics
    /// If the system has no randomness.
    pub fn generate() -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut()).expect("the system gives randomness");
        Self(SigningKey::from_bytes(&seed))
    }

    /// Reads a key file. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// If the file cannot be read, other users may read it, or it does not contain exactly one seed `SU...`.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let unreadable = |error| IdentityError::Unreadable { path: path.to_owned(), error };
        refuse_exposed(path)?;
        let text = Zeroizing::new(fs::read_to_string(path).map_err(unreadable)?);
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut found = lines();
        let (Some(line), None) = (found.next(), found.next()) else {
            return Err(IdentityError::Lines { path: path.to_owned(), lines: lines().count() });
        };
        let seed = nkey::decode_seed(line);
        let seed = seed.map_err(|error| IdentityError::NotAKey { path: path.to_owned(), error })?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Creates new keys and writes them to a new file that only its owner may read (mode 0600).
    ///
    /// # Errors
    /// If the file exists already or cannot be written.
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        let keys = Self::generate();
        let seed = nkey::encode_seed(keys.0.as_bytes());
        let text = Zeroizing::new(format!(
            "# Secret key of {}. Anyone with this key can act as this party: keep it secret.\n{}\n",
            keys.public(),
            seed.as_str()
        ));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::Exists(path.to_owned()),
            _ => IdentityError::Unwritable { path: path.to_owned(), error },
        };
        let mut file = options.open(path).map_err(failed)?;
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // The first error is the one to report.
            let _ = fs::remove_file(path);
            return Err(failed(error));
        }
        Ok(keys)
    }

    /// Returns the public identity, which other parties pin.
    pub fn public(&self) -> PublicIdentity {
        PublicIdentity(self.0.verifying_key().to_bytes())
    }

    /// Derives a secret from the key, a different one for each purpose, as a source of further keys.
    pub fn secret(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        let mut text = Zeroizing::new(b"fet-net secret\0".to_vec());
        text.extend_from_slice(self.0.as_bytes());
        text.extend_from_slice(purpose.as_bytes());
        Zeroizing::new(fet_io::sha256(&text))
    }

    /// Signs the relay's challenge.
    pub(crate) fn sign(&self, challenge: &[u8]) -> [u8; 64] {
        self.0.sign(challenge).to_bytes()
    }

    /// Returns the secret half of the key in its X25519 form.
    pub(crate) fn exchange(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_scalar_bytes())
    }
}

impl PublicIdentity {
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns the identity of a point of the curve, unless the point is weak.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Some(Self(bytes)),
            _ => None,
        }
    }

    /// Returns the key in its X25519 form.
    ///
    /// # Panics
    /// Never: every public identity is a point of the curve.
    pub(crate) fn exchange(&self) -> [u8; 32] {
        let key = VerifyingKey::from_bytes(&self.0).expect("checked when it was made");
        key.to_montgomery().to_bytes()
    }
}

impl FromStr for PublicIdentity {
    type Err = NkeyError;

    fn from_str(text: &str) -> Result<Self, NkeyError> {
        let bytes = nkey::decode_public(text)?;
        Self::from_bytes(bytes).ok_or(NkeyError::NotAKey)
    }
}

impl fmt::Display for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&nkey::encode_public(&self.0))
    }
}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys of {}", self.public())
    }
}

#[cfg(unix)]
fn refuse_exposed(path: &Path) -> Result<(), IdentityError> {
    let found = fs::metadata(path);
    let found = found.map_err(|error| IdentityError::Unreadable { path: path.to_owned(), error })?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777;
    let owners = [std::os::unix::fs::MetadataExt::uid(&found), std::os::unix::fs::MetadataExt::gid(&found)];
    if mode & 0o077 == 0 || is_mounted(mode, owners) {
        Ok(())
    } else {
        Err(IdentityError::Exposed { path: path.to_owned(), mode })
    }
}

/// Returns true if root provided the file for a group to read, as container secrets are: read-only, for its
/// user and group.
#[cfg(unix)]
fn is_mounted(mode: u32, [user, group]: [u32; 2]) -> bool {
    mode & !0o440 == 0 && (user == 0 || group == 0)
}

#[cfg(not(unix))]
fn refuse_exposed(_: &Path) -> Result<(), IdentityError> {
    Ok(())
}

#[cfg(test)]
mod tests;
