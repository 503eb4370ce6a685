//! Observes a party's link and reports changes in the party's log, so that its operator need not ask `fet
//! status`.

use std::time::{Duration, Instant};

use fet_net::{Activity, Connection, Settings, State};

/// Minimum time between two messages about unreadable packets.
const PAUSE: Duration = Duration::from_secs(60);

/// State of a party's link at the last look.
#[derive(Debug)]
pub(super) struct Observer {
    primary: String,
    run: String,
    /// Maximum wait of the primary.
    wait: Duration,
    began: Instant,
    /// Last problem of the connection.
    connection: Option<String>,
    objection: Option<String>,
    unreadable: (u64, Option<Instant>),
    computing: Option<Instant>,
    silent: bool,
    slow: bool,
    waits: bool,
}

/// Name of an event, and its message.
pub(super) type LinkEvent = (&'static str, String);

impl Observer {
    pub(super) fn new(primary: &str, run: &str, wait: Duration) -> Self {
        Self {
            primary: primary.into(),
            run: run.into(),
            wait,
            began: Instant::now(),
            connection: None,
            objection: None,
            unreadable: (0, None),
            computing: None,
            silent: false,
            slow: false,
            waits: false,
        }
    }

    /// Returns the changes since the last look.
    pub(super) fn observe(&mut self, state: &State, now: Instant) -> Vec<LinkEvent> {
        [
            self.connection(&state.connection),
            self.objection(state),
            self.unreadable(state, now),
            self.silence(state),
            self.slowness(state, now),
            self.waiting(state, now),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn connection(&mut self, connection: &Connection) -> Option<LinkEvent> {
        let wrong = match connection {
            Connection::Up { warning: None } => None,
            Connection::Down { why, .. } => Some(format!("the server does not answer ({why}); trying again")),
            other => Some(other.to_string()),
        };
        if wrong == self.connection {
            return None;
        }
        self.connection.clone_from(&wrong);
        Some(match wrong {
            Some(wrong) => ("warning", wrong),
            None => ("connected", "the server is connected again".into()),
        })
    }

    fn objection(&mut self, state: &State) -> Option<LinkEvent> {
        if state.objection == self.objection {
            return None;
        }
        self.objection.clone_from(&state.objection);
        let objection = state.objection.as_ref()?;
        Some(("warning", format!("the primary, or a program in its name: {objection}")))
    }

    fn unreadable(&mut self, state: &State, now: Instant) -> Option<LinkEvent> {
        let (said, when) = self.unreadable;
        let due = when.is_none_or(|when| now.duration_since(when) >= PAUSE);
        if state.unreadable <= said || !due {
            return None;
        }
        self.unreadable = (state.unreadable, Some(now));
        let message = format!(
            "{} packets could not be read: they were altered in transit, or not made with the roster's key for {} in \
             the run {}",
            state.unreadable, self.primary, self.run
        );
        Some(("warning", message))
    }

    /// Reports a silent primary. The primary waits while the party computes or sends an answer, so it should
    /// be heard then.
    fn silence(&mut self, state: &State) -> Option<LinkEvent> {
        let awaited = matches!(state.doing, Activity::Computing | Activity::Sending);
        let silence = state.heard.filter(|heard| awaited && *heard >= Settings::default().silence);
        let before = std::mem::replace(&mut self.silent, silence.is_some());
        match (before, silence) {
            (false, Some(heard)) => {
                let message =
                    format!("{} has been silent for {} s; this party waits", self.primary, heard.as_secs());
                Some(("silent", message))
            }
            (true, None) if awaited => Some(("heard", format!("{} has returned", self.primary))),
            _ => None,
        }
    }

    fn slowness(&mut self, state: &State, now: Instant) -> Option<LinkEvent> {
        if state.doing != Activity::Computing {
            (self.computing, self.slow) = (None, false);
            return None;
        }
        let since = now.duration_since(*self.computing.get_or_insert(now));
        if self.slow || since < self.wait {
            return None;
        }
        self.slow = true;
        let message = format!(
            "one answer takes longer than {} s (`wait` in the roster), and {} gives up. Raise `wait` if the work takes \
             longer.",
            self.wait.as_secs(),
            self.primary
        );
        Some(("warning", message))
    }

    fn waiting(&mut self, state: &State, now: Instant) -> Option<LinkEvent> {
        let since = now.duration_since(self.began);
        if self.waits || state.heard.is_some() || since < self.wait {
            return None;
        }
        self.waits = true;
        let message = format!(
            "{} has not joined for {} s; it must use the same server, the same run name ({}) and this party's current \
             key",
            self.primary,
            since.as_secs(),
            self.run
        );
        Some(("waiting", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            connection: Connection::Up { warning: None },
            doing: Activity::Joining,
            heard: None,
            latency: None,
            sent: 0,
            received: 0,
            unreadable: 0,
            objection: None,
        }
    }

    #[test]
    fn reports_the_start_and_end_of_each_problem_once() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut observer = Observer::new("bank", "city", Duration::from_secs(600));
        let mut look = |state: State, at: u64| {
            let said = observer.observe(&state, later(at));
            assert!(observer.observe(&state, later(at)).is_empty(), "{said:?} is reported twice");
            said.into_iter()
                .map(|(event, message)| format!("{event}: {message}"))
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(look(state(), 0), "");
        let refused = Connection::Up { warning: Some("`max_payload`".into()) };
        let said = look(State { connection: refused, ..state() }, 1);
        assert!(said.starts_with("warning: ") && said.contains("max_payload"), "{said}");
        assert!(look(state(), 2).starts_with("connected: "));
        let said = look(State { objection: Some("its key is U".into()), unreadable: 3, ..state() }, 3);
        assert!(said.contains("its key is U") && said.contains("3 packets could not be read"), "{said}");
        assert_eq!(look(State { unreadable: 9, ..state() }, 4), "");
        assert!(look(State { unreadable: 9, ..state() }, 70).contains("9 packets"));
        let said = look(State { unreadable: 9, ..state() }, 601);
        assert!(said.starts_with("waiting: bank") && said.contains("city"), "{said}");
        let busy = |heard| State {
            doing: Activity::Computing,
            heard: Some(Duration::from_secs(heard)),
            unreadable: 9,
            ..state()
        };
        assert_eq!(look(busy(1), 700), "");
        assert!(look(busy(20), 720).starts_with("silent: bank"));
        assert!(look(busy(1), 740).starts_with("heard: bank"));
        let said = look(busy(1), 1301);
        assert!(said.contains("longer than 600 s") && said.contains("gives up"), "{said}");
    }
}
