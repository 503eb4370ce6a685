//! Write-ahead journal: an append-only file of records of equal size.
//!
//! A record has [`PAYLOAD`] bytes and a 16-byte checksum: the start of SHA-256 over the previous checksum and the payload. An appended
//! record survives the process; a durable record survives the machine. A crash of the machine can lose the records after the last
//! durable one ([`Journal::is_torn`]); any other change is an error. Only one process at a time may append.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic::sync_folder;
use crate::sha256;

/// Number of bytes of a record that belong to the caller.
pub const PAYLOAD: usize = 48;
const CHECK: usize = 16;
const RECORD: usize = PAYLOAD + CHECK;

/// A file of records.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Open after the first append.
    file: Option<File>,
    records: u64,
    last: [u8; CHECK],
    torn: bool,
}

/// Error of reading a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A record before the end was changed.
    #[error("record {0} has changed since it was written")]
    Damaged(u64),
}

impl Journal {
    /// Opens the journal at `path` and reads its records. Without a file the journal is empty; the first append creates the file.
    pub fn open(path: &Path) -> Result<(Self, Vec<[u8; PAYLOAD]>), JournalError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let (whole, rest) = bytes.as_chunks::<RECORD>();
        let mut last = [0; CHECK];
        let mut payloads = Vec::with_capacity(whole.len());
        for record in whole {
            let (payload, found) = record.split_first_chunk::<PAYLOAD>().expect("a record is longer");
            if check(&last, payload) != *found {
                break;
            }
            last.copy_from_slice(found);
            payloads.push(*payload);
        }
        let sound = payloads.len();
        // A crash damages only the end. A valid record after a damaged one means another cause.
        for pair in whole.get(sound..).unwrap_or_default().windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let (_, before) = before.split_first_chunk::<PAYLOAD>().expect("a record is longer");
            let (payload, found) = after.split_first_chunk::<PAYLOAD>().expect("a record is longer");
            if before.try_into().is_ok_and(|before: &[u8; CHECK]| check(before, payload) == *found) {
                return Err(JournalError::Damaged(sound as u64 + 1));
            }
        }
        let torn = sound < whole.len() || !rest.is_empty();
        let journal = Self { path: path.to_path_buf(), file: None, records: sound as u64, last, torn };
        Ok((journal, payloads))
    }

    /// True if the end of the file was lost: records after the last durable one may be missing.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Appends a record, and replaces a torn end. A `durable` record and all records before it are on the disk afterwards. After an error the
    /// record may exist or not; the next append replaces it.
    pub fn append(&mut self, payload: &[u8; PAYLOAD], durable: bool) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let file = File::options().write(true).create(true).truncate(false).open(&self.path)?;
                if self.records == 0 {
                    sync_folder(&self.path)?;
                }
                none.insert(file)
            }
        };
        let start = self.records * RECORD as u64;
        // Two journals of one file would overwrite each other's records.
        if !self.torn && file.metadata()?.len() != start {
            return Err(io::Error::other("another program has changed the file since it was opened"));
        }
        let mut record = [0; RECORD];
        let found = check(&self.last, payload);
        record[..PAYLOAD].copy_from_slice(payload);
        record[PAYLOAD..].copy_from_slice(&found);
        let replaces = std::mem::replace(&mut self.torn, true);
        file.seek(SeekFrom::Start(start))?;
        file.write_all(&record)?;
        if replaces {
            file.set_len(start + RECORD as u64)?;
        }
        if durable || replaces {
            file.sync_all()?;
        }
        self.torn = false;
        self.records += 1;
        self.last = found;
        Ok(())
    }
}

fn check(last: &[u8; CHECK], payload: &[u8; PAYLOAD]) -> [u8; CHECK] {
    let mut all = [0; CHECK + PAYLOAD];
    all[..CHECK].copy_from_slice(last);
    all[CHECK..].copy_from_slice(payload);
    let mut found = [0; CHECK];
    found.copy_from_slice(&sha256(&all)[..CHECK]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u8) -> [u8; PAYLOAD] {
        [number; PAYLOAD]
    }

    fn read(path: &Path) -> (Vec<u8>, bool) {
        let (journal, records) = Journal::open(path).expect("sound");
        assert_eq!(journal.records(), records.len() as u64);
        (records.iter().map(|record| record[7]).collect(), journal.is_torn())
    }

    fn written(path: &Path, records: u8) {
        let (mut journal, _) = Journal::open(path).expect("a new one");
        (0..records).for_each(|number| journal.append(&numbered(number), number == 2).expect("written"));
    }

    #[test]
    fn reads_records_as_appended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/journal");
        assert_eq!(read(&path), (vec![], false));
        assert!(!path.exists(), "there is no file before the first record");
        written(&path, 3);
        let (mut journal, _) = Journal::open(&path).expect("sound");
        journal.append(&numbered(9), true).expect("written");
        assert_eq!(read(&path), (vec![0, 1, 2, 9], false));
    }

    #[test]
    fn reports_and_overwrites_a_torn_end() {
        let folder = tempfile::tempdir().expect("a folder");
        for cut in [1, RECORD - 1, RECORD, RECORD + 5] {
            let path = folder.path().join(format!("{cut}"));
            written(&path, 4);
            let mut bytes = fs::read(&path).expect("there");
            bytes.truncate(4 * RECORD - cut);
            // A file can be longer than its data on the disk.
            bytes.resize(4 * RECORD - cut + 7, 0);
            fs::write(&path, &bytes).expect("writable");
            let left = 4 - cut.div_ceil(RECORD) as u8;
            assert_eq!(read(&path), ((0..left).collect(), true), "{cut}");
            let (mut journal, _) = Journal::open(&path).expect("torn");
            journal.append(&numbered(9), false).expect("written");
            assert_eq!(read(&path), ((0..left).chain([9]).collect(), false), "{cut}");
        }
    }

    #[test]
    fn two_journals_of_one_file_do_not_overwrite_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        written(&path, 2);
        let open = || Journal::open(&path).expect("sound").0;
        let (mut first, mut second) = (open(), open());
        first.append(&numbered(8), false).expect("the first");
        second.append(&numbered(9), false).expect_err("the file has grown");
        first.append(&numbered(7), true).expect("the first goes on");
        assert_eq!(read(&path), (vec![0, 1, 8, 7], false));
    }

    #[test]
    fn refuses_a_flipped_bit_before_other_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        written(&path, 5);
        let sound = fs::read(&path).expect("there");
        for place in 0..3 * RECORD {
            let mut flipped = sound.clone();
            flipped[place] ^= 1 << (place % 8);
            fs::write(&path, &flipped).expect("writable");
            let found = Journal::open(&path).map(|(_, records)| records.len());
            let expected = place / RECORD + 1;
            assert!(
                matches!(found, Err(JournalError::Damaged(at)) if at == expected as u64),
                "{place}: {found:?}"
            );
        }
        // Cuts a record out of the middle.
        fs::write(&path, [&sound[..RECORD], &sound[2 * RECORD..]].concat()).expect("writable");
        assert!(matches!(Journal::open(&path), Err(JournalError::Damaged(2))));
    }
}
