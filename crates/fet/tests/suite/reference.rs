//! Tests that `docs/reference` holds the settings of this program.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_reference_of_settings_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let pages = fet::reference::pages();
    for (file, expected) in &pages {
        let written = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let line = written.lines().zip(expected.lines()).position(|(a, b)| a != b);
        assert!(
            written == *expected,
            "docs/reference/{file} differs from the settings of the program, first in line {}: `cargo xtask reference` \
             writes it again",
            line.unwrap_or(written.lines().count().min(expected.lines().count())) + 1
        );
    }
    let known: BTreeSet<String> = pages.iter().map(|(file, _)| (*file).to_string()).collect();
    let found: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, known, "docs/reference holds other files than the pages");
}
