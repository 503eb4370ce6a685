//! Requests for predictions over NATS: each message is a request of the HTTP service, and the reply has its answer.

mod connect;
mod state;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderName, HeaderValue, Request, Response};
use fet_io::input::input;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{JoinHandle, unconstrained};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use self::connect::Address;
pub(super) use self::state::NatsState;
use crate::access::{MODEL, WARNINGS};
use crate::http_server::HttpServer;
use crate::parties::Unreached;
use crate::reporter::Reporter;

/// Header of a reply with the status of HTTP.
const STATUS: &str = "Status";
/// Name of the queue that several services of one subject share: each message reaches one of them.
const QUEUE: &str = "fet-serve";
/// Room for the headers of a reply, in bytes.
const HEADERS: usize = 16 << 10;
/// Messages that the server may still pass on when the service stops.
const LAST: u64 = 1024;
/// Time without a message after which the service ends its subscription.
const QUIET: Duration = Duration::from_millis(20);
/// Longest time for each of the two steps that end the subscription.
const UNSUBSCRIBE: Duration = Duration::from_secs(1);
/// Path of the service that answers all messages.
const PATH: &str = "/v1/predict";

/// Arguments of the service over NATS.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct NatsArguments {
    /// Server of your own organisation that passes requests as messages, as in `tls://nats.bank.example:4222`; the service
    /// answers over HTTP, too.
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// Subject of the requests.
    #[arg(long, value_name = "SUBJECT", default_value = "fet.predict", requires = "nats")]
    pub subject: String,
    /// Certificates (PEM) of the authority that vouches for the server [default: those of the system].
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_ca: Option<PathBuf>,
    /// File with the credentials of a user (`.creds`).
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_credentials: Option<PathBuf>,
}

/// Checked arguments of the service over NATS, and the state of its connection.
pub(super) struct NatsSettings<'a> {
    arguments: &'a NatsArguments,
    address: Address,
    pub(super) state: Arc<NatsState>,
}

impl<'a> NatsSettings<'a> {
    /// Checks the arguments. Returns `None` without `--nats`.
    pub(super) fn new(arguments: &'a NatsArguments, reporter: &Reporter) -> anyhow::Result<Option<Self>> {
        let Some(url) = &arguments.nats else { return Ok(None) };
        let address = Address::new(url)?;
        connect::check(arguments, &address)?;
        check_subject(&arguments.subject)?;
        let state = Arc::new(NatsState::new(address.to_string(), reporter.clone()));
        Ok(Some(Self { arguments, address, state }))
    }

    /// Returns the subject and the server, for the log.
    pub(super) fn place(&self) -> String {
        format!("{} at {}", self.arguments.subject, self.address)
    }
}

fn check_subject(subject: &str) -> anyhow::Result<()> {
    let is_word = |word: &str| {
        !word.is_empty() && !word.contains(|sign: char| sign.is_whitespace() || sign.is_control())
    };
    let is_free =
        !subject.contains(['*', '>']) && !["$", "_INBOX"].iter().any(|own| subject.starts_with(own));
    if is_free && subject.split('.').all(is_word) {
        return Ok(());
    }
    Err(input(format!(
        "--subject {subject:?}: must be words with a dot between two words, as in `shops.predict`, without spaces, `*` and `>`. \
         Subjects that begin with `$` or `_INBOX` belong to the server and its clients"
    )))
}

/// Running service over NATS.
pub(super) struct NatsService {
    answerer: Answerer,
    stop: oneshot::Sender<()>,
    /// Returns the subscription and the number of messages that it has taken.
    task: JoinHandle<(Subscriber, u64)>,
}

/// Answers messages from `routes`.
#[derive(Clone)]
struct Answerer {
    client: Client,
    routes: Router,
    /// `Host` of the requests, which is the address of the service.
    host: HeaderValue,
    /// Requests that may be in progress; further messages wait in the subscription.
    places: Arc<Semaphore>,
    /// Number of places.
    most: u32,
}

impl NatsService {
    /// Connects to the server and answers messages in the threads of the HTTP server. `host` is the address of that server, and
    /// `most` the number of requests at a time.
    pub(super) fn start(
        settings: &NatsSettings<'_>,
        server: &HttpServer,
        routes: Router,
        (host, most): (&str, u16),
    ) -> anyhow::Result<Self> {
        let NatsSettings { arguments, address, state } = settings;
        let host = HeaderValue::from_str(host)?;
        server.block_on(async {
            let client = connect::connect(arguments, address, state).await?;
            let subscribed = client.queue_subscribe(arguments.subject.clone(), QUEUE.to_string()).await;
            let messages = subscribed.map_err(|error| input(format!("--subject: {error}")))?;
            client.flush().await.map_err(|error| Unreached(format!("--nats {address}: {error}")))?;
            let places = Arc::new(Semaphore::new(usize::from(most)));
            let answerer = Answerer { client, routes, host, places, most: most.into() };
            let (stop, stopped) = oneshot::channel();
            let task = tokio::spawn(answerer.clone().take(messages, stopped));
            Ok(Self { answerer, stop, task })
        })
    }

    /// Ends the subscription, drops `waiting`, which refuses the requests that wait for the worker, and answers the messages that
    /// have arrived. The server has all replies when the method returns.
    pub(super) async fn stop<T>(self, waiting: T) {
        let Self { answerer, stop, task } = self;
        let _ = stop.send(());
        let rest = match task.await {
            Ok((messages, taken)) => remaining(messages, taken).await,
            Err(_) => Vec::new(),
        };
        drop(waiting);
        for message in rest {
            answerer.clone().answer(message).await;
        }
        // All places are free when the requests in progress have their answers.
        drop(answerer.places.acquire_many(answerer.most).await);
        // A server that is away gets no replies.
        drop(answerer.client.flush().await);
    }
}

/// Ends a subscription that has taken some messages, and returns the remaining messages.
///
/// The client drops messages that arrive between the end of a subscription and the server's confirmation. The subscription
/// therefore continues up to a number of messages, which the server stops at exactly, and ends at once only without traffic.
async fn remaining(mut messages: Subscriber, taken: u64) -> Vec<Message> {
    let mut rest = Vec::new();
    while let Some(Some(message)) = unconstrained(messages.next()).now_or_never() {
        rest.push(message);
    }
    let end = Instant::now() + UNSUBSCRIBE;
    if messages.unsubscribe_after(taken + rest.len() as u64 + LAST).await.is_ok() {
        while let Ok(Some(message)) = timeout_at(end.min(Instant::now() + QUIET), messages.next()).await {
            rest.push(message);
        }
    }
    if messages.drain().await.is_ok() {
        while let Ok(Some(message)) = timeout_at(end + UNSUBSCRIBE, messages.next()).await {
            rest.push(message);
        }
    }
    rest
}

impl Answerer {
    /// Answers messages until `stop` ends. Returns the subscription and the number of messages that it has taken.
    async fn take(self, mut messages: Subscriber, mut stop: oneshot::Receiver<()>) -> (Subscriber, u64) {
        let mut taken = 0;
        loop {
            let next = pin!(self.next(&mut messages));
            let Either::Left((Some((message, place)), _)) = select(next, &mut stop).await else { break };
            taken += 1;
            let answerer = self.clone();
            tokio::spawn(async move {
                answerer.answer(message).await;
                drop(place);
            });
        }
        (messages, taken)
    }

    /// Waits for a free place and then for a message.
    async fn next(&self, messages: &mut Subscriber) -> Option<(Message, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some((messages.next().await?, place))
    }

    /// Answers a message that names a subject for the reply.
    async fn answer(mut self, message: Message) {
        let Some(reply) = message.reply.clone() else { return };
        let response = match self.request(&message) {
            // A router is always ready, and never fails.
            Ok(request) => match self.routes.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            Err(problem) => refusal(400, &problem).map(Body::from),
        };
        let (headers, body) = self.fitting(response).await;
        // A client that has gone needs no reply.
        drop(self.client.publish_with_headers(reply, headers, body).await);
    }

    /// Converts a message to a request of the HTTP service.
    fn request(&self, message: &Message) -> Result<Request<Body>, String> {
        let mut request = Request::post(PATH);
        for (name, values) in message.headers.iter().flat_map(async_nats::HeaderMap::iter) {
            let name: &str = name.as_ref();
            let invalid =
                |part: &str| format!("header {name:?}: HTTP does not allow {part}. Correct or omit it");
            let found = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("this name"))?;
            if [HOST, CONTENT_LENGTH].contains(&found) {
                continue;
            }
            for value in values {
                let value = HeaderValue::from_str(value.as_str());
                request =
                    request.header(&found, value.map_err(|_| invalid("control characters in a value"))?);
            }
        }
        let request = request.header(HOST, self.host.clone()).header(CONTENT_LENGTH, message.payload.len());
        request.body(Body::from(message.payload.clone())).map_err(|error| error.to_string())
    }

    /// Returns headers and body of a reply; an answer above the server's limit becomes a refusal.
    async fn fitting(&self, response: Response<Body>) -> (async_nats::HeaderMap, Bytes) {
        let most = self.client.server_info().max_payload.saturating_sub(HEADERS);
        let (mut parts, body) = response.into_parts();
        let body = match to_bytes(body, most).await {
            Ok(body) => body,
            Err(_) => {
                let problem = format!(
                    "the answer is larger than {most} bytes, which the server can pass on: send fewer rows"
                );
                let (refused, body) = refusal(413, &problem).into_parts();
                parts = refused;
                body.into()
            }
        };
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(STATUS, parts.status.as_u16().to_string());
        for name in [CONTENT_TYPE, HeaderName::from_static(MODEL), HeaderName::from_static(WARNINGS)] {
            let value = parts.headers.get(&name).and_then(|value| value.to_str().ok());
            // The warnings of an answer in CSV or Arrow are a header, which a server limits, too.
            if let Some(value) = value.filter(|value| value.len() <= HEADERS / 2) {
                headers.insert(name.as_str(), value);
            }
        }
        (headers, body)
    }
}

/// Makes a refusal in the form of the HTTP service.
fn refusal(status: u16, problem: &str) -> Response<String> {
    let body = serde_json::json!({ "error": problem }).to_string();
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(body).expect("the parts are fixed")
}
