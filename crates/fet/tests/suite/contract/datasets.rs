//! Tests the laws of every dataset: a party on a separate machine has the same table as in a simulation.

use std::path::Path;

use fet_core::data::{Dataset, DatasetContext, Features, Folders, PartyTable};
use fet_core::registry::{Slot, plugins};

/// Returns valid settings for a kind, with the files in a folder.
fn settings(kind: &str, folder: &Path) -> Vec<String> {
    let csv = |name: &str, header: &str, rows: i32| {
        let line = |row: i32| {
            let (x, y) = (f64::from(row % 7) + 0.25, f64::from(row % 11) * 0.5);
            format!("{x},{y},{},{}\n", row % 5, f64::from(row) * 1.5)
        };
        let text = format!("{header}\n{}", (0..rows).map(line).collect::<String>());
        std::fs::write(folder.join(name), text).expect("writable");
    };
    match kind {
        "linked" => {
            csv("shops.csv", "x,y,takings,size", 40);
            csv("streets.csv", "x,y,lamps,length", 30);
            csv("weather.csv", "x,y,rain,wind", 20);
            let parties = |more: &str| {
                format!(
                    r#"kind = "linked"
label = "takings"
primary = {{ file = "shops.csv", keys = ["x", "y"] }}
secondaries = [{{ file = "streets.csv", keys = ["x", "y"] }}, {{ name = "sky", file = "weather.csv", keys = ["x", "y"], columns = {{ rain = "category" }} }}]
{more}"#
                )
            };
            vec![parties(""), parties("rows = 25")]
        }
        "split" => [2, 3, 5]
            .map(|parties| format!("kind = \"split\"\nparties = {parties}\nsource = {{ kind = \"digits\" }}"))
            .to_vec(),
        other => panic!("a sample of the settings of `data.kind = \"{other}\"` is missing in this test"),
    }
}

#[test]
fn party_elsewhere_has_the_same_table_as_in_a_simulation() {
    for plugin in plugins::<dyn Dataset>() {
        let folder = tempfile::tempdir().expect("a folder");
        for text in settings(plugin.kind, folder.path()) {
            let table: toml::Table = text.parse().expect("TOML");
            let slot: Slot<dyn Dataset> = table.try_into().expect("sound settings");
            let folders = Folders::new([folder.path().to_path_buf()]);
            let context = DatasetContext { folders: &folders, seed: 3, metadata: &[] };
            let build = || slot.build(&context).expect("sound settings");
            let whole = build().load().expect("readable");
            let (primary, names) = build().primary().expect("readable");
            assert!(primary.secondaries.is_empty(), "{text}");
            assert!(same(&primary.primary, &whole.primary), "{text}: the primary's table");
            assert_eq!(primary.labels, whole.labels, "{text}");
            assert_eq!((primary.task, primary.classes), (whole.task, whole.classes), "{text}");
            assert_eq!(primary.standardise, whole.standardise, "{text}");
            let known: Vec<&str> = whole.secondaries.iter().map(|table| table.name.as_str()).collect();
            assert_eq!(names, known, "{text}");
            let all = build().secondaries().expect("readable");
            assert_eq!(all.len(), whole.secondaries.len(), "{text}");
            for (index, table) in whole.secondaries.iter().enumerate() {
                let own = build().secondary(index).expect("readable");
                assert!(same(&own, table) && same(&all[index], table), "{text}: party {}", index + 1);
            }
            let error = build().secondary(all.len()).expect_err("there is none").to_string();
            assert!(error.contains(&(all.len() + 1).to_string()), "{text}: {error}");
        }
    }
}

fn same(one: &PartyTable, other: &PartyTable) -> bool {
    let features = match (&one.features, &other.features) {
        (Features::Numbers(one), Features::Numbers(other)) => one == other,
        (Features::Columns(one), Features::Columns(other)) => one.table == other.table,
        _ => false,
    };
    features && one.name == other.name && one.keys == other.keys && one.bounds == other.bounds
}
