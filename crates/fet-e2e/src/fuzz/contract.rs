//! Reader under test, with its inputs and outcomes.

use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::seq::IndexedRandom;

use crate::mutate;

/// Outcome of reading an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReaderOutcome {
    /// The reader accepted the input and read it correctly.
    Accepted,
    /// The reader refused the input with this message.
    Refused(String),
    /// The reader accepted an invalid input or read wrong values, with details.
    Wrong(String),
}

/// Converts a result to an outcome: the problem with an accepted input, if any, or the error message.
pub(super) fn outcome<E: std::fmt::Display>(result: Result<Option<String>, E>) -> ReaderOutcome {
    match result {
        Ok(None) => ReaderOutcome::Accepted,
        Ok(Some(wrong)) => ReaderOutcome::Wrong(wrong),
        Err(error) => ReaderOutcome::Refused(error.to_string()),
    }
}

/// Reader of bytes.
#[derive(Debug, Clone, Copy)]
pub struct FuzzReader {
    /// Name on the command line, and of its folder in the corpus.
    pub name: &'static str,
    /// Returns valid inputs, which the reader accepts.
    pub sound: fn() -> Vec<Vec<u8>>,
    /// Separators of values in text inputs. `None` for binary inputs.
    pub ends: Option<&'static [char]>,
    /// Reads an input.
    pub read: fn(&[u8]) -> ReaderOutcome,
}

impl FuzzReader {
    /// Returns the initial inputs: valid inputs, and the corpus of earlier faults.
    pub fn initial_inputs(&self) -> Vec<Vec<u8>> {
        (self.sound)().into_iter().chain(self.found().into_iter().map(|(_, bytes)| bytes)).collect()
    }

    /// Returns the corpus by name: inputs that once made this reader fail.
    pub fn found(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name);
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().filter_map(|path| std::fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
    }

    /// Returns the input with this number in the campaign with this seed.
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
