//! Audit log of a party: a hash chain of events in `audit.jsonl`, and the commands `fet log`.
//!
//! The log holds counts and settings, never keys, values or names of records.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fet_io::chain::{self, Chain, ChainError, Head};
use fet_io::input::input;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::{now, short};
use super::setup::{PartyFile, own_folder};

/// Name of the log in the party's own folder.
const FILE: &str = "audit.jsonl";
/// Number of bytes at the end of the log that [`latest`] reads.
const LATEST_BYTES: u64 = 64 << 10;
/// Shortest hash that `--head` accepts, in digits.
const LEAST_DIGITS: usize = 16;

/// An event of the log. An absent member does not apply to the event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AuditEvent {
    /// Time of the event (RFC 3339, UTC); [`AuditLog::record`] sets it.
    pub(super) time: String,
    /// Name of the event.
    pub(super) event: String,
    /// Id of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// Purpose of the session: "run" or "predictions".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) purpose: Option<String>,
    /// Name and key of the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) primary: Option<String>,
    /// The primary's program, as it names itself; this program for the events `started` and `stopped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    /// Hash of the settings, as `fet party check` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<String>,
    /// Number of the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<u64>,
    /// Name of a refused request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// Number of primary rows, or of new records for predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<u64>,
    /// Number of answered rounds of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rounds: Option<u64>,
    /// Bytes of the values that the party sent, as the report of a run counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// ε of the run: planned in `agreed`, spent in `ended`. Absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epsilon: Option<f64>,
    /// ε of all runs of the party together, with this one as planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lifetime_epsilon: Option<f64>,
    /// Further text, such as the reason of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

impl AuditEvent {
    pub(super) fn new(event: &str) -> Self {
        Self { event: event.to_string(), ..Self::default() }
    }
}

/// The log of a party, which threads and processes share.
pub(super) struct AuditLog {
    path: PathBuf,
    chain: Mutex<Chain>,
}

impl AuditLog {
    /// Opens the log in the party's own folder, and notes a repaired end as an event.
    ///
    /// # Errors
    /// The log cannot be read, or its chain is not intact.
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join(FILE);
        let (chain, torn) = Chain::open(&path).map_err(|error| unusable(&path, &error))?;
        let log = Self { path, chain: Mutex::new(chain) };
        if let Some(bytes) = torn {
            let message = format!("removed {bytes} bytes of an incomplete last line");
            log.record(&AuditEvent { message: Some(message), ..AuditEvent::new("repaired") }, true)?;
        }
        Ok(log)
    }

    /// Appends an event; a `durable` event is on the disk afterwards.
    pub(super) fn record(&self, event: &AuditEvent, durable: bool) -> Result<Head, String> {
        let event = AuditEvent { time: now(), ..event.clone() };
        let object = serde_json::to_string(&event).map_err(|error| error.to_string())?;
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        chain.append(&object, durable).map_err(|error| unusable(&self.path, &error))
    }
}

/// Returns the latest events of the log in the party's own folder, the last one first, without a check of the chain.
///
/// # Errors
/// The log cannot be read.
pub(super) fn latest(folder: &Path, most: usize) -> Result<Vec<AuditEvent>, String> {
    let path = folder.join(FILE);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LATEST_BYTES))).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LATEST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be incomplete, and the last one is if a process writes it.
    Ok(text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(most).collect())
}

fn unusable(path: &Path, error: &ChainError) -> String {
    match error {
        ChainError::Fault(fault) => format!(
            "{}: {fault}. The party starts again with the intact log, or with a new one: move the files audit.* away, and keep them",
            path.display()
        ),
        error => format!("{}: {error}", path.display()),
    }
}

/// Commands of `fet log`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum LogCommand {
    /// Print the events of a party's audit log.
    Show(LogShowArguments),
    /// Check that no line of a party's audit log was removed, changed, inserted or moved.
    ///
    /// The command exits with 0 if the log is intact, and with 1 after it named the first bad line.
    Verify(LogVerifyArguments),
}

/// Arguments of `fet log show`.
#[derive(Debug, Clone, clap::Args)]
pub struct LogShowArguments {
    /// The party's own file, or a copy of its `audit.jsonl`.
    pub place: PathBuf,
    /// Only the events of the run with this id, or with an id that starts like this.
    #[arg(long)]
    pub run: Option<String>,
    /// Only the events since this day (UTC), as YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Print each event as a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fet log verify`.
#[derive(Debug, Clone, clap::Args)]
pub struct LogVerifyArguments {
    /// The party's own file, or a copy of its `audit.jsonl`.
    pub place: PathBuf,
    /// Hash of a line that was noted earlier, or its first 16 digits or more: the line must still be in the log.
    #[arg(long, value_name = "HASH")]
    pub head: Option<String>,
}

/// Shows or verifies a log. Returns the text to print, and true if the log is intact.
pub fn log(command: &LogCommand) -> anyhow::Result<(String, bool)> {
    match command {
        LogCommand::Show(arguments) => show(arguments).map(|text| (text, true)),
        LogCommand::Verify(arguments) => verify(arguments),
    }
}

/// Returns the file of a party's log.
fn place(place: &Path) -> anyhow::Result<PathBuf> {
    let path = if place.extension().is_some_and(|extension| extension == "jsonl") {
        place.to_path_buf()
    } else {
        let file = PartyFile::read(place)?;
        own_folder(&place.parent().unwrap_or(Path::new("")).join(&file.state)).join(FILE)
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(input(format!("{}: the audit log is missing; `fet party` writes it", path.display()))),
    }
}

fn show(arguments: &LogShowArguments) -> anyhow::Result<String> {
    if let Some(since) = &arguments.since {
        day(since).map_err(|problem| input(format!("--since {problem}")))?;
    }
    let path = place(&arguments.place)?;
    let mut text = String::new();
    let mut add = |_: &Head, line: &str| {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let member = |name: &str| event[name].as_str().unwrap_or_default();
        let is_of_run = arguments.run.as_ref().is_none_or(|run| member("run").starts_with(run.as_str()));
        let is_later = arguments.since.as_ref().is_none_or(|since| member("time") >= since.as_str());
        if is_of_run && is_later {
            let _ = match arguments.json {
                true => writeln!(text, "{line}"),
                false => writeln!(text, "{}", sentence(&event)),
            };
        }
    };
    match chain::verify(&path, &mut add) {
        Ok(_) => {}
        // The lines before the fault are shown, and standard error names the fault.
        Err(ChainError::Fault(fault)) => fet_io::note!("warning: {}: {fault}", path.display()),
        Err(error) => return Err(input(format!("{}: {error}", path.display()))),
    }
    Ok(text)
}

/// Returns an event as a line for people.
fn sentence(event: &Value) -> String {
    let member = |name: &str| event[name].as_str().unwrap_or_default().to_string();
    let mut text = format!("{:>6}  {}  {:<11}", event["number"], member("time"), member("event"));
    for name in ["run", "settings"] {
        if let Some(value) = event[name].as_str() {
            let _ = write!(text, "  {name} {}", short(value));
        }
    }
    let names = [
        "purpose",
        "primary",
        "program",
        "approval",
        "request",
        "rows",
        "rounds",
        "bytes",
        "epsilon",
        "lifetime_epsilon",
        "message",
    ];
    for name in names {
        let _ = match &event[name] {
            Value::Null => Ok(()),
            Value::String(value) => write!(text, "  {name} {value:?}"),
            value => write!(text, "  {name} {value}"),
        };
    }
    text
}

fn verify(arguments: &LogVerifyArguments) -> anyhow::Result<(String, bool)> {
    let path = place(&arguments.place)?;
    let wanted = arguments.head.as_ref().map(|head| head.to_lowercase());
    if let Some(wanted) = &wanted {
        let is_hash = wanted.len() >= LEAST_DIGITS && wanted.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_hash {
            return Err(input(format!(
                "--head must be the hash of a line, or its first {LEAST_DIGITS} hexadecimal digits or more; it is {wanted:?}"
            )));
        }
    }
    let mut noted = None;
    let mut look = |head: &Head, _: &str| {
        if wanted.as_ref().is_some_and(|wanted| head.hash.starts_with(wanted.as_str())) {
            noted = Some(head.number);
        }
    };
    let shown = path.display();
    match chain::verify(&path, &mut look) {
        Err(ChainError::Fault(fault)) => Ok((format!("{shown}: {fault}\n"), false)),
        Err(error) => Err(input(format!("{shown}: {error}"))),
        Ok(_) if wanted.is_some() && noted.is_none() => Ok((
            format!(
                "{shown}: no line has the hash of --head: lines were removed, or the chain was written again\n"
            ),
            false,
        )),
        Ok(verified) => {
            let mut text = format!(
                "{shown}: {} lines are intact; the last hash is {}\n",
                verified.head.number, verified.head.hash
            );
            if let Some(number) = noted {
                let _ = writeln!(text, "line {number} has the hash of --head");
            }
            if verified.torn {
                text += "the last line is incomplete: a process was killed; `fet party` removes the line at its start\n";
            }
            Ok((text, true))
        }
    }
}

/// Checks a day, YYYY-MM-DD.
pub(super) fn day(text: &str) -> Result<(), String> {
    let is_plain = text.len() == 10 && chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok();
    is_plain.then_some(()).ok_or_else(|| format!("must be a day, as in 2030-12-31; it is {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_and_verifies_the_events_of_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = AuditLog::open(folder.path()).expect("a new log");
        let of_run =
            |run: &str| AuditEvent { run: Some(run.repeat(32)), rows: Some(7), ..AuditEvent::new("agreed") };
        for (event, durable) in
            [(AuditEvent::new("started"), true), (of_run("a"), true), (of_run("b"), false)]
        {
            log.record(&event, durable).expect("written");
        }
        let path = folder.path().join(FILE);
        let show = |run: Option<&str>, since: Option<&str>, json: bool| {
            let (run, since) = (run.map(String::from), since.map(String::from));
            show(&LogShowArguments { place: path.clone(), run, since, json }).expect("a log")
        };
        assert_eq!(show(None, None, false).lines().count(), 3);
        assert_eq!(show(None, Some("2000-01-01"), false).lines().count(), 3);
        assert_eq!(show(None, Some("2999-01-01"), false), "");
        let event: Value = serde_json::from_str(&show(Some("aaa"), None, true)).expect("one line");
        assert_eq!((&event["number"], &event["rows"]), (&2.into(), &7.into()));
        let verify = |head: Option<&str>| {
            verify(&LogVerifyArguments { place: path.clone(), head: head.map(String::from) })
        };
        let hash = event["hash"].as_str().expect("a hash");
        let (text, intact) = verify(Some(hash)).expect("a log");
        assert!(intact && text.contains("3 lines are intact") && text.contains("line 2 has"), "{text}");
        assert!(!verify(Some(&"0".repeat(64))).expect("a log").1);
        verify(Some("none")).expect_err("no hash");
        let latest = latest(folder.path(), 2).expect("a log");
        assert_eq!(
            latest.iter().filter_map(|event| event.run.clone()).collect::<Vec<_>>(),
            ["b".repeat(32), "a".repeat(32)]
        );
        // A killed process leaves a part of a line; the next start notes it.
        drop(log);
        let whole = std::fs::read(&path).expect("there");
        std::fs::write(&path, &whole[..whole.len() - 9]).expect("writable");
        assert!(verify(None).expect("a log").0.contains("the last line is incomplete"));
        drop(AuditLog::open(folder.path()).expect("repaired"));
        assert!(show(None, None, false).contains("repaired"), "{}", show(None, None, false));
        let (text, intact) = verify(None).expect("a log");
        assert!(intact && !text.contains("incomplete"), "{text}");
        // A removed line.
        let text = std::fs::read_to_string(&path).expect("there");
        let rest: Vec<&str> = text.lines().filter(|line| !line.contains("\"agreed\"")).collect();
        std::fs::write(&path, rest.join("\n") + "\n").expect("writable");
        let (text, intact) = verify(None).expect("a log");
        assert!(!intact && text.contains("1 lines were removed before line 2"), "{text}");
        assert!(AuditLog::open(folder.path()).is_err_and(|problem| problem.contains("move the files")));
    }

    #[test]
    fn refuses_days_in_another_form() {
        for text in ["2030-1-1", "2030-02-30", "1.2.2030", "tomorrow", ""] {
            assert!(day(text).is_err(), "{text}");
        }
        day("2030-12-31").expect("a day");
    }
}
