//! Metrics of a party in Prometheus' text format.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fet_net::{Connection, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::super::encoder::{self, Encoder};
use super::state::StateView;
use super::watched::Watched;

/// Returns the metrics of a party. No label contains the id of a run or a part of a table.
pub(super) fn registry(watched: &Arc<Watched>) -> Registry {
    let mut registry = Registry::with_prefix("fet_party");
    encoder::register_build(&mut registry);
    watched.metrics.register(&mut registry);
    registry.register_collector(Box::new(Export(Arc::clone(watched))));
    registry
}

/// Metrics that follow from the party at the time of a request.
struct Export(Arc<Watched>);

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Export of {}", self.0.names.party)
    }
}

impl Collector for Export {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let watched = &self.0;
        let mut out = Encoder::new(encoder);
        out.gauge("start_seconds", "Start of the process, in seconds since 1970", seconds(watched.started))?;
        let ready = f64::from(u8::from(watched.readiness().is_ok()));
        out.gauge("ready", "1 if the party can serve the primary, otherwise 0", ready)?;
        out.gauge("sessions", "Open sessions of the primary", watched.metrics.sessions().len() as f64)?;
        let last = watched.metrics.refusals().first().map(|refusal| seconds(refusal.time));
        let help = "Time of the last refusal, in seconds since 1970";
        out.known_gauge("last_refusal_seconds", help, last)?;
        encode_link(&mut out, watched.link().as_ref())?;
        encode_state(&mut out, &watched.state.look())
    }
}

fn encode_link(out: &mut Encoder<'_>, link: Option<&State>) -> fmt::Result {
    let now = state_name(link.map(|link| &link.connection));
    let states = ["connecting", "up", "refused", "denied", "down"];
    let states = states.map(|state| (state.to_string(), f64::from(u8::from(state == now))));
    let help = "1 for the present state of the connection to the server, otherwise 0";
    out.gauges("connection", help, "state", states)?;
    let heard = link.and_then(|link| link.heard).map(|heard| heard.as_secs_f64());
    out.known_gauge("heard_seconds", "Time since the primary was last heard", heard)?;
    let latency = link.and_then(|link| link.latency).map(|latency| latency.as_secs_f64());
    out.known_gauge("latency_seconds", "Round-trip time of a packet to the primary", latency)?;
    let number = |count: fn(&State) -> u64| link.map_or(0, count);
    out.counter("sent_bytes", "Bytes sent, with repetitions and overhead", number(|link| link.sent))?;
    out.counter("received_bytes", "Authentic bytes received", number(|link| link.received))?;
    let help = "Packets that could not be read: altered, or made by an unknown key";
    out.counter("unreadable_packets", help, number(|link| link.unreadable))
}

fn encode_state(out: &mut Encoder<'_>, state: &StateView) -> fmt::Result {
    out.gauge("state_bytes", "Size of the state folder", state.bytes as f64)?;
    out.gauge("runs", "Runs whose files are in the state folder", state.runs.len() as f64)?;
    let counted = state.predictions.as_ref().ok().copied();
    let help = "New records that were linked for predictions, over all runs and processes";
    out.known_gauge("predictions", help, counted.map(|counted| counted as f64))?;
    let left = state.most_predictions.zip(counted).map(|(most, counted)| most.saturating_sub(counted));
    let help = "New records that the policy still allows to link for predictions";
    out.known_gauge("predictions_left", help, left.map(|left| left as f64))?;
    let broken = u8::from(state.account.is_err());
    out.gauge("lifetime_broken", "1 if the lifetime account cannot be read, otherwise 0", broken.into())?;
    let Ok(Some(account)) = &state.account else { return Ok(()) };
    let help = "Lifetime epsilon of all runs together; infinite without a bound";
    out.gauge("lifetime_epsilon", help, account.epsilon)?;
    let help = "Limit of the lifetime epsilon in the party's policy";
    out.known_gauge("lifetime_epsilon_limit", help, account.limit)
}

/// Returns the name of a state of the connection; `None` is the time before it.
fn state_name(connection: Option<&Connection>) -> &'static str {
    match connection {
        None => "connecting",
        Some(Connection::Up { warning: None }) => "up",
        Some(Connection::Up { warning: Some(_) }) => "refused",
        Some(Connection::Denied { .. }) => "denied",
        Some(Connection::Down { .. }) => "down",
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
