//! Members of wheels, zip files and compressed tar files, in memory.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;

use crate::error::BenchmarkError;

/// Largest member in bytes, once decompressed.
const LARGEST: u64 = 512 << 20;

/// Returns the member of an archive whose path is `path` or ends in `/path`. The file name of the archive decides
/// its format; `place` is its place for messages.
pub(crate) fn member(place: &str, name: &str, bytes: &[u8], path: &str) -> Result<Vec<u8>, BenchmarkError> {
    if name.ends_with(".tar.gz") { in_tar(place, bytes, path) } else { in_zip(place, bytes, path) }
}

/// Returns true if `name` is the path, or ends in it below other folders.
fn is_at(name: &str, path: &str) -> bool {
    name.strip_suffix(path).is_some_and(|start| start.is_empty() || start.ends_with('/'))
}

fn failure(place: &str, problem: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Content { place: place.into(), problem: problem.to_string() }
}

fn absent(place: &str, path: &str) -> BenchmarkError {
    failure(place, format!("the archive lacks the file {path}"))
}

/// Reads all bytes of a member, up to the limit.
fn all(reader: impl Read, place: &str, path: &str) -> Result<Vec<u8>, BenchmarkError> {
    let mut bytes = Vec::new();
    let read = reader.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| failure(place, format!("the file {path} cannot be decompressed ({error})")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failure(place, format!("the file {path} is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// Returns a member of a zip file.
pub(crate) fn in_zip(place: &str, bytes: &[u8], path: &str) -> Result<Vec<u8>, BenchmarkError> {
    let invalid = |error| failure(place, format!("this is not a readable zip file ({error})"));
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(invalid)?;
    let found = {
        let mut names = archive.file_names().filter_map(Result::ok);
        names.find(|name| is_at(name, path)).map(std::borrow::Cow::into_owned)
    };
    let name = found.ok_or_else(|| absent(place, path))?;
    let member = archive.by_name(&name).map_err(invalid)?;
    all(member, place, path)
}

/// Returns a member of a tar file that gzip compressed.
fn in_tar(place: &str, bytes: &[u8], path: &str) -> Result<Vec<u8>, BenchmarkError> {
    let invalid = |error| failure(place, format!("this is not a readable .tar.gz file ({error})"));
    let mut archive = tar::Archive::new(MultiGzDecoder::new(bytes));
    for entry in archive.entries().map_err(invalid)? {
        let entry = entry.map_err(invalid)?;
        if entry.path().is_ok_and(|found| is_at(&found.to_string_lossy(), path)) {
            return all(entry, place, path);
        }
    }
    Err(absent(place, path))
}

/// Decompresses bytes that gzip compressed.
pub(crate) fn gunzip(bytes: &[u8], place: &str) -> Result<Vec<u8>, BenchmarkError> {
    all(MultiGzDecoder::new(bytes), place, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_at_a_folder() {
        for (name, expected) in [
            ("a/b.csv", true),
            ("x-1/a/b.csv", true),
            ("xa/b.csv", false),
            ("a/b.csv.zip", false),
            ("b.csv", false),
        ] {
            assert_eq!(is_at(name, "a/b.csv"), expected, "{name}");
        }
    }

    #[test]
    fn damaged_archives_are_errors_that_name_the_file() {
        for name in ["x.whl", "x.tar.gz"] {
            let error = member("here/x", name, b"not an archive", "a.csv").expect_err("refused").to_string();
            assert!(error.starts_with("here/x: this is not a readable"), "{error}");
        }
    }
}
