//! Encodings by a schema of clkhash: bit for bit its own, for owners of whom some use clkhash.

use std::path::Path;

use fet_data::read_texts;
use fet_linkage::clkhash::{Encoder, Schema};
use fet_linkage::secret::{derive, for_project};

use super::encodings::{Encodings, Score};
use crate::input::input;

/// Whether a schema's text is of clkhash, whatever its version.
pub(super) fn is_theirs(text: &str) -> bool {
    let read = serde_json::from_str::<serde_json::Value>(text);
    read.is_ok_and(|value| ["clkConfig", "features"].iter().all(|name| value.get(name).is_some()))
}

/// The encodings of a table by a schema of clkhash; `keys` are the names of the columns that it encodes, if they differ.
pub(super) fn encode(
    schema: &Path,
    text: &str,
    table: &Path,
    keys: &[String],
    secret: &[u8],
) -> anyhow::Result<Encodings> {
    let place = schema.display();
    let schema = Schema::parse(text).map_err(|error| input(format!("--schema {place}: {error}")))?;
    let encoded: Vec<String> =
        schema.identifiers().filter(|own| !own.ignored).map(|own| own.name.to_string()).collect();
    let columns = super::encode::columns(&place.to_string(), &encoded, keys)?;
    let cells = read_texts(table, &columns).map_err(input)?;
    // Ignored features have a place in a row, and nobody looks at it.
    let mut cells = cells.into_iter();
    let mut all = Vec::with_capacity(cells.len() / columns.len().max(1) * schema.identifiers().len());
    while cells.len() > 0 {
        all.extend(
            schema.identifiers().map(|own| if own.ignored { None } else { cells.next() }.unwrap_or_default()),
        );
    }
    let filters = Encoder::new(&schema, secret)
        .encode(&all)
        .map_err(|error| input(format!("{}: data {error}; mend it, or the schema", table.display())))?;
    let key = for_project(secret, b"clkhash", "fingerprint");
    let fingerprint = fet_files::hex(&derive(&key, text.trim())[..16]);
    Ok(Encodings { filters, fingerprint: Some(fingerprint), score: Score::Dice })
}
