//! Tools for attacks: transcripts, and statistics and models that analyse them.

pub(crate) mod clusters;
pub(crate) mod gradients;
pub(crate) mod network;
pub(crate) mod ridge;
pub(crate) mod scores;
pub(crate) mod transcript;

use fet_core::data::Matrix;
use fet_core::rng::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Joins the columns of two tables, row by row.
pub(crate) fn join_columns(left: &Matrix<f32>, right: &Matrix<f32>) -> Matrix<f32> {
    let rows = (0..left.rows()).flat_map(|row| [left.row(row), right.row(row)].concat());
    Matrix::new(left.columns() + right.columns(), rows.collect())
}

/// Returns mean and standard deviation of each column, for standardising. A constant column gets deviation 1.
pub(crate) fn scaling(table: &Matrix<f32>) -> Vec<(f64, f64)> {
    let rows = table.rows().max(1) as f64;
    let column = |column: usize| {
        let values = || (0..table.rows()).map(|row| f64::from(table.row(row)[column]));
        let mean = values().sum::<f64>() / rows;
        let deviation = (values().map(|x| (x - mean).powi(2)).sum::<f64>() / rows).sqrt();
        (mean, if deviation > 1e-9 { deviation } else { 1.0 })
    };
    (0..table.columns()).map(column).collect()
}

/// Groups the places of rows by record, in random order. A row without a record is a separate group.
pub(crate) fn by_record(records: &[Option<usize>], rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let mut groups: std::collections::BTreeMap<(Option<usize>, usize), Vec<usize>> = Default::default();
    for (place, &record) in records.iter().enumerate() {
        let alone = if record.is_none() { place } else { 0 };
        groups.entry((record, alone)).or_default().push(place);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.shuffle(rng);
    groups
}
