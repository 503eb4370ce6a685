//! Connection to the NATS server: its address, user and certificates, and the reasons why it fails.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use fet_io::input::input;
use fet_net::nats::{innermost_reason, tls_error};
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, RootCertStore};

use super::NatsArguments;
use super::state::NatsState;
use crate::parties::Unreached;

/// Time for the first connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Form of `--nats`.
const FORM: &str = "must be `nats://HOST:PORT` or `tls://HOST:PORT`. Write the special characters of a user or a password \
                    as in `%40` for `@`";

/// Address of the server. Its text omits the user, the password and the token.
#[derive(Clone)]
pub(super) struct Address {
    server: ServerAddr,
    user: Option<User>,
}

/// Part of the address before `@`.
#[derive(Clone)]
enum User {
    Token(String),
    Password { user: String, password: String },
}

impl Address {
    /// Reads the value of `--nats`.
    pub(super) fn new(text: &str) -> anyhow::Result<Self> {
        let refuse = || input(format!("--nats {}: {FORM}", without_user(text)));
        let server: ServerAddr = text.parse().map_err(|_| refuse())?;
        let mut url = server.into_inner();
        // A `/` in a password ends the host.
        let is_plain = matches!(url.path(), "" | "/") || url.scheme().starts_with("ws");
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        if !is_plain || !has_host || url.query().is_some() || url.fragment().is_some() {
            return Err(refuse());
        }
        let decode = |part: &str| match percent_decode_str(part).decode_utf8() {
            Ok(part) => Ok(part.into_owned()),
            Err(_) => Err(refuse()),
        };
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            (token, None) => Some(User::Token(decode(token)?)),
            (user, Some(password)) => {
                Some(User::Password { user: decode(user)?, password: decode(password)? })
            }
        };
        // Both calls fail only for addresses without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { server: ServerAddr::from_url(url).map_err(|_| refuse())?, user })
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.server.as_url_str().trim_end_matches('/'))
    }
}

/// Returns a text that may be an address, without the part that may be a user, a password or a token.
fn without_user(text: &str) -> String {
    match text.rsplit_once('@') {
        None => text.to_string(),
        Some((before, host)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://{host}"),
            None => host.to_string(),
        },
    }
}

/// Refuses arguments that contradict each other, and a file without certificates.
pub(super) fn check(arguments: &NatsArguments, address: &Address) -> anyhow::Result<()> {
    if address.user.is_some() && arguments.nats_credentials.is_some() {
        return Err(input(format!(
            "--nats {address}: names a user, as --nats-credentials does. Leave one of them out"
        )));
    }
    let Some(ca) = &arguments.nats_ca else { return Ok(()) };
    if address.server.scheme() == "ws" {
        return Err(input(format!("--nats {address}: --nats-ca needs a connection with TLS. Use `wss://`")));
    }
    check_authority(ca)
}

fn check_authority(file: &Path) -> anyhow::Result<()> {
    let refuse = |problem: &dyn Display| {
        let file = file.display();
        input(format!(
            "--nats-ca {file}: {problem}. Name the file with the certificate (PEM) of the server's authority"
        ))
    };
    let bytes = fet_io::read(file).map_err(|error| refuse(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| refuse(&format!("it is not in PEM ({error})")))?;
        roots.add(certificate).map_err(|error| refuse(&format!("a certificate is invalid ({error})")))?;
    }
    if roots.is_empty() { Err(refuse(&"it contains no certificate")) } else { Ok(()) }
}

/// Connects to the server, and notes the state of the connection.
pub(super) async fn connect(
    arguments: &NatsArguments,
    address: &Address,
    state: &Arc<NatsState>,
) -> anyhow::Result<Client> {
    // An error means that the program has already chosen another provider, which suffices.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let state = Arc::clone(state);
    let mut options =
        ConnectOptions::new().name("fet serve").connection_timeout(CONNECT).event_callback(move |event| {
            state.note(&event);
            std::future::ready(())
        });
    if let Some(ca) = &arguments.nats_ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    options = match address.user.clone() {
        Some(User::Token(token)) => options.token(token),
        Some(User::Password { user, password }) => options.user_and_password(user, password),
        None => options,
    };
    if let Some(file) = &arguments.nats_credentials {
        options = options.credentials_file(file).await.map_err(|error| {
            let file = file.display();
            input(format!("--nats-credentials {file}: {error}. Name the file (`.creds`) of a user"))
        })?;
    }
    options.connect(address.server.clone()).await.map_err(|error| failure(address, &error))
}

/// Returns the error for a failed attempt to connect.
fn failure(address: &Address, error: &ConnectError) -> anyhow::Error {
    if let Some(error) = tls_error(error) {
        return input(format!("--nats {address}: {}", tls_problem(address, error)));
    }
    match error.kind() {
        ConnectErrorKind::ServerParse => input(format!("--nats {address}: {FORM}")),
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => input(format!(
            "--nats {address}: the server does not authorise the service. Name a user of the server: --nats-credentials \
                 FILE, or `nats://USER:PASSWORD@HOST:PORT`"
        )),
        ConnectErrorKind::Tls => {
            input(format!("--nats {address}: TLS cannot begin: {}", innermost_reason(error)))
        }
        kind => {
            let reason = match kind {
                ConnectErrorKind::TimedOut => format!("no answer within {} s", CONNECT.as_secs()),
                _ => innermost_reason(error),
            };
            let unreached = format!(
                "--nats {address}: the server cannot be reached: {reason}; is it running, is it a NATS server, and does a \
                 firewall let this machine dial out to it?"
            );
            Unreached(unreached).into()
        }
    }
}

/// Describes a failure of TLS, with advice.
fn tls_problem(address: &Address, error: &rustls::Error) -> String {
    let host = address.server.host();
    match error {
        rustls::Error::InvalidMessage(_) => "the server answers without TLS. Use `nats://` without --nats-ca, or have its \
                                             operator turn on TLS"
            .into(),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the authority of the server's certificate is unknown. Name the file of the authority's certificate by \
             --nats-ca"
                .into()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("the server's certificate does not name {host}. Use a name of the certificate as the host"),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the server's certificate has expired. Have its operator renew it".into(),
        other => format!("TLS with the server fails: {other}. Compare --nats-ca with the server's settings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_and_hides_their_users() {
        let read = |text: &str| Address::new(text).map(|address| (address.to_string(), address.user));
        for (text, shown) in [
            ("nats://bank.example:4222", "nats://bank.example:4222"),
            ("bank.example", "nats://bank.example"),
            ("tls://secret@bank.example", "tls://bank.example"),
            ("nats://ann:sec%40ret@bank.example:1", "nats://bank.example:1"),
            ("nats://ann:sec@ret@bank.example:1", "nats://bank.example:1"),
            ("wss://ann:secret@bank.example/nats", "wss://bank.example/nats"),
        ] {
            let (address, user) = read(text).expect("valid");
            assert_eq!(address, shown, "{text}");
            match user {
                None => assert!(!text.contains('@'), "{text}"),
                Some(User::Token(token)) => assert_eq!(token, "secret"),
                Some(User::Password { user, password }) => {
                    assert_eq!((user.as_str(), password.replace('@', "")), ("ann", "secret".into()));
                }
            }
        }
        for (text, shown) in [
            ("http://ann:secret@bank.example", "http://bank.example"),
            ("nats://ann:sec/ret@bank.example", "nats://bank.example"),
            ("nats://ann:1/secret@bank.example", "nats://bank.example"),
            ("nats://ann:1?secret@bank.example", "nats://bank.example"),
            ("ann:secret@bank.example:port", "bank.example:port"),
            ("nats://%ff@bank.example", "nats://bank.example"),
            ("nats://ann:secret@", "nats://"),
        ] {
            let refusal = Address::new(text).err().expect("invalid").to_string();
            assert_eq!(refusal, format!("--nats {shown}: {FORM}"), "{text}");
        }
    }
}
