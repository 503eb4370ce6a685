//! Monitor of a party: health for a supervisor, metrics for Prometheus, and a page for the party's operator, over HTTP.
//!
//! The monitor only looks: no request changes the party. It runs in separate threads, so it answers while the party computes.

mod export;
mod http;
pub(crate) mod metrics;
mod page;
pub(crate) mod settings;
mod state;
mod watched;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use fet_core::policy::Policy;
use fet_net::{Heartbeat, State};

use self::metrics::PartyMetrics;
use self::settings::MonitorSettings;
use self::state::StateFolder;
pub(super) use self::watched::PartyNames;
use self::watched::{Stage, Watched};
use crate::http_server::HttpServer;
use fet_io::input::input;

/// Monitor of a party, which stops when it is dropped.
pub(super) struct Monitor {
    running: Option<Running>,
}

/// Server of a monitor, and the party that it watches.
struct Running {
    watched: Arc<Watched>,
    server: Option<HttpServer>,
    address: SocketAddr,
}

impl Monitor {
    /// Starts the monitor if the settings turn it on.
    ///
    /// # Errors
    /// Fails if a setting is invalid, the token is missing, or the address is taken.
    pub(super) fn start(
        settings: &MonitorSettings,
        names: PartyNames,
        metrics: Arc<PartyMetrics>,
        state: PathBuf,
        policy: Policy,
    ) -> anyhow::Result<Self> {
        let Some(access) = settings.check()? else { return Ok(Self { running: None }) };
        let refuse = |error| input(format!("`monitor.listen` is {}: {error}", access.address));
        let listener = TcpListener::bind(access.address).map_err(refuse)?;
        let address = listener.local_addr().context("the system does not tell the address of a socket")?;
        let watched = Arc::new(Watched::new(names, metrics, StateFolder::new(state, policy)));
        let routes = http::routes(Arc::clone(&watched), export::registry(&watched), access);
        let server = Some(HttpServer::start(listener, routes)?);
        Ok(Self { running: Some(Running { watched, server, address }) })
    }

    /// Returns the address on which the monitor listens; `None` if it is off.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.running.as_ref().map(|running| running.address)
    }

    /// Watches this link from now on.
    pub(super) fn watch(&self, look: impl Fn() -> State + Send + 'static, heartbeat: Heartbeat) {
        if let Some(running) = &self.running {
            running.watched.enter(Stage::Serving { look: Box::new(look), heartbeat });
        }
    }

    /// Shows that the party is ending.
    pub(super) fn stopping(&self) {
        if let Some(running) = &self.running {
            running.watched.enter(Stage::Stopping);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(std::future::ready(()));
        }
    }
}
