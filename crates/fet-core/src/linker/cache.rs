//! Links kept on disk, found again by what they follow from: keys, linker, settings and seed.
//!
//! Off unless the environment variable [`CACHE_VARIABLE`] names a folder. A file's name is the hash of all that its links
//! follow from; its content repeats that hash and ends with one of itself. A file that is damaged, cut or of something
//! else is noticed, linked anew and replaced. Files appear whole or not at all. Linkers that pose a challenge are not
//! cached: their messages are never the same twice. A file holds links and similarities in the clear: it belongs to the
//! party that links.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use sha2::{Digest, Sha256};

use super::wire::{Reader, Writer};
use super::{LinkError, Linker, Links, Reveals};
use crate::data::{KeyKind, Keys, Sealed};

/// The environment variable that names the folder of the cache.
pub const CACHE_VARIABLE: &str = "FET_LINK_CACHE";

/// The format of the files; another one is another key.
const FORMAT: &str = concat!("fet links 1 ", env!("CARGO_PKG_VERSION"));

/// A linker that looks into a folder before it links.
pub struct Cached {
    inner: Box<dyn Linker>,
    /// Kind and settings, as they stand in the report.
    settings: String,
    folder: PathBuf,
    warnings: Mutex<Vec<String>>,
}

impl Cached {
    /// `inner`, with a cache where the environment names a folder.
    pub fn from_environment(inner: Box<dyn Linker>, settings: &toml::Table) -> Box<dyn Linker> {
        match std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Box::new(Self::new(inner, settings, PathBuf::from(folder))),
            None => inner,
        }
    }

    /// `inner`, which was built from `settings`, with a cache in `folder`.
    pub fn new(inner: Box<dyn Linker>, settings: &toml::Table, folder: PathBuf) -> Self {
        Self { inner, settings: settings.to_string(), folder, warnings: Mutex::new(Vec::new()) }
    }

    fn warn(&self, message: String) {
        self.warnings.lock().expect("no thread panics while it holds the lock").push(message);
    }

    fn key(&self, queries: &Keys, records: &Keys, seed: u64) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [FORMAT.as_bytes(), self.settings.as_bytes(), &seed.to_le_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        // Filters and pivots follow from the secret, which is no setting.
        for keys in [queries, records] {
            digest(keys, &mut hash);
        }
        hash.finalize().into()
    }
}

fn digest(keys: &Keys, hash: &mut Sha256) {
    for number in [keys.rows(), keys.columns()] {
        hash.update((number as u64).to_le_bytes());
    }
    match keys {
        Keys::Numbers(keys) => {
            hash.update(b"numbers");
            keys.values().iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        Keys::Text(keys) => {
            hash.update(b"text");
            for cell in keys.cells() {
                hash.update((cell.len() as u64).to_le_bytes());
                hash.update(cell);
            }
        }
        Keys::Sealed(keys) => {
            hash.update(b"sealed");
            hash.update(keys.bytes());
        }
    }
}

fn to_bytes(key: &[u8; 32], links: &Links) -> Vec<u8> {
    let mut writer = Writer::default();
    for number in [links.neighbours(), links.available(), links.rows()] {
        writer.number(number as u32);
    }
    writer.number(u32::from(links.all_similarities().is_some()));
    links.all_indices().iter().for_each(|&index| writer.number(index));
    links.all_similarities().unwrap_or_default().iter().for_each(|s| writer.number(s.to_bits()));
    let mut bytes = [key.as_slice(), &writer.bytes()].concat();
    bytes.extend(fet_files::sha256(&bytes));
    bytes
}

/// The links of a file, or what is wrong with it.
fn from_bytes(key: &[u8; 32], bytes: &[u8], records: usize) -> Result<Links, &'static str> {
    let Some((content, sum)) = bytes.split_last_chunk::<32>() else { return Err("is too short") };
    if fet_files::sha256(content) != *sum {
        return Err("does not have the checksum that it states: it is damaged");
    }
    let Some((stated, body)) = content.split_first_chunk::<32>() else { return Err("is too short") };
    if stated != key {
        return Err("is of other keys or settings than its name says");
    }
    let parse = || -> Result<Links, LinkError> {
        let mut reader = Reader::new(body);
        let mut number = || reader.number().map(|n| n as usize);
        let (neighbours, available, rows, similar) = (number()?, number()?, number()?, number()? == 1);
        let count = neighbours * rows;
        let indices: Vec<u32> = (0..count).map(|_| reader.number()).collect::<Result<_, _>>()?;
        if available == 0 || available > neighbours || indices.iter().any(|&index| index as usize >= records)
        {
            return Err(LinkError::Message("impossible links".into()));
        }
        if !similar {
            return Ok(Links::without_similarities(neighbours, available, indices));
        }
        let similarities =
            (0..count).map(|_| reader.number().map(f32::from_bits)).collect::<Result<_, _>>()?;
        Ok(Links::new(neighbours, available, indices, similarities))
    };
    parse().map_err(|_| "holds no links")
}

impl Linker for Cached {
    fn neighbours(&self) -> usize {
        self.inner.neighbours()
    }

    fn gives_similarities(&self) -> bool {
        self.inner.gives_similarities()
    }

    fn reveals(&self) -> Reveals {
        self.inner.reveals()
    }

    fn warnings(&self) -> Vec<String> {
        let mut own =
            std::mem::take(&mut *self.warnings.lock().expect("no thread panics while it holds the lock"));
        own.extend(self.inner.warnings());
        own
    }

    fn takes(&self) -> KeyKind {
        self.inner.takes()
    }

    fn floor(&self) -> Option<f32> {
        self.inner.floor()
    }

    fn conceal(&self, queries: &Keys, seed: u64) -> Result<Keys, LinkError> {
        self.inner.conceal(queries, seed)
    }

    fn asks(&self) -> bool {
        self.inner.asks()
    }

    fn challenge(&self, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.inner.challenge(records)
    }

    fn answer(&self, challenge: &Sealed) -> Result<Sealed, LinkError> {
        self.inner.answer(challenge)
    }

    fn link_answered(
        &self,
        queries: &Keys,
        records: &Keys,
        answer: &Sealed,
        seed: u64,
    ) -> Result<Links, LinkError> {
        self.inner.link_answered(queries, records, answer, seed)
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        self.link_telling(queries, records, seed, &|_| ())
    }

    fn link_telling(
        &self,
        queries: &Keys,
        records: &Keys,
        seed: u64,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Links, LinkError> {
        // A linker that asks back has a link of its own that no message of another run can stand for.
        if self.inner.asks() {
            return self.inner.link_telling(queries, records, seed, done);
        }
        // What is encoded is hashed as it is encoded: the secret is then part of the key.
        let concealed =
            if matches!(queries, Keys::Sealed(_)) { queries.clone() } else { self.conceal(queries, seed)? };
        let key = self.key(&concealed, records, seed);
        let path = self.folder.join(format!("{}.links", fet_files::hex(&key)));
        match fs::read(&path) {
            Ok(bytes) => match from_bytes(&key, &bytes, records.rows()) {
                Ok(links) => return Ok(links),
                Err(problem) => self.warn(format!("{} {problem}; linked anew", path.display())),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.warn(format!("{} cannot be read ({error}); linked anew", path.display())),
        }
        let links = self.inner.link_telling(&concealed, records, seed, done)?;
        if let Err(error) = fet_files::write(&path, &to_bytes(&key, &links)) {
            self.warn(format!("{} cannot be written ({error}); the links are not kept", path.display()));
        }
        Ok(links)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::Matrix;
    use crate::registry::Slot;

    fn cached(kind: &str, folder: &Path) -> Cached {
        let slot = Slot::<dyn Linker>::of(kind).expect("a linker");
        Cached::new(slot.build(&()).expect("sound"), &slot.settings(), folder.to_path_buf())
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()).collect()
    }

    #[test]
    fn links_are_kept_found_and_mended() {
        let keys = Keys::from(Matrix::new(2, (0..60).map(|i| f64::from(i * 37 % 61)).collect()));
        for kind in ["nearest", "random", "federal"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let linker = cached(kind, folder.path());
            let first = linker.link(&keys, &keys, 1).expect("linkable");
            let file = files(folder.path()).pop().expect("a file is there");
            let whole = fs::read(&file).expect("readable");
            assert_eq!(linker.link(&keys, &keys, 1), Ok(first.clone()), "{kind} from the file");
            assert!(linker.warnings().is_empty());
            // A flipped bit, a cut, an empty file, and another run's file under this name.
            let mut flipped = whole.clone();
            flipped[whole.len() / 2] ^= 1;
            let other = cached(kind, &folder.path().join("other"));
            other.link(&keys, &keys, 2).expect("linkable");
            let other =
                fs::read(files(&folder.path().join("other")).pop().expect("a file")).expect("readable");
            for bad in [flipped, whole[..whole.len() - 5].to_vec(), Vec::new(), other] {
                fs::write(&file, bad).expect("writable");
                assert_eq!(linker.link(&keys, &keys, 1), Ok(first.clone()), "{kind} linked anew");
                let warnings = linker.warnings();
                assert!(warnings.len() == 1 && warnings[0].contains("linked anew"), "{warnings:?}");
                assert_eq!(fs::read(&file).expect("readable"), whole, "{kind}: the file is mended");
            }
        }
    }

    #[test]
    fn other_keys_settings_and_seeds_are_other_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = |shift: f64| Keys::from(Matrix::new(1, (0..40).map(|i| f64::from(i) + shift).collect()));
        let linker = cached("nearest", folder.path());
        linker.link(&keys(0.0), &keys(0.0), 1).expect("linkable");
        linker.link(&keys(0.5), &keys(0.0), 1).expect("linkable");
        linker.link(&keys(0.0), &keys(0.5), 1).expect("linkable");
        linker.link(&keys(0.0), &keys(0.0), 2).expect("linkable");
        cached("rotation", folder.path()).link(&keys(0.0), &keys(0.0), 1).expect("linkable");
        assert_eq!(files(folder.path()).len(), 5);
    }
}
