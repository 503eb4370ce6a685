//! Weights of the fields of a record in its filter.

use std::collections::HashMap;

use crate::text::{TextRows, normalise, qgrams};

/// An encoder's settings of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPlan {
    /// Group of the field. Fields of one group use the same hashes, so that a value in the wrong field of the
    /// group still counts.
    pub group: u32,
    /// Number of bits that each q-gram sets.
    pub hashes: usize,
}

/// Plans of all fields. Both sides must use equal plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Plan of each field.
    pub fields: Vec<FieldPlan>,
    /// Number of bits of each q-gram by its rarity, which replaces the field's number.
    pub rarity: Option<Rarity>,
}

/// Number of bits that each q-gram sets, by its rarity. Fractions count: with a quarter of a bit, every
/// fourth q-gram sets a bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rarity {
    /// Number of bits of each listed q-gram, by its tag.
    grams: HashMap<u64, u16>,
    /// Number of bits of other q-grams, for each field; equal for all fields of a group.
    unseen: Vec<u16>,
}

/// Returns the entropy in bits of values with these counts.
pub(super) fn entropy(counts: &HashMap<String, usize>) -> f64 {
    let total = counts.values().sum::<usize>().max(1) as f64;
    // Sorting the counts makes the sum independent of the order of the map.
    let mut counts: Vec<usize> = counts.values().copied().collect();
    counts.sort_unstable();
    counts.into_iter().map(|n| -(n as f64 / total) * (n as f64 / total).log2()).sum()
}

/// Returns the tag that identifies a q-gram in a schema: a part of its digest that determines no bit
/// position.
pub(super) fn tag(digest: &[u8; 32]) -> u64 {
    u64::from_le_bytes(digest[24..].try_into().expect("eight bytes of 32"))
}

/// Stored units for each bit.
const PART: f64 = 256.0;

impl Rarity {
    /// Minimum number of records with a q-gram for the q-gram to be listed.
    pub const LEAST: u32 = 3;

    /// Returns the rarity of these q-grams by their tags, and of other q-grams in each field. Fields of one
    /// group must have equal numbers.
    pub fn new(grams: HashMap<u64, u16>, unseen: Vec<u16>) -> Self {
        Self { grams, unseen }
    }

    /// Returns the tags with the stored number of each, in ascending order.
    pub fn grams(&self) -> Vec<(u64, u16)> {
        let mut all: Vec<(u64, u16)> = self.grams.iter().map(|(&tag, &stored)| (tag, stored)).collect();
        all.sort_unstable();
        all
    }

    /// Returns the stored number for unknown q-grams of each field.
    pub fn unseen(&self) -> &[u16] {
        &self.unseen
    }

    pub(super) fn stored(bits: f64) -> u16 {
        (PART * bits.clamp(0.0, MOST_HASHES as f64)).round() as u16
    }

    /// Returns the number of bits that a q-gram of field `field` sets. The digest decides the rounding of a
    /// fraction, equally on both sides.
    pub(super) fn hashes(&self, field: usize, digest: &[u8; 32]) -> usize {
        let stored = self.grams.get(&tag(digest)).copied().unwrap_or(self.unseen[field]);
        let (whole, share) = (stored / PART as u16, stored % PART as u16);
        usize::from(whole) + usize::from(u16::from(digest[23]) < share)
    }
}

/// Maximum number of bits that a q-gram sets.
pub const MOST_HASHES: usize = 64;

impl Schema {
    /// Weighs fields by the information in their values, measured on one side's records. The share of a field
    /// is the entropy of its values times its weight (1 if `weights` is empty). A record makes `insertions`
    /// insertions on average. `groups` are the groups of the fields; each field is its own group if `groups`
    /// is empty. All fields of a group get the largest number of bits in the group.
    pub fn fit<T: AsRef<str>>(
        texts: &TextRows<'_, T>,
        q: usize,
        insertions: f64,
        weights: &[f64],
        groups: &[u32],
    ) -> Self {
        let TextRows { cells, fields } = *texts;
        let rows = cells.len() / fields.max(1);
        let mut schema = Self::of_groups(fields, groups);
        let mut shares = Vec::with_capacity(fields);
        for field in 0..fields {
            let mut counts: HashMap<String, usize> = HashMap::new();
            let (mut grams, mut known) = (0usize, 0usize);
            for row in 0..rows {
                let normal = normalise(cells[row * fields + field].as_ref());
                if normal.is_empty() {
                    continue;
                }
                known += 1;
                qgrams(&normal, q, |_| grams += 1);
                *counts.entry(normal).or_default() += 1;
            }
            let total = known.max(1) as f64;
            let entropy = entropy(&counts);
            let length = grams as f64 / total;
            shares.push((
                entropy * weights.get(field).copied().unwrap_or(1.0),
                length.max(1.0),
                known as f64 / rows.max(1) as f64,
            ));
        }
        let sum: f64 = shares.iter().map(|(share, _, known)| share * known).sum();
        for (plan, (share, length, _)) in schema.fields.iter_mut().zip(shares) {
            let hashes = if sum > 0.0 {
                insertions * share / sum / length
            } else {
                insertions / fields as f64 / length
            };
            if share > 0.0 || sum == 0.0 {
                plan.hashes = hashes.round().clamp(1.0, MOST_HASHES as f64) as usize;
            }
        }
        // A text sets the same bits in each field of a group.
        let plans = schema.fields.clone();
        for plan in &mut schema.fields {
            let of_group = plans.iter().filter(|other| other.group == plan.group);
            plan.hashes = of_group.map(|other| other.hashes).max().unwrap_or(plan.hashes);
        }
        schema
    }

    /// Returns true if a text sets the same bits in each field of a group. This holds for the results of
    /// [`Schema::fit`] and [`super::Encoder::rarity`].
    pub fn is_sound(&self) -> bool {
        let unseen = |field: usize| self.rarity.as_ref().map(|rarity| rarity.unseen.get(field));
        let mut first: HashMap<u32, usize> = HashMap::new();
        self.fields.iter().enumerate().all(|(field, plan)| {
            let other = *first.entry(plan.group).or_insert(field);
            plan.hashes == self.fields[other].hashes && unseen(field) == unseen(other)
        })
    }

    /// Returns fields that set no bits by themselves, for use with weights by rarity.
    pub fn of_groups(fields: usize, groups: &[u32]) -> Self {
        let group = |field| groups.get(field).copied().unwrap_or(field as u32);
        let fields = (0..fields).map(|field| FieldPlan { group: group(field), hashes: 0 }).collect();
        Self { fields, rarity: None }
    }
}
