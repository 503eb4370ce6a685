//! The values of a hashed column that a preparation was fitted on, kept as hashes, to recognise values that are new.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The largest number of values that are kept. In a column with more of them, a new value is the rule.
const MOST: usize = 1 << 20;

/// Hashes of values, ascending. Two values share one with a probability of 2⁻³².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Known {
    hashes: Vec<u32>,
}

impl Known {
    /// The hashes of these values; nothing where they are more than can be kept.
    pub(super) fn fit<'a>(values: impl Iterator<Item = std::borrow::Cow<'a, str>>) -> Option<Self> {
        let mut all = HashSet::new();
        for value in values {
            all.insert(hash(&value));
            if all.len() > MOST {
                return None;
            }
        }
        let mut hashes: Vec<u32> = all.into_iter().collect();
        hashes.sort_unstable();
        Some(Self { hashes })
    }

    /// Returns true if the value is a fitted one.
    pub(super) fn has(&self, value: &str) -> bool {
        self.hashes.binary_search(&hash(value)).is_ok()
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }
}

/// Other bits than those that choose a bucket.
fn hash(value: &str) -> u32 {
    (xxh3_64(value.as_bytes()) >> 32) as u32
}

/// Eight hexadecimal digits for each hash.
impl From<Known> for String {
    fn from(known: Known) -> Self {
        known.hashes.iter().map(|hash| format!("{hash:08x}")).collect()
    }
}

impl TryFrom<String> for Known {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "hashes must be eight hexadecimal digits each, ascending";
        let (groups, rest) = text.as_bytes().as_chunks::<8>();
        let number = |group: &[u8; 8]| u32::from_str_radix(std::str::from_utf8(group).ok()?, 16).ok();
        let hashes: Option<Vec<u32>> = groups.iter().map(number).collect();
        let hashes = hashes.filter(|all| rest.is_empty() && all.is_sorted_by(|a, b| a < b)).ok_or(wrong)?;
        Ok(Self { hashes })
    }
}
