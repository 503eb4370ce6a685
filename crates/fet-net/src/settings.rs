//! What both ends are told besides keys and names: this process, and the times and sizes of a link.

use std::sync::Arc;
use std::time::Duration;

use crate::identity::Keys;
use crate::session::{Hello, PROTOCOL};
use crate::wire::LARGEST_MESSAGE;

/// This process, as the other ends know it.
#[derive(Debug, Clone)]
pub struct Local {
    /// Its keys.
    pub keys: Arc<Keys>,
    /// A random number of this start of the program: a party that starts again has lost what it had in memory, and the
    /// other end is told.
    pub incarnation: u64,
    /// Free text for the other end, such as the program's version; at most 4096 bytes of it are sent.
    pub about: String,
    pub(crate) version: u16,
}

impl Local {
    /// This process, with a new incarnation.
    ///
    /// # Panics
    /// If the system has no randomness.
    pub fn new(keys: impl Into<Arc<Keys>>, about: impl Into<String>) -> Self {
        let mut incarnation = [0; 8];
        getrandom::fill(&mut incarnation).expect("the system gives randomness");
        let incarnation = u64::from_le_bytes(incarnation);
        Self { keys: keys.into(), incarnation, about: about.into(), version: PROTOCOL }
    }

    pub(crate) fn hello(&self, settings: &Settings) -> Hello {
        Hello {
            incarnation: self.incarnation,
            version: self.version,
            largest: settings.largest.min(LARGEST_MESSAGE),
            serves: 0,
            about: self.about.clone(),
        }
    }
}

/// The other end of a link, as it said of itself under its pinned key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Which start of its program it is.
    pub incarnation: u64,
    /// Its protocol version.
    pub version: u16,
    /// The largest message that it takes, in bytes.
    pub largest: u64,
    /// Its free text, such as its program's version: data, not to be trusted.
    pub about: String,
}

impl From<Hello> for Peer {
    fn from(hello: Hello) -> Self {
        let Hello { incarnation, version, largest, about, .. } = hello;
        Self { incarnation, version, largest, about }
    }
}

/// Times and sizes of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How often each end says that it is there while a call is under way.
    pub heartbeat: Duration,
    /// The other end is lost after this time without a sign of it.
    pub silence: Duration,
    /// The longest time in which a call makes no progress: no byte of it goes through, whoever is heard meanwhile.
    pub patience: Duration,
    /// The largest message that this end takes, in bytes; 1 GiB at most.
    pub largest: u64,
}

impl Default for Settings {
    /// A heartbeat each 2 s, lost after 15 s, given up after 10 minutes without progress, messages of 1 GiB.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(15),
            patience: Duration::from_secs(600),
            largest: LARGEST_MESSAGE,
        }
    }
}
