//! `fet hub`: configuration of the server that connects the parties.

use std::path::PathBuf;

use fet_net::hub;

use super::roster::Roster;
use fet_io::input::input;

/// Commands of `fet hub`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum HubCommand {
    /// Print the server's configuration for `nats-server -c FILE`, which allows only the messages between the
    /// parties of the roster.
    Config {
        /// The roster, with the table `hub`.
        roster: PathBuf,
    },
}

/// Returns the configuration.
pub fn hub(command: &HubCommand) -> anyhow::Result<String> {
    let HubCommand::Config { roster: path } = command;
    let roster = Roster::read(path)?;
    let Some(settings) = roster.file.hub.clone() else {
        return Err(input(format!(
            "{}: `hub` must set the server's address (host, port, certificate, key)",
            path.display()
        )));
    };
    let tls = match (&settings.certificate, &settings.key) {
        (None, None) if settings.verify.is_none() => None,
        (Some(certificate), Some(key)) => Some(hub::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            verify: settings.verify.clone(),
        }),
        _ => {
            let problem = "must have both `certificate` and `key`, or neither of them and no `verify`";
            return Err(input(format!("{}: `hub` {problem}", path.display())));
        }
    };
    if settings.verify.is_some() && roster.file.certificate.is_none() {
        return Err(input(format!(
            "{}: `hub.verify` makes the server require certificates. Name the parties' certificates in `certificate` \
             and `certificate_key`, next to `server`.",
            path.display()
        )));
    }
    let hub::Roster { run, primary, parties, .. } = roster.members();
    let wanted = hub::Roster { run, primary, parties, host: settings.host, port: settings.port, tls };
    wanted.configuration().map_err(|error| input(format!("{}: {error}", path.display())))
}
