//! A party's lifetime account: the loss of all its runs together, over all settings, seeds and versions of
//! the program.
//!
//! The account is a file of JSON lines in the party's own folder, which outlives runs. For each run it holds
//! a list of releases with their noise. Any version of the program can compose the lists of all runs, without
//! their settings. A party writes a line before the releases that the line covers leave. The lines:
//!
//! - `join`: a session begins; it makes the account older, which distinguishes it from an old copy;
//! - `reserve`: a bound on the loss of all releases of the run, from now on;
//! - `close`: the loss of all releases of the run at the end of a session;
//! - `add`: the operator adds releases that the account does not know.
//!
//! The last line of a run counts. A run has the same identity as its ledger. If that ledger was lost or
//! replaced, its written loss stays, and that of the new ledger is added. Only one process at a time writes
//! the account.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use fet_core::message::Age;
use fet_core::privacy::{Learning, Loss, Neighbouring, NoisyReleases};
use fet_io::{Lines, LinesError};
use fet_privacy::accountant::{Event, Total};
use serde::{Deserialize, Serialize};

use crate::state_file::StateError;

/// Name of the account's file in a party's own folder.
pub const FILE: &str = "lifetime.jsonl";
/// Version of the account's lines. Lines with a loss in parts have it; others have version 1, so that earlier versions of
/// the program read them.
const VERSION: u32 = 2;

/// Number by which an account becomes older than the age that its operator states: others raise their ages at each refusal.
const MARGIN: u64 = 1000;
/// Largest age that the operator may state.
pub const LARGEST_AGE: u64 = 1_000_000_000_000;

/// A party's lifetime account.
#[derive(Debug)]
pub struct Lifetime {
    path: PathBuf,
    lines: Lines,
    age: u64,
    /// Age when the account was opened, or the last age that the party signed since then.
    signed: u64,
    /// Parties whose accounts were refused as old copies while this account is open, by identity.
    refused: BTreeSet<String>,
    runs: Vec<RunLoss>,
    /// Ledgers of former versions whose loss the operator has added.
    covered: Vec<String>,
}

/// A run in the account.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLoss {
    /// Name that the run shares with its ledger.
    pub name: String,
    /// Summary of the run's settings; `None` if the operator added the run.
    pub about: Option<About>,
    /// Loss of the run's releases. If `open` is true, it includes releases that may have been made.
    pub loss: Loss,
    /// Losses under earlier ledgers of the same name that no longer exist.
    pub lost: Vec<Loss>,
    /// True if the last session did not end in order.
    pub open: bool,
    /// Time of the run's last line, in seconds since 1970.
    pub last: u64,
    /// Number of records in the run's ledger when the last line was written.
    ledger: u64,
}

/// Summary of a run's settings, for the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Privacy mechanism.
    pub mechanism: String,
    /// Neighbouring relation; `None` without a guarantee.
    pub neighbouring: Option<Neighbouring>,
    /// Treatment of the models' learning; `None` without a guarantee.
    pub learning: Option<Learning>,
    /// Number of parties that may collude with the primary.
    pub colluding: usize,
    /// Seed of the experiment.
    pub seed: u64,
    /// Version of the program's results.
    pub results: u32,
    /// Checksum of the party's table, for information.
    pub table: Option<String>,
}

/// A line of the account.
#[derive(Debug, Serialize, Deserialize)]
struct AccountLine {
    version: u32,
    age: u64,
    kind: Kind,
    run: String,
    time: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss: Option<Loss>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lost: Vec<Loss>,
    #[serde(default)]
    ledger: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    covers: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Join,
    Reserve,
    Close,
    Add,
}

impl Lifetime {
    /// Opens the account in a party's own folder; an account without a file is empty.
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        let failed = |rule: String| StateError::Lifetime { path: path.display().to_string(), rule };
        let (lines, objects) = Lines::open(&path).map_err(|error| match error {
            LinesError::Damaged(_) => failed(format!("is damaged: {error}")),
            error => failed(format!("cannot be read: {error}")),
        })?;
        let mut account = Self {
            path: path.clone(),
            lines,
            age: 0,
            signed: 0,
            refused: BTreeSet::new(),
            runs: Vec::new(),
            covered: Vec::new(),
        };
        for (index, object) in objects.iter().enumerate() {
            #[derive(Deserialize)]
            struct Version {
                version: u32,
            }
            let unknown = |error| {
                failed(format!("is damaged: this program did not write line {} ({error})", index + 1))
            };
            let Version { version } = serde_json::from_str(object).map_err(unknown)?;
            if version > VERSION {
                let rule = format!(
                    "has lines of version {version}, but this program knows version {VERSION}: use the newer program"
                );
                return Err(failed(rule));
            }
            account.apply(serde_json::from_str(object).map_err(unknown)?);
        }
        account.signed = account.age;
        Ok(account)
    }

    fn apply(&mut self, line: AccountLine) {
        self.age = self.age.max(line.age);
        self.covered.extend(line.covers);
        let place = self.runs.iter().position(|run| run.name == line.run).unwrap_or_else(|| {
            self.runs.push(RunLoss::new(line.run));
            self.runs.len() - 1
        });
        let run = &mut self.runs[place];
        run.last = line.time;
        run.about = line.about.or(run.about.take());
        if line.kind != Kind::Join {
            run.open = line.kind == Kind::Reserve;
        }
        if let Some(loss) = line.loss {
            (run.loss, run.lost, run.ledger) = (loss, line.lost, line.ledger);
        }
    }

    fn append(&mut self, kind: Kind, run: &RunLoss, covers: Vec<String>, age: u64) -> Result<(), StateError> {
        let about = if self.run(&run.name).is_none() { run.about.clone() } else { None };
        let in_parts = run.lost.iter().chain([&run.loss]).any(|loss| matches!(loss, Loss::Parts { .. }));
        let line = AccountLine {
            version: if in_parts { VERSION } else { 1 },
            age,
            kind,
            run: run.name.clone(),
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            loss: (kind != Kind::Join).then(|| run.loss.clone()),
            lost: run.lost.clone(),
            ledger: run.ledger,
            about,
            covers,
        };
        let object = serde_json::to_string(&line).map_err(|error| StateError::io(&self.path, error))?;
        self.lines.append(&object).map_err(|error| StateError::io(&self.path, error))?;
        self.apply(line);
        Ok(())
    }

    /// Returns the party's own folder.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the account's age, which each line increases. A smaller age than before means that the file is an old copy.
    pub fn age(&self) -> u64 {
        self.age
    }

    /// Returns the runs in the order of their start.
    pub fn runs(&self) -> &[RunLoss] {
        &self.runs
    }

    /// Returns the run with this name.
    pub fn run(&self, name: &str) -> Option<&RunLoss> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// Returns the loss of all runs.
    pub fn total(&self) -> Total {
        self.total_without("")
    }

    /// Returns the loss of all runs except the one with this name.
    pub fn total_without(&self, name: &str) -> Total {
        let mut total = Total::default();
        self.runs.iter().filter(|run| run.name != name).for_each(|run| run.add_to(&mut total));
        total
    }

    /// Returns true if every run protects against the replacement of a record. Otherwise the total holds for
    /// a record that is added or removed.
    pub fn covers_replacement(&self) -> bool {
        let protects = |run: &RunLoss| {
            let relation = run.about.as_ref().and_then(|about| about.neighbouring);
            run.is_none() || relation != Some(Neighbouring::AddRemove)
        };
        self.runs.iter().all(protects)
    }

    /// Returns the ledgers in the party's own folder whose releases are not in the account. Former versions
    /// of the program left such ledgers.
    pub fn unknown_ledgers(&self) -> Vec<String> {
        let entries = self.path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut unknown: Vec<String> = names
            .filter_map(|name| name.to_str()?.strip_prefix("ledger-").map(String::from))
            .filter(|name| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .filter(|name| self.run(name).is_none() && !self.covered.contains(name))
            .collect();
        unknown.sort_unstable();
        unknown
    }

    /// Begins a session of a run; returns the age of the account before and after.
    pub(crate) fn join(&mut self, name: &str, about: About) -> Result<Age, StateError> {
        let found = self.age;
        let mut run = self.run(name).cloned().unwrap_or_else(|| RunLoss::new(name.to_string()));
        run.about = Some(about);
        self.append(Kind::Join, &run, Vec::new(), found + 1)?;
        Ok(Age { found, now: self.age })
    }

    /// Returns the ages that the party signs for the other parties: the age when the account was opened, or the last age that
    /// it signed since then, and the present age.
    ///
    /// Every age that another party knows was signed before the account was opened, or since then. For this reason, no party
    /// takes the account for an old copy, in whatever order several sessions join and agree on keys. An old copy has its old
    /// age when it is opened, however many sessions join at the same time.
    pub(crate) fn sign(&mut self) -> Age {
        let age = Age { found: self.signed, now: self.age };
        self.signed = self.age;
        age
    }

    /// Returns true if the account of the party with this identity was last refused as an old copy.
    pub(crate) fn refuses(&self, identity: &str) -> bool {
        self.refused.contains(identity)
    }

    /// Notes whether the account of the party with this identity was refused as an old copy.
    pub(crate) fn note_refusal(&mut self, identity: &str, refused: bool) {
        match refused {
            true => drop(self.refused.insert(identity.to_string())),
            false => drop(self.refused.remove(identity)),
        }
    }

    /// Writes the total loss that the run's releases may have from now on. `ended` is true if no other line
    /// of this session follows.
    pub(crate) fn write(&mut self, run: &RunLoss, ended: bool) -> Result<(), StateError> {
        let kind = if ended { Kind::Close } else { Kind::Reserve };
        self.append(kind, run, Vec::new(), self.age + 1)
    }

    /// Adds releases that the account does not know: releases in ledgers of former versions, or releases
    /// missing from an old copy of the account. [`Loss::NONE`] states that none is missing. The account becomes
    /// much older than `age`, the age that others remembered when they refused the account.
    pub fn add(&mut self, loss: Loss, age: Option<u64>) -> Result<(), StateError> {
        let age = age.map_or(self.age + 1, |age| self.age.max(age.min(LARGEST_AGE)) + MARGIN);
        // A statement that nothing is missing does not cover the ledgers of former versions.
        let covered = if loss.is_none() { Vec::new() } else { self.unknown_ledgers() };
        let run = RunLoss { loss, ..RunLoss::new(format!("added-{age}")) };
        self.append(Kind::Add, &run, covered, age)
    }
}

impl RunLoss {
    fn new(name: String) -> Self {
        Self { name, about: None, loss: Loss::NONE, lost: Vec::new(), open: false, last: 0, ledger: 0 }
    }

    /// Makes the entry of a release that is made once.
    pub(crate) fn of_release(name: String, about: About, loss: Loss) -> Self {
        Self { about: Some(about), loss, ..Self::new(name) }
    }

    /// Adds the run's loss to a total.
    pub fn add_to(&self, total: &mut Total) {
        self.lost.iter().chain([&self.loss]).for_each(|loss| add(total, loss));
    }

    /// Returns true if the account contains no release of the run.
    pub fn is_none(&self) -> bool {
        self.lost.iter().chain([&self.loss]).all(Loss::is_none)
    }

    /// Returns the reason why the run's loss is unbounded; `None` if it is bounded.
    pub fn unbounded(&self) -> Option<&str> {
        self.lost.iter().chain([&self.loss]).find_map(Loss::unbounded)
    }

    /// Returns the run with another loss. A loss without a bound, such as that of a rehearsal, stays in the
    /// account.
    pub(crate) fn with_loss(mut self, loss: Loss) -> Self {
        if matches!(self.loss, Loss::Unbounded { .. }) && loss != self.loss {
            self.lost.push(self.loss);
        }
        Self { loss, ..self }
    }

    /// Returns the run with this number of records in its ledger.
    pub(crate) fn at(self, records: u64) -> Self {
        Self { ledger: records, ..self }
    }

    /// Returns the run with a ledger that has this number of records. If earlier releases are not in the
    /// ledger, their loss stays in the account. The loss also stays if a session was killed and the ledger
    /// lacks a record of that session: the ledger may be an older copy.
    pub(crate) fn with_ledger(mut self, records: u64) -> Self {
        let is_older = records == 0 || records < self.ledger || (self.open && records == self.ledger);
        if !self.loss.is_none() && is_older {
            self.lost.push(std::mem::replace(&mut self.loss, Loss::NONE));
        }
        self.ledger = records;
        self
    }
}

/// Adds a loss to a total.
pub(crate) fn add(total: &mut Total, loss: &Loss) {
    match loss {
        Loss::Gaussian { releases, values } => {
            let event =
                |kind: &NoisyReleases| Event { noise: kind.noise, rate: kind.rate, steps: kind.count };
            total.add_gaussian(releases.iter().filter(|kind| kind.count > 0).map(event), *values);
        }
        Loss::Bound { epsilon, delta } => total.add_bound(*epsilon, *delta),
        Loss::Unbounded { .. } => total.add_unbounded(),
        Loss::Parts { parts } => parts.iter().for_each(|part| add(total, part)),
    }
}

/// Lifetime account of one state folder, which all sessions of the party share.
///
/// The account is read again once no session has it open.
#[derive(Debug, Clone, Default)]
pub struct SharedLifetime(Arc<Mutex<Weak<Mutex<Lifetime>>>>);

/// Lifetime account that a session has open.
#[derive(Debug, Clone)]
pub(crate) struct OpenLifetime(Arc<Mutex<Lifetime>>);

impl SharedLifetime {
    /// Returns the account that another session has open, or opens the account in a party's own folder.
    pub(crate) fn open(&self, folder: &Path) -> Result<OpenLifetime, StateError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.upgrade() {
            return Ok(OpenLifetime(account));
        }
        let account = Arc::new(Mutex::new(Lifetime::open(folder)?));
        *known = Arc::downgrade(&account);
        Ok(OpenLifetime(account))
    }
}

impl OpenLifetime {
    /// Returns the account; other sessions wait until the value is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Lifetime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// File of the ages of other parties' lifetime accounts, in the party's own folder.
pub(crate) const OTHERS: &str = "lifetimes-of-others.json";

/// The greatest known age of each party's account, by identity, in a file.
///
/// A party that restores an old copy of its state loses track of releases, and its account becomes younger. A
/// party that has seen the account older refuses the run.
#[derive(Debug)]
pub struct KnownAges {
    path: PathBuf,
    ages: BTreeMap<String, u64>,
}

/// Error: a lifetime account is younger than it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its lifetime account has age {found}, but had age {known} before: its state folder is an old copy \
     without the latest releases. Its operator must restore the newest copy, and add the releases \
     that it lacks with `fet ledger add --age {known}` (see its `--help`), which is needed after a refusal even if none is missing"
)]
pub struct OutdatedAccount {
    /// Age when the party was about to join, or to sign it.
    pub found: u64,
    /// Age that the account had before.
    pub known: u64,
}

impl KnownAges {
    /// Reads the ages from a file; a missing file is empty.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let ages = match fet_io::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            bytes => {
                let bytes = bytes.map_err(|error| failed(error.to_string()))?;
                serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?
            }
        };
        Ok(Self { path: path.to_path_buf(), ages })
    }

    /// Returns the known age of a party's account.
    pub fn of(&self, identity: &str) -> u64 {
        self.ages.get(identity).copied().unwrap_or(0)
    }

    /// Remembers the age of a party's account; refuses an account that was older before.
    ///
    /// Joining adds a line to the refused party's account, so that it grows older. The remembered age grows
    /// by the same number, so that an old copy cannot reach it by joining again.
    pub fn see(&mut self, identity: &str, age: Age) -> Result<(), OutdatedAccount> {
        let before = self.of(identity);
        self.see_since(before, identity, age)
    }

    /// Like [`KnownAges::see`], and refuses only an account that was older than `before`: the known age at the time of the
    /// primary's request. Other runs may have seen a greater age after it.
    pub fn see_since(&mut self, before: u64, identity: &str, age: Age) -> Result<(), OutdatedAccount> {
        let known = self.of(identity);
        if age.found < before {
            let known = known.saturating_add(age.now.saturating_sub(age.found));
            self.ages.insert(identity.to_string(), known);
            return Err(OutdatedAccount { found: age.found, known });
        }
        if age.now > known {
            self.ages.insert(identity.to_string(), age.now);
        }
        Ok(())
    }

    /// Writes the ages into the file.
    pub fn keep(&self) -> std::io::Result<()> {
        fet_io::write(&self.path, format!("{}\n", serde_json::json!(self.ages)).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(open: bool, ledger: u64, loss: Loss) -> RunLoss {
        RunLoss { open, ledger, loss, ..RunLoss::new("run".into()) }
    }

    const BOUND: Loss = Loss::Bound { epsilon: 1.0, delta: 0.0 };

    #[test]
    fn a_run_with_noise_does_not_replace_a_rehearsal() {
        let rehearsal = Loss::Unbounded { reason: "a rehearsal".into() };
        let again = run(false, 3, rehearsal.clone()).with_loss(BOUND);
        assert_eq!((again.loss.clone(), again.lost.clone()), (BOUND, vec![rehearsal]));
        let mut total = Total::default();
        again.add_to(&mut total);
        assert_eq!(total.epsilon(1e-5), f64::INFINITY);
        assert!(run(false, 3, BOUND).with_loss(Loss::NONE).lost.is_empty(), "a reservation is replaced");
    }

    #[test]
    fn a_loss_stays_where_the_ledger_may_be_an_older_copy() {
        for (open, records, stays) in
            [(false, 3, false), (false, 2, true), (true, 3, true), (true, 4, false), (false, 0, true)]
        {
            let found = run(open, 3, BOUND).with_ledger(records);
            assert_eq!(found.lost.len(), usize::from(stays), "{open}, {records}");
        }
    }

    #[test]
    fn an_age_that_another_run_has_seen_since_is_no_old_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut known = KnownAges::read(&folder.path().join("ages.json")).expect("new");
        known.see("shop", Age { found: 4, now: 5 }).expect("the first");
        let before = known.of("shop");
        known.see("shop", Age { found: 7, now: 8 }).expect("another run joins later, but is seen first");
        known.see_since(before, "shop", Age { found: 5, now: 6 }).expect("not older than at the request");
        assert_eq!(known.of("shop"), 8);
        let old = known.see_since(known.of("shop"), "shop", Age { found: 6, now: 7 });
        assert_eq!(old, Err(OutdatedAccount { found: 6, known: 9 }));
    }

    #[test]
    fn sessions_share_an_account_while_one_has_it_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let about = || About {
            mechanism: "gaussian".into(),
            neighbouring: None,
            learning: None,
            colluding: 0,
            seed: 0,
            results: 0,
            table: None,
        };
        let shared = SharedLifetime::default();
        let (one, other) = (shared.open(folder.path()), shared.open(folder.path()));
        let (one, other) = (one.expect("new"), other.expect("open"));
        one.lock().join("a", about()).expect("written");
        let age = other.lock().join("b", about()).expect("written");
        assert_eq!(age, Age { found: 1, now: 2 }, "the second session sees the line of the first");
        drop((one, other));
        // The file changes while no session has it open.
        Lifetime::open(folder.path()).expect("sound").join("c", about()).expect("written");
        assert_eq!(shared.open(folder.path()).expect("sound").lock().age(), 3);
    }
}
