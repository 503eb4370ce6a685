//! Records of a ledger as bytes. The ledger defines their joint meaning.

use fet_io::PAYLOAD;

/// Digest of a release: 8 bytes for its sample of records, and 16 for the whole release.
pub(in crate::secondary) type Digest = [u8; 24];

/// Returns the digest of a release, from a digest of everything that determines its sample and a digest of
/// the whole release.
pub(in crate::secondary) fn digest(sample: &[u8; 32], release: &[u8; 32]) -> Digest {
    let mut digest = Digest::default();
    digest[..8].copy_from_slice(&sample[..8]);
    digest[8..].copy_from_slice(&release[..16]);
    digest
}

/// Returns the part of a digest that covers the sample.
pub(super) fn sample(digest: &Digest) -> &[u8] {
    &digest[..8]
}

/// One release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::secondary) struct Entry {
    /// `Round::key` of its round.
    pub(in crate::secondary) round: u64,
    pub(in crate::secondary) attempt: u32,
    /// Number of parties that took part.
    pub(in crate::secondary) active: usize,
    pub(in crate::secondary) digest: Digest,
}

/// A record of the ledger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Record {
    /// Start of a session: the run, and the boot of the machine.
    Start {
        boot: [u8; 16],
        run: [u8; 16],
    },
    /// Reservation: up to `count` releases with at least `active` parties may follow before the next record
    /// reaches the disk.
    Reserve {
        count: u64,
        active: usize,
    },
    Release(Entry),
    /// Number of releases of an earlier session whose records were lost.
    Lost {
        count: u64,
        active: usize,
    },
    /// End of the session: it made no other release.
    Close,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; PAYLOAD] {
        let mut bytes = [0; PAYLOAD];
        let mut numbers = |kind: u8, active: usize, number: u64| {
            bytes[0] = kind;
            bytes[4..8].copy_from_slice(&(active as u32).to_le_bytes());
            bytes[8..16].copy_from_slice(&number.to_le_bytes());
        };
        match self {
            Self::Start { boot, run } => {
                numbers(1, 0, 0);
                bytes[16..32].copy_from_slice(&boot);
                bytes[32..].copy_from_slice(&run);
            }
            Self::Reserve { count, active } => numbers(2, active, count),
            Self::Release(Entry { round, attempt, active, digest }) => {
                numbers(3, active, round);
                bytes[16..20].copy_from_slice(&attempt.to_le_bytes());
                bytes[24..].copy_from_slice(&digest);
            }
            Self::Lost { count, active } => numbers(4, active, count),
            Self::Close => numbers(5, 0, 0),
        }
        bytes
    }

    /// Decodes a record; returns `None` if this program writes no such record.
    pub(super) fn of_bytes(bytes: &[u8; PAYLOAD]) -> Option<Self> {
        let active = u32::from_le_bytes(bytes[4..8].try_into().ok()?) as usize;
        let number = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
        Some(match bytes[0] {
            1 => Self::Start { boot: bytes[16..32].try_into().ok()?, run: bytes[32..].try_into().ok()? },
            2 => Self::Reserve { count: number, active },
            3 => {
                let attempt = u32::from_le_bytes(bytes[16..20].try_into().ok()?);
                Self::Release(Entry { round: number, attempt, active, digest: bytes[24..].try_into().ok()? })
            }
            4 => Self::Lost { count: number, active },
            5 => Self::Close,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_bytes_and_back() {
        for record in [
            Record::Start { boot: [1; 16], run: [2; 16] },
            Record::Reserve { count: u64::MAX, active: 3 },
            Record::Release(Entry { round: 1 << 60, attempt: 7, active: 4, digest: [9; 24] }),
            Record::Lost { count: 6, active: 2 },
            Record::Close,
        ] {
            assert_eq!(Record::of_bytes(&record.to_bytes()), Some(record));
        }
        assert_eq!(Record::of_bytes(&[7; PAYLOAD]), None);
    }
}
