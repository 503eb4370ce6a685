//! Requests for predictions over NATS: each message is a request of the HTTP service, and the reply has its answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Message};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderName, HeaderValue, Request, Response};
use fet_io::input::input;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::access::{MODEL, WARNINGS};
use crate::http_server::HttpServer;
use crate::parties::Unreached;

/// Header of a reply with the status of HTTP.
const STATUS: &str = "Status";
/// Name of the queue that several services of one subject share: each message reaches one of them.
const QUEUE: &str = "fet-serve";
/// Time for the first connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Room for the headers of a reply, in bytes.
const HEADERS: usize = 16 << 10;
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

/// Service over NATS, which answers from `routes`.
#[derive(Clone)]
struct NatsService {
    client: Client,
    routes: Router,
    /// `Host` of the requests, which is the address of the service.
    host: HeaderValue,
    /// Requests that may be in progress; further messages wait at the server.
    places: Arc<Semaphore>,
}

/// Connects to the server and answers messages until the HTTP server stops. `host` is the address of that server, and `most`
/// the number of requests at a time.
pub(super) fn start(
    arguments: &NatsArguments,
    server: &HttpServer,
    routes: Router,
    (host, most): (&str, usize),
) -> anyhow::Result<()> {
    let Some(url) = &arguments.nats else { return Ok(()) };
    if arguments.subject.is_empty() || arguments.subject.contains([' ', '*', '>']) {
        return Err(input(format!(
            "--subject {:?}: must be words with dots between them, without spaces, `*` and `>`",
            arguments.subject
        )));
    }
    let host = HeaderValue::from_str(host)?;
    server.block_on(async {
        let client = connect(arguments, url).await?;
        let subscribed = client.queue_subscribe(arguments.subject.clone(), QUEUE.to_string()).await;
        let mut messages = subscribed.map_err(|error| input(format!("--subject: {error}")))?;
        client.flush().await.map_err(|error| Unreached(format!("--nats {url}: {error}")))?;
        let places = Arc::new(Semaphore::new(most));
        let service = NatsService { client, routes, host, places };
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                let Ok(place) = Arc::clone(&service.places).acquire_owned().await else { break };
                let service = service.clone();
                tokio::spawn(async move {
                    service.answer(message).await;
                    drop(place);
                });
            }
        });
        Ok(())
    })
}

async fn connect(arguments: &NatsArguments, url: &str) -> anyhow::Result<Client> {
    let file = |path: &PathBuf, error: std::io::Error| input(format!("{}: {error}", path.display()));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut options = ConnectOptions::new().name("fet serve").connection_timeout(CONNECT);
    if let Some(ca) = &arguments.nats_ca {
        fet_io::read(ca).map_err(|error| file(ca, error))?;
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some(credentials) = &arguments.nats_credentials {
        let read = options.credentials_file(credentials).await;
        options = read.map_err(|error| file(credentials, error))?;
    }
    options.connect(url).await.map_err(|error| match error.kind() {
        async_nats::ConnectErrorKind::ServerParse
        | async_nats::ConnectErrorKind::Authentication
        | async_nats::ConnectErrorKind::AuthorizationViolation => input(format!("--nats {url}: {error}")),
        _ => Unreached(format!("--nats {url}: {error}")).into(),
    })
}

impl NatsService {
    /// Answers a message that names a subject for the reply.
    async fn answer(mut self, message: Message) {
        let Some(reply) = message.reply.clone() else { return };
        let response = match self.request(&message) {
            // A router is always ready, and never fails.
            Ok(request) => match self.routes.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            Err(problem) => refusal(400, &problem),
        };
        let (headers, body) = self.fitting(response).await;
        // A client that has gone needs no reply.
        drop(self.client.publish_with_headers(reply, headers, body.into()).await);
    }

    /// Converts a message to a request of the HTTP service.
    fn request(&self, message: &Message) -> Result<Request<Body>, String> {
        let mut request = Request::post(PATH);
        for (name, values) in message.headers.iter().flat_map(async_nats::HeaderMap::iter) {
            let name: &str = name.as_ref();
            if name.eq_ignore_ascii_case(HOST.as_str()) || name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str())
            {
                continue;
            }
            for value in values {
                request = request.header(name, value.as_str());
            }
        }
        let request = request.header(HOST, self.host.clone()).header(CONTENT_LENGTH, message.payload.len());
        request
            .body(Body::from(message.payload.clone()))
            .map_err(|error| format!("a header is invalid: {error}"))
    }

    /// Returns headers and body of a reply; an answer above the server's limit becomes a refusal.
    async fn fitting(&self, response: Response<Body>) -> (async_nats::HeaderMap, Vec<u8>) {
        let most = self.client.server_info().max_payload.saturating_sub(HEADERS);
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, most).await else {
            let problem = format!(
                "the answer is larger than {most} bytes, which the server can pass on: send fewer rows"
            );
            return Box::pin(self.fitting(refusal(413, &problem))).await;
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
        (headers, body.into())
    }
}

/// Makes a refusal in the form of the HTTP service.
fn refusal(status: u16, problem: &str) -> Response<Body> {
    let body = Body::from(serde_json::json!({ "error": problem }).to_string());
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(body).expect("the parts are fixed")
}
