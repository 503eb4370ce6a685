//! Errors of the connection to a server, with advice.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use async_nats::{ConnectError, ConnectErrorKind};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Server;
use crate::identity::{Keys, PublicIdentity};

/// Failure to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// A certificate or key file cannot be used.
    #[error("{what} {path} cannot be used: {why}")]
    File {
        /// Purpose of the file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The address is invalid.
    #[error("{url:?} is not the address of a server: use tls://HOST:PORT")]
    Address {
        /// The address.
        url: String,
    },
    /// This end refuses the server's certificate, or the server refuses this end's certificate.
    #[error("the server {url} is not recognised: {why}; {}", advice(ca.as_deref()))]
    Certificate {
        /// The address.
        url: String,
        /// The reason.
        why: String,
        /// File of the authority's certificates.
        ca: Option<PathBuf>,
    },
    /// The server does not know the identity.
    #[error(
        "the server {url} does not authorise {identity}: have its operator add this identity to the server's roster"
    )]
    NotAuthorised {
        /// The address.
        url: String,
        /// This end's identity.
        identity: PublicIdentity,
    },
    /// The server does not accept packets of the size that links send.
    #[error(
        "the server {url} accepts messages of at most {limit} bytes (`max_payload`), but this program sends {needed}: have its \
         operator set `max_payload: 256KB` or more"
    )]
    SmallPayload {
        /// The address.
        url: String,
        /// The server's limit.
        limit: usize,
        /// Size of the largest packet.
        needed: usize,
    },
    /// The server cannot be reached.
    #[error(
        "the server {url} cannot be reached: {why}; is it running, and does a firewall let this machine dial out to it?"
    )]
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The connection has ended.
    #[error("the connection to the server has ended")]
    Ended,
    /// The system provides no thread for the connection.
    #[error("cannot start a thread for the connection: {0}")]
    Thread(io::Error),
}

fn advice(ca: Option<&Path>) -> String {
    match ca {
        Some(ca) => {
            format!("compare {} with the certificate that the server's operator published", ca.display())
        }
        None => "name the file of its authority's certificate".into(),
    }
}

impl NatsError {
    pub(super) fn from_connect_error(server: &Server, keys: &Keys, error: &ConnectError) -> Self {
        let url = server.url.clone();
        if let Some(why) = tls_error(error) {
            return Self::Certificate { url, why, ca: server.ca.clone() };
        }
        match error.kind() {
            ConnectErrorKind::ServerParse => Self::Address { url },
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                Self::NotAuthorised { url, identity: keys.public() }
            }
            ConnectErrorKind::Tls => Self::Certificate { url, why: reason(error), ca: server.ca.clone() },
            _ => Self::Unreachable { url, why: reason(error) },
        }
    }
}

/// Returns the innermost reason.
fn reason(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => reason(source),
        None => error.to_string(),
    }
}

/// Returns the TLS error at any depth of the chain of errors.
fn tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found.to_string());
    }
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let inner = inner.and_then(|inner| tls_error(inner));
    inner.or_else(|| error.source().and_then(tls_error))
}

/// Refuses invalid files by name, before this end sends anything.
pub(super) fn check_files(server: &Server) -> Result<(), NatsError> {
    let refused = |what, path: &Path, why: String| NatsError::File { what, path: path.to_owned(), why };
    let certificates = |what, path: &Path| {
        let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match found {
            Ok(found) if found.is_empty() => {
                Err(refused(what, path, "it contains no certificate (PEM)".into()))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(refused(what, path, error.to_string())),
        }
    };
    if let Some(ca) = &server.ca {
        certificates("the authority's certificate", ca)?;
    }
    if let Some((certificate, key)) = &server.certificate {
        certificates("this party's certificate", certificate)?;
        let read = PrivateKeyDer::from_pem_file(key);
        read.map_err(|error| refused("this party's certificate key", key, error.to_string()))?;
    }
    let known = ["tls://", "nats://"].iter().any(|scheme| server.url.starts_with(scheme));
    if known { Ok(()) } else { Err(NatsError::Address { url: server.url.clone() }) }
}
