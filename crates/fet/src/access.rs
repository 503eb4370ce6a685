//! Access to the program's HTTP services: tokens and requests of web pages; headers that the client of `fet serve` shares.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use fet_io::input::input;

/// Header of an answer with its warnings, a list of texts in JSON.
pub(crate) const WARNINGS: &str = "fet-warnings";
/// Header of an answer with the digest of the model, its calibration and its tables.
pub(crate) const MODEL: &str = "fet-model";
/// Shortest token, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// Reads a token, one line of a file that other users cannot read.
pub(crate) fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = fet_io::read_to_string(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            return Err(input(format!(
                "{}: other users can read the token; `chmod 600` the file",
                path.display()
            )));
        }
    }
    check_token(text.trim(), path.display())
}

/// Reads a token from an environment variable.
pub(crate) fn token_of_environment(name: &str) -> anyhow::Result<String> {
    match std::env::var(name) {
        Ok(text) => check_token(text.trim(), name),
        Err(_) => Err(input(format!("the environment variable {name} must hold the token"))),
    }
}

/// Returns the token if it is long enough for its `place`.
fn check_token(token: &str, place: impl Display) -> anyhow::Result<String> {
    let fits = token.len() >= SHORTEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(input(format!(
            "{place}: a token must have at least {SHORTEST_TOKEN} visible ASCII characters and no spaces, as `openssl rand -hex 16` \
             prints"
        )));
    }
    Ok(token.to_string())
}

/// Returns the token of the header `Authorization: Bearer TOKEN`; an empty text without one.
pub(crate) fn bearer(headers: &HeaderMap) -> &str {
    authorization(headers, "bearer")
}

/// Returns the credentials of the header `Authorization` if it has this scheme.
pub(crate) fn authorization<'a>(headers: &'a HeaderMap, scheme: &str) -> &'a str {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (name, given) = given.split_once(' ').unwrap_or_default();
    if name.eq_ignore_ascii_case(scheme) { given } else { "" }
}

/// Returns true if a given text is the token.
pub(crate) fn is_token(given: &str, token: &str) -> bool {
    // A comparison of digests takes a time that tells nothing about the token.
    fet_io::sha256(given.as_bytes()) == fet_io::sha256(token.as_bytes())
}

/// Returns false for a request that a page of another site may have sent in a browser on this machine: its `Host` is not a name of
/// this machine, or it has an `Origin`.
pub(crate) fn is_local_request(headers: &HeaderMap, listening: IpAddr) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
    let address: Option<IpAddr> = name.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let is_own = name.is_empty()
        || name.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.is_loopback() || address == listening);
    is_own && !headers.contains_key(ORIGIN)
}
