//! Server that connects the parties: its process, its certificates, and its stop and restart in a case.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::process::Process;

/// Maximum time until the server listens.
const START: Duration = Duration::from_secs(20);

/// Server process that ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct NatsServer {
    program: PathBuf,
    folder: PathBuf,
    process: Option<Process>,
    pub(crate) port: u16,
}

impl NatsServer {
    /// Starts the server with the configuration `hub.conf` in `folder`.
    pub(crate) fn start(program: &Path, folder: &Path, port: u16) -> anyhow::Result<Self> {
        let mut server = Self { program: program.into(), folder: folder.into(), process: None, port };
        server.resume()?;
        Ok(server)
    }

    /// Returns a value without a running server.
    pub(crate) fn none(port: u16) -> Self {
        Self { program: PathBuf::new(), folder: PathBuf::new(), process: None, port }
    }

    /// Starts the server again, and waits until it listens.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        let mut process = Process::start(&self.program, &["-c", "hub.conf"], &self.folder, "hub")?;
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let gone = process.ended()?.is_some();
            ensure!(!gone && began.elapsed() < START, "nats-server does not listen: {}", process.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process = Some(process);
        Ok(())
    }

    /// Kills the server.
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }
}

/// Returns a free port.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Creates a certificate authority, and a certificate and key for this machine: `ca.pem`, `certificate.pem`
/// and `key.pem`.
pub(crate) fn certificates(folder: &Path) -> anyhow::Result<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()])?;
    let certificate = params.signed_by(&key, &authority)?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("ca.pem", authority.pem())?;
    write("certificate.pem", certificate.pem())?;
    write("key.pem", key.serialize_pem())
}
