//! Atomic writes: a temporary file in the same folder, then a rename.
//!
//! Readers see the old file or the new one, never a part. Two processes or threads can write the same file: each uses a separate
//! temporary file, and the last rename wins. A process that is killed during a write leaves its temporary file
//! (`NAME.PROCESS-NUMBER.part`); no program reads it, and [`sweep`] removes it.
//!
//! A write follows symbolic links and replaces the target, not the link. [`write_with`] writes directly to a device or a FIFO.
//!
//! The crate `tempfile` would also work, but `cargo xtask` would have to build it and its dependencies first.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes `bytes` to the file `path`; creates a missing folder. A device or a FIFO at this path is an error, because the program
/// would wait for a reader.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_stream(path) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path is not a regular file"));
    }
    write_with(path, |file| file.write_all(bytes))?;
    // The rename survives a power cut.
    sync_folder(path)
}

/// Writes `bytes` to `path`, readable only by the file's owner (mode 0600) on systems with such permissions; creates a missing folder.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_atomically(path, true, |file| file.write_all(bytes))?;
    sync_folder(path)
}

/// Flushes the folder of a new file to the disk, on systems that support it.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Writes the output of `fill` to `path`; creates a missing folder. Returns the result of `fill`.
///
/// On failure it removes the temporary file and leaves `path` unchanged.
pub fn write_with<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    write_atomically(path, false, fill)
}

fn write_atomically<T>(
    path: &Path,
    private: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
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
        // The first error is the one to report; a left-over temporary file is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Temporary files in use.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn under_way() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes this process's temporary files and exits with this code. For programs that receive a signal to stop.
pub fn leave(code: i32) -> ! {
    // Holding the lock to the end prevents new files.
    let under_way = under_way();
    for temporary in under_way.iter() {
        let _ = fs::remove_file(temporary);
    }
    std::process::exit(code)
}

/// Tests if [`write_with`] could write to `path`, without leaving a file. Does not open devices or FIFOs.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let path = &followed(path)?;
    if is_stream(path) {
        return Ok(());
    }
    let (temporary, _) = create_beside(path, false)?;
    fs::remove_file(temporary)
}

/// Resolves symbolic links, up to the system's limit.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its symbolic links form a loop"))
}

/// True if the path exists and is neither a file nor a folder.
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

/// Removes temporary files that killed processes left in `folder`. The caller must be the only writer there. A file that cannot be
/// removed is harmless.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // In a container every process has the same number, so this process skips the files that it writes itself.
        if name.to_str().is_some_and(is_temporary) && !under_way().contains(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True for names that [`create_beside`] makes.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_suffix(".part").and_then(|name| name.rsplit_once('.'));
    let numbers = numbers.and_then(|(_, numbers)| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok())
}

/// Creates a file next to `path`. Its name is unique among the threads of this process and the processes of this machine; on a shared
/// folder it skips names that another machine has taken.
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

/// Creates a file; a private file is never readable by others.
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
    fn removes_only_leftovers_of_killed_processes() {
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
    fn writes_whole_files_and_leaves_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = folder.path().join("new");
        let path = new.join("file.txt");
        for text in ["first, longer", "second"] {
            write(&path, text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        fs::create_dir(new.join("taken")).expect("a folder");
        write(&new.join("taken"), b"text").expect_err("the path is a folder");
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
    fn skips_a_taken_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let (first, _) = create_beside(&path, false).expect("created");
        let (second, _) = create_beside(&path, false).expect("created");
        assert!(first != second && first.exists() && second.exists());
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_and_keeps_devices() {
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
        // /dev/full exists everywhere and refuses writes.
        symlink("/dev/full", at("full")).expect("a link");
        check_writable(&at("full")).expect("nothing is written");
        write(&at("full"), b"text").expect_err("it is full");
        assert!(fs::metadata("/dev/full").expect("there").file_type().is_char_device());
        assert_eq!(names(folder.path()), ["circle", "deep", "first", "full", "second"]);
        assert_eq!(names(&at("deep")), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_a_private_file() {
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
