//! A party's ledger: its releases in a run, written to its folder before they leave. `account` computes their
//! cost.
//!
//! A record holds the round, the attempt, the number of active parties, and a digest of the release, keyed by
//! a secret of the party. Two digests are equal if the bytes before masking are equal. One part of the digest
//! covers only the sample of records. A later session of the run, such as a resumed run, may repeat a release
//! without cost; any other release counts in addition. Of the attempts at a sum in one session the last
//! counts, since no other attempt is unmasked.
//!
//! *Durability.* The operating system has a record before the reply leaves, so that the record outlives the
//! process. The disk has a reservation for the next releases, made before the first of them. If the machine
//! stops without an orderly end of the session, the rest of the reservation counts as released. Frozen
//! parties release little, and each of their records goes to the disk.
//!
//! A ledger belongs to one run, which its settings identify; runs with other settings have other ledgers. A
//! ledger also belongs to one set of terms and keys. Releases of rows that were linked by other keys, or with
//! other noise because the primary has another number of records, would not add up like those of one run. The
//! party refuses a session with other terms or keys.

mod counted;
mod record;

use std::collections::HashSet;
use std::path::Path;

use fet_eval::records::RESULTS_VERSION;
use fet_io::{Journal, JournalError, PAYLOAD};

use self::counted::Counted;
pub(super) use self::counted::Counting;
pub(super) use self::record::{Digest, Entry, digest};
use self::record::{Record, sample};
use crate::state_file::StateError;

/// The ledger of one run.
pub(super) struct Ledger {
    /// Journal on disk; `None` if the party keeps its state in memory.
    journal: Option<Journal>,
    path: String,
    start: Record,
    /// True if this session has written to the ledger.
    started: bool,
    /// Number of releases that an earlier session reserved without accounting for them, and the number of
    /// parties.
    lost: Option<(u64, usize)>,
    /// Releases reserved on the disk: the number left, and the number of parties.
    reserved: Option<(u64, usize)>,
    /// Number of releases in a reservation; `None` if the party writes each release to the disk.
    at_a_time: Option<u64>,
    /// Releases of earlier sessions.
    known: HashSet<Digest>,
    counted: Counted,
}

impl Ledger {
    /// Opens the ledger of the run with these settings, terms and keys, in `folder` or in memory. `planned`
    /// is the number of releases of the run.
    pub(super) fn open(
        folder: Option<&Path>,
        of: (&[u8; 32], &[u8; 32]),
        counting: Counting,
        planned: u64,
    ) -> Result<Self, StateError> {
        Self::open_at(folder, of, counting, planned, boot())
    }

    fn open_at(
        folder: Option<&Path>,
        (settings_hash, terms): (&[u8; 32], &[u8; 32]),
        counting: Counting,
        planned: u64,
        boot: [u8; 16],
    ) -> Result<Self, StateError> {
        let name = run_name(settings_hash);
        let run = fet_io::sha256(&[name.as_slice(), terms].concat());
        let mut ledger = Self {
            journal: None,
            path: String::new(),
            start: Record::Start { boot, run: run.first_chunk().copied().unwrap_or_default() },
            started: false,
            lost: None,
            reserved: None,
            at_a_time: (!counting.frozen).then(|| (planned / 16).clamp(1, 256)),
            known: HashSet::new(),
            counted: Counted::new(counting),
        };
        let Some(folder) = folder else { return Ok(ledger) };
        let path = folder.join(format!("ledger-{}", fet_io::hex(&name[..8])));
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
            let unknown = || self.damaged(format!("is damaged: this program did not write record {index}"));
            match Record::of_bytes(record).ok_or_else(unknown)? {
                Record::Start { boot, run } if run == own => {
                    (booted, reserved) = (Some(boot), None);
                    self.counted.settle();
                }
                Record::Start { .. } => return Err(self.other_run()),
                Record::Lost { count, active } => {
                    reserved = None;
                    self.counted.settle();
                    self.counted.lose(count, active);
                }
                _ if booted.is_none() => return Err(self.other_run()),
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

    fn other_run(&self) -> StateError {
        let rule =
            "belongs to a run with other terms: another number of records of the primary, or other keys";
        self.damaged(rule.to_string())
    }

    fn damaged(&self, rule: String) -> StateError {
        StateError::Ledger { path: self.path.clone(), rule }
    }

    /// Returns true if an earlier session made the same release.
    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.known.contains(digest)
    }

    /// Returns true if an earlier session made another release of the same sample, and each release must have
    /// its own sample.
    pub(super) fn knows_sample(&self, digest: &Digest) -> bool {
        let Counting { frozen, sampled, .. } = self.counted.counting();
        sampled
            && !frozen
            && self.known.iter().any(|known| sample(known) == sample(digest) && known != digest)
    }

    /// Returns true if earlier sessions made any release.
    pub(super) fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Returns the releases so far.
    pub(super) fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Returns the releases so far, with another release.
    pub(super) fn with(&self, entry: Entry) -> Counted {
        let mut counted = self.counted.clone();
        counted.add(entry);
        counted
    }

    /// Returns the number of records in the ledger.
    pub(super) fn records(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::records)
    }

    /// Refuses to continue from a state that was saved when the ledger had more records.
    pub(super) fn check_records(&self, saved: u64) -> Result<(), StateError> {
        if self.records() >= saved {
            return Ok(());
        }
        Err(self.damaged(format!("has {} records; when the state was saved it had {saved}", self.records())))
    }

    /// Writes a release. If this fails, the release must not leave; a record that was written still counts.
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

    /// Begins the session in the file, after a record of the releases that an earlier session lost.
    fn begin(&mut self) -> Result<(), StateError> {
        // The lost releases come first: the start of another session cancels the open reservation.
        if let Some((count, active)) = self.lost {
            self.append(Record::Lost { count, active }, true)?;
            self.lost = None;
        }
        if !self.started {
            self.append(self.start, false)?;
            self.started = true;
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
            // Without this record, the rest of the reservation counts if the machine stops: at least as much
            // as was released.
            let _ = self.append(Record::Close, true);
        }
    }
}

/// Returns the name that identifies a run to its ledger and to the lifetime account.
fn run_name(settings_hash: &[u8; 32]) -> [u8; 32] {
    fet_io::sha256(&[b"fet ledger".as_slice(), settings_hash, &RESULTS_VERSION.to_le_bytes()].concat())
}

/// Returns the short form of a run's name, as in the file's name.
pub(super) fn short_name(settings_hash: &[u8; 32]) -> String {
    fet_io::hex(&run_name(settings_hash)[..8])
}

/// Returns an id of the machine's current boot; zeros if it is unknown.
fn boot() -> [u8; 16] {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if id.is_empty() {
        return [0; 16];
    }
    fet_io::sha256(&id).first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::privacy::Tally;

    const EACH: Counting = Counting { frozen: false, sampled: false, apart: false };
    const FROZEN: Counting = Counting { frozen: true, sampled: false, apart: false };
    const SETTINGS: [u8; 32] = [3; 32];

    fn entry(round: u64, attempt: u32, active: usize, digest: u8) -> Entry {
        Entry { round, attempt, active, digest: [digest; 24] }
    }

    fn open(folder: &Path, boot: u8) -> Ledger {
        Ledger::open_at(Some(folder), (&SETTINGS, &SETTINGS), EACH, 16 * 5, [boot; 16]).expect("sound")
    }

    fn counts(ledger: &Ledger) -> Vec<(usize, u64)> {
        ledger.counted.tallies()[0].iter().collect()
    }

    /// The process is killed after the last release. On the same boot its records are there; after a reboot,
    /// the rest of the reservation of five also counts, once.
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
            assert_eq!(again, expected, "lost releases count once, boot {boot}");
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

    /// A reservation covers releases with at least its number of parties: fewer parties need another
    /// reservation.
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
        // In another session, no attempt replaces an earlier one: both may be unmasked.
        ledger.write(entry(2, 1, 1, 8)).expect("written");
        assert_eq!(counts(&ledger), [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_frozen_party_counts_passes() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            Ledger::open_at(Some(folder.path()), (&SETTINGS, &SETTINGS), FROZEN, 1, [1; 16]).expect("sound")
        };
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
            let opened = Ledger::open_at(Some(folder.path()), (&SETTINGS, &SETTINGS), EACH, 9, [1; 16]);
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
        let other = Ledger::open_at(Some(folder.path()), (&[4; 32], &SETTINGS), EACH, 9, [1; 16]);
        let mut other = other.expect("a new one");
        other.write(entry(0, 0, 3, 1)).expect("written");
        std::fs::copy(&other.path, &path).expect("writable");
        refused(&["a run with other terms", "other keys"]);
    }

    /// Portions of a pass share a sample. A portion with another sample belongs to another pass, even if each
    /// portion was released once.
    #[test]
    fn a_frozen_party_that_samples_counts_a_pass_for_each_sample() {
        let entry = |round, sample: u8| Entry {
            round,
            attempt: 0,
            active: 3,
            digest: digest(&[sample; 32], &[round as u8; 32]),
        };
        for (sampled, passes) in [(false, 1), (true, 2)] {
            let counting = Counting { frozen: true, sampled, apart: false };
            let mut ledger =
                Ledger::open_at(None, (&SETTINGS, &SETTINGS), counting, 1, [1; 16]).expect("new");
            for (round, sample) in [(0, 1), (1, 1), (2, 2)] {
                ledger.write(entry(round, sample)).expect("written");
            }
            assert_eq!(ledger.counted.tallies().len(), passes, "{sampled}");
        }
    }

    /// A sample that an earlier session released may leave again unchanged, and in no other form.
    #[test]
    fn a_sample_is_known_by_its_part_of_the_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let counting = Counting { frozen: false, sampled: true, apart: false };
        let open = |counting| {
            Ledger::open_at(Some(folder.path()), (&SETTINGS, &SETTINGS), counting, 80, [1; 16])
                .expect("sound")
        };
        let release = |release| digest(&[7; 32], &[release; 32]);
        let mut ledger = open(counting);
        ledger.write(Entry { round: 1, attempt: 0, active: 3, digest: release(1) }).expect("written");
        drop(ledger);
        let ledger = open(counting);
        assert!(ledger.knows(&release(1)) && !ledger.knows_sample(&release(1)));
        assert!(!ledger.knows(&release(2)) && ledger.knows_sample(&release(2)));
        assert!(!ledger.knows_sample(&digest(&[8; 32], &[2; 32])));
        drop(ledger);
        assert!(!open(EACH).knows_sample(&release(2)), "without sampling every release counts by itself");
    }
}
