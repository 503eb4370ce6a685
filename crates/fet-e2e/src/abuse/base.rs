//! Base folders of the cases: small tables, experiments on them, and finished runs.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::sandbox::Sandbox;
use super::script::{Base, Expect, Step};
use crate::folder::copy;
use crate::runner;

/// Experiment on three tables.
pub(crate) const SHOPS: &str = r#"name = "shops"

[train]
epochs = 1
batch_size = 32

[data]
kind = "linked"
task = "binary"
label = "busy"
key_kind = "numbers"
primary = { name = "shops", file = "shops.csv", keys = ["lon", "lat"], drop = [] }
secondaries = [
    { name = "streets", file = "streets.csv", keys = ["lon", "lat"], scaling = "standard" },
    { name = "buses", file = "buses.csv", keys = ["lon", "lat"] },
]

[split]
kind = "random"

[scores]
metric = "accuracy"

[linker]
kind = "nearest"
neighbours = 3

[method]
kind = "fet"
hidden = 8
heads = 2
dropout = 0.0
"#;

/// Experiment on images, or on another source of one table.
pub(crate) const IMAGES: &str = r#"name = "images"
train = { epochs = 1, batch_size = 32 }
linker = { kind = "nearest", neighbours = 3 }
method = { kind = "fet", hidden = 8, heads = 2 }

[data]
kind = "split"
parties = 2
key_dims = 2
source = { kind = "idx", images = ["images.idx"], labels = ["labels.idx"] }
"#;

/// Number of rows of each table.
const ROWS: usize = 60;

/// Returns the primary's table.
pub(crate) fn shops() -> String {
    let mut text = "lon,lat,kind,opened,size,busy\n".to_string();
    for row in 0..ROWS {
        let (lon, lat) = place(row);
        let (size, lanes) = (10 + row * 37 % 90, 1 + row * 7 % 6);
        let busy = if 8 * lanes + size > 75 { "yes" } else { "no" };
        let kind = ["bakery", "cafe", "kiosk"][row % 3];
        let _ =
            writeln!(text, "{lon:.4},{lat:.4},{kind},20{:02}-0{}-15,{size},{busy}", row % 20, row % 9 + 1);
    }
    text
}

/// Returns the first secondary's table.
pub(crate) fn streets() -> String {
    let mut text = "lon,lat,lanes,surface\n".to_string();
    for row in 0..ROWS {
        let (lon, lat) = place(row);
        let surface = ["gravel", "tar"][row % 2];
        let _ = writeln!(text, "{:.4},{:.4},{},{surface}", lon + 0.001, lat - 0.001, 1 + row * 7 % 6);
    }
    text
}

fn buses() -> String {
    let mut text = "lon,lat,line,seats\n".to_string();
    for row in 0..ROWS {
        let (lon, lat) = place(row);
        let _ = writeln!(text, "{lon:.4},{lat:.4},{},{}", ["A", "B", "C"][row % 3], row % 40);
    }
    text
}

/// Returns distinct locations without a pattern.
fn place(row: usize) -> (f64, f64) {
    ((row * 6181 % 10_007) as f64 / 10_007.0, (row * 3571 % 9973) as f64 / 9973.0)
}

/// Returns names for a link that takes a while.
fn names() -> String {
    let syllable =
        |number: usize| ["ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "vu", "xe", "ya"][number % 11];
    let name = |row: usize| {
        let parts = [row * 7, row / 3, row * 31 / 5, row / 11, row * 17 / 4, row / 7, row * 3].map(syllable);
        format!("{} {}", parts[..3].concat(), parts[3..].concat())
    };
    (0..6000).fold("name\n".to_string(), |text, row| text + &name(row) + "\n")
}

/// Returns images of 4 x 4 pixels.
pub(crate) fn images() -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 4, 0, 0, 0, 4];
    bytes.extend((0..40 * 16usize).map(|at| (at * 7919 % 251) as u8));
    bytes
}

/// Returns the labels of the images.
pub(crate) fn labels() -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 1, 0, 0, 0, 40];
    bytes.extend((0..40usize).map(|row| (row % 3) as u8));
    bytes
}

/// Returns rows of label and index:value.
pub(crate) fn sparse() -> String {
    (0..40usize).fold(String::new(), |mut text, row| {
        let sign = if row % 2 == 0 { "+1" } else { "-1" };
        let _ = writeln!(text, "{sign} 1:{} 2:0.{} 4:{}", row % 7, row % 9, row * 3 % 5);
        text
    })
}

/// Base folders of the cases.
#[derive(Debug)]
pub(crate) struct Bases {
    root: PathBuf,
}

impl Bases {
    /// Writes the base folders below `root`. Fails if one of their runs fails.
    pub(crate) fn new(fet: &Path, root: &Path, logs: &Path) -> anyhow::Result<Self> {
        let bases = Self { root: root.to_path_buf() };
        let long = SHOPS.replace("epochs = 1", "epochs = 40").replace("\"shops\"\n", "\"long\"\n");
        let sparse_experiment = IMAGES.replace(
            r#"{ kind = "idx", images = ["images.idx"], labels = ["labels.idx"] }"#,
            r#"{ kind = "libsvm", file = "sparse.svm", task = "binary" }"#,
        );
        let texts = [
            ("shops.toml", SHOPS.to_string()),
            ("long.toml", long),
            ("images.toml", IMAGES.to_string()),
            ("sparse.toml", sparse_experiment),
            ("shops.csv", shops()),
            ("streets.csv", streets()),
            ("buses.csv", buses()),
            ("names.csv", names()),
            ("sparse.svm", sparse()),
        ];
        // A run's folder stores the path of its data: this folder, not the folder of the copy.
        let folder = runner::case_folder(root);
        for base in [Base::Tables, Base::Finished, Base::Reference] {
            std::fs::create_dir_all(folder.join("tmp"))?;
            for (name, text) in &texts {
                std::fs::write(folder.join(name), text)?;
            }
            std::fs::write(folder.join("images.idx"), images())?;
            std::fs::write(folder.join("labels.idx"), labels())?;
            let command = match base {
                Base::Tables => "show shops.toml",
                Base::Finished => "run shops.toml --out result",
                Base::Reference => "run long.toml --out reference",
            };
            let place = Sandbox { fet, folder: &folder, logs, patience: 1 };
            let ended = place.run(&Step::new(command, Expect::Accepted).seconds(120))?;
            ensure!(ended.code == Some(0), "`{}` {command} fails: {}", fet.display(), ended.stderr);
            std::fs::rename(&folder, bases.folder(base))?;
        }
        Ok(bases)
    }

    pub(crate) fn folder(&self, base: Base) -> PathBuf {
        self.root.join(format!("{base:?}").to_lowercase())
    }

    /// Copies a base to `folder`.
    pub(crate) fn copy(&self, base: Base, folder: &Path) -> std::io::Result<()> {
        copy(&self.folder(base), folder)
    }
}
