//! Opening of files: search folders, decompression, and the error for missing files.

pub(crate) mod table;

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use fet_core::data::{DataError, Folders, Task};
use flate2::read::MultiGzDecoder;

/// Returns the path of `file` in one of `folders`. Absolute paths are returned unchanged.
pub(crate) fn locate(folders: &Folders, file: &str, setting: &str) -> Result<PathBuf, DataError> {
    if file.is_empty() {
        return Err(DataError::new(format!("`data.{setting}`"), "must name a file; it is \"\""));
    }
    let path = folders.find(file);
    if path.is_dir() {
        return Err(DataError::new(path.display(), "is a folder; a file is expected"));
    }
    if path.is_file() {
        return Ok(path);
    }
    let Err(error) = path.metadata() else {
        return Err(DataError::new(path.display(), "is a FIFO, a device or a socket; a file is expected"));
    };
    let places: Vec<String> = folders.all().iter().map(|folder| folder.display().to_string()).collect();
    let advice = match places.as_slice() {
        _ if Path::new(file).is_absolute() => format!("cannot be opened ({error})"),
        [] => format!("cannot be opened ({error})"),
        places => format!(
            "cannot be opened ({error}); `fet` searches relative names in {}: the folder of the experiment, then the folder of the \
             environment variable FET_DATA, or `data`",
            places.join(" and ")
        ),
    };
    Err(DataError::new(path.display(), advice))
}

/// Opens `file` in one of `folders`, or at its absolute path. Decompresses files with names ending in `.gz`.
pub(crate) fn open(
    folders: &Folders,
    file: &str,
    setting: &str,
) -> Result<(PathBuf, Box<dyn Read>), DataError> {
    let path = locate(folders, file, setting)?;
    let opened = fet_io::open(&path)
        .map_err(|error| DataError::new(path.display(), format!("cannot be opened ({error})")))?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(BufReader::new(opened))))
    } else {
        Box::new(BufReader::with_capacity(1 << 18, opened))
    };
    Ok((path, reader))
}

/// Returns the path and contents of a file.
pub(crate) fn bytes(folders: &Folders, file: &str, setting: &str) -> Result<(PathBuf, Vec<u8>), DataError> {
    let (path, mut reader) = open(folders, file, setting)?;
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| DataError::new(path.display(), format!("cannot be read: {error}")))?;
    Ok((path, bytes))
}

/// Checks that each label is a class of the task, and returns the number of classes.
///
/// `place` names a label's row in an error message.
pub(crate) fn classes(
    task: Task,
    labels: &[f64],
    place: impl Fn(usize) -> String,
) -> Result<usize, DataError> {
    let most = match task {
        Task::Regression => return Ok(1),
        Task::Binary => 1.0,
        Task::Multiclass => 9_999.0,
    };
    let is_class = |y: f64| y.fract() == 0.0 && (0.0..=most).contains(&y);
    if let Some(row) = labels.iter().position(|&y| !is_class(y)) {
        let expected = if task == Task::Binary { "0 or 1" } else { "a class number, 0, 1, 2, ..." };
        let problem = format!("the label must be {expected} for this task; it is {}", labels[row]);
        return Err(DataError::new(place(row), problem));
    }
    let largest = labels.iter().copied().fold(0.0, f64::max) as usize;
    Ok(if task == Task::Binary { 2 } else { largest + 1 })
}
