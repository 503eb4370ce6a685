//! `fet serve`: answers requests for predictions by a finished run over HTTP and NATS.
//!
//! The HTTP server runs in two threads of its own, and puts each request into a bounded queue. One worker, the thread of the
//! command, takes the requests in order; it alone talks to the parties.

mod arguments;
mod http;
mod json;
mod metrics;
mod nats;
mod openapi;
mod rows;
mod worker;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use fet_io::input::input;
use tokio::sync::Semaphore;

pub use self::arguments::ServeArguments;
use self::http::Shared;
use self::metrics::Metrics;
pub use self::nats::NatsArguments;
use self::nats::{NatsService, NatsSettings};
use self::worker::{Stage, Worker};
use crate::access::read_token;
use crate::http_server::HttpServer;
use crate::predict::Model;
use crate::reporter::Reporter;

/// Serves until `stop` is set.
///
/// # Errors
/// Fails if the arguments, the run or the parties are invalid, or if the address is taken.
pub fn serve(arguments: &ServeArguments, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let token = arguments.token_file.as_deref().map(read_token).transpose()?;
    if token.is_none() && !arguments.listen.ip().is_loopback() {
        return Err(input(format!(
            "--listen {}: other machines reach this address; name a file with a token (--token-file)",
            arguments.listen
        )));
    }
    if arguments.queue == 0 || arguments.most_rows == 0 || arguments.timeout == 0 {
        return Err(input("--queue, --most-rows and --timeout must be at least 1"));
    }
    let reporter = Reporter::new("serve", arguments.log).at(arguments.log_level);
    let settings = NatsSettings::new(&arguments.nats, &reporter)?;
    let model = Model::open(&arguments.model)?;
    if arguments.cache > 0 && !model.links_rows_alone()? {
        return Err(input(
            "--cache must be 0: the linker of this run links each row depending on the other rows of a request",
        ));
    }
    // Errors of the roster end the command at once.
    model.elsewhere(&arguments.model, stop)?;
    let refuse = |error| input(format!("--listen {}: {error}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).map_err(refuse)?;
    let address = listener.local_addr().context("the system does not tell the address of a socket")?;
    let (jobs, waiting) = sync_channel(usize::from(arguments.queue));
    let stage = Arc::new(Mutex::new(Stage::Joining("the parties have not joined yet".into())));
    let metrics = Arc::new(Metrics::new());
    let shared = Shared {
        jobs,
        stage: Arc::clone(&stage),
        token,
        address,
        bodies: Semaphore::new(usize::from(arguments.queue) + 1),
        timeout: Duration::from_secs(arguments.timeout.into()),
        metrics: Arc::clone(&metrics),
        about: openapi::about(&model, arguments.most_rows)?,
        nats: settings.as_ref().map(|settings| Arc::clone(&settings.state)),
    };
    let routes = http::routes(shared);
    let server = HttpServer::start(listener, routes.clone())?;
    let nats = match &settings {
        None => None,
        Some(settings) => {
            let most = arguments.queue.saturating_add(1);
            let nats = NatsService::start(settings, &server, routes, (&address.to_string(), most))?;
            reporter.tell("subscribed", format_args!("subscribed to {}", settings.place()));
            Some(nats)
        }
    };
    reporter.tell("listening", format_args!("listening on http://{address}"));
    let worker = Worker { model, arguments, reporter: reporter.clone(), stage, metrics, stop };
    let ended = worker.work(&waiting);
    server.stop(async {
        match nats {
            Some(nats) => nats.stop(waiting).await,
            // Waiting requests end with a refusal.
            None => drop(waiting),
        }
    });
    if stop.load(Ordering::Relaxed) {
        reporter.tell("stopped", "stopped");
        return Ok(());
    }
    ended
}
