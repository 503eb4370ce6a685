//! Linkage schemas that an earlier program wrote: they are read, and give its encodings and fingerprints.

use fet_core::data::TextTable;
use fet_linkers::{ClkSettings, LinkageSchema};

#[test]
fn print() {
    let cells = ["anna", "smith", "bert", "jones", "carl", "weber", "dora", "smith"];
    let table = TextTable::new(2, cells.iter().map(|cell| cell.to_string()).collect());
    let names = ["given".to_string(), "surname".to_string()];
    for weighting in ["rarity", "entropy"] {
        for hardening in ["none", "balanced", "xor-fold", "rehash"] {
            let settings: ClkSettings =
                toml::from_str(&format!("bits = 256\nweighting = '{weighting}'\nhardening = '{hardening}'"))
                    .expect("TOML");
            let schema = LinkageSchema::learn(&settings, &names, [7; 16], b"a secret of two", &table)
                .expect("a schema");
            let bits = schema.encode(b"a secret of two", &table);
            let sum = bits.words().iter().fold(0u64, |sum, word| (sum ^ word).wrapping_mul(0x100_0000_01b3));
            println!(
                "{}\n{} {:016x}",
                serde_json::to_string(&schema).expect("JSON"),
                schema.fingerprint(b"a secret of two"),
                sum
            );
        }
    }
}
