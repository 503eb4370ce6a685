//! Tests that every whole experiment in the guides is valid. `fet-site` tests their links.

use std::path::Path;

use fet_site::markdown::blocks;

use super::command::fet;

#[test]
fn accepts_every_complete_experiment_of_the_guides() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut pages = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs")).expect("the guides") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    // A guide may extend an experiment of the repository.
    for entry in std::fs::read_dir(root.join("experiments")).expect("the experiments") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().expect("a file").to_owned();
        std::fs::copy(&path, folder.path().join(name)).expect("writable");
    }
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("readable");
        for block in blocks(&text).into_iter().filter(|block| block.language == "toml") {
            let table: toml::Table = block.code.parse().expect("tested in `fet-site`");
            // A whole experiment has a name; the other blocks are parts of one.
            if !table.contains_key("name") {
                continue;
            }
            std::fs::write(folder.path().join("block.toml"), &block.code).expect("writable");
            let output = fet(folder.path(), &["show", "block.toml"]);
            assert!(output.status.success(), "{} line {}: {output:?}", page.display(), block.line);
            seen += 1;
        }
    }
    assert!(seen >= 5, "the README, the first ablation and three of own data at least; {seen}");
}
