//! `fet status`: shows the state of a run's links, as the process that owns the links writes it to a file.
//!
//! The primary writes into the folder of the run, another party into its `state` folder. The file describes
//! the current moment only: no run reads it, its loss does no harm, and the process removes it at its end. No
//! party asks another party for its status, so each process reports only its own knowledge.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use fet_net::{Activity, Connection, Settings};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::setup::PartyFile;
use crate::folder::{CHECKPOINT, REPORT};
use crate::{ledger, lock};
use fet_io::input::{InputError, input};

const FILE: &str = "status.json";
/// Time between two writes.
const PAUSE: Duration = Duration::from_millis(1000);
/// Age in seconds above which a status is out of date.
const STALE: u64 = 10;
/// Time between two checks for the end of the process.
const DOZE: Duration = Duration::from_millis(50);

/// Arguments of `fet status`.
#[derive(Debug, Clone, clap::Args)]
pub struct StatusArguments {
    /// At the primary: the folder of a run. At another party: the party's own file.
    pub place: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 if there is a problem: no process, an interrupted link, or a silent party. Otherwise exit
    /// with 0.
    #[arg(long)]
    pub check: bool,
}

/// State of a process and its links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartyStatus {
    /// Party that runs the process.
    pub(crate) party: String,
    /// Name of the run in the roster.
    pub(crate) run: String,
    /// Current activity of the process.
    pub(crate) doing: String,
    /// Links of the process.
    pub(crate) links: Vec<LinkStatus>,
    /// Time of this status, in seconds since 1970.
    #[serde(default)]
    pub(crate) written: u64,
}

/// State of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkStatus {
    /// Party at the other end.
    pub(crate) party: String,
    /// Current activity of the link, and the state of the connection to the server.
    pub(crate) state: String,
    /// Time since the last packet from the other end, in seconds.
    pub(crate) heard_seconds: Option<f64>,
    /// Round-trip time of a packet.
    pub(crate) latency_milliseconds: Option<f64>,
    /// Number of sent bytes.
    pub(crate) sent: u64,
    /// Number of received bytes.
    pub(crate) received: u64,
    /// True if the link works.
    #[serde(default)]
    pub(crate) well: bool,
}

impl LinkStatus {
    /// Returns the status of the link to `party`; `waits` is true if it is normal that this end waits for the
    /// party to join.
    pub(crate) fn from_state(party: &str, state: &fet_net::State, waits: bool) -> Self {
        let connected = matches!(state.connection, Connection::Up { warning: None });
        let heard = match state.doing {
            Activity::Idle => true,
            Activity::Joining => waits,
            _ => state.heard.is_none_or(|heard| heard < Settings::default().silence),
        };
        Self {
            party: party.to_string(),
            state: state.to_string(),
            heard_seconds: state.heard.map(|heard| heard.as_secs_f64()),
            latency_milliseconds: state.latency.map(|latency| 1e3 * latency.as_secs_f64()),
            sent: state.sent,
            received: state.received,
            well: connected && heard && state.objection.is_none(),
        }
    }
}

/// Writes the status of this process once a second, until it is dropped.
pub(crate) struct Mirror {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Mirror {
    /// Starts writing the results of `look` into `folder`.
    pub(crate) fn start(folder: &Path, mut look: impl FnMut() -> PartyStatus + Send + 'static) -> Self {
        let (path, ended) = (folder.join(FILE), Arc::new(AtomicBool::new(false)));
        let (place, stop) = (path.clone(), Arc::clone(&ended));
        let write = move || {
            let mut waited = PAUSE;
            while !stop.load(Ordering::Relaxed) {
                if waited >= PAUSE {
                    waited = Duration::ZERO;
                    // The process continues if the status cannot be written.
                    let _ = replace(&place, &look());
                }
                std::thread::sleep(DOZE);
                waited += DOZE;
            }
        };
        let thread = std::thread::Builder::new().name("fet-status".into()).spawn(write).ok();
        Self { ended, thread, path }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Replaces the file without flushing it to the disk, because the status is short-lived.
fn replace(path: &Path, status: &PartyStatus) -> std::io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(&PartyStatus { written: seconds(), ..status.clone() })?)?;
    std::fs::rename(&new, path)
}

/// Returns the seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Removes the file of an earlier process.
pub(super) fn clear(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(FILE));
}

/// Returns the answer of `fet status`, and true if all is well.
pub fn status(arguments: &StatusArguments) -> anyhow::Result<(String, bool)> {
    let folder = folder(&arguments.place)?;
    let path = folder.join(FILE);
    let (done, begun) = (folder.join(REPORT).exists(), folder.join(CHECKPOINT).exists());
    let state = match (lock::is_held(&folder), path.exists(), done, begun) {
        (true, true, ..) => None,
        (true, false, ..) => Some("a process works there, but it is not connected to other parties (yet)"),
        (false, _, true, _) => Some("the run is finished, and no process works on it"),
        (false, _, false, true) => {
            Some("the run was interrupted; the command that started the run resumes it")
        }
        (false, ..) => Some("no process works there"),
    };
    if let Some(state) = state.filter(|_| arguments.check) {
        return Ok((format!("{}: {state}\n", folder.display()), done));
    }
    if let Some(state) = state {
        return Err(input(format!("{}: {state}", folder.display())));
    }
    let bad = |problem: String| InputError(format!("{}: {problem}", path.display()));
    let bytes = fet_io::read(&path).map_err(|error| bad(error.to_string()))?;
    let status: PartyStatus = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    let lifetime = ledger::line(&arguments.place, &folder);
    let fresh = seconds().saturating_sub(status.written) < STALE;
    let well = fresh && status.links.iter().all(|link| link.well);
    if arguments.json {
        let mut object = serde_json::to_value(&status)?;
        object["lifetime"] = json!(lifetime);
        return Ok((format!("{object}\n"), well));
    }
    Ok((words(&status) + &lifetime.map_or_else(String::new, |line| line + "\n"), well))
}

/// Returns the folder with the status of a run, or of a party by its own file.
fn folder(place: &Path) -> anyhow::Result<PathBuf> {
    if place.is_dir() {
        return Ok(place.to_path_buf());
    }
    if !place.exists() {
        return Err(input(format!(
            "{} does not exist; name the folder of a run, or a party's own file",
            place.display()
        )));
    }
    let file = PartyFile::read(place)?;
    Ok(place.parent().unwrap_or(Path::new("")).join(file.state))
}

fn words(status: &PartyStatus) -> String {
    let mut text = format!("{} of {}: {}\n", status.party, status.run, status.doing);
    let age = seconds().saturating_sub(status.written);
    if age >= STALE {
        text += &format!("warning: this status is {age} s old; the process has not updated it\n");
    }
    for link in &status.links {
        let heard = link
            .heard_seconds
            .map_or_else(|| "not heard yet".to_string(), |heard| format!("heard {heard:.1} s ago"));
        let latency =
            link.latency_milliseconds.map_or_else(String::new, |latency| format!(", {latency:.1} ms"));
        text += &format!(
            "{}: {}; {heard}{latency}, {} sent, {} received\n",
            link.party,
            link.state,
            indicatif::HumanBytes(link.sent),
            indicatif::HumanBytes(link.received)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_link_as_well_if_it_answers_without_objection() {
        let state = |doing, heard| fet_net::State {
            connection: Connection::Up { warning: None },
            doing,
            heard: Some(Duration::from_secs(heard)),
            latency: None,
            sent: 0,
            received: 0,
            unreadable: 0,
            objection: None,
        };
        let warned = Connection::Up { warning: Some("no".into()) };
        for (state, waits, expected) in [
            (state(Activity::Idle, 500), false, true),
            (state(Activity::Joining, 500), true, true),
            (state(Activity::Joining, 500), false, false),
            (state(Activity::Computing, 1), false, true),
            (state(Activity::Sending, 20), true, false),
            (fet_net::State { connection: warned, ..state(Activity::Idle, 1) }, true, false),
            (fet_net::State { objection: Some("other key".into()), ..state(Activity::Idle, 1) }, true, false),
        ] {
            assert_eq!(LinkStatus::from_state("p", &state, waits).well, expected, "{state} {waits}");
        }
    }
}
