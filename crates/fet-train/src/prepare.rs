//! From raw tables to what models see: the split into training, validation and test rows, and scaling.
//!
//! The primary scales by the statistics of its training rows. A secondary has no such division and no
//! labels: it scales by all of its records. Linkage happens elsewhere, on raw keys.

use rand::seq::SliceRandom;

use fet_core::data::{DataError, Keys, Matrix, PartyTable, Task, VerticalData};
use fet_core::objective::Objective;
use fet_core::rng::{Purpose, stream};

/// Row indices of the three parts: 70, 10 and 20 per cent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows that are trained on.
    pub train: Vec<usize>,
    /// Rows that choose the epoch and drive the schedule.
    pub validation: Vec<usize>,
    /// Rows that are reported.
    pub test: Vec<usize>,
}

impl Split {
    /// Shuffles `rows` rows by `seed` and cuts them 70/10/20.
    pub fn new(rows: usize, seed: u64) -> Result<Self, DataError> {
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut stream(seed, 0, Purpose::Split, 0));
        let (test, validation) = (rows / 5, rows / 10);
        if validation == 0 {
            let problem =
                format!("no rows are left to validate on: 10 rows or more are needed; there are {rows}");
            return Err(DataError::new("data", problem));
        }
        let validation_part = order.split_off(rows - validation);
        let test_part = order.split_off(rows - validation - test);
        Ok(Self { train: order, validation: validation_part, test: test_part })
    }
}

/// A party's records as its model sees them.
#[derive(Debug, Clone)]
pub struct ScaledTable {
    /// The party's name.
    pub name: String,
    /// Keys, [n, m].
    pub keys: Matrix<f32>,
    /// Features, [n, d].
    pub features: Matrix<f32>,
}

/// A party's side of a run: raw keys to link with, and scaled records.
#[derive(Debug, Clone)]
pub struct PreparedParty {
    /// Raw keys.
    pub raw_keys: Keys,
    /// What the model sees.
    pub scaled: ScaledTable,
}

/// Everything a run needs of the data.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Loss and metric.
    pub objective: Objective,
    /// Which rows are for what.
    pub split: Split,
    /// The primary's records.
    pub primary: PreparedParty,
    /// Labels in their own unit.
    pub labels: Vec<f32>,
    /// The other parties.
    pub secondaries: Vec<PreparedParty>,
    /// What is odd about the data, though it can be used.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Splits and scales `data` by `seed`.
    pub fn new(data: VerticalData, seed: u64) -> Result<Self, DataError> {
        let split = Split::new(data.primary.rows(), seed)?;
        let objective = objective(&data, &split)?;
        let warnings = missing_classes(&data, &split);
        let keys = data.standardise_keys;
        let primary = prepare(data.primary, &split.train, keys);
        let all = |table: &PartyTable| (0..table.rows()).collect::<Vec<_>>();
        let secondaries = data
            .secondaries
            .into_iter()
            .map(|t| {
                let rows = all(&t);
                prepare(t, &rows, keys)
            })
            .collect();
        Ok(Self { objective, split, primary, labels: data.labels, secondaries, warnings })
    }
}

fn objective(data: &VerticalData, split: &Split) -> Result<Objective, DataError> {
    let outputs = if data.task == Task::Multiclass { data.classes } else { 1 };
    let labels = split.train.iter().map(|&row| f64::from(data.labels[row]));
    let (low, high) = labels.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
    if low >= high {
        let problem = format!("all training labels are {low}: there is nothing to learn");
        return Err(DataError::new(format!("data of {}", data.primary.name), problem));
    }
    Ok(Objective { task: data.task, outputs, minimum: low, range: high - low })
}

/// Classes that the model can never learn to name.
fn missing_classes(data: &VerticalData, split: &Split) -> Vec<String> {
    if data.task != Task::Multiclass {
        return Vec::new();
    }
    let mut seen = vec![false; data.classes];
    split.train.iter().for_each(|&row| seen[data.labels[row] as usize] = true);
    let missing: Vec<_> = (0..data.classes).filter(|&class| !seen[class]).map(|c| c.to_string()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!("no training row is of class {}: it will never be predicted", missing.join(", "))]
}

fn prepare(table: PartyTable, rows: &[usize], standardise_keys: bool) -> PreparedParty {
    let mut keys = for_model(&table.keys);
    if standardise_keys {
        standardise(&mut keys, rows);
    }
    let mut features = table.features;
    standardise(&mut features, rows);
    let keys = Matrix::new(keys.columns(), keys.values().iter().map(|&x| x as f32).collect());
    PreparedParty { raw_keys: table.keys, scaled: ScaledTable { name: table.name, keys, features } }
}

/// The numbers that a model sees of a text key; see [`for_model`].
pub const TEXT_KEY_COLUMNS: usize = 16;

/// What a party's own model sees of its own keys, [n, m].
///
/// Numbers are seen as they are. A text becomes [`TEXT_KEY_COLUMNS`] numbers: a projection of the q-grams of its fields
/// by random signs that are the same everywhere, so that texts that share q-grams are near each other, in one party's
/// table and across parties. That is what a positional encoding and a dynamic mask need of a key.
///
/// # Panics
/// If the keys are sealed: a model is given a party's own keys.
pub fn for_model(keys: &Keys) -> Matrix<f64> {
    match keys {
        Keys::Numbers(keys) => keys.clone(),
        Keys::Text(keys) => {
            let sketch = fet_linkage::text::sketch(keys.cells(), keys.columns(), TEXT_KEY_COLUMNS);
            Matrix::new(TEXT_KEY_COLUMNS, sketch)
        }
        Keys::Sealed(_) => panic!("sealed keys are a message, not a table"),
    }
}

/// Shifts and scales each column to mean 0 and standard deviation 1 over `rows`; a column that is constant
/// there becomes 0 where it has that value.
pub fn standardise<T: Copy + Into<f64> + FromF64>(table: &mut Matrix<T>, rows: &[usize]) {
    let columns = table.columns();
    let count = rows.len() as f64;
    let (mut mean, mut variance) = (vec![0.0f64; columns], vec![0.0f64; columns]);
    for &row in rows {
        for (sum, &x) in mean.iter_mut().zip(table.row(row)) {
            *sum += x.into() / count;
        }
    }
    for &row in rows {
        for ((sum, &m), &x) in variance.iter_mut().zip(&mean).zip(table.row(row)) {
            *sum += (x.into() - m).powi(2) / count;
        }
    }
    let scale: Vec<f64> = variance.iter().map(|v| if v.sqrt() > 1e-12 { v.sqrt() } else { 1.0 }).collect();
    for row in table.values_mut().chunks_exact_mut(columns.max(1)) {
        for ((x, m), s) in row.iter_mut().zip(&mean).zip(&scale) {
            *x = T::from_f64(((*x).into() - m) / s);
        }
    }
}

/// Shifts and scales all values by one mean and one standard deviation: those of `rows`.
pub fn standardise_all(table: &mut Matrix<f32>, rows: &[usize]) {
    let count = (rows.len() * table.columns()) as f64;
    let sum = |of: &dyn Fn(f64) -> f64| {
        rows.iter().flat_map(|&row| table.row(row)).map(|&x| of(f64::from(x))).sum::<f64>()
    };
    let mean = sum(&|x| x) / count;
    let deviation = (sum(&|x| (x - mean).powi(2)) / count).sqrt();
    let scale = if deviation > 1e-12 { deviation } else { 1.0 };
    for x in table.values_mut() {
        *x = ((f64::from(*x) - mean) / scale) as f32;
    }
}

/// Back from the precision in which statistics are computed.
pub trait FromF64 {
    /// The nearest value.
    fn from_f64(value: f64) -> Self;
}

impl FromF64 for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl FromF64 for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_a_partition_and_follows_the_seed() {
        let split = Split::new(1_000, 7).expect("enough rows");
        assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (700, 100, 200));
        let mut all = [split.train.clone(), split.validation.clone(), split.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
        assert_eq!(split, Split::new(1_000, 7).expect("enough rows"));
        assert_ne!(split, Split::new(1_000, 8).expect("enough rows"));
        assert!(Split::new(9, 0).expect_err("too few").problem.contains("there are 9"));
    }

    #[test]
    fn scaling_is_fitted_on_the_given_rows_only() {
        let mut table = Matrix::new(2, vec![1.0f32, 5.0, 3.0, 5.0, 100.0, 6.0]);
        standardise(&mut table, &[0, 1]);
        assert_eq!(table.values(), [-1.0, 0.0, 1.0, 0.0, 98.0, 1.0]);
    }

    #[test]
    fn all_values_can_share_one_scale() {
        let mut table = Matrix::new(2, vec![1.0f32, 3.0, 1.0, 3.0, 2.0, 12.0]);
        standardise_all(&mut table, &[0, 1]);
        assert_eq!(table.values(), [-1.0, 1.0, -1.0, 1.0, 0.0, 10.0]);
    }
}
