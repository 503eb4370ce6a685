//! Snapshot of a folder, to detect the changes of a command. FIFOs and devices are not opened.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Kind and content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Folder,
    File(u64, u64),
    Link(PathBuf),
    Other(u32, u64),
}

/// Content of a folder, by relative path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

impl Snapshot {
    pub(crate) fn take(folder: &Path) -> std::io::Result<Self> {
        let mut found = BTreeMap::new();
        walk(folder, Path::new(""), &mut found)?;
        Ok(Self(found))
    }

    /// Returns each path that differs from `earlier`, with its change.
    pub(crate) fn since(&self, earlier: &Self) -> Vec<(PathBuf, FileChange)> {
        let new = self.0.keys().filter(|path| !earlier.0.contains_key(*path));
        let mut changes: Vec<_> = new.map(|path| (path.clone(), FileChange::New)).collect();
        for (path, entry) in &earlier.0 {
            match self.0.get(path) {
                None => changes.push((path.clone(), FileChange::Lost)),
                Some(now) if now != entry => {
                    let same_kind = matches!((now, entry), (Entry::File(..), Entry::File(..)));
                    changes.push((
                        path.clone(),
                        if same_kind { FileChange::Changed } else { FileChange::Replaced },
                    ));
                }
                Some(_) => {}
            }
        }
        changes
    }
}

/// Change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    New,
    Changed,
    /// A device, FIFO, link or folder was replaced.
    Replaced,
    Lost,
}

fn walk(root: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Entry>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (name, path) = (below.join(entry.file_name()), entry.path());
        let about = std::fs::symlink_metadata(&path)?;
        let kind = about.file_type();
        let what = if kind.is_dir() {
            walk(root, &name, found)?;
            Entry::Folder
        } else if kind.is_symlink() {
            Entry::Link(std::fs::read_link(&path)?)
        } else if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            Entry::Other(about.mode(), about.rdev())
        } else {
            let mut hasher = DefaultHasher::new();
            std::fs::read(&path)?.hash(&mut hasher);
            Entry::File(about.len(), hasher.finish())
        };
        found.insert(name, what);
    }
    Ok(())
}
