//! Tests the laws of every dataset: a party on a separate machine has the same table as in a simulation.

use std::path::Path;

use fet_contract::{datasets, slot};
use fet_core::data::Dataset;
use fet_core::registry::plugins;

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
            datasets::check(&slot(&text), folder.path());
        }
    }
}
