//! Canaries: records that replace key and values, outliers for any scaling, in the tables of the audited parties.
//!
//! A guarantee holds whatever the other records are, so that the audit chooses them too. Where a canary is, a row shows the upper
//! end of every range, and where it is not the lower end, by other records that stand at the same keys.

use fet_core::data::{Keys, Matrix, PartyTable, TextTable};
use fet_core::privacy::Neighbouring;
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;

/// How far above its range a canary's value lies, in widths of the range.
const OUTSIDE: f64 = 1_000.0;

/// The places of an audit's canaries, and what a canary is.
#[derive(Debug, Clone)]
pub(super) struct Canaries {
    relation: Neighbouring,
    /// The primary rows of each canary: the one that it leaves, and the one that it joins.
    rows: Vec<[usize; 2]>,
    keys: Keys,
    /// How many records stand against a canary at each of its keys.
    against: usize,
    /// Whether the party's other records are in its table.
    others: bool,
}

/// What a record of an audit holds in each column.
#[derive(Debug, Clone, Copy)]
enum Value {
    Low,
    High,
    Outlier,
}

impl Canaries {
    /// `count` canaries at keys of the primary that are drawn by `seed`, against `neighbours` records each; a message that
    /// says how many there can be, if there are more. A record that may serve every row does so where no others are in the way,
    /// so that these are left out unless `limited`.
    pub(super) fn new(
        relation: Neighbouring,
        (count, neighbours, limited): (usize, usize, bool),
        keys: &Keys,
        seed: u64,
    ) -> Result<Self, String> {
        let most = keys.rows() / 2;
        if !(1..=most).contains(&count) {
            return Err(format!(
                "`--canaries` must be at most {most}, half of the {} primary rows; it is {count}",
                keys.rows()
            ));
        }
        let mut order: Vec<usize> = (0..keys.rows()).collect();
        order.shuffle(&mut stream(seed, 0, Purpose::Sampling, 0));
        let rows = order.chunks_exact(2).take(count).map(|pair| [pair[0], pair[1]]).collect();
        Ok(Self { relation, rows, keys: keys.clone(), against: neighbours.max(1), others: limited })
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Whether party `index` holds the canaries: the first does, or all where a record is replaced in all at once.
    pub(super) fn are_in(&self, index: usize) -> bool {
        index == 0 || self.relation == Neighbouring::Replace
    }

    /// A party's table with these canaries `inside`: added, or put in the place of records with another key and other values. They
    /// come first, since of equal similarities the first wins.
    pub(super) fn put(&self, table: &PartyTable, inside: &[bool]) -> PartyTable {
        let mut records: Vec<(usize, Value)> = Vec::new();
        let added = self.relation == Neighbouring::AddRemove;
        for (&[left, joined], &inside) in self.rows.iter().zip(inside) {
            match (added, inside) {
                (true, false) => {}
                (false, false) => records.push((left, Value::Low)),
                (_, true) => records.push((joined, Value::Outlier)),
            }
        }
        for &[left, joined] in &self.rows {
            for _ in 0..self.against {
                records.push((joined, Value::Low));
                if !added {
                    records.push((left, Value::High));
                }
            }
        }
        let natural: Vec<usize> = if self.others { (0..table.rows()).collect() } else { Vec::new() };
        let own = numbers(table);
        let ends = ends(table);
        let values = |value: Value| {
            ends.iter().map(move |&[low, high]| match value {
                Value::Low => low as f32,
                Value::High => high as f32,
                Value::Outlier => (high + OUTSIDE * (high - low)) as f32,
            })
        };
        let mut features: Vec<f32> = records.iter().flat_map(|&(_, value)| values(value)).collect();
        features.extend_from_slice(own.select_rows(&natural).values());
        let rows: Vec<usize> = records.iter().map(|&(row, _)| row).collect();
        PartyTable {
            name: table.name.clone(),
            keys: together(&self.keys.select_rows(&rows), &table.keys.select_rows(&natural)),
            features: Matrix::new(own.columns(), features).into(),
            bounds: table.bounds.clone(),
        }
    }
}

/// The features of a table, which an audit has as numbers ([`fet_federation::data::in_numbers`]).
fn numbers(table: &PartyTable) -> &Matrix<f32> {
    table.features.numbers().expect("an audit reads tables of numbers")
}

/// The declared range of each feature, or that of its values.
fn ends(table: &PartyTable) -> Vec<[f64; 2]> {
    let own = numbers(table);
    if let Some(bounds) = table.bounds.as_ref().filter(|b| b.features.len() == own.columns()) {
        return bounds.features.clone();
    }
    let range = |column: usize| {
        let values = (0..own.rows()).map(|row| f64::from(own.row(row)[column]));
        let widest = |[low, high]: [f64; 2], x: f64| [low.min(x), high.max(x)];
        let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], widest);
        // A constant column is given a range all the same.
        if low < high { [low, high] } else { [low, low + 1.0] }
    };
    (0..own.columns()).map(range).collect()
}

/// Keys of both, which are of one kind: linking refuses others before this.
fn together(first: &Keys, second: &Keys) -> Keys {
    match (first, second) {
        (Keys::Numbers(a), Keys::Numbers(b)) => {
            Matrix::new(a.columns(), [a.values(), b.values()].concat()).into()
        }
        (Keys::Text(a), Keys::Text(b)) => {
            Keys::Text(TextTable::from_cells(a.columns(), a.cells().into_iter().chain(b.cells())))
        }
        _ => first.clone(),
    }
}
