//! Linkage schemas written before diffusion and salts existed (commit 83e2908). They can still be read, and
//! give the same encodings and fingerprints.

use fet_core::data::TextTable;
use fet_linkers::LinkageSchema;

/// Weighting, hardening, fingerprint, and a hash (FNV-1a over words) of the encodings.
const WRITTEN: [(&str, &str, &str, u64); 8] = [
    ("rarity", "none", "6cd841495bb35d145b7210751a9905ce", 0xfee2_4354_fb81_9822),
    ("rarity", "balanced", "f563b91e8c59778ceaf256612f82d970", 0xdf40_bec4_55ed_83b4),
    ("rarity", "xor-fold", "ddf4bbbdaacda1e542895d6ca0d3221c", 0x2405_11b0_c652_2bc2),
    ("rarity", "rehash", "75a7deb4e42bd044d0f054279ae0e5e6", 0x2ca9_e23f_5018_5852),
    ("entropy", "none", "31046f6485408f444eefc15705092366", 0x5192_4eb9_fcd4_d652),
    ("entropy", "balanced", "aa10c81774fca8db6178a31e5f83d589", 0xd92b_5deb_07bb_0306),
    ("entropy", "xor-fold", "6abe965ccf1a743749d7d23ab2403b40", 0x9744_b22f_7a29_7262),
    ("entropy", "rehash", "4246819e8e0a105a5c54f6a983606440", 0xcdeb_808d_d577_afd4),
];

fn written(weighting: &str, hardening: &str) -> String {
    let fields = match weighting {
        "rarity" => {
            r#"{"name":"given","group":0,"hashes":0,"unknown":972},{"name":"surname","group":1,"hashes":0,"unknown":788}"#
        }
        _ => {
            r#"{"name":"given","group":0,"hashes":5,"unknown":0},{"name":"surname","group":1,"hashes":3,"unknown":0}"#
        }
    };
    format!(
        r#"{{"format":"fet linkage schema 1","salt":"{}","bits":256,"q":3,"weighting":"{weighting}","hardening":"{hardening}","missing":[],"fields":[{fields}],"grams":{{}}}}"#,
        "07".repeat(16)
    )
}

#[test]
fn older_schemas_encode_as_before() {
    let cells = ["anna", "smith", "bert", "jones", "carl", "weber", "dora", "smith"];
    let table = TextTable::new(2, cells.iter().map(|cell| cell.to_string()).collect());
    let secret = b"a secret of two";
    for (weighting, hardening, fingerprint, hash) in WRITTEN {
        let text = written(weighting, hardening);
        let schema: LinkageSchema = serde_json::from_str(&text).expect("a schema");
        schema.check().expect("sound");
        assert_eq!(serde_json::to_string(&schema).expect("JSON"), text, "a missing setting is not written");
        assert_eq!(schema.fingerprint(secret), fingerprint, "{weighting}, {hardening}");
        let bits = schema.encode(secret, &table).expect("one form");
        let sum = bits.words().iter().fold(0u64, |sum, word| (sum ^ word).wrapping_mul(0x100_0000_01b3));
        assert_eq!(sum, hash, "{weighting}, {hardening}");
    }
}
