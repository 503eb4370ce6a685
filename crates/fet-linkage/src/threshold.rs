//! A threshold for links whose truth is not known.
//!
//! The best record of a row is its match or the best of those that are none. How near those come is seen in the row's own table,
//! where all others are none: a decoy estimate (Elias and Gygi 2007), with the rows' own table as the decoy. Let a share `any` of the
//! rows have a record at t or nearer, and a share `own` another row of their own table. With b records to a rows, a record that is no
//! match is so near with probability o = 1 - (1 - own)^(b/a); any = m + (1 - m)·o, and m, the share whose match is so near, follows.
//! Where the own table holds a thing twice, or is cleaner than the other, m is estimated too low rather than too high. Where it is the
//! worse kept of the two, its rows are less like each other than like the other table's, and m is estimated too high. Against that stands
//! what is second best among the records. If they hold nothing twice, a second is as near as t in a share c = m·o + (1 - m)·p of the rows,
//! where p = o + (1 - o)·ln(1 - o) is the probability of two such records if they are spread as by chance (a Poisson distribution).
//! Together with any = m + (1 - m)·o that gives another o, and the least that is expected to be right.
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
    /// How many links are expected to be right at least, if the records hold nothing twice; `correct` if that is less, or not known.
    pub least: f64,
}

impl Estimate {
    /// The expected share of links that are right.
    pub fn precision(&self) -> f64 {
        self.share(self.correct)
    }

    /// The same if the records hold nothing twice.
    pub fn least_precision(&self) -> f64 {
        self.share(self.least)
    }

    fn share(&self, right: f64) -> f64 {
        if self.links == 0 { 1.0 } else { (right / self.links as f64).min(1.0) }
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
/// own table, `second` that of its second-best record where that is known, `ratio` how many records there are for a row. Nothing where
/// there are fewer than [`FEWEST`] rows, or no match is expected.
///
/// # Panics
/// If a row has only one of them.
pub fn automatic(best: &[f32], own: &[f32], second: Option<&[f32]>, ratio: f64) -> Option<Estimate> {
    let each = [Some(own), second];
    assert!(each.iter().flatten().all(|other| other.len() == best.len()), "a similarity for each row");
    let rows = best.len();
    if rows < FEWEST {
        return None;
    }
    let sorted = |values: &[f32]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        values
    };
    let (best, own, second) = (sorted(best), sorted(own), second.map(sorted));
    let share = |sorted: &[f32], threshold: f32| {
        sorted.partition_point(|score| *score >= threshold) as f64 / rows as f64
    };
    let mut estimates: Vec<Estimate> = Vec::new();
    let (mut matches, mut least) = (0.0f64, 0.0f64);
    for (place, &threshold) in best.iter().enumerate() {
        if best.get(place + 1) == Some(&threshold) {
            continue;
        }
        let any = (place + 1) as f64 / rows as f64;
        let others = 1.0 - (1.0 - share(&own, threshold)).powf(ratio);
        if others > MOST_OTHERS {
            break;
        }
        // Whoever reaches a threshold reaches a lower one.
        let right = |others: f64| (any - others) / (1.0 - others).max(f64::EPSILON) * rows as f64;
        matches = matches.max(right(others));
        // The share of seconds as it may well be (one-sided, 95 %): where hardly any match is there, little of it decides.
        let likely = |share: f64| share + 1.645 * (share * (1.0 - share) / rows as f64).sqrt();
        let by_second =
            second.as_ref().map_or(0.0, |second| others_by(any, likely(share(second, threshold))));
        let most = others.max(by_second);
        if most <= MOST_OTHERS {
            least = least.max(right(most));
        }
        estimates.push(Estimate { threshold, links: place + 1, correct: matches, matches: 0.0, least });
    }
    estimates.iter_mut().for_each(|estimate| estimate.matches = matches);
    let hopeful = estimates.into_iter().filter(|estimate| estimate.correct >= 1.0);
    hopeful.max_by(|a, b| a.f1().total_cmp(&b.f1()))
}

/// The probability that a record which is no match is as near as a threshold, where a share `any` of the rows have a record that near, and
/// a share `second` two of them.
fn others_by(any: f64, second: f64) -> f64 {
    let expected = |others: f64| {
        let unmatched = (1.0 - any) / (1.0 - others);
        let two = others + (1.0 - others) * (1.0 - others).ln();
        (1.0 - unmatched) * others + unmatched * two
    };
    let (mut low, mut high) = (0.0, any.min(1.0 - f64::EPSILON));
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if expected(middle) < second { low = middle } else { high = middle }
    }
    high
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
            estimates.push(Estimate { threshold, links: place + 1, correct, matches, least: correct });
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

    /// What a search finds of rows.
    struct Searched {
        best: Vec<f32>,
        own: Vec<f32>,
        second: Vec<f32>,
        right: Vec<bool>,
    }

    impl Searched {
        fn estimate(&self) -> Option<Estimate> {
            automatic(&self.best, &self.own, Some(&self.second), 0.5)
        }

        fn correct(&self, estimate: &Estimate) -> f64 {
            let linked = (0..self.best.len()).filter(|&row| self.best[row] >= estimate.threshold);
            linked.filter(|&row| self.right[row]).count() as f64
        }
    }

    /// Rows of which a share have a match from 0.68 to 1; others are uniform below 0.7, forty records and eighty own rows. The latter are
    /// `worse` times as near.
    fn table(rows: usize, share: f64, worse: f32, seed: u64) -> Searched {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut all = Searched { best: Vec::new(), own: Vec::new(), second: Vec::new(), right: Vec::new() };
        for _ in 0..rows {
            let mut drawn = |count: usize| -> Vec<f32> {
                let mut drawn: Vec<f32> = (0..count).map(|_| rng.random_range(0.0..0.7f32)).collect();
                drawn.sort_unstable_by(|a, b| b.total_cmp(a));
                drawn
            };
            let (others, twins) = (drawn(40), drawn(80));
            let matched = if rng.random::<f64>() < share { rng.random_range(0.68..1.0) } else { 0.0 };
            all.best.push(others[0].max(matched));
            all.second.push(others[0].min(matched).max(others[1]));
            all.own.push(worse * twins[0]);
            all.right.push(matched > others[0]);
        }
        all
    }

    /// Numbers of rows have a standard deviation of 16 or less in 1,000; 80 are five of them.
    #[test]
    fn what_is_expected_is_what_is_there() {
        for (share, seed) in [(0.1, 1), (0.5, 2), (0.9, 3)] {
            let all = table(1_000, share, 1.0, seed);
            let estimate = all.estimate().expect("matches are there");
            let links = all.best.iter().filter(|best| **best >= estimate.threshold).count();
            assert_eq!(links, estimate.links);
            let correct = all.correct(&estimate);
            assert!((estimate.correct - correct).abs() < 80.0, "{share}: {estimate:?}, {correct}");
            assert!((-160.0..80.0).contains(&(estimate.least - correct)), "{share}: {estimate:?}, {correct}");
            assert!((estimate.matches - 1_000.0 * share).abs() < 120.0, "{share}: {estimate:?}");
        }
    }

    /// Rows that are mistyped are less like each other than like the other table's: what is second best there still tells.
    #[test]
    fn the_least_that_is_expected_holds_where_the_own_table_is_the_worse_kept() {
        for (share, seed) in [(0.0, 5), (0.1, 6), (0.5, 7)] {
            let all = table(1_000, share, 0.9, seed);
            let estimate = all.estimate().expect("matches are expected");
            let correct = all.correct(&estimate);
            assert!(
                estimate.correct - correct > 160.0,
                "{share}: its own rows mislead: {estimate:?}, {correct}"
            );
            assert!((-160.0..80.0).contains(&(estimate.least - correct)), "{share}: {estimate:?}, {correct}");
            assert!(estimate.least_precision() < estimate.precision());
        }
    }

    #[test]
    fn where_no_match_is_hardly_any_is_expected() {
        let estimate = table(2_000, 0.0, 1.0, 4).estimate();
        assert!(estimate.is_none_or(|estimate| estimate.correct < 120.0), "{estimate:?}");
        assert_eq!(automatic(&[0.5; 20], &[0.5; 20], None, 1.0), None, "too few rows");
        let same = automatic(&[1.0; 100], &[1.0; 100], None, 1.0);
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
