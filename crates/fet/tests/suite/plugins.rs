//! Tests the list of the program's plug-ins, because inventory silently drops a crate that is never
//! referenced.

use fet::list::{entries, text};
use fet_core::linker::Linker;
use fet_core::registry::plugins;

#[test]
fn every_plugin_is_linked_in() {
    let found: Vec<String> =
        entries().iter().map(|entry| format!("{}: {}", entry.slot, entry.kind)).collect();
    let expected = [
        "method: fedsim",
        "method: fet",
        "method: fet-alone",
        "method: fet-pool",
        "method: gbdt-pooled",
        "method: gbdt-solo",
        "method: gbdt-top1",
        "method: solo",
        "method: top1sim",
        "method: with-trees",
        "linker: aligned",
        "linker: clk",
        "linker: edit",
        "linker: exact",
        "linker: federal",
        "linker: grid",
        "linker: hnsw",
        "linker: nearest",
        "linker: noisy",
        "linker: posterior",
        "linker: psi",
        "linker: random",
        "linker: rotation",
        "linker: tfidf",
        "linker: top1",
        "encoder: mlp",
        "encoder: transformer",
        "aggregator: average",
        "aggregator: concat",
        "aggregator: secure-average",
        "aggregator: similarity-weighted",
        "aggregator: sum",
        "privacy: discrete-gaussian",
        "privacy: gaussian",
        "privacy: none",
        "labels: compressed-gradients",
        "labels: laplace",
        "labels: max-norm",
        "labels: noisy-gradients",
        "labels: none",
        "labels: randomised-response",
        "attack: backdoor",
        "attack: faulty-party",
        "attack: gradient-clustering",
        "attack: gradient-cosine",
        "attack: gradient-neighbour",
        "attack: gradient-norm",
        "attack: gradient-reconstruction",
        "attack: gradient-sign",
        "attack: linkage",
        "attack: membership",
        "attack: model-completion",
        "attack: reconstruction",
        "data: linked",
        "data: split",
        "data.source: csv",
        "data.source: digits",
        "data.source: idx",
        "data.source: libsvm",
        "data.source: probes",
    ];
    assert_eq!(found, expected);
    assert!(entries().iter().all(|entry| !entry.summary.is_empty()));
}

#[test]
fn a_list_shows_settings_and_devices() {
    let all = text(None).expect("the whole list");
    for part in ["nearest", "neighbours = 20", "dynamic_mask = true", "flex", "frequency_std"] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
    let linkers = text(Some("linker")).expect("a slot");
    assert!(linkers.contains("nearest") && !linkers.contains("transformer"));
    let count = |part: &str| linkers.matches(part).count();
    let every = plugins::<dyn Linker>().len();
    assert_eq!(
        (count("the secondary learns: "), count("keys: ")),
        (every, every),
        "every linker declares the information that it reveals"
    );
    let wrong = text(Some("linkers")).expect_err("no such slot");
    assert!(wrong.contains("did you mean \"linker\""), "{wrong}");
}
