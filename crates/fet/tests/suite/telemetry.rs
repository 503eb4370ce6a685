//! Tests the OpenTelemetry spans of runs, parties and services against a small collector.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::command::{TINY, text, write};
#[cfg(unix)]
use crate::elsewhere::{GUIDE, PATIENCE, free, nats, obeyed, script};

/// Attributes that spans may have: names, numbers and sizes that the logs of the same process also contain.
const ATTRIBUTES: [&str; 10] =
    ["epoch", "experiment", "part", "party", "purpose", "received", "round", "rows", "run", "sent"];

/// Span that the collector received.
#[derive(Debug, Clone)]
struct Exported {
    service: String,
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// HTTP server that takes spans in JSON.
struct Collector {
    address: String,
    spans: Arc<Mutex<Vec<Exported>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let spans: Arc<Mutex<Vec<Exported>>> = Arc::default();
        let received = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let body = take(&mut stream.expect("a connection"));
                received.lock().expect("no panic").extend(read(&body));
            }
        });
        Self { address, spans }
    }

    fn spans(&self) -> Vec<Exported> {
        self.spans.lock().expect("no panic").clone()
    }
}

/// Takes one request, answers it, and returns its body.
fn take(stream: &mut TcpStream) -> Value {
    let mut reader = BufReader::new(stream.try_clone().expect("a connection"));
    let (mut line, mut length, mut first) = (String::new(), 0, String::new());
    while reader.read_line(&mut line).expect("a request") > 2 {
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    assert!(first.starts_with("POST /v1/traces "), "{first}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    stream.write_all(answer.as_bytes()).expect("the client reads");
    serde_json::from_slice(&body).expect("JSON")
}

/// Returns the spans of a request to the collector.
fn read(body: &Value) -> Vec<Exported> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let attributes = |of: &Value| -> BTreeMap<String, String> {
        let one = |pair: &Value| {
            let value = pair["value"].as_object().and_then(|value| value.values().next()).cloned();
            let value = value.map_or_else(String::new, |value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            });
            (pair["key"].as_str().unwrap_or_default().to_string(), value)
        };
        list(of, "attributes").iter().map(one).collect()
    };
    let text = |span: &Value, name: &str| span[name].as_str().unwrap_or_default().to_string();
    let mut spans = Vec::new();
    for resource in list(body, "resourceSpans") {
        let service = attributes(&resource["resource"]).remove("service.name").unwrap_or_default();
        for span in list(&resource, "scopeSpans").iter().flat_map(|scope| list(scope, "spans")) {
            spans.push(Exported {
                service: service.clone(),
                trace: text(&span, "traceId"),
                id: text(&span, "spanId"),
                parent: text(&span, "parentSpanId"),
                name: text(&span, "name"),
                attributes: attributes(&span),
            });
        }
    }
    spans
}

/// Returns the number of spans by service, name and the name of their parent.
fn tree(spans: &[Exported]) -> BTreeMap<(String, String, String), usize> {
    let names: BTreeMap<&str, &Exported> = spans.iter().map(|span| (span.id.as_str(), span)).collect();
    let mut counts = BTreeMap::new();
    for span in spans {
        let parent = names.get(span.parent.as_str());
        assert_eq!(span.parent.is_empty(), parent.is_none(), "{span:?} has an unknown parent");
        assert!(parent.is_none_or(|parent| parent.trace == span.trace), "{span:?} and {parent:?}");
        let parent = parent.map_or("", |parent| parent.name.as_str());
        *counts.entry((span.service.clone(), span.name.clone(), parent.to_string())).or_default() += 1;
    }
    counts
}

/// Checks that spans have no other attributes than the documented ones.
fn check_attributes(spans: &[Exported]) {
    let found: BTreeSet<&str> =
        spans.iter().flat_map(|span| span.attributes.keys().map(String::as_str)).collect();
    let other: Vec<&&str> = found.iter().filter(|name| !ATTRIBUTES.contains(name)).collect();
    assert!(other.is_empty(), "{other:?}");
}

/// Runs the tiny experiment with these variables.
fn run_with(folder: &Path, variables: &[(&str, &str)]) -> Output {
    write(folder, "tiny.toml", TINY);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
    command.current_dir(folder).args(["run", "tiny.toml", "--out", "result"]).env("FET_DATA", folder);
    command.envs(variables.iter().copied()).output().expect("the program starts")
}

#[test]
fn exports_the_spans_of_a_run() {
    let collector = Collector::start();
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_SERVICE_NAME", "bank"),
    ];
    let output = run_with(folder.path(), &variables);
    assert!(
        output.status.success() && !text(&output.stderr).contains("OpenTelemetry"),
        "{}",
        text(&output.stderr)
    );
    let spans = collector.spans();
    check_attributes(&spans);
    let tree = tree(&spans);
    let count = |name: &str, parent: &str| {
        tree.get(&("bank".to_string(), name.to_string(), parent.to_string())).copied().unwrap_or_default()
    };
    assert_eq!((count("run", ""), count("epoch", "run"), count("linking", "run")), (1, 2, 1), "{tree:?}");
    // One primary and two secondaries.
    assert_eq!((count("Link", "linking"), count("search", "Link")), (2, 2), "{tree:?}");
    let rounds = count("round", "epoch");
    assert!(rounds >= 2, "{tree:?}");
    assert_eq!((count("Forward", "round"), count("Backward", "round")), (2 * rounds, 2 * rounds), "{tree:?}");
    assert!(count("evaluation", "epoch") >= 2 && count("Forward", "evaluation") >= 4, "{tree:?}");
    // The experiment has no other root than the run.
    assert_eq!(spans.iter().filter(|span| span.parent.is_empty()).count(), 1, "{tree:?}");
    for span in spans.iter().filter(|span| span.name == "Forward") {
        let number = |name: &str| span.attributes.get(name).and_then(|value| value.parse::<u64>().ok());
        assert!(number("sent").is_some_and(|bytes| bytes > 0), "{span:?}");
        assert!(number("received").is_some_and(|bytes| bytes > 0), "{span:?}");
        assert!(span.attributes.contains_key("party") && span.attributes.contains_key("round"), "{span:?}");
    }
}

#[test]
fn exports_nothing_unless_a_variable_asks_for_it() {
    let collector = Collector::start();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str());
    for variables in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        &[endpoint, ("OTEL_SDK_DISABLED", "true")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "none")],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = run_with(folder.path(), variables);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(collector.spans().len(), 0, "{variables:?}");
    }
}

#[test]
fn names_invalid_variables_and_survives_a_missing_collector() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let nowhere = format!("http://{closed}");
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", nowhere.as_str());
    for (variables, code, part) in [
        (
            &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")][..],
            2,
            "must be \"http/protobuf\" or \"http/json\"; it is \"grpc\"",
        ),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "no address")][..],
            2,
            "OTEL_EXPORTER_OTLP_ENDPOINT is \"no address\"",
        ),
        (&[endpoint][..], 0, "OpenTelemetry spans are lost"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = run_with(folder.path(), variables);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{variables:?}: {said}");
        assert_eq!(said.matches(part).count(), 1, "{variables:?}: {said}");
    }
}

/// Each organisation has its own traces: a party's session is a root, and no trace spans two services.
#[cfg(unix)]
#[test]
fn parties_and_services_have_traces_of_their_own() {
    let Some(server) = nats() else { return };
    let collector = Collector::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let start = start
        .replace("4222", &free().to_string())
        .replace("epochs = 20", "epochs = 1")
        .replace("exec fet party", "OTEL_SERVICE_NAME=$party exec fet party");
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    let script = format!(
        r#"export OTEL_EXPORTER_OTLP_ENDPOINT={} OTEL_EXPORTER_OTLP_PROTOCOL=http/json OTEL_SERVICE_NAME=bank
{start}
listen=127.0.0.1:{}
OTEL_SERVICE_NAME=serve fet serve result --parties roster.toml --key bank.key --listen $listen > serve.log 2>&1 &
until grep -q 'serve: ready' serve.log; do sleep 0.1; done
fet predict http://$listen --rows new.csv --out served.csv
kill -INT $!
wait $!
kill -INT $(cat ../streets/party.pid ../weather/party.pid)
while kill -0 $(cat ../streets/party.pid) || kill -0 $(cat ../weather/party.pid); do sleep 0.1; done
kill $(jobs -p) || true
"#,
        collector.address,
        free()
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    assert!(ended.success(), "{ended}: {said}");
    let spans = collector.spans();
    check_attributes(&spans);
    let tree = tree(&spans);
    let count = |service: &str, name: &str, parent: &str| {
        tree.get(&(service.to_string(), name.to_string(), parent.to_string())).copied().unwrap_or_default()
    };
    assert_eq!((count("bank", "run", ""), count("bank", "Link", "linking")), (1, 2), "{tree:?}");
    for party in ["streets", "weather"] {
        // A training and a service of predictions.
        assert_eq!(count(party, "session", ""), 2, "{tree:?}");
        assert_eq!((count(party, "Link", "session"), count(party, "search", "Link")), (1, 1), "{tree:?}");
        assert_eq!(
            (count(party, "Predict", "session"), count(party, "search", "Predict")),
            (1, 1),
            "{tree:?}"
        );
        assert!(count(party, "Forward", "session") > 0, "{tree:?}");
    }
    assert_eq!(count("serve", "prediction", ""), 1, "{tree:?}");
    assert_eq!(
        (count("serve", "linking", "prediction"), count("serve", "Predict", "linking")),
        (1, 2),
        "{tree:?}"
    );
    let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for span in &spans {
        services.entry(&span.trace).or_default().insert(&span.service);
    }
    assert!(services.values().all(|services| services.len() == 1), "{services:?}");
}
