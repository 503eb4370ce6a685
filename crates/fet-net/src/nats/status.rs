//! State of a connection to the server, derived from its events.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_nats::{ClientError, Event, ServerError};

use crate::transport::Connection;

/// Last known state of a connection.
#[derive(Debug, Default)]
pub(super) struct Status(Mutex<LastState>);

#[derive(Debug, Default)]
struct LastState {
    down: Option<Instant>,
    why: Option<String>,
    warning: Option<String>,
    /// Subjects that the server denies to this end.
    denied: BTreeSet<String>,
}

/// Maximum number of denied subjects: a server names no more subjects than its configuration has.
const MOST_DENIED: usize = 1024;

impl Status {
    pub(super) fn note(&self, event: &Event) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Connected => *known = LastState::default(),
            Event::Disconnected | Event::Closed => {
                known.down.get_or_insert_with(Instant::now);
            }
            Event::ServerError(ServerError::AuthorizationViolation) => {
                known.why = Some("it does not authorise this identity".into());
            }
            Event::ServerError(ServerError::Other(text)) => {
                let denies = text.to_lowercase().contains("permissions violation");
                let subject = text.split('"').nth(1).filter(|_| denies && known.denied.len() < MOST_DENIED);
                known.denied.extend(subject.map(String::from));
                known.warning = Some(text.clone());
            }
            Event::ClientError(ClientError::Other(text)) => known.why = Some(text.clone()),
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                known.warning = Some(
                    "packets were dropped because they arrived faster than this program took them".into(),
                );
            }
            _ => {}
        }
    }

    /// Returns the connection of a link with these subjects. The server may deny subjects of another link, or
    /// subjects that were altered in transit.
    pub(super) fn of_link(&self, subjects: [&str; 2]) -> Connection {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let denied = subjects.into_iter().find(|subject| known.denied.contains(*subject));
        match denied.filter(|_| known.down.is_none()) {
            Some(subject) => Connection::Denied { why: format!("it denies the subject {subject}") },
            None => {
                drop(known);
                self.connection()
            }
        }
    }

    pub(super) fn connection(&self) -> Connection {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.down {
            None => Connection::Up { warning: known.warning.clone() },
            Some(since) => {
                let why = known.why.clone().unwrap_or_else(|| "the connection broke".into());
                Connection::Down { since, why }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_a_state() {
        let status = Status::default();
        let denied = "Permissions Violation for Subscription to \"x\"".to_owned();
        status.note(&Event::ServerError(ServerError::Other(denied.clone())));
        assert_eq!(status.connection(), Connection::Up { warning: Some(denied) });
        assert!(matches!(status.of_link(["x", "y"]), Connection::Denied { .. }));
        assert!(matches!(status.of_link(["z", "y"]), Connection::Up { .. }));
        status.note(&Event::Disconnected);
        status.note(&Event::ClientError(ClientError::Other("IO error".into())));
        assert!(matches!(status.connection(), Connection::Down { why, .. } if why == "IO error"));
        status.note(&Event::Connected);
        assert_eq!(status.of_link(["x", "y"]), Connection::Up { warning: None });
    }
}
