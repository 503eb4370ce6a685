//! A cache of links on disk, addressed by keys, linker, settings and seed.
//!
//! The cache is off unless the environment variable [`CACHE_VARIABLE`] names a folder. The name of a file is
//! the hash of all inputs of its links. The file repeats this hash and ends with a checksum. The cache
//! detects a file that is damaged, truncated or for other inputs, computes its links again and replaces the
//! file. It writes files atomically. Linkers that pose a challenge are not cached, since their messages never
//! repeat. A file contains links and similarities in plain form and belongs to the party that links.
//!
//! The hash covers the encoded queries of the querier, and a value derived from the data holder's secret.
//! Links under an old secret of either side are therefore not reused. The secret itself is never stored.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::data::Keys;
use crate::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier};

/// Environment variable that names the folder of the cache.
pub const CACHE_VARIABLE: &str = "FET_LINK_CACHE";

/// Format of the files, which is part of the hash.
const FORMAT: &str = concat!("fet links 7 ", env!("CARGO_PKG_VERSION"));

/// A linker whose data holder searches a folder before it links.
pub struct Cached {
    inner: Box<dyn Linker>,
    /// Kind and settings of the linker, as in the report.
    settings: String,
    /// Environment variables with the secrets that the settings name.
    secrets: Vec<String>,
    folder: PathBuf,
}

impl Cached {
    /// Returns `inner` with a cache if the environment names a folder, else `inner` itself.
    pub fn from_environment(inner: Box<dyn Linker>, settings: &toml::Table) -> Box<dyn Linker> {
        match std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Box::new(Self::new(inner, settings, PathBuf::from(folder))),
            None => inner,
        }
    }

    /// Creates a cache in `folder` around `inner`, which was built from `settings`.
    pub fn new(inner: Box<dyn Linker>, settings: &toml::Table, folder: PathBuf) -> Self {
        Self { inner, settings: settings.to_string(), secrets: secrets(settings), folder }
    }
}

/// Returns every `secret_env` of the settings, including those of inner linkers.
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

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        self.inner.querier(seed)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        let inner = self.inner.data_holder(seed);
        // A data holder that poses a challenge links by messages of this run; a file of another run cannot replace them.
        if self.inner.about().challenges {
            return inner;
        }
        let (settings, folder) = (self.settings.clone(), self.folder.clone());
        let mut secrets = Sha256::new_with_prefix("fet links, secrets");
        for name in &self.secrets {
            let value = Zeroizing::new(std::env::var(name).unwrap_or_default());
            secrets.update((value.len() as u64).to_le_bytes());
            secrets.update(value.as_bytes());
        }
        let secret = Zeroizing::new(secrets.finalize().into());
        Box::new(Searched { inner, settings, secret, seed, folder, warnings: Vec::new() })
    }
}

struct Searched {
    inner: Box<dyn DataHolder>,
    settings: String,
    /// Digest of the data holder's secrets that the settings name.
    secret: Zeroizing<[u8; 32]>,
    seed: u64,
    folder: PathBuf,
    warnings: Vec<String>,
}

impl DataHolder for Searched {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let key = self.key(task);
        let name = fet_io::hex(&key);
        let path = self.folder.join(format!("{name}.links"));
        match fet_io::read(&path) {
            Ok(bytes) => match from_bytes(&key, &bytes, (task.queries.rows(), task.records.rows())) {
                Ok((links, warnings)) => {
                    self.warnings.extend(warnings);
                    (task.progress)(links.rows());
                    return Ok(links);
                }
                Err(problem) => self
                    .warnings
                    .push(format!("{}: the file {problem}. The links are computed again.", path.display())),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                self.warnings.push(format!(
                    "{}: the file cannot be read ({error}). The links are computed again.",
                    path.display()
                ));
            }
        }
        let links = self.inner.link(task)?;
        let warnings = self.inner.warnings();
        let written = fet_io::write(&path, &to_bytes(&key, &links, &warnings));
        self.warnings.extend(warnings);
        if let Err(error) = written {
            let warning = format!(
                "{}: the file cannot be written ({error}). The links are not cached.",
                path.display()
            );
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
        for part in
            [FORMAT.as_bytes(), self.settings.as_bytes(), &seed, &estimate, &self.secret[..], &new_rows]
        {
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

/// Content of a file between the hash of its inputs and its checksum.
#[derive(Serialize, Deserialize)]
struct Content {
    neighbours: usize,
    available: usize,
    indices: Vec<u32>,
    similarities: Option<Vec<f32>>,
    estimate: Option<f64>,
    /// Warnings of the linker, which every use of the links repeats.
    warnings: Vec<String>,
}

fn to_bytes(key: &[u8; 32], links: &Links, warnings: &[String]) -> Vec<u8> {
    let content = Content {
        neighbours: links.neighbours(),
        available: links.available(),
        indices: links.all_indices().to_vec(),
        similarities: links.all_similarities().map(<[f32]>::to_vec),
        estimate: links.estimate(),
        warnings: warnings.to_vec(),
    };
    let mut bytes = key.to_vec();
    bytes.extend(postcard::to_allocvec(&content).expect("numbers and lists have a form in postcard"));
    bytes.extend(Sha256::digest(&bytes));
    bytes
}

/// Returns the links and warnings of a file, or the reason why the file is invalid.
fn from_bytes(
    key: &[u8; 32],
    bytes: &[u8],
    (queries, records): (usize, usize),
) -> Result<(Links, Vec<String>), &'static str> {
    let Some((content, sum)) = bytes.split_last_chunk::<32>() else { return Err("is too short") };
    if Sha256::digest(content)[..] != sum[..] {
        return Err("does not match its checksum: it is damaged");
    }
    let Some((stated, body)) = content.split_first_chunk::<32>() else { return Err("is too short") };
    if stated != key {
        return Err("contains links of other keys or settings");
    }
    let Ok((content, [])) = postcard::take_from_bytes::<Content>(body) else {
        return Err("contains no links");
    };
    let Content { neighbours, available, indices, similarities, estimate, warnings } = content;
    let sound = (1..=neighbours).contains(&available)
        && queries.checked_mul(neighbours) == Some(indices.len())
        && indices.iter().all(|&index| (index as usize) < records)
        && similarities.as_ref().is_none_or(|similarities| similarities.len() == indices.len());
    if !sound {
        return Err("contains no links");
    }
    let links = match similarities {
        Some(similarities) => Links::new(neighbours, available, indices, similarities),
        None => Links::without_similarities(neighbours, available, indices),
    };
    Ok((links.with_estimate(estimate), warnings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::KeyKind;
    use crate::data::Matrix;
    use crate::linker::{Reveals, link_between};

    /// Links every query to the first record.
    struct First;

    impl Linker for First {
        fn about(&self) -> About {
            About::new(
                1,
                KeyKind::Numbers,
                Reveals { secondary: "nothing", primary: "nothing", eavesdropper: "nothing" },
            )
        }

        fn data_holder(&self, _: u64) -> Box<dyn DataHolder> {
            Box::new(Self)
        }
    }

    impl DataHolder for First {
        fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
            Ok(Links::without_similarities(1, 1, vec![0; task.queries.rows()]))
        }
    }

    #[test]
    fn reuses_no_links_after_the_secret_has_changed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings: toml::Table = toml::from_str(
            "kind = 'noisy'\nleak = 1.0\ninner = { kind = 'clk', neighbours = 1, secret_env = 'FET_CACHE' }",
        )
        .expect("TOML");
        assert_eq!(secrets(&settings), ["FET_CACHE"]);
        let keys = Keys::from(Matrix::new(1, (0..40).map(f64::from).collect()));
        // The settings stay the same. PATH serves as a secret, because every environment has it.
        for variables in [&["PATH"][..], &[], &["PATH"]] {
            let mut linker = Cached::new(Box::new(First), &settings, folder.path().to_path_buf());
            linker.secrets = variables.iter().map(|name| name.to_string()).collect();
            let (mut querier, mut data_holder) = (linker.querier(1), linker.data_holder(1));
            link_between(querier.as_mut(), data_holder.as_mut(), &keys, &keys, &|_| ()).expect("linkable");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
