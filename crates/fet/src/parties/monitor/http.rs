//! Paths of a party's monitor, and the access to them.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::page;
use super::settings::Access;
use super::watched::Watched;
use crate::access::{authorization, bearer, is_token};
use crate::http_server::{METRICS, local_only};

/// Request for a name and a password, whose name does not matter.
const CHALLENGE: &str = "Basic realm=\"fet party\", charset=\"UTF-8\"";

/// Parts of the monitor that requests share.
struct Monitored {
    watched: Arc<Watched>,
    registry: Registry,
    access: Access,
}

/// Returns the paths of the monitor.
pub(super) fn routes(watched: Arc<Watched>, registry: Registry, access: Access) -> Router {
    let Access { page, public, address, .. } = access;
    let monitored = Arc::new(Monitored { watched, registry, access });
    let mut own = Router::new().route("/metrics", get(metrics));
    if page {
        own = own.route("/", get(shown));
    }
    let routes =
        own.route("/healthz", get(async || "ok\n")).route("/readyz", get(ready)).with_state(monitored);
    // For other machines the monitor has names that it does not know. All that a page could read there needs the token.
    if public { routes } else { local_only(routes, address.ip()) }
}

type Shared = State<Arc<Monitored>>;

async fn ready(State(monitored): Shared) -> Response {
    let readiness = blocking(move || monitored.watched.readiness()).await;
    match readiness.unwrap_or_else(|| Err("the monitor has failed".into())) {
        Ok(()) => "ready\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn metrics(State(monitored): Shared, headers: HeaderMap) -> Response {
    if monitored.access.public && !monitored.is_operator(&headers) {
        return unauthorized();
    }
    let text = blocking(move || {
        let mut text = String::new();
        encode(&mut text, &monitored.registry).map(|()| text).ok()
    });
    match text.await.flatten() {
        Some(text) => ([(CONTENT_TYPE, METRICS)], text).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn shown(State(monitored): Shared, headers: HeaderMap) -> Response {
    if !monitored.is_operator(&headers) {
        return unauthorized();
    }
    let page = blocking(move || page::page(&monitored.watched).ok());
    let Some(page) = page.await.flatten() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [
        (CONTENT_SECURITY_POLICY, page.policy.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Html(page.text)).into_response()
}

fn unauthorized() -> Response {
    let reason = "the token of `monitor.token_env` is the password; any user name will do\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, CHALLENGE)], reason).into_response()
}

/// Runs work that waits for the disk or a lock, so that `/healthz` answers meanwhile.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

impl Monitored {
    /// Returns true if a request has the token, as a bearer token or as the password of HTTP Basic.
    fn is_operator(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.access.token else { return false };
        is_token(bearer(headers), token) || is_token(&password(headers), token)
    }
}

/// Returns the password of HTTP Basic; an empty text without one.
fn password(headers: &HeaderMap) -> String {
    let text = STANDARD.decode(authorization(headers, "basic")).unwrap_or_default();
    let text = String::from_utf8(text).unwrap_or_default();
    text.split_once(':').map_or_else(String::new, |(_, password)| password.to_string())
}
