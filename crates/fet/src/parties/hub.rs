//! `fet hub`: configuration of the server that connects the parties.

use std::path::PathBuf;

use fet_net::hub;

use super::roster::Roster;
use fet_io::input::input;

/// Commands of `fet hub`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum HubCommand {
    /// Print the server's configuration for `nats-server -c FILE`, which allows only the messages between the
    /// parties of the rosters.
    ///
    /// One server can connect several runs. Two rosters of the same run may differ in keys: the server then accepts a
    /// member's former and new key, until it gets the configuration of the new roster alone.
    Config {
        /// The rosters, each with the same table `hub`.
        #[arg(required = true)]
        rosters: Vec<PathBuf>,
        /// File for the configuration; it stays as it was if the command fails [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Place of this server among others.
        #[command(flatten)]
        node: NodeArguments,
    },
}

/// Arguments for one of several servers, each with a configuration of its own.
#[derive(Debug, Clone, clap::Args)]
pub struct NodeArguments {
    /// Port for the parties, in place of that in the roster.
    #[arg(long)]
    pub port: Option<u16>,
    /// Address on which this server listens for the other servers of its cluster. The servers show each other their
    /// certificates, which the roster's `ca` must have signed.
    #[arg(long, value_name = "HOST:PORT", requires = "routes")]
    pub cluster: Option<String>,
    /// Address on which another server of the cluster listens for this one; repeatable.
    #[arg(long = "route", value_name = "HOST:PORT", requires = "cluster")]
    pub routes: Vec<String>,
}

/// Writes the configuration to `--out`, or returns it.
pub fn hub(command: &HubCommand) -> anyhow::Result<String> {
    let HubCommand::Config { rosters, out, node } = command;
    let text = configuration(rosters, node)?;
    let Some(path) = out else { return Ok(text) };
    fet_io::write(path, text.as_bytes()).map_err(|error| input(format!("{}: {error}", path.display())))?;
    Ok(String::new())
}

fn configuration(paths: &[PathBuf], node: &NodeArguments) -> anyhow::Result<String> {
    let rosters = paths.iter().map(|path| Roster::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut relays = rosters.iter().map(relay).collect::<anyhow::Result<Vec<_>>>()?;
    // Some parties may reach the server by WebSocket and others directly, each with its own copy of the roster.
    let websocket = relays.iter().find_map(|relay| relay.websocket);
    relays.iter_mut().for_each(|relay| relay.websocket = relay.websocket.or(websocket));
    if let Some(at) = relays.iter().position(|relay| *relay != relays[0]) {
        let what =
            if relays[at].websocket == relays[0].websocket { "`hub`" } else { "the port of the WebSocket" };
        return Err(input(format!(
            "{}: {what} must be equal to that of {}, because one server has one address and one certificate",
            paths[at].display(),
            paths[0].display()
        )));
    }
    if let Some(port) = websocket.filter(|port| *port == relays[0].port) {
        return Err(input(format!(
            "{}: `hub.port` must differ from {port}, the port of the WebSocket of another roster: the server listens on both",
            paths[0].display()
        )));
    }
    let members: Vec<_> = rosters.iter().map(Roster::members).collect();
    let files = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let relay = with_node(relays.swap_remove(0), node, &rosters[0])?;
    relay.configuration(&members).map_err(|error| input(format!("{files}: {error}")))
}

/// Returns one server of a cluster.
fn with_node(relay: hub::Relay, node: &NodeArguments, roster: &Roster) -> anyhow::Result<hub::Relay> {
    let port = node.port.unwrap_or(relay.port);
    let Some(listen) = node.cluster.clone() else { return Ok(hub::Relay { port, ..relay }) };
    for (name, address) in
        std::iter::once(("--cluster", &listen)).chain(node.routes.iter().map(|route| ("--route", route)))
    {
        let is_address = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !is_address {
            return Err(input(format!("{name} must be HOST:PORT; it is {address:?}")));
        }
    }
    let ca = roster.file.ca.clone();
    if relay.tls.is_some() && ca.is_none() {
        return Err(input(format!(
            "{}: `ca` must name the authority of the servers' certificates, which the servers of a cluster show each other",
            roster.path.display()
        )));
    }
    Ok(hub::Relay { port, cluster: Some(hub::Cluster { listen, routes: node.routes.clone(), ca }), ..relay })
}

/// Returns the server of a roster.
fn relay(roster: &Roster) -> anyhow::Result<hub::Relay> {
    let bad = |problem: &str| input(format!("{}: {problem}", roster.path.display()));
    let Some(settings) = roster.file.hub.clone() else {
        return Err(bad("`hub` must set the server's address (host, port, certificate, key)"));
    };
    let tls = match (&settings.certificate, &settings.key) {
        (None, None) if settings.verify.is_none() => None,
        (Some(certificate), Some(key)) => Some(hub::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            verify: settings.verify.clone(),
        }),
        _ => {
            return Err(bad(
                "`hub` must have both `certificate` and `key`, or neither of them and no `verify`",
            ));
        }
    };
    if settings.verify.is_some() && roster.file.certificate.is_none() {
        return Err(bad(
            "`hub.verify` makes the server require certificates. Name the parties' certificates in `certificate` \
             and `certificate_key`, next to `server`.",
        ));
    }
    let ports = roster.server().websocket_ports().map_err(|error| bad(&format!("`server`: {error}")))?;
    if ports.len() > 1 {
        return Err(bad("the WebSocket addresses in `server` must have the same port"));
    }
    let websocket = ports.into_iter().next();
    if websocket == Some(settings.port) {
        return Err(bad(&format!(
            "`hub.port` must differ from {}, the port of the WebSocket in `server`: the server listens on both",
            settings.port
        )));
    }
    let secure = roster.file.server.split(',').any(|text| text.trim().starts_with("wss://"));
    if secure && tls.is_none() {
        return Err(bad("`hub` must have `certificate` and `key`, because `server` is a wss:// address"));
    }
    Ok(hub::Relay { host: settings.host, port: settings.port, websocket, tls, cluster: None })
}
