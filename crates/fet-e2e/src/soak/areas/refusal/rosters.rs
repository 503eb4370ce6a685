//! Invalid rosters, and invalid files of a party.

use super::case::{PARTY, PRIMARY, RefusalCase};
use super::change::{edit, policy, remove, signing, write};
use crate::soak::world::SoakWorld;

pub(super) const CASES: &[RefusalCase] = &[
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
            Ok(std::fs::create_dir(w.member_folder("p1").join("roster.toml"))?)
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
    // A party's file.
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
];

/// Removes the last party from a roster.
fn fewer(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<()> {
    let path = world.member_folder(member).join("roster.toml");
    let text = std::fs::read_to_string(&path)?;
    let (last, hub) = (text.rfind("[[parties]]"), text.find("[hub]"));
    let (Some(last), Some(hub)) = (last, hub) else { anyhow::bail!("no such roster") };
    Ok(std::fs::write(&path, format!("{}{}", &text[..last], &text[hub..]))?)
}
