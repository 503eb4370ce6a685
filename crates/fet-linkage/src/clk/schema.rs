//! How much each field of a record weighs in its filter.

use std::collections::HashMap;

use crate::text::{normalise, qgrams};

/// What an encoder knows of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPlan {
    /// Fields of one group share their hashes: a value that stands in the wrong one of them still counts.
    pub group: u32,
    /// How many bits each q-gram sets.
    pub hashes: usize,
}

/// The plans of all fields; both sides need the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// One for each field.
    pub fields: Vec<FieldPlan>,
    /// How many bits each q-gram sets, in place of its field's number.
    pub rarity: Option<Rarity>,
}

/// How many bits each q-gram sets, by how rare it is. Shares of a bit count: of q-grams with a quarter of a bit each fourth sets one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rarity {
    /// By tag.
    grams: HashMap<u64, u16>,
    /// Of q-grams that are not among them, for each field; the same for all fields of a group.
    unseen: Vec<u16>,
}

/// The entropy of values by how often each occurs, in bits.
pub(super) fn entropy(counts: &HashMap<String, usize>) -> f64 {
    let total = counts.values().sum::<usize>().max(1) as f64;
    // In the order of the counts, so that the sum does not depend on that of the map.
    let mut counts: Vec<usize> = counts.values().copied().collect();
    counts.sort_unstable();
    counts.into_iter().map(|n| -(n as f64 / total) * (n as f64 / total).log2()).sum()
}

/// Bits are stored in this share.
const PART: f64 = 256.0;

impl Rarity {
    /// A q-gram that stands in fewer records is not told.
    pub const LEAST: u32 = 3;

    /// These q-grams by their tags, and what others set in each field: fields of one group set the same.
    pub fn new(grams: HashMap<u64, u16>, unseen: Vec<u16>) -> Self {
        Self { grams, unseen }
    }

    /// Tags with what is stored for each, ascending.
    pub fn grams(&self) -> Vec<(u64, u16)> {
        let mut all: Vec<(u64, u16)> = self.grams.iter().map(|(&tag, &stored)| (tag, stored)).collect();
        all.sort_unstable();
        all
    }

    /// What is stored for unknown q-grams of each field.
    pub fn unseen(&self) -> &[u16] {
        &self.unseen
    }

    pub(super) fn stored(bits: f64) -> u16 {
        (PART * bits.clamp(0.0, MOST_HASHES as f64)).round() as u16
    }

    /// How many bits a q-gram of field `plan` sets. The share of a bit is rounded by its digest, the same on both sides.
    pub(super) fn hashes(&self, field: usize, digest: &[u8; 32]) -> usize {
        let stored = self.grams.get(&super::tag(digest)).copied().unwrap_or(self.unseen[field]);
        let (whole, share) = (stored / PART as u16, stored % PART as u16);
        usize::from(whole) + usize::from(u16::from(digest[23]) < share)
    }
}

/// The most bits that a q-gram sets.
pub const MOST_HASHES: usize = 64;

impl Schema {
    /// Weighs fields by what their values tell apart, measured on one side's records: a field's share of the bits is
    /// the entropy of its values, times its weight (1 where `weights` is empty). A record makes `insertions` of them in
    /// the mean. `groups` are the fields' groups, each field its own where it is empty; fields of a group have the bits of the one that
    /// has the most.
    pub fn fit<T: AsRef<str>>(
        cells: &[T],
        fields: usize,
        q: usize,
        insertions: f64,
        weights: &[f64],
        groups: &[u32],
    ) -> Self {
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

    /// Whether a text sets the same bits in each field of a group. What [`Schema::fit`] and [`super::Encoder::rarity`] give does.
    pub fn is_sound(&self) -> bool {
        let unseen = |field: usize| self.rarity.as_ref().map(|rarity| rarity.unseen.get(field));
        let mut first: HashMap<u32, usize> = HashMap::new();
        self.fields.iter().enumerate().all(|(field, plan)| {
            let other = *first.entry(plan.group).or_insert(field);
            plan.hashes == self.fields[other].hashes && unseen(field) == unseen(other)
        })
    }

    /// Fields that set no bits by themselves, as where q-grams are weighed by their rarity.
    pub fn of_groups(fields: usize, groups: &[u32]) -> Self {
        let group = |field| groups.get(field).copied().unwrap_or(field as u32);
        let fields = (0..fields).map(|field| FieldPlan { group: group(field), hashes: 0 }).collect();
        Self { fields, rarity: None }
    }
}
