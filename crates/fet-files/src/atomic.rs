//! Writing a file by way of a temporary file beside it and a rename.
//!
//! Readers see the old file or the new one, never a part. Two processes or threads that write the same file do not
//! disturb each other: each has a temporary file of its own, and the last rename wins. A process that is killed while it
//! writes leaves its temporary file (`NAME.PROCESS-NUMBER.part`) behind; nothing reads it, and [`sweep`] removes it.
//!
//! A symbolic link is followed: the file that it names is replaced, not the link. What is no file, such as a device or a FIFO, stays;
//! [`write_with`] writes to it as it is.
//!
//! The crate `tempfile` would do the same, but it and what it depends on would be built before every `cargo xtask`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes `bytes` to the file `path`; creates the folder where it is missing. A device or a FIFO that stands there is an error:
/// a program that writes its own files would wait for somebody to read them.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_stream(path) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "what stands there is no file"));
    }
    write_with(path, |file| file.write_all(bytes))?;
    // After a power cut it is there, too.
    sync_folder(path)
}

/// Writes `bytes` to `path` so that, where the system has such permissions, only the file's owner may read it (mode 0600);
/// creates the folder where it is missing.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, true, |file| file.write_all(bytes))?;
    sync_folder(path)
}

/// Has the entry of a new file in its folder on the disk, where the system can be asked for that.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Writes to `path` what `fill` writes; creates the folder where it is missing. Returns what `fill` returns.
///
/// If anything fails, the temporary file is removed and `path` is as it was.
pub fn write_with<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    place(path, false, fill)
}

fn place<T>(path: &Path, private: bool, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let path = &followed(path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if is_stream(path) {
        let mut stream = BufWriter::with_capacity(1 << 20, File::options().write(true).open(path)?);
        let result = fill(&mut stream)?;
        stream.flush()?;
        return Ok(result);
    }
    let (temporary, file) = {
        let mut under_way = under_way();
        let (temporary, file) = create_beside(path, private)?;
        under_way.insert(temporary.clone());
        (temporary, file)
    };
    let written = fill_and_rename(file, &temporary, path, fill);
    under_way().remove(&temporary);
    if written.is_err() {
        // The first error is the one to report; a temporary file that stays does no harm.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The temporary files that are being written.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn under_way() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process with this exit code and leaves no temporary file of its own behind: for whoever is told to stop.
pub fn leave(code: i32) -> ! {
    // Held to the end: no other file is begun meanwhile.
    let under_way = under_way();
    for temporary in under_way.iter() {
        let _ = fs::remove_file(temporary);
    }
    std::process::exit(code)
}

/// Finds out whether [`write_with`] could begin to write to `path`, and leaves nothing behind. A device or a FIFO is not opened.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let path = &followed(path)?;
    if is_stream(path) {
        return Ok(());
    }
    let (temporary, _) = create_beside(path, false)?;
    fs::remove_file(temporary)
}

/// The file that a symbolic link names, through as many links as a system follows.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its symbolic links lead in a circle"))
}

/// Whether something stands there that is neither a file nor a folder.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn fill_and_rename<T>(
    file: File,
    temporary: &Path,
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let result = fill(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(temporary, path)?;
    Ok(result)
}

/// Removes what killed processes left of files that they were writing into `folder`: for whoever alone writes there. What cannot be removed
/// stays, and does no harm.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // In a container every process has the same number: what this one writes is known to it.
        if name.to_str().is_some_and(is_temporary) && !under_way().contains(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a name is one that [`create_beside`] gives.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_suffix(".part").and_then(|name| name.rsplit_once('.'));
    let numbers = numbers.and_then(|(_, numbers)| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok())
}

/// A new file beside `path`. Its name is unique among the threads of this process and the processes of this machine; a
/// name that a process of another machine has taken on a shared folder is skipped.
fn create_beside(path: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        match create_new(&temporary, private) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((temporary, file?)),
        }
    }
}

/// A new file; a private one is never, not for a moment, readable by others.
fn create_new(path: &Path, private: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = ["model", "a.part", "a.7.part", "a.x-1.part", "a.7-x.part", "under-way.1-3.part"];
        under_way().insert(folder.path().join("under-way.1-3.part"));
        let own = format!("model.{}-0.part", std::process::id());
        for name in kept.into_iter().chain(["model.safetensors.1-0.part", ".1-22.part", own.as_str()]) {
            fs::write(folder.path().join(name), b"x").expect("writable");
        }
        sweep(folder.path());
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        left.sort();
        let mut kept = kept.map(String::from);
        kept.sort();
        assert_eq!(left, kept);
        sweep(&folder.path().join("nowhere"));
    }

    #[test]
    fn files_are_written_whole_and_nothing_is_left_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = folder.path().join("new");
        let path = new.join("file.txt");
        for text in ["first, longer", "second"] {
            write(&path, text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        fs::create_dir(new.join("taken")).expect("a folder");
        write(&new.join("taken"), b"text").expect_err("a folder stands there");
        let failed = write_with(&path, |file| {
            file.write_all(b"half")?;
            Err::<(), _>(io::Error::other("no more"))
        });
        assert_eq!(failed.expect_err("refused").to_string(), "no more");
        assert_eq!(fs::read_to_string(&path).expect("there"), "second");
        assert_eq!(names(&new), ["file.txt", "taken"]);
    }

    #[test]
    fn writers_of_one_file_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let texts: Vec<Vec<u8>> = (0..8u8).map(|writer| vec![writer; 100_000]).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..5).for_each(|_| write(&path, text).expect("written")));
            }
        });
        assert!(texts.contains(&fs::read(&path).expect("there")), "the file is one writer's, and whole");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_name_that_is_taken_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let (first, _) = create_beside(&path, false).expect("created");
        let (second, _) = create_beside(&path, false).expect("created");
        assert!(first != second && first.exists() && second.exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_stay() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).expect("a folder");
        symlink("deep/file", at("first")).expect("a link");
        symlink("first", at("second")).expect("a link");
        check_writable(&at("second")).expect("its end can be written");
        write(&at("second"), b"text").expect("written");
        assert_eq!(fs::read_to_string(at("deep/file")).expect("there"), "text");
        assert!(at("first").is_symlink() && at("second").is_symlink());
        symlink("circle", at("circle")).expect("a link");
        assert!(write(&at("circle"), b"text").is_err() && check_writable(&at("circle")).is_err());
        // A device of our own: the terminal's other side would do, but /dev/full is everywhere and refuses.
        symlink("/dev/full", at("full")).expect("a link");
        check_writable(&at("full")).expect("nothing is written");
        write(&at("full"), b"text").expect_err("it is full");
        assert!(fs::metadata("/dev/full").expect("there").file_type().is_char_device());
        assert_eq!(names(folder.path()), ["circle", "deep", "first", "full", "second"]);
        assert_eq!(names(&at("deep")), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_read_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |name: &str| {
            let metadata = fs::metadata(folder.path().join(name)).expect("there");
            metadata.permissions().mode() & 0o777
        };
        write(&folder.path().join("open"), b"text").expect("written");
        write(&folder.path().join("secret"), b"text").expect("written");
        write_private(&folder.path().join("secret"), b"secret").expect("written over the other");
        assert_eq!(mode("secret"), 0o600);
        assert_ne!(mode("open") & 0o044, 0, "the other may be read, so that the comparison says something");
    }
}
