//! A party's ledger: what it has released in a run, written into its folder before it leaves. What that costs is for `account`.
//!
//! A record holds the round, the attempt, how many parties took part, and a digest of the release, keyed by a secret of the
//! party: it is the same if the same bytes would leave before masking. A later session of the run that releases the same again,
//! as a resumed run does, adds nothing; anything else counts beside it. Of the attempts at a sum in one session the last
//! counts, since no other is opened.
//!
//! *When it is on the disk.* A record is with the operating system before its reply leaves, so that it outlives the process. On
//! the disk is a reservation for the next releases, made before the first of them: if the machine ends without an orderly end
//! of the session, what is left of the reservation counts as released. Frozen parties release little, and each of their
//! records goes to the disk.
//!
//! The ledger is of one run, which its settings identify; runs with others have ledgers of their own.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use fet_core::privacy::Tally;
use fet_files::{Journal, JournalError, PAYLOAD};

use crate::report::RESULTS_VERSION;
use crate::state_file::StateError;

/// A digest of a release.
pub(super) type Digest = [u8; 24];

/// One release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    /// `Round::key` of its round.
    pub(super) round: u64,
    pub(super) attempt: u32,
    /// How many parties took part.
    pub(super) active: usize,
    pub(super) digest: Digest,
}

/// A line of the ledger.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Record {
    /// A session begins: the run, and the start of the machine that it runs on.
    Start {
        boot: [u8; 16],
        run: [u8; 16],
    },
    /// So many releases with at least so many parties may follow before more is on the disk.
    Reserve {
        count: u64,
        active: usize,
    },
    Release(Entry),
    /// So many releases of an earlier session whose records were lost.
    Lost {
        count: u64,
        active: usize,
    },
    /// The session ended, and nothing else was released in it.
    Close,
}

impl Record {
    fn to_bytes(self) -> [u8; PAYLOAD] {
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

    fn of_bytes(bytes: &[u8; PAYLOAD]) -> Option<Self> {
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

/// What was released so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    frozen: bool,
    tally: Tally,
    /// If the party is frozen: the fewest parties of each pass over the rows, and how often each portion was released.
    passes: Vec<usize>,
    portions: HashMap<u64, usize>,
    /// The last release, which another attempt at its sum may replace.
    open: Option<Entry>,
}

impl Counted {
    fn new(frozen: bool) -> Self {
        Self { frozen, ..Self::default() }
    }

    /// Adds a release; the one that it replaces, if it is another attempt at the same sum.
    fn add(&mut self, entry: Entry) -> Option<Entry> {
        let again = |open: &Entry| open.round == entry.round && entry.attempt == open.attempt + 1;
        let replaced = self.open.filter(again);
        if replaced.is_none() {
            self.settle();
        }
        self.open = Some(entry);
        replaced
    }

    /// The last release is not replaced any more.
    fn settle(&mut self) {
        let Some(entry) = self.open.take() else { return };
        if !self.frozen {
            return self.tally.add(entry.active, 1);
        }
        let released = self.portions.entry(entry.round).or_default();
        let pass = *released;
        *released += 1;
        match self.passes.get_mut(pass) {
            Some(fewest) => *fewest = entry.active.min(*fewest),
            None => self.passes.push(entry.active),
        }
    }

    fn lose(&mut self, count: u64, active: usize) {
        if self.frozen {
            self.passes.push(active);
        } else {
            self.tally.add(active, count);
        }
    }

    /// The releases as a mechanism accounts for them: all together, or a tally for each pass of a frozen party.
    pub(super) fn tallies(&self) -> Vec<Tally> {
        let mut all = self.clone();
        all.settle();
        if !self.frozen {
            return vec![all.tally];
        }
        let pass = |fewest| {
            let mut tally = Tally::default();
            tally.add(fewest, 1);
            tally
        };
        all.passes.into_iter().map(pass).collect()
    }
}

/// The ledger of one run.
pub(super) struct Ledger {
    /// Nothing where the party keeps its state in memory.
    journal: Option<Journal>,
    path: String,
    start: Record,
    /// Whether this session has written to it.
    started: bool,
    /// What an earlier session had reserved and did not account for.
    lost: Option<(u64, usize)>,
    /// Releases on the disk before they happen: how many are left, with how many parties.
    reserved: Option<(u64, usize)>,
    /// How many are reserved at a time; nothing if each goes to the disk.
    at_a_time: Option<u64>,
    /// What earlier sessions released.
    known: HashSet<Digest>,
    counted: Counted,
}

impl Ledger {
    /// The ledger of the run with these settings in `folder`, or in memory. `planned` is how many releases the run has.
    pub(super) fn open(
        folder: Option<&Path>,
        settings_hash: &[u8; 32],
        frozen: bool,
        planned: u64,
    ) -> Result<Self, StateError> {
        Self::open_at(folder, settings_hash, frozen, planned, boot())
    }

    fn open_at(
        folder: Option<&Path>,
        settings_hash: &[u8; 32],
        frozen: bool,
        planned: u64,
        boot: [u8; 16],
    ) -> Result<Self, StateError> {
        let version = RESULTS_VERSION.to_le_bytes();
        let run = fet_files::sha256(&[b"fet ledger".as_slice(), settings_hash, &version].concat());
        let mut ledger = Self {
            journal: None,
            path: String::new(),
            start: Record::Start { boot, run: run.first_chunk().copied().unwrap_or_default() },
            started: false,
            lost: None,
            reserved: None,
            at_a_time: (!frozen).then(|| (planned / 16).clamp(1, 256)),
            known: HashSet::new(),
            counted: Counted::new(frozen),
        };
        let Some(folder) = folder else { return Ok(ledger) };
        let path = folder.join(format!("ledger-{}", fet_files::hex(&run[..8])));
        ledger.path = path.display().to_string();
        let (journal, records) = Journal::open(&path).map_err(|error| match error {
            JournalError::Damaged(_) => ledger.damaged(format!("is damaged: {error}")),
            error => ledger.damaged(format!("cannot be read: {error}")),
        })?;
        ledger.read(&records, journal.is_torn())?;
        ledger.journal = Some(journal);
        Ok(ledger)
    }

    fn read(&mut self, records: &[[u8; PAYLOAD]], torn: bool) -> Result<(), StateError> {
        let Record::Start { boot: now, run: own } = self.start else { return Ok(()) };
        let mut booted = None;
        let mut reserved = None;
        for (index, record) in records.iter().enumerate() {
            let unknown =
                || self.damaged(format!("is damaged: record {index} is none that this program writes"));
            match Record::of_bytes(record).ok_or_else(unknown)? {
                Record::Start { boot, run } if run == own => {
                    (booted, reserved) = (Some(boot), None);
                    self.counted.settle();
                }
                _ if booted.is_none() => return Err(self.damaged("belongs to another run".to_string())),
                Record::Start { .. } => return Err(self.damaged("belongs to another run".to_string())),
                Record::Reserve { count, active } => reserved = Some((count, active)),
                Record::Release(entry) => {
                    if let Some((left, _)) = &mut reserved {
                        *left = left.saturating_sub(1);
                    }
                    if let Some(replaced) = self.counted.add(entry) {
                        self.known.remove(&replaced.digest);
                    }
                    self.known.insert(entry.digest);
                }
                Record::Lost { count, active } => {
                    reserved = None;
                    self.counted.settle();
                    self.counted.lose(count, active);
                }
                Record::Close => reserved = None,
            }
        }
        self.counted.settle();
        let same_machine = booted == Some(now) && now != [0; 16];
        self.lost = reserved.filter(|(left, _)| *left > 0 && (torn || !same_machine));
        if let Some((count, active)) = self.lost {
            self.counted.lose(count, active);
        }
        Ok(())
    }

    fn damaged(&self, rule: String) -> StateError {
        StateError::Ledger { path: self.path.clone(), rule }
    }

    /// Whether an earlier session released the same.
    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.known.contains(digest)
    }

    /// Whether earlier sessions released anything.
    pub(super) fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// What was released so far, with another release.
    pub(super) fn with(&self, entry: Entry) -> Counted {
        let mut counted = self.counted.clone();
        counted.add(entry);
        counted
    }

    /// How many records it has.
    pub(super) fn records(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::records)
    }

    /// Refuses to go on from a state that was saved when there were more records.
    pub(super) fn check_records(&self, saved: u64) -> Result<(), StateError> {
        if self.records() >= saved {
            return Ok(());
        }
        Err(self.damaged(format!("has {} records; when the state was saved it had {saved}", self.records())))
    }

    /// Writes a release down. If this fails nothing may leave; what was written counts.
    pub(super) fn write(&mut self, entry: Entry) -> Result<(), StateError> {
        if self.journal.is_some() {
            self.begin()?;
            match self.at_a_time {
                None => self.append(Record::Release(entry), true)?,
                Some(count) => {
                    self.reserve(count, entry.active)?;
                    self.append(Record::Release(entry), false)?;
                }
            }
            if let Some((left, _)) = &mut self.reserved {
                *left -= 1;
            }
        }
        self.counted.add(entry);
        Ok(())
    }

    /// Begins the session in the file, with what an earlier one had lost.
    fn begin(&mut self) -> Result<(), StateError> {
        if !self.started {
            self.append(self.start, false)?;
            self.started = true;
        }
        if let Some((count, active)) = self.lost {
            self.append(Record::Lost { count, active }, true)?;
            self.lost = None;
        }
        Ok(())
    }

    fn reserve(&mut self, count: u64, active: usize) -> Result<(), StateError> {
        if self.reserved.is_some_and(|(left, fewest)| left > 0 && active >= fewest) {
            return Ok(());
        }
        let active = self.reserved.map_or(active, |(_, fewest)| fewest.min(active));
        self.append(Record::Reserve { count, active }, true)?;
        self.reserved = Some((count, active));
        Ok(())
    }

    fn append(&mut self, record: Record, durable: bool) -> Result<(), StateError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let failed = |error| StateError::Io { path: self.path.clone(), problem: format!("{error}") };
        journal.append(&record.to_bytes(), durable).map_err(failed)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.reserved.is_some() {
            // Without it the rest of the reservation counts, if the machine ends: more than was released, never less.
            let _ = self.append(Record::Close, true);
        }
    }
}

/// What tells one start of the machine from another; zeros where it is unknown.
fn boot() -> [u8; 16] {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if id.is_empty() {
        return [0; 16];
    }
    fet_files::sha256(&id).first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: [u8; 32] = [3; 32];

    fn entry(round: u64, attempt: u32, active: usize, digest: u8) -> Entry {
        Entry { round, attempt, active, digest: [digest; 24] }
    }

    fn open(folder: &Path, boot: u8) -> Ledger {
        Ledger::open_at(Some(folder), &SETTINGS, false, 16 * 5, [boot; 16]).expect("sound")
    }

    fn counts(ledger: &Ledger) -> Vec<(usize, u64)> {
        ledger.counted.tallies()[0].iter().collect()
    }

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

    /// The process is killed: nothing runs after the last release. On the same machine its records are there; if the machine
    /// ended, the rest of the reservation of five counts too, once.
    #[test]
    fn a_session_that_was_killed_has_counted_and_one_whose_machine_ended_counts_what_was_reserved() {
        for (boot, expected) in [(1, vec![(3, 2)]), (2, vec![(3, 5)]), (0, vec![(3, 5)])] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut ledger = open(folder.path(), 1);
            ledger.write(entry(1, 0, 3, 1)).expect("written");
            ledger.write(entry(2, 0, 3, 2)).expect("written");
            std::mem::forget(ledger);
            let mut ledger = open(folder.path(), boot);
            assert_eq!(counts(&ledger), expected, "boot {boot}");
            ledger.write(entry(3, 0, 4, 3)).expect("written");
            std::mem::forget(ledger);
            let expected = [expected, vec![(4, 1)]].concat();
            let again = counts(&open(folder.path(), boot));
            let expected = if boot == 0 { vec![(3, 5), (4, 5)] } else { expected };
            assert_eq!(again, expected, "what was lost counts once, boot {boot}");
        }
    }

    #[test]
    fn an_orderly_end_counts_what_was_released() {
        let folder = tempfile::tempdir().expect("a folder");
        for session in 0..3 {
            let mut ledger = open(folder.path(), session);
            ledger.write(entry(u64::from(session), 0, 3, session)).expect("written");
        }
        assert_eq!(counts(&open(folder.path(), 9)), [(3, 3)]);
    }

    /// A reservation covers releases with as many parties as it names: with fewer another is made.
    #[test]
    fn a_reservation_knows_the_fewest_parties() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = open(folder.path(), 1);
        for (round, active) in [(1, 4), (2, 2), (3, 4)] {
            ledger.write(entry(round, 0, active, round as u8)).expect("written");
        }
        std::mem::forget(ledger);
        assert_eq!(counts(&open(folder.path(), 2)), [(2, 4), (4, 2)], "of five for two, two were used");
    }

    #[test]
    fn the_last_attempt_at_a_sum_counts_and_an_earlier_one_is_no_repeat() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = open(folder.path(), 1);
        for (attempt, active) in [(0, 4), (1, 3), (2, 2)] {
            ledger.write(entry(1, attempt, active, attempt as u8)).expect("written");
        }
        ledger.write(entry(2, 0, 2, 9)).expect("written");
        assert_eq!(counts(&ledger), [(2, 2)]);
        drop(ledger);
        let mut ledger = open(folder.path(), 1);
        assert_eq!([0, 1, 2, 9].map(|digest| ledger.knows(&[digest; 24])), [false, false, true, true]);
        // In another session no attempt replaces one of before: both may be opened.
        ledger.write(entry(2, 1, 1, 8)).expect("written");
        assert_eq!(counts(&ledger), [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_frozen_party_counts_passes() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Ledger::open_at(Some(folder.path()), &SETTINGS, true, 1, [1; 16]).expect("sound");
        let passes = |ledger: &Ledger| -> Vec<usize> {
            ledger.counted.tallies().iter().filter_map(Tally::fewest).collect()
        };
        let mut ledger = open();
        for (round, active) in [(0, 3), (1, 2), (2, 3)] {
            ledger.write(entry(round, 0, active, round as u8)).expect("written");
        }
        assert_eq!(passes(&ledger), [2]);
        drop(ledger);
        let mut ledger = open();
        assert_eq!(passes(&ledger), [2]);
        for round in [1, 2, 2] {
            ledger.write(entry(round, 0, 3, 9)).expect("written");
        }
        assert_eq!(passes(&ledger), [2, 3, 3], "the portion that was released most often decides");
    }

    #[test]
    fn a_ledger_that_is_damaged_or_of_another_run_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = open(folder.path(), 1);
        (0..4).for_each(|round| ledger.write(entry(round, 0, 3, 1)).expect("written"));
        let path = ledger.path.clone();
        drop(ledger);
        let refused = |parts: &[&str]| {
            let opened = Ledger::open_at(Some(folder.path()), &SETTINGS, false, 9, [1; 16]);
            let error = opened.err().expect("refused").to_string();
            for part in [&[path.as_str(), "move"], parts].concat() {
                assert!(error.contains(part), "{part} in {error}");
            }
        };
        let sound = std::fs::read(&path).expect("there");
        let mut flipped = sound.clone();
        flipped[100] ^= 1;
        std::fs::write(&path, flipped).expect("writable");
        refused(&["damaged", "record 2"]);
        std::fs::remove_file(&path).expect("there");
        let other = Ledger::open_at(Some(folder.path()), &[4; 32], false, 9, [1; 16]);
        let mut other = other.expect("a new one");
        other.write(entry(0, 0, 3, 1)).expect("written");
        std::fs::copy(&other.path, &path).expect("writable");
        refused(&["another run"]);
    }
}
