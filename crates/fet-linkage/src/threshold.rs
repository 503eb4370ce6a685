//! A threshold for links whose truth is not known.
//!
//! The best record of a row is its match or the best of those that are none. How near those come is seen in the row's own table,
//! where all others are none: a decoy estimate (Elias and Gygi 2007), with the rows' own table as the decoy. Let a share `any` of the
//! rows have a record at t or nearer, and a share `own` another row of their own table. With b records to a rows, a record that is no
//! match is so near with probability o = 1 - (1 - own)^(b/a); any = m + (1 - m)·o, and m, the share whose match is so near, follows.
//! Where the own table holds a thing twice, or is cleaner than the other, m is estimated too low rather than too high.
//!
//! Where a similarity is the probability of a match already, all follows from their sums ([`of_probabilities`]).

/// A threshold and what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Pairs of at least this similarity are links.
    pub threshold: f32,
    /// The rows whose best record reaches it.
    pub links: usize,
    /// How many of them are expected to be linked with their match.
    pub correct: f64,
    /// How many rows are expected to have a match at all.
    pub matches: f64,
}

impl Estimate {
    /// The expected share of links that are right.
    pub fn precision(&self) -> f64 {
        if self.links == 0 { 1.0 } else { (self.correct / self.links as f64).min(1.0) }
    }

    /// The expected share of matches that are linked.
    pub fn recall(&self) -> f64 {
        if self.matches > 0.0 { (self.correct / self.matches).min(1.0) } else { 0.0 }
    }

    fn f1(&self) -> f64 {
        2.0 * self.correct / (self.links as f64 + self.matches).max(1.0)
    }
}

/// Rows below which nothing is estimated.
pub const FEWEST: usize = 50;

/// Where others are as near in so many rows, matches are not told from them any more.
const MOST_OTHERS: f64 = 0.5;

/// The threshold of the best expected F1. `best` is the similarity of each row's best record, `own` that of the best other row of its
/// own table, `ratio` how many records there are for a row. Nothing where there are fewer than [`FEWEST`] rows, or no match is
/// expected.
///
/// # Panics
/// If a row has only one of both.
pub fn automatic(best: &[f32], own: &[f32], ratio: f64) -> Option<Estimate> {
    assert_eq!(best.len(), own.len(), "two similarities for each row");
    let rows = best.len();
    if rows < FEWEST {
        return None;
    }
    let sorted = |values: &[f32]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        values
    };
    let (best, own) = (sorted(best), sorted(own));
    let mut estimates: Vec<Estimate> = Vec::new();
    let mut matches = 0.0f64;
    for (place, &threshold) in best.iter().enumerate() {
        if best.get(place + 1) == Some(&threshold) {
            continue;
        }
        let any = (place + 1) as f64 / rows as f64;
        let near = own.partition_point(|score| *score >= threshold) as f64 / rows as f64;
        let others = 1.0 - (1.0 - near).powf(ratio);
        if others > MOST_OTHERS {
            break;
        }
        // Whoever reaches a threshold reaches a lower one.
        matches = matches.max((any - others) / (1.0 - others) * rows as f64);
        estimates.push(Estimate { threshold, links: place + 1, correct: matches, matches: 0.0 });
    }
    estimates.iter_mut().for_each(|estimate| estimate.matches = matches);
    let hopeful = estimates.into_iter().filter(|estimate| estimate.correct >= 1.0);
    hopeful.max_by(|a, b| a.f1().total_cmp(&b.f1()))
}

/// The threshold of the best expected F1, where `best` is the probability that each row's best record is its match, and `matches` how many
/// rows are expected to have one. Nothing where there are fewer than [`FEWEST`] rows, or no match is expected.
pub fn of_probabilities(best: &[f32], matches: f64) -> Option<Estimate> {
    if best.len() < FEWEST {
        return None;
    }
    let mut best: Vec<f32> = best.to_vec();
    best.sort_unstable_by(|a, b| b.total_cmp(a));
    let matches = matches.max(best.iter().map(|&probability| f64::from(probability)).sum());
    let mut correct = 0.0;
    let mut estimates = Vec::new();
    for (place, &threshold) in best.iter().enumerate() {
        correct += f64::from(threshold);
        if best.get(place + 1) != Some(&threshold) {
            estimates.push(Estimate { threshold, links: place + 1, correct, matches });
        }
    }
    let hopeful = estimates.into_iter().filter(|estimate| estimate.correct >= 1.0);
    hopeful.max_by(|a, b| a.f1().total_cmp(&b.f1()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Rows of which a share have a match from 0.68 to 1; others are uniform below 0.7, forty records and eighty own rows. Which of the
    /// best are right.
    fn table(rows: usize, share: f64, seed: u64) -> (Vec<f32>, Vec<f32>, Vec<bool>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut best, mut own, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let mut nearest =
                |count: usize| (0..count).map(|_| rng.random_range(0.0..0.7f32)).fold(0.0, f32::max);
            let (other, twin) = (nearest(40), nearest(80));
            let matched = if rng.random::<f64>() < share { rng.random_range(0.68..1.0) } else { 0.0 };
            best.push(f32::max(other, matched));
            own.push(twin);
            right.push(matched > other);
        }
        (best, own, right)
    }

    /// Numbers of rows have a standard deviation of 16 or less in 1,000; 80 are five of them.
    #[test]
    fn what_is_expected_is_what_is_there() {
        for (share, seed) in [(0.1, 1), (0.5, 2), (0.9, 3)] {
            let (best, own, right) = table(1_000, share, seed);
            let estimate = automatic(&best, &own, 0.5).expect("matches are there");
            let linked = (0..1_000).filter(|&row| best[row] >= estimate.threshold);
            let (links, correct) = linked.fold((0, 0.0), |(links, correct), row| {
                (links + 1, correct + f64::from(u8::from(right[row])))
            });
            assert_eq!(links, estimate.links);
            assert!((estimate.correct - correct).abs() < 80.0, "{share}: {estimate:?}, {correct}");
            assert!((estimate.matches - 1_000.0 * share).abs() < 120.0, "{share}: {estimate:?}");
        }
    }

    #[test]
    fn where_no_match_is_hardly_any_is_expected() {
        let (best, own, _) = table(2_000, 0.0, 4);
        let estimate = automatic(&best, &own, 0.5);
        assert!(estimate.is_none_or(|estimate| estimate.correct < 120.0), "{estimate:?}");
        assert_eq!(automatic(&[0.5; 20], &[0.5; 20], 1.0), None, "too few rows");
        let same = automatic(&[1.0; 100], &[1.0; 100], 1.0);
        assert_eq!(same, None, "what is as near within a table is no match");
    }

    /// Rows that are right with the probabilities that they are said to have: of 4,000 a number has a standard deviation of 32 at most; five.
    #[test]
    fn probabilities_give_the_threshold_of_the_best_f1() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let best: Vec<f32> = (0..4_000).map(|_| rng.random::<f32>().powi(2)).collect();
        let right: Vec<bool> = best.iter().map(|&probability| rng.random::<f32>() < probability).collect();
        let estimate = of_probabilities(&best, 1_500.0).expect("matches are there");
        let at = |threshold: f32| {
            let linked = (0..best.len()).filter(|&row| best[row] >= threshold);
            linked.fold((0, 0), |(links, correct), row| (links + 1, correct + usize::from(right[row])))
        };
        let (links, correct) = at(estimate.threshold);
        assert_eq!(links, estimate.links);
        assert!((estimate.correct - correct as f64).abs() < 160.0, "{estimate:?}, {correct}");
        let f1 = |threshold| 2.0 * at(threshold).1 as f64 / (at(threshold).0 as f64 + 1_500.0);
        let most = (1..100).map(|percent| f1(percent as f32 / 100.0)).fold(0.0, f64::max);
        // Five standard deviations of twice a number of rows, over links and matches.
        assert!(most - f1(estimate.threshold) < 0.05, "{most} {}", f1(estimate.threshold));
        assert_eq!(of_probabilities(&[0.0; 100], 0.0), None, "no match is expected");
        assert_eq!(of_probabilities(&[1.0; 20], 20.0), None, "too few rows");
    }
}
