//! Random and stratified splits from a shuffled order.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::apportion::apportion;
use super::fractions::Sizes;
use super::parts::Split;
use super::strata::rows_by_stratum;

/// Returns the rows in a random order.
pub(super) fn shuffled(rows: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(rng);
    order
}

/// Cuts validation and then test off the end of an order.
pub(super) fn cut(mut order: Vec<usize>, sizes: Sizes) -> Split {
    let validation = order.split_off(order.len() - sizes.validation);
    let test = order.split_off(order.len() - sizes.test);
    Split { train: order, validation, test, aside: vec![] }
}

pub(super) fn random(rows: usize, sizes: Sizes, rng: &mut ChaCha8Rng) -> Split {
    cut(shuffled(rows, rng), sizes)
}

/// Splits each stratum separately. The counts round the stratum's shares up or down and sum to the sizes of
/// the parts.
pub(super) fn stratified(strata: &[usize], sizes: Sizes, rng: &mut ChaCha8Rng) -> Split {
    let members = rows_by_stratum(strata, &shuffled(strata.len(), rng));
    let counts: Vec<usize> = members.iter().map(Vec::len).collect();
    let shares = apportion(&counts, &[sizes.train, sizes.validation, sizes.test]);
    let mut split = Split { train: vec![], validation: vec![], test: vec![], aside: vec![] };
    for (rows, share) in members.into_iter().zip(shares) {
        let sizes = Sizes { train: share[0], validation: share[1], test: share[2] };
        let part = cut(rows, sizes);
        split.train.extend(part.train);
        split.validation.extend(part.validation);
        split.test.extend(part.test);
    }
    // Removes the order by stratum: unshuffled batches would otherwise see one class after the other.
    for part in [&mut split.train, &mut split.validation, &mut split.test] {
        part.shuffle(rng);
    }
    split
}
