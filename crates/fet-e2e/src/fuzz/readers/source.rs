//! idx and libsvm files, compared with a second reading of the same bytes.

use std::cell::OnceCell;
use std::path::Path;

use fet_core::data::{DatasetContext, Folders, Labelled, Source, Task};
use fet_core::registry::Recipe;
use fet_data::source::{IdxSettings, LibsvmSettings};
use tempfile::TempDir;

use crate::fuzz::contract::{ReaderOutcome, outcome};

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Calls `work` with a temporary folder, in memory if possible.
pub(super) fn in_folder<T>(work: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for files")
        });
        work(folder.path())
    })
}

const LABELS: [u8; 11] = [0, 0, 8, 1, 0, 0, 0, 3, 0, 2, 1];

pub(super) fn images() -> Vec<Vec<u8>> {
    let image = |rows: u8, columns: u8| {
        let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, rows, 0, 0, 0, columns];
        bytes.extend((0..3 * rows * columns).map(|value| value.wrapping_mul(37)));
        bytes
    };
    vec![image(2, 3), image(1, 1), LABELS.to_vec()]
}

/// Reads the bytes as images with valid labels. Bytes with the header of labels are read as labels with valid
/// images.
pub(super) fn idx(bytes: &[u8]) -> ReaderOutcome {
    let images = bytes.get(3) != Some(&1);
    let sound = &self::images()[1];
    let [first, second] = if images { [bytes, &LABELS[..]] } else { [&sound[..], bytes] };
    let read = in_folder(|folder| {
        std::fs::write(folder.join("i"), first).expect("writable");
        std::fs::write(folder.join("l"), second).expect("writable");
        let settings = IdxSettings { images: vec!["i".into()], labels: vec!["l".into()] };
        source(&settings, folder)
    });
    outcome(read.map(|data| {
        let size =
            |at: usize| u32::from_be_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]) as usize;
        let (rows, columns) = (size(4), size(8) * size(12));
        let pixels = &first[16..];
        let same = pixels.len() == rows * columns
            && data.features.columns() == columns
            && data.features.values().iter().copied().eq(pixels.iter().copied().map(f32::from))
            && data.labels.iter().copied().eq(second[8..].iter().copied().map(f64::from))
            && data.labels.len() == rows;
        (!same || first[..4] != [0, 0, 8, 3] || second[..4] != [0, 0, 8, 1])
            .then(|| "other values".to_string())
    }))
}

pub(super) fn rows() -> Vec<Vec<u8>> {
    let rows = [
        "1 1:0.5 3:-2\n0 2:7\n1 1:1e-3 2:1 3:4\n",
        "+1 1:1\n-1 2:3.5e2 5:2\n",
        "2.5 1:1\r\n\r\n-7e3 1:2 4:0\r\n",
    ];
    rows.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub(super) fn libsvm(bytes: &[u8]) -> ReaderOutcome {
    let read = in_folder(|folder| {
        std::fs::write(folder.join("x.svm"), bytes).expect("writable");
        let of = |task| source(&LibsvmSettings { file: "x.svm".into(), columns: 0, task }, folder);
        // Reads the file as classes too, to test errors about classes.
        if let Ok(data) = of(Task::Binary)
            && data.labels.iter().any(|label| ![0.0, 1.0].contains(label))
        {
            return Ok(Some(format!("{:?} are not two classes", data.labels)));
        }
        of(Task::Regression).map(|data| differs(bytes, &data))
    });
    outcome(read)
}

fn source<R: Recipe<dyn Source>>(settings: &R, folder: &Path) -> Result<Labelled, String> {
    let context = DatasetContext { folders: &Folders::from(folder), seed: 0, metadata: &[] };
    let source = settings.build(&context).map_err(|error| error.to_string())?;
    source.read().map_err(|error| error.to_string())
}

/// Returns the first difference of the rows from the text.
fn differs(bytes: &[u8], data: &Labelled) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some("it is not UTF-8".into()) };
    let lines: Vec<&str> = text.split('\n').filter(|line| !line.trim().is_empty()).collect();
    let (width, values) = (data.features.columns(), data.features.values());
    if lines.len() != data.labels.len() || values.len() != width * lines.len() {
        return Some(format!("{} lines became {} rows", lines.len(), data.labels.len()));
    }
    for (row, line) in lines.iter().enumerate() {
        let mut words = line.split(|c: char| c.is_ascii_whitespace()).filter(|word| !word.is_empty());
        if words.next().and_then(|label| label.parse::<f64>().ok()) != Some(data.labels[row]) {
            return Some(format!("the label of {line:?} became {}", data.labels[row]));
        }
        let mut next = 0;
        for word in words {
            let (index, value) = word.split_once(':')?;
            let (Ok(index), Ok(value)) = (index.parse::<usize>(), value.parse::<f32>()) else {
                return Some(format!("{word:?} was read"));
            };
            if index <= next || index > width || values[row * width + index - 1] != value {
                return Some(format!("{word:?} became another value or is out of place"));
            }
            // Cells between the given ones must be zero. For wide rows only the given cells are checked.
            let between = &values[row * width + next..row * width + index - 1];
            if width < 1_000 && between.iter().any(|value| *value != 0.0) {
                return Some(format!("the table has an extra value before {word:?}"));
            }
            next = index;
        }
    }
    None
}
