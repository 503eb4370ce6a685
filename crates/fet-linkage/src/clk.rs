//! Cryptographic long-term keys: the texts of a record as one keyed Bloom filter (Schnell, Bachteler, Reiher
//! 2009).
//!
//! The encoder hashes each q-gram of each field with HMAC-SHA256 under a secret that the parties share. Each
//! q-gram sets a number of bits that depends on the weight of its field. Similar texts set similar bits, and
//! an empty field sets none. Setting the right bits requires the secret. A party with the secret can encode
//! guesses and compare them. The secret must therefore not reach the party that compares, or that party must
//! be trusted. Frequencies of bits leak frequencies of q-grams. Hardening ([`Hardening`]) makes such an
//! attack harder, but not impossible.

mod diffuse;
mod harden;
mod near;
mod salt;
mod schema;

use std::collections::HashMap;

use hmac::{Hmac, KeyInit, Mac};
use rayon::prelude::*;
use sha2::Sha256;

use crate::bits::{BitTable, set};
use crate::text::{is_ideograph, is_number, normalise, qgrams};

use schema::{entropy, tag};

pub use harden::Hardening;
pub use near::Near;
pub use salt::Salt;
pub use schema::{FieldPlan, MOST_HASHES, Rarity, Schema};

/// Settings of the encoding. Both sides must use equal settings.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderSettings {
    /// Length of the filter before hardening, a power of two from 128 to 65,536.
    pub bits: usize,
    /// Length q of the q-grams.
    pub q: usize,
    /// Protection against frequency attacks.
    pub hardening: Hardening,
}

/// Power of a q-gram's inverse document frequency in its number of bits.
const RARITY_POWER: f64 = 2.0;

/// Power of the ratio of a field's entropy to the weight of its q-grams in its share of the bits.
const FIELD_POWER: f64 = 0.25;

/// Encodes records under a secret.
pub struct Encoder {
    settings: EncoderSettings,
    mac: Hmac<Sha256>,
    plans: Vec<FieldPlan>,
    rarity: Option<Rarity>,
    salt: Option<Salt>,
    near: Vec<Option<Near>>,
}

/// Shows the settings and hides the secret.
impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder({:?}, {} fields)", self.settings, self.plans.len())
    }
}

impl Encoder {
    /// Returns an encoder of records with one field for each plan of the schema.
    ///
    /// # Panics
    /// If `bits` is not a power of two from 128 to 65,536.
    pub fn new(settings: EncoderSettings, secret: &[u8], schema: &Schema) -> Self {
        let bits = settings.bits;
        assert!(bits.is_power_of_two() && (128..=65_536).contains(&bits), "{bits} bits");
        let mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        Self {
            settings,
            mac,
            plans: schema.fields.clone(),
            rarity: schema.rarity.clone(),
            salt: None,
            near: Vec::new(),
        }
    }

    /// Returns this encoder with hashes that depend on a record's stratum.
    #[must_use]
    pub fn salted(self, salt: Option<Salt>) -> Self {
        Self { salt, ..self }
    }

    /// Returns this encoder with fields that compare numbers or dates by distance. A cell of such a field
    /// that is not a number or date is compared as text.
    #[must_use]
    pub fn near(self, near: Vec<Option<Near>>) -> Self {
        Self { near, ..self }
    }

    /// Calls `take` with every token of the normal form of a field.
    fn parts(&self, field: usize, group: u32, normal: &str, words: bool, mut take: impl FnMut(Gram)) {
        let point = |text: String| Gram { group, at: POINT, text };
        if let Some(near) = self.near.get(field).copied().flatten()
            && near.points(normal, |text| take(point(text)))
        {
            return;
        }
        grams(normal, self.settings.q, group, words, take);
    }

    /// Weighs q-grams and words by their rarity among these records.
    ///
    /// A q-gram that occurs in df of n records sets bits in proportion to the square of its inverse
    /// document frequency `ln(1 + n/df)` (Spärck Jones 1972) and to the weight of its field (1 if
    /// `weights` is empty). Filters therefore resemble tf-idf vectors, whose cosine multiplies two
    /// weights. The bits of a field are also multiplied by k·(H/w)^¼, where k is the share of records with a
    /// value, H is the entropy of the values and w is the mean sum of their q-grams' weights. This is a
    /// compromise between the information in the q-grams and the information in the values; a field that one
    /// side often lacks says little. A record makes `insertions` insertions on average.
    ///
    /// The result omits q-grams that occur in fewer than [`Rarity::LEAST`] records, and weighs them as if
    /// they occurred in that many.
    pub fn rarity<T: AsRef<str>>(&self, cells: &[T], insertions: f64, weights: &[f64]) -> Rarity {
        let fields = self.plans.len();
        let rows = cells.len() / fields.max(1);
        // Number of records of a field that contain a q-gram. Fields of one group share the bits that are
        // assigned to a q-gram.
        let mut counts: Vec<HashMap<Gram, (u32, u32)>> = vec![HashMap::new(); fields];
        let mut spread = Vec::with_capacity(fields);
        for (field, (plan, counts)) in self.plans.iter().zip(&mut counts).enumerate() {
            let mut values: HashMap<String, usize> = HashMap::new();
            for row in 0..rows {
                let normal = normalise(cells[row * fields + field].as_ref());
                if normal.is_empty() {
                    continue;
                }
                grams(&normal, self.settings.q, plan.group, true, |gram| {
                    let (records, last) = counts.entry(gram).or_insert((0, u32::MAX));
                    *records += u32::from(*last != row as u32);
                    *last = row as u32;
                });
                *values.entry(normal).or_default() += 1;
            }
            spread.push((entropy(&values), values.values().sum::<usize>()));
        }
        // An omitted q-gram weighs as much as the rarest listed one. Some of these q-grams are misspellings
        // and carry no information.
        let rare = |records: u32| {
            (1.0 + rows as f64 / f64::from(records.max(Rarity::LEAST))).ln().powf(RARITY_POWER)
        };
        let sums: Vec<f64> = counts
            .iter()
            .map(|counts| counts.values().map(|&(records, _)| f64::from(records) * rare(records)).sum())
            .collect();
        // If all columns are constant, as in a single record, entropies cannot rank the fields.
        let constant = spread.iter().all(|(entropy, _)| *entropy == 0.0);
        let share = |field: usize| {
            let (entropy, known) = spread[field];
            let entropy = if constant { 1.0 } else { entropy };
            let mean = sums[field] / known.max(1) as f64;
            let own = weights.get(field).copied().unwrap_or(1.0);
            let present = known as f64 / rows.max(1) as f64;
            if mean > 0.0 { own * present * (entropy / mean).powf(FIELD_POWER) } else { 0.0 }
        };
        let shares: Vec<f64> = (0..fields).map(share).collect();
        let total: f64 = sums.iter().zip(&shares).map(|(sum, share)| sum * share).sum();
        let factor = if total > 0.0 { insertions * rows as f64 / total } else { 0.0 };
        let is_near = |field: usize| self.near.get(field).is_some_and(Option::is_some);
        let mut stored: HashMap<u64, u16> = HashMap::new();
        for (field, (counts, share)) in counts.iter().zip(&shares).enumerate() {
            // The result omits the grid points of numbers, since their frequencies would reveal how many
            // records have which number.
            if is_near(field) {
                continue;
            }
            for (gram, &(records, _)) in counts.iter().filter(|(_, (records, _))| *records >= Rarity::LEAST) {
                let bits = Rarity::stored(factor * share * rare(records));
                let place = stored.entry(tag(&self.digest(gram))).or_default();
                *place = bits.max(*place);
            }
        }
        // All points of a number have the same weight. Together they weigh as much as its q-grams would.
        let unknown = |field: usize| {
            let (_, known) = spread[field];
            let each = sums[field] / (known.max(1) * near::TOKENS) as f64;
            shares[field] * if is_near(field) { each } else { rare(0) }
        };
        // An unknown q-gram sets the same bits in all fields of a group, as a known q-gram does.
        let most = |plan: &FieldPlan| {
            let of_group = self.plans.iter().enumerate().filter(|(_, other)| other.group == plan.group);
            of_group.map(|(field, _)| unknown(field)).fold(0.0, f64::max)
        };
        let unknown = self.plans.iter().map(|plan| Rarity::stored(factor * most(plan))).collect();
        Rarity::new(stored, unknown)
    }

    /// Returns the bits of each record. `cells` contains the records row by row, one text for each field.
    pub fn encode<T: AsRef<str> + Sync>(&self, cells: &[T]) -> BitTable {
        self.encode_fields(cells, |_| true)
    }

    /// Returns the bits that the fields of one group set in each record, using the strata of whole records.
    pub fn encode_group<T: AsRef<str> + Sync>(&self, cells: &[T], group: u32) -> BitTable {
        self.encode_fields(cells, |plan| plan.group == group)
    }

    fn encode_fields<T: AsRef<str> + Sync>(
        &self,
        cells: &[T],
        which: impl Fn(&FieldPlan) -> bool + Sync,
    ) -> BitTable {
        let fields = self.plans.len();
        let rows = cells.len() / fields.max(1);
        let mut table = BitTable::zeros(rows, self.settings.bits);
        let width = table.width();
        // Values repeat (suburbs, given names), and q-grams repeat even more, so each thread caches its
        // hashes.
        let chunk = 2_048;
        table.words_mut().par_chunks_mut(chunk * width).zip(cells.par_chunks(chunk * fields)).for_each(
            |(words, cells)| {
                let mut strata = HashMap::new();
                for (row, cells) in words.chunks_exact_mut(width).zip(cells.chunks_exact(fields)) {
                    // A record without a known stratum sets no bits, so that it resembles no other record.
                    let Some(stratum) = salt::stratum(self.salt, &self.near, cells) else { continue };
                    let (mac, known) = strata
                        .entry(stratum)
                        .or_insert_with_key(|stratum| (salt::mac(&self.mac, stratum), HashMap::new()));
                    self.record(row, cells, &which, mac, known);
                }
            },
        );
        self.settings.hardening.apply(table, &self.mac)
    }

    fn record<T: AsRef<str>>(
        &self,
        row: &mut [u64],
        cells: &[T],
        which: &impl Fn(&FieldPlan) -> bool,
        mac: &Hmac<Sha256>,
        known: &mut HashMap<Gram, ([u8; 32], usize)>,
    ) {
        for (field, (plan, cell)) in
            self.plans.iter().zip(cells).enumerate().filter(|(_, (plan, _))| which(plan))
        {
            self.parts(field, plan.group, &normalise(cell.as_ref()), self.rarity.is_some(), |gram| {
                let (digest, hashes) = known.entry(gram).or_insert_with_key(|gram| {
                    let digest = digest(mac, gram);
                    let hashes = match &self.rarity {
                        // The rarity of a q-gram does not depend on the stratum.
                        Some(rarity) => rarity.hashes(field, &self.digest(gram)),
                        None => plan.hashes,
                    };
                    (digest, hashes)
                });
                for position in positions(digest, self.settings.bits).take(*hashes) {
                    set(row, position);
                }
            });
        }
    }

    fn digest(&self, gram: &Gram) -> [u8; 32] {
        digest(&self.mac, gram)
    }
}

fn digest(mac: &Hmac<Sha256>, gram: &Gram) -> [u8; 32] {
    let mut mac = mac.clone();
    mac.update(&gram.group.to_le_bytes());
    mac.update(&gram.at.to_le_bytes());
    mac.update(gram.text.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Calls `take` with each q-gram of a normal form. If `words` is true, also calls it with each word and each
/// ideograph.
fn grams(normal: &str, q: usize, group: u32, words: bool, mut take: impl FnMut(Gram)) {
    let number = is_number(normal);
    let mut place = 0u32;
    qgrams(normal, q, |gram| {
        // Digits have a small alphabet: a pair of digits carries little information without its place.
        let at = if number { place / 2 } else { 0 };
        place += 1;
        take(Gram { group, at, text: gram.iter().collect() });
    });
    if !words {
        return;
    }
    let whole = |text: String| Gram { group, at: u32::MAX, text };
    normal
        .split(' ')
        .filter(|word| word.chars().nth(1).is_some())
        .for_each(|word| take(whole(word.to_string())));
    normal.chars().filter(|sign| is_ideograph(*sign)).for_each(|sign| take(whole(sign.to_string())));
}

/// Place of the grid points of a number, distinct from the places of q-grams and words.
const POINT: u32 = u32::MAX - 1;

/// A token to hash: a q-gram in its field.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Gram {
    group: u32,
    at: u32,
    text: String,
}

/// Returns positions drawn from a digest by double hashing. The stride is odd and never repeats within a
/// power of two.
fn positions(digest: &[u8; 32], bits: usize) -> impl Iterator<Item = usize> {
    let word = |at: usize| u64::from_le_bytes(digest[at..at + 8].try_into().expect("eight bytes of 32"));
    let (start, stride, bend) = (word(0), word(8) | 1, word(16));
    (0u64..).map(move |i| {
        // The cubic term of enhanced double hashing prevents two q-grams from sharing a whole progression.
        let at = start
            .wrapping_add(i.wrapping_mul(stride))
            .wrapping_add(bend.wrapping_mul(i * i.wrapping_sub(1) * 2));
        (at % bits as u64) as usize
    })
}
