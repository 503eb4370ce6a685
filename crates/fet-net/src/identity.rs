//! Who a party is: one key of its own, whose public half the others know in advance.
//!
//! The same Ed25519 key signs the relay's challenge and, in its X25519 form, begins the sessions between parties. One
//! short text, `U...`, is all that two organisations tell each other by a way that the relay does not control.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::nkey::{self, NkeyError};

/// A party's secret key. `Debug` does not show it; memory is cleared when it is dropped.
pub struct Keys(SigningKey);

/// The public half of [`Keys`], displayed and parsed as 56 characters `U...`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicIdentity([u8; 32]);

/// Why there are no keys.
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
    /// The file cannot be made.
    #[error("the key file {path} cannot be written: {error}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// There is a file already; it is never overwritten.
    #[error("{0} exists; a key is never overwritten: name another file, or move it away")]
    Exists(PathBuf),
    /// Others may read the file.
    #[error("others may read the key file {path} (mode {mode:04o}): chmod 600 {path}")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file has no key, or more than one.
    #[error("the key file {path} has {lines} lines that are no comment; one, SU..., is expected")]
    Lines {
        /// The file.
        path: PathBuf,
        /// How many lines are neither empty nor a comment.
        lines: usize,
    },
    /// The text is no key.
    #[error("the key in {path} cannot be used: {error}")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: NkeyError,
    },
}

impl Keys {
    /// New keys, from the system's randomness.
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
    /// If it cannot be read, others may read it, or it is not one seed `SU...`.
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

    /// Makes new keys and writes them to a new file that only its owner may read (mode 0600).
    ///
    /// # Errors
    /// If there is such a file already, or it cannot be written.
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        let keys = Self::generate();
        let seed = nkey::encode_seed(keys.0.as_bytes());
        let text = Zeroizing::new(format!(
            "# The secret key of {}. Whoever has it is this party: show it to nobody.\n{}\n",
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

    /// What the others pin.
    pub fn public(&self) -> PublicIdentity {
        PublicIdentity(self.0.verifying_key().to_bytes())
    }

    /// A secret that follows from the key, another for each purpose: to derive further keys from.
    pub fn secret(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        let mut text = Zeroizing::new(b"fet-net secret\0".to_vec());
        text.extend_from_slice(self.0.as_bytes());
        text.extend_from_slice(purpose.as_bytes());
        Zeroizing::new(fet_io::sha256(&text))
    }

    /// The signature of the relay's challenge.
    pub(crate) fn sign(&self, challenge: &[u8]) -> [u8; 64] {
        self.0.sign(challenge).to_bytes()
    }

    /// The secret half of the key in its X25519 form.
    pub(crate) fn exchange(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_scalar_bytes())
    }
}

impl PublicIdentity {
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The identity of a point of the curve that is not weak.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Some(Self(bytes)),
            _ => None,
        }
    }

    /// The key in its X25519 form.
    ///
    /// # Panics
    /// Never: a public identity is made only of a point of the curve.
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

/// Whether root put the file there for a group to read, as the secrets of a container are: read-only, for its user and group.
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
