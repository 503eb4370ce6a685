//! Number of columns of each party. The module does not choose the columns.

use rand::Rng;
use rand_distr::{Distribution, Gamma};

/// Splits `columns` among `parties`: equally for `alpha` 0, otherwise in shares drawn from Dirichlet(α). The
/// first party gets at least `least` columns, and every other party at least one.
///
/// # Panics
/// Panics if there are fewer than `least + parties - 1` columns, or if `alpha` is negative.
pub(super) fn cut(
    columns: usize,
    parties: usize,
    alpha: f64,
    least: usize,
    rng: &mut impl Rng,
) -> Vec<usize> {
    if alpha == 0.0 {
        let (size, larger) = (columns / parties, columns % parties);
        return (0..parties).map(|party| size + usize::from(party < larger)).collect();
    }
    // A Dirichlet draw is a vector of Gamma(α, 1) draws divided by their sum.
    let gamma = Gamma::new(alpha, 1.0).expect("α was checked to be positive and finite");
    let draws: Vec<f64> = (0..parties).map(|_| gamma.sample(rng).max(f64::MIN_POSITIVE)).collect();
    let total: f64 = draws.iter().sum();
    let floor = |party: usize| if party == 0 { least } else { 1 };
    let free = columns - (0..parties).map(floor).sum::<usize>();
    let wanted: Vec<f64> = draws.iter().map(|draw| draw / total * free as f64).collect();
    let mut sizes: Vec<usize> = wanted.iter().enumerate().map(|(p, w)| floor(p) + *w as usize).collect();
    // The columns that remain after rounding down go to the largest remainders.
    let mut by_remainder: Vec<usize> = (0..parties).collect();
    by_remainder.sort_by(|&a, &b| wanted[b].fract().total_cmp(&wanted[a].fract()).then(a.cmp(&b)));
    let left = columns - sizes.iter().sum::<usize>();
    by_remainder.iter().take(left).for_each(|&party| sizes[party] += 1);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::rng::{Purpose, stream};

    #[test]
    fn equal_parts_differ_by_one_at_most() {
        let mut rng = stream(0, 0, Purpose::Parties, 0);
        assert_eq!(cut(64, 5, 0.0, 4, &mut rng), [13, 13, 13, 13, 12]);
    }

    #[test]
    fn every_share_is_kept_within_the_columns() {
        for seed in 0..50 {
            for alpha in [0.1, 0.5, 1.0, 5.0, 50.0] {
                let sizes = cut(64, 20, alpha, 4, &mut stream(seed, 0, Purpose::Parties, 0));
                assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (20, 64), "{sizes:?}");
                assert!(sizes[0] >= 4 && sizes.iter().all(|&size| size > 0), "{sizes:?}");
            }
        }
    }

    /// The mean of the first party's share is 1/2 for two parties and any α. With α = 1 the share is uniform
    /// over 0..=996 columns above the minimum, so that the mean of 400 draws has a standard deviation of
    /// 14.4. The test fails by chance with probability 1e-4 (3.9 deviations).
    #[test]
    fn shares_are_fair() {
        let first = |seed| cut(1_000, 2, 1.0, 3, &mut stream(seed, 0, Purpose::Parties, 0))[0] as f64;
        let mean = (0..400).map(first).sum::<f64>() / 400.0;
        assert!((mean - (3.0 + 996.0 / 2.0)).abs() < 3.9 * 14.4, "{mean}");
    }
}
