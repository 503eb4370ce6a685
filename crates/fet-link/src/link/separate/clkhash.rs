//! Encodings by a clkhash schema, bit for bit equal to clkhash's, for collaboration with data holders who use
//! clkhash.

use std::collections::BTreeMap;
use std::path::Path;

use fet_data::read_verbatim;
use fet_linkage::bits::BitTable;
use fet_linkage::clkhash::{Encoder, Schema};
use fet_linkage::secret::{derive, for_project};
use serde_json::Value;

use super::secret::LEAST;
use fet_io::input::input;

/// Returns true if a text is a clkhash schema of any version, even if the JSON is damaged.
pub(super) fn is_theirs(text: &str) -> bool {
    let names = ["clkConfig", "features"];
    match serde_json::from_str::<Value>(text) {
        Ok(value) => names.iter().all(|name| value.get(name).is_some()),
        Err(_) => names.iter().all(|name| text.contains(&format!("\"{name}\""))),
    }
}

/// Parses the clkhash schema in the text of a file.
pub(super) fn parse(path: &Path, text: &str) -> anyhow::Result<Schema> {
    Schema::parse(text).map_err(|error| input(format!("--schema {}: {error}", path.display())))
}

/// Returns the names of the features that the schema encodes.
pub(super) fn encoded(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.identifiers().filter(|own| !own.ignored).map(|own| own.name)
}

/// Returns the filters of a table by a clkhash schema. `columns` names the column of each encoded feature.
pub(super) fn encode(
    schema: &Schema,
    table: &Path,
    columns: &[String],
    secret: &[u8],
) -> anyhow::Result<BitTable> {
    let cells = read_verbatim(table, columns).map_err(input)?;
    // The encoder skips the cells of ignored features.
    let mut cells = cells.into_iter();
    let mut all = Vec::with_capacity(cells.len() / columns.len().max(1) * schema.identifiers().len());
    while cells.len() > 0 {
        all.extend(
            schema.identifiers().map(|own| if own.ignored { None } else { cells.next() }.unwrap_or_default()),
        );
    }
    Encoder::new(schema, secret)
        .encode(&all)
        .map_err(|error| input(format!("{}: {error}; correct it, or the schema", table.display())))
}

/// Returns the fingerprint of encodings under this schema and secret.
///
/// Encodings under a short secret, which could be guessed, lack a fingerprint (like clkhash's own files):
/// the fingerprint would let others test their guesses.
pub(super) fn fingerprint(schema: &str, secret: &[u8]) -> Option<String> {
    let schema: Value = serde_json::from_str(schema).ok().filter(|_| secret.len() >= LEAST)?;
    let key = for_project(secret, b"clkhash", "fingerprint");
    Some(fet_io::hex(&derive(&key[..], &canonical(&schema).to_string())[..16]))
}

/// Returns the same JSON with sorted properties, independent of the order and spaces in the file.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> =
                map.iter().map(|(name, own)| (name, canonical(own))).collect();
            Value::Object(sorted.into_iter().map(|(name, own)| (name.clone(), own)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sixteen bytes it has";

    #[test]
    fn fingerprint_depends_on_the_content_of_a_schema_only() {
        let of = |text: &str| fingerprint(text, SECRET).expect("a fingerprint");
        let one = of(r#"{"version": 3, "clkConfig": {"l": 64, "kdf": {}}, "features": [1, 2]}"#);
        assert_eq!(one, of("{\"features\":[1,2],\r\n\"clkConfig\":{\"kdf\":{},\"l\":64},\"version\":3}\r\n"));
        assert_ne!(one, of(r#"{"version": 3, "clkConfig": {"l": 64, "kdf": {}}, "features": [2, 1]}"#));
        assert_ne!(one, of(r#"{"version": 3, "clkConfig": {"l": 128, "kdf": {}}, "features": [1, 2]}"#));
    }

    #[test]
    fn fingerprint_cannot_confirm_a_guessed_secret() {
        assert_eq!(fingerprint("{}", b"horse"), None);
        assert!(fingerprint("{}", SECRET).is_some());
    }

    #[test]
    fn recognises_a_damaged_schema_of_clkhash() {
        assert!(is_theirs(r#"{"version": 3 "clkConfig": {}, "features": []}"#));
        assert!(!is_theirs(r#"{"format": "fet linkage schema 1", "fields": []}"#));
    }
}
