//! Tests that the program has every plug-in of the workspace, because inventory silently drops a crate that is
//! never referenced.

use std::collections::BTreeSet;
use std::path::Path;

use fet::list::{entries, text};
use fet_core::aggregator::Aggregator;
use fet_core::attack::Attack;
use fet_core::data::{Dataset, Source};
use fet_core::encoder::Encoder;
use fet_core::labels::LabelProtection;
use fet_core::linker::Linker;
use fet_core::method::Method;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, SlotKind, plugins};
use fet_core::release::Release;
use regex::Regex;

/// Adds the slot's trait and the settings type of each plug-in that a file or folder submits.
fn submitted(place: &Path, pattern: &Regex, found: &mut BTreeSet<String>) {
    if place.is_dir() {
        for entry in std::fs::read_dir(place).expect("readable") {
            submitted(&entry.expect("readable").path(), pattern, found);
        }
    } else if place.extension().is_some_and(|extension| extension == "rs") {
        let text = std::fs::read_to_string(place).expect("readable");
        found.extend(pattern.captures_iter(&text).map(|plugin| format!("{} {}", &plugin[1], &plugin[2])));
    }
}

/// Returns the slot's trait and the settings type of each plug-in of a slot in this program.
fn linked<T>() -> impl Iterator<Item = String>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let last = |path: &str| path.rsplit("::").next().unwrap_or(path).to_string();
    let slot = last(std::any::type_name::<T>());
    plugins::<T>().into_iter().map(move |plugin| format!("{slot} {}", last(plugin.source())))
}

#[test]
fn links_every_plugin_that_a_source_file_submits() {
    let pattern = r"inventory::submit!\s*\{\s*Plugin::<dyn (\w+)>::new::<(\w+)>";
    let pattern = Regex::new(pattern).expect("a regular expression");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut expected = BTreeSet::new();
    for folder in ["crates", "examples"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("readable") {
            let crate_folder = entry.expect("readable").path();
            let sources = crate_folder.join("src");
            // The plug-ins of the Python package are not in the command.
            if sources.is_dir() && !crate_folder.ends_with("fet-python") {
                submitted(&sources, &pattern, &mut expected);
            }
        }
    }
    let found: BTreeSet<String> = linked::<dyn Method>()
        .chain(linked::<dyn Linker>())
        .chain(linked::<dyn Encoder>())
        .chain(linked::<dyn Aggregator>())
        .chain(linked::<dyn PrivacyMechanism>())
        .chain(linked::<dyn LabelProtection>())
        .chain(linked::<dyn Release>())
        .chain(linked::<dyn Attack>())
        .chain(linked::<dyn Dataset>())
        .chain(linked::<dyn Source>())
        .collect();
    assert_eq!(found, expected);
    assert!(expected.len() >= 50 && entries().len() == found.len(), "{} plug-ins", expected.len());
    assert!(entries().iter().all(|entry| !entry.summary.is_empty()));
}

#[test]
fn list_shows_settings_and_devices() {
    let all = text(None).expect("the whole list");
    for part in ["nearest", "neighbours = 20", "dynamic_mask = true", "flex", "frequency_std"] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
    let linkers = text(Some("linker")).expect("a slot");
    assert!(linkers.contains("nearest") && !linkers.contains("transformer"));
    let count = |part: &str| linkers.lines().filter(|line| line.starts_with(part)).count();
    let every = plugins::<dyn Linker>().len();
    assert_eq!(
        (count("      the secondary learns: "), count("      keys: ")),
        (every, every),
        "every linker declares the information that it reveals"
    );
    let wrong = text(Some("linkers")).expect_err("no such slot");
    assert!(wrong.contains("did you mean \"linker\""), "{wrong}");
}
