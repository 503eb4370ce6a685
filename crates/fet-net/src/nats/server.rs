//! Address of the server, and the reasons why a connection to it fails.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use async_nats::{ConnectError, ConnectErrorKind, ServerAddr};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::errors::NatsError;
use crate::identity::Keys;

/// Beginnings of the addresses of servers.
const SCHEMES: [&str; 4] = ["tls://", "nats://", "wss://", "ws://"];

/// Address of the server, and certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `tls://HOST:PORT`, or `nats://HOST:PORT`, which is encrypted only if the server requires it. `wss://HOST:PORT`
    /// is a WebSocket with TLS, which passes firewalls that allow only HTTPS, and `ws://HOST:PORT` one without TLS.
    /// Several addresses, with commas between them, are servers of one cluster: any of them will do. They are either
    /// all WebSockets, or none is.
    pub url: String,
    /// Certificates (PEM) of the authority that vouches for the server; without them, those of the system.
    pub ca: Option<PathBuf>,
    /// This end's certificate and its key (PEM), if the server requires one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Server {
    /// Returns the addresses of the server, or of the servers of its cluster.
    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>, NatsError> {
        let bad = || NatsError::Address { url: self.url.clone() };
        let address = |text: &str| match SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            true => text.parse().map_err(|_| bad()),
            false => Err(bad()),
        };
        let found: Vec<ServerAddr> =
            self.url.split(',').map(|text| address(text.trim())).collect::<Result<_, _>>()?;
        let sockets = found.iter().filter(|address| address.is_websocket()).count();
        // The client encrypts a `ws://` connection in no case.
        let plain = self.ca.is_some() && found.iter().any(|address| address.scheme() == "ws");
        match plain || (sockets > 0 && sockets < found.len()) {
            true => Err(NatsError::Mixed { url: self.url.clone() }),
            false => Ok(found),
        }
    }

    /// Returns the ports of the addresses that are WebSockets.
    ///
    /// # Errors
    /// If an address is invalid.
    pub fn websocket_ports(&self) -> Result<BTreeSet<u16>, NatsError> {
        let sockets = self.addresses()?.into_iter().filter(ServerAddr::is_websocket);
        Ok(sockets.map(|address| address.port()).collect())
    }

    /// Returns true if this end must encrypt the connection.
    pub(super) fn requires_tls(&self) -> bool {
        let encrypted = |text: &str| ["tls://", "wss://"].iter().any(|scheme| text.starts_with(scheme));
        self.ca.is_some() || self.url.split(',').any(|text| encrypted(text.trim()))
    }

    /// Returns the error for a failed attempt to connect as the identity of `keys`.
    pub(super) fn refused(&self, keys: &Keys, error: &ConnectError) -> NatsError {
        let url = self.url.clone();
        if let Some(found) = tls_error(error) {
            return NatsError::Certificate { url, why: found.to_string(), ca: self.ca.clone() };
        }
        match error.kind() {
            ConnectErrorKind::ServerParse => NatsError::Address { url },
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                NatsError::NotAuthorised { url, identity: keys.public() }
            }
            ConnectErrorKind::Tls => {
                NatsError::Certificate { url, why: innermost_reason(error), ca: self.ca.clone() }
            }
            _ => NatsError::Unreachable { url, why: innermost_reason(error) },
        }
    }

    /// Refuses invalid files by name, before this end sends anything.
    pub(super) fn check_files(&self) -> Result<(), NatsError> {
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
        if let Some(ca) = &self.ca {
            certificates("the authority's certificate", ca)?;
        }
        if let Some((certificate, key)) = &self.certificate {
            certificates("this party's certificate", certificate)?;
            let read = PrivateKeyDer::from_pem_file(key);
            read.map_err(|error| refused("this party's certificate key", key, error.to_string()))?;
        }
        self.addresses().map(drop)
    }
}

/// Returns the innermost reason of an error.
pub fn innermost_reason(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => innermost_reason(source),
        None => error.to_string(),
    }
}

/// Returns the TLS error at any depth of the chain of errors.
pub fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found);
    }
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let inner = inner.and_then(|inner| tls_error(inner));
    inner.or_else(|| error.source().and_then(tls_error))
}
