//! Estimate of a threshold for links if the truth is unknown.
//!
//! The best record of a row is its match or the best non-match. The row's own table shows how near
//! non-matches come, since all its other rows are non-matches. This is a decoy estimate (Elias and Gygi 2007)
//! with the rows' own table as the decoy. Let a share `any` of the rows have a record at similarity t or
//! nearer, and a share `own` another row of their own table. With b records for a rows, a non-match is that
//! near with probability o = 1 - (1 - own)^(b/a). The share m of rows whose match is that near follows from
//! any = m + (1 - m)·o.
//!
//! If the own table contains duplicates, or is cleaner than the other table, m is underestimated. If the own
//! table is of lower quality, its rows resemble each other less than they resemble the other table's rows, and
//! m is overestimated. The second-best records bound this error. If the records contain no duplicates, a
//! second-best record is as near as t in a share c = m·o + (1 - m)·p of the rows. Here p = o + (1 - o)·ln(1 -
//! o) is the probability of two such records if they are spread at random (a Poisson distribution). Together
//! with any = m + (1 - m)·o this gives another o, and thus the smallest expected number of correct links.
//!
//! If a similarity is already the probability of a match, all estimates are sums of probabilities
//! ([`of_probabilities`]).

/// A threshold and the expected quality of its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Pairs with at least this similarity are links.
    pub threshold: f32,
    /// Number of rows whose best record reaches the threshold.
    pub links: usize,
    /// Expected number of links that are matches.
    pub correct: f64,
    /// Expected number of rows with a match.
    pub matches: f64,
    /// Smallest expected number of correct links, if the records contain no duplicates. Equals `correct` if
    /// that is smaller, or if no second-best similarities are known.
    pub least: f64,
}

impl Estimate {
    /// Returns the expected share of links that are correct.
    pub fn precision(&self) -> f64 {
        self.share(self.correct)
    }

    /// Returns the smallest expected share of correct links, if the records contain no duplicates.
    pub fn least_precision(&self) -> f64 {
        self.share(self.least)
    }

    fn share(&self, right: f64) -> f64 {
        if self.links == 0 { 1.0 } else { (right / self.links as f64).min(1.0) }
    }

    /// Returns the expected share of matches that are linked.
    pub fn recall(&self) -> f64 {
        if self.matches > 0.0 { (self.correct / self.matches).min(1.0) } else { 0.0 }
    }

    fn f1(&self) -> f64 {
        2.0 * self.correct / (self.links as f64 + self.matches).max(1.0)
    }
}

/// Minimum number of rows for an estimate.
pub const FEWEST: usize = 50;

/// Probability of an equally near non-match above which matches cannot be distinguished from non-matches.
const MOST_OTHERS: f64 = 0.5;

/// Returns the threshold with the best expected F1. `best` is the similarity of each row's best record, `own`
/// the similarity of the best other row of its own table, and `second` the similarity of its second-best
/// record if known. `ratio` is the number of records for each row. Returns `None` if there are fewer than
/// [`FEWEST`] rows, or if no match is expected.
///
/// # Panics
/// If the slices have different lengths.
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
        // A row that reaches a threshold also reaches every lower threshold.
        let right = |others: f64| (any - others) / (1.0 - others).max(f64::EPSILON) * rows as f64;
        matches = matches.max(right(others));
        // Upper bound of the share of seconds (one-sided, 95 %). If there are hardly any matches, a small
        // change of this share decides.
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

/// Returns the probability that a non-match is as near as a threshold, given a share `any` of rows with a
/// record that near and a share `second` of rows with two such records.
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

/// Returns the threshold with the best expected F1. `best` is the probability that each row's best record is
/// its match, and `matches` is the expected number of rows with a match. Returns `None` if there are fewer
/// than [`FEWEST`] rows, or if no match is expected.
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

    /// Results of a search.
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

    /// Returns rows with a match at a similarity from 0.68 to 1 in a share `share` of cases. Similarities of
    /// non-matches are uniform below 0.7, with forty records and eighty own rows for each row. `worse`
    /// multiplies the similarities of own rows.
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

    /// Numbers of rows have a standard deviation of at most 16 in 1,000. A tolerance of 80 is five standard
    /// deviations.
    #[test]
    fn estimates_agree_with_the_truth() {
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

    /// Rows with typing errors resemble each other less than they resemble the other table's rows. The
    /// second-best records still reveal the non-matches.
    #[test]
    fn lower_bound_holds_for_an_own_table_of_lower_quality() {
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
    fn expects_hardly_any_match_between_unrelated_tables() {
        let estimate = table(2_000, 0.0, 1.0, 4).estimate();
        assert!(estimate.is_none_or(|estimate| estimate.correct < 120.0), "{estimate:?}");
        assert_eq!(automatic(&[0.5; 20], &[0.5; 20], None, 1.0), None, "too few rows");
        let same = automatic(&[1.0; 100], &[1.0; 100], None, 1.0);
        assert_eq!(same, None, "rows that are as near within their table are not matches");
    }

    /// Rows are correct with their stated probabilities. A number among 4,000 has a standard deviation of at
    /// most 32. The tolerance is five standard deviations.
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
        // Five standard deviations of twice a number of rows, divided by links plus matches.
        assert!(most - f1(estimate.threshold) < 0.05, "{most} {}", f1(estimate.threshold));
        assert_eq!(of_probabilities(&[0.0; 100], 0.0), None, "no match is expected");
        assert_eq!(of_probabilities(&[1.0; 20], 20.0), None, "too few rows");
    }
}
