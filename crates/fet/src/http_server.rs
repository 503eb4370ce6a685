//! HTTP server in separate threads, for services of the program.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::serve::Listener;
use futures_util::future::join;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, Sleep};

use crate::access::is_local_request;

/// Media type of metrics in Prometheus' text format.
pub(crate) const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Threads of a server.
const THREADS: usize = 2;
/// Maximum number of connections at a time; further ones wait.
const CONNECTIONS: usize = 256;
/// Time after which a connection without any byte is closed.
const IDLE: Duration = Duration::from_secs(600);
/// Maximum time to end all connections after a stop.
const END: Duration = Duration::from_secs(5);
/// Time after a stop during which the server still accepts connections.
const LAST: Duration = Duration::from_millis(250);

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
    pub(crate) fn start(listener: std::net::TcpListener, routes: Router) -> anyhow::Result<Self> {
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
            TcpListener::from_std(listener).context("cannot listen")?
        };
        let listener = Limited { listener, free: Arc::new(Semaphore::new(CONNECTIONS)) };
        runtime.spawn(async move {
            let stopped = async { drop(stopped.await) };
            drop(axum::serve(listener, routes).with_graceful_shutdown(stopped).await);
            let _ = end.send(());
        });
        Ok(Self { runtime, stop, ended })
    }

    /// Runs work in the threads of the server, which end its further tasks when the server stops.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Refuses new connections after [`LAST`], and waits for open requests and for `rest`, the last work in the threads of
    /// the server.
    ///
    /// The operating system queues connections before the server accepts them, and resets the queue when the server stops
    /// listening. Without the delay, a client that has already sent its request would get no answer.
    pub(crate) fn stop(self, rest: impl Future<Output = ()>) {
        let Self { runtime, stop, ended } = self;
        let end = async {
            tokio::time::sleep(LAST).await;
            let _ = stop.send(());
            drop(ended.await);
        };
        drop(runtime.block_on(async { tokio::time::timeout(END, join(end, rest)).await }));
        runtime.shutdown_background();
    }
}

/// Listener with a limit of connections, so that clients cannot use up the files of the process.
struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.free).acquire_owned().await.expect("the semaphore is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let idle = Box::pin(tokio::time::sleep(IDLE));
        (Connection { stream, idle, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Connection that counts until it is dropped.
struct Connection {
    stream: TcpStream,
    /// End of the time without a byte.
    idle: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Restarts the count of time without a byte after progress, and ends the connection when it has passed.
    fn progress<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.idle.as_mut().reset(Instant::now() + IDLE);
            return outcome;
        }
        self.idle.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.progress(context, read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.progress(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net;
    use std::sync::mpsc;

    use axum::routing::get;

    use super::*;

    /// The threads of the server are busy until it stops, so that the operating system still queues all connections then.
    #[test]
    fn a_stop_answers_queued_connections() {
        let listener = net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = HttpServer::start(listener, Router::new().route("/", get(|| async { "here" })))
            .expect("it starts");
        let busy: Vec<mpsc::Sender<()>> = (0..THREADS)
            .map(|_| {
                let (free, freed) = mpsc::channel();
                let (begin, begun) = mpsc::channel();
                server.runtime.spawn(async move {
                    begin.send(()).expect("the test waits");
                    let _ = freed.recv();
                });
                begun.recv().expect("the task runs");
                free
            })
            .collect();
        let ask = |_| {
            let mut connection = net::TcpStream::connect(address).expect("the server listens");
            connection.write_all(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").expect("sent");
            connection
        };
        let asked: Vec<net::TcpStream> = (0..120).map(ask).collect();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(busy);
        });
        server.stop(std::future::ready(()));
        for mut connection in asked {
            let mut answer = String::new();
            connection.read_to_string(&mut answer).expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"), "{answer}");
        }
        assert!(net::TcpStream::connect(address).is_err(), "the server still listens");
    }
}
