//! The watched party: its names, its link, its counts and its state folder.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fet_net::{Connection, Heartbeat, State};

use super::metrics::PartyMetrics;
use super::state::StateFolder;

/// Longest time between two turns of a thread that carries packets; then it hangs.
const STUCK: Duration = Duration::from_secs(10);

/// Names of a party and its place.
#[derive(Debug, Clone)]
pub(in crate::parties) struct PartyNames {
    pub(in crate::parties) party: String,
    pub(in crate::parties) primary: String,
    /// Name of the run in the roster.
    pub(in crate::parties) run: String,
    /// Address of the server.
    pub(in crate::parties) server: String,
}

/// Gives the state of the link to the primary.
pub(super) type Look = Box<dyn Fn() -> State + Send>;

/// Stage of the process.
pub(super) enum Stage {
    /// The party connects to the server.
    Connecting,
    /// The party serves.
    Serving {
        /// State of the link.
        look: Look,
        /// Sign of life of the thread that carries packets.
        heartbeat: Heartbeat,
    },
    /// The party ends.
    Stopping,
}

/// Watched party.
pub(super) struct Watched {
    pub(super) names: PartyNames,
    pub(super) started: SystemTime,
    pub(super) metrics: Arc<PartyMetrics>,
    pub(super) state: StateFolder,
    stage: Mutex<Stage>,
}

impl Watched {
    pub(super) fn new(names: PartyNames, metrics: Arc<PartyMetrics>, state: StateFolder) -> Self {
        let stage = Mutex::new(Stage::Connecting);
        Self { names, started: SystemTime::now(), metrics, state, stage }
    }

    pub(super) fn enter(&self, stage: Stage) {
        *self.stage() = stage;
    }

    /// Returns the state of the link, once the party is connected.
    pub(super) fn link(&self) -> Option<State> {
        match &*self.stage() {
            Stage::Serving { look, .. } => Some(look()),
            Stage::Connecting | Stage::Stopping => None,
        }
    }

    /// Returns the reason why the party cannot serve, if there is one.
    pub(super) fn readiness(&self) -> Result<(), String> {
        match &*self.stage() {
            Stage::Connecting => Err(format!("the party connects to {}", self.names.server)),
            Stage::Stopping => Err("the party is stopping".into()),
            Stage::Serving { look, heartbeat } => {
                let age = heartbeat.age().ok_or("the party starts")?;
                if age > STUCK {
                    return Err(format!("the thread of the link has not run for {} s", age.as_secs()));
                }
                readiness_of(&look())
            }
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reason why a link cannot serve the primary, if there is one. A primary that is away is none.
fn readiness_of(link: &State) -> Result<(), String> {
    match (&link.connection, &link.objection) {
        (Connection::Up { warning: None }, None) => Ok(()),
        (Connection::Up { warning: None }, Some(objection)) => Err(objection.clone()),
        (connection, _) => Err(connection.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use fet_net::Activity;

    use super::*;

    #[test]
    fn a_party_is_ready_while_its_link_can_carry() {
        let up = || Connection::Up { warning: None };
        let down = Connection::Down { since: Instant::now(), why: "refused".into() };
        let denied = Connection::Denied { why: "permissions".into() };
        let warned = Connection::Up { warning: Some("max_payload".into()) };
        for (connection, objection, expected) in [
            (up(), None, None),
            (up(), Some("two processes"), Some("two processes")),
            (down, None, Some("the server has not answered for 0 s (refused)")),
            (denied, None, Some("the server refuses this end")),
            (warned, None, Some("max_payload")),
        ] {
            let link = State {
                connection,
                doing: Activity::Joining,
                heard: None,
                latency: None,
                sent: 0,
                received: 0,
                unreadable: 0,
                objection: objection.map(String::from),
            };
            match (readiness_of(&link), expected) {
                (Ok(()), None) => {}
                (Err(reason), Some(expected)) => assert!(reason.contains(expected), "{reason}"),
                (found, expected) => panic!("{link}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
