//! Invalid linkage schemas, values and files of CLKs: each is refused with one clear sentence.

use fet_linkage::clkhash::{Encoder, Identifier, Schema, from_base64, read_clks};
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "version": 3,
        "clkConfig": { "l": 128, "xor_folds": 1, "kdf": { "type": "HKDF" } },
        "features": [
            { "identifier": "id", "ignored": true },
            {
                "identifier": "name",
                "format": { "type": "string", "maxLength": 5 },
                "hashing": {
                    "comparison": { "type": "ngram", "n": 2 },
                    "strategy": { "bitsPerToken": 3 },
                    "hash": { "type": "blakeHash" }
                }
            }
        ]
    })
}

/// Returns the schema `good` with another value at a JSON pointer. A missing property is added, and `null`
/// removes a property.
fn with(pointer: &str, value: &Value) -> String {
    let mut schema = good();
    let (parent, name) = pointer.rsplit_once('/').expect("a JSON pointer has a slash");
    let parent = schema.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
    match (parent, value) {
        (Value::Object(map), Value::Null) => drop(map.remove(name).expect(pointer)),
        (Value::Object(map), value) => drop(map.insert(name.into(), value.clone())),
        (Value::Array(items), value) => items[name.parse::<usize>().expect(pointer)] = value.clone(),
        _ => panic!("{pointer}"),
    }
    schema.to_string()
}

fn refused(json: &str) -> String {
    Schema::parse(json).expect_err(json).to_string()
}

fn check(cases: &[(&str, Value, &str)]) {
    for (pointer, value, message) in cases {
        assert_eq!(&refused(&with(pointer, value)), message, "{pointer} {value}");
    }
}

#[test]
fn the_schema_that_the_others_come_from_is_read() {
    let schema = Schema::parse(&good().to_string()).unwrap();
    assert_eq!(schema.bits(), 128);
    let names = [Identifier { name: "id", ignored: true }, Identifier { name: "name", ignored: false }];
    assert!(schema.identifiers().eq(names));
    // An ignored feature need not be readable.
    Schema::parse(&with("/features/1/ignored", &json!(true))).unwrap();
    let lookahead = json!({ "identifier": "x", "ignored": true, "format": { "type": "string", "pattern": "(?=a)" }, "hashing": {} });
    Schema::parse(&with("/features/0", &lookahead)).unwrap();
}

#[test]
fn of_the_frame() {
    assert!(refused("{").starts_with("the schema is not JSON: "));
    assert_eq!(refused("[]"), "$: must be an object; it is []");
    let old = |version| {
        format!(
            "the schema has version {version}, but only version 3 is supported: convert it with clkhash's function \
             clkhash.schema.convert_to_latest_version, which preserves the encoding"
        )
    };
    check(&[
        ("/version", json!(1), &old(1)),
        ("/version", json!(2), &old(2)),
        ("/version", json!(4), "$.version: must be 3; it is 4"),
        ("/version", json!("3"), "$.version: must be a number; it is \"3\""),
        ("/version", Value::Null, "$: the property version is missing"),
        ("/clkConfig", Value::Null, "$: the property clkConfig is missing"),
        ("/features", Value::Null, "$: the property features is missing"),
        ("/features", json!({}), "$.features: must be an array; it is {}"),
        ("/features", json!([]), "$.features: must have at least one feature; it is []"),
        (
            "/name",
            json!("x"),
            "$.name: is an unknown property (known: version, clkConfig, features); it is \"x\"",
        ),
    ]);
}

#[test]
fn of_the_configuration() {
    let at = "$.clkConfig";
    check(&[
        ("/clkConfig/l", Value::Null, "$.clkConfig: the property l is missing"),
        ("/clkConfig/kdf", Value::Null, "$.clkConfig: the property kdf is missing"),
        ("/clkConfig/l", json!(0), &format!("{at}.l: must be a whole number from 1 to 524288; it is 0")),
        (
            "/clkConfig/l",
            json!(128.0),
            &format!("{at}.l: must be a whole number from 1 to 524288; it is 128.0"),
        ),
        (
            "/clkConfig/l",
            json!(true),
            &format!("{at}.l: must be a whole number from 1 to 524288; it is true"),
        ),
        ("/clkConfig/l", json!(1000), &format!("{at}.l: must be a multiple of 64; it is 1000")),
        (
            "/clkConfig/l",
            json!(192),
            &format!("{at}.l: must be a power of two if a feature uses blakeHash; it is 192"),
        ),
        (
            "/clkConfig/xor_folds",
            json!(-1),
            &format!("{at}.xor_folds: must be a whole number from 0 to 14; it is -1"),
        ),
        ("/clkConfig/kdf/type", Value::Null, "$.clkConfig.kdf: the property type is missing"),
        (
            "/clkConfig/kdf/type",
            json!("legacy"),
            "$.clkConfig.kdf.type: must be one of HKDF; it is \"legacy\"",
        ),
        (
            "/clkConfig/kdf/hash",
            json!("SHA1"),
            "$.clkConfig.kdf.hash: must be one of SHA256, SHA512; it is \"SHA1\"",
        ),
        (
            "/clkConfig/kdf/keySize",
            json!(65),
            "$.clkConfig.kdf.keySize: must be at most 64 if a feature uses blakeHash; it is 65",
        ),
        (
            "/clkConfig/kdf/keySize",
            json!(0),
            "$.clkConfig.kdf.keySize: must be a whole number from 1 to 16320; it is 0",
        ),
        ("/clkConfig/kdf/salt", json!(7), "$.clkConfig.kdf.salt: must be a string; it is 7"),
        (
            "/clkConfig/kdf/iterations",
            json!(7),
            "$.clkConfig.kdf.iterations: is an unknown property (known: type, hash, salt, info, keySize); it is 7",
        ),
    ]);
    let salt = refused(&with("/clkConfig/kdf/salt", &json!("a b=")));
    assert!(salt.starts_with("$.clkConfig.kdf.salt: must be base64: "), "{salt}");
    let folds = refused(&with("/clkConfig/xorFolds", &json!(1)));
    assert!(
        folds.starts_with("$.clkConfig: must use xor_folds for folding, since clkhash ignores xorFolds"),
        "{folds}"
    );
    let many = vec![json!({ "identifier": "x", "ignored": true }); 64];
    let keys = refused(&with("/features", &json!(many)));
    assert!(keys.contains("for each of 64 features, but HKDF gives at most 8160 bytes"), "{keys}");
}

#[test]
fn of_a_feature() {
    let at = "$.features[1]";
    let hashing = |place: &str| format!("/features/1/hashing/{place}");
    check(&[
        ("/features/1", json!("name"), &format!("{at}: must be an object; it is \"name\"")),
        ("/features/1/identifier", Value::Null, &format!("{at}: the property identifier is missing")),
        ("/features/1/format", Value::Null, &format!("{at}: the property format is missing")),
        ("/features/1/hashing", Value::Null, &format!("{at}: the property hashing is missing")),
        ("/features/1/ignored", json!(1), &format!("{at}.ignored: must be true or false; it is 1")),
        ("/features/1/description", json!(1), &format!("{at}.description: must be a string; it is 1")),
        ("/features/0/ignored", json!(false), "$.features[0]: the property format is missing"),
        (
            &hashing("strategy"),
            json!({}),
            &format!("{at}.hashing.strategy: the property bitsPerToken is missing"),
        ),
        (
            &hashing("strategy/bitsPerFeature"),
            json!(1),
            &format!(
                "{at}.hashing.strategy.bitsPerToken: is an unknown property (known: bitsPerFeature); it is 3"
            ),
        ),
        (
            &hashing("strategy/bitsPerToken"),
            json!(0),
            &format!("{at}.hashing.strategy.bitsPerToken: must be a whole number from 1 to 1048576; it is 0"),
        ),
        (
            &hashing("hash/prevent_singularity"),
            json!(true),
            &format!(
                "{at}.hashing.hash.prevent_singularity: is an unknown property (known: type); it is true"
            ),
        ),
        (
            &hashing("missingValue"),
            json!({}),
            &format!("{at}.hashing.missingValue: the property sentinel is missing"),
        ),
        (
            &hashing("comparison/type"),
            json!("soundex"),
            &format!("{at}.hashing.comparison.type: must be one of ngram, exact, numeric; it is \"soundex\""),
        ),
        (
            &hashing("comparison/n"),
            Value::Null,
            &format!("{at}.hashing.comparison: the property n is missing"),
        ),
        (
            &hashing("comparison/n"),
            json!(0),
            &format!("{at}.hashing.comparison.n: must be a whole number from 1 to 1000; it is 0"),
        ),
        (
            &hashing("comparison"),
            json!({ "type": "numeric", "thresholdDistance": 0, "resolution": 1 }),
            &format!("{at}.hashing.comparison.thresholdDistance: must be above 0; it is 0"),
        ),
        (
            &hashing("comparison"),
            json!({ "type": "numeric", "thresholdDistance": 0.004, "resolution": 1, "fractional_precision": 2 }),
            &format!(
                "{at}.hashing.comparison.thresholdDistance: must not be 0 when rounded to fractional_precision \
                 digits; it is 0.004"
            ),
        ),
        (
            &hashing("comparison"),
            json!({ "type": "numeric", "thresholdDistance": 1, "resolution": 1, "fractionalPrecision": 2 }),
            &format!(
                "{at}.hashing.comparison.fractionalPrecision: is an unknown property (known: type, \
                 thresholdDistance, resolution, fractional_precision); it is 2"
            ),
        ),
    ]);
}

#[test]
fn of_a_format() {
    let at = "$.features[1].format";
    let format = |value: Value| ("/features/1/format", value);
    let date = |format: &str| json!({ "type": "date", "format": format });
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let cases = [
        (format(json!({})), ": the property type is missing"),
        (
            format(json!({ "type": "float" })),
            ".type: must be one of string, integer, date, enum; it is \"float\"",
        ),
        (format(json!({ "type": "date" })), ": the property format is missing"),
        (format(json!({ "type": "enum" })), ": the property values is missing"),
        (format(json!({ "type": "enum", "values": [1] })), ".values[0]: must be a string; it is 1"),
        (
            format(json!({ "type": "string", "encoding": "latin-1" })),
            ".encoding: must be one of ascii, utf-8, utf-16, utf-32; it is \"latin-1\"",
        ),
        (
            format(json!({ "type": "string", "case": "title" })),
            ".case: must be one of upper, lower, mixed; it is \"title\"",
        ),
        (
            format(json!({ "type": "string", "pattern": "a", "case": "lower" })),
            ".case: is an unknown property (known: type, encoding, pattern, description); it is \"lower\"",
        ),
        (
            format(json!({ "type": "integer", "minimum": 0.5 })),
            ".minimum: must be a whole number from -9223372036854775808 to 9223372036854775807; it is 0.5",
        ),
        (format(date("%Y-%V")), ".format: must not use %V, which is not supported; it is \"%Y-%V\""),
        (format(date("%Y-%Q")), ".format: must not use %Q, which strptime does not have; it is \"%Y-%Q\""),
        (format(date("%Y-%Y")), ".format: must not use %Y twice; it is \"%Y-%Y\""),
        (format(date("%Y%")), ".format: must not end in a single %; it is \"%Y%\""),
        (format(pattern("a**")), ".pattern: must not repeat a repetition; it is \"a**\""),
        (format(pattern("a{2}+")), ".pattern: must not repeat a repetition; it is \"a{2}+\""),
        (format(pattern("(a")), ".pattern: must close its groups; it is \"(a\""),
        (format(pattern("a)")), ".pattern: must not close a group that is not open; it is \"a)\""),
        (format(pattern("[a")), ".pattern: must close its classes; it is \"[a\""),
        (format(pattern("a|{2}")), ".pattern: must have an item before each repetition; it is \"a|{2}\""),
        (format(pattern("*a")), ".pattern: must have an item before each repetition; it is \"*a\""),
        (format(pattern("a$b")), ".pattern: must use $ only at an end; it is \"a$b\""),
        (format(pattern(r"(a)\1")), ".pattern: must not use \\1, which is not supported; it is \"(a)\\\\1\""),
        (
            format(pattern(r"a\b")),
            ".pattern: must not use \\b: Python has other word boundaries; it is \"a\\\\b\"",
        ),
    ];
    for ((pointer, value), message) in cases {
        assert_eq!(refused(&with(pointer, &value)), format!("{at}{message}"), "{value}");
    }
    for look in ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?P=x)", "(?>a)", "(?m)a", "a(?i)", "(?(1)a)"] {
        let message = refused(&with("/features/1/format", &pattern(look)));
        assert!(
            message.contains("look-around, references and other extensions are not supported"),
            "{message}"
        );
    }
}

#[test]
fn of_values() {
    let schema = Schema::parse(&good().to_string()).unwrap();
    let encoder = Encoder::new(&schema, b"secret");
    let refused = |cells: &[&str]| encoder.encode(cells).unwrap_err().to_string();
    assert_eq!(
        refused(&["1", "short", "2", "longer", "3", "longest"]),
        "row 1 (from 0), name: the value must have at most 5 characters; it is \"longer\""
    );
    assert_eq!(refused(&["1", "short", "2"]), "3 cells are not whole rows of 2 features");
    // The error names the first of many refused rows, also at the boundary between threads.
    let mut cells = vec!["1"; 20_000];
    (cells[15_001], cells[9_003], cells[19_999]) = ("second one", "first one", "third one");
    assert_eq!(
        refused(&cells),
        "row 4501 (from 0), name: the value must have at most 5 characters; it is \"first one\""
    );
    assert_eq!(encoder.encode::<&str>(&[]).unwrap().rows(), 0);
    assert!(!format!("{encoder:?}").contains("secret"));
}

#[test]
fn of_files_of_clks() {
    let refused = |json: &str| read_clks(json).unwrap_err().to_string();
    assert_eq!(refused(r#"{"clks": []}"#), "a file of CLKs must contain at least one CLK");
    assert_eq!(
        refused(r#"{"clks": ["AAA="]}"#),
        "the number of bits of a CLK must be a multiple of 64; it is 16"
    );
    assert_eq!(refused(r#"{"clks": [""]}"#), "the number of bits of a CLK must be a multiple of 64; it is 0");
    let (one, two) = ("AAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(
        refused(&format!(r#"{{"clks": ["{one}", "{two}"]}}"#)),
        "CLK 2 has 128 bits; the first has 64"
    );
    let no_base64 = refused(&format!(r#"{{"clks": ["{one}", "{one}", "?"]}}"#));
    assert!(no_base64.starts_with("CLK 3 is not base64: "), "{no_base64}");
    for form in ["", "[]", "{}", r#"{"clks": "x"}"#, r#"{"clks": [1]}"#, r#"{"clks": [], "more": 1}"#] {
        assert!(
            refused(form).starts_with("a file of CLKs must have the form {\"clks\": [\"…\", …]}: "),
            "{form}"
        );
    }
    // Bit 0 is the highest bit of the first byte, and bit 63 the lowest bit of the eighth.
    assert_eq!(from_base64("gAAAAAAAAAE=").unwrap(), [1 | 1 << 63]);
}
