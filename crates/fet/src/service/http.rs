//! HTTP server: paths, tokens, limits and the queue.

use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use super::metrics::Metrics;
use super::nats::NatsState;
use super::openapi::About;
use super::rows::{self, Form};
use super::worker::{Job, Reply, Stage};
use crate::access::{MODEL, WARNINGS, bearer, is_local_request, is_token};
use crate::http_server::METRICS;

/// Largest body of a request, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// Seconds after which a client may ask a busy server again.
const AGAIN: &str = "1";
/// Header with which a client states the longest time that it waits, in seconds.
const TIMEOUT: HeaderName = HeaderName::from_static("request-timeout");

/// Parts of the service that requests share.
pub(super) struct Shared {
    pub(super) jobs: SyncSender<Job>,
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) token: Option<String>,
    /// Address on which the server listens.
    pub(super) address: SocketAddr,
    /// Requests whose bodies are in memory.
    pub(super) bodies: Semaphore,
    /// Longest time of a request.
    pub(super) timeout: Duration,
    pub(super) metrics: Arc<Metrics>,
    pub(super) about: About,
    /// Connection of the service over NATS.
    pub(super) nats: Option<Arc<NatsState>>,
}

/// Returns the paths of the service.
pub(super) fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/v1/predict", post(predict))
        .route("/v1/model", get(about))
        .route("/openapi.json", get(openapi))
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(Arc::new(shared))
}

type Service = State<Arc<Shared>>;

/// Refusal of a request.
struct Refusal {
    status: StatusCode,
    reason: String,
}

impl Refusal {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = answer_json(self.status, &json!({ "error": self.reason }));
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, axum::http::HeaderValue::from_static(AGAIN));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

fn answer_json(status: StatusCode, value: &Value) -> Response {
    (status, [(CONTENT_TYPE, Form::Json.media_type())], value.to_string()).into_response()
}

async fn predict(State(shared): Service, request: Request) -> Response {
    let began = Instant::now();
    let found = predicted(&shared, request, began).await;
    let (status, response) = match found {
        Ok(response) => (StatusCode::OK, response),
        Err(refusal) => (refusal.status, refusal.into_response()),
    };
    shared.metrics.answered(status.as_u16());
    response
}

async fn predicted(shared: &Shared, request: Request, began: Instant) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    check_single(&parts.headers)?;
    shared.check_token(&parts.headers)?;
    let timeout = shared.timeout(&parts.headers)?;
    let header = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    // A page of another site can send a request without a type, but not one of these types.
    let form = header(&CONTENT_TYPE).and_then(Form::of_type).ok_or_else(|| {
        let given = header(&CONTENT_TYPE).unwrap_or("missing");
        Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("`Content-Type` must be {}; it is {given}", Form::names()),
        )
    })?;
    if parts.headers.contains_key(CONTENT_ENCODING) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "`Content-Encoding`: the body must not be compressed",
        ));
    }
    let accepted = form.accepted(header(&ACCEPT).unwrap_or_default()).ok_or_else(|| {
        Refusal::new(StatusCode::NOT_ACCEPTABLE, format!("`Accept` must name {}", Form::names()))
    })?;
    let too_large = || {
        let reason = format!("the body may have at most {} MiB", MOST_BYTES >> 20);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    };
    let length = header(&CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MOST_BYTES as u64) {
        return Err(too_large());
    }
    let work = async {
        shared.check_stage()?;
        let busy = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait; try again");
        let _place = shared.bodies.try_acquire().map_err(busy)?;
        let body = to_bytes(body, MOST_BYTES).await.map_err(|error| match error.to_string() {
            told if told.contains("length limit") => too_large(),
            told => Refusal::new(StatusCode::BAD_REQUEST, format!("the body cannot be read ({told})")),
        })?;
        let (reply, answer) = oneshot::channel();
        let job = Job { form, body, accepted, deadline: began + timeout, reply };
        shared.metrics.joined_queue();
        if let Err(error) = shared.jobs.try_send(job) {
            shared.metrics.left_queue();
            let reason = match error {
                TrySendError::Full(_) => "too many requests wait; try again",
                TrySendError::Disconnected(_) => "the service is stopping",
            };
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
        }
        let stopping = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping");
        answer.await.map_err(stopping)
    };
    let late = || {
        let reason = format!("no answer within {} s", timeout.as_secs_f64());
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, reason)
    };
    match tokio::time::timeout(timeout, work).await.map_err(|_| late())?? {
        Reply::Late => Err(late()),
        Reply::Predictions { form, body, rows, warnings } => {
            shared.metrics.predicted(rows, began.elapsed());
            let mut response = ([(CONTENT_TYPE, form.media_type())], Body::from(body)).into_response();
            if let Ok(model) = shared.about.digest.parse() {
                response.headers_mut().insert(HeaderName::from_static(MODEL), model);
            }
            if form != Form::Json
                && !warnings.is_empty()
                && let Ok(value) = rows::header(&warnings).parse()
            {
                response.headers_mut().insert(HeaderName::from_static(WARNINGS), value);
            }
            Ok(response)
        }
        Reply::Refused(status, reason) => Err(Refusal::new(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            reason,
        )),
    }
}

/// Refuses a header that states two values for one setting.
fn check_single(headers: &HeaderMap) -> Result<(), Refusal> {
    for (name, shown) in
        [(AUTHORIZATION, "Authorization"), (CONTENT_TYPE, "Content-Type"), (TIMEOUT, "Request-Timeout")]
    {
        let times = headers.get_all(&name).iter().count();
        if times > 1 {
            let reason = format!("the request has {times} headers `{shown}`, but must have only one");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
        }
    }
    Ok(())
}

async fn about(State(shared): Service, headers: HeaderMap) -> Response {
    match shared.check_token(&headers) {
        Ok(()) => answer_json(StatusCode::OK, &shared.about.model),
        Err(refusal) => refusal.into_response(),
    }
}

async fn openapi(State(shared): Service) -> Response {
    answer_json(StatusCode::OK, &shared.about.openapi)
}

async fn metrics(State(shared): Service) -> Response {
    ([(CONTENT_TYPE, METRICS)], shared.metrics.text()).into_response()
}

/// Answers whether the next request over HTTP can be answered. A lost connection to the NATS server is named, but keeps status 200:
/// a restart of the service would not restore the connection, and requests over HTTP still have answers.
async fn ready(State(shared): Service) -> Response {
    let stage = shared.check_stage();
    let Some(nats) = &shared.nats else {
        return stage.map_or_else(Refusal::into_response, |()| "ready\n".into_response());
    };
    let nats = nats.word();
    match stage {
        Ok(()) => answer_json(StatusCode::OK, &json!({ "ready": true, "nats": nats })),
        Err(Refusal { status, reason }) => {
            answer_json(status, &json!({ "ready": false, "error": reason, "nats": nats }))
        }
    }
}

impl Shared {
    /// Refuses a request without the token.
    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return self.check_host(headers) };
        if is_token(bearer(headers), token) {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "the header `Authorization: Bearer TOKEN` must have the server's token",
        ))
    }

    /// Refuses a request without a token that a page of another site may have sent in a browser on this machine.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if is_local_request(headers, self.address.ip()) {
            return Ok(());
        }
        let reason =
            "a request from a page, or by another name of this machine, needs a token (`--token-file`)";
        Err(Refusal::new(StatusCode::FORBIDDEN, reason))
    }

    fn check_stage(&self) -> Result<(), Refusal> {
        match &*self.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Ready => Ok(()),
            Stage::Joining(reason) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason.clone())),
        }
    }

    /// Returns the longest time of a request, which its client may shorten.
    fn timeout(&self, headers: &HeaderMap) -> Result<Duration, Refusal> {
        let Some(given) = headers.get(TIMEOUT) else { return Ok(self.timeout) };
        let seconds: Option<f64> = given.to_str().ok().and_then(|text| text.trim().parse().ok());
        let asked = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match asked.filter(|asked| !asked.is_zero()) {
            Some(asked) => Ok(asked.min(self.timeout)),
            None => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "`Request-Timeout` must be a number of seconds above 0",
            )),
        }
    }
}
