//! Requirements of a run between processes: a method with parties, the parties' secret for a linker, signing
//! keys, tables.

use super::case::{ASKING_PRIMARY, PARTY, PRIMARY, RefusalCase};
use super::change::{edit, everywhere, secure, signing, write};
use crate::soak::world::SoakWorld;

pub(super) const CASES: &[RefusalCase] = &[
    (
        "method of the primary alone",
        PRIMARY,
        |w| everywhere(w, "\"fet\", hidden = 8, heads = 2", "\"solo\""),
        &["solo", "parties"],
    ),
    // The parties' secret for a linker.
    (
        "no secret at a party",
        ASKING_PRIMARY,
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
        ASKING_PRIMARY,
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
        ASKING_PRIMARY,
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

/// Selects a linker that needs the parties' secret.
fn sealed(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    let linker = "\"rotation\", secret_env = \"FET_SOAK_SECRET\", neighbours = 3";
    everywhere(world, "\"nearest\", neighbours = 3", linker)
}

fn unsigned(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    edit(world, "p1/roster.toml", &signing(world, "p2")?, "")
}

fn other_signing(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    edit(world, "p1/roster.toml", &signing(world, "p1")?, &signing(world, "stranger")?)
}

/// Replaces the signing key of party 1 in the roster of `member` by a stranger's key.
fn other_signing_at(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<()> {
    let path = format!("{member}/roster.toml");
    edit(world, &path, &signing(world, "p1")?, &signing(world, "stranger")?)
}
