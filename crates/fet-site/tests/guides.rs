//! Checks of the repository's guides: every link is valid, every page is in the summary, and every TOML block
//! is valid TOML. `crates/fet/tests/suite/guides.rs` checks complete experiments in the guides, because it
//! knows the plug-ins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fet_site::markdown::{anchors, blocks, links};
use fet_site::stage::{SUMMARY, pages, stage, target};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the Markdown files of the root, `docs` and its folders, relative to the root.
fn guides() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/reference", "docs/results"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let name = PathBuf::from(folder).join(entry.expect("an entry").file_name());
            if name.extension().is_some_and(|extension| extension == "md") {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in guides() {
        let text = read(&page);
        for link in links(&text) {
            if link.to.contains("://") {
                continue;
            }
            seen += 1;
            let other = target(&page, &link).unwrap_or_else(|| page.clone());
            let anchor = link.to.split_once('#').map(|(_, anchor)| anchor);
            let is_there = root().join(&other).exists()
                && anchor.is_none_or(|anchor| anchors(&read(&other)).iter().any(|known| known == anchor));
            if !is_there {
                broken.push(format!("{}: {}", page.display(), link.to));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(seen > 40, "{seen} links");
}

#[test]
fn every_guide_is_in_the_summary_and_on_the_page_of_guides() {
    let listed: BTreeSet<PathBuf> = pages(&root()).expect("a summary").into_iter().collect();
    let index = Path::new("docs/README.md");
    let shown: BTreeSet<PathBuf> =
        links(&read(index)).iter().filter_map(|link| target(index, link)).collect();
    for page in guides().into_iter().filter(|page| page.starts_with("docs") && page != Path::new(SUMMARY)) {
        assert!(listed.contains(&page), "{} is not in {SUMMARY}", page.display());
        assert!(page == index || shown.contains(&page), "{} is not in {}", page.display(), index.display());
    }
}

#[test]
fn every_block_of_toml_is_toml() {
    let mut seen = 0;
    for page in guides() {
        for block in blocks(&read(&page)).iter().filter(|block| block.language == "toml") {
            seen += 1;
            if let Err(error) = block.code.parse::<toml::Table>() {
                panic!("{} line {}: {error}", page.display(), block.line);
            }
        }
    }
    assert!(seen > 10, "{seen} blocks");
}

#[test]
fn the_folder_of_the_site_has_every_page_and_no_link_out_of_it() {
    let out = tempfile::tempdir().expect("a folder");
    stage(&root(), out.path()).expect("the pages are there");
    let source = out.path().join("src");
    let summary = std::fs::read_to_string(source.join("SUMMARY.md")).expect("a summary");
    let listed = links(&summary);
    assert_eq!(listed.len(), pages(&root()).expect("a summary").len());
    for page in listed.into_iter().map(|link| PathBuf::from(link.to)) {
        let text = std::fs::read_to_string(source.join(&page)).expect("a page");
        for link in links(&text) {
            let Some(other) = target(&page, &link) else { continue };
            assert!(source.join(&other).exists(), "{}: {}", page.display(), link.to);
        }
    }
    assert!(out.path().join("book.toml").exists());
}

/// Tests the manifests of a crate outside the workspace: its versions are those of the workspace, so that Burn is
/// the same, and its paths lead to crates.
#[test]
fn own_crate_has_the_versions_of_the_workspace() {
    let workspace: toml::Table = read(Path::new("Cargo.toml")).parse().expect("a manifest");
    let versions = workspace["workspace"]["dependencies"].as_table().expect("a table");
    let version = |dependency: &toml::Value| {
        let version = dependency.get("version").unwrap_or(dependency);
        version.as_str().expect("a version").to_string()
    };
    let (mut paths, mut compared) = (0, 0);
    for block in blocks(&read(Path::new("docs/own-crate.md"))).iter().filter(|block| block.language == "toml")
    {
        let manifest: toml::Table = block.code.parse().expect("TOML");
        let tables = ["dependencies", "dev-dependencies"]
            .map(|name| manifest.get(name).and_then(toml::Value::as_table));
        for (name, dependency) in tables.into_iter().flatten().flatten() {
            if let Some(path) = dependency.get("path").and_then(toml::Value::as_str) {
                let inside = path.strip_prefix("../FeT/").expect("the clone is next to the crate");
                assert!(root().join(inside).join("Cargo.toml").exists(), "{name}: {path}");
                paths += 1;
            } else {
                assert_eq!(version(dependency), version(&versions[name]), "{name}");
                compared += 1;
            }
        }
    }
    assert!(paths >= 3 && compared >= 4, "{paths} paths and {compared} versions");
}
