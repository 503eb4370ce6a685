//! What must not work: wrong files, wrong keys, other settings, and what a party's policy forbids. Each is refused with exit
//! code 2 and one message that names what is wrong; and no file is lost or changed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::case::{Case, End, Kind, Verdict};
use crate::experiment::{Data, Experiment};
use crate::kit::Kit;
use crate::message::problems;
use crate::process::Ended;
use crate::server::certificates;
use crate::world::World;

const AREA: &str = "refusal";

/// Who must refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The primary's command.
    Primary,
    /// The command of party 1.
    Party,
    /// The command of the primary, because party 1, which goes on serving, refuses.
    Asked,
}

/// What is changed in the folders of a run that would work otherwise.
type Change = fn(&World<'_>) -> anyhow::Result<()>;

/// A name, who refuses, what is changed, and what the message names: one text of each entry, of those that `|` separates.
type Line = (&'static str, Who, Change, &'static [&'static str]);

const PRIMARY: Who = Who::Primary;
const PARTY: Who = Who::Party;
const ASKED: Who = Who::Asked;

const LINES: &[Line] = &[
    // Certificates.
    (
        "other authority, primary",
        PRIMARY,
        |w| other_authority(w, "primary"),
        &["ca.pem", "not recognised|certificate"],
    ),
    (
        "other authority, party",
        PARTY,
        |w| other_authority(w, "p1"),
        &["ca.pem", "not recognised|certificate"],
    ),
    ("no authority file", PARTY, |w| remove(w, "p1/ca.pem"), &["ca.pem"]),
    ("empty authority file", PARTY, |w| write(w, "p1/ca.pem", ""), &["ca.pem"]),
    // The server asks for TLS, whatever the roster says; and its certificate is not of an authority that the system knows.
    (
        "without TLS",
        PARTY,
        |w| {
            edit(w, "p1/roster.toml", "tls://", "nats://")?;
            edit(w, "p1/roster.toml", "ca = \"ca.pem\"\n", "")
        },
        &["not recognised|certificate"],
    ),
    ("no such server", PARTY, |w| server(w, "p1", "tls://127.0.0.1:9"), &["127.0.0.1:9", "reached"]),
    (
        "no such server, primary",
        PRIMARY,
        |w| server(w, "primary", "tls://127.0.0.1:9"),
        &["127.0.0.1:9", "reached"],
    ),
    ("no address", PARTY, |w| server(w, "p1", "there"), &["there", "address"]),
    ("other host", PARTY, |w| edit(w, "p1/roster.toml", "127.0.0.1", "nosuch.invalid"), &["nosuch.invalid"]),
    // Keys and identities.
    ("unknown identity", PARTY, |w| stranger(w, "p1"), &["authorise"]),
    ("unknown identity, primary", PRIMARY, |w| stranger(w, "primary"), &["authorise"]),
    ("other key, party", PARTY, |w| key(w, "p2", "p1"), &["key", "party.toml", "p1"]),
    ("other key, primary", PRIMARY, |w| key(w, "p2", "primary"), &["key", "primary"]),
    ("strange key, party", PARTY, |w| key(w, "stranger", "p1"), &["key", "party.toml"]),
    (
        "exposed key, party",
        PARTY,
        |w| mode(w, "p1/own.key", 0o644),
        &["own.key", "chmod|read|mode|permission|others"],
    ),
    (
        "exposed key, primary",
        PRIMARY,
        |w| mode(w, "primary/own.key", 0o640),
        &["own.key", "chmod|read|mode|permission|others"],
    ),
    ("no key", PARTY, |w| remove(w, "p1/own.key"), &["own.key"]),
    ("empty key", PARTY, |w| secret(w, "p1/own.key", ""), &["own.key"]),
    (
        "damaged key",
        PARTY,
        |w| secret(w, "p1/own.key", "SUAMQIPANDKCZC2C6WKWBXDTA7XM2XHUCMR4KJEAC5SQNUVEFHR75VHIKX\n"),
        &["own.key"],
    ),
    (
        "public key for the key",
        PARTY,
        |w| {
            let public = w.kit.public("p1")?;
            secret(w, "p1/own.key", &public)
        },
        &["own.key"],
    ),
    // Rosters.
    (
        "name in the roster",
        PARTY,
        |w| edit(w, "p1/party.toml", "party = \"p1\"", "party = \"p9\""),
        &["p9", "p1"],
    ),
    (
        "name of another",
        PARTY,
        |w| edit(w, "p1/party.toml", "party = \"p1\"", "party = \"p2\""),
        &["key", "p2"],
    ),
    ("no run", PARTY, |w| edit(w, "p1/roster.toml", "run = \"soak\"\n", ""), &["roster.toml", "run"]),
    (
        "run with a dot",
        PARTY,
        |w| edit(w, "p1/roster.toml", "run = \"soak\"", "run = \"so.ak\""),
        &["roster.toml", "run", "so.ak"],
    ),
    (
        "no primary",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "[primary]", "[other]"),
        &["roster.toml", "primary|other"],
    ),
    (
        "unknown field",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "wait =", "wiat ="),
        &["roster.toml", "wiat"],
    ),
    (
        "negative wait",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "wait = 3", "wait = -3"),
        &["roster.toml", "wait"],
    ),
    (
        "damaged identity",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "identity = \"U", "identity = \"X"),
        &["roster.toml", "identity"],
    ),
    (
        "damaged signing",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", &signing(w, "p1")?, "signing = \"zz\""),
        &["roster.toml", "signing"],
    ),
    (
        "two of one name",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "name = \"p2\"", "name = \"p1\""),
        &["p1", "two"],
    ),
    ("no roster", PRIMARY, |w| remove(w, "primary/roster.toml"), &["roster.toml"]),
    (
        "roster is a folder",
        PARTY,
        |w| {
            remove(w, "p1/roster.toml")?;
            Ok(std::fs::create_dir(w.of("p1").join("roster.toml"))?)
        },
        &["roster.toml"],
    ),
    ("too few parties", PRIMARY, |w| fewer(w, "primary"), &["parties", "3", "2"]),
    (
        "authority is missing in text",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "ca = \"ca.pem\"\n", ""),
        &["not recognised|certificate"],
    ),
    // A party's own file.
    ("no party file", PARTY, |w| remove(w, "p1/party.toml"), &["party.toml"]),
    (
        "party file without a key",
        PARTY,
        |w| edit(w, "p1/party.toml", "key = \"own.key\"\n", ""),
        &["party.toml", "key"],
    ),
    (
        "unknown field of a party",
        PARTY,
        |w| edit(w, "p1/party.toml", "rehearsal = true", "rehersal = true"),
        &["party.toml", "rehersal"],
    ),
    ("unknown rule", PARTY, |w| policy(w, "most_epsilons = 1"), &["party.toml", "most_epsilons"]),
    ("rule of a wrong kind", PARTY, |w| policy(w, "linkers = 5"), &["party.toml", "linkers"]),
    ("unknown linker in a rule", PARTY, |w| policy(w, "linkers = [\"nosuch\"]"), &["nosuch"]),
    ("negative rule", PARTY, |w| policy(w, "most_epsilon = -1.0"), &["most_epsilon"]),
    ("no experiment", PARTY, |w| remove(w, "p1/exp.toml"), &["exp.toml"]),
    ("damaged experiment", PARTY, |w| write(w, "p1/exp.toml", "name = "), &["exp.toml"]),
    ("state is a file", PARTY, |w| write(w, "p1/state", "mine"), &["state"]),
    (
        "table for cut data",
        PARTY,
        |w| policy(w, "probes = false\n[data]\nfile = \"x.csv\""),
        &["secondaries"],
    ),
    (
        "unknown device",
        PARTY,
        |w| edit(w, "p1/party.toml", "rehearsal = true", "device = \"nosuch\""),
        &["device", "nosuch"],
    ),
    // Other settings at a party: the field, and both values.
    (
        "other epochs",
        ASKED,
        |w| edit(w, "p1/exp.toml", "epochs = 2", "epochs = 3"),
        &["epochs", "2", "3", "p1|party 1"],
    ),
    (
        "other batch size",
        ASKED,
        |w| edit(w, "p1/exp.toml", "batch_size = 64", "batch_size = 32"),
        &["batch_size", "64", "32"],
    ),
    ("other width", ASKED, |w| edit(w, "p1/exp.toml", "hidden = 8", "hidden = 16"), &["hidden", "16", "8"]),
    (
        "other linker",
        ASKED,
        |w| edit(w, "p1/exp.toml", "\"nearest\"", "\"random\""),
        &["linker", "random", "nearest"],
    ),
    (
        "other neighbours",
        ASKED,
        |w| edit(w, "p1/exp.toml", "neighbours = 3", "neighbours = 4"),
        &["neighbours", "3", "4"],
    ),
    ("other seed", ASKED, |w| edit(w, "p1/exp.toml", "seed = 0", "seed = 77"), &["seed", "77", "0"]),
    (
        "other mechanism",
        ASKED,
        |w| add(w, "p1/exp.toml", "privacy = { kind = \"gaussian\" }\n"),
        &["privacy", "gaussian"],
    ),
    (
        "other aggregator",
        ASKED,
        |w| add(w, "p1/exp.toml", "aggregator = { kind = \"sum\" }\n"),
        &["aggregator", "sum", "average"],
    ),
    (
        "other rows",
        ASKED,
        |w| edit(w, "p1/exp.toml", "rows = 240", "rows = 200"),
        &["rows|data", "240", "200"],
    ),
    (
        "other noise of keys",
        ASKED,
        |w| edit(w, "p1/exp.toml", "key_noise = 0.05", "key_noise = 0.5"),
        &["key_noise|data"],
    ),
    (
        "settings at the primary",
        ASKED,
        |w| edit(w, "primary/exp.toml", "heads = 2", "heads = 4"),
        &["heads", "2", "4"],
    ),
    (
        "settings by set",
        ASKED,
        |w| edit(w, "p1/party.toml", "rehearsal = true", "set = [\"train.epochs=9\"]"),
        &["epochs", "2", "9"],
    ),
    // What a policy forbids: the rule, and the value.
    ("policy: linkers", ASKED, |w| policy(w, "linkers = [\"psi\"]"), &["policy.linkers", "psi", "nearest"]),
    (
        "policy: mechanisms",
        ASKED,
        |w| policy(w, "mechanisms = [\"discrete-gaussian\"]"),
        &["policy.mechanisms", "none"],
    ),
    (
        "policy: aggregators",
        ASKED,
        |w| policy(w, "aggregators = [\"secure-average\"]"),
        &["policy.aggregators", "average"],
    ),
    ("policy: least_rows", ASKED, |w| policy(w, "least_rows = 1000"), &["policy.least_rows", "1000", "240"]),
    ("policy: least_noise without noise", ASKED, |w| policy(w, "least_noise = 1.0"), &["policy.least_noise"]),
    (
        "policy: most_epsilon without noise",
        ASKED,
        |w| policy(w, "most_epsilon = 1.0"),
        &["policy.most_epsilon"],
    ),
    (
        "policy: least_noise",
        ASKED,
        |w| {
            private(w)?;
            policy(w, "least_noise = 5.0")
        },
        &["policy.least_noise", "4", "5"],
    ),
    (
        "policy: most_epsilon",
        ASKED,
        |w| {
            private(w)?;
            policy(w, "most_epsilon = 0.5")
        },
        &["policy.most_epsilon", "0.5"],
    ),
    (
        "policy: least_summed",
        ASKED,
        |w| {
            secure(w)?;
            policy(w, "least_summed = 4")
        },
        &["policy.least_summed", "4", "3"],
    ),
    (
        "policy: most_epsilon is no number",
        PARTY,
        |w| {
            private(w)?;
            policy(w, "most_epsilon = nan")
        },
        &["most_epsilon"],
    ),
    (
        "policy: least_noise is no number",
        PARTY,
        |w| {
            private(w)?;
            policy(w, "least_noise = nan")
        },
        &["least_noise"],
    ),
    // What a run between processes cannot do.
    (
        "method of the primary alone",
        PRIMARY,
        |w| everywhere(w, "\"fet\", hidden = 8, heads = 2", "\"solo\""),
        &["solo", "parties"],
    ),
    // The parties' secret for a linker.
    (
        "no secret at a party",
        ASKED,
        |w| {
            sealed(w)?;
            write(w, "p1/secret", "")
        },
        &["secret_env|secret", "p1|party 1"],
    ),
    (
        "no secret at the primary",
        PRIMARY,
        |w| {
            sealed(w)?;
            write(w, "primary/secret", "short")
        },
        &["secret_env", "FET_SOAK_SECRET"],
    ),
    (
        "another secret at a party",
        ASKED,
        |w| {
            sealed(w)?;
            write(w, "p1/secret", "another secret of sixteen bytes")
        },
        &["secret"],
    ),
    (
        "secret from the seed, primary",
        PRIMARY,
        |w| {
            everywhere(w, "\"nearest\", neighbours = 3", "\"rotation\", neighbours = 3")?;
            edit(w, "primary/roster.toml", "rehearsal = true", "")
        },
        &["secret_env"],
    ),
    (
        "secret from the seed, party",
        PARTY,
        |w| {
            everywhere(w, "\"nearest\", neighbours = 3", "\"rotation\", neighbours = 3")?;
            edit(w, "p1/party.toml", "rehearsal = true", "")
        },
        &["secret_env"],
    ),
    (
        "no signing key in a secure sum",
        PARTY,
        |w| {
            secure(w)?;
            unsigned(w)
        },
        &["roster.toml", "signing"],
    ),
    (
        "signing key of another",
        PARTY,
        |w| {
            secure(w)?;
            other_signing(w)
        },
        &["roster.toml", "signing", "p1"],
    ),
    (
        "signing key of another at another",
        ASKED,
        |w| {
            secure(w)?;
            other_signing_at(w, "p2")
        },
        &["sign"],
    ),
    (
        "own table is missing",
        PRIMARY,
        |w| {
            edit(
                w,
                "primary/exp.toml",
                "source = { kind = \"digits\" }",
                "source = { kind = \"csv\", file = \"x.csv\", label = \"y\" }",
            )
        },
        &["x.csv"],
    ),
];

/// Lines of the short form: every third.
const SHORT: usize = 3;

pub(super) fn cases() -> Vec<Case> {
    let case = |(number, &(name, who, change, names)): (usize, &Line)| {
        Case::new(AREA, name, move |kit, folder, _| refused(kit, folder, name, who, change, names))
            .short(number % SHORT == 0)
    };
    let more = [
        Case::new(AREA, "a party that is absent", |kit, folder, _| absent(kit, folder)).short(true),
        Case::new(AREA, "two parties with one state", |kit, folder, _| one_state(kit, folder)).short(true),
        Case::new(AREA, "two primaries", |kit, folder, _| two_primaries(kit, folder)),
        Case::new(AREA, "two of one party", |kit, folder, _| two_parties(kit, folder)),
        Case::new(AREA, "a key that is there", |kit, folder, _| key_is_there(kit, folder)),
    ];
    LINES.iter().enumerate().map(case).chain(more).collect()
}

fn refused(
    kit: &Kit,
    folder: &Path,
    name: &str,
    who: Who,
    change: Change,
    names: &[&str],
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    change(&world)?;
    let before = files(folder)?;
    let patience = kit.patience(20);
    match who {
        Who::Party => {
            let ended = world.party("p1")?.wait(patience)?;
            judge("p1", &ended, codes(name), names, &mut verdict);
        }
        Who::Primary => {
            // Nothing is said against the others, where they serve.
            let _parties = world.parties()?;
            let ended = world.run(patience)?;
            judge("the primary", &ended, codes(name), names, &mut verdict);
        }
        Who::Asked => {
            let mut parties = world.parties()?;
            let ended = world.run(patience)?;
            judge("the primary", &ended, &[2], names, &mut verdict);
            world.check(&mut parties, &mut verdict)?;
            let written = ["report.json", "model.safetensors", "predictions.csv"];
            for name in written.iter().filter(|name| world.of("primary").join("out").join(name).exists()) {
                verdict.fault(Kind::Files, format!("a refused run left out/{name}"));
            }
        }
    }
    unchanged(&before, &mut verdict)?;
    world.panics(&mut verdict)?;
    Ok(verdict)
}

/// The exit codes that are right: what may be over by itself, such as a server that cannot be reached, is worth another try.
fn codes(name: &str) -> &'static [i32] {
    match name.starts_with("no such server") || name == "other host" {
        true => &[75],
        false => &[2],
    }
}

/// Holds an end against the exit codes that are right, and its message against what it must name.
fn judge(who: &str, ended: &Ended, codes: &[i32], names: &[&str], verdict: &mut Verdict) {
    if ended.hung {
        verdict.fault(Kind::Hang, format!("{who}: {}", ended.stderr));
        return;
    }
    if !ended.code.is_some_and(|code| codes.contains(&code)) {
        verdict
            .fault(Kind::WrongCode, format!("{who}: {}; right is {codes:?}: {}", ended.said(), ended.stderr));
    }
    if ended.code != Some(0) {
        for problem in problems(&ended.stderr, names) {
            verdict.fault(Kind::Unclear, format!("{who}: {problem}: {}", ended.stderr));
        }
    }
}

fn absent(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    let mut parties = world.parties()?;
    parties[1].kill();
    let ended = world.run(kit.patience(20))?;
    judge("the primary", &ended, &[2, 75], &["p2", "join", "3 s"], &mut verdict);
    // When it is there, the same command works.
    parties[1] = world.party("p2")?;
    let again = world.run(kit.patience(20))?;
    if again.code != Some(0) {
        verdict.fault(Kind::WrongCode, format!("with all there: {}: {}", again.said(), again.stderr));
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn one_state(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    edit(&world, "p2/party.toml", "state = \"state\"", "state = \"../p1/state\"")?;
    let first = world.party("p1")?;
    let began = std::time::Instant::now();
    while !first.stderr().contains("ready") && began.elapsed() < kit.patience(10) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = world.party("p2")?.wait(kit.patience(20))?;
    judge("p2", &second, &[2, 75], &["state", "another"], &mut verdict);
    drop(first);
    // One after the other: the folder is that of another party.
    world.panics(&mut verdict)?;
    Ok(verdict)
}

fn two_primaries(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Equal);
    let experiment = Experiment::new(Data::Digits).rows(0).with("train", "{ epochs = 4, batch_size = 64 }");
    let world = World::new(kit, folder, experiment, true, 10)?;
    let mut parties = world.parties()?;
    let mut first = world.primary()?;
    std::thread::sleep(std::time::Duration::from_millis(400));
    let mut second = world.primary()?;
    let ends = [first.wait(kit.patience(60))?, second.wait(kit.patience(60))?];
    for ended in &ends {
        judge("a primary", ended, &[0, 2, 75], &[], &mut verdict);
        verdict.note(format!("{}: {}", ended.said(), ended.stderr.lines().last().unwrap_or_default()));
    }
    if !ends.iter().any(|ended| ended.code == Some(0)) {
        let again = world.run(kit.patience(60))?;
        judge("the primary alone", &again, &[0], &[], &mut verdict);
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn two_parties(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Equal);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 5)?;
    edit(&world, "p1/party.toml", "state = \"state\"", "state = \"state\"\n")?;
    let other = world.of("p1").join("other.toml");
    std::fs::write(&other, world.party_file("p1", "", "").replace("\"state\"", "\"other\""))?;
    let mut parties = world.parties()?;
    let twice = crate::process::Process::start(&kit.fet, &["party", "other.toml"], &world.of("p1"), "party")?;
    let ended = world.run(kit.patience(60))?;
    judge("the primary", &ended, &[0, 2, 75], &[], &mut verdict);
    verdict.note(format!("{}: {}", ended.said(), ended.stderr.lines().last().unwrap_or_default()));
    drop(twice);
    let end = if ended.code == Some(0) { End::Equal } else { End::Refused };
    if ended.code == Some(0) {
        // Either of the two served.
        if !world.model("p1").exists() {
            let served = world.of("p1").join("other");
            std::fs::remove_dir_all(world.of("p1").join("state")).ok();
            std::fs::rename(served, world.of("p1").join("state"))?;
        }
        world.compare(&mut verdict)?;
    }
    verdict.end = end;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn key_is_there(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    let before = files(folder)?;
    let arguments = ["keys", "new", "own.key"];
    let mut process = crate::process::Process::start(&kit.fet, &arguments, &world.of("p1"), "keys")?;
    judge("fet keys new", &process.wait(kit.patience(20))?, &[2], &["own.key"], &mut verdict);
    unchanged(&before, &mut verdict)?;
    Ok(verdict)
}

/// The files below a folder, but for what processes print.
fn files(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut files(&path)?);
        } else if !path.extension().is_some_and(|end| end == "err" || end == "out") {
            found.insert(path.clone(), std::fs::read(&path)?);
        }
    }
    Ok(found)
}

fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, verdict: &mut Verdict) -> anyhow::Result<()> {
    for (path, bytes) in before {
        match std::fs::read(path) {
            Ok(now) if now == *bytes => {}
            Ok(_) => verdict.fault(Kind::Files, format!("changed: {}", path.display())),
            Err(error) => verdict.fault(Kind::Files, format!("{}: {error}", path.display())),
        }
    }
    Ok(())
}

fn write(world: &World<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    Ok(std::fs::write(world.folder.join(path), text)?)
}

fn remove(world: &World<'_>, path: &str) -> anyhow::Result<()> {
    Ok(std::fs::remove_file(world.folder.join(path))?)
}

fn edit(world: &World<'_>, path: &str, old: &str, new: &str) -> anyhow::Result<()> {
    let path = world.folder.join(path);
    let text = std::fs::read_to_string(&path)?;
    anyhow::ensure!(text.contains(old), "{} does not contain {old:?}", path.display());
    Ok(std::fs::write(&path, text.replacen(old, new, 1))?)
}

/// Before everything else in a file.
fn add(world: &World<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    edit(world, path, "", text)
}

/// In the experiment of all members.
fn everywhere(world: &World<'_>, old: &str, new: &str) -> anyhow::Result<()> {
    world.members().into_iter().try_for_each(|member| edit(world, &format!("{member}/exp.toml"), old, new))
}

/// With a linker that needs the parties' secret.
fn sealed(world: &World<'_>) -> anyhow::Result<()> {
    let linker = "\"rotation\", secret_env = \"FET_SOAK_SECRET\", neighbours = 3";
    everywhere(world, "\"nearest\", neighbours = 3", linker)
}

fn secure(world: &World<'_>) -> anyhow::Result<()> {
    everywhere(world, "method =", "aggregator = { kind = \"secure-average\" }\nmethod =")
}

fn private(world: &World<'_>) -> anyhow::Result<()> {
    everywhere(world, "method =", "privacy = { kind = \"discrete-gaussian\" }\nmethod =")?;
    everywhere(world, "[data]\n", "[data]\nbounds = [0.0, 16.0]\n")
}

fn policy(world: &World<'_>, rules: &str) -> anyhow::Result<()> {
    write(world, "p1/party.toml", &world.party_file("p1", "", &format!("\n[policy]\n{rules}\n")))
}

fn mode(world: &World<'_>, path: &str, mode: u32) -> anyhow::Result<()> {
    Ok(std::fs::set_permissions(world.folder.join(path), std::fs::Permissions::from_mode(mode))?)
}

fn secret(world: &World<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    write(world, path, text)?;
    mode(world, path, 0o600)
}

fn key(world: &World<'_>, of: &str, to: &str) -> anyhow::Result<()> {
    world.kit.copy_key(of, &world.of(to).join("own.key"))
}

/// A member with another key, of which its own roster knows and the server does not.
fn stranger(world: &World<'_>, member: &str) -> anyhow::Result<()> {
    key(world, "stranger", member)?;
    let line = |text: String| text.lines().next().unwrap_or_default().to_string();
    let (old, new) = (line(world.kit.public(member)?), line(world.kit.public("stranger")?));
    edit(world, &format!("{member}/roster.toml"), &old, &new)
}

fn server(world: &World<'_>, member: &str, url: &str) -> anyhow::Result<()> {
    let old = format!("tls://127.0.0.1:{}", world.server.port);
    edit(world, &format!("{member}/roster.toml"), &old, url)
}

fn other_authority(world: &World<'_>, member: &str) -> anyhow::Result<()> {
    let other = world.folder.join("other");
    std::fs::create_dir_all(&other)?;
    certificates(&other)?;
    std::fs::copy(other.join("ca.pem"), world.of(member).join("ca.pem")).context("ca.pem")?;
    Ok(())
}

/// A roster without its last party.
fn fewer(world: &World<'_>, member: &str) -> anyhow::Result<()> {
    let path = world.of(member).join("roster.toml");
    let text = std::fs::read_to_string(&path)?;
    let (last, hub) = (text.rfind("[[parties]]"), text.find("[hub]"));
    let (Some(last), Some(hub)) = (last, hub) else { anyhow::bail!("no such roster") };
    Ok(std::fs::write(&path, format!("{}{}", &text[..last], &text[hub..]))?)
}

fn signing(world: &World<'_>, member: &str) -> anyhow::Result<String> {
    Ok(world.kit.public(member)?.lines().nth(1).unwrap_or_default().to_string())
}

fn unsigned(world: &World<'_>) -> anyhow::Result<()> {
    edit(world, "p1/roster.toml", &signing(world, "p2")?, "")
}

fn other_signing(world: &World<'_>) -> anyhow::Result<()> {
    edit(world, "p1/roster.toml", &signing(world, "p1")?, &signing(world, "stranger")?)
}

/// At `member`, party 1 has the signing key of a stranger.
fn other_signing_at(world: &World<'_>, member: &str) -> anyhow::Result<()> {
    let path = format!("{member}/roster.toml");
    edit(world, &path, &signing(world, "p1")?, &signing(world, "stranger")?)
}
