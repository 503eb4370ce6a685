//! Reads regular files only: a FIFO would wait for a writer, and a device such as `/dev/zero` never ends.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a file. Refuses a folder, a FIFO, a device or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder; a file is expected"));
    }
    if !found.is_file() {
        return Err(io::Error::other("it is a FIFO, a device or a socket; a file is expected"));
    }
    File::open(path)
}

/// The content of a file ([`open`]).
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content of a file of text ([`open`]).
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        io::Error::new(ErrorKind::InvalidData, format!("it is not text: byte {place} is not valid UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_regular_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"text\xff").expect("written");
        assert_eq!(read(&path).expect("a file"), b"text\xff");
        assert!(read_to_string(&path).expect_err("no text").to_string().contains("byte 5"));
        assert!(read(folder.path()).expect_err("a folder").to_string().contains("is a folder"));
        assert_eq!(open(&folder.path().join("none")).expect_err("absent").kind(), ErrorKind::NotFound);
        #[cfg(unix)]
        assert!(open(Path::new("/dev/zero")).expect_err("endless").to_string().contains("a device"));
    }
}
