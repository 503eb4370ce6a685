//! The laws of a dataset: a party on a separate machine has the same table as in a simulation.

use std::path::Path;

use fet_core::data::{Dataset, DatasetContext, Features, Folders, PartyTable};
use fet_core::registry::Slot;

/// Tests that each party reads the table of the simulation from its own settings, with these settings, whose
/// files are in `folder`.
///
/// # Panics
/// If the dataset breaks this law.
pub fn check(slot: &Slot<dyn Dataset>, folder: &Path) {
    let folders = Folders::from(folder);
    let context = DatasetContext { folders: &folders, seed: 3, metadata: &[] };
    let build = || slot.build(&context).expect("sound settings");
    let whole = build().load().unwrap_or_else(|error| panic!("{slot:?}: {error}"));
    let (primary, names) = build().primary().expect("readable");
    assert!(primary.secondaries.is_empty(), "{slot:?}: `primary` has no table of a secondary");
    assert!(same(&primary.primary, &whole.primary), "{slot:?}: the primary's table");
    assert_eq!(primary.labels, whole.labels, "{slot:?}");
    assert_eq!((primary.task, primary.classes), (whole.task, whole.classes), "{slot:?}");
    assert_eq!(primary.standardise, whole.standardise, "{slot:?}");
    let known: Vec<&str> = whole.secondaries.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, known, "{slot:?}");
    let all = build().secondaries().expect("readable");
    assert_eq!(all.len(), whole.secondaries.len(), "{slot:?}");
    for (index, table) in whole.secondaries.iter().enumerate() {
        let own = build().secondary(index).expect("readable");
        assert!(same(&own, table) && same(&all[index], table), "{slot:?}: party {}", index + 1);
    }
    let error = build().secondary(all.len()).expect_err("there is none").to_string();
    assert!(error.contains(&(all.len() + 1).to_string()), "{slot:?}: {error}");
}

fn same(one: &PartyTable, other: &PartyTable) -> bool {
    let features = match (&one.features, &other.features) {
        (Features::Numbers(one), Features::Numbers(other)) => one == other,
        (Features::Columns(one), Features::Columns(other)) => one.table == other.table,
        _ => false,
    };
    features && one.name == other.name && one.keys == other.keys && one.bounds == other.bounds
}
