//! Fitted values of a hashed column, stored as hashes, to recognise new values.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Largest number of stored values. In a column with more values, new values are common.
const MOST: usize = 1 << 20;

/// Hashes of values, in ascending order. Two values share a hash with probability 2⁻³².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Known {
    hashes: Vec<u32>,
}

impl Known {
    /// Returns the hashes of these values, or `None` if there are too many values.
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

    /// Returns true if the value is a fitted value.
    pub(super) fn has(&self, value: &str) -> bool {
        self.hashes.binary_search(&hash(value)).is_ok()
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }
}

/// Hashes a value. The bits differ from the bits that choose a bucket.
fn hash(value: &str) -> u32 {
    (xxh3_64(value.as_bytes()) >> 32) as u32
}

/// Encodes each hash as eight hexadecimal digits.
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
