//! A real NATS server for a test, with certificates made for it.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fet_net::Keys;
use fet_net::hub::{Member, Relay, Roster, Tls};
use fet_net::nats::{Hub, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::Pair;

/// Returns the program, or `None` after a note that the test is left out.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::var_os("FET_NATS").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
    let runs = Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if runs.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    fet_testing::left_out(
        "nats",
        &format!("{} does not run: name a nats-server in FET_NATS", program.display()),
    );
    None
}

/// Process of a server; the process ends with this value.
pub(crate) struct Running {
    program: PathBuf,
    pub(crate) folder: tempfile::TempDir,
    child: Option<Child>,
    port: u16,
    websocket: u16,
    tls: bool,
}

/// Writes an authority, and a certificate and key that it made for this machine, to a folder.
pub(crate) fn certificates(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let write = |kind: &str, text: String| {
        fet_io::write(&folder.join(format!("{name}-{kind}.pem")), text.as_bytes()).unwrap();
    };
    write("ca", authority.pem());
    write("certificate", certificate.pem());
    write("key", key.serialize_pem());
}

impl Running {
    /// Starts a server for a pair of parties and others, on a free port.
    pub(crate) fn start(
        program: PathBuf,
        pair: &Pair,
        others: &[(&str, &Keys)],
        tls: bool,
        verify: bool,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates(folder.path(), "server");
        let free = [0; 2].map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [port, websocket] = free.map(|listens| listens.local_addr().unwrap().port());
        let path = |kind: &str| folder.path().join(format!("server-{kind}.pem"));
        let member =
            |name: &str, keys: &Keys| Member { name: name.parse().unwrap(), identity: keys.public() };
        let parties = std::iter::once(member("shop", &pair.shop.keys));
        let roster = Roster {
            run: pair.route.run.clone(),
            primary: member("bank", &pair.bank.keys),
            parties: parties.chain(others.iter().map(|(name, keys)| member(name, keys))).collect(),
        };
        let relay = Relay {
            host: "127.0.0.1".into(),
            port,
            websocket: Some(websocket),
            tls: tls.then(|| Tls {
                certificate: path("certificate"),
                key: path("key"),
                verify: verify.then(|| path("ca")),
            }),
            cluster: None,
        };
        let text = relay.configuration(&[roster]).unwrap();
        fet_io::write(&folder.path().join("hub.conf"), text.as_bytes()).unwrap();
        let mut running = Self { program, folder, child: None, port, websocket, tls };
        running.resume();
        running
    }

    /// Starts the process and waits until it listens.
    pub(crate) fn resume(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.path().join("hub.conf")).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let began = Instant::now();
        let listens = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        while !listens(self.port) || !listens(self.websocket) {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Restarts the server with another limit on the bytes of a message.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.stop();
        let path = self.folder.path().join("hub.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| match line.starts_with("max_payload: ") {
            true => format!("max_payload: {bytes}\n"),
            false => format!("{line}\n"),
        });
        fet_io::write(&path, lines.collect::<String>().as_bytes()).unwrap();
        self.resume();
    }

    /// Kills the process.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn log(&self) -> String {
        let mut text = String::new();
        let file = std::fs::File::open(self.folder.path().join("log"));
        file.and_then(|mut file| file.read_to_string(&mut text)).unwrap();
        text
    }

    /// Returns the address of the server, with the authority's certificate from this folder.
    pub(crate) fn server(&self) -> Server {
        let scheme = if self.tls { "tls" } else { "nats" };
        Server {
            url: format!("{scheme}://localhost:{}", self.port),
            ca: self.tls.then(|| self.folder.path().join("server-ca.pem")),
            certificate: None,
        }
    }

    /// Returns the address of the server's WebSocket.
    pub(crate) fn socket(&self) -> Server {
        let scheme = if self.tls { "wss" } else { "ws" };
        Server { url: format!("{scheme}://localhost:{}", self.websocket), ..self.server() }
    }

    pub(crate) fn hub(&self, keys: &Arc<Keys>) -> Hub {
        Hub::connect(&self.server(), keys, Duration::from_secs(5)).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
