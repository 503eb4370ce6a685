//! Start of a session: two messages, one from the primary and one from the party, each with a greeting.
//!
//! The first message may be a replay. The session that answers it counts only once a packet of the session
//! arrives.

use snow::{Builder, HandshakeState};

use super::{FIRST, SECOND, Session};
use crate::identity::{Keys, PublicIdentity};
use crate::names::Route;

const PATTERN: &str = "Noise_KK_25519_ChaChaPoly_BLAKE2s";
/// Number of bytes of an ephemeral key and a tag.
const OVERHEAD: usize = 32 + 16;
/// Maximum length of the free text of a greeting, in bytes.
pub(crate) const LONGEST_ABOUT: usize = 4096;
/// Value in place of a party's instance id: the primary has found two processes with that party's key.
pub(crate) const TWICE: u64 = u64::MAX;
const LONGEST_HELLO: usize = 8 + 2 + 8 + 8 + LONGEST_ABOUT;

/// Route, this end's keys, and the pinned key of the other end.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) route: &'a Route,
    pub(crate) keys: &'a Keys,
    pub(crate) other: &'a PublicIdentity,
}

/// Greeting in which an end describes itself in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) instance_id: u64,
    pub(crate) version: u16,
    /// Largest message that the end accepts, in bytes.
    pub(crate) largest: u64,
    /// For a party: the instance ID of the primary's program if the party answers this program, otherwise 0.
    /// For a primary: 0 if it wants a session, otherwise the instance ID of the party that it has a session
    /// with, or [`TWICE`].
    pub(crate) serves: u64,
    pub(crate) about: String,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut about = self.about.as_str();
        while about.len() > LONGEST_ABOUT {
            about = &about[..about.floor_char_boundary(LONGEST_ABOUT)];
        }
        let mut bytes = Vec::with_capacity(26 + about.len());
        bytes.extend(self.instance_id.to_le_bytes());
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.largest.to_le_bytes());
        bytes.extend(self.serves.to_le_bytes());
        bytes.extend(about.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (instance_id, rest) = bytes.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (largest, rest) = rest.split_first_chunk()?;
        let (serves, about) = rest.split_first_chunk()?;
        Some(Self {
            instance_id: u64::from_le_bytes(*instance_id),
            version: u16::from_le_bytes(*version),
            largest: u64::from_le_bytes(*largest),
            serves: u64::from_le_bytes(*serves),
            about: String::from_utf8_lossy(about).into_owned(),
        })
    }
}

/// Handshake that the primary began.
pub(crate) struct Initiation {
    state: Box<HandshakeState>,
    /// First message, which the primary sends until it is answered.
    pub(crate) packet: Vec<u8>,
}

impl Initiation {
    /// Begins a handshake with fresh keys.
    pub(crate) fn new(ends: Ends<'_>, hello: &Hello) -> Self {
        let version = hello.version;
        let mut state = Box::new(build(ends, version, true));
        let hello = hello.encode();
        let mut packet = vec![0; 3 + OVERHEAD + hello.len()];
        packet[0] = FIRST;
        packet[1..3].copy_from_slice(&version.to_le_bytes());
        state.write_message(&hello, &mut packet[3..]).expect("a greeting is within Noise's limit");
        Self { state, packet }
    }

    /// Returns the session if `packet` is the other end's answer. Any other packet changes nothing.
    pub(crate) fn finish(mut self, packet: &[u8]) -> Result<(Session, Hello), Self> {
        let mut hello = [0; LONGEST_HELLO];
        if packet.first() != Some(&SECOND) || packet.len() > 1 + OVERHEAD + LONGEST_HELLO {
            return Err(self);
        }
        let Ok(length) = self.state.read_message(&packet[1..], &mut hello) else { return Err(self) };
        let Some(hello) = Hello::decode(&hello[..length]) else { return Err(self) };
        Ok((session(*self.state), hello))
    }
}

/// Returns the session that answers the first message of a handshake, the other end's greeting, and the
/// answer. `ours` returns this end's greeting. Returns `None` if the pinned identity did not make the message
/// for this route.
pub(crate) fn respond(
    ends: Ends<'_>,
    ours: impl FnOnce(&Hello) -> Hello,
    packet: &[u8],
) -> Option<(Session, Hello, Vec<u8>)> {
    let (header, message) = packet.split_first_chunk::<3>()?;
    if header[0] != FIRST || message.len() > OVERHEAD + LONGEST_HELLO {
        return None;
    }
    let version = u16::from_le_bytes([header[1], header[2]]);
    let mut state = build(ends, version, false);
    let mut hello = [0; LONGEST_HELLO];
    let length = state.read_message(message, &mut hello).ok()?;
    let hello = Hello::decode(&hello[..length]).filter(|hello| hello.version == version)?;
    let ours = ours(&hello).encode();
    let mut answer = vec![0; 1 + OVERHEAD + ours.len()];
    answer[0] = SECOND;
    state.write_message(&ours, &mut answer[1..]).ok()?;
    Some((session(state), hello, answer))
}

fn session(state: HandshakeState) -> Session {
    let hash = state.get_handshake_hash().to_vec();
    Session::new(state.into_stateless_transport_mode().expect("both messages were exchanged"), &hash)
}

fn build(ends: Ends<'_>, version: u16, initiator: bool) -> HandshakeState {
    let mut prologue = b"fet-net".to_vec();
    prologue.extend(version.to_le_bytes());
    for name in [&ends.route.run, &ends.route.primary, &ends.route.party] {
        prologue.push(name.as_str().len() as u8);
        prologue.extend(name.as_str().as_bytes());
    }
    let (secret, other) = (ends.keys.exchange(), ends.other.exchange());
    let build = || -> Result<HandshakeState, snow::Error> {
        let builder = Builder::new(PATTERN.parse()?);
        let builder = builder.local_private_key(secret.as_slice())?.remote_public_key(&other)?;
        let builder = builder.prologue(&prologue)?;
        if initiator { builder.build_initiator() } else { builder.build_responder() }
    };
    build().expect("the pattern and the lengths of the keys are fixed")
}
