//! Every reader of bytes, on inputs that nobody would write.
//!
//! An input is a sound one with seeded changes, so that a case is known by its reader, its seed and its number. A reader is
//! called as the program calls it; what it accepts is held against an independent reading of the same bytes, or, where the
//! bytes have a checksum, against what was written. Nothing here follows the reader's branches: the changes are blind.

pub mod readers;

#[cfg(unix)]
pub mod campaign;

use std::path::{Path, PathBuf};

use fet_testing::mutate;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// What a reader did with an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It read it, and rightly so.
    Accepted,
    /// It refused it with this message.
    Refused(String),
    /// It read what it must refuse, or read it wrongly: how.
    Wrong(String),
}

/// A reader of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// What it is called at the prompt, and its folder in the corpus.
    pub name: &'static str,
    /// Sound inputs, each of which is accepted.
    pub sound: fn() -> Vec<Vec<u8>>,
    /// In text, what stands between values; none if its inputs are no text.
    pub ends: Option<&'static [char]>,
    /// Reads an input.
    pub read: fn(&[u8]) -> Outcome,
}

impl Reader {
    /// The reader of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        readers::ALL.iter().find(|reader| reader.name == name)
    }

    /// Its inputs to begin with: sound ones, and those that were found to be read wrongly once.
    pub fn beginnings(&self) -> Vec<Vec<u8>> {
        (self.sound)().into_iter().chain(self.found().into_iter().map(|(_, bytes)| bytes)).collect()
    }

    /// The corpus: inputs that this reader once got wrong, by name.
    pub fn found(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name);
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().filter_map(|path| std::fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
    }

    /// The input with this number, of the campaign with this seed.
    pub fn case(&self, beginnings: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
        let mut rng = mutate::generator(seed, self.name, number);
        let Some(first) = beginnings.choose(&mut rng) else { return Vec::new() };
        let text = std::str::from_utf8(first).ok();
        match (rng.random_range(0..8), self.ends, text) {
            (0..4, Some(ends), Some(text)) => mutate::values(text, ends, &mut rng).into_bytes(),
            (4, ..) => {
                let second = beginnings.choose(&mut rng).unwrap_or(first);
                let [end, begin] = [first, second].map(|bytes| rng.random_range(0..=bytes.len()));
                [&first[..end], &second[begin..]].concat()
            }
            _ => mutate::bytes(first, &mut rng),
        }
    }
}

/// What is wrong with a message for people, if anything: it is empty, or it shows the inside of the program.
pub fn unclear(message: &str) -> Option<&'static str> {
    const INSIDE: [&str; 14] = [
        "invalid type",
        "unknown variant",
        "expected usize",
        "expected u8",
        "expected u32",
        "expected u64",
        "expected i64",
        "expected f64",
        "expected struct",
        "expected a sequence",
        "expected a map",
        "expected tuple",
        "Settings`",
        "unwrap",
    ];
    if message.trim().is_empty() {
        return Some("it is empty");
    }
    INSIDE.into_iter().find(|part| message.contains(part))
}

/// A line on standard output; a reader that has gone is no fault.
pub fn print(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
