//! Choice of shares to leave out if some may be wrong: a few choices that together leave out any given number
//! of wrong shares.
//!
//! If τ of m shares are needed, m−τ can be left out. To leave out any e wrong ones, the shares are cut into
//! blocks of ⌊(m−τ)/e⌋. The wrong shares lie in at most e blocks, so that one choice of e blocks leaves out
//! all of them. That is far fewer choices than sets of τ shares: 35 for 3 wrong ones of 99.

/// Maximum number of choices for one number of wrong shares.
const MOST: usize = 1_024;

/// Returns the maximum number of wrong shares that the choices of `needed` among `count` shares are sure to
/// leave out.
pub fn withstands(count: usize, needed: usize) -> usize {
    let spare = count.saturating_sub(needed);
    (1..=spare).take_while(|&wrong| choices(blocks(count, spare, wrong), wrong) <= MOST).count()
}

/// Returns the choices of `needed` of `count` shares, in the order of trial: first for no wrong share, then
/// for one, and so on.
pub(super) fn subsets(count: usize, needed: usize) -> impl Iterator<Item = Vec<usize>> {
    let spare = count.saturating_sub(needed);
    (0..=withstands(count, needed)).flat_map(move |wrong| {
        let size = spare.checked_div(wrong).unwrap_or(spare).max(1);
        let out = combinations(blocks(count, spare, wrong), wrong);
        out.map(move |out| (0..count).filter(|share| !out.contains(&(share / size))).take(needed).collect())
    })
}

fn blocks(count: usize, spare: usize, wrong: usize) -> usize {
    spare.checked_div(wrong).map_or(0, |size| count.div_ceil(size))
}

/// Returns the number of ways to choose `chosen` of `of` elements. The count is exact only up to a limit
/// above [`MOST`].
fn choices(of: usize, chosen: usize) -> usize {
    (0..chosen)
        .try_fold(1usize, |ways, done| {
            let ways = ways * (of - done) / (done + 1);
            if ways > MOST * of { None } else { Some(ways) }
        })
        .unwrap_or(usize::MAX)
}

/// Returns all ways to choose `chosen` of the numbers below `of`, each ascending.
fn combinations(of: usize, chosen: usize) -> impl Iterator<Item = Vec<usize>> {
    let first = (chosen <= of).then(|| (0..chosen).collect::<Vec<usize>>());
    std::iter::successors(first, move |last| {
        let place = (0..chosen).rev().find(|&place| last[place] < of - chosen + place)?;
        let mut next = last.clone();
        next[place] += 1;
        (place + 1..chosen).for_each(|later| next[later] = next[later - 1] + 1);
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every set of wrong shares of a withstood size, some choice leaves out the set. No choice has too
    /// few shares.
    #[test]
    fn some_choice_leaves_out_every_set_of_so_many_wrong_shares() {
        for (count, needed) in [(3, 2), (4, 3), (5, 3), (6, 4), (7, 4), (9, 5), (12, 7), (3, 3), (15, 8)] {
            let all: Vec<Vec<usize>> = subsets(count, needed).collect();
            assert!(all.iter().all(|subset| subset.len() == needed && subset.is_sorted_by(|a, b| a < b)));
            let withstood = withstands(count, needed);
            for wrong in 0..=withstood {
                for wrong in combinations(count, wrong) {
                    let without = all.iter().any(|subset| wrong.iter().all(|share| !subset.contains(share)));
                    assert!(without, "{count}, {needed}: {wrong:?}");
                }
            }
        }
        assert_eq!([(3, 3), (4, 3), (6, 4), (99, 51)].map(|(m, n)| withstands(m, n)), [0, 1, 2, 5]);
        assert!(subsets(99, 51).count() <= 1_000, "{}", subsets(99, 51).count());
        assert_eq!(subsets(2, 3).map(|subset| subset.len()).max(), Some(2), "too few: no panic");
    }
}
