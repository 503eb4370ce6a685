//! Keys made by Python's clkhash (`clkhash/make.py`), and rows that it refuses. This crate must agree in
//! both.

use std::fs;
use std::path::{Path, PathBuf};

use fet_linkage::clkhash::{Encoder, Schema, from_base64, read_clks, to_base64, write_clks};
use serde::Deserialize;

/// A schema with rows, clkhash's keys of these rows, and rows that clkhash refuses.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    schema: serde_json::Value,
    secret: String,
    rows: Vec<Vec<String>>,
    clks: Vec<String>,
    refused: Vec<Vec<String>>,
}

fn golden() -> Vec<(PathBuf, Golden)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clkhash");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let golden =
            serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("a golden file");
        (path, golden)
    };
    paths.into_iter().map(read).collect()
}

fn schema(golden: &Golden) -> Schema {
    Schema::parse(&golden.schema.to_string()).expect("clkhash reads it")
}

#[test]
fn every_key_is_clkhashs_own() {
    let all = golden();
    assert_eq!(all.len(), 13);
    for (path, golden) in all {
        let encoder = Encoder::new(&schema(&golden), golden.secret.as_bytes());
        let table = encoder.encode(&golden.rows.concat()).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let made: Vec<String> = (0..table.rows()).map(|row| to_base64(table.row(row))).collect();
        assert_eq!(made, golden.clks, "{path:?}");
        assert_eq!(table.bits(), schema(&golden).bits());
        let one_of_them = from_base64(&golden.clks[0]).unwrap();
        assert_eq!(one_of_them, table.row(0));
        assert_eq!(read_clks(&write_clks(&table)).unwrap(), table);
    }
}

/// A refused row follows the accepted rows, and the message names it.
#[test]
fn every_row_that_clkhash_refuses_is_refused() {
    for (path, golden) in golden() {
        let encoder = Encoder::new(&schema(&golden), golden.secret.as_bytes());
        for row in &golden.refused {
            let cells = [golden.rows.concat(), row.clone()].concat();
            let message = match encoder.encode(&cells) {
                Ok(_) => panic!("{path:?}: {row:?} is accepted"),
                Err(error) => error.to_string(),
            };
            let start = format!("row {} (from 0), ", golden.rows.len());
            assert!(message.starts_with(&start), "{path:?}: {message}");
        }
    }
}
