//! Splits by time: the latest rows are the test.

use super::fractions::Sizes;
use super::parts::Split;

/// Returns the rows in the order of time. Rows with equal times keep their order.
pub(super) fn by_time(times: &[i64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|row| times[*row]);
    order
}

/// Returns the last place at or before `place` of a sorted order that does not separate rows with the same
/// time.
pub(super) fn boundary(times: &[i64], order: &[usize], place: usize) -> usize {
    match order.get(place) {
        Some(&row) => order.partition_point(|other| times[*other] < times[row]),
        None => order.len(),
    }
}

/// Splits by time. Test and validation have at least their sizes: rows with the time of a boundary go to the
/// later part.
pub(super) fn split(times: &[i64], sizes: Sizes) -> Split {
    let order = by_time(times);
    let test = boundary(times, &order, order.len() - sizes.test);
    let validation = boundary(times, &order, test.saturating_sub(sizes.validation));
    Split {
        train: order[..validation].to_vec(),
        validation: order[validation..test].to_vec(),
        test: order[test..].to_vec(),
        aside: vec![],
    }
}
