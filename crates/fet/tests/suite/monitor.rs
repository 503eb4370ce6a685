//! Tests a party as its operator sees it: health, metrics, the page, and messages to systemd, with real processes.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::elsewhere::{GUIDE, free, nats, obeyed, script};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef0123";
const RULES: &str = include_str!("../../../../deploy/prometheus-rules.yaml");
const SCRAPE: &str = include_str!("../../../../deploy/prometheus.yaml");
const GUIDE_OF_METRICS: &str = include_str!("../../../../docs/monitor.md");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana-party.json");

/// Process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Folders of the guide's organisations, with keys, roster, experiment and server.
struct City {
    folder: TempDir,
    port: u16,
    server: PathBuf,
}

impl City {
    /// Follows the guide up to the parties' files; `None` without a server.
    fn new() -> Option<Self> {
        let server = nats()?;
        let folder = tempfile::tempdir().expect("a folder");
        let port = free();
        let (start, _) = GUIDE.split_once("## 6. ").expect("a section on the run");
        let start = start.replace("4222", &port.to_string());
        let start = start.replace("../nats/bin/nats-server -c hub/nats.conf -l hub/nats.log &", "");
        let start = start.replace("(cd $party && exec fet party party.toml > party.log 2>&1) &", "");
        let (ended, said) = obeyed(&script(&start), folder.path(), PATIENCE);
        assert!(ended.success(), "{ended}: {said}");
        Some(Self { folder, port, server })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join("city").join(name)
    }

    fn hub(&self) -> Running {
        let mut hub = Command::new(&self.server);
        hub.args(["-c", "hub/nats.conf", "-l", "hub/nats.log"]).current_dir(self.place(""));
        let hub = Running(hub.spawn().expect("a server"));
        until("the server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
        hub
    }

    /// Adds settings to the file of a party.
    fn set(&self, party: &str, text: &str) {
        let path = self.place(party).join("party.toml");
        let before = fs::read_to_string(&path).expect("a file");
        fs::write(path, before + text).expect("written");
    }

    /// Gives a command of the primary, and returns its exit code and its messages.
    fn bank(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = fet(&self.place("bank"), arguments);
        command.args(["--parties", "roster.toml", "--key", "bank.key"]);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn fet(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
    command.current_dir(folder).env("FET_DATA", folder).env("FET_TOKEN", TOKEN).args(arguments);
    command
}

/// Party whose log is read.
struct Party {
    process: Running,
    events: Receiver<Value>,
    url: String,
}

impl Party {
    /// Starts a party, and waits for its monitor.
    fn start(folder: &Path, variables: &[(&str, String)]) -> Self {
        let mut command = fet(folder, &["party", "party.toml", "--log", "json"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut process = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (tell, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).expect("JSON"));
            }
        });
        let mut party = Self { process: Running(process), events, url: String::new() };
        let message = party.await_event("monitor");
        party.url = message.rsplit(' ').next().expect("an address").to_string();
        party
    }

    fn await_event(&self, event: &str) -> String {
        loop {
            let found = self.events.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no event {event}"));
            if found["event"] == event {
                return found["message"].as_str().expect("a text").to_string();
            }
        }
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let (status, body, _) = get(&self.url, path, headers);
        (status, body)
    }

    fn metrics(&self) -> String {
        let (status, text) = self.get("/metrics", &[]);
        assert_eq!(status, 200, "{text}");
        text
    }

    /// Stops the party as systemd does.
    fn stop(&mut self) -> Option<i32> {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("a signal").success());
        until("the party ends", || self.process.0.try_wait().expect("a child").is_some());
        self.process.0.wait().expect("a child").code()
    }
}

/// Returns the status, the body and the headers of an answer.
fn get(url: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.get(format!("{url}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.call().expect("an answer");
    let told = format!("{:?}", response.headers());
    (response.status().as_u16(), response.body_mut().read_to_string().expect("text"), told)
}

/// Returns the body of an answer, if a server listens.
fn scrape(address: &str) -> Option<String> {
    ureq::get(address).call().ok()?.body_mut().read_to_string().ok()
}

/// Sends a request with these lines, and returns the first line of the answer.
fn raw(url: &str, lines: &str) -> String {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(format!("{lines}\r\nConnection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.lines().next().unwrap_or_default().to_string()
}

/// Returns the value of a series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    let line =
        metrics.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    Some(line.rsplit(' ').next()?.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    words.filter(|word| word.starts_with("fet_party_")).map(str::to_string).collect()
}

/// Returns the names of the series that a scraper stores.
fn exported(metrics: &str) -> BTreeSet<String> {
    let series = metrics.lines().filter(|line| !line.starts_with('#'));
    series.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_string).collect()
}

fn basic(token: &str) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("operator:{token}")))
}

/// Returns a folder with the files of a party whose server is away.
fn lonely() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let prepare = r#"set -e
for party in bank streets; do fet keys new $party.key > $party.pub; done
cat > roster.toml <<EOF
run = "city"
server = "nats://127.0.0.1:9"
wait = 600
[primary]
name = "bank"
$(head -1 bank.pub)
[[parties]]
name = "streets"
$(fet keys show streets.key)
EOF
printf 'x,y,lines\n1,1,1\n2,2,2\n' > streets.csv
cat > shops.toml <<'EOF'
name = "shops"
data = { kind = "linked", label = "z", primary = { file = "p.csv", keys = ["x", "y"] }, secondaries = [{ name = "streets", keys = ["x", "y"] }] }
EOF
cat > party.toml <<'EOF'
party = "streets"
roster = "roster.toml"
experiment = "shops.toml"
key = "streets.key"
state = "state"
data = { file = "streets.csv", keys = ["x", "y"] }
EOF
"#;
    let (ended, said) = obeyed(prepare, folder.path(), PATIENCE);
    assert!(ended.success(), "{said}");
    folder
}

/// Has a party end if its server is away.
fn give_up_at_once(folder: &Path) {
    let path = folder.join("roster.toml");
    let roster = fs::read_to_string(&path).expect("a roster").replace("wait = 600", "wait = 0");
    fs::write(path, roster).expect("written");
}

fn append(folder: &Path, text: &str) {
    let path = folder.join("party.toml");
    let before = fs::read_to_string(&path).expect("a file");
    fs::write(path, before + text).expect("written");
}

#[test]
fn a_party_without_its_server_is_healthy_but_not_ready() {
    let folder = lonely();
    append(folder.path(), "[monitor]\nlisten = \"127.0.0.1:0\"\npage = true\ntoken_env = \"FET_TOKEN\"\n");
    let mut party = Party::start(folder.path(), &[]);
    assert_eq!(party.get("/healthz", &[]), (200, "ok\n".into()));
    let (status, reason) = party.get("/readyz", &[]);
    assert_eq!((status, reason.as_str()), (503, "the party connects to nats://127.0.0.1:9\n"));
    let metrics = party.metrics();
    for (series, expected) in [
        ("fet_party_ready", Some(0.0)),
        ("fet_party_connection{state=\"connecting\"}", Some(1.0)),
        ("fet_party_connection{state=\"up\"}", Some(0.0)),
        ("fet_party_sessions", Some(0.0)),
        ("fet_party_heard_seconds", None),
        ("fet_party_lifetime_epsilon", None),
    ] {
        assert_eq!(value(&metrics, series), expected, "{series}: {metrics}");
    }
    // The page is for the operator alone.
    let bearer = format!("Bearer {TOKEN}");
    let (right, wrong, long) = (basic(TOKEN), basic("0123456789abcdef0124"), basic(&format!("{TOKEN}0")));
    for (headers, expected) in [
        (vec![], 401),
        (vec![("authorization", wrong.as_str())], 401),
        (vec![("authorization", long.as_str())], 401),
        (vec![("authorization", "Basic :")], 401),
        (vec![("authorization", "Bearer ")], 401),
        (vec![("authorization", right.as_str())], 200),
        (vec![("authorization", bearer.as_str())], 200),
        // Pages of other sites, also under a name that leads here.
        (vec![("authorization", right.as_str()), ("origin", "http://evil.example")], 403),
        (vec![("authorization", right.as_str()), ("host", "evil.example")], 403),
        (vec![("authorization", right.as_str()), ("host", "localhost:9464")], 200),
    ] {
        let (status, body, told) = get(&party.url, "/", &headers);
        assert_eq!(status, expected, "{headers:?}: {body}");
        assert_eq!(told.contains("www-authenticate"), expected == 401, "{told}");
        let is_page = body.contains("<!doctype html>");
        assert_eq!(is_page, expected == 200, "{body}");
        if is_page {
            assert!(body.contains("Not ready: the party connects to nats:&#x2f;&#x2f;127.0.0.1:9"), "{body}");
            assert!(told.contains("default-src 'none'") && told.contains("no-store"), "{told}");
            assert!(
                !body.contains(TOKEN) && !body.contains("<script") && !body.contains("http://"),
                "{body}"
            );
        }
    }
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(party.get(path, &[("host", "evil.example")]).0, 403, "{path}");
    }
    assert!(raw(&party.url, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1").contains("200"));
    assert!(raw(&party.url, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0").contains("405"));
    assert_eq!(party.get("/party.toml", &[]).0, 404);
    // Not yet connected, the party ends at a second signal at the latest.
    let _ = party.process.0.kill();
}

#[test]
fn explains_refusals_of_the_monitor() {
    let folder = lonely();
    give_up_at_once(folder.path());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("listen = \"{}\"", taken.local_addr().expect("an address"));
    for (lines, expected) in [
        ("listen = \"127.0.0.1:0\"\npage = true", "party.toml: `monitor.page` needs a token"),
        ("listen = \"0.0.0.0:0\"", "other machines reach this address"),
        ("listen = \"0.0.0.0:0\"\npublic = true", "`monitor.public` needs a token"),
        (
            "listen = \"127.0.0.1:0\"\npage = true\ntoken_env = \"FET_NONE\"",
            "`monitor.token_env`: the environment variable FET_NONE",
        ),
        ("listen = \"9464\"", "`monitor.listen` must be an address and a port"),
        ("listen = \"127.0.0.1:9\"\npublic = 1", "`monitor.public`"),
        ("listn = \"127.0.0.1:0\"", "`monitor.listn` is not a setting"),
        (&taken, "`monitor.listen` is 127.0.0.1:"),
    ] {
        let place = tempfile::tempdir().expect("a folder");
        for file in ["party.toml", "roster.toml", "shops.toml", "streets.csv", "streets.key"] {
            fs::copy(folder.path().join(file), place.path().join(file)).expect("copied");
        }
        append(place.path(), &format!("[monitor]\n{lines}\n"));
        let output = fet(place.path(), &["party", "party.toml"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{lines}: {said}");
        assert!(said.contains(expected), "{lines}: {said}");
    }
}

#[test]
fn log_level_leaves_out_plain_messages() {
    let folder = lonely();
    give_up_at_once(folder.path());
    append(folder.path(), "rehearsal = true\n");
    for (level, expected) in [("info", &["warning", "roster", "connecting"][..]), ("warn", &["warning"])] {
        let arguments = ["party", "party.toml", "--log", "json", "--log-level", level];
        let output = fet(folder.path(), &arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(75), "{output:?}");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(events, expected, "{lines:?}");
        assert_eq!(lines[0]["level"], "warn");
    }
}

#[test]
fn shows_a_training_predictions_and_refusals() {
    let Some(city) = City::new() else { return };
    let _hub = city.hub();
    let monitor = "\n[monitor]\nlisten = \"127.0.0.1:0\"\npage = true\ntoken_env = \"FET_TOKEN\"\n";
    city.set("streets", &format!("most_predictions = 300\n{monitor}"));
    city.set("weather", monitor);
    let mut streets = Party::start(&city.place("streets"), &[]);
    let mut weather = Party::start(&city.place("weather"), &[]);
    until("the party is ready", || streets.get("/readyz", &[]) == (200, "ready\n".into()));
    let train = ["run", "shops.toml", "--out", "result", "--set", "train.epochs=2"];
    // The experiment is common, so that all parties need the same change.
    let (code, said) = city.bank(&train);
    assert_eq!(code, Some(2), "other settings are refused: {said}");
    let metrics = streets.metrics();
    assert_eq!(value(&metrics, "fet_party_refusals_total{request=\"Join\"}"), Some(1.0), "{metrics}");
    let listen = format!("127.0.0.1:{}", free());
    let run = ["run", "shops.toml", "--out", "result", "--monitor", &listen];
    let (code, said, at_work) = std::thread::scope(|scope| {
        let run = scope.spawn(|| city.bank(&run));
        let mut at_work = String::new();
        until("an epoch ends", || {
            at_work = scrape(&format!("http://{listen}/metrics")).unwrap_or_default();
            assert!(!run.is_finished(), "the run has ended");
            value(&at_work, "fet_run_epochs").is_some_and(|epochs| epochs >= 1.0)
        });
        let (code, said) = run.join().expect("no panic");
        (code, said, at_work)
    });
    assert_eq!(code, Some(0), "{said}");
    for series in ["fet_run_link_up{party=\"streets\"}", "fet_run_link_up{party=\"weather\"}"] {
        assert_eq!(value(&at_work, series), Some(1.0), "{series}: {at_work}");
    }
    assert_eq!(value(&at_work, "fet_run_epochs_planned"), Some(20.0), "{at_work}");
    assert!(value(&at_work, "fet_run_link_sent_bytes_total{party=\"streets\"}") > Some(1e4), "{at_work}");
    assert!(scrape(&format!("http://{listen}/metrics")).is_none(), "the monitor ends with the run");
    let predict = ["predict", "result", "--rows", "new.csv", "--out", "predictions.csv"];
    let (code, said) = city.bank(&predict);
    assert_eq!(code, Some(0), "{said}");
    // The second request exceeds the limit of 300 new records.
    let (code, said) = city.bank(&predict);
    assert!(code == Some(2) && said.contains("most_predictions"), "{code:?}: {said}");

    let stored = fs::read_to_string(city.place("bank/result/parties/run")).expect("a run");
    let run = stored.lines().next().expect("an id");
    until("the state folder is read again", || value(&streets.metrics(), "fet_party_runs") == Some(1.0));
    let metrics = streets.metrics();
    let of = |series: &str| value(&metrics, series).unwrap_or_else(|| panic!("{series}: {metrics}"));
    for (series, expected) in [
        ("fet_party_ready", 1.0),
        ("fet_party_connection{state=\"up\"}", 1.0),
        ("fet_party_connection{state=\"connecting\"}", 0.0),
        ("fet_party_refusals_total{request=\"Join\"}", 1.0),
        ("fet_party_refusals_total{request=\"Predict\"}", 1.0),
        ("fet_party_requests_total{request=\"Predict\"}", 1.0),
        ("fet_party_requests_total{request=\"Finish\"}", 1.0),
        ("fet_party_linked_rows_total", 200.0),
        ("fet_party_predictions", 200.0),
        ("fet_party_predictions_left", 100.0),
        ("fet_party_lifetime_epsilon", f64::INFINITY),
        ("fet_party_lifetime_broken", 0.0),
        ("fet_party_unreadable_packets_total", 0.0),
    ] {
        assert_eq!(of(series), expected, "{series}: {metrics}");
    }
    let joins = of("fet_party_requests_total{request=\"Join\"}");
    assert_eq!(of("fet_party_request_seconds_count{request=\"Join\"}"), joins);
    assert_eq!(joins, 3.0, "a run and two programs for predictions: {metrics}");
    for series in ["fet_party_sent_bytes_total", "fet_party_received_bytes_total", "fet_party_state_bytes"] {
        assert!(of(series) > 1e4, "{series}: {metrics}");
    }
    assert!(of("fet_party_heard_seconds") < 60.0 && of("fet_party_latency_seconds") < 1.0, "{metrics}");
    let since = std::time::UNIX_EPOCH.elapsed().expect("a time").as_secs_f64();
    assert!((0.0..600.0).contains(&(since - of("fet_party_last_refusal_seconds"))), "{metrics}");
    // No label has the id of a run, a name of the tables, or a reason.
    for part in [run, "shops", "lines", "east", "most_predictions"] {
        assert!(!metrics.contains(part), "{part}: {metrics}");
    }

    let page = streets.get("/", &[("authorization", basic(TOKEN).as_str())]).1;
    for part in [
        "Ready for bank",
        run,
        "finished",
        "200 of 300 new records were linked",
        "100 are left",
        "ε = unbounded at δ = 1e-5",
        "<td class=\"text\">Predict</td>",
        "policy.most_predictions",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let series = exported(&metrics);
    let used: BTreeSet<String> = names(RULES).union(&names(DASHBOARD)).cloned().collect();
    // The policy of this party limits nothing; `shows_the_privacy_loss_and_its_limit` sets a limit.
    let absent: Vec<&String> = used.difference(&series).collect();
    assert_eq!(absent, ["fet_party_lifetime_epsilon_limit"], "{metrics}");
    let unused: Vec<&String> = series.difference(&used).collect();
    let of_durations = ["fet_party_request_seconds_count", "fet_party_request_seconds_sum"];
    assert_eq!(unused, of_durations, "every other series is in a panel");
    let explained = names(GUIDE_OF_METRICS);
    let is_explained = |series: &&String| {
        explained
            .contains(series.trim_end_matches("_bucket").trim_end_matches("_count").trim_end_matches("_sum"))
    };
    let unexplained: Vec<&String> = series.iter().filter(|series| !is_explained(series)).collect();
    assert!(unexplained.is_empty(), "{unexplained:?} are not in docs/monitor.md");
    scraped(&streets, &city.place(""));
    seen_in_chromium(&streets, &city.place(""));
    assert_eq!((streets.stop(), weather.stop()), (Some(0), Some(0)));
}

/// Has a real Prometheus read the metrics, the rules and every expression of the dashboard.
fn scraped(party: &Party, folder: &Path) {
    let Some(prometheus) = std::env::var_os("FET_PROMETHEUS").map(PathBuf::from) else {
        fet_testing::left_out("prometheus", "FET_PROMETHEUS names no prometheus");
        return;
    };
    let place = folder.join("prometheus");
    fs::create_dir(&place).expect("made");
    let target = party.url.trim_start_matches("http://");
    let scrape = SCRAPE.replace("127.0.0.1:9464", target).replace("15s", "1s");
    assert_ne!(scrape, SCRAPE);
    fs::write(place.join("prometheus.yaml"), scrape).expect("written");
    fs::write(place.join("prometheus-rules.yaml"), RULES).expect("written");
    let promtool = prometheus.with_file_name("promtool");
    let checked =
        Command::new(promtool).args(["check", "config", "prometheus.yaml"]).current_dir(&place).output();
    let checked = checked.expect("it runs");
    assert!(checked.status.success(), "{checked:?}");
    let listen = format!("127.0.0.1:{}", free());
    let mut command = Command::new(prometheus);
    command.args(["--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--log.level=error"]);
    command.arg(format!("--web.listen-address={listen}")).current_dir(&place);
    let _server = Running(command.spawn().expect("it starts"));
    let url = format!("http://{listen}");
    let is_ready = || TcpStream::connect(&listen).is_ok() && get(&url, "/-/ready", &[]).0 == 200;
    until("Prometheus is ready", is_ready);
    let query = |path: &str| -> Value {
        let (status, body, _) = get(&url, path, &[]);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    };
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let ask = |expression: &str| query(&format!("/api/v1/query?query={}", encoded(expression)));
    let mut targets = Value::Null;
    until("the party is scraped twice", || {
        targets = query("/api/v1/targets");
        let found = ask("count_over_time(fet_party_ready[1h]) >= 2");
        found["data"]["result"].as_array().is_some_and(|found| !found.is_empty())
    });
    let target = &targets["data"]["activeTargets"][0];
    assert!(target["health"] == "up" && target["lastError"] == "", "{target}");
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let expressions = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let mut asked = 0;
    for expression in expressions.map(|target| target["expr"].as_str().expect("an expression")) {
        let found = ask(&expression.replace("$instance", ".*"));
        let is_empty = found["data"]["result"].as_array().is_none_or(Vec::is_empty);
        // The policy of this party limits nothing.
        assert_eq!(is_empty, expression.contains("epsilon_limit"), "{expression}: {found}");
        asked += 1;
    }
    assert!(asked > 15, "{asked}");
    let mut firing = BTreeSet::new();
    until("the rules are evaluated", || {
        let alerts = query("/api/v1/alerts");
        let alerts = alerts["data"]["alerts"].as_array().expect("alerts").clone();
        firing = alerts.iter().map(|alert| alert["labels"]["alertname"].to_string()).collect();
        !firing.is_empty()
    });
    assert_eq!(firing, BTreeSet::from(["\"FetPartyRefuses\"".to_string()]));
}

/// Opens the operator's page in a real Chromium: it loads without a message on the console.
fn seen_in_chromium(party: &Party, folder: &Path) {
    if Command::new("chromium").arg("--version").output().is_err() {
        fet_testing::left_out("chromium", "there is no chromium here; `.ci/chromium` installs it");
        return;
    }
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let address = party.url.replace("http://", &format!("http://operator:{TOKEN}@"));
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .args(["--window-size=1100,1600", &profile, &address])
        .output()
        .expect("chromium ran");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!log.contains("CONSOLE"), "the console is silent: {log}");
    assert!(dom.contains("Ready for bank") && dom.contains("<section id=\"refusals\">"), "{dom}");
}

/// A run with a release within a lifetime limit.
#[test]
fn shows_the_privacy_loss_and_its_limit() {
    let Some(city) = City::new() else { return };
    let _hub = city.hub();
    let (_, private) = GUIDE.split_once("cat > private.toml <<'EOF'\n").expect("an experiment");
    let (private, _) = private.split_once("EOF\n").expect("its end");
    for party in ["bank", "streets", "weather"] {
        fs::write(city.place(party).join("private.toml"), private).expect("written");
    }
    for party in ["streets", "weather"] {
        let path = city.place(party).join("party.toml");
        let file = fs::read_to_string(&path).expect("a file").replace("shops.toml", "private.toml");
        let policy = "lifetime_epsilon = 4.2\nneighbouring = [\"add-remove\", \"replace\"]\n";
        fs::write(path, format!("{file}{policy}\n[monitor]\nlisten = \"127.0.0.1:0\"\n")).expect("written");
    }
    let streets = Party::start(&city.place("streets"), &[]);
    let _weather = Party::start(&city.place("weather"), &[]);
    assert_eq!(streets.get("/", &[]).0, 404, "the page is off by default");
    let (code, said) = city.bank(&["run", "private.toml", "--out", "private"]);
    assert_eq!(code, Some(0), "{said}");
    until("the account is read", || value(&streets.metrics(), "fet_party_lifetime_epsilon").is_some());
    let metrics = streets.metrics();
    let spent = value(&metrics, "fet_party_lifetime_epsilon").expect("an account");
    assert!((3.9..=4.2).contains(&spent), "{metrics}");
    assert_eq!(value(&metrics, "fet_party_lifetime_epsilon_limit"), Some(4.2));
    assert!(names(RULES).contains("fet_party_lifetime_epsilon_limit"));
}

/// Messages of a party to systemd, one variable a line.
struct Supervisor(UnixDatagram);

impl Supervisor {
    fn new(folder: &Path) -> (Self, String) {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        (Self(socket), path.display().to_string())
    }

    fn next(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_string).collect()
    }

    /// Returns the lines up to the first one that begins so.
    fn up_to(&self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while !lines.iter().any(|line: &String| line.starts_with(start)) {
            lines.extend(self.next());
        }
        lines
    }
}

#[test]
fn tells_systemd_its_state() {
    let Some(city) = City::new() else { return };
    city.set("streets", "\n[monitor]\nlisten = \"127.0.0.1:0\"\n");
    let (supervisor, socket) = Supervisor::new(city.folder.path());
    let variables = [("NOTIFY_SOCKET", socket), ("WATCHDOG_USEC", "600000".into())];
    let mut party = Party::start(&city.place("streets"), &variables);
    assert_eq!(party.get("/readyz", &[]).0, 503);
    let hub = city.hub();
    // The first sign is that of the watchdog; nothing comes before the server is there.
    let lines = supervisor.up_to("READY=1");
    assert!(lines.iter().all(|line| line == "WATCHDOG=1" || line == "READY=1"), "{lines:?}");
    assert_eq!(party.get("/readyz", &[]).0, 200);
    let lines = supervisor.up_to("STATUS=");
    assert_eq!(lines.last().expect("a line"), "STATUS=waits for the primary");
    drop(hub);
    let lines = supervisor.up_to("STATUS=");
    assert!(lines.last().expect("a line").contains("the server does not answer"), "{lines:?}");
    let (status, reason) = party.get("/readyz", &[]);
    assert!(status == 503 && reason.contains("the server has not answered"), "{reason}");
    // The watchdog follows the thread of the link, which runs also without the server.
    for _ in 0..3 {
        let lines = supervisor.up_to("WATCHDOG=1");
        assert!(!lines.contains(&"READY=1".to_string()), "{lines:?}");
    }
    let _hub = city.hub();
    let lines = supervisor.up_to("STATUS=");
    assert_eq!(lines.last().expect("a line"), "STATUS=waits for the primary");
    assert_eq!(party.stop(), Some(0));
    supervisor.up_to("STOPPING=1");
}
