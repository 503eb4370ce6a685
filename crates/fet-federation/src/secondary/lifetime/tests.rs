//! Comparison of the lifetime account with an independent exact composition.

use std::path::Path;
use std::sync::Arc;

use fet_core::policy::Policy;
use fet_core::privacy::{PrivacyMechanism, Randomness, Releases};
use fet_core::registry::Slot;
use fet_core::rng::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::super::Store;
use super::super::account::{Account, open};
use super::super::ledger::Entry;
use super::*;
use crate::lifetime::{FILE, KnownAges, SharedLifetime};
use fet_core::message::Age;
use fet_core::privacy::{Loss, NoisyReleases};

mod exact;
mod sweep;

use self::exact::Exact;

const DELTA: f64 = 1e-5;

/// Two epochs of five steps and an evaluation, with four of six parties and with all of them.
const RELEASES: Releases = Releases {
    epochs: 2,
    train_steps: 5,
    evaluation_steps: 1,
    rows: 32,
    all_rows: 96,
    train_active: 4,
    active: 6,
    block: 64,
    summed: true,
    randomness: Randomness::Own,
};

/// Settings of one run.
#[derive(Debug, Clone)]
struct Run {
    /// Represents all other content of a run's name: seed, epochs, K, version of the results.
    hash: [u8; 32],
    settings: String,
}

impl Run {
    fn new(number: u8, settings: &str) -> Self {
        Self { hash: [number; 32], settings: settings.to_string() }
    }

    fn mechanism(&self) -> Box<dyn PrivacyMechanism> {
        let slot = Slot::<dyn PrivacyMechanism>::from_table(self.settings.parse().expect("TOML"));
        let mut mechanism = slot.expect("sound settings").build(&()).expect("sound settings");
        mechanism.prepare(&RELEASES).expect("a run that can be protected");
        mechanism
    }
}

/// A session of a run at a party, reduced to its accounts.
struct Session {
    mechanism: Box<dyn PrivacyMechanism>,
    account: Account,
    store: Store,
    hash: [u8; 32],
}

impl Session {
    fn join(folder: &Path, run: &Run, policy: &Policy) -> Result<Self, SecondaryError> {
        let mechanism = run.mechanism();
        let mut account = Account::new(RELEASES, mechanism.as_ref(), policy);
        let about = About {
            mechanism: "gaussian".into(),
            neighbouring: None,
            learning: None,
            colluding: 0,
            seed: 0,
            results: RESULTS_VERSION,
            table: None,
        };
        let tell: WarnOperator = Arc::new(|_| ());
        let place =
            LifetimePlace { folder: folder.to_path_buf(), account: SharedLifetime::default(), table: None };
        let joining = Joining {
            place: &place,
            name: ledger::short_name(&run.hash),
            about,
            planned: planned(&RELEASES, mechanism.freezes_secondaries()),
            rehearsal: false,
            policy,
            tell: &tell,
        };
        account.lifetime = Some(Spending::join(joining, mechanism.as_ref(), &RELEASES)?);
        Ok(Self { mechanism, account, store: Store::folder(folder.to_path_buf()), hash: run.hash })
    }

    fn age(&self) -> Age {
        self.account.lifetime.as_ref().expect("it has one").standing().age
    }

    /// Makes one release like a party's session; returns true if the release was not made before.
    fn release(&mut self, entry: Entry) -> Result<bool, SecondaryError> {
        let ledger = open(&mut self.account, &self.store, (&self.hash, &self.hash))?;
        if ledger.knows(&entry.digest) {
            return Ok(false);
        }
        let made = ledger.with(entry).tallies();
        self.account.check(self.mechanism.as_ref(), made.clone(), entry.active)?;
        self.account.reserve(self.mechanism.as_ref(), made, entry.active)?;
        open(&mut self.account, &self.store, (&self.hash, &self.hash))?.write(entry)?;
        Ok(true)
    }

    fn end(mut self) {
        self.account.close(self.mechanism.as_ref()).expect("written");
    }

    /// Simulates a killed process, which cannot write any more.
    fn kill(self) {
        let Store::Folder { own, .. } = &self.store else { unreachable!("it has a folder") };
        let path = own.join(format!("ledger-{}", ledger::short_name(&self.hash)));
        let ledger = std::fs::read(&path);
        drop(self.account);
        if let Ok(ledger) = ledger {
            std::fs::write(path, ledger).expect("written");
        }
    }
}

fn entry(number: u64, active: usize) -> Entry {
    let mut digest = [0; 24];
    digest[..8].copy_from_slice(&number.to_le_bytes());
    Entry { round: number, attempt: 0, active, digest }
}

/// Returns the releases of a planned run.
fn plan() -> impl Iterator<Item = Entry> {
    let epoch = |epoch: u64| (0..6).map(move |step| entry(6 * epoch + step, if step < 5 { 4 } else { 6 }));
    (0..2).flat_map(epoch)
}

fn epsilon(folder: &Path) -> f64 {
    Lifetime::open(folder).expect("sound").total().epsilon(DELTA)
}

const EIGHT: &str = "kind = \"gaussian\"\nneighbouring = \"record\"\ntarget_epsilon = 8.0";

fn lifetime(limit: f64) -> Policy {
    Policy { lifetime_epsilon: limit, ..Policy::default() }
}

/// Five runs with ε = 8 and different seeds have ε = 22.16 together, and a limit stops them.
#[test]
fn runs_with_other_settings_are_counted_together() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..5 {
        let mut session =
            Session::join(folder.path(), &Run::new(number, EIGHT), &lifetime(0.0)).expect("joined");
        plan().for_each(|entry| assert!(session.release(entry).expect("allowed")));
        session.end();
    }
    let all = epsilon(folder.path());
    assert!((all - 22.16).abs() < 0.01, "{all}");
    let joined = Session::join(folder.path(), &Run::new(9, EIGHT), &lifetime(24.0));
    let refused = joined.err().expect("refused").to_string();
    for part in
        ["policy.lifetime_epsilon", "earlier runs spent 22.16", "this run alone needs 8.0", "it is 24"]
    {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    // The same run adds no loss if it is repeated.
    Session::join(folder.path(), &Run::new(4, EIGHT), &lifetime(22.2)).expect("a run that is in the account");
}

/// Dropped-out parties make a run cost more than planned: the lifetime account refuses the release before it
/// leaves.
#[test]
fn a_release_that_would_pass_the_limit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = Policy { lifetime_epsilon: 9.0, probes: true, ..Policy::default() };
    let run = Run::new(1, EIGHT);
    let mut session = Session::join(folder.path(), &run, &policy).expect("joined");
    let mut made = 0;
    let refused = loop {
        match session.release(entry(made, 2)) {
            Ok(_) => made += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("policy.lifetime_epsilon` (9)"), "{refused}");
    session.end();
    let spent = epsilon(folder.path());
    assert!(made > 1 && spent <= 9.0 && spent > 6.0, "{made} releases, {spent}");
}

#[test]
fn gives_back_what_a_session_has_reserved_and_not_released() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::new(1, EIGHT);
    Session::join(folder.path(), &run, &lifetime(0.0)).expect("joined").end();
    assert_eq!(epsilon(folder.path()), 0.0, "nothing was released");
    let mut session = Session::join(folder.path(), &run, &lifetime(0.0)).expect("joined");
    session.release(entry(0, 4)).expect("allowed");
    let reserved = epsilon(folder.path());
    session.end();
    let spent = epsilon(folder.path());
    assert!((reserved - 8.0).abs() < 1e-3 && spent < 3.0, "{reserved} {spent}");
    // A killed process leaves its reservation.
    let mut session = Session::join(folder.path(), &run, &lifetime(0.0)).expect("joined");
    session.release(entry(1, 4)).expect("allowed");
    session.kill();
    assert_eq!(epsilon(folder.path()), reserved);
    // The next session knows the actual releases.
    let mut session = Session::join(folder.path(), &run, &lifetime(0.0)).expect("joined");
    session.release(entry(2, 4)).expect("allowed");
    session.end();
    let spent = epsilon(folder.path());
    assert!(spent < 6.0, "three of twelve releases: {spent}");
}

/// If an operator moves a ledger away, its loss stays in the lifetime account.
#[test]
fn a_lost_ledger_is_counted_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::new(1, EIGHT);
    for session in 0..3 {
        let mut joined = Session::join(folder.path(), &run, &lifetime(0.0)).expect("joined");
        plan().for_each(|entry| assert!(joined.release(entry).expect("allowed")));
        joined.end();
        let spent = epsilon(folder.path());
        let mut expected = Exact::default();
        (0..=session).for_each(|_| plan().for_each(|entry| expected.add(&run, entry)));
        expected.check(spent, true, &format!("after {session} moves"));
        let name = format!("ledger-{}", ledger::short_name(&run.hash));
        std::fs::remove_file(folder.path().join(name)).expect("there");
    }
}

#[test]
fn ledgers_of_former_versions_must_be_added() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ledger-0123456789abcdef"), "").expect("written");
    let run = Run::new(1, EIGHT);
    Session::join(folder.path(), &run, &lifetime(0.0)).expect("a warning is enough without a limit");
    let refused = Session::join(folder.path(), &run, &lifetime(30.0)).err().expect("refused").to_string();
    assert!(refused.contains("former versions"), "{refused}");
    let mut account = Lifetime::open(folder.path()).expect("sound");
    account
        .add(Loss::of_releases(NoisyReleases { noise: 4.0, rate: 1.0, count: 50 }), None)
        .expect("written");
    assert!(account.unknown_ledgers().is_empty() && account.total().epsilon(DELTA) > 6.0);
    Session::join(folder.path(), &run, &lifetime(30.0)).expect("they are in the account");
    account = Lifetime::open(folder.path()).expect("sound");
    account.add(Loss::of_releases(NoisyReleases { noise: 0.0, rate: 1.0, count: 1 }), None).expect("written");
    assert_eq!(account.total().epsilon(DELTA), f64::INFINITY);
    let refused = Session::join(folder.path(), &run, &lifetime(30.0)).err().expect("refused").to_string();
    assert!(refused.contains("lifetime_epsilon"), "{refused}");
}

#[test]
fn an_account_of_a_newer_program_or_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE);
    let mut lines = fet_io::Lines::open(&path).expect("a new file").0;
    lines.append("{\"version\":3,\"more\":[]}").expect("written");
    let refused = Lifetime::open(folder.path()).expect_err("refused").to_string();
    assert!(refused.contains("version 3") && refused.contains("use the newer program"), "{refused}");
    std::fs::write(&path, "nothing\n").expect("written");
    let refused = Lifetime::open(folder.path()).expect_err("refused").to_string();
    assert!(refused.contains("damaged: line 1") && refused.contains("fet ledger add"), "{refused}");
}

/// If a party restores an old copy of its folder, every party that has seen its account older refuses.
#[test]
fn an_old_copy_of_the_account_is_refused_until_its_releases_are_added() {
    let (folder, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join(FILE);
    let seen = outside.path().join("seen.json");
    let see = |age: Age| {
        let mut known = KnownAges::read(&seen).expect("readable");
        let outcome = known.see("party", age);
        known.keep().expect("written");
        outcome
    };
    let session = |number: u8| {
        let mut joined =
            Session::join(folder.path(), &Run::new(number, EIGHT), &lifetime(0.0)).expect("joined");
        let age = joined.age();
        joined.release(entry(0, 4)).expect("allowed");
        joined.end();
        age
    };
    assert_eq!(session(1), Age { found: 0, now: 1 });
    see(Age { found: 0, now: 1 }).expect("new");
    let copy = std::fs::read(&path).expect("there");
    see(session(2)).expect("older than before");
    std::fs::write(&path, copy).expect("written");
    // A party that joins again grows older each time, and is refused each time.
    let mut known = 4;
    for number in 3..13 {
        let joined = Session::join(folder.path(), &Run::new(number, EIGHT), &lifetime(0.0)).expect("joined");
        let old = see(joined.age()).expect_err("an old copy");
        joined.end();
        known += 1;
        assert!(old.to_string().contains(&format!("fet ledger add --age {known}")), "{old}");
    }
    let mut account = Lifetime::open(folder.path()).expect("sound");
    account
        .add(Loss::of_releases(NoisyReleases { noise: 4.0, rate: 1.0, count: 1 }), Some(known))
        .expect("written");
    see(session(20)).expect("the missing release is added");
}

/// A refused party, or one whose account was copied for another table, has an account before it has a seed.
#[test]
fn accounts_may_be_older_than_the_seed_and_ledgers_may_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::folder(folder.path().to_path_buf());
    for file in [FILE, OTHERS] {
        std::fs::write(folder.path().join(file), "").expect("written");
    }
    store.own_seed(false).expect("a new seed");
    std::fs::write(folder.path().join("ledger-0123456789abcdef"), "").expect("written");
    let refused = store.own_seed(false).map(|_| ()).expect_err("the seed was lost").to_string();
    assert!(refused.contains("is missing"), "{refused}");
}
