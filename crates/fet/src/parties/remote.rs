//! A party on another machine, from the primary's point of view.
//!
//! A gradient travels together with the next request, in one round trip, so the primary never waits for the
//! reply to a gradient alone. If the party refuses the gradient, the refusal answers both requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fet_core::message::{Answer, LARGEST_FRAME, Reply, Request, decode, encode_behind, frames};
use fet_core::party::{Failure, Party, Refusal};
use fet_net::{CallError, Caller, Peer, Settings, State};

use super::greeting::Greeting;

/// Time between two checks for a stop by the user.
const LOOK: Duration = Duration::from_secs(1);

/// The primary's link to one party; it survives a return to a checkpoint.
#[derive(Clone)]
pub(super) struct PartyLink {
    /// Name of the party in the roster.
    pub(super) name: String,
    caller: Arc<Mutex<Caller>>,
    /// State of the link, with the time of this state.
    state: Arc<Mutex<(State, Instant)>>,
    /// Last objection that was shown.
    shown: Arc<Mutex<Option<String>>>,
    /// Time since which the primary waits for the party's links, if it does.
    linking: Arc<Mutex<Option<Instant>>>,
    /// Maximum time without progress, after the party falls silent or the call stalls.
    wait: Duration,
    stop: Arc<AtomicBool>,
}

impl PartyLink {
    pub(super) fn new(name: String, caller: Caller, wait: Duration, stop: Arc<AtomicBool>) -> Self {
        let state = Arc::new(Mutex::new((caller.state(), Instant::now())));
        let (shown, linking) = Default::default();
        Self { name, caller: Arc::new(Mutex::new(caller)), state, shown, linking, wait, stop }
    }

    /// Waits until the party joins, or joins again.
    pub(super) fn join(&self) -> Result<Peer, CallError> {
        self.join_within(self.wait)
    }

    fn join_within(&self, wait: Duration) -> Result<Peer, CallError> {
        let began = Instant::now();
        loop {
            let left = wait.saturating_sub(began.elapsed());
            let found = self.caller().wait_for(left.min(LOOK), &mut |state| self.keep(state));
            match found {
                Ok(peer) => return Ok(peer),
                Err(CallError::NotJoined { .. }) if left > LOOK && !self.stop.load(Ordering::Relaxed) => {}
                Err(CallError::NotJoined { unreadable, objection, connection, .. }) => {
                    let waited = began.elapsed();
                    return Err(CallError::NotJoined { waited, unreadable, objection, connection });
                }
                Err(CallError::Version { ours, theirs, about }) => {
                    let about = Greeting::read(&about).program;
                    return Err(CallError::Version { ours, theirs, about });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the time for which the primary has waited for the party's links, if it waits for them now.
    pub(super) fn links_for(&self) -> Option<Duration> {
        self.linking.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    fn set_linking(&self, since: Option<Instant>) {
        *self.linking.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Returns the state of the link.
    pub(super) fn state(&self) -> State {
        let (state, since) = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        State { heard: state.heard.map(|heard| heard + since.elapsed()), ..state }
    }

    fn keep(&self, state: &State) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(objection) =
            state.objection.as_ref().filter(|objection| shown.as_ref() != Some(*objection))
        {
            fet_io::note!("warning: party \"{}\": {objection}", self.name);
            *shown = Some(objection.clone());
        }
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (state.clone(), Instant::now());
    }

    fn caller(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and returns the answer. An interrupted call continues after the party has joined
    /// again.
    ///
    /// The time without progress adds up over all attempts, so the primary also gives up on a party that
    /// joins repeatedly but never answers.
    fn call(&self, request: &[u8]) -> Result<Vec<u8>, Failure> {
        loop {
            let called = {
                let mut caller = self.caller();
                let called = caller.call_with(request, &mut |state| self.keep(state));
                self.keep(&caller.state());
                called
            };
            match called {
                Ok(answer) => return Ok(answer),
                Err(error) if self.stop.load(Ordering::Relaxed) => {
                    return Err(Failure::Unreached(error.to_string()));
                }
                Err(CallError::Restarted) => return Err(Failure::Restarted),
                Err(error @ (CallError::Lost { .. } | CallError::Altered { .. })) => {
                    let left = limit(self.wait).saturating_sub(self.caller().stalled());
                    if left.is_zero() {
                        return Err(Failure::Unreached(error.to_string()));
                    }
                    fet_io::note!(
                        "party \"{}\": {error}; waiting for the party for at most {} s",
                        self.name,
                        left.as_secs().max(1)
                    );
                    match self.join_within(left) {
                        Ok(_) => fet_io::note!("party \"{}\" has returned", self.name),
                        Err(CallError::Restarted) => return Err(Failure::Restarted),
                        Err(error) => return Err(Failure::Unreached(error.to_string())),
                    }
                }
                Err(error @ CallError::Stalled { computing: true, .. }) => {
                    return Err(Failure::Unreached(format!(
                        "{error}. `wait` in the roster is {} s; raise it if the party's work takes longer.",
                        self.wait.as_secs()
                    )));
                }
                Err(error) => return Err(Failure::Unreached(error.to_string())),
            }
        }
    }
}

/// Links to the parties of predictions, to look whether the parties are still there between requests.
pub(crate) struct PartyLinks(Vec<PartyLink>);

impl PartyLinks {
    pub(super) fn new(links: Vec<PartyLink>) -> Self {
        Self(links)
    }

    /// Returns the reason why the next request would fail: a party that does not answer within `wait`, or that has started
    /// again. No call may be in progress.
    pub(crate) fn problem(&self, wait: Duration) -> Option<String> {
        let problem = |link: &PartyLink| {
            let joined = link.join_within(wait);
            joined.err().map(|error| format!("party \"{}\": {error}", link.name))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = self.0.iter().map(|link| scope.spawn(|| problem(link))).collect();
            threads.into_iter().find_map(|thread| thread.join().expect("it does not panic"))
        })
    }
}

/// Returns the timeouts of a link to a party with this `wait`, which begins when the party falls silent.
pub(super) fn settings(wait: Duration) -> Settings {
    Settings { patience: limit(wait), ..Settings::default() }
}

/// Returns the maximum time without progress. A `wait` of more than a year counts as a year, because
/// `Instant` cannot represent later times.
fn limit(wait: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    wait.min(LONGEST) + Settings::default().silence
}

/// Party behind a link.
pub(super) struct Remote {
    /// Name of the party in the experiment.
    name: String,
    link: PartyLink,
    /// Frame of a gradient that waits for the next request.
    held: Vec<u8>,
}

impl Remote {
    pub(super) fn new(name: String, link: PartyLink) -> Self {
        Self { name, link, held: Vec::new() }
    }

    /// Sends the requests in `sent`, and returns the answer to the last request, or the first refusal.
    fn last_answer(&self, sent: &[u8]) -> Result<Reply, Failure> {
        let answers = self.link.call(sent)?;
        let mut answers = frames(&answers).map(|frame| decode::<Answer>(frame, LARGEST_FRAME));
        let mut last = answers.next().unwrap_or_else(|| decode(&[], LARGEST_FRAME))??;
        for _ in frames(sent).skip(1) {
            match last {
                Reply::Done => {}
                other => {
                    return Err(Refusal::new(format!("it answered a gradient with {}", other.name())).into());
                }
            }
            last = answers.next().unwrap_or_else(|| decode(&[], LARGEST_FRAME))??;
        }
        match answers.next() {
            None => Ok(last),
            Some(_) => Err(Refusal::new("it answered more requests than it received").into()),
        }
    }
}

impl Party for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let waits = matches!(request, Request::Backward(_));
        let mut sent = std::mem::take(&mut self.held);
        // Two large messages together would exceed the frame limit.
        if !sent.is_empty() && (waits || sent.len() > LARGEST_FRAME / 2) {
            self.last_answer(&sent)?;
            sent.clear();
        }
        let links = matches!(request, Request::Link(_) | Request::Answer(_) | Request::Predict(_));
        encode_behind(&mut sent, &request)?;
        drop(request);
        if waits {
            self.held = sent;
            return Ok(Reply::Done);
        }
        self.link.set_linking(links.then(Instant::now));
        let answer = self.last_answer(&sent);
        self.link.set_linking(None);
        answer
    }
}
