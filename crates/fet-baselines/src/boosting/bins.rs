//! Columns as bins of similar values, so that a split is sought among 255 thresholds and not among all values.

use rayon::prelude::*;

/// Bins of a column at most; a row's bin fits in a byte.
pub(super) const MOST_BINS: usize = 256;

/// A column in bins.
pub(super) struct Bins {
    /// The bin of each row.
    pub(super) of_rows: Vec<u8>,
    /// Threshold after each bin, without the last bin: values below it are in this bin or an earlier one.
    pub(super) thresholds: Vec<f32>,
}

impl Bins {
    /// Divides every column into bins. A constant column has one bin and no threshold.
    pub(super) fn of_columns(columns: &[Vec<f32>]) -> Vec<Self> {
        columns.par_iter().map(|column| Self::new(column)).collect()
    }

    fn new(column: &[f32]) -> Self {
        let mut sorted = column.to_vec();
        sorted.sort_unstable_by(f32::total_cmp);
        let mut values: Vec<(f32, usize)> = Vec::new();
        for value in sorted {
            match values.last_mut() {
                Some((last, count)) if *last == value => *count += 1,
                _ => values.push((value, 1)),
            }
        }
        let thresholds: Vec<f32> =
            last_values(&values).into_iter().map(|at| between(values[at].0, values[at + 1].0)).collect();
        let bin = |value: &f32| thresholds.partition_point(|threshold| threshold <= value) as u8;
        Self { of_rows: column.iter().map(bin).collect(), thresholds }
    }
}

/// Returns the place of each bin's largest value among the sorted distinct values, without the last bin.
///
/// A value with more rows than a bin should have ends its bin, and the others share the remaining bins equally, as in LightGBM
/// (Ke et al., NeurIPS 2017).
fn last_values(values: &[(f32, usize)]) -> Vec<usize> {
    let last = values.len().saturating_sub(1);
    if values.len() <= MOST_BINS {
        return (0..last).collect();
    }
    let rows: usize = values.iter().map(|(_, count)| count).sum();
    let is_large = |at: usize| values[at].1 * MOST_BINS >= rows;
    let large = (0..values.len()).filter(|&at| is_large(at));
    let (mut free, mut rest) =
        large.fold((MOST_BINS, rows), |(free, rest), at| (free - 1, rest - values[at].1));
    let mut ends = Vec::new();
    let mut inside = 0;
    for (at, &(_, count)) in values[..last].iter().enumerate() {
        let size = rest as f64 / free.max(1) as f64;
        let own = if is_large(at) { 0 } else { count };
        inside += own;
        let is_full = inside as f64 >= size || is_large(at + 1) && inside as f64 >= size / 2.0;
        if is_large(at) || is_full {
            rest = rest.saturating_sub(inside);
            if !is_large(at) {
                free = free.saturating_sub(1);
            }
            ends.push(at);
            inside = 0;
        }
        if ends.len() + 1 == MOST_BINS {
            break;
        }
    }
    ends
}

/// Returns a threshold in the middle of two values: the lower value is below it, and the higher value is not.
fn between(low: f32, high: f32) -> f32 {
    let middle = low / 2.0 + high / 2.0;
    if low < middle && middle <= high { middle } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each() {
        let bins = Bins::new(&[3.0, -1.0, 3.0, 0.0, -0.0]);
        assert_eq!(bins.of_rows, [2, 0, 2, 1, 1]);
        assert_eq!(bins.thresholds, [-0.5, 1.5]);
        assert!(Bins::new(&[2.0; 4]).thresholds.is_empty());
        let next = 1.0f32.next_up();
        assert_eq!(Bins::new(&[1.0, next]).thresholds, [next]);
        assert_eq!(Bins::new(&[f32::MIN, f32::MAX]).thresholds, [0.0]);
    }

    #[test]
    fn many_values_share_bins_equally_and_frequent_ones_have_their_own() {
        let mut column: Vec<f32> = (0..10_000).map(|row| (row * 7919 % 10_000) as f32).collect();
        column.extend(vec![2_500.5; 5_000]);
        let bins = Bins::new(&column);
        assert!(
            bins.thresholds.len() < MOST_BINS && bins.thresholds.len() > 240,
            "{}",
            bins.thresholds.len()
        );
        let mut counts = vec![0; bins.thresholds.len() + 1];
        bins.of_rows.iter().for_each(|&bin| counts[usize::from(bin)] += 1);
        assert_eq!(counts.iter().max(), Some(&5_000));
        assert!(
            counts.iter().filter(|&&count| count != 5_000).all(|&count| (1..=60).contains(&count)),
            "{counts:?}"
        );
        for (row, &bin) in bins.of_rows.iter().enumerate() {
            let bin = usize::from(bin);
            assert!(bin == 0 || column[row] >= bins.thresholds[bin - 1]);
            assert!(bin == bins.thresholds.len() || column[row] < bins.thresholds[bin]);
        }
    }
}
