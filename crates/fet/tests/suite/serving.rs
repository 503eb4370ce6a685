//! Tests `fet serve`: its answers are those of `fet predict`, and it refuses invalid requests with a reason.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use serde_json::{Value, json};
use tempfile::TempDir;

const EXPERIMENT: &str = r#"
name = "shops"
LINKER
method = { kind = "fet-pool", hidden = [16] }
train = { epochs = 2 }

[data]
kind = "linked"
task = "regression"
label = "takings"
primary = { name = "bank", file = "shops.csv", keys = ["east", "north"] }
secondaries = [{ name = "streets", file = "streets.csv", keys = ["east", "north"] }]
"#;

pub(super) fn fet(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
    command.current_dir(folder).env_remove("FET_DATA").args(arguments).output().expect("it runs")
}

/// Returns a folder with a finished run in `run`, and new rows in `new.csv`.
pub(super) fn finished() -> TempDir {
    finished_with("linker = { kind = \"nearest\", neighbours = 3 }")
}

/// Returns a folder with a finished run that linked with these settings.
fn finished_with(linker: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rng = stream(5, 0, Purpose::Linking, 0);
    let (mut shops, mut streets) =
        ("east,north,kind,takings\n".to_string(), "east,north,lines\n".to_string());
    let mut new = "east,north,kind\n".to_string();
    for row in 0..340 {
        let (east, north): (f64, f64) = (rng.random(), rng.random());
        let (lines, kind) = (rng.random_range(0..6), ["cafe", "bar, café", "shop"][rng.random_range(0..3)]);
        streets += &format!("{east:.4},{north:.4},{lines}\n");
        let own = format!("{east:.3},{north:.3},\"{kind}\"");
        match row < 300 {
            true => shops += &format!("{own},{}\n", f64::from(lines) + rng.random::<f64>()),
            false => new += &format!("{own}\n"),
        }
    }
    for (name, text) in [
        ("shops.csv", &shops),
        ("streets.csv", &streets),
        ("new.csv", &new),
        ("shops.toml", &EXPERIMENT.replace("LINKER", linker)),
    ] {
        fs::write(folder.path().join(name), text).expect("writable");
    }
    let run = fet(folder.path(), &["run", "shops.toml", "--out", "run"]);
    assert!(run.status.success(), "{run:?}");
    folder
}

pub(super) struct Server {
    pub(super) process: Child,
    url: String,
    /// Lines of the log.
    pub(super) log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub(super) fn start(folder: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
        command.current_dir(folder).env_remove("FET_DATA").args([
            "serve",
            "run",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "json",
        ]);
        let mut process = command.args(more).stdout(Stdio::piped()).spawn().expect("it starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        let keep = move |line: &String| kept.lock().expect("no panic").push(line.clone());
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map(|line| line.expect("text")).inspect(keep);
        let mut told = |event: &str| -> String {
            for line in lines.by_ref() {
                let line: Value = serde_json::from_str(&line).expect("JSON");
                if line["event"] == event {
                    return line["message"].as_str().expect("a text").to_string();
                }
            }
            panic!("the server ended before it was {event}");
        };
        let url = told("listening").rsplit(' ').next().expect("an address").to_string();
        told("ready");
        // Nothing stops because its lines are not read.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url, log }
    }

    /// Sends a request, and returns the status, the media type and the body of the answer.
    pub(super) fn post(&self, body: &[u8], headers: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.post(format!("{}/v1/predict", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answered(request.send(body))
    }

    pub(super) fn get(&self, path: &str) -> (u16, String, Vec<u8>) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        answered(agent.get(format!("{}{path}", self.url)).call())
    }

    /// Stops the server as Ctrl-C does, and returns its exit code.
    pub(super) fn stop(mut self) -> Option<i32> {
        let stopped = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        assert!(stopped.expect("a signal").success());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server does not stop");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answered(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> (u16, String, Vec<u8>) {
    let mut response = response.expect("an answer");
    let media =
        response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    (response.status().as_u16(), media.to_string(), response.body_mut().read_to_vec().expect("a body"))
}

pub(super) const JSON: (&str, &str) = ("Content-Type", "application/json");
const CSV: (&str, &str) = ("Content-Type", "text/csv");

/// Returns the rows of `new.csv` as JSON.
pub(super) fn rows(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("new.csv")).expect("a file");
    let row = |line: &str| {
        let cells: Vec<&str> = line.splitn(3, ',').collect();
        let number = |at: usize| -> f64 { cells[at].parse().expect("a number") };
        json!({ "east": number(0), "north": number(1), "kind": cells[2].trim_matches('"') })
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn answers_are_those_of_predict() {
    let folder = finished();
    let place = folder.path();
    let predicted = fet(place, &["predict", "run", "--rows", "new.csv"]);
    assert!(predicted.status.success(), "{predicted:?}");
    let expected = String::from_utf8(predicted.stdout).expect("text");
    let new = fs::read(place.join("new.csv")).expect("a file");
    let server = Server::start(place, &[]);
    let (status, media, body) = server.post(&new, &[CSV]);
    assert_eq!((status, media.as_str()), (200, "text/csv; charset=utf-8"));
    assert_eq!(String::from_utf8_lossy(&body), expected);

    // JSON has the same numbers, together and row by row.
    let all = rows(place);
    let (status, _, body) = server.post(json!({ "rows": all }).to_string().as_bytes(), &[JSON]);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let together: Value = serde_json::from_slice(&body).expect("JSON");
    let lines: Vec<Vec<&str>> = expected.lines().map(|line| line.split(',').collect()).collect();
    let found = together["predictions"].as_array().expect("a list");
    assert_eq!(found.len(), lines.len() - 1);
    for (line, row) in lines[1..].iter().zip(found) {
        for (name, cell) in lines[0].iter().zip(line) {
            assert_eq!(row[*name].as_f64(), cell.parse().ok(), "{name} of {row}");
        }
    }
    for (place, row) in all.iter().enumerate().take(9) {
        let (status, _, body) = server.post(json!({ "rows": [row] }).to_string().as_bytes(), &[JSON]);
        let alone: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &alone["predictions"][0]["prediction"]), (200, &found[place]["prediction"]));
    }

    // A client chooses the form of the answer.
    let (status, media, body) = server.post(&new, &[CSV, ("Accept", "application/json")]);
    assert_eq!((status, media.as_str()), (200, "application/json"));
    assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON")["predictions"], together["predictions"]);
    let (status, _, body) = server.post(&new, &[CSV, ("Accept", "application/vnd.apache.arrow.file")]);
    assert_eq!(status, if cfg!(feature = "columnar") { 200 } else { 406 });
    if status == 200 {
        let table = fet_tables::read_bytes(&body, Path::new("answer.arrow"), &fet_tables::Options::default());
        assert_eq!(table.expect("a table").rows, found.len());
    }
    assert_eq!(server.stop(), Some(0));
}

/// Passes connections on to a server until a number of requests for predictions have passed, and then closes all of them.
fn cut_after(requests: usize, server: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let target = server.url.strip_prefix("http://").expect("an address").to_string();
    std::thread::spawn(move || {
        let mut passed = 0;
        for client in listener.incoming() {
            let (mut client, mut server) =
                (client.expect("a client"), TcpStream::connect(&target).expect("a server"));
            let (mut from, mut to) =
                (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = client.read(&mut bytes) {
                passed += bytes[..length].windows(16).filter(|text| text == b"POST /v1/predict").count();
                if passed > requests {
                    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
                    return;
                }
                if server.write_all(&bytes[..length]).is_err() {
                    break;
                }
            }
        }
    });
    url
}

#[test]
fn predict_is_a_client_that_continues() {
    let folder = finished();
    let place = folder.path();
    let expected = |out: &str, more: &[&str]| {
        let run = fet(place, &[&["predict", "run", "--rows", "new.csv", "--out", out], more].concat());
        assert!(run.status.success(), "{run:?}");
        fs::read(place.join(out)).expect("a file")
    };
    let server = Server::start(place, &["--most-rows", "7"]);
    let client = |url: &str, out: &str, more: &[&str]| {
        let output = fet(place, &[&["predict", url, "--rows", "new.csv", "--out", out], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = client(&server.url, "whole.csv", &["--id", "kind"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(fs::read(place.join("whole.csv")).expect("a file"), expected("own.csv", &["--id", "kind"]));
    let shop = fet(place, &["predict", &server.url, "--rows", "new.csv"]);
    assert_eq!(shop.stdout, expected("plain.csv", &[]));

    // The connection ends after 3 of 6 requests.
    let cut = cut_after(3, &server);
    let (code, told) = client(&cut, "parts.csv", &["--wait", "2"]);
    assert_eq!(code, Some(75), "{told}");
    assert!(told.contains("21 of 40 rows are predicted; give the same command again"), "{told}");
    assert!(!place.join("parts.csv").exists());
    let (code, told) = client(&server.url, "parts.csv", &[]);
    assert!(code == Some(0) && told.contains("continues after 3 finished requests"), "{told}");
    assert_eq!(fs::read(place.join("parts.csv")).expect("a file"), expected("plain.csv", &[]));
    assert!(!place.join("parts.csv.partial").exists());

    // Finished requests for other rows do not count.
    client(&cut_after(1, &server), "other.csv", &["--wait", "2"]);
    let new = fs::read_to_string(place.join("new.csv")).expect("a file");
    fs::write(place.join("new.csv"), new.replace("shop", "bar, café")).expect("writable");
    let (code, told) = client(&server.url, "other.csv", &[]);
    assert!(code == Some(0) && !told.contains("continues"), "{told}");
    assert_eq!(fs::read(place.join("other.csv")).expect("a file"), expected("plain.csv", &[]));

    // A file of somebody else stays as it is.
    fs::write(place.join("mine.csv.partial"), "my notes\n").expect("writable");
    let (code, told) = client(&server.url, "mine.csv", &[]);
    assert!(code == Some(2) && told.contains("has the name that the command needs"), "{told}");
    assert_eq!(fs::read_to_string(place.join("mine.csv.partial")).expect("a file"), "my notes\n");

    for (arguments, expected) in [
        (&["--labels", "kind"][..], "--labels needs the folder of the run"),
        (&["--id", "prediction"], "--id prediction: is the name of a column of the predictions"),
        (&["--device", "flex"], "--device needs the folder"),
    ] {
        let (code, told) = client(&server.url, "refused.csv", arguments);
        assert!(code == Some(2) && told.contains(expected), "{told}");
    }
    let (code, told) = client("http://127.0.0.1:9", "refused.csv", &["--wait", "1"]);
    assert!(code == Some(75) && told.contains("http://127.0.0.1:9"), "{told}");
    // A server that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let began = Instant::now();
    let (code, told) = client(&url, "refused.csv", &["--wait", "2"]);
    assert!(code == Some(75) && began.elapsed() < Duration::from_secs(20), "{told}");
}

/// Finished requests of another model, or lines that somebody changed, are not part of the output.
#[test]
fn a_client_never_mixes_models_or_rows() {
    let folder = finished();
    let place = folder.path();
    let client = |url: &str, out: &str, more: &[&str]| {
        let output = fet(place, &[&["predict", url, "--rows", "new.csv", "--out", out], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let server = Server::start(place, &["--most-rows", "10"]);
    let cut = || drop(client(&cut_after(2, &server), "out.csv", &["--wait", "2"]));
    let whole = |text: &str| {
        assert_eq!(client(&server.url, "whole.csv", &[]).0, Some(0));
        assert_eq!(text, fs::read_to_string(place.join("whole.csv")).expect("a file"));
    };
    let partial = place.join("out.csv.partial");
    for change in ["swapped", "shorter", "torn", "empty"] {
        cut();
        let text = fs::read_to_string(&partial).expect("finished requests");
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        assert_eq!(lines.len(), 3, "{text}");
        match change {
            "swapped" => lines.swap(1, 2),
            "shorter" => lines[2] = lines[2].replace("\\n9,", "\\n8,"),
            "torn" => {
                let end = lines[2].len() / 2;
                lines[2].truncate(end);
            }
            _ => lines[2] = r#"{"number":1,"csv":"","warnings":[]}"#.into(),
        }
        let mut bytes = lines.join("\n").into_bytes();
        // Half of a letter of two bytes.
        bytes.push(0xc3);
        fs::write(&partial, bytes).expect("writable");
        let (code, told) = client(&server.url, "out.csv", &[]);
        assert_eq!(code, Some(0), "{change}: {told}");
        whole(&fs::read_to_string(place.join("out.csv")).expect("a file"));
    }

    // Another table of the other party gives other predictions, so the command starts again.
    cut();
    fs::create_dir(place.join("later")).expect("a folder");
    let streets = fs::read_to_string(place.join("streets.csv")).expect("a table");
    let later: String = streets
        .lines()
        .skip(1)
        .enumerate()
        .filter_map(|(row, line)| Some(format!("{},{}\n", line.rsplit_once(',')?.0, row % 6)))
        .collect();
    fs::write(place.join("later/streets.csv"), format!("east,north,lines\n{later}")).expect("writable");
    let later = Server::start(place, &["--most-rows", "10", "--data", "later"]);
    let (code, told) = client(&later.url, "out.csv", &[]);
    assert!(code == Some(0) && !told.contains("continues after"), "{told}");
    let own = fet(place, &["predict", "run", "--rows", "new.csv", "--data", "later"]);
    assert_eq!(fs::read(place.join("out.csv")).expect("a file"), own.stdout);
}

#[test]
fn rows_that_depend_on_each_other_stay_in_one_request() {
    let folder = finished_with(
        "linker = { kind = \"posterior\", noise = 0.01, inner = { kind = \"nearest\", neighbours = 3 } }",
    );
    let place = folder.path();
    let server = Server::start(place, &[]);
    let described: Value = serde_json::from_slice(&server.get("/v1/model").2).expect("JSON");
    assert_eq!(described["independent_rows"], json!(false));
    let own = fet(place, &["predict", "run", "--rows", "new.csv"]);
    let by_service = fet(place, &["predict", &server.url, "--rows", "new.csv"]);
    assert_eq!((by_service.status.code(), &by_service.stdout), (Some(0), &own.stdout));
    assert!(
        String::from_utf8_lossy(&by_service.stderr).contains("depending on the other rows"),
        "{by_service:?}"
    );
    let small = Server::start(place, &["--most-rows", "39"]);
    let refused = fet(place, &["predict", &small.url, "--rows", "new.csv"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("has 40 rows"), "{told}");
}

#[test]
fn refuses_invalid_requests_with_a_reason() {
    let folder = finished();
    let server = Server::start(folder.path(), &["--most-rows", "20"]);
    let good = r#"{"rows": [{"east": 0.5, "north": 0.5, "kind": "shop"}]}"#;
    for (status, expected, body, headers) in [
        (400, "must be an object", "{", &[JSON][..]),
        (400, "at least one row", r#"{"rows": []}"#, &[JSON]),
        (400, "`kind`", r#"{"rows": [{"east": 1, "north": 2}]}"#, &[JSON]),
        (400, "east", r#"{"rows": [{"east": "far", "north": 2, "kind": "bar"}]}"#, &[JSON]),
        (400, "is empty below its header", "east,north,kind\n", &[CSV]),
        (415, "`Content-Type` must be", "", &[("Content-Type", "text/html")]),
        (415, "it is missing", good, &[]),
        (415, "must not be compressed", good, &[JSON, ("Content-Encoding", "gzip")]),
        (403, "needs a token", good, &[JSON, ("Origin", "http://evil.example")]),
        (403, "needs a token", good, &[JSON, ("Host", "evil.example")]),
        (200, "", good, &[JSON, ("Host", "localhost:1")]),
        (406, "`Accept` must name", good, &[JSON, ("Accept", "text/html")]),
        (400, "`Request-Timeout` must be", good, &[JSON, ("Request-Timeout", "soon")]),
        (504, "no answer within", good, &[JSON, ("Request-Timeout", "0.0000001")]),
    ] {
        let (found, media, answer) = server.post(body.as_bytes(), headers);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!((found, media.as_str()), (status, "application/json"), "{body}: {answer}");
        if status == 200 {
            continue;
        }
        let told: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(told["error"].as_str().is_some_and(|reason| reason.contains(expected)), "{body}: {answer}");
    }
    let many = json!({ "rows": rows(folder.path()) }).to_string();
    let (status, _, body) = server.post(many.as_bytes(), &[JSON]);
    assert_eq!(status, 413, "{}", String::from_utf8_lossy(&body));
    // The service still answers.
    assert_eq!(server.post(good.as_bytes(), &[JSON]).0, 200);

    let (status, _, metrics) = server.get("/metrics");
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert_eq!(status, 200);
    for line in [
        "fet_serve_requests_total{status=\"200\"} 2",
        "fet_serve_requests_total{status=\"400\"} 6",
        "fet_serve_requests_total{status=\"413\"} 1",
        "fet_serve_rows_total 2",
        "fet_serve_ready 1",
        "fet_serve_waiting 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    let described: Value = serde_json::from_slice(&server.get("/v1/model").2).expect("JSON");
    assert_eq!((&described["task"], &described["keys"]), (&json!("regression"), &json!(["east", "north"])));
    let openapi: Value = serde_json::from_slice(&server.get("/openapi.json").2).expect("JSON");
    for path in openapi["paths"].as_object().expect("paths").keys().filter(|path| *path != "/v1/predict") {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    assert_eq!(server.get("/else").0, 404);
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner");
}

/// Waiting requests end with a refusal when the server stops, also those that the server has not read yet.
#[test]
fn a_stop_answers_every_request() {
    let folder = finished();
    let server = Server::start(folder.path(), &["--most-rows", "40"]);
    let many = json!({ "rows": rows(folder.path()) }).to_string();
    let address = server.url.strip_prefix("http://").expect("an address").to_string();
    let request = format!(
        "POST /v1/predict HTTP/1.1\r\nHost: {address}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{many}",
        JSON.1,
        many.len()
    );
    let send = |_| {
        let mut connection = TcpStream::connect(&address).expect("the server listens");
        connection.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        connection.write_all(request.as_bytes()).expect("sent");
        connection
    };
    let sent: Vec<TcpStream> = (0..40).map(send).collect();
    assert_eq!(server.stop(), Some(0));
    let status = |mut connection: TcpStream| {
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        answer.split_whitespace().nth(1).unwrap_or_default().to_string()
    };
    let statuses: Vec<String> = sent.into_iter().map(status).collect();
    assert!(statuses.iter().all(|status| ["200", "503"].contains(&status.as_str())), "{statuses:?}");
    assert!(TcpStream::connect(&address).is_err(), "a server that stopped listens");
}

#[test]
fn tokens_and_addresses_are_checked() {
    let folder = finished();
    let place = folder.path();
    let refused = |arguments: &[&str], expected: &str| {
        let output = fet(place, &[&["serve", "run"], arguments].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(expected), "{arguments:?}: {told}");
    };
    refused(&["--listen", "0.0.0.0:0"], "name a file with a token");
    refused(&["--token-file", "absent"], "absent");
    fs::write(place.join("short"), "secret\n").expect("writable");
    set_mode(&place.join("short"), 0o600);
    refused(&["--token-file", "short"], "at least 16");
    refused(&["--queue", "0"], "must be at least 1");
    fs::write(place.join("token"), "0123456789abcdef\n").expect("writable");
    set_mode(&place.join("token"), 0o644);
    refused(&["--token-file", "token"], "other users can read the token");
    set_mode(&place.join("token"), 0o600);
    let server = Server::start(place, &["--token-file", "token"]);
    let taken = server.url.rsplit('/').next().expect("an address").to_string();
    refused(&["--listen", &taken], &taken);
    let good = br#"{"rows": [{"east": 0.5, "north": 0.5, "kind": "shop"}]}"#;
    for (token, status) in [
        ("Bearer 0123456789abcdef", 200),
        ("bearer 0123456789abcdef", 200),
        ("Bearer 0123456789abcdeF", 401),
        ("0123456789abcdef", 401),
        ("Bearer ", 401),
    ] {
        assert_eq!(server.post(good, &[JSON, ("Authorization", token)]).0, status, "{token}");
    }
    assert_eq!(server.post(good, &[JSON]).0, 401);
    assert_eq!(server.get("/v1/model").0, 401);
    assert_eq!(server.get("/healthz").0, 200);
}
