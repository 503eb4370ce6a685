//! Settings of a party's monitor.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access;
use fet_io::input::input;

/// Health, metrics and a page for the party's operator, over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MonitorSettings {
    /// Address and port on which the party answers its own operator and Prometheus, such as `127.0.0.1:9464`; port 0 takes a free
    /// one. An empty text turns the monitor off.
    listen: String,
    /// True to allow an address that other machines reach. It needs a token, which also protects the metrics then.
    public: bool,
    /// True to serve the operator's page under `/`, which needs a token.
    page: bool,
    /// Environment variable with the token, of 16 characters or more.
    token_env: String,
}

/// Checked settings of a monitor.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) address: SocketAddr,
    pub(super) public: bool,
    pub(super) page: bool,
    pub(super) token: Option<String>,
}

impl MonitorSettings {
    /// Checks the settings and reads the token; returns `None` if the monitor is off.
    pub(super) fn check(&self) -> anyhow::Result<Option<Access>> {
        let Self { listen, public, page, token_env } = self;
        if listen.is_empty() {
            return match *self == Self::default() {
                true => Ok(None),
                false => Err(input("`monitor.listen` is missing; set it, for example to \"127.0.0.1:9464\"")),
            };
        }
        let address: SocketAddr = listen.parse().map_err(|_| {
            input(format!(
                "`monitor.listen` must be an address and a port, such as \"127.0.0.1:9464\"; it is {listen:?}"
            ))
        })?;
        if !address.ip().is_loopback() && !public {
            return Err(input(format!(
                "`monitor.listen` is {address}: other machines reach this address. Use 127.0.0.1, or set `monitor.public = true`"
            )));
        }
        if token_env.is_empty() && (*page || *public) {
            let what = if *page { "page" } else { "public" };
            return Err(input(format!(
                "`monitor.{what}` needs a token: set `monitor.token_env` to the name of the environment variable that holds it"
            )));
        }
        let token = match token_env.as_str() {
            "" => None,
            name => Some(
                access::token_of_environment(name)
                    .map_err(|error| input(format!("`monitor.token_env`: {error}")))?,
            ),
        };
        Ok(Some(Access { address, public: *public, page: *page, token }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_an_open_monitor_without_a_token() {
        for (text, expected) in [
            ("", None),
            ("listen = '127.0.0.1:0'", None),
            ("listen = '[::1]:9464'", None),
            ("page = true", Some("`monitor.listen` is missing")),
            ("listen = '9464'", Some("it is \"9464\"")),
            ("listen = 'localhost:9464'", Some("must be an address and a port")),
            ("listen = '0.0.0.0:9464'", Some("other machines reach this address")),
            ("listen = '192.0.2.1:9464'\npage = true", Some("other machines reach this address")),
            ("listen = '0.0.0.0:9464'\npublic = true", Some("`monitor.public` needs a token")),
            ("listen = '127.0.0.1:0'\npage = true", Some("`monitor.page` needs a token")),
            (
                "listen = '127.0.0.1:0'\ntoken_env = 'FET_NO_SUCH_TOKEN'",
                Some("`monitor.token_env`: the environment variable FET_NO_SUCH_TOKEN must hold"),
            ),
            // A path is long enough, a user's name is not.
            (
                "listen = '0.0.0.0:9464'\npublic = true\ntoken_env = 'CARGO_PKG_NAME'",
                Some("at least 16 visible"),
            ),
            ("listen = '0.0.0.0:9464'\npublic = true\npage = true\ntoken_env = 'CARGO_MANIFEST_DIR'", None),
        ] {
            let settings: MonitorSettings = toml::from_str(text).expect("settings");
            let found = settings.check().map_err(|error| error.to_string());
            match (found, expected) {
                (Ok(access), None) => assert_eq!(access.is_none(), text.is_empty(), "{text}"),
                (Err(problem), Some(expected)) => assert!(problem.contains(expected), "{text}: {problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
