//! Tests the laws of every source.

use std::path::Path;

use fet_contract::{slot, sources};
use fet_core::data::Source;
use fet_core::registry::plugins;

/// Returns valid settings for a kind, with the files in a folder.
fn settings(kind: &str, folder: &Path) -> &'static str {
    let write = |name: &str, text: &[u8]| std::fs::write(folder.join(name), text).expect("writable");
    match kind {
        "csv" => {
            write("table.csv", b"x,y,label\n1,2,0\n3,4,1\n5,6,1\n");
            "kind = 'csv'\nfile = 'table.csv'\nlabel = 'label'\ntask = 'binary'"
        }
        "libsvm" => {
            write("table.libsvm", b"+1 1:0.5 3:2\n-1 2:1\n+1 1:3\n");
            "kind = 'libsvm'\nfile = 'table.libsvm'"
        }
        "idx" => {
            write("images", &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 0, 255, 9]);
            write("labels", &[0, 0, 8, 1, 0, 0, 0, 2, 0, 1]);
            "kind = 'idx'\nimages = ['images']\nlabels = ['labels']"
        }
        "digits" => "kind = 'digits'",
        "probes" => "kind = 'probes'\nrows = 20\ncolumns = 50",
        other => {
            panic!("a sample of the settings of `data.source.kind = \"{other}\"` is missing in this test")
        }
    }
}

#[test]
fn sources_give_sound_tables_and_name_missing_files() {
    for plugin in plugins::<dyn Source>() {
        let folder = tempfile::tempdir().expect("a folder");
        sources::check(&slot(settings(plugin.kind, folder.path())), folder.path());
    }
}
