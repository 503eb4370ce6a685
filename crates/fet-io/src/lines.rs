//! A journal of text lines: a file of JSON objects that only grows. A line that was altered or removed is an error.
//!
//! Each line is a JSON object that the caller makes, with one more member at its end: `check`, the first 16 bytes of SHA-256 over the
//! check of the line before and the caller's object. A line is on the disk when [`Lines::append`] returns. A crash may leave a
//! part of a line at the end of the file; the part is dropped, since nothing relied on it. Any other line that is not as it was
//! written is an error. Lines that are cut off at the end of the file leave no trace: the caller must count them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic::sync_folder;
use crate::{hex, sha256};

/// Hexadecimal digits of a check.
const DIGITS: usize = 32;
/// The text between the caller's members and the check.
const MEMBER: &str = ",\"check\":\"";
/// The end of a line.
const END: &str = "\"}";

/// A file of lines.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    /// Length of the complete lines, in bytes.
    length: u64,
    last: String,
    /// True if an incomplete line follows the complete lines.
    torn: bool,
}

/// Reasons why a file of lines cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinesError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line has changed since it was written.
    #[error("line {0} has changed since it was written")]
    Damaged(usize),
}

impl Lines {
    /// Opens the file at `path`, and returns it with the objects of its lines. A missing file counts as empty; the first new line
    /// creates it.
    pub fn open(path: &Path) -> Result<(Self, Vec<String>), LinesError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let mut lines = Self { path: path.to_path_buf(), length: 0, last: String::new(), torn: false };
        let mut objects = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                lines.torn = true;
                break;
            };
            let (object, check) = lines.parts(line).ok_or(LinesError::Damaged(objects.len() + 1))?;
            lines.last = check;
            lines.length += line.len() as u64 + 1;
            objects.push(object);
        }
        Ok((lines, objects))
    }

    /// The caller's object in a line, and the line's check, if that is right.
    fn parts(&self, line: &[u8]) -> Option<(String, String)> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix(END)?;
        let (rest, check) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
        let object = format!("{}}}", rest.strip_suffix(MEMBER)?);
        (self.check(&object) == check).then(|| (object, check.to_string()))
    }

    fn check(&self, object: &str) -> String {
        hex(&sha256(format!("{}\n{object}", self.last).as_bytes())[..DIGITS / 2])
    }

    /// Appends an object as a line, which is on the disk afterwards. If this fails, the next line is written in its place.
    ///
    /// # Panics
    /// If `object` is not a JSON object in one line with at least one member.
    pub fn append(&mut self, object: &str) -> io::Result<()> {
        let members = object.strip_suffix('}').filter(|members| members.len() > 1 && !members.contains('\n'));
        let members = members.expect("the caller makes an object with members");
        let check = self.check(object);
        let line = format!("{members}{MEMBER}{check}{END}\n");
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::options().write(true).create(true).truncate(false).open(&self.path)?;
        if !self.torn && file.metadata()?.len() != self.length {
            return Err(io::Error::other("another process has written to the file since it was read"));
        }
        if self.length == 0 {
            sync_folder(&self.path)?;
        }
        if self.torn {
            file.set_len(self.length)?;
        }
        self.torn = true;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(line.as_bytes())?;
        file.sync_all()?;
        (self.torn, self.last) = (false, check);
        self.length += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: usize) -> String {
        format!("{{\"number\":{number}}}")
    }

    fn written(path: &Path, count: usize) -> Vec<u8> {
        let (mut lines, _) = Lines::open(path).expect("a new file");
        (0..count).for_each(|number| lines.append(&object(number)).expect("written"));
        fs::read(path).expect("there")
    }

    #[test]
    fn returns_the_objects_that_were_appended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/lines");
        assert!(Lines::open(&path).expect("a new file").1.is_empty() && !path.exists());
        written(&path, 2);
        let (mut lines, found) = Lines::open(&path).expect("sound");
        assert_eq!(found, [object(0), object(1)]);
        lines.append(&object(2)).expect("written");
        assert_eq!(Lines::open(&path).expect("sound").1.len(), 3);
        let text = fs::read_to_string(&path).expect("there");
        assert!(text.lines().all(|line| line.starts_with("{\"number\":") && line.ends_with("\"}")), "{text}");
    }

    #[test]
    fn drops_a_torn_last_line_and_writes_over_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        let whole = written(&path, 3);
        let third = whole.len() / 3;
        for cut in 1..third {
            fs::write(&path, &whole[..whole.len() - cut]).expect("writable");
            let (mut lines, found) = Lines::open(&path).expect("torn");
            assert_eq!(found.len(), 2, "{cut}");
            lines.append(&object(7)).expect("written");
            assert_eq!(Lines::open(&path).expect("sound").1, [object(0), object(1), object(7)]);
        }
    }

    #[test]
    fn refuses_a_line_that_was_altered_or_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        let whole = written(&path, 3);
        for place in 0..whole.len() - 1 {
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            fs::write(&path, &flipped).expect("writable");
            assert!(matches!(Lines::open(&path), Err(LinesError::Damaged(_))), "{place}");
        }
        let third = whole.len() / 3;
        fs::write(&path, [&whole[..third], &whole[2 * third..]].concat()).expect("writable");
        assert!(matches!(Lines::open(&path), Err(LinesError::Damaged(2))));
    }
}
