//! Whole numbers of rows of each stratum in each part.
//!
//! The shares are countᵢ · sizeⱼ / n. Each share can always be rounded up or down so that strata and parts
//! keep their sums (Bacharach 1966, "Matrix rounding problems"): the fractional shares are a flow, and a
//! network with whole capacities that has a flow has a whole flow.

/// Distributes `counts[i]` rows of each stratum i over parts of `sizes[j]` rows. The sum of `counts` must
/// equal the sum of `sizes`.
///
/// Returns `[stratum][part]`. Each number is its share rounded down or up; rows sum to `counts` and columns
/// to `sizes`.
pub(super) fn apportion(counts: &[usize], sizes: &[usize]) -> Vec<Vec<usize>> {
    let all: usize = sizes.iter().sum();
    debug_assert_eq!(all, counts.iter().sum::<usize>(), "every row has a stratum and a part");
    let product = |count: usize, size: usize| count as u128 * size as u128;
    let floor = |count, size| (product(count, size) / all.max(1) as u128) as usize;
    let rest = |count, size| product(count, size) % all.max(1) as u128;

    let mut table = Rounding {
        up: vec![vec![false; sizes.len()]; counts.len()],
        rest: counts.iter().map(|&n| sizes.iter().map(|&size| rest(n, size)).collect()).collect(),
        free: sizes
            .iter()
            .map(|&size| size - counts.iter().map(|&n| floor(n, size)).sum::<usize>())
            .collect(),
    };
    for (stratum, &count) in counts.iter().enumerate() {
        let below: usize = sizes.iter().map(|&size| floor(count, size)).sum();
        (below..count).for_each(|_| table.round_one_up(stratum));
    }
    let number = |stratum: usize, part: usize| {
        floor(counts[stratum], sizes[part]) + usize::from(table.up[stratum][part])
    };
    (0..counts.len()).map(|stratum| (0..sizes.len()).map(|part| number(stratum, part)).collect()).collect()
}

/// State of the rounding.
struct Rounding {
    /// True if a share is rounded up: `[stratum][part]`.
    up: Vec<Vec<bool>>,
    /// Remainder of a share after rounding down, in n-ths of a row. A share with remainder 0 is whole and
    /// never rounded up.
    rest: Vec<Vec<u128>>,
    /// Number of shares of each part that are still to be rounded up.
    free: Vec<usize>,
}

impl Rounding {
    /// Returns true if a share can still be rounded up.
    fn open(&self, stratum: usize, part: usize) -> bool {
        self.rest[stratum][part] > 0 && !self.up[stratum][part]
    }

    /// Rounds one more share of a stratum up. It prefers the largest remainder whose part has a free place.
    /// Otherwise it searches breadth first for a part that gets a free place because another stratum moves to
    /// a third part.
    fn round_one_up(&mut self, stratum: usize) {
        let parts = self.free.len();
        let mut queue: Vec<usize> = (0..parts).filter(|part| self.open(stratum, *part)).collect();
        queue.sort_by_key(|part| std::cmp::Reverse(self.rest[stratum][*part]));
        // Predecessor of a part in the search, and the stratum that moves.
        let mut from: Vec<Option<(usize, usize)>> = vec![None; parts];
        let mut next = 0;
        while let Some(&part) = queue.get(next) {
            next += 1;
            if self.free[part] > 0 {
                return self.take(stratum, part, &from);
            }
            for mover in (0..self.up.len()).filter(|stratum| self.up[*stratum][part]) {
                let new = |other: &usize| self.open(mover, *other) && !queue.contains(other);
                let reached: Vec<usize> = (0..parts).filter(new).collect();
                reached.iter().for_each(|other| from[*other] = Some((part, mover)));
                queue.extend(reached);
            }
        }
        unreachable!("a table of fractions with whole sums can be rounded");
    }

    /// Follows the path back from a part with a free place.
    fn take(&mut self, stratum: usize, mut part: usize, from: &[Option<(usize, usize)>]) {
        self.free[part] -= 1;
        while let Some((before, mover)) = from[part] {
            self.up[mover][part] = true;
            self.up[mover][before] = false;
            part = before;
        }
        self.up[stratum][part] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn rounds_every_share_and_keeps_sums() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..2_000 {
            let counts: Vec<usize> =
                (0..rng.random_range(1..12usize)).map(|_| rng.random_range(1..20usize)).collect();
            let all: usize = counts.iter().sum();
            let parts = rng.random_range(1..7usize);
            let mut sizes = vec![0; parts];
            (0..all).for_each(|_| sizes[rng.random_range(0..parts)] += 1);
            let table = apportion(&counts, &sizes);
            for (i, row) in table.iter().enumerate() {
                assert_eq!(row.iter().sum::<usize>(), counts[i]);
                for (j, &number) in row.iter().enumerate() {
                    let share = counts[i] * sizes[j];
                    assert!(number == share / all || number == share.div_ceil(all), "{counts:?} {sizes:?}");
                }
            }
            for (j, &size) in sizes.iter().enumerate() {
                assert_eq!(table.iter().map(|row| row[j]).sum::<usize>(), size, "{counts:?} {sizes:?}");
            }
        }
    }
}
