//! Every linker's links on fixed keys and a fixed seed, so that tests detect any change.
//!
//! The figures are from the code before linkers had two sides, and for `clk` from the introduction of weights
//! by the square of rarity. Similarities are rounded to four digits, since processors round differently beyond.

use fet_core::data::{Keys, Matrix, TextTable};
use fet_core::linker::{Linker, Links};
use fet_core::registry::Slot;
use fet_core::rng::{Purpose, stream};
use fet_linkers as _;
use rand::RngExt;
use sha2::{Digest, Sha256};

fn points(rows: usize, round: u64) -> Keys {
    let mut rng = stream(7, 0, Purpose::Linking, round);
    Matrix::new(2, (0..rows * 2).map(|_| rng.random::<f64>()).collect()).into()
}

/// Returns numbers with so few distinct values that some keys are equal.
fn grid(rows: usize, round: u64) -> Keys {
    let mut rng = stream(7, 0, Purpose::Linking, round);
    Matrix::new(2, (0..rows * 2).map(|_| f64::from(rng.random_range(0..12u8))).collect()).into()
}

fn names(rows: usize, round: u64) -> Keys {
    let mut rng = stream(7, 0, Purpose::Linking, round);
    let mut word = || (0..2).map(|_| char::from(b'a' + rng.random_range(0..5u8))).collect::<String>();
    Keys::Text(TextTable::new(2, (0..rows * 2).map(|_| word()).collect()))
}

fn link(settings: &str, queries: &Keys, records: &Keys) -> Links {
    let slot =
        Slot::<dyn Linker>::from_table(toml::from_str(settings).expect("TOML")).expect("sound settings");
    let linker = slot.build(&()).expect("sound settings");
    fet_core::linker::link(linker.as_ref(), queries, records, 11, &|_| ()).expect("linkable")
}

fn hash(words: impl Iterator<Item = i64>) -> String {
    let mut hash = Sha256::new();
    words.for_each(|word| hash.update(word.to_le_bytes()));
    hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn links_are_what_they_were() {
    let cases: &[(&str, &str, &str)] = &[
        ("points", "73aa19e05262", "kind = 'nearest'"),
        ("points", "d2a4378779ee", "kind = 'nearest'\nmetric = 'haversine'"),
        ("points", "faf6941e6cb4", "kind = 'nearest'\nneighbours = 150\npad = true"),
        ("points", "cfdaca31d782", "kind = 'top1'"),
        ("points", "73aa19e05262", "kind = 'hnsw'"),
        ("points", "73aa19e05262", "kind = 'rotation'"),
        ("points", "54c966cce163", "kind = 'federal'"),
        ("points", "895b0ce0f154", "kind = 'federal'\nneighbours = 150\npad = true"),
        ("points", "33549bb14e4f", "kind = 'noisy'"),
        ("grid", "e22e953907d3", "kind = 'noisy'\nleak = 0.999\ninner = { kind = 'psi', neighbours = 3 }"),
        ("grid", "87f37e2b88e0", "kind = 'exact'\nneighbours = 3"),
        ("grid", "87f37e2b88e0", "kind = 'psi'\nneighbours = 3"),
        ("points", "174ecc5a0dd3", "kind = 'random'"),
        ("text", "a46c65f73a87", "kind = 'exact'\nneighbours = 3"),
        ("text", "a46c65f73a87", "kind = 'psi'\nneighbours = 3"),
        ("text", "174ecc5a0dd3", "kind = 'random'"),
        ("text", "1156474bfda1", "kind = 'edit'"),
        ("text", "de57e1d08a7f", "kind = 'tfidf'"),
        ("text", "68c8f3cadf8a", "kind = 'clk'"),
        ("text", "83bdd9dea037", "kind = 'clk'\nweighting = 'entropy'\nbits = 1024"),
        ("text", "88b7923bf06b", "kind = 'clk'\nhardening = 'rehash'\nneighbours = 150\npad = true"),
        ("text", "68c8f3cadf8a", "kind = 'clk'\nblock_bits = 8"),
    ];
    for (kind, expected, settings) in cases {
        let keys = match *kind {
            "text" => names,
            "grid" => grid,
            _ => points,
        };
        let links = link(settings, &keys(60, 1), &keys(120, 2));
        let similarities = links.all_similarities().unwrap_or_default().iter();
        let rounded = similarities.map(|&s| (f64::from(s) * 1e4).round() as i64);
        let found = hash(links.all_indices().iter().map(|&index| i64::from(index)).chain(rounded));
        assert_eq!(found, *expected, "{kind}: {settings}");
    }
}

/// A surname may be Null. The settings list the texts that count as missing in addition to empty cells.
#[test]
fn missing_marks_are_a_setting_of_every_linker_of_texts() {
    let keys =
        |cells: &[&str]| Keys::Text(TextTable::new(1, cells.iter().map(|cell| cell.to_string()).collect()));
    let (queries, records) = (keys(&["Null", "N/A", "smith", ""]), keys(&["null", "n/a", "smith", ""]));
    for kind in ["exact", "psi", "edit", "clk", "tfidf"] {
        let linked = |missing: &str| {
            let links =
                link(&format!("kind = '{kind}'\nneighbours = 1\nmissing = {missing}"), &queries, &records);
            [0, 1, 2, 3].map(|row| links.similarities(row).is_some_and(|s| s[0] > 0.9))
        };
        assert_eq!(linked("[]"), [true, true, true, false], "{kind}");
        assert_eq!(linked("['N/A']"), [true, false, true, false], "{kind}");
        assert_eq!(linked("['NULL', 'n/a']"), [false, false, true, false], "{kind}");
    }
}

/// Numbers next to a text count as numbers, and marks of other scripts count as letters.
#[test]
fn different_keys_are_not_linked() {
    let keys =
        |cells: &[&str]| Keys::Text(TextTable::new(2, cells.iter().map(|cell| cell.to_string()).collect()));
    for kind in ["exact", "psi"] {
        let linked = |one: [&str; 2], other: [&str; 2]| {
            let links = link(&format!("kind = '{kind}'\nneighbours = 1"), &keys(&one), &keys(&other));
            links.similarities(0).is_some_and(|s| s[0] > 0.5)
        };
        for (one, other) in [("1.5", "15"), ("-5", "5"), ("12/3", "123"), ("राम", "रमा"), ("か", "が")]
        {
            assert!(!linked(["anna", one], ["anna", other]), "{kind}: {one} is not {other}");
        }
        // Comparison in normal form.
        let linked = |one: [&str; 2], other: [&str; 2]| {
            let settings = format!("kind = '{kind}'\nneighbours = 1\ncompare = 'normal'");
            let links = link(&settings, &keys(&one), &keys(&other));
            links.similarities(0).is_some_and(|s| s[0] > 0.5)
        };
        for (one, other) in
            [("1.50", "1,5"), ("-5.0", "\u{2212}5"), ("310/246-1501", "3102461501"), ("Müller", "MULLER")]
        {
            assert!(linked(["anna", one], ["anna", other]), "{kind}: {one} is {other}");
        }
    }
}
