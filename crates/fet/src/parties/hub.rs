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
    },
}

/// Returns the configuration.
pub fn hub(command: &HubCommand) -> anyhow::Result<String> {
    let HubCommand::Config { rosters: paths } = command;
    let rosters = paths.iter().map(|path| Roster::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut relays = rosters.iter().map(relay).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(at) = relays.iter().position(|relay| *relay != relays[0]) {
        return Err(input(format!(
            "{}: `hub` must be equal to that of {}, because one server has one address and one certificate",
            paths[at].display(),
            paths[0].display()
        )));
    }
    let members: Vec<_> = rosters.iter().map(Roster::members).collect();
    let files = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    relays.swap_remove(0).configuration(&members).map_err(|error| input(format!("{files}: {error}")))
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
    Ok(hub::Relay { host: settings.host, port: settings.port, tls })
}
