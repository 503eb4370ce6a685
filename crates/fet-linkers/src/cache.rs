//! A cache of links on disk, addressed by keys, linker, settings and seed.
//!
//! Off unless the environment variable [`CACHE_VARIABLE`] names a folder. A file's name is the hash of all inputs of
//! its links; its content repeats that hash and ends with a checksum. A file that is damaged, truncated or for other
//! inputs is detected, recomputed and replaced. Files are written atomically. Linkers that pose a challenge are not
//! cached: their messages never repeat. A file holds links and similarities in the clear: it belongs to the party that
//! links.
//!
//! The hash covers the queries as the asker conceals them, and what is derived from the owner's secret: links under an old secret of
//! either side are not reused. The secret itself is stored nowhere.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::secret::secret;
use crate::wire::{Reader, Writer};
use fet_core::data::Keys;
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner};
use zeroize::Zeroizing;

/// The environment variable that names the folder of the cache.
pub const CACHE_VARIABLE: &str = "FET_LINK_CACHE";

/// The format of the files; it is part of the hash.
const FORMAT: &str = concat!("fet links 5 ", env!("CARGO_PKG_VERSION"));

/// A linker whose owner checks a folder before it links.
pub struct Cached {
    inner: Box<dyn Linker>,
    /// Kind and settings, as in the report.
    settings: String,
    /// The environment variables that these say hold secrets.
    secrets: Vec<String>,
    folder: PathBuf,
}

impl Cached {
    /// `inner`, with a cache if the environment names a folder.
    pub fn from_environment(inner: Box<dyn Linker>, settings: &toml::Table) -> Box<dyn Linker> {
        match std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Box::new(Self::new(inner, settings, PathBuf::from(folder))),
            None => inner,
        }
    }

    /// `inner`, which was built from `settings`, with a cache in `folder`.
    pub fn new(inner: Box<dyn Linker>, settings: &toml::Table, folder: PathBuf) -> Self {
        Self { inner, settings: settings.to_string(), secrets: secrets(settings), folder }
    }
}

/// Every `secret_env` of the settings, those of inner linkers included.
fn secrets(settings: &toml::Table) -> Vec<String> {
    let own = settings.get("secret_env").and_then(toml::Value::as_str).filter(|name| !name.is_empty());
    let inner = settings.values().filter_map(toml::Value::as_table).flat_map(secrets);
    own.map(str::to_string).into_iter().chain(inner).collect()
}

impl Linker for Cached {
    fn about(&self) -> About {
        self.inner.about()
    }

    fn notes(&self, queries: &Keys) -> Vec<String> {
        self.inner.notes(queries)
    }

    fn asker(&self, seed: u64) -> Box<dyn Asker> {
        self.inner.asker(seed)
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        let inner = self.inner.owner(seed);
        // An owner that asks back links by messages of this run, which no file of another run can stand for.
        if self.inner.about().challenges {
            return inner;
        }
        let (settings, folder) = (self.settings.clone(), self.folder.clone());
        let mut own = Zeroizing::new(Vec::with_capacity(32 * self.secrets.len()));
        let secrets = self.secrets.iter().filter_map(|name| secret(name, seed, "cache").ok());
        secrets.for_each(|secret| own.extend_from_slice(&secret[..]));
        Box::new(Searched { inner, settings, secret: own, seed, folder, warnings: Vec::new() })
    }
}

struct Searched {
    inner: Box<dyn Owner>,
    settings: String,
    /// Derived from the owner's secret, where its settings name one.
    secret: Zeroizing<Vec<u8>>,
    seed: u64,
    folder: PathBuf,
    warnings: Vec<String>,
}

impl Owner for Searched {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let key = self.key(task);
        let name = fet_files::hex(&key);
        let path = self.folder.join(format!("{name}.links"));
        match fet_files::read(&path) {
            Ok(bytes) => match from_bytes(&key, &bytes, (task.queries.rows(), task.records.rows())) {
                Ok(links) => {
                    (task.progress)(links.rows());
                    return Ok(links);
                }
                Err(problem) => self.warnings.push(format!("{} {problem}; linked anew", path.display())),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                self.warnings.push(format!("{} cannot be read ({error}); linked anew", path.display()));
            }
        }
        let links = self.inner.link(task)?;
        if let Err(error) = fet_files::write(&path, &to_bytes(&key, &links)) {
            let warning = format!("{} cannot be written ({error}); the links are not kept", path.display());
            self.warnings.push(warning);
        }
        Ok(links)
    }

    fn warnings(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.warnings);
        all.extend(self.inner.warnings());
        all
    }
}

impl Searched {
    fn key(&self, task: &LinkTask<'_>) -> [u8; 32] {
        let LinkTask { queries, records, .. } = *task;
        let mut hash = Sha256::new();
        let estimate = task.estimate.map_or(Vec::new(), |estimate| estimate.to_le_bytes().to_vec());
        let new_rows = [u8::from(task.new_rows)];
        let seed = self.seed.to_le_bytes();
        for part in [FORMAT.as_bytes(), self.settings.as_bytes(), &seed, &estimate, &self.secret, &new_rows] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
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
            for form in keys.given_forms() {
                hash.update(format!("{form:?}"));
            }
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
    writer.number(u32::from(links.estimate().is_some()));
    let estimate = links.estimate().unwrap_or_default().to_bits();
    writer.number((estimate >> 32) as u32);
    writer.number(estimate as u32);
    links.all_indices().iter().for_each(|&index| writer.number(index));
    links.all_similarities().unwrap_or_default().iter().for_each(|s| writer.number(s.to_bits()));
    let mut bytes = [key.as_slice(), &writer.bytes()].concat();
    bytes.extend(fet_files::sha256(&bytes));
    bytes
}

/// The links of a file, or why it is invalid.
fn from_bytes(
    key: &[u8; 32],
    bytes: &[u8],
    (queries, records): (usize, usize),
) -> Result<Links, &'static str> {
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
        let estimated = number()? == 1;
        let estimate = f64::from_bits((number()? as u64) << 32 | number()? as u64);
        let estimate = estimated.then_some(estimate);
        if available == 0 || available > neighbours || rows != queries {
            return Err(LinkError::Message("impossible sizes".into()));
        }
        let count = neighbours * rows;
        let indices: Vec<u32> = (0..count).map(|_| reader.number()).collect::<Result<_, _>>()?;
        if indices.iter().any(|&index| index as usize >= records) {
            return Err(LinkError::Message("impossible links".into()));
        }
        if !similar {
            return Ok(Links::without_similarities(neighbours, available, indices).with_estimate(estimate));
        }
        let similarities =
            (0..count).map(|_| reader.number().map(f32::from_bits)).collect::<Result<_, _>>()?;
        Ok(Links::new(neighbours, available, indices, similarities).with_estimate(estimate))
    };
    parse().map_err(|_| "holds no links")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::fs;

    use super::*;
    use fet_core::data::Matrix;
    use fet_core::linker::link_between;
    use fet_core::registry::Slot;

    fn cached(kind: &str, folder: &Path) -> Cached {
        let slot = Slot::<dyn Linker>::of(kind).expect("a linker");
        Cached::new(slot.build(&()).expect("sound"), &slot.settings(), folder.to_path_buf())
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()).collect()
    }

    /// Links and warnings.
    fn link(linker: &Cached, queries: &Keys, records: &Keys, seed: u64) -> (Links, Vec<String>) {
        let (mut asker, mut owner) = (linker.asker(seed), linker.owner(seed));
        let links = link_between(asker.as_mut(), owner.as_mut(), queries, records, &|_| ());
        (links.expect("linkable"), owner.warnings())
    }

    /// An owner whose secret was changed does not take links that were made under the old one.
    #[test]
    fn a_changed_secret_is_another_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let table: toml::Table = toml::from_str(
            "kind = 'noisy'\nleak = 1.0\ninner = { kind = 'clk', neighbours = 1, secret_env = 'FET_CACHE' }",
        )
        .expect("TOML");
        assert_eq!(secrets(&table), ["FET_CACHE"]);
        // With a secret that is always there and without, under settings that are the same.
        let keys = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
        for variables in [&["PATH"][..], &[], &["PATH"]] {
            let mut linker = cached("nearest", folder.path());
            linker.secrets = variables.iter().map(|name| name.to_string()).collect();
            link(&linker, &keys, &keys, 1);
        }
        assert_eq!(files(folder.path()).len(), 2);
    }

    #[test]
    fn links_are_kept_found_and_mended() {
        let keys = Keys::from(Matrix::new(2, (0..60).map(|i| f64::from(i * 37 % 61)).collect()));
        for kind in ["nearest", "random", "federal", "noisy"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let linker = cached(kind, folder.path());
            let (first, _) = link(&linker, &keys, &keys, 1);
            let file = files(folder.path()).pop().expect("a file is there");
            let whole = fs::read(&file).expect("readable");
            assert_eq!(link(&linker, &keys, &keys, 1), (first.clone(), Vec::new()), "{kind} from the file");
            // A flipped bit, a cut, an empty file, and another run's file under this name.
            let mut flipped = whole.clone();
            flipped[whole.len() / 2] ^= 1;
            let other = cached(kind, &folder.path().join("other"));
            link(&other, &keys, &keys, 2);
            let other =
                fs::read(files(&folder.path().join("other")).pop().expect("a file")).expect("readable");
            for bad in [flipped, whole[..whole.len() - 5].to_vec(), Vec::new(), other] {
                fs::write(&file, bad).expect("writable");
                let (again, warnings) = link(&linker, &keys, &keys, 1);
                assert_eq!(again, first, "{kind} linked anew");
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
        link(&linker, &keys(0.0), &keys(0.0), 1);
        link(&linker, &keys(0.5), &keys(0.0), 1);
        link(&linker, &keys(0.0), &keys(0.5), 1);
        link(&linker, &keys(0.0), &keys(0.0), 2);
        link(&cached("rotation", folder.path()), &keys(0.0), &keys(0.0), 1);
        assert_eq!(files(folder.path()).len(), 5);
    }

    #[test]
    fn a_linker_that_poses_a_challenge_is_not_cached() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
        link(&cached("psi", folder.path()), &keys, &keys, 1);
        assert_eq!(files(folder.path()).len(), 0);
    }

    /// Two secrets, as from an environment variable: here each is derived from a different seed of the asker, while the
    /// owner's seed, settings and keys stay the same.
    #[test]
    fn another_secret_is_another_file() {
        let numbers = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
        let names = (0..40).map(|i| format!("name {i}")).collect();
        let names = Keys::Text(fet_core::data::TextTable::new(1, names));
        for (kind, keys) in [("clk", &names), ("federal", &numbers), ("rotation", &numbers)] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let linker = cached(kind, folder.path());
            for secret in [1, 2, 1] {
                let concealed = linker.asker(secret).conceal(keys).expect("sealable");
                linker.owner(1).link(&LinkTask::new(&concealed, keys)).expect("linkable");
            }
            assert_eq!(files(folder.path()).len(), 2, "{kind}");
        }
    }
}
