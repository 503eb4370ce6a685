//! HTTP server in separate threads, for services of the program.

use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::access::is_local_request;

/// Media type of metrics in Prometheus' text format.
pub(crate) const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Threads of a server.
const THREADS: usize = 2;
/// Longest time in which a server ends its connections.
const END: Duration = Duration::from_secs(5);

/// Returns routes that refuse requests of another site's page in a browser on this machine.
pub(crate) fn local_only(routes: Router, listening: IpAddr) -> Router {
    let check = move |request: Request, next: Next| async move {
        if is_local_request(request.headers(), listening) {
            return next.run(request).await;
        }
        let reason = "refused: a web page sent the request, or it names another host; use http://127.0.0.1\n";
        (StatusCode::FORBIDDEN, reason).into_response()
    };
    routes.layer(middleware::from_fn(check))
}

/// Running server.
pub(crate) struct HttpServer {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl HttpServer {
    /// Starts a server of these routes.
    pub(crate) fn start(listener: TcpListener, routes: Router) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("fet-http")
            .enable_all()
            .build()
            .context("cannot start the threads of the server")?;
        listener.set_nonblocking(true).context("cannot listen without waiting")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        let listener = {
            let _guard = runtime.enter();
            tokio::net::TcpListener::from_std(listener).context("cannot listen")?
        };
        runtime.spawn(async move {
            let stopped = async { drop(stopped.await) };
            drop(axum::serve(listener, routes).with_graceful_shutdown(stopped).await);
            let _ = end.send(());
        });
        Ok(Self { runtime, stop, ended })
    }

    /// Refuses new connections, and waits for open requests.
    pub(crate) fn stop(self) {
        let Self { runtime, stop, ended } = self;
        let _ = stop.send(());
        drop(runtime.block_on(async { tokio::time::timeout(END, ended).await }));
        runtime.shutdown_background();
    }
}
