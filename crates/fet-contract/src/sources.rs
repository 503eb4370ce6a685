//! The laws of a source: a repeatable table of finite cells, and files that it names and misses by name.

use std::path::Path;

use fet_core::data::{DataError, DatasetContext, Folders, Labelled, Source, Task};
use fet_core::registry::Slot;

/// Tests all laws of a source with these settings, whose files are in `folder`.
///
/// # Panics
/// If the source breaks a law.
pub fn check(slot: &Slot<dyn Source>, folder: &Path) {
    gives_a_sound_table_and_repeats(slot, folder);
    lists_its_files_and_names_a_missing_one(slot, folder);
}

fn read(slot: &Slot<dyn Source>, folder: &Path) -> Result<Labelled, DataError> {
    build(slot, folder).read()
}

fn build(slot: &Slot<dyn Source>, folder: &Path) -> Box<dyn Source> {
    let folders = Folders::from(folder);
    let context = DatasetContext { folders: &folders, seed: 3, metadata: &[] };
    slot.build(&context).expect("sound settings")
}

/// Tests that the table has one label for each row, finite cells and labels that fit the task, and that the
/// source gives the same table twice.
pub fn gives_a_sound_table_and_repeats(slot: &Slot<dyn Source>, folder: &Path) {
    let table = read(slot, folder).unwrap_or_else(|error| panic!("{slot:?}: {error}"));
    let Labelled { task, classes, features, labels } = &table;
    assert!(features.rows() > 0 && features.columns() > 0, "{slot:?}: the table is empty");
    assert_eq!(features.rows(), labels.len(), "{slot:?}: rows and labels");
    let place = features.values().iter().position(|x| !x.is_finite()).map(|place| place / features.columns());
    assert_eq!(place, None, "{slot:?}: the first row with a cell that is not finite");
    let expected = match task {
        Task::Regression => *classes == 1,
        Task::Binary => *classes == 2,
        Task::Multiclass => *classes >= 2,
    };
    assert!(expected, "{slot:?}: {classes} classes for {task:?}");
    let fits = |label: &f64| match task {
        Task::Regression => label.is_finite(),
        Task::Binary | Task::Multiclass => label.fract() == 0.0 && (0.0..*classes as f64).contains(label),
    };
    assert_eq!(
        labels.iter().position(|label| !fits(label)),
        None,
        "{slot:?}: the first row with a wrong label"
    );
    let again = read(slot, folder).unwrap_or_else(|error| panic!("{slot:?}: {error}"));
    assert!(again.features == *features && again.labels == *labels, "{slot:?}: two tables differ");
}

/// Tests that `files` lists every file that the source reads, and that the source reports each missing file by
/// the name in the settings. A run relies on the list: it searches the files before training, never overwrites
/// them, and is identified by their content.
pub fn lists_its_files_and_names_a_missing_one(slot: &Slot<dyn Source>, folder: &Path) {
    let files = build(slot, folder).files();
    let copy = tempfile::tempdir().expect("a temporary folder");
    for file in &files {
        let place = copy.path().join(file);
        std::fs::create_dir_all(place.parent().expect("a file in a folder")).expect("writable");
        let result = std::fs::copy(folder.join(file), &place);
        result.unwrap_or_else(|error| {
            panic!("{slot:?}: `files` lists {file}, which is not in the folder: {error}")
        });
    }
    if let Err(error) = read(slot, copy.path()) {
        panic!(
            "{slot:?}: `files` must list every file that the source reads; with only these files: {error}"
        );
    }
    for file in &files {
        let place = copy.path().join(file);
        let bytes = std::fs::read(&place).expect("copied above");
        std::fs::remove_file(&place).expect("writable");
        let error = read(slot, copy.path()).expect_err("a missing file is an error").to_string();
        assert!(error.contains(file), "{slot:?}: the error must name {file}; it is: {error}");
        std::fs::write(&place, bytes).expect("writable");
    }
}
