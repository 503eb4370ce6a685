//! Content of a session's packets: a chunk of a message, a report of the chunks that arrived, or a farewell.
//!
//! The other end belongs to another organisation. The caller of [`Body::decode`] drops content that does not
//! decode.

use crate::session::{AROUND, LARGEST_PLAIN};

const DATA: u8 = 1;
const REPORT: u8 = 2;
const FAREWELL: u8 = 3;
const DATA_HEADER: usize = 1 + 8 + 8 + 8 + 4 + 1;

/// Number of bytes of a message in one packet; Noise allows at most 65,535 in all.
pub(crate) const CHUNK: usize = 65_000;
const _: () = assert!(CHUNK + DATA_HEADER <= LARGEST_PLAIN);

/// Largest packet that an end sends, in bytes.
pub(crate) const LARGEST_SENT: usize = AROUND + DATA_HEADER + CHUNK;

/// Maximum number of chunks in transit: 8.3 MB.
pub(crate) const WINDOW: u32 = 128;

/// Largest message, in bytes.
pub const LARGEST_MESSAGE: u64 = 1 << 30;

/// Purpose of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A request or an answer.
    Content,
    /// Replaces an answer that is larger than the other end accepts: the size of the answer, in 8 bytes.
    TooLarge,
}

/// Properties that all chunks of a message share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) number: u64,
    /// Size in bytes.
    pub(crate) total: u64,
    pub(crate) purpose: Purpose,
}

impl Message {
    /// Describes the message that has these bytes.
    pub(crate) fn for_bytes(number: u64, bytes: &[u8], purpose: Purpose) -> Self {
        Self { number, total: bytes.len() as u64, purpose }
    }

    /// Returns the number of chunks, at least one.
    pub(crate) fn chunks(&self) -> u32 {
        self.total.div_ceil(CHUNK as u64).max(1) as u32
    }

    /// Returns the range of a chunk's bytes.
    pub(crate) fn range(&self, index: u32) -> std::ops::Range<usize> {
        let start = index as usize * CHUNK;
        start..(start + CHUNK).min(self.total as usize)
    }
}

/// Report of the chunks that one end has of the message that it is receiving.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Report {
    /// Number of the message, or 0 for none.
    pub(crate) number: u64,
    /// All chunks before this one have arrived.
    pub(crate) base: u32,
    /// Bit mask of the chunks from `base` on that arrived.
    pub(crate) beyond: u128,
    /// Serial number of the last data packet; `held` is the time that the end held it, in microseconds.
    pub(crate) echo: u64,
    pub(crate) held: u32,
    /// Number of packets that could not be read.
    pub(crate) unreadable: u32,
    /// True if this end computes the answer.
    pub(crate) computing: bool,
}

/// Content of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    Data { message: Message, serial: u64, index: u32, bytes: &'a [u8] },
    Report(Report),
    /// This end has ended. Earlier versions ignore it.
    Farewell,
}

impl<'a> Body<'a> {
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        into.clear();
        match self {
            Self::Data { message, serial, index, bytes } => {
                into.push(DATA);
                into.extend(serial.to_le_bytes());
                into.extend(message.number.to_le_bytes());
                into.extend(message.total.to_le_bytes());
                into.extend(index.to_le_bytes());
                into.push(u8::from(message.purpose == Purpose::TooLarge));
                into.extend_from_slice(bytes);
            }
            Self::Report(report) => {
                into.push(REPORT);
                into.extend(report.number.to_le_bytes());
                into.extend(report.base.to_le_bytes());
                into.extend(report.beyond.to_le_bytes());
                into.extend(report.echo.to_le_bytes());
                into.extend(report.held.to_le_bytes());
                into.extend(report.unreadable.to_le_bytes());
                into.push(u8::from(report.computing));
            }
            Self::Farewell => into.push(FAREWELL),
        }
    }

    /// Decodes a packet. Returns `None` if the bytes are not a packet of this version, or if its numbers
    /// contradict each other.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            DATA => {
                let serial = u64::from_le_bytes(take(&mut rest)?);
                let number = u64::from_le_bytes(take(&mut rest)?);
                let total = u64::from_le_bytes(take(&mut rest)?);
                let index = u32::from_le_bytes(take(&mut rest)?);
                let purpose = match take(&mut rest)? {
                    [0] => Purpose::Content,
                    [1] => Purpose::TooLarge,
                    _ => return None,
                };
                let message = Message { number, total, purpose };
                let fits = number > 0
                    && total <= LARGEST_MESSAGE
                    && index < message.chunks()
                    && message.range(index).len() == rest.len();
                fits.then_some(Self::Data { message, serial, index, bytes: rest })
            }
            REPORT => {
                let report = Report {
                    number: u64::from_le_bytes(take(&mut rest)?),
                    base: u32::from_le_bytes(take(&mut rest)?),
                    beyond: u128::from_le_bytes(take(&mut rest)?),
                    echo: u64::from_le_bytes(take(&mut rest)?),
                    held: u32::from_le_bytes(take(&mut rest)?),
                    unreadable: u32::from_le_bytes(take(&mut rest)?),
                    computing: take::<1>(&mut rest)? == [1],
                };
                rest.is_empty().then_some(Self::Report(report))
            }
            FAREWELL => rest.is_empty().then_some(Self::Farewell),
            _ => None,
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_as_they_were_written_and_never_in_part() {
        let message = Message { number: 3, total: CHUNK as u64 + 2, purpose: Purpose::Content };
        let refusal = Message { number: 4, total: 8, purpose: Purpose::TooLarge };
        let report =
            Report { number: 9, base: 4, beyond: 5, echo: 6, held: 7, unreadable: 8, computing: true };
        for body in [
            Body::Data { message, serial: 5, index: 1, bytes: &[1, 2] },
            Body::Data { message: refusal, serial: 5, index: 0, bytes: &[1; 8] },
            Body::Report(report),
            Body::Farewell,
        ] {
            let mut bytes = Vec::new();
            body.encode(&mut bytes);
            assert_eq!(Body::decode(&bytes), Some(body));
            for end in 0..bytes.len() {
                assert_eq!(Body::decode(&bytes[..end]), None, "{end} bytes");
            }
            bytes.push(0);
            assert_eq!(Body::decode(&bytes), None);
        }
    }

    #[test]
    fn a_chunk_outside_its_message_is_refused() {
        let contradictions = [(0, 0, 0, 0), (1, LARGEST_MESSAGE + 1, 0, CHUNK), (1, 5, 1, 0), (1, 5, 0, 4)];
        for (number, total, index, length) in contradictions {
            let message = Message { number, total, purpose: Purpose::Content };
            let mut bytes = Vec::new();
            Body::Data { message, serial: 1, index, bytes: &vec![0; length] }.encode(&mut bytes);
            assert_eq!(Body::decode(&bytes), None, "{message:?}");
        }
    }

    #[test]
    fn chunks_cover_a_message() {
        for total in [0, 1, CHUNK as u64, CHUNK as u64 + 1, LARGEST_MESSAGE] {
            let message = Message { number: 1, total, purpose: Purpose::Content };
            let last = message.range(message.chunks() - 1);
            assert_eq!(last.end as u64, total);
            assert!(last.start < last.end || total == 0);
        }
    }
}
