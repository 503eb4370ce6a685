//! Tests the owner's approval and the audit log with parties in separate processes: follows the guide, asks for more than was
//! approved, and damages a real log.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Output;

use super::command::fet;
use super::elsewhere::{GUIDE as DEPLOY, PATIENCE, free, nats, obeyed, script};

const GUIDE: &str = include_str!("../../../../docs/approval.md");

/// Returns a script that makes keys, files and the server, and ends in the folder `city`.
fn start(server: &Path) -> String {
    let (start, _) = DEPLOY.split_once("## 5. ").expect("a section on the parties");
    let start = script(&start.replace("4222", &free().to_string()));
    start.replace("../nats/bin/nats-server", &format!("'{}'", server.display()))
}

/// Returns the commands of a guide.
fn commands(guide: &str) -> String {
    script(guide).replacen("set -e\n", "", 1)
}

#[test]
fn follows_the_guide_to_approvals_verbatim() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (ended, said) =
        obeyed(&format!("{}{}", start(&server), commands(GUIDE)), folder.path(), 2 * PATIENCE);
    let city = folder.path().join("city");
    let read = |name: &str| fs::read_to_string(city.join(name)).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}\n{}", read("streets/party.log"));
    for part in [
        "the owner has not approved these settings",
        "5 x 32 numbers (640 bytes), in each of 20 epochs",
        "1 run, at most 1000 primary rows, 300 records for predictions",
        "\"agreed with the bank\"",
        "allows 1 runs, which are used up",
        "its owner revoked the approval",
        "lines are intact",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(said.matches("exit code 2\n").count(), 2, "{said}");
    assert_eq!(read("bank/predictions.csv").lines().count(), 201);
    assert!(!city.join("bank/again.csv").exists());
    let (log, events) = (read("streets/party.log"), read("streets/events.jsonl"));
    assert!(log.contains("refused Join: the approval") && log.contains("which are used up"), "{log}");
    assert!(read("weather/party.log").contains("refused Join: its owner revoked"), "{log}");
    // No key and no value of the table is in the log.
    for line in read("streets/streets.csv").lines().skip(1) {
        let (east, _) = line.split_once(',').expect("a key");
        assert!(!events.contains(&format!("\"{east}\"")) && !events.contains(line), "{line} in {events}");
    }
}

/// Commands after the start: each `check` expects exit code 2.
const REFUSALS: &str = r#"
fet party approve streets/party.toml --rows 1000 --predictions 500 > approved.txt
fet party approve weather/party.toml --standing > approved.txt
for party in streets weather; do
    (cd $party && exec fet party party.toml > party.log 2>&1) &
done
cd bank
bank="--parties roster.toml --key bank.key"
check() { "$@" && exit 9 || [ $? = 2 ]; }
check fet run shops.toml $bank --set train.epochs=21 --out other 2> epochs.log
fet run shops.toml $bank --out result
check fet run shops.toml $bank --out second 2> second.log
fet predict result --rows new.csv $bank --out one.csv
fet predict result --rows new.csv $bank --out two.csv
check fet predict result --rows new.csv $bank --out three.csv 2> three.log
cmp one.csv two.csv
fet party approvals ../streets/party.toml --json > approvals.json
# A service is a session that runs on when an approval is revoked.
fet party approve ../streets/party.toml --standing > approved.txt
fet serve result $bank --listen LISTEN --log json > serve.log &
until grep -q '"event":"ready"' serve.log; do sleep 0.1; done
fet predict http://LISTEN --rows new.csv --out served.csv
cmp one.csv served.csv
fet party revoke ../weather/party.toml all
fet predict http://LISTEN --rows new.csv --out revoked.csv --wait 1 2> revoked.log && exit 8
kill -INT $!; wait $! || true
cd ..
kill %2 %3; wait %2 %3 || true
(cd streets && fet log verify party.toml)
(cd weather && fet log verify party.toml)
kill $(jobs -p)
"#;

#[test]
fn refuses_more_than_was_approved_and_detects_a_damaged_log() {
    let Some(server) = nats() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (files, _) = GUIDE.split_once("## Preview").expect("a section on the outlook");
    let listen = format!("127.0.0.1:{}", free());
    let script = format!("{}{}{}", start(&server), commands(files), REFUSALS.replace("LISTEN", &listen));
    let (ended, said) = obeyed(&script, folder.path(), 2 * PATIENCE);
    let city = folder.path().join("city");
    let read =
        |name: &str| fs::read_to_string(city.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {said}"));
    assert!(ended.success(), "{ended}: {said}\n{}", read("streets/party.log"));
    let events = |party: &str| -> Vec<serde_json::Value> {
        let lines = read(&format!("{party}/state/party/audit.jsonl"));
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let streets = events("streets");
    let refusals: Vec<&str> = streets
        .iter()
        .filter(|event| event["event"] == "refused")
        .map(|event| event["message"].as_str().expect("a reason"))
        .collect();
    // Each refusal is in the primary's message, in the party's log and in the audit log.
    for (place, (log, parts)) in [
        ("epochs.log", &["Join: its owner has not approved", "`train.epochs` is 21", "is for 20"][..]),
        ("second.log", &["Join: the approval", "allows 1 runs, which are used up"][..]),
        (
            "three.log",
            &["Predict: the approval", "500 records for predictions; 400 are used, and this request has 200"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (primary, party) = (read(&format!("bank/{log}")), read("streets/party.log"));
        for part in parts {
            assert!(primary.contains(part), "{part} in {primary}");
            assert!(party.contains(part), "{part} in {party}");
            let (_, reason) = part.split_once(": ").unwrap_or(("", part));
            assert!(refusals[place].contains(reason), "{reason} in {refusals:?}");
        }
        assert!(primary.contains("\"streets\""), "{primary}");
    }
    assert_eq!(refusals.len(), 3, "{refusals:?}");
    for log in ["second", "other"] {
        assert!(!city.join("bank").join(log).join("report.json").exists(), "{log}");
    }
    // The revocation reached the session of the service.
    let weather = events("weather");
    let revoked = weather.iter().position(|event| event["event"] == "revoked").expect("a revocation");
    let after = &weather[revoked + 1..];
    let refused = after.iter().find(|event| event["event"] == "refused").expect("a refusal");
    assert_eq!(refused["request"], "Predict", "{refused}");
    assert!(refused["message"].as_str().is_some_and(|reason| reason.contains("revoked")), "{refused}");
    assert!(!city.join("bank/revoked.csv").exists());
    assert!(after.iter().all(|event| event["event"] != "predictions"), "{after:?}");
    // The log has the events of a run, with its sizes.
    let of = |name: &str| streets.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    // The session of the service can join again after the revocation.
    for (name, least, most) in
        [("started", 1, 1), ("stopped", 1, 1), ("approved", 2, 2), ("agreed", 5, 50), ("predictions", 3, 50)]
    {
        assert!((least..=most).contains(&of(name).len()), "{name} in {streets:?}");
    }
    let (agreed, linked, finished) = (of("agreed")[0], of("linked")[0], of("finished")[0]);
    assert_eq!((&agreed["rows"], &linked["rows"]), (&1000.into(), &1000.into()));
    assert_eq!((&agreed["run"], &agreed["purpose"]), (&finished["run"], &"run".into()));
    let report: serde_json::Value = serde_json::from_str(&read("bank/result/report.json")).expect("JSON");
    let traffic = &report["traffic_by_party"][0];
    assert_eq!(traffic["party"], "streets");
    // The report counts from the primary's side.
    assert_eq!(finished["bytes"], traffic["received"], "{finished} {traffic}");
    let approvals: serde_json::Value = serde_json::from_str(&read("bank/approvals.json")).expect("JSON");
    assert_eq!((&approvals[0]["state"], &approvals[0]["predictions"]), (&"used".into(), &400.into()));
    assert_eq!(approvals[0]["runs"].as_array().map(Vec::len), Some(1));
    check_damage(&city.join("streets"));
}

/// Damages a party's log in every way, and expects that `fet log verify` names the line.
fn check_damage(party: &Path) {
    let path = party.join("state/party/audit.jsonl");
    let text = fs::read_to_string(&path).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    let middle = lines.len() / 2;
    let number = middle + 1;
    let verify = |lines: &[&str], options: &[&str]| -> Output {
        fs::write(&path, lines.join("\n") + "\n").expect("writable");
        fet(party, &[&["log", "verify", "party.toml"], options].concat())
    };
    let removed = [&lines[..middle], &lines[middle + 1..]].concat();
    let changed_line = lines[middle].replacen("\"event\":\"", "\"event\":\"x", 1);
    let changed = [&lines[..middle], &[changed_line.as_str()], &lines[middle + 1..]].concat();
    let mut swapped = lines.clone();
    swapped.swap(middle, middle + 1);
    let copied = [&lines[..=middle], &lines[middle..]].concat();
    for (damaged, expected) in [
        (removed.as_slice(), format!("1 lines were removed before line {number}")),
        (&changed, format!("line {number} was changed")),
        (&swapped, format!("line {number} is not in its place: lines were reordered")),
        (&copied, format!("line {} was inserted", number + 1)),
        (&lines[..middle], "lines were removed at the end".to_string()),
    ] {
        let output = verify(damaged, &[]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{expected}: {output:?}");
        assert!(said.contains(&expected), "{expected} in {said}");
        let started = fet(party, &["party", "party.toml"]);
        let said = String::from_utf8_lossy(&started.stderr);
        assert_eq!(started.status.code(), Some(2), "{said}");
        assert!(said.contains("move the files audit.* away"), "{said}");
    }
    let noted: serde_json::Value = serde_json::from_str(lines[middle]).expect("JSON");
    let hash = noted["hash"].as_str().expect("a hash");
    let output = verify(&lines, &["--head", hash]);
    assert!(output.status.success(), "{output:?}");
    let output = verify(&lines, &["--head", &"0".repeat(64)]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
