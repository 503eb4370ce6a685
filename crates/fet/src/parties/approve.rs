//! `fet party approve`, `revoke` and `approvals`: the owner's decisions on runs. The party may be running meanwhile.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fet_io::input::input;
use serde_json::{Value, json};

use super::approval::{Approval, Approvals, Known, Limits, NotApproved, short, today};
use super::audit_log::{AuditEvent, AuditLog, day};
use super::check;
use super::owner::Subject;
use super::setup::{PartyFile, PartyFiles, own_folder, private_folder};
use crate::reporter::{Log, Reporter};

/// Longest note, in characters.
const LONGEST_NOTE: usize = 500;

/// Arguments of `fet party approve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ApproveArguments {
    /// The party's own file (TOML).
    pub file: PathBuf,
    /// Maximum number of runs; a run counts once, and resuming it is free.
    #[arg(long, default_value_t = 1, conflicts_with = "standing")]
    pub runs: u64,
    /// Approve any number of runs.
    #[arg(long)]
    pub standing: bool,
    /// Maximum number of primary rows in a run.
    #[arg(long)]
    pub rows: Option<u64>,
    /// Maximum number of new records for predictions; without it, the policy alone limits them.
    #[arg(long)]
    pub predictions: Option<u64>,
    /// Last day (UTC) on which runs may begin and predictions are answered, as YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// Text for the list of approvals and the audit log.
    #[arg(long)]
    pub note: Option<String>,
}

/// Arguments of `fet party revoke`.
#[derive(Debug, Clone, clap::Args)]
pub struct RevokeArguments {
    /// The party's own file (TOML).
    pub file: PathBuf,
    /// Hash of the approved settings, or its first 8 digits or more; "all" for all approvals.
    pub hash: String,
}

/// Arguments of `fet party approvals`.
#[derive(Debug, Clone, clap::Args)]
pub struct ApprovalsArguments {
    /// The party's own file (TOML).
    pub file: PathBuf,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// Approves runs with the present settings; returns what they release.
pub fn approve(arguments: &ApproveArguments) -> anyhow::Result<String> {
    let limits = limits(arguments)?;
    let files = PartyFiles::read(&arguments.file)?;
    let setup = files.setup(Reporter::new(&files.file.party, Log::Human))?;
    let subject = Subject::new(&setup, &files.roster)?;
    let (mut approvals, log) = open(&arguments.file, &files.state())?;
    let covers = subject.covers.clone();
    let approval = approvals
        .approve(covers, limits, arguments.note.clone())
        .map_err(|problem| failed(&arguments.file, &problem))?;
    let (event, primary) = (event("approved", &approval), Some(subject.primary.clone()));
    log.record(&AuditEvent { primary, ..event }, true).map_err(input)?;
    let rows = arguments.rows.and_then(|rows| usize::try_from(rows).ok());
    let report = check::report(&files, &setup, rows)?;
    let mut text = check::text(&report);
    let _ = writeln!(text, "\napproved {}: {}", approval.hash, approval.limits);
    if !files.file.approval.required {
        text += "note: `approval.required` is false in the party's file: the policy alone decides on runs\n";
    }
    Ok(text)
}

fn limits(arguments: &ApproveArguments) -> anyhow::Result<Limits> {
    let ApproveArguments { runs, standing, rows, predictions, until, note, .. } = arguments;
    if *runs == 0 {
        return Err(input("--runs must be at least 1; it is 0. `fet party revoke` ends an approval"));
    }
    if *rows == Some(0) {
        return Err(input("--rows must be at least 1; it is 0"));
    }
    if let Some(until) = until {
        day(until).map_err(|problem| input(format!("--until {problem}")))?;
        if *until < today() {
            return Err(input(format!("--until must not be a day in the past; it is {until}")));
        }
    }
    if note
        .as_ref()
        .is_some_and(|note| note.chars().count() > LONGEST_NOTE || note.contains(char::is_control))
    {
        return Err(input(format!("--note must be one line of at most {LONGEST_NOTE} characters")));
    }
    let runs = (!standing).then_some(*runs);
    Ok(Limits { runs, rows: *rows, predictions: *predictions, until: until.clone() })
}

/// Revokes approvals.
pub fn revoke(arguments: &RevokeArguments) -> anyhow::Result<String> {
    let path = &arguments.file;
    let (mut approvals, log) = open(path, &state(path)?)?;
    let revoked = approvals.revoke(&arguments.hash).map_err(|problem| failed(path, &problem))?;
    if revoked.is_empty() && arguments.hash != "all" {
        return Err(input(format!(
            "{}: no valid approval has the hash {}; `fet party approvals` lists the hashes, and 8 digits are enough",
            path.display(),
            arguments.hash
        )));
    }
    let mut text = String::new();
    for approval in &revoked {
        log.record(&event("revoked", approval), true).map_err(input)?;
        let _ = writeln!(text, "revoked {} of {}", approval.hash, approval.time);
    }
    Ok(if text.is_empty() { "all approvals had ended already\n".to_string() } else { text })
}

/// Lists the approvals.
pub fn approvals(arguments: &ApprovalsArguments) -> anyhow::Result<String> {
    let path = &arguments.file;
    let own = own_folder(&state(path)?);
    let known = Approvals::all(&own).map_err(|problem| failed(path, &problem))?;
    if arguments.json {
        return Ok(format!("{}\n", known.iter().map(object).collect::<Value>()));
    }
    let mut text: String = known.iter().map(line).collect();
    if text.is_empty() {
        text += "the owner has approved nothing yet\n";
    }
    Ok(text)
}

fn state(path: &Path) -> anyhow::Result<PathBuf> {
    Ok(path.parent().unwrap_or(Path::new("")).join(PartyFile::read(path)?.state))
}

fn open(path: &Path, state: &Path) -> anyhow::Result<(Approvals, AuditLog)> {
    let own = own_folder(state);
    private_folder(&own).map_err(|error| {
        input(format!("{}: `state`: cannot create {} ({error})", path.display(), own.display()))
    })?;
    let log = AuditLog::open(&own).map_err(input)?;
    Ok((Approvals::open(&own).map_err(|problem| failed(path, &problem))?, log))
}

fn failed(path: &Path, problem: &NotApproved) -> anyhow::Error {
    match problem {
        NotApproved::Journal(problem) => input(problem),
        problem => input(format!("{}: {problem}", path.display())),
    }
}

fn event(name: &str, approval: &Approval) -> AuditEvent {
    let note = approval.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
    AuditEvent {
        settings: Some(approval.hash.clone()),
        approval: Some(approval.number),
        message: Some(format!("{}{note}", approval.limits)),
        ..AuditEvent::new(name)
    }
}

fn line(known: &Known) -> String {
    let Approval { number, time, hash, limits, note, .. } = &known.approval;
    let used = format!("used: {}", known.used());
    let note = note.as_ref().map_or_else(String::new, |note| format!("; {note:?}"));
    let state = known.state();
    let runs: String = known.runs.iter().map(|run| format!("    run {run}\n")).collect();
    format!("{number:>3}  {}  {time}  {state:<7}  {}; {used}{note}\n{runs}", short(hash), limits)
}

fn object(known: &Known) -> Value {
    let Approval { number, time, hash, covers, limits, note } = &known.approval;
    json!({
        "number": number,
        "time": time,
        "hash": hash,
        "state": known.state(),
        "limits": limits,
        "note": note,
        "primary": covers.primary,
        "columns": covers.columns,
        "settings": covers.settings,
        "revoked": known.revoked,
        "runs": known.runs,
        "predictions": known.predictions,
    })
}
