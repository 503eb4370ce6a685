//! The cache of links, with linkers of each kind.

use std::path::{Path, PathBuf};

use std::fs;

use fet_core::data::{Keys, Matrix};
use fet_core::linker::{Cached, LinkTask, Linker, Links, link_between};
use fet_core::registry::Slot;
use fet_linkers as _;

fn cached(kind: &str, folder: &Path) -> Cached {
    let slot = Slot::<dyn Linker>::with_defaults(kind).expect("a linker");
    Cached::new(slot.build(&()).expect("sound"), &slot.settings(), folder.to_path_buf())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()).collect()
}

/// Links and warnings.
fn link(linker: &Cached, queries: &Keys, records: &Keys, seed: u64) -> (Links, Vec<String>) {
    let (mut querier, mut data_holder) = (linker.querier(seed), linker.data_holder(seed));
    let links = link_between(querier.as_mut(), data_holder.as_mut(), queries, records, &|_| ());
    (links.expect("linkable"), data_holder.warnings())
}

#[test]
fn keeps_finds_and_repairs_links() {
    let keys = Keys::from(Matrix::new(2, (0..60).map(|i| f64::from(i * 37 % 61)).collect()));
    for kind in ["nearest", "random", "federal", "noisy"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let linker = cached(kind, folder.path());
        let (first, _) = link(&linker, &keys, &keys, 1);
        let file = files(folder.path()).pop().expect("a file is there");
        let whole = fs::read(&file).expect("readable");
        assert_eq!(link(&linker, &keys, &keys, 1), (first.clone(), Vec::new()), "{kind} from the file");
        // A flipped bit, a cut, an empty file, and another run's file under this name.
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        let other = cached(kind, &folder.path().join("other"));
        link(&other, &keys, &keys, 2);
        let other = fs::read(files(&folder.path().join("other")).pop().expect("a file")).expect("readable");
        for bad in [flipped, whole[..whole.len() - 5].to_vec(), Vec::new(), other] {
            fs::write(&file, bad).expect("writable");
            let (again, warnings) = link(&linker, &keys, &keys, 1);
            assert_eq!(again, first, "{kind} computed again");
            assert!(warnings.len() == 1 && warnings[0].contains("computed again"), "{warnings:?}");
            assert_eq!(fs::read(&file).expect("readable"), whole, "{kind}: the file is replaced");
        }
    }
}

#[test]
fn repeats_the_warnings_of_cached_links() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
    // K is 1 by default.
    let linker = cached("exact", folder.path());
    let (first, warnings) = link(&linker, &keys(&[1.0]), &keys(&[1.0, 1.0, 2.0]), 1);
    assert!(warnings.len() == 1 && warnings[0].contains("2 of 3 records"), "{warnings:?}");
    assert_eq!(link(&linker, &keys(&[1.0]), &keys(&[1.0, 1.0, 2.0]), 1), (first, warnings));
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn different_keys_settings_and_seeds_have_separate_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys = |shift: f64| Keys::from(Matrix::new(1, (0..40).map(|i| f64::from(i) + shift).collect()));
    let linker = cached("nearest", folder.path());
    link(&linker, &keys(0.0), &keys(0.0), 1);
    link(&linker, &keys(0.5), &keys(0.0), 1);
    link(&linker, &keys(0.0), &keys(0.5), 1);
    link(&linker, &keys(0.0), &keys(0.0), 2);
    link(&cached("rotation", folder.path()), &keys(0.0), &keys(0.0), 1);
    assert_eq!(files(folder.path()).len(), 5);
}

#[test]
fn a_linker_that_poses_a_challenge_is_not_cached() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
    link(&cached("psi", folder.path()), &keys, &keys, 1);
    assert_eq!(files(folder.path()).len(), 0);
}

/// Two secrets, as from an environment variable: here each is derived from a different seed of the querier, while the
/// data holder's seed, settings and keys stay the same.
#[test]
fn each_secret_has_a_separate_file() {
    let numbers = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
    let names = (0..40).map(|i| format!("name {i}")).collect();
    let names = Keys::Text(fet_core::data::TextTable::new(1, names));
    for (kind, keys) in [("clk", &names), ("federal", &numbers), ("rotation", &numbers)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let linker = cached(kind, folder.path());
        for secret in [1, 2, 1] {
            let encoded = linker.querier(secret).encode(keys).expect("sealable");
            linker.data_holder(1).link(&LinkTask::new(&encoded, keys)).expect("linkable");
        }
        assert_eq!(files(folder.path()).len(), 2, "{kind}");
    }
}
