//! Approvals of a party's owner, and the journal of their use.
//!
//! An approval covers the common settings, the primary's key, and the party's own data settings and columns. The journal
//! `approvals.jsonl` in the party's own folder holds approvals, revocations and the use of quotas. The party and the commands of its
//! owner may append at the same time: each append takes a lock and reads the lines of the others first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use fet_core::experiment::CommonSettings;
use fet_io::{Lines, LinesError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Journal in the party's own folder.
const FILE: &str = "approvals.jsonl";
const LOCK: &str = "approvals.lock";
/// Part of a limit that is counted ahead: one in this number of records.
const AHEAD: u64 = 1_000;
/// Digits of a hash in messages, and the least number of digits that name a hash.
const SHORT: usize = 16;
const LEAST_DIGITS: usize = 8;

/// The owner's decision on runs.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApprovalSettings {
    /// True to join only runs that the owner has approved with `fet party approve`; otherwise the policy alone decides.
    pub(super) required: bool,
}

/// Everything that an approval covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Covers {
    /// Common settings that party and primary must agree on (TOML).
    pub(super) settings: String,
    /// Public key of the primary.
    pub(super) primary: String,
    /// SHA-256 of the party's own data settings.
    pub(super) data: String,
    /// Columns of the party's table.
    pub(super) columns: Vec<String>,
    /// Fingerprint of the roster, if the run has secure sums: they hide the party's values only among members that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) members: Option<String>,
    /// True if the party's secrets derive from the experiment's seed.
    #[serde(default)]
    pub(super) rehearsal: bool,
}

impl Covers {
    /// Returns the hash that names the approval.
    pub(super) fn hash(&self) -> String {
        let columns = serde_json::json!(self.columns).to_string();
        let mut parts = vec!["fet approval, 1", &self.settings, &self.primary, &self.data, &columns];
        parts.extend(self.members.as_deref());
        parts.extend(self.rehearsal.then_some("rehearsal"));
        let all: Vec<u8> = parts.iter().flat_map(|part| fet_io::sha256(part.as_bytes())).collect();
        fet_io::hex(&fet_io::sha256(&all))
    }
}

/// Limits of an approval; `None` for no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Maximum number of runs.
    pub(super) runs: Option<u64>,
    /// Maximum number of primary rows in a run.
    pub(super) rows: Option<u64>,
    /// Maximum number of new records that the party links for predictions.
    pub(super) predictions: Option<u64>,
    /// Last day (UTC), as YYYY-MM-DD.
    pub(super) until: Option<String>,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            None => f.write_str("any number of runs")?,
            Some(1) => f.write_str("1 run")?,
            Some(runs) => write!(f, "{runs} runs")?,
        }
        if let Some(rows) = self.rows {
            write!(f, ", at most {rows} primary rows")?;
        }
        if let Some(records) = self.predictions {
            write!(f, ", {records} records for predictions")?;
        }
        self.until.as_ref().map_or(Ok(()), |until| write!(f, ", until {until}"))
    }
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Approval {
    /// Number of the approval, from 1.
    pub(super) number: u64,
    /// Time of the approval (RFC 3339).
    pub(super) time: String,
    /// Hash of `covers`.
    pub(super) hash: String,
    pub(super) covers: Covers,
    pub(super) limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Entry {
    Approve(Box<Approval>),
    Revoke {
        approval: u64,
        time: String,
    },
    /// A run began under the approval.
    Run {
        approval: u64,
        run: String,
        time: String,
    },
    /// Number of records so far; it may count some ahead.
    Predictions {
        approval: u64,
        records: u64,
        time: String,
    },
}

/// An approval with its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) approval: Approval,
    /// Time of the revocation.
    pub(super) revoked: Option<String>,
    /// Ids of the runs that began under the approval.
    pub(super) runs: BTreeSet<String>,
    /// Number of records in the journal; a running party counts some ahead.
    pub(super) predictions: u64,
}

impl Known {
    /// Returns the present state in one word: valid, used up, or ended.
    pub(super) fn state(&self) -> &'static str {
        match self.ended(&today()) {
            Some(NotApproved::Revoked { .. }) => "revoked",
            Some(_) => "expired",
            None if self.approval.limits.runs.is_some_and(|most| self.runs.len() as u64 >= most) => "used",
            None => "valid",
        }
    }

    /// Returns the use so far.
    pub(super) fn used(&self) -> String {
        format!("{} runs, {} records for predictions", self.runs.len(), self.predictions)
    }

    /// Returns the reason why the approval is no longer valid.
    pub(super) fn ended(&self, today: &str) -> Option<NotApproved> {
        let hash = short(&self.approval.hash);
        if let Some(time) = &self.revoked {
            return Some(NotApproved::Revoked { hash, time: time.clone() });
        }
        let until = self.approval.limits.until.as_ref().filter(|until| until.as_str() < today)?;
        Some(NotApproved::Expired { hash, until: until.clone() })
    }
}

/// A run that asks for an approval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) settings: &'a CommonSettings,
    pub(super) covers: &'a Covers,
    /// Id of the run.
    pub(super) run: &'a str,
    /// Number of primary rows.
    pub(super) rows: u64,
}

/// Reason why an approval does not allow a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotApproved {
    #[error("its owner has approved no run yet; these settings have the hash {hash}")]
    None { hash: String },
    #[error(
        "its owner has not approved these settings (hash {hash}); the approval {approved} of {day} differs in {what}"
    )]
    Other { hash: String, approved: String, day: String, what: String },
    #[error("its owner has not approved the primary's settings: {what}")]
    Asked { what: String },
    #[error("its owner revoked the approval {hash} at {time}")]
    Revoked { hash: String, time: String },
    #[error("the approval {hash} of its owner ended with {until}")]
    Expired { hash: String, until: String },
    #[error("the approval {hash} of its owner allows {most} runs, which are used up")]
    UsedUp { hash: String, most: u64 },
    #[error("the approval {hash} of its owner allows at most {most} primary rows; there are {rows}")]
    Rows { hash: String, most: u64, rows: u64 },
    #[error(
        "the approval {hash} of its owner allows {most} records for predictions; {used} are used, and this request has {rows}"
    )]
    Predictions { hash: String, most: u64, used: u64, rows: u64 },
    #[error("no approved run is under way here; another command with the primary's key may have joined")]
    NotUnderWay,
    #[error("the file of its owner's approvals is unusable; see the log of its operator")]
    Journal(String),
}

impl NotApproved {
    /// Returns the reason with its remedy, for the primary.
    pub(super) fn refusal(&self) -> String {
        match self {
            Self::Journal(_) => self.to_string(),
            _ => format!("{self}. Its operator can approve runs (`fet party approve`)"),
        }
    }
}

/// Returns the first digits of a hash.
pub(super) fn short(hash: &str) -> String {
    hash.chars().take(SHORT).collect()
}

/// Returns the present time (RFC 3339, UTC).
pub(super) fn now() -> String {
    time().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the present day (UTC), as YYYY-MM-DD.
pub(super) fn today() -> String {
    time().format("%Y-%m-%d").to_string()
}

fn time() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).ok();
    seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)).unwrap_or_default()
}

/// The journal of a party's approvals.
pub(super) struct Approvals {
    path: PathBuf,
    lock: File,
    lines: Lines,
    /// Length of the journal that was read, in bytes.
    length: u64,
    known: Vec<Known>,
    /// True counts of records for predictions, by approval.
    counted: BTreeMap<u64, u64>,
    today: fn() -> String,
}

type Checked<T> = Result<T, NotApproved>;

impl Approvals {
    /// Returns the approvals in the party's own folder with their use. A party without approvals gets no file.
    pub(super) fn all(folder: &Path) -> Checked<Vec<Known>> {
        match folder.join(FILE).exists() {
            true => Ok(Self::open(folder)?.known()?.to_vec()),
            false => Ok(Vec::new()),
        }
    }

    /// Opens the journal in the party's own folder; a missing file holds no approvals.
    pub(super) fn open(folder: &Path) -> Checked<Self> {
        let path = folder.join(FILE);
        let failed = |error: io::Error| NotApproved::Journal(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK));
        let (lock, (lines, _)) = (lock.map_err(failed)?, read(&path)?);
        let (length, known, counted) = (u64::MAX, Vec::new(), BTreeMap::new());
        let mut approvals = Self { path, lock, lines, length, known, counted, today };
        approvals.refresh()?;
        Ok(approvals)
    }

    /// Returns the approvals in the order of their time.
    pub(super) fn known(&mut self) -> Checked<&[Known]> {
        self.refresh()?;
        Ok(&self.known)
    }

    /// Records an approval.
    pub(super) fn approve(
        &mut self,
        covers: Covers,
        limits: Limits,
        note: Option<String>,
    ) -> Checked<Approval> {
        self.locked(|this| {
            let number = this.known.len() as u64 + 1;
            let approval = Approval { number, time: now(), hash: covers.hash(), covers, limits, note };
            this.append(Entry::Approve(Box::new(approval.clone())))?;
            Ok(approval)
        })
    }

    /// Revokes all valid approvals of a hash, given by its first digits, or of every hash ("all"). Returns them.
    pub(super) fn revoke(&mut self, which: &str) -> Checked<Vec<Approval>> {
        self.locked(|this| {
            let named = |known: &&Known| {
                let hash = known.approval.hash.as_str();
                which == "all" || (which.len() >= LEAST_DIGITS && hash.starts_with(which))
            };
            let valid = |known: &&Known| known.revoked.is_none();
            let found: Vec<Approval> =
                this.known.iter().filter(named).filter(valid).map(|known| known.approval.clone()).collect();
            for approval in &found {
                this.append(Entry::Revoke { approval: approval.number, time: now() })?;
            }
            Ok(found)
        })
    }

    /// Returns the approval that allows a run, without recording the run.
    pub(super) fn permit(&mut self, asking: &Asking<'_>) -> Checked<u64> {
        self.refresh()?;
        self.find(asking).map(|known| known.approval.number)
    }

    /// Returns the approval that allows a run, and records the run. A run that is recorded already costs nothing.
    pub(super) fn claim(&mut self, asking: &Asking<'_>) -> Checked<u64> {
        self.locked(|this| {
            let known = this.find(asking)?;
            let approval = known.approval.number;
            if !known.runs.contains(asking.run) {
                this.append(Entry::Run { approval, run: asking.run.to_string(), time: now() })?;
            }
            Ok(approval)
        })
    }

    /// Refuses requests under an approval that was revoked.
    pub(super) fn check_kept(&mut self, approval: u64) -> Checked<()> {
        self.refresh()?;
        match self.known.iter().find(|known| known.approval.number == approval) {
            None => Err(NotApproved::NotUnderWay),
            Some(Known { revoked: Some(time), approval, .. }) => {
                Err(NotApproved::Revoked { hash: short(&approval.hash), time: time.clone() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Refuses primary rows under an approval that has ended, or more than it allows.
    pub(super) fn check_rows(&self, approval: u64, rows: u64) -> Checked<()> {
        let known = self.known.iter().find(|known| known.approval.number == approval);
        let known = known.ok_or(NotApproved::NotUnderWay)?;
        known.ended(&(self.today)()).map_or_else(|| allow_rows(&known.approval, rows), Err)
    }

    /// Returns the approval that allows `rows` new records for predictions: this one, or another of the same hash that allows a run
    /// with as many primary rows.
    pub(super) fn permit_predictions(&mut self, approval: u64, of_run: u64, rows: u64) -> Checked<u64> {
        self.refresh()?;
        let number = |known: &&Known| known.approval.number == approval;
        let first = self.known.iter().find(number).ok_or(NotApproved::NotUnderWay)?;
        let covers = |known: &&Known| {
            known.approval.hash == first.approval.hash && allow_rows(&known.approval, of_run).is_ok()
        };
        let others = self.known.iter().filter(covers);
        let mut objection = None;
        for known in std::iter::once(first).chain(others) {
            let used = self.counted(known);
            let most = known.approval.limits.predictions;
            let problem = known.ended(&(self.today)()).or_else(|| {
                let most = most.filter(|most| used.saturating_add(rows) > *most)?;
                Some(NotApproved::Predictions { hash: short(&known.approval.hash), most, used, rows })
            });
            match problem {
                None => return Ok(known.approval.number),
                Some(problem) => objection = objection.or(Some(problem)),
            }
        }
        Err(objection.unwrap_or(NotApproved::NotUnderWay))
    }

    /// Counts `rows` new records for predictions, on the disk, before the answer leaves. The journal always has at least the true
    /// count: a small part of the limit is counted ahead, because writing safely takes longer than a prediction. Returns the number of
    /// the approval that has them.
    pub(super) fn count_predictions(&mut self, approval: u64, of_run: u64, rows: u64) -> Checked<u64> {
        self.locked(|this| {
            let approval = this.permit_predictions(approval, of_run, rows)?;
            let known = this.known.iter().find(|known| known.approval.number == approval);
            let Some(known) = known else { return Err(NotApproved::NotUnderWay) };
            let all = this.counted(known).saturating_add(rows);
            if all > known.predictions {
                let records = match known.approval.limits.predictions {
                    Some(most) => all.saturating_add(most / AHEAD).min(most),
                    None => all.saturating_add(AHEAD),
                };
                this.append(Entry::Predictions { approval, records, time: now() })?;
            }
            this.counted.insert(approval, all);
            Ok(approval)
        })
    }

    /// Writes the true counts of records. If this fails, the journal keeps larger ones.
    pub(super) fn settle(&mut self) -> Checked<()> {
        self.locked(|this| {
            for (approval, records) in std::mem::take(&mut this.counted) {
                let known = this.known.iter().find(|known| known.approval.number == approval);
                if known.is_some_and(|known| records < known.predictions) {
                    this.append(Entry::Predictions { approval, records, time: now() })?;
                }
            }
            Ok(())
        })
    }

    fn counted(&self, known: &Known) -> u64 {
        self.counted.get(&known.approval.number).copied().unwrap_or(known.predictions)
    }

    /// Returns the valid approval that allows a run: that of an earlier session of the run, or one with a run left.
    fn find(&self, asking: &Asking<'_>) -> Checked<&Known> {
        let hash = asking.covers.hash();
        let own: Vec<&Known> = self.known.iter().filter(|known| known.approval.hash == hash).collect();
        if own.is_empty() {
            return Err(self.other(asking, &hash));
        }
        let (began, others): (Vec<&Known>, Vec<&Known>) =
            own.into_iter().partition(|known| known.runs.contains(asking.run));
        let (mut ended, mut objection) = (None, None);
        for (known, has_begun) in
            began.iter().map(|one| (*one, true)).chain(others.iter().map(|one| (*one, false)))
        {
            if let Some(reason) = known.ended(&(self.today)()) {
                ended = Some(reason);
                continue;
            }
            let most =
                known.approval.limits.runs.filter(|most| !has_begun && known.runs.len() as u64 >= *most);
            let used_up = most.map(|most| NotApproved::UsedUp { hash: short(&hash), most });
            match used_up.map_or_else(|| allow_rows(&known.approval, asking.rows), Err) {
                Ok(()) => return Ok(known),
                Err(reason) => objection = objection.or(Some(reason)),
            }
        }
        Err(objection.or(ended).unwrap_or(NotApproved::None { hash }))
    }

    /// Names the latest approval of other settings, and the first difference.
    fn other(&self, asking: &Asking<'_>, hash: &str) -> NotApproved {
        let hash = short(hash);
        // The approvals of other primaries do not concern this one.
        let is_of_primary = |known: &&Known| known.approval.covers.primary == asking.covers.primary;
        let mut own = self.known.iter().filter(is_of_primary);
        let Some(latest) = own.rfind(|known| known.ended(&(self.today)()).is_none()) else {
            return NotApproved::None { hash };
        };
        let (theirs, ours) = (&latest.approval.covers, asking.covers);
        let what = if let Some((field, now, then)) = asking.settings.difference(&theirs.settings) {
            format!("`{field}`: {then} is approved, now it is {now}")
        } else if theirs.columns != ours.columns {
            "the columns of the party's table".to_string()
        } else if theirs.members != ours.members {
            "the members of the roster".to_string()
        } else if theirs.rehearsal != ours.rehearsal {
            "`rehearsal`".to_string()
        } else {
            "the party's own settings of its data".to_string()
        };
        let day = latest.approval.time.chars().take(10).collect();
        NotApproved::Other { hash, approved: short(&latest.approval.hash), day, what }
    }

    fn locked<T>(&mut self, work: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        let failed = |error: &io::Error| NotApproved::Journal(format!("{}: {error}", self.path.display()));
        let lock = self.lock.try_clone().map_err(|error| failed(&error))?;
        match lock.lock() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            locked => locked.map_err(|error| failed(&error))?,
        }
        let result = self.refresh().and_then(|()| work(self));
        // The lock ends with the process at the latest.
        let _ = lock.unlock();
        result
    }

    /// Reads the lines that other processes wrote.
    fn refresh(&mut self) -> Checked<()> {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        if length == self.length {
            return Ok(());
        }
        let (lines, objects) = read(&self.path)?;
        let mut known = Vec::new();
        for (place, object) in objects.iter().enumerate() {
            let entry = serde_json::from_str(object).map_err(|error| {
                let problem = format!("this program did not write line {} ({error})", place + 1);
                NotApproved::Journal(format!("{}: {problem}", self.path.display()))
            })?;
            apply(&mut known, entry);
        }
        (self.lines, self.known, self.length) = (lines, known, length);
        Ok(())
    }

    fn append(&mut self, entry: Entry) -> Checked<()> {
        let failed = |error: &dyn fmt::Display| {
            NotApproved::Journal(format!("{} cannot be written: {error}", self.path.display()))
        };
        let object = serde_json::to_string(&entry).map_err(|error| failed(&error))?;
        self.lines.append(&object).map_err(|error| failed(&error))?;
        self.length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        apply(&mut self.known, entry);
        Ok(())
    }
}

fn allow_rows(approval: &Approval, rows: u64) -> Checked<()> {
    match approval.limits.rows.filter(|most| rows > *most) {
        Some(most) => Err(NotApproved::Rows { hash: short(&approval.hash), most, rows }),
        None => Ok(()),
    }
}

fn apply(known: &mut Vec<Known>, entry: Entry) {
    let number = match &entry {
        Entry::Approve(approval) => {
            let approval = (**approval).clone();
            known.push(Known { approval, revoked: None, runs: BTreeSet::new(), predictions: 0 });
            return;
        }
        Entry::Revoke { approval, .. }
        | Entry::Run { approval, .. }
        | Entry::Predictions { approval, .. } => *approval,
    };
    let Some(known) = known.iter_mut().find(|known| known.approval.number == number) else { return };
    match entry {
        Entry::Approve(_) => {}
        Entry::Revoke { time, .. } => known.revoked = Some(time),
        Entry::Run { run, .. } => drop(known.runs.insert(run)),
        Entry::Predictions { records, .. } => known.predictions = records,
    }
}

fn read(path: &Path) -> Checked<(Lines, Vec<String>)> {
    Lines::open(path).map_err(|error| {
        NotApproved::Journal(match error {
            LinesError::Damaged(_) => format!("{} is damaged: {error}", path.display()),
            error => format!("{} cannot be read: {error}", path.display()),
        })
    })
}

#[cfg(test)]
mod tests {
    use fet_core::experiment::Experiment;

    use super::*;

    fn settings(epochs: usize) -> CommonSettings {
        let text = format!(
            "name = \"n\"\ntrain = {{ epochs = {epochs} }}\n[data]\nkind = \"linked\"\nlabel = \"z\"\n\
             primary = {{ file = \"p.csv\", keys = [\"x\"] }}\nsecondaries = [{{ file = \"s.csv\", keys = [\"x\"] }}]\n"
        );
        Experiment::from_table(text.parse().expect("TOML")).expect("an experiment").common()
    }

    fn covers(settings: &CommonSettings) -> Covers {
        let columns = vec!["lines".to_string()];
        let (primary, data) = ("K".into(), "d".into());
        Covers { settings: settings.terms(), primary, data, columns, members: None, rehearsal: false }
    }

    struct Place(tempfile::TempDir, CommonSettings);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"), settings(20))
        }

        fn open(&self) -> Approvals {
            Approvals::open(self.0.path()).expect("intact")
        }

        fn approve(&self, limits: Limits) -> u64 {
            self.open().approve(covers(&self.1), limits, None).expect("written").number
        }
    }

    /// Claims a run of these settings and rows, and compares with an approval or a part of the refusal.
    fn check(
        approvals: &mut Approvals,
        settings: &CommonSettings,
        (run, rows): (&str, u64),
        expected: Result<u64, &str>,
    ) {
        let covers = covers(settings);
        let asking = Asking { settings, covers: &covers, run, rows };
        let permitted = approvals.permit(&asking);
        let found = approvals.claim(&asking);
        assert_eq!(permitted, found, "`permit` and `claim` agree");
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{run}"),
            (Err(reason), Err(part)) => assert!(reason.to_string().contains(part), "{reason}"),
            (found, expected) => panic!("{run}: {found:?}, expected {expected:?}"),
        }
    }

    fn once() -> Limits {
        Limits { runs: Some(1), ..Limits::default() }
    }

    #[test]
    fn the_hash_covers_settings_primary_data_and_columns() {
        let usual = covers(&settings(20));
        let others = [
            covers(&settings(21)),
            Covers { primary: "L".into(), ..usual.clone() },
            Covers { data: "e".into(), ..usual.clone() },
            Covers { columns: vec!["lines".into(), "rain".into()], ..usual.clone() },
            Covers { columns: Vec::new(), ..usual.clone() },
            Covers { members: Some("f".into()), ..usual.clone() },
            Covers { rehearsal: true, ..usual.clone() },
        ];
        assert_eq!(usual.hash(), covers(&settings(20)).hash());
        others.iter().for_each(|other| assert_ne!(other.hash(), usual.hash(), "{other:?}"));
    }

    #[test]
    fn counts_each_run_once() {
        let place = Place::new();
        let mut approvals = place.open();
        check(&mut approvals, &place.1, ("a", 10), Err("has approved no run yet"));
        place.approve(once());
        // The open journal sees the approval, which another process wrote.
        for (run, expected) in [("a", Ok(1)), ("a", Ok(1)), ("b", Err("allows 1 runs, which are used up"))] {
            check(&mut approvals, &place.1, (run, 10), expected);
        }
        place.approve(Limits { runs: Some(2), ..Limits::default() });
        for (run, expected) in [("b", Ok(2)), ("c", Ok(2)), ("d", Err("used up")), ("a", Ok(1))] {
            check(&mut approvals, &place.1, (run, 10), expected);
        }
        place.approve(Limits::default());
        for run in ["d", "e", "f"] {
            check(&mut place.open(), &place.1, (run, 10), Ok(3));
        }
    }

    #[test]
    fn names_the_difference_to_the_latest_approval() {
        let place = Place::new();
        place.approve(once());
        let mut approvals = place.open();
        check(&mut approvals, &settings(40), ("a", 1), Err("`train.epochs`: 20 is approved, now it is 40"));
        let covers = |change: fn(&mut Covers)| {
            let mut covers = covers(&place.1);
            change(&mut covers);
            covers
        };
        for (covers, part) in [
            (covers(|covers| covers.primary.push('L')), "has approved no run yet"),
            (covers(|covers| covers.data.push('e')), "own settings of its data"),
            (covers(|covers| covers.columns.clear()), "the columns of the party's table"),
        ] {
            let asking = Asking { settings: &place.1, covers: &covers, run: "a", rows: 1 };
            let reason = approvals.permit(&asking).expect_err("another hash").to_string();
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn refuses_rows_days_and_revoked_approvals() {
        let place = Place::new();
        let until = Some("2030-05-01".to_string());
        let number = place.approve(Limits { rows: Some(100), until, ..Limits::default() });
        let mut approvals = place.open();
        approvals.today = || "2030-05-01".into();
        check(&mut approvals, &place.1, ("a", 101), Err("at most 100 primary rows; there are 101"));
        check(&mut approvals, &place.1, ("a", 100), Ok(number));
        approvals.today = || "2030-05-02".into();
        check(&mut approvals, &place.1, ("a", 100), Err("ended with 2030-05-01"));
        approvals.today = today;
        approvals.check_kept(number).expect("kept");
        assert!(place.open().revoke("0000000").expect("none").is_empty());
        let hash = covers(&place.1).hash();
        assert!(place.open().revoke(&hash[..7]).expect("too short").is_empty());
        assert_eq!(place.open().revoke(&hash[..8]).expect("written").len(), 1);
        assert!(matches!(approvals.check_kept(number), Err(NotApproved::Revoked { .. })));
        check(&mut approvals, &place.1, ("a", 1), Err("revoked"));
        let next = place.approve(Limits::default());
        check(&mut approvals, &place.1, ("a", 1), Ok(next));
        assert_eq!(place.open().revoke("all").expect("written").len(), 1);
        check(&mut approvals, &place.1, ("a", 1), Err("revoked"));
    }

    #[test]
    fn the_journal_never_has_less_than_the_true_number_of_predictions() {
        let place = Place::new();
        let number = place.approve(Limits { predictions: Some(5_000), ..Limits::default() });
        let in_file = || place.open().known().expect("intact")[0].predictions;
        let mut all = 0;
        for session in 0..3 {
            let mut approvals = place.open();
            for _ in 0..20 {
                approvals.count_predictions(number, 0, 1).expect("within the limit");
                all += 1;
                assert!((all..=all + 5).contains(&in_file()), "{} for {all}", in_file());
            }
            if session == 1 {
                // A killed party loses what it counted ahead.
                all = in_file();
                continue;
            }
            approvals.settle().expect("written");
            assert_eq!(in_file(), all);
        }
        let mut approvals = place.open();
        let rest = 5_000 - all;
        let reason = approvals.count_predictions(number, 0, rest + 1).expect_err("too many").to_string();
        assert!(reason.contains(&format!("5000 records for predictions; {all} are used")), "{reason}");
        approvals.count_predictions(number, 0, rest).expect("exactly the limit");
        approvals.permit_predictions(number, 0, 1).expect_err("used up");
        assert_eq!(in_file(), 5_000);
        // Another approval of the same settings has room.
        place.approve(Limits { predictions: Some(10), ..Limits::default() });
        approvals.count_predictions(number, 0, 10).expect("the second approval");
        approvals.count_predictions(number, 0, 1).expect_err("both are used up");
        // An approval of smaller runs does not serve this run.
        place.approve(Limits { predictions: Some(10), rows: Some(600), ..Limits::default() });
        approvals.count_predictions(number, 700, 1).expect_err("it allows 600 rows");
        assert_eq!(approvals.count_predictions(number, 600, 1).expect("it has room"), 3);
    }

    #[test]
    fn refuses_a_damaged_journal() {
        let place = Place::new();
        place.approve(once());
        let mut approvals = place.open();
        let path = place.0.path().join(FILE);
        let text = std::fs::read_to_string(&path).expect("there").replace("\"runs\":1", "\"runs\":99");
        std::fs::write(&path, text).expect("writable");
        assert!(matches!(approvals.known(), Err(NotApproved::Journal(_))));
    }
}
