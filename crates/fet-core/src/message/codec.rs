//! Messages as bytes.
//!
//! # The frame
//!
//! This section describes the frame for readers in other languages. All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `FeTm` |
//! | 4..6 | first version of the protocol that has this message, [`Message::since`], u16 |
//! | 6..8 | 0 for a request, 1 for an answer, u16 |
//! | 8..16 | length of the body, u64 |
//! | 16..24 | XXH3-64 of the bytes 0..16 and of the body |
//! | 24.. | the body |
//!
//! The body is a [`Request`], or an [`Answer`], in postcard 1
//! (<https://postcard.jamesmunns.com/wire-format>): an enum is the varint number of its variant and then its
//! fields, in the order of their declaration. Arrays of numbers are byte strings: a varint length in
//! bytes, then raw words.
//!
//! The checksum detects accidental corruption. It does not protect against an attacker, who can compute it:
//! the transport must authenticate the sender.
//!
//! [`decode`] checks the length first, compares every inner length with the remaining bytes before it
//! allocates, and refuses trailing bytes. It allocates at most a small multiple of the frame.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use super::{Answer, OLDEST_PROTOCOL, PROTOCOL_VERSION, Request};

/// Largest frame, in bytes.
pub const LARGEST_FRAME: usize = 1 << 30;

const MAGIC: [u8; 4] = *b"FeTm";
const HEADER: usize = 24;

/// A message between parties: a [`Request`] or an [`Answer`].
pub trait Message: Serialize + DeserializeOwned {
    /// Number of the message's kind in the frame.
    const KIND: u16;

    /// Returns the first version of the protocol that has this message in its present form.
    ///
    /// The frame names it, so that an older program reads every message that it knows, and says which version it
    /// lacks for the others.
    fn since(&self) -> u16 {
        OLDEST_PROTOCOL
    }
}

impl Message for Request {
    const KIND: u16 = 0;
}

impl Message for Answer {
    const KIND: u16 = 1;
}

/// Bytes that are not a message, or a message that is too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The frame exceeds the size limit.
    #[error("a frame of {length} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Length of the frame.
        length: usize,
        /// Maximum length of a frame.
        limit: usize,
    },
    /// The frame is too short or too long.
    #[error("the frame states a length of {stated} bytes; it has {found}")]
    Length {
        /// The stated length.
        stated: u64,
        /// The actual length.
        found: usize,
    },
    /// The bytes do not begin like a frame.
    #[error("the bytes are not a frame of this protocol")]
    NoFrame,
    /// The program does not speak the version of the protocol that the message needs.
    #[error(
        "the message needs version {found} of the protocol, but its receiver speaks version {PROTOCOL_VERSION}: upgrade \
         the older program"
    )]
    Version {
        /// Version that the message needs.
        found: u16,
    },
    /// The frame holds a request instead of an answer, or the reverse.
    #[error("the frame holds the wrong kind of message: {found} instead of {expected}")]
    Kind {
        /// Kind of the message in the frame.
        found: &'static str,
        /// Expected kind.
        expected: &'static str,
    },
    /// The checksum does not match.
    #[error("the frame was altered in transit: its checksum does not match")]
    Altered,
    /// The body is not a message.
    #[error("the body is not a message: {0}")]
    Body(String),
}

/// Encodes `message` as a frame.
pub fn encode<M: Message>(message: &M) -> Result<Vec<u8>, CodecError> {
    let mut frames = Vec::with_capacity(HEADER + 64);
    encode_behind(&mut frames, message)?;
    Ok(frames)
}

/// Appends `message` as a frame to `frames`. If the message is too large, `frames` stays unchanged.
pub fn encode_behind<M: Message>(frames: &mut Vec<u8>, message: &M) -> Result<(), CodecError> {
    let start = frames.len();
    let mut all = std::mem::take(frames);
    all.extend(MAGIC);
    all.extend(message.since().to_le_bytes());
    all.extend(M::KIND.to_le_bytes());
    all.resize(start + HEADER, 0);
    *frames = postcard::to_extend(message, all).map_err(|error| CodecError::Body(error.to_string()))?;
    let frame = &mut frames[start..];
    let length = frame.len();
    if length > LARGEST_FRAME {
        frames.truncate(start);
        return Err(CodecError::TooLarge { length, limit: LARGEST_FRAME });
    }
    frame[8..16].copy_from_slice(&((length - HEADER) as u64).to_le_bytes());
    let sum = checksum(frame);
    frame[16..HEADER].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// Splits concatenated frames by the lengths that they state. Bytes that cannot be split stay in one piece,
/// and [`decode`] reports the problem.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let stated = (bytes.len() >= HEADER).then(|| word(bytes, 8).saturating_add(HEADER as u64));
        match stated {
            Some(end) if end < bytes.len() as u64 => {
                let (frame, others) = bytes.split_at(end as usize);
                rest = Some(others);
                Some(frame)
            }
            _ => Some(bytes),
        }
    })
}

/// Decodes the message in a frame of at most `limit` bytes.
pub fn decode<M: Message>(frame: &[u8], limit: usize) -> Result<M, CodecError> {
    let limit = limit.min(LARGEST_FRAME);
    if frame.len() > limit {
        return Err(CodecError::TooLarge { length: frame.len(), limit });
    }
    if frame.len() < HEADER || frame[..4] != MAGIC {
        return Err(CodecError::NoFrame);
    }
    let version = u16::from_le_bytes([frame[4], frame[5]]);
    if !(OLDEST_PROTOCOL..=PROTOCOL_VERSION).contains(&version) {
        return Err(CodecError::Version { found: version });
    }
    let stated = word(frame, 8);
    if stated != (frame.len() - HEADER) as u64 {
        return Err(CodecError::Length { stated: stated.saturating_add(HEADER as u64), found: frame.len() });
    }
    if word(frame, 16) != checksum(frame) {
        return Err(CodecError::Altered);
    }
    let name = |kind: u16| if kind == Request::KIND { "request" } else { "answer" };
    let kind = u16::from_le_bytes([frame[6], frame[7]]);
    if kind != M::KIND {
        return Err(CodecError::Kind { found: name(kind), expected: name(M::KIND) });
    }
    let body = |error: postcard::Error| match error {
        // The error's own text names a Rust type.
        postcard::Error::DeserializeBadVarint => CodecError::Body("a number is too long".to_string()),
        error => CodecError::Body(error.to_string()),
    };
    let (message, rest) = postcard::take_from_bytes(&frame[HEADER..]).map_err(body)?;
    if !rest.is_empty() {
        return Err(CodecError::Body(format!("{} bytes follow the message", rest.len())));
    }
    Ok(message)
}

fn checksum(frame: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&frame[..16]);
    sum.update(&frame[HEADER..]);
    sum.digest()
}

fn word(frame: &[u8], place: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&frame[place..place + 8]);
    u64::from_le_bytes(bytes)
}
