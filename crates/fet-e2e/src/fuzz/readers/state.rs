//! Saved state and cached links. A checksum covers every byte, so an accepted input must equal the
//! written one.

use std::sync::OnceLock;

use fet_core::data::{Keys, Matrix};
use fet_core::linker::Cached;
use fet_core::linker::{Linker, Links, link_between};
use fet_core::parameters::Parameters;
use fet_core::registry::Slot;
use fet_federation::state_file::StateFile;
use serde_json::{Value, json};

use super::source::in_folder;
use crate::fuzz::contract::{ReaderOutcome, outcome};

fn files() -> Vec<StateFile> {
    let mut parameters = Parameters::default();
    parameters.push("now.embedding.position", &[2, 3], &[1.0, -2.0, 0.5, 1e-38, 0.0, -0.0]);
    parameters.push("now.scalar", &[], &[7.0]);
    parameters.push("best.nothing", &[0, 4], &[]);
    let mut small = Parameters::default();
    small.push("w", &[1], &[f32::INFINITY]);
    vec![
        StateFile::new(
            &json!({"epoch": 3, "steps": [1, 2], "settings": "a = 1\n", "loss": null}),
            parameters,
        ),
        StateFile::new(&json!([]), small),
    ]
}

pub(super) fn states() -> Vec<Vec<u8>> {
    files().iter().map(StateFile::to_bytes).collect()
}

pub(super) fn checkpoint(bytes: &[u8]) -> ReaderOutcome {
    static KNOWN: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    // Compares header and values, regardless of the file's order and padding.
    outcome(StateFile::read::<Value>(bytes).map(|(header, file)| {
        let again = StateFile::new(&header, file.parameters).to_bytes();
        let known = KNOWN.get_or_init(states).contains(&again);
        (!known).then(|| "it differs from the written file".to_string())
    }))
}

fn keys(scale: f64) -> Keys {
    Keys::from(Matrix::new(2, (0..24).map(|i| f64::from(i * 37 % 23) * scale).collect()))
}

fn link() -> (Links, Vec<String>) {
    let table = "kind = \"nearest\"\nneighbours = 3".parse().expect("TOML");
    let slot = Slot::<dyn Linker>::from_table(table).expect("a linker");
    let linker = slot.build(&()).expect("sound");
    in_folder(|folder| {
        let linker = Cached::new(linker, &slot.settings(), folder.join("links"));
        let mut data_holder = linker.data_holder(1);
        let links =
            link_between(linker.querier(1).as_mut(), data_holder.as_mut(), &keys(1.0), &keys(0.9), &|_| ());
        (links.expect("keys of numbers"), data_holder.warnings())
    })
}

/// Returns the expected links, and the file that holds them.
fn links_file() -> &'static (Links, Vec<u8>, String) {
    static KEPT: OnceLock<(Links, Vec<u8>, String)> = OnceLock::new();
    KEPT.get_or_init(|| {
        let (links, _) = link();
        in_folder(|folder| {
            let entry =
                std::fs::read_dir(folder.join("links")).expect("a folder").flatten().next().expect("a file");
            let name = entry.file_name().to_string_lossy().into_owned();
            (links, std::fs::read(entry.path()).expect("readable"), name)
        })
    })
}

pub(super) fn links() -> Vec<Vec<u8>> {
    vec![links_file().1.clone()]
}

pub(super) fn cache(bytes: &[u8]) -> ReaderOutcome {
    let (right, _, name) = links_file();
    in_folder(|folder| {
        std::fs::create_dir_all(folder.join("links")).expect("writable");
        std::fs::write(folder.join("links").join(name), bytes).expect("writable");
    });
    let (links, mut warnings) = link();
    match warnings.pop() {
        _ if links != *right => ReaderOutcome::Wrong("other links".into()),
        Some(warning) => ReaderOutcome::Refused(warning),
        None => ReaderOutcome::Accepted,
    }
}
