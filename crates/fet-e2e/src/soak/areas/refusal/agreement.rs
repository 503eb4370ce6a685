//! Settings of a party that differ from the primary's: the message names the field and both values.

use super::case::{ASKING_PRIMARY, RefusalCase};
use super::change::edit;
use crate::soak::world::SoakWorld;

pub(super) const CASES: &[RefusalCase] = &[
    (
        "other epochs",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "epochs = 2", "epochs = 3"),
        &["epochs", "2", "3", "p1|party 1"],
    ),
    (
        "other batch size",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "batch_size = 64", "batch_size = 32"),
        &["batch_size", "64", "32"],
    ),
    (
        "other width",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "hidden = 8", "hidden = 16"),
        &["hidden", "16", "8"],
    ),
    (
        "other linker",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "\"nearest\"", "\"random\""),
        &["linker", "random", "nearest"],
    ),
    (
        "other neighbours",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "neighbours = 3", "neighbours = 4"),
        &["neighbours", "3", "4"],
    ),
    ("other seed", ASKING_PRIMARY, |w| edit(w, "p1/exp.toml", "seed = 0", "seed = 77"), &["seed", "77", "0"]),
    (
        "other mechanism",
        ASKING_PRIMARY,
        |w| add(w, "p1/exp.toml", "privacy = { kind = \"gaussian\" }\n"),
        &["privacy", "gaussian"],
    ),
    (
        "other aggregator",
        ASKING_PRIMARY,
        |w| add(w, "p1/exp.toml", "aggregator = { kind = \"sum\" }\n"),
        &["aggregator", "sum", "average"],
    ),
    (
        "other rows",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "rows = 240", "rows = 200"),
        &["rows|data", "240", "200"],
    ),
    (
        "other noise of keys",
        ASKING_PRIMARY,
        |w| edit(w, "p1/exp.toml", "key_noise = 0.05", "key_noise = 0.5"),
        &["key_noise|data"],
    ),
    (
        "settings at the primary",
        ASKING_PRIMARY,
        |w| edit(w, "primary/exp.toml", "heads = 2", "heads = 4"),
        &["heads", "2", "4"],
    ),
    (
        "settings by set",
        ASKING_PRIMARY,
        |w| edit(w, "p1/party.toml", "rehearsal = true", "rehearsal = true\nset = [\"train.epochs=9\"]"),
        &["epochs", "2", "9"],
    ),
    (
        "rehearsal at the primary alone",
        ASKING_PRIMARY,
        |w| edit(w, "p1/party.toml", "rehearsal = true", "rehearsal = false"),
        &["rehearsal", "true", "false", "p1"],
    ),
    (
        "rehearsal at the parties alone",
        ASKING_PRIMARY,
        |w| edit(w, "primary/roster.toml", "rehearsal = true", "rehearsal = false"),
        &["rehearsal", "true", "false", "p1"],
    ),
];

/// Inserts a text at the beginning of a file.
fn add(world: &SoakWorld<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    edit(world, path, "", text)
}
