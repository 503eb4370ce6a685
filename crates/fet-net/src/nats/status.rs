//! How a connection to the server stands, as its events tell.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_nats::{ClientError, Event, ServerError};

use crate::transport::Connection;

/// The last that was heard of a connection.
#[derive(Debug, Default)]
pub(super) struct Status(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    down: Option<Instant>,
    why: Option<String>,
    warning: Option<String>,
}

impl Status {
    pub(super) fn note(&self, event: &Event) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Connected => *known = Known::default(),
            Event::Disconnected | Event::Closed => {
                known.down.get_or_insert_with(Instant::now);
            }
            Event::ServerError(ServerError::AuthorizationViolation) => {
                known.why = Some("it does not authorise this identity".into());
            }
            Event::ServerError(ServerError::Other(text)) => known.warning = Some(text.clone()),
            Event::ClientError(ClientError::Other(text)) => known.why = Some(text.clone()),
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                known.warning = Some("packets were dropped that came faster than they were taken".into());
            }
            _ => {}
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
        status.note(&Event::Disconnected);
        status.note(&Event::ClientError(ClientError::Other("IO error".into())));
        assert!(matches!(status.connection(), Connection::Down { why, .. } if why == "IO error"));
        status.note(&Event::Connected);
        assert_eq!(status.connection(), Connection::Up { warning: None });
    }
}
