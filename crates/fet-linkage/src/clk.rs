//! Cryptographic long-term keys: a record's texts as one keyed Bloom filter (Schnell, Bachteler, Reiher 2009).
//!
//! Each q-gram of each field is hashed by HMAC-SHA256 under a secret that the parties share, and sets as many bits as its
//! field weighs. Similar texts set similar bits; without the secret nobody can set any. A field that is empty sets
//! none. Whoever has the secret can encode guesses and compare: the secret must not reach the party that compares, or
//! that party must be trusted. Frequencies of bits leak frequencies of q-grams; hardening ([`Hardening`]) makes that
//! harder and does not make it impossible.

mod harden;
mod schema;

use std::collections::HashMap;

use hmac::{Hmac, KeyInit, Mac};
use rayon::prelude::*;
use sha2::Sha256;

use crate::bits::{BitTable, set};
use crate::text::{is_number, normalise, qgrams};

pub use harden::Hardening;
pub use schema::{FieldPlan, MOST_HASHES, Schema};

/// How a record becomes bits; both sides need the same.
#[derive(Debug, Clone, PartialEq)]
pub struct ClkSettings {
    /// Length of the filter before hardening, a power of two from 128 to 65,536.
    pub bits: usize,
    /// q of the q-grams.
    pub q: usize,
    /// What is done against frequency attacks.
    pub hardening: Hardening,
}

/// Encodes records under a secret.
pub struct Encoder {
    settings: ClkSettings,
    mac: Hmac<Sha256>,
    plans: Vec<FieldPlan>,
}

/// Shows the settings, never the secret.
impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder({:?}, {} fields)", self.settings, self.plans.len())
    }
}

impl Encoder {
    /// An encoder of records with one field for each plan.
    ///
    /// # Panics
    /// If `bits` is no power of two from 128 to 65,536.
    pub fn new(settings: ClkSettings, secret: &[u8], schema: &Schema) -> Self {
        let bits = settings.bits;
        assert!(bits.is_power_of_two() && (128..=65_536).contains(&bits), "{bits} bits");
        let mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        Self { settings, mac, plans: schema.fields.clone() }
    }

    /// The bits of each record; `cells` holds them row by row, one text for each field.
    pub fn encode<T: AsRef<str> + Sync>(&self, cells: &[T]) -> BitTable {
        let fields = self.plans.len();
        let rows = cells.len() / fields.max(1);
        let mut table = BitTable::zeros(rows, self.settings.bits);
        let width = table.width();
        // Values repeat (suburbs, given names), and q-grams even more: each thread remembers what it has hashed.
        let chunk = 2_048;
        table.words_mut().par_chunks_mut(chunk * width).zip(cells.par_chunks(chunk * fields)).for_each(
            |(words, cells)| {
                let mut known = HashMap::new();
                for (row, cells) in words.chunks_exact_mut(width).zip(cells.chunks_exact(fields)) {
                    self.record(row, cells, &mut known);
                }
            },
        );
        self.settings.hardening.apply(&table, &self.mac)
    }

    fn record<T: AsRef<str>>(&self, row: &mut [u64], cells: &[T], known: &mut HashMap<Gram, [u8; 32]>) {
        for (plan, cell) in self.plans.iter().zip(cells) {
            let normal = normalise(cell.as_ref());
            let number = is_number(&normal);
            let mut place = 0u32;
            let mut take = |gram: &[char]| {
                // Digits have a small alphabet: a pair of them says little without its place.
                let at = if number { place / 2 } else { 0 };
                place += 1;
                let key = Gram { group: plan.group, at, text: gram.iter().collect() };
                let digest = known.entry(key).or_insert_with_key(|key| self.digest(key));
                for position in positions(digest, self.settings.bits).take(plan.hashes) {
                    set(row, position);
                }
            };
            qgrams(&normal, self.settings.q, &mut take);
        }
    }

    fn digest(&self, gram: &Gram) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(&gram.group.to_le_bytes());
        mac.update(&gram.at.to_le_bytes());
        mac.update(gram.text.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// What is hashed: a q-gram in its field.
#[derive(PartialEq, Eq, Hash)]
struct Gram {
    group: u32,
    at: u32,
    text: String,
}

/// Positions drawn from a digest: double hashing with an odd stride, which never repeats within a power of two.
fn positions(digest: &[u8; 32], bits: usize) -> impl Iterator<Item = usize> {
    let word = |at: usize| u64::from_le_bytes(digest[at..at + 8].try_into().expect("eight bytes of 32"));
    let (start, stride, bend) = (word(0), word(8) | 1, word(16));
    (0u64..).map(move |i| {
        // The cubic term of enhanced double hashing keeps two grams from sharing a whole progression.
        let at = start
            .wrapping_add(i.wrapping_mul(stride))
            .wrapping_add(bend.wrapping_mul(i * i.wrapping_sub(1) * 2));
        (at % bits as u64) as usize
    })
}
