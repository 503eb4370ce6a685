//! Clients of a service of predictions, which ask while processes are killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use ureq::Agent;

use crate::message::{control, jargon};

/// Deadlines of requests in seconds.
const DEADLINES: [u64; 4] = [1, 3, 10, 25];
/// Statuses of a request that the client may repeat.
const TEMPORARY: [u16; 3] = [429, 503, 504];
/// Maximum number of faults to describe.
const MOST_FAULTS: usize = 5;

/// Request with its undisturbed answer.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) media_type: &'static str,
    pub(super) body: String,
    /// First row and number of rows.
    pub(super) rows: [usize; 2],
    pub(super) answer: Vec<u8>,
}

/// End of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Status 200 with its body.
    Answer(Vec<u8>),
    /// Another status, with its body.
    Refused(u16, String),
    /// The connection failed, for this reason.
    Unreached(String),
    /// Neither an answer nor an error within the deadline and the margin.
    Lost,
}

/// Sends a request with a deadline, and waits for its end no longer than the deadline and `margin`.
pub(super) fn ask(url: &str, question: &Question, deadline: Duration, margin: Duration) -> Outcome {
    // A connection for each request: a failure then concerns this request.
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(deadline + margin))
        .max_idle_connections(0)
        .build()
        .into();
    let failed = |error: ureq::Error| match error {
        ureq::Error::Timeout(_) => Outcome::Lost,
        error => Outcome::Unreached(error.to_string()),
    };
    let request = agent
        .post(format!("{url}/v1/predict"))
        .header("Content-Type", question.media_type)
        .header("Request-Timeout", deadline.as_secs_f64().to_string());
    let mut response = match request.send(&question.body) {
        Ok(response) => response,
        Err(error) => return failed(error),
    };
    let status = response.status().as_u16();
    match response.body_mut().read_to_vec() {
        Ok(body) if status == 200 => Outcome::Answer(body),
        Ok(body) => Outcome::Refused(status, String::from_utf8_lossy(&body).into_owned()),
        Err(error) => failed(error),
    }
}

/// Times at which the service listens.
#[derive(Debug, Default)]
pub(super) struct ServiceTimes {
    listens: AtomicBool,
    deaths: AtomicU64,
}

impl ServiceTimes {
    /// Notes that the service listens.
    pub(super) fn listens(&self) {
        self.listens.store(true, Ordering::SeqCst);
    }

    /// Notes that the service is about to be killed.
    pub(super) fn ends(&self) {
        self.listens.store(false, Ordering::SeqCst);
        self.deaths.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of deaths if the service listens.
    fn now(&self) -> Option<u64> {
        let deaths = self.deaths.load(Ordering::SeqCst);
        self.listens.load(Ordering::SeqCst).then_some(deaths)
    }
}

/// Counts of all requests.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) answers: u64,
    /// Rows of all answers.
    pub(super) rows: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) unreached: u64,
    pub(super) lost: u64,
    pub(super) wrong: u64,
    pub(super) longest: Duration,
    /// Longest time past a request's deadline.
    pub(super) longest_past: Duration,
    /// Longest time without an answer to any client.
    pub(super) longest_silence: Duration,
    pub(super) last: Instant,
    /// Descriptions of the first faults.
    pub(super) faults: Vec<String>,
}

/// Clients that ask random questions until they are stopped.
#[derive(Debug)]
pub(super) struct Clients<'a> {
    url: &'a str,
    questions: &'a [Question],
    /// Time that a request may take past its deadline.
    margin: Duration,
    service: &'a ServiceTimes,
    stop: AtomicBool,
    asked: Mutex<Asked>,
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        url: &'a str,
        questions: &'a [Question],
        margin: Duration,
        service: &'a ServiceTimes,
    ) -> Self {
        let asked = Asked {
            answers: 0,
            rows: 0,
            statuses: BTreeMap::new(),
            unreached: 0,
            lost: 0,
            wrong: 0,
            longest: Duration::ZERO,
            longest_past: Duration::ZERO,
            longest_silence: Duration::ZERO,
            last: Instant::now(),
            faults: Vec::new(),
        };
        Self { url, questions, margin, service, stop: AtomicBool::new(false), asked: Mutex::new(asked) }
    }

    /// Ends all clients after their current requests.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(super) fn asked(&self) -> Asked {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks until [`Clients::stop`].
    pub(super) fn work(&self, mut rng: ChaCha8Rng) {
        while !self.stop.load(Ordering::Relaxed) {
            let question = &self.questions[rng.random_range(0..self.questions.len())];
            let deadline = Duration::from_secs(DEADLINES[rng.random_range(0..DEADLINES.len())]);
            let listened = self.service.now();
            let began = Instant::now();
            let outcome = ask(self.url, question, deadline, self.margin);
            let took = began.elapsed();
            let is_answer = matches!(outcome, Outcome::Answer(_));
            // A connection may fail only if the service was away at some time of the request.
            let was_away = listened.is_none() || self.service.now() != listened;
            let mut asked = self.lock();
            asked.longest = asked.longest.max(took);
            asked.longest_past = asked.longest_past.max(took.saturating_sub(deadline));
            asked.add(question, outcome, was_away);
            drop(asked);
            let pause = if is_answer { rng.random_range(10..150) } else { rng.random_range(50..250) };
            std::thread::sleep(Duration::from_millis(pause));
        }
    }
}

impl Asked {
    /// Returns the number of requests.
    pub(super) fn requests(&self) -> u64 {
        self.answers + self.statuses.values().sum::<u64>() + self.unreached + self.lost
    }

    /// Counts the end of a request. `was_away` is true if the service was away at some time of the request.
    fn add(&mut self, question: &Question, outcome: Outcome, was_away: bool) {
        let [first, rows] = question.rows;
        let what = format!("rows {first} to {} in {}", first + rows - 1, question.media_type);
        match outcome {
            Outcome::Answer(body) => {
                self.answers += 1;
                self.rows += rows as u64;
                self.longest_silence = self.longest_silence.max(self.last.elapsed());
                self.last = Instant::now();
                if body != question.answer {
                    self.wrong += 1;
                    let at =
                        body.iter().zip(&question.answer).take_while(|(one, other)| one == other).count();
                    let near = |bytes: &[u8]| {
                        let part = &bytes[at.min(bytes.len())..(at + 60).min(bytes.len())];
                        String::from_utf8_lossy(part).escape_debug().to_string()
                    };
                    let (found, expected) = (near(&body), near(&question.answer));
                    self.fault(format!(
                        "wrong answer for {what}, at byte {at}: `{found}` instead of `{expected}`"
                    ));
                }
            }
            Outcome::Refused(status, body) => {
                *self.statuses.entry(status).or_default() += 1;
                if let Some(problem) = problem(status, &body) {
                    self.fault(format!("status {status} for {what}: {problem}: {body}"));
                }
            }
            Outcome::Unreached(reason) => {
                self.unreached += 1;
                if !was_away {
                    self.fault(format!("the service listens, and {what} cannot connect: {reason}"));
                }
            }
            Outcome::Lost => {
                self.lost += 1;
                self.fault(format!("no end of the request for {what}"));
            }
        }
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(what);
        }
    }
}

/// Returns the problem with a refusal of a valid request.
fn problem(status: u16, body: &str) -> Option<String> {
    if !TEMPORARY.contains(&status) {
        return Some("the request is valid".into());
    }
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let reason = parsed.as_ref().and_then(|parsed| parsed.get("error")?.as_str()).unwrap_or_default();
    if reason.is_empty() {
        return Some("no reason".into());
    }
    jargon(reason).next().map(|word| format!("contains `{word}`")).or_else(|| control(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_faults_of_answers() {
        let question =
            Question { media_type: "text/csv", body: String::new(), rows: [3, 2], answer: b"right".into() };
        let away = |reason: &str| serde_json::json!({ "error": reason }).to_string();
        for (outcome, was_away, faults) in [
            (Outcome::Answer(b"right".into()), false, 0),
            (Outcome::Answer(b"wrong".into()), true, 1),
            (Outcome::Refused(503, away("party \"p1\" is away")), false, 0),
            (Outcome::Refused(503, away("")), false, 1),
            (Outcome::Refused(503, "away".into()), false, 1),
            (Outcome::Refused(504, away("Err(Lost)")), false, 1),
            (Outcome::Refused(500, away("a fault of the service")), true, 1),
            (Outcome::Unreached("refused".into()), true, 0),
            (Outcome::Unreached("refused".into()), false, 1),
            (Outcome::Lost, true, 1),
        ] {
            let times = ServiceTimes::default();
            let clients = Clients::new("", std::slice::from_ref(&question), Duration::ZERO, &times);
            let mut asked = clients.asked();
            asked.add(&question, outcome.clone(), was_away);
            assert_eq!((asked.faults.len(), asked.requests()), (faults, 1), "{outcome:?}: {asked:?}");
        }
    }
}
