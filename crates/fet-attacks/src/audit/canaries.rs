//! Canaries: records that replace key and values, outliers under any scaling, in the tables of the audited
//! parties.
//!
//! A guarantee holds for all possible other records, so the audit may choose these records as well. Other
//! records at the same keys make a row show the upper end of every range if the canary is present, and the
//! lower end if it is absent.

use fet_core::data::{Keys, Matrix, PartyTable, TextTable};
use fet_core::privacy::Neighbouring;
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;

/// Distance of a canary's value above the upper end of its range, in widths of the range.
const OUTSIDE: f64 = 1_000.0;

/// Positions and form of an audit's canaries.
#[derive(Debug, Clone)]
pub(super) struct Canaries {
    relation: Neighbouring,
    /// Primary rows of each canary: the row that it leaves, and the row that it joins.
    rows: Vec<[usize; 2]>,
    keys: Keys,
    /// Number of records that compete with a canary at each of its keys.
    against: usize,
    /// True if the table also contains the party's other records.
    others: bool,
}

/// Value of an audit's record in each column.
#[derive(Debug, Clone, Copy)]
enum Value {
    Low,
    High,
    Outlier,
}

impl Canaries {
    /// Places `count` canaries at keys of the primary, which `seed` draws, against `neighbours` records each.
    ///
    /// If the mechanism does not limit the use of a record, the party's other records are omitted (`limited`
    /// is false). A record may then serve every row, and no other record gets in its way.
    ///
    /// # Errors
    /// Returns the largest possible number of canaries if `count` exceeds it.
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

    /// Returns true if party `index` holds the canaries: the first party, or all parties if the relation
    /// replaces a record at all parties at once.
    pub(super) fn are_in(&self, index: usize) -> bool {
        index == 0 || self.relation == Neighbouring::Replace
    }

    /// Returns a party's table with the canaries that are `inside`.
    ///
    /// The canaries are added, or replace records with another key and other values. They come first, because
    /// the first of equally similar records wins.
    pub(super) fn insert_into(&self, table: &PartyTable, inside: &[bool]) -> PartyTable {
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

/// Returns the features of a table, which an audit reads as numbers ([`fet_federation::data::in_numbers`]).
fn numbers(table: &PartyTable) -> &Matrix<f32> {
    table.features.numbers().expect("an audit reads tables of numbers")
}

/// Returns the declared range of each feature, or else the range of its values.
fn ends(table: &PartyTable) -> Vec<[f64; 2]> {
    let own = numbers(table);
    if let Some(bounds) = table.bounds.as_ref().filter(|b| b.features.len() == own.columns()) {
        return bounds.features.clone();
    }
    let range = |column: usize| {
        let values = (0..own.rows()).map(|row| f64::from(own.row(row)[column]));
        let widest = |[low, high]: [f64; 2], x: f64| [low.min(x), high.max(x)];
        let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], widest);
        // A constant column also needs a range of positive width.
        if low < high { [low, high] } else { [low, low + 1.0] }
    };
    (0..own.columns()).map(range).collect()
}

/// Concatenates keys of the same kind; linking has already refused keys of different kinds.
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
