//! Tests parties in separate processes: follows the guide from keys to predictions, and checks errors in the
//! parties' files.
#![cfg(unix)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(super) const GUIDE: &str = include_str!("../../../../docs/deploy.md");
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

/// Converts the code blocks of a guide to one shell script, which also saves the guide's files.
pub(super) fn script(guide: &str) -> String {
    let mut script = String::from("set -e\n");
    for block in guide.split("\n```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').expect("a block has lines");
        match language {
            "python" => {
                script += &format!("cat > tables.py <<'END'\n{body}\nEND\npython3 tables.py\n");
            }
            // Output of the commands, which changes with every run.
            "text" => {}
            // The test already has a server.
            "sh" if body.starts_with("python3 -m venv") => {}
            "sh" => script += &format!("{body}\n"),
            other => panic!("no block of the guide is in {other}"),
        }
    }
    script
}

/// Runs a script and all its child processes in one process group, which ends with the script, or after `patience`.
pub(super) fn obeyed(script: &str, folder: &Path, patience: Duration) -> (ExitStatus, String) {
    let said = folder.join("said");
    let file = fs::File::create(&said).expect("writable");
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_fet"));
    let path = std::env::join_paths(
        beside
            .parent()
            .map(Path::to_path_buf)
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut child = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path.expect("a path"))
        .env("FET_DATA", folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a file"))
        .stderr(file)
        .process_group(0)
        .spawn()
        .expect("there is a bash");
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().expect("a child") {
            Some(ended) => break ended,
            None if began.elapsed() > patience => {
                child.kill().expect("it can be ended");
                break child.wait().expect("a child");
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    // Kill any remaining processes.
    let _ =
        Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    (ended, fs::read_to_string(said).unwrap_or_default())
}

/// Returns true if this process runs as root.
fn is_root() -> bool {
    let place = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(place.path()).expect("a folder")) == 0
}

/// Returns the program `nats-server`, if there is one.
pub(super) fn nats() -> Option<PathBuf> {
    let server = std::env::var_os("FET_NATS").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
    if Command::new(&server).arg("--version").output().is_err() {
        fet_testing::left_out("nats", "FET_NATS names no nats-server");
        return None;
    }
    Some(server)
}

/// Returns a free port.
pub(super) fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A party is killed and starts again: requests end with a reason meanwhile, and later answers are those before.
#[test]
fn a_service_survives_the_loss_of_a_party() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let start = start.replace("4222", &free().to_string());
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    let script = format!(
        r#"{start}
listen=127.0.0.1:{}
fet serve result --parties roster.toml --key bank.key --listen $listen --timeout 3 --log json > serve.log &
until grep -q '"event":"ready"' serve.log; do sleep 0.1; done
fet predict http://$listen --rows new.csv --out before.csv
kill -9 %2
fet predict http://$listen --rows new.csv --out during.csv --wait 25 2> during.log && exit 9
until grep -q '"event":"waiting"' serve.log; do sleep 0.1; done
fet predict http://$listen --rows new.csv --out during.csv --wait 1 2> away.log && exit 8
(cd ../streets && exec fet party party.toml >> party.log 2>&1) &
fet predict http://$listen --rows new.csv --out after.csv
cmp before.csv after.csv
kill $(jobs -p)
"#,
        free()
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let read =
        |name: &str| fs::read_to_string(folder.path().join("city/bank").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}", read("serve.log"));
    let away = read("away.log");
    assert!(away.contains("\"streets\"") && away.contains("0 of 200 rows are predicted"), "{away}");
    assert!(read("during.log").contains("http://127.0.0.1"), "{}", read("during.log"));
    assert_eq!(read("serve.log").matches("\"event\":\"ready\"").count(), 2, "{}", read("serve.log"));
}

/// Two trainings, a service and a command for predictions use the same parties at the same time. No command takes them
/// from another, and all results are those of commands in turn.
#[test]
fn trainings_and_predictions_share_the_parties() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let start = start.replace("4222", &free().to_string()).replace("epochs = 20", "epochs = 60");
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    let script = format!(
        r#"{start}
listen=127.0.0.1:{}
fet predict result --rows new.csv --parties roster.toml --key bank.key --out alone.csv
fet serve result --parties roster.toml --key bank.key --listen $listen --cache 400 --log json > serve.log &
until grep -q '"event":"ready"' serve.log; do sleep 0.1; done
trainings=
for run in second third; do
    fet run shops.toml --parties roster.toml --key bank.key --out $run > $run.log 2>&1 &
    trainings="$trainings $!"
done
for run in second third; do until [ -e $run/checkpoint.safetensors ]; do sleep 0.05; done; done
for round in 1 2 3; do
    fet predict http://$listen --rows new.csv --out served.csv
    cmp alone.csv served.csv
    rm served.csv
done
python3 -c "import urllib.request as r; print(r.urlopen('http://$listen/metrics').read().decode())" > metrics
grep -q '^fet_serve_rows_total 600$' metrics
grep -q '^fet_serve_cached_rows_total 400$' metrics
fet predict result --rows new.csv --parties roster.toml --key bank.key --out beside.csv
cmp alone.csv beside.csv
if [ -e second/report.json ] || [ -e third/report.json ]; then exit 9; fi
(cd ../streets && fet status party.toml) > status
wait $trainings
cmp result/predictions.csv second/predictions.csv
cmp result/predictions.csv third/predictions.csv
for party in streets weather; do
    first=$(head -1 result/parties/run)
    for run in second third; do
        cmp ../$party/state/runs/$first/model.safetensors ../$party/state/runs/$(head -1 $run/parties/run)/model.safetensors
    done
done
kill $(jobs -p)
"#,
        free()
    );
    let (ended, said) = obeyed(&script, folder.path(), 3 * PATIENCE);
    let read = |name: &str| fs::read_to_string(folder.path().join("city").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}\n{}", read("bank/second.log"), read("streets/party.log"));
    let log = read("streets/party.log");
    assert!(log.matches("joined for training").count() == 3 && !log.contains("takes over"), "{log}");
}

/// Lines that wait until the service at `$listen` answers `/readyz` with a status.
const READYZ: &str = r#"
readyz() {
    python3 - "$listen" "$1" <<'END'
import sys, time, urllib.error, urllib.request
while True:
    try:
        found = urllib.request.urlopen(f"http://{sys.argv[1]}/readyz").status
    except urllib.error.HTTPError as error:
        found = error.code
    except urllib.error.URLError:
        found = None  # It does not listen yet.
    if found == int(sys.argv[2]):
        break
    time.sleep(0.1)
END
}
"#;

/// Between requests, a service learns that a party has gone and that it has returned. A party that serves as many programs as it
/// may, one without the model, and an old copy of a party's state are refused, each with its own exit code and reason.
#[test]
fn predictions_notice_parties_that_are_away_busy_or_old() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let limited = "state = \"state\"\nmost_programs = 1\n";
    let start = start.replace("4222", &free().to_string()).replace("state = \"state\"\n", limited);
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    assert!(start.contains("most_programs"), "{start}");
    let script = format!(
        r#"{start}{READYZ}
listen=127.0.0.1:{}
predict() {{ fet predict result --rows new.csv --parties roster.toml --key bank.key --out $1.csv > $1.log 2>&1; }}
stop() {{
    kill $1 "$(cat ../streets/party.pid)"
    while kill -0 "$(cat ../streets/party.pid)" 2> /dev/null; do sleep 0.1; done
}}
start() {{ (cd ../streets && exec fet party party.toml >> party.log 2>&1) & echo $! > ../streets/party.pid; }}
fet serve result --parties roster.toml --key bank.key --listen $listen --timeout 5 --log json > serve.log &
serve=$!
readyz 200
code=0; predict busy || code=$?; [ $code = 75 ]
stop -9
readyz 503
start
readyz 200
kill -INT $serve; wait $serve
cp ../streets/state/party/lifetime.jsonl old
predict first
fet serve result --parties roster.toml --key bank.key --listen $listen --timeout 5 --log json > copy-served.log &
serve=$!
readyz 200
stop -TERM
cp ../streets/state/party/lifetime.jsonl new
cp old ../streets/state/party/lifetime.jsonl
start
until grep -q "old copy.*asks again in 4 s" copy-served.log; do sleep 0.1; done
kill -INT $serve; wait $serve
code=0; predict copy || code=$?; [ $code = 2 ]
stop -TERM
cp new ../streets/state/party/lifetime.jsonl
mv ../streets/state/runs/*/model.safetensors model
start
code=0; predict lost || code=$?; [ $code = 2 ]
kill $(jobs -p)
"#,
        free()
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let read =
        |name: &str| fs::read_to_string(folder.path().join("city/bank").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}\n{}", read("serve.log"), read("../streets/party.log"));
    for (log, part) in [
        ("busy.log", "not now: the party serves 1 programs of the primary already"),
        ("copy.log", "its state folder is an old copy"),
        ("lost.log", "lacks the model of this run"),
    ] {
        assert!(read(log).contains(part), "{part} in {}", read(log));
    }
    for name in ["busy.csv", "copy.csv", "lost.csv"] {
        assert!(!folder.path().join("city/bank").join(name).exists(), "{name}");
    }
    let log = read("serve.log");
    let count = |event: &str| log.matches(&format!("\"event\":\"{event}\"")).count();
    assert_eq!(count("ready"), 2, "{log}");
    assert!(count("waiting") > 0, "{log}");
}

/// Predictions by secure sums are those of the average up to rounding. A service gives the same answers before and after a
/// party starts again, when all parties agree on new keys.
#[test]
fn predictions_by_secure_sums_survive_the_loss_of_a_party() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let hidden = "train = { epochs = 20 }\naggregator = { kind = \"secure-average\" }\n";
    let start = start.replace("4222", &free().to_string()).replace("train = { epochs = 20 }\n", hidden);
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    assert!(start.contains("secure-average"), "{start}");
    let script = format!(
        r#"{start}
listen=127.0.0.1:{}
fet predict result --rows new.csv --parties roster.toml --key bank.key --out alone.csv
fet serve result --parties roster.toml --key bank.key --listen $listen --timeout 3 --log json > serve.log &
until grep -q '"event":"ready"' serve.log; do sleep 0.1; done
for round in 1 2; do
    fet predict http://$listen --rows new.csv --out served.csv
    cmp alone.csv served.csv
    rm served.csv
done
kill -9 %2
fet predict http://$listen --rows new.csv --out during.csv --wait 25 2> during.log && exit 9
(cd ../streets && exec fet party party.toml >> party.log 2>&1) &
fet predict http://$listen --rows new.csv --out after.csv
cmp alone.csv after.csv
kill $(jobs -p)
"#,
        free()
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let read =
        |name: &str| fs::read_to_string(folder.path().join("city/bank").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}\n{}", read("serve.log"), read("../streets/party.log"));
    assert_eq!(read("serve.log").matches("\"event\":\"ready\"").count(), 2, "{}", read("serve.log"));
    let rows = |name: &str| read(name).lines().count();
    assert_eq!((rows("alone.csv"), rows("after.csv")), (201, 201));
}

/// A party's key and the server's certificate are replaced in the middle of a run, and a party comes back from a backup.
#[test]
fn follows_the_guide_for_operators() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, _) = GUIDE.split_once("## 7. ").expect("a section on predictions");
    let start = start.replace("4222", &free().to_string()).replace("epochs = 20", "epochs = 60");
    let start = script(&start).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    let operations =
        script(OPERATIONS).replace("../nats/bin/nats-server", &format!("'{}'", server.display()));
    let operations = ["4223", "6222", "6223"]
        .iter()
        .fold(operations, |operations, port| operations.replace(port, &free().to_string()));
    // The certificate is replaced while the resumed run trains.
    let (keys, rest) = operations.split_once("openssl req").expect("a new certificate");
    let rest = format!("openssl req{rest}");
    let (certificate, rest) = rest.split_once("cd ..\n").expect("several runs");
    let resumed = "--out rotated > rotated.log 2>&1\n";
    assert_eq!(keys.matches(resumed).count(), 1, "{keys}");
    let resumed_beside = format!(
        "--out rotated > rotated.log 2>&1 &\nrun=$!\nbegun=$(cat rotated/checkpoint.safetensors | cksum)\n\
         while [ \"$begun\" = \"$(cat rotated/checkpoint.safetensors | cksum)\" ]; do sleep 0.05; done\n{certificate}\
         sleep 0.2; [ -e rotated/report.json ] && exit 9\nwait $run\n"
    );
    let keys = keys.replace(resumed, &resumed_beside);
    let script = format!("{start}{keys}cd ..\n{rest}kill $(jobs -p)\n");
    let (ended, said) = obeyed(&script, folder.path(), 3 * PATIENCE);
    let read = |name: &str| fs::read_to_string(folder.path().join("city").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}\n{}", read("bank/rotated.log"), read("streets/party.log"));
    let identity = |keys: &str| read(keys).split('"').nth(1).map(str::to_string).unwrap_or_default();
    let (hub, new) = (read("hub/nats.conf"), identity("new.lines"));
    assert!(!new.is_empty() && hub.contains(&new) && hub.contains("fet.city-b.to.streets"), "{hub}");
    assert!(read("hub/nats.log").contains("Reloaded server configuration"), "{}", read("hub/nats.log"));
    // The change of another party's key needs no restart; the start for two rosters is the only one.
    let log = read("weather/party.log");
    assert_eq!([log.matches("weather: ready").count(), log.matches("): ready").count()], [1, 2], "{log}");
    let bytes = |run: &str| fs::read(folder.path().join("city/bank").join(run).join("predictions.csv"));
    let [first, a, b] = ["result", "run-a", "run-b"].map(|run| bytes(run).expect(run));
    assert!(first == a && first == b, "runs at the same time give the same bytes");
}

/// One of two servers is killed in the middle of a run, which ends with the bytes of an undisturbed one.
#[test]
fn a_run_survives_the_loss_of_a_server() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, rest) = GUIDE.split_once("## 5. ").expect("a section on parties");
    let (parties, _) = rest.split_once("## 7. ").expect("a section on predictions");
    let [first, second, cluster, other] = std::array::from_fn(|_| free().to_string());
    let start = script(start)
        .replace("epochs = 20", "epochs = 60")
        .replace("tls://localhost:4222", &format!("tls://localhost:{first}, tls://localhost:{second}"))
        .replace("4222", &first)
        .replace("../nats/bin/nats-server", &format!("'{}'", server.display()))
        .replace(
            "roster.toml --out",
            &format!("roster.toml --cluster localhost:{cluster} --route localhost:{other} --out"),
        );
    assert!(start.contains("--cluster") && start.contains(&second), "{start}");
    let script = format!(
        r#"{start}
fet hub config roster.toml --port {second} --cluster localhost:{other} --route localhost:{cluster} --out hub/second.conf
'{}' -c hub/second.conf -l hub/second.log &
{}
fet run shops.toml --parties roster.toml --key bank.key --out disturbed > disturbed.log 2>&1 &
run=$!
until [ -e disturbed/checkpoint.safetensors ]; do sleep 0.05; done
kill -9 "$(cat ../hub/nats.pid)"
sleep 0.1; [ -e disturbed/report.json ] && exit 9
wait $run
cmp result/predictions.csv disturbed/predictions.csv
kill $(jobs -p)
"#,
        server.display(),
        script(&format!("\n{parties}")).replace("set -e\n", ""),
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let read = |name: &str| fs::read_to_string(folder.path().join("city").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}\n{}", read("bank/disturbed.log"), read("hub/second.log"));
    assert!(read("hub/second.log").contains("Route connection created"), "{}", read("hub/second.log"));
}

/// The primary reaches the server by a WebSocket, the parties as in the guide.
#[test]
fn a_primary_reaches_its_parties_by_a_websocket() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (start, rest) = GUIDE.split_once("## 5. ").expect("a section on parties");
    let (parties, _) = rest.split_once("## 7. ").expect("a section on predictions");
    let [port, socket] = std::array::from_fn(|_| free().to_string());
    let config = "fet hub config roster.toml";
    let by_socket =
        format!("sed 's|tls://localhost:{port}|wss://localhost:{socket}|' roster.toml > socket.toml");
    let start = script(start)
        .replace("4222", &port)
        .replace("../nats/bin/nats-server", &format!("'{}'", server.display()))
        .replace(config, &format!("{by_socket}\n{config} socket.toml"));
    assert!(start.contains("hub config roster.toml socket.toml"), "{start}");
    let script = format!(
        "{start}\n{}\ncp ../socket.toml socket.toml\nfet run shops.toml --parties socket.toml --key bank.key --out socket\n\
         cmp result/predictions.csv socket/predictions.csv\nkill $(jobs -p)\n",
        script(&format!("\n{parties}")).replace("set -e\n", ""),
    );
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let read = |name: &str| fs::read_to_string(folder.path().join("city").join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}", read("hub/nats.log"));
    let config = read("hub/nats.conf");
    assert!(
        config.contains(&format!("websocket {{\nhost: \"127.0.0.1\"\nport: {socket}\ntls {{")),
        "{config}"
    );
    assert!(
        read("hub/nats.log").contains("Listening for websocket clients on wss://"),
        "{}",
        read("hub/nats.log")
    );
}

#[test]
fn follows_the_guide_verbatim() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let served = format!("127.0.0.1:{}", free());
    let guide = GUIDE.replace("4222", &free().to_string()).replace("127.0.0.1:8787", &served);
    let guide = guide.replace("fet serve result", &format!("fet serve result --listen {served}"));
    let server = format!("'{}'", server.display());
    let script = script(&guide).replace("../nats/bin/nats-server", &server);
    assert!(script.contains(&server) && script.contains("fet predict http"), "{script}");
    // One of the parties logs JSON.
    let plain = "exec fet party party.toml";
    assert_eq!(script.matches(plain).count(), 1, "{script}");
    let script = script.replace(plain, &format!("{plain} $([ $party = weather ] && echo --log json)"));
    let (ended, said) = obeyed(&script, folder.path(), PATIENCE);
    assert!(ended.success(), "{ended}: {said}");
    let city = folder.path().join("city");
    let read =
        |name: &str| fs::read_to_string(city.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {said}"));
    assert_eq!(read("bank/predictions.csv").lines().count(), 201);
    let log = read("streets/party.log");
    assert!(
        log.contains("agreed to the terms") && log.contains("200 new records were linked for predictions"),
        "{log}"
    );
    let is_stamped = |line: &str| {
        line.as_bytes().get(10) == Some(&b'T')
            && (line.contains("Z streets: ") || line.contains("Z warning: streets: "))
    };
    assert!(log.lines().all(is_stamped) && !log.contains("streets: streets: "), "{log}");
    let lines: Vec<serde_json::Value> =
        read("weather/party.log").lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let private = read("streets/private.log");
    for part in [
        "made its release (`record-code`)",
        "lifetime account: 1 earlier runs, with this release ε = unbounded",
    ] {
        assert!(private.contains(part), "{part} in {private}");
    }
    let account = said.lines().find(|line| line.contains("record-code, add-remove")).unwrap_or(&said);
    assert!(account.contains("ε = 4.0000") && account.contains("1 releases"), "{account}");
    for event in ["ready", "joined", "agreed", "over"] {
        assert!(lines.iter().any(|line| line["event"] == event && line["party"] == "weather"), "{lines:?}");
    }
    // A waiting party shows its own status; without a process the command fails.
    assert!(said.contains("bank: ") && said.contains("of city: "), "{said}");
    // A rehearsal gives the same bytes as a simulation. Any other run sends the primary's rows in a secret
    // order.
    let rehearsed = tempfile::tempdir().expect("a folder");
    let rehearsal = |script: &str, setting: &str| {
        assert!(script.contains(setting), "{setting} in {script}");
        script.replace(setting, &format!("{setting}\nrehearsal = true"))
    };
    let script = rehearsal(&rehearsal(&script, "run = \"city\""), "state = \"state\"");
    let (ended, said) = obeyed(&script, rehearsed.path(), PATIENCE);
    assert!(ended.success(), "{ended}: {said}");
    let city = rehearsed.path().join("city");
    let read =
        |name: &str| fs::read_to_string(city.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {said}"));
    // Run the same experiment in one process, from the same tables.
    let one = city.join("one");
    fs::create_dir(&one).expect("writable");
    for file in ["bank/shops.csv", "bank/new.csv", "streets/streets.csv", "weather/weather.csv"] {
        let path = city.join(file);
        fs::copy(&path, one.join(path.file_name().expect("a name"))).expect("copied");
    }
    let named = |text: String, party: &str| {
        text.replace(
            &format!("name = \"{party}\", keys"),
            &format!("name = \"{party}\", file = \"{party}.csv\", keys"),
        )
    };
    let text = named(named(read("shops.toml"), "streets"), "weather");
    fs::write(one.join("shops.toml"), text).expect("written");
    fs::write(one.join("private.toml"), read("private.toml")).expect("written");
    let script = "set -e\nfet run shops.toml --out result\nfet predict result --rows new.csv --out predictions.csv\n\
                  fet run private.toml --out private\n";
    let (ended, said) = obeyed(script, &one, PATIENCE);
    assert!(ended.success(), "{ended}: {said}");
    let bytes = |name: &str| fs::read(city.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let kept = read("bank/result/parties/run");
    let run = kept.lines().next().expect("a line");
    for (here, there) in [
        ("one/result/predictions.csv", "bank/result/predictions.csv".to_string()),
        ("one/private/predictions.csv", "bank/private/predictions.csv".to_string()),
        (
            "one/result/parties/party1/model.safetensors",
            format!("streets/state/runs/{}/model.safetensors", run),
        ),
        (
            "one/result/parties/party2/model.safetensors",
            format!("weather/state/runs/{}/model.safetensors", run),
        ),
    ] {
        assert_eq!(bytes(here), bytes(&there), "{there}");
    }
    // The primary does not learn the similarities of the other parties' records.
    let columns = |name: &str| {
        let lines = read(name);
        lines.lines().map(|line| line.split(',').take(4).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    assert_eq!(columns("one/predictions.csv"), columns("bank/predictions.csv"));
}

#[test]
fn explains_refusals_of_party_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let prepare = r#"
for party in bank streets; do fet keys new $party.key > $party.pub; done
cat > roster.toml <<EOF
run = "city"
server = "nats://127.0.0.1:9"
wait = 0
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
    let (ended, said) = obeyed(&format!("set -e\n{prepare}"), folder.path(), PATIENCE);
    assert!(ended.success(), "{said}");
    for (lines, code, parts) in [
        ("fet party party.toml", 75, &["nats://127.0.0.1:9", "cannot be reached"][..]),
        (
            "sed -i 's/^wait.*/wait = 600/' roster.toml; fet party party.toml > said2 2>&1 & until grep -q 'tries again for up to 600 s' said2; do sleep 0.1; done; kill %1; wait %1",
            0,
            &[],
        ),
        (
            "sed -i s/^party/partie/ party.toml; fet party party.toml",
            2,
            &["party.toml: `partie` is not a setting"],
        ),
        ("sed -i /^key/d party.toml; fet party party.toml", 2, &["party.toml: `key` is missing"]),
        (
            "echo '[policy]\nmost_epsilon = -1' >> party.toml; fet party party.toml",
            2,
            &["`policy.most_epsilon` must be at least 0"],
        ),
        (
            "sed -i s/\\\"streets\\\"/\\\"rail\\\"/ party.toml; fet party party.toml",
            2,
            &["`party` must be one of the roster's parties (streets)"],
        ),
        (
            "sed -i s/streets.key/bank.key/ party.toml; fet party party.toml",
            2,
            &["party.toml: `key` is the key of", "the roster's key for streets is"],
        ),
        (
            "sed -i s/streets.csv/none.csv/ party.toml; fet party party.toml",
            2,
            &["none.csv: cannot be opened"],
        ),
        (
            "echo '[policy]\nlinkers = [\"nearst\"]' >> party.toml; fet party party.toml",
            2,
            &[
                "`policy.linkers` must name plug-ins that `fet list` shows; did you mean \"nearest\"?; it is \"nearst\"",
            ],
        ),
        (
            "mkdir -p state/party; touch state/party/ledger-0; echo other > state/table; fet party party.toml",
            2,
            &["`state` must be another folder", "of another table"],
        ),
        (
            "chmod 640 streets.key; fet party party.toml; c=$?; chmod 600 streets.key; exit $c",
            2,
            &["streets.key", "chmod 600"],
        ),
        (
            "sed -i 's/^data.*/data = { fil = \"streets.csv\" }/' party.toml; fet party party.toml",
            2,
            &["party.toml: `data.fil` is not a setting"],
        ),
        (
            "sed -i 's/^data.*/data = { file = \"streets.csv\", keys = [\"x\", \"y\"], columns = { lines = \"intger\" } }/' party.toml; fet party party.toml",
            2,
            &["party.toml: `data.columns"],
        ),
        (
            "for rows in 0 134217729 99999999999999999999; do code=0; fet party check party.toml --rows $rows || code=$?; [ $code = 2 ]; done; exit 2",
            2,
            &["--rows must be 1 to 134217728"],
        ),
        ("fet keys new bank.key", 2, &["bank.key exists", "never overwritten"]),
        ("fet keys show roster.toml", 2, &["roster.toml", "chmod 600"]),
        (
            "echo kept > hub.conf; fet hub config roster.toml --out hub.conf || { code=$?; cat hub.conf; exit $code; }",
            2,
            &["`hub` must set the server's address", "kept"],
        ),
        (
            "printf '[hub]\nport = 4222\ncertificate = \"c\"\nkey = \"k\"\n' >> roster.toml; for port in 443 444; do sed \"s|^server.*|server = \\\"wss://localhost:$port\\\"|\" roster.toml > by-$port.toml; done; fet hub config roster.toml by-443.toml > /dev/null && fet hub config by-443.toml roster.toml by-444.toml",
            2,
            &["by-444.toml: the port of the WebSocket must be equal to that of by-443.toml"],
        ),
        (
            "sed -i 's|^server.*|server = \"wss://localhost:4222\"|' roster.toml; printf '[hub]\ncertificate = \"c\"\nkey = \"k\"\n' >> roster.toml; fet hub config roster.toml",
            2,
            &["roster.toml: `hub.port` must differ from 4222"],
        ),
        (
            "sed -i 's|^server.*|server = \"wss://localhost:443\"|' roster.toml; printf '[hub]\nport = 4222\n' >> roster.toml; fet hub config roster.toml",
            2,
            &["roster.toml: `hub` must have `certificate` and `key`", "wss://"],
        ),
        (
            "sed -i 's|^server.*|server = \"tls://localhost:1, wss://localhost:2\"|' roster.toml; printf '[hub]\nport = 4222\n' >> roster.toml; fet hub config roster.toml",
            2,
            &["roster.toml: `server`", "mixes kinds of connections"],
        ),
        (
            "fet party bank.key 2> said2; c=$?; cat said2; if grep -q \"$(tail -1 bank.key)\" said2; then exit 9; fi; exit $c",
            2,
            &["bank.key: TOML parse error at line 2"],
        ),
        (
            "fet status bank.key 2>&1 | grep -c \"$(tail -1 bank.key)\"; fet status .",
            2,
            &["0\n", "no process works there"],
        ),
        ("fet status --check state; fet status --check party.toml", 1, &["no process works there"]),
        (
            "sed -i '/^server/a certificate = \"c.pem\"' roster.toml; fet party party.toml",
            2,
            &["roster.toml: `certificate` and `certificate_key` must be given together"],
        ),
        (
            "printf '[hub]\ncertificate = \"c\"\nkey = \"k\"\nverify = \"ca\"\n' >> roster.toml; fet hub config roster.toml",
            2,
            &["`hub.verify`", "`certificate` and `certificate_key`"],
        ),
        (
            "chmod 440 streets.key; fet party party.toml; c=$?; chmod 600 streets.key; exit $c",
            if is_root() { 75 } else { 2 },
            &["streets"],
        ),
        ("fet party prune party.toml", 2, &["`state`", "is not a folder"]),
        ("fet status nowhere", 2, &["nowhere does not exist; name the folder of a run"]),
        (
            "sed -i 's/^wait.*/wait = -1/' roster.toml; fet party party.toml",
            2,
            &["`wait` must be at least 0"],
        ),
        (
            "sed -i 's/^identity = \"U./identity = \"UZ/' roster.toml; fet party party.toml",
            2,
            &["`primary.identity`", "`fet keys show` prints it"],
        ),
        (
            "sed -i 's/^signing = \"./signing = \"x/' roster.toml; fet party party.toml",
            2,
            &["`parties[0].signing` must be the 64 hex digits"],
        ),
        (
            "(echo x,y,w,z; for i in 1 2 3 4 5 6 7 8 9; do echo $i,1,2,$i; done) > p.csv; fet run shops.toml --parties roster.toml --key streets.key --out r",
            2,
            &["is the key of", "the roster's primary is"],
        ),
    ] {
        let place = tempfile::tempdir().expect("a folder");
        let copied = Command::new("cp")
            .args(["-rp", ".", &place.path().display().to_string()])
            .current_dir(folder.path())
            .status();
        assert!(copied.is_ok_and(|copied| copied.success()));
        let (ended, said) = obeyed(lines, place.path(), PATIENCE);
        assert_eq!(ended.code(), Some(code), "{lines}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{lines}: {parts:?} in {said}");
        assert!(!place.path().join("r").exists(), "{lines}: something is left");
    }
}
