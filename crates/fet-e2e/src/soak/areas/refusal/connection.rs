//! Connection to the server: certificates, addresses, keys and identities.

use std::os::unix::fs::PermissionsExt;

use anyhow::Context;

use super::case::{PARTY, PRIMARY, RefusalCase};
use super::change::{edit, remove, write};
use crate::soak::server::certificates;
use crate::soak::world::SoakWorld;

pub(super) const CASES: &[RefusalCase] = &[
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
    // The server requires TLS regardless of the roster, and no authority known to the system has signed its
    // certificate.
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
    (
        "other run, party",
        PARTY,
        |w| edit(w, "p1/roster.toml", "\"soak\"", "\"soap\""),
        &["run", "fet.soap.to.p1"],
    ),
    (
        "other run, primary",
        PRIMARY,
        |w| edit(w, "primary/roster.toml", "\"soak\"", "\"soap\""),
        &["run", "fet.soap."],
    ),
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
];

fn mode(world: &SoakWorld<'_>, path: &str, mode: u32) -> anyhow::Result<()> {
    Ok(std::fs::set_permissions(world.folder.join(path), std::fs::Permissions::from_mode(mode))?)
}

fn secret(world: &SoakWorld<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    write(world, path, text)?;
    mode(world, path, 0o600)
}

fn key(world: &SoakWorld<'_>, of: &str, to: &str) -> anyhow::Result<()> {
    world.kit.copy_key(of, &world.member_folder(to).join("own.key"))
}

/// Gives a member another key, which its own roster contains but the server does not know.
fn stranger(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<()> {
    key(world, "stranger", member)?;
    let line = |text: String| text.lines().next().unwrap_or_default().to_string();
    let (old, new) = (line(world.kit.public(member)?), line(world.kit.public("stranger")?));
    edit(world, &format!("{member}/roster.toml"), &old, &new)
}

fn server(world: &SoakWorld<'_>, member: &str, url: &str) -> anyhow::Result<()> {
    let old = format!("tls://127.0.0.1:{}", world.server.port);
    edit(world, &format!("{member}/roster.toml"), &old, url)
}

fn other_authority(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<()> {
    let other = world.folder.join("other");
    std::fs::create_dir_all(&other)?;
    certificates(&other)?;
    std::fs::copy(other.join("ca.pem"), world.member_folder(member).join("ca.pem")).context("ca.pem")?;
    Ok(())
}
