//! State of the connection to the NATS server, for the log and `/readyz`.

use std::sync::{Mutex, PoisonError};

use async_nats::{Event, ServerError};

use crate::reporter::Reporter;

/// State of the connection, derived from its events.
pub(in crate::service) struct NatsState {
    /// Address of the server without its user.
    address: String,
    reporter: Reporter,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    link: Link,
    /// Problem that the log has named last.
    problem: Option<String>,
}

/// Connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Link {
    /// The first connection is not complete.
    #[default]
    Connecting,
    Connected,
    Lost,
}

impl NatsState {
    pub(super) fn new(address: String, reporter: Reporter) -> Self {
        Self { address, reporter, known: Mutex::default() }
    }

    /// Notes an event of the connection. The log names a loss, a return and a problem once.
    pub(super) fn note(&self, event: &Event) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let address = &self.address;
        let before = known.link;
        match event {
            Event::Connected => known.link = Link::Connected,
            Event::Disconnected => known.link = Link::Lost,
            Event::ServerError(ServerError::Other(text)) => {
                self.warn(&mut known, format!("the NATS server {address} reports: {text}"));
            }
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                let dropped =
                    "messages arrived faster than the service answers; those above its limit get no reply";
                self.warn(&mut known, dropped.into());
            }
            _ => {}
        }
        match (before, known.link) {
            (Link::Lost, Link::Connected) => {
                self.reporter.tell("connected", format_args!("the NATS server {address} is back"));
            }
            (Link::Connecting | Link::Connected, Link::Lost) => {
                let lost = format_args!(
                    "the connection to the NATS server {address} is lost; the service tries to restore it, and answers over HTTP"
                );
                self.reporter.tell("disconnected", lost);
            }
            _ => {}
        }
    }

    fn warn(&self, known: &mut Known, problem: String) {
        if known.problem.as_ref() != Some(&problem) {
            self.reporter.tell("warning", &problem);
            known.problem = Some(problem);
        }
    }

    /// Returns the state as a word for `/readyz`.
    pub(in crate::service) fn word(&self) -> &'static str {
        match self.known.lock().unwrap_or_else(PoisonError::into_inner).link {
            Link::Connecting => "connecting",
            Link::Connected => "connected",
            Link::Lost => "disconnected",
        }
    }
}
