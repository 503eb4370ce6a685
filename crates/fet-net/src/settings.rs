//! Settings of both ends in addition to keys and names: this process, and the times and sizes of a link.

use std::sync::Arc;
use std::time::Duration;

use crate::identity::Keys;
use crate::session::{Hello, OLDEST_PROTOCOL, PROTOCOL};
use crate::wire::LARGEST_MESSAGE;

/// This process, as the other ends know it.
#[derive(Debug, Clone)]
pub struct Local {
    /// Keys of the process.
    pub keys: Arc<Keys>,
    /// Random number of this start of the program. A restarted program has lost its memory, and the number
    /// lets the other end detect this.
    pub instance_id: u64,
    /// Free text for the other end, such as the program's version. At most 4096 bytes of it are sent.
    pub about: String,
    /// Newest protocol version that the process speaks; `oldest` is the oldest one.
    pub(crate) version: u16,
    pub(crate) oldest: u16,
}

impl Local {
    /// Creates the description of this process, with a new instance ID.
    ///
    /// # Panics
    /// If the system has no randomness.
    pub fn new(keys: impl Into<Arc<Keys>>, about: impl Into<String>) -> Self {
        let mut instance_id = [0; 8];
        getrandom::fill(&mut instance_id).expect("the system gives randomness");
        let instance_id = u64::from_le_bytes(instance_id);
        Self {
            keys: keys.into(),
            instance_id,
            about: about.into(),
            version: PROTOCOL,
            oldest: OLDEST_PROTOCOL,
        }
    }

    /// Returns true if the process speaks a protocol version.
    pub(crate) fn speaks(&self, version: u16) -> bool {
        (self.oldest..=self.version).contains(&version)
    }

    /// Returns the version of the process's answer to an offered version.
    pub(crate) fn answers(&self, offered: u16) -> u16 {
        if self.speaks(offered) { offered } else { self.version }
    }

    pub(crate) fn hello(&self, version: u16, settings: &Settings) -> Hello {
        Hello {
            instance_id: self.instance_id,
            version,
            largest: settings.largest.min(LARGEST_MESSAGE),
            serves: 0,
            about: self.about.clone(),
        }
    }
}

/// The other end of a link, as it described itself under its pinned key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Random number of this start of its program.
    pub instance_id: u64,
    /// Protocol version of the session, or the version that the program offered before it was refused.
    pub version: u16,
    /// Largest message that it accepts, in bytes.
    pub largest: u64,
    /// Its free text, such as its program's version: data, not to be trusted.
    pub about: String,
}

impl From<Hello> for Peer {
    fn from(hello: Hello) -> Self {
        let Hello { instance_id, version, largest, about, .. } = hello;
        Self { instance_id, version, largest, about }
    }
}

/// Times and sizes of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Interval at which each end reports that it is alive while a call is in progress.
    pub heartbeat: Duration,
    /// Time without a sign of the other end after which it counts as lost.
    pub silence: Duration,
    /// Maximum time without progress of a call: no byte of the call goes through, even if the other end is
    /// heard.
    pub patience: Duration,
    /// Largest message that this end accepts, in bytes; at most 1 GiB.
    pub largest: u64,
}

impl Default for Settings {
    /// Returns a heartbeat of 2 s, a silence of 15 s, a patience of 10 minutes, and messages of 1 GiB.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(15),
            patience: Duration::from_secs(600),
            largest: LARGEST_MESSAGE,
        }
    }
}
