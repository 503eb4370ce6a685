//! Tests `fet serve --nats`: each message has the reply that HTTP gives, also at a stop and for invalid headers.
#![cfg(unix)]

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, HeaderMap, RequestErrorKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::elsewhere::{PATIENCE, free, nats};
use crate::serving::{JSON, Server, fet, finished, rows, set_mode};

const SUBJECT: &str = "shops.predict";
const BEARER: (&str, &str) = ("Authorization", "Bearer a-token-of-16-signs");
/// User of the NATS server; the URL of the service has the password in another form.
const USER: &str = "ann";
const PASSWORD: &str = "s3cr3t@word";

/// NATS server that requires a user, next to a finished run with a token.
struct Hub {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Hub {
    /// Returns `None` without the program of a server.
    fn start() -> Option<Self> {
        let program = nats()?;
        let (folder, port) = (finished(), free());
        let at = folder.path();
        fs::write(at.join("token"), "a-token-of-16-signs\n").expect("writable");
        set_mode(&at.join("token"), 0o600);
        let user = format!("authorization {{ user: {USER}, password: \"{PASSWORD}\" }}");
        fs::write(at.join("nats.conf"), format!("port: {port}\nmax_payload: 64KB\n{user}\n"))
            .expect("writable");
        let process = run(&program, at, port);
        Some(Self { program, folder, port, process })
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL with `user` and a password.
    fn url(&self, user: &str) -> String {
        format!("nats://{user}@127.0.0.1:{}", self.port)
    }

    fn serve(&self) -> Server {
        let url = self.url("ann:s3cr3t%40word");
        Server::start(self.at(), &["--nats", &url, "--subject", SUBJECT, "--token-file", "token"])
    }

    fn client(&self) -> (Runtime, Client) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let options = ConnectOptions::with_user_and_password(USER.into(), PASSWORD.into());
        let client = runtime.block_on(options.connect(format!("127.0.0.1:{}", self.port)));
        (runtime, client.expect("connected"))
    }

    fn kill(&mut self) {
        self.process.kill().expect("it can be ended");
        drop(self.process.wait());
    }

    fn restart(&mut self) {
        self.process = run(&self.program, self.folder.path(), self.port);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        drop(self.process.wait());
    }
}

fn run(program: &Path, at: &Path, port: u16) -> Child {
    let mut command = Command::new(program);
    let command = command.args(["-a", "127.0.0.1", "-c"]).arg(at.join("nats.conf"));
    let process = command.arg("-l").arg(at.join("nats.log")).spawn().expect("it starts");
    until("the NATS server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

fn until(event: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{event}: this does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn body(rows: &[Value]) -> Vec<u8> {
    json!({ "rows": rows }).to_string().into_bytes()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    pairs.iter().for_each(|(name, value)| map.append(*name, *value));
    map
}

/// Returns status, media type and body of the reply to a message.
fn ask((runtime, client): &(Runtime, Client), body: &[u8], pairs: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
    let asked = client.request_with_headers(SUBJECT, headers(pairs), body.to_vec().into());
    let reply = runtime.block_on(asked).expect("a reply");
    let header = |name: &str| {
        let value = reply.headers.as_ref().and_then(|headers| headers.get(name));
        value.map(ToString::to_string).unwrap_or_default()
    };
    (header("Status").parse().expect("a status"), header("content-type"), reply.payload.to_vec())
}

#[test]
fn answers_over_nats_are_those_over_http() {
    let Some(hub) = Hub::start() else { return };
    let at = hub.at();
    let (server, client) = (hub.serve(), hub.client());
    let rows = rows(at);
    for count in [1, 7] {
        let http = server.post(&body(&rows[..count]), &[JSON, BEARER]);
        assert_eq!(http.0, 200, "{}", String::from_utf8_lossy(&http.2));
        assert_eq!(ask(&client, &body(&rows[..count]), &[JSON, BEARER]), http);
    }
    let csv = fs::read(at.join("new.csv")).expect("rows");
    let as_csv = ("Content-Type", "text/csv");
    assert_eq!(ask(&client, &csv, &[as_csv, BEARER]), server.post(&csv, &[as_csv, BEARER]));
    let good = body(&rows[..1]);
    for (sent, headers, status, reason) in [
        (&good[..], &[JSON][..], 401, "token"),
        (&good, &[BEARER], 415, "it is missing"),
        (b"{\"rows\": [{}]}", &[JSON, BEARER], 400, "row"),
        (&good, &[JSON, BEARER, ("Request-Timeout", "soon")], 400, "Request-Timeout"),
        (&good, &[JSON, BEARER, as_csv], 400, "2 headers `Content-Type`"),
        (&good, &[JSON, BEARER, ("content-type", "text/csv")], 400, "2 headers `Content-Type`"),
        (&good, &[JSON, BEARER, BEARER], 400, "2 headers `Authorization`"),
        (&good, &[BEARER, ("Content-Type", "a\u{1}b")], 400, r#"header \"Content-Type\""#),
        (&good, &[JSON, BEARER, ("a(b)", "c")], 400, r#"header \"a(b)\""#),
        (&good, &[JSON, BEARER, ("", "c")], 400, r#"header \"\""#),
    ] {
        let (found, form, refusal) = ask(&client, sent, headers);
        let refusal = String::from_utf8_lossy(&refusal).into_owned();
        assert_eq!((found, form.as_str()), (status, "application/json"), "{refusal}");
        assert!(refusal.starts_with("{\"error\":") && refusal.contains(reason), "{refusal}");
    }
    // 400 rows in CSV fit into a message, and their answer in JSON does not.
    let lines: Vec<&str> = std::str::from_utf8(&csv).expect("text").lines().collect();
    let many: String = std::iter::once(lines[0])
        .chain((0..400).map(|row| lines[1 + row % 40]))
        .collect::<Vec<_>>()
        .join("\n");
    let (status, _, refusal) =
        ask(&client, many.as_bytes(), &[as_csv, BEARER, ("Accept", "application/json")]);
    let refusal = String::from_utf8_lossy(&refusal).into_owned();
    assert!(status == 413 && refusal.contains("send fewer rows"), "{status} {refusal}");
    assert_eq!(server.stop(), Some(0));
}

/// Clients ask again and again until a reply names the stop, or until the server finds no service for the subject.
#[test]
fn a_stop_answers_every_message() {
    let Some(hub) = Hub::start() else { return };
    let (server, (runtime, client)) = (hub.serve(), hub.client());
    let sent = body(&rows(hub.at()));
    let clients: Vec<_> = (0..48)
        .map(|_| {
            let (client, sent) = (client.clone(), sent.clone());
            runtime.spawn(async move {
                let mut answers = 0;
                loop {
                    let map = headers(&[JSON, BEARER]);
                    match client.request_with_headers(SUBJECT, map, sent.clone().into()).await {
                        Ok(reply) => {
                            let status = reply.headers.and_then(|headers| headers.get("Status").cloned());
                            match status.expect("a status").as_str() {
                                "200" => answers += 1,
                                "503" => break (answers, Some(reply.payload)),
                                other => panic!("status {other}"),
                            }
                        }
                        Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                            break (answers, None);
                        }
                        Err(error) => panic!("a message without a reply: {error}"),
                    }
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.stop(), Some(0));
    let ends: Vec<_> =
        clients.into_iter().map(|client| runtime.block_on(client).expect("only replies")).collect();
    assert!(ends.iter().any(|(answers, _)| *answers > 0), "{ends:?}");
    let mut reasons = ends.iter().filter_map(|(_, reason)| reason.as_ref()).peekable();
    assert!(reasons.peek().is_some(), "{ends:?}");
    for reason in reasons {
        assert_eq!(String::from_utf8_lossy(reason), r#"{"error":"the service is stopping"}"#);
    }
}

#[test]
fn names_a_lost_nats_server_once_and_hides_its_password() {
    let Some(mut hub) = Hub::start() else { return };
    let server = hub.serve();
    let ready = || {
        let (status, _, body) = server.get("/readyz");
        (status, serde_json::from_slice::<Value>(&body).expect("JSON"))
    };
    let state = |nats: &str| (200, json!({ "ready": true, "nats": nats }));
    assert_eq!(ready(), state("connected"));
    hub.kill();
    until("the service notices the loss", || ready() == state("disconnected"));
    let sent = body(&rows(hub.at())[..1]);
    assert_eq!(server.post(&sent, &[JSON, BEARER]).0, 200);
    hub.restart();
    until("the service connects again", || ready() == state("connected"));
    let client = hub.client();
    until("the service subscribes again", || {
        let asked = client.1.request_with_headers(SUBJECT, headers(&[JSON, BEARER]), sent.clone().into());
        client.0.block_on(asked).is_ok()
    });
    let log = server.log.lock().expect("no panic").clone();
    let place = format!("nats://127.0.0.1:{}", hub.port);
    for event in ["subscribed", "disconnected", "connected"] {
        let event = format!("\"event\":\"{event}\"");
        let lines: Vec<_> = log.iter().filter(|line| line.contains(&event)).collect();
        assert!(lines.len() == 1 && lines[0].contains(&place), "{event}: {log:?}");
    }
    assert!(!log.iter().any(|line| line.contains("s3cr3t")), "{log:?}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn refuses_invalid_arguments_of_nats_without_secrets() {
    let Some(hub) = Hub::start() else { return };
    fs::write(hub.at().join("notes.pem"), "my notes\n").expect("writable");
    let good = hub.url("ann:s3cr3t%40word");
    let plain = good.replace("nats://", "tls://");
    let port = hub.port;
    let server = format!("--nats nats://127.0.0.1:{port}: ");
    for (more, code, part) in [
        (
            &["--nats", "http://ann:s3cr3t@127.0.0.1:1"][..],
            2,
            "--nats http://127.0.0.1:1: must be `nats://HOST",
        ),
        (
            &["--nats", "nats://ann:1/s3cr3t@127.0.0.1:1"],
            2,
            "--nats nats://127.0.0.1:1: must be `nats://HOST",
        ),
        (&["--nats", "nats://ann:s3cr3t@127.0.0.1:1"], 75, "--nats nats://127.0.0.1:1: the server cannot be"),
        (&["--nats", &hub.url("ann:s3cr3tary")], 2, &format!("{server}the server does not authorise")),
        (&["--nats", &hub.url("s3cr3tary")], 2, &format!("{server}the server does not authorise")),
        (&["--nats", &plain], 2, &format!("--nats tls://127.0.0.1:{port}: the server answers without TLS")),
        (&["--nats", &good, "--nats-ca", "notes.pem"], 2, "--nats-ca notes.pem: it contains no certificate"),
        (&["--nats", &good, "--nats-credentials", "none.creds"], 2, &format!("{server}names a user")),
        (
            &["--nats", "nats://127.0.0.1:1", "--nats-credentials", "none.creds"],
            2,
            "--nats-credentials none.creds",
        ),
        (&["--nats", &good, "--subject", "shops.>"], 2, "--subject \"shops.>\": must be"),
        (&["--nats", &good, "--subject", "shops predict"], 2, "--subject"),
        (&["--nats", &good, "--subject", "shops..predict"], 2, "--subject"),
        (&["--nats", &good, "--subject", ".shops"], 2, "--subject"),
        (&["--nats", &good, "--subject", "shops."], 2, "--subject"),
        (&["--nats", &good, "--subject", "$SYS.shops"], 2, "--subject \"$SYS.shops\": must be"),
        (&["--nats", &good, "--subject", "_INBOX.shops"], 2, "--subject"),
        (&["--subject", "shops"], 2, "--nats"),
    ] {
        let refused = fet(hub.at(), &[&["serve", "run", "--listen", "127.0.0.1:0"][..], more].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(part) && !said.contains("s3cr3t"), "{more:?}: {said}");
    }
}
