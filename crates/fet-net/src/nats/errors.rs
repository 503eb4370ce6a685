//! Errors of the connection to a server, with advice.

use std::io;
use std::path::{Path, PathBuf};

use crate::identity::PublicIdentity;

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
    #[error("{url:?} is not the address of a server: use tls://HOST:PORT or wss://HOST:PORT")]
    Address {
        /// The address.
        url: String,
    },
    /// The addresses do not belong together, or contradict the authority's certificate.
    #[error(
        "{url:?} mixes kinds of connections: use only tls:// or only wss:// addresses, and ws:// only without the file of an \
         authority's certificate"
    )]
    Mixed {
        /// The addresses.
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
