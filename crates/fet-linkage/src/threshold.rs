//! Estimate of a threshold for links if the truth is unknown.
//!
//! A pair is probably a match if it is much more similar than its rivals ([`Rivals`]): the next record of the
//! row, the next row of the record, the row's tenth record, and the most similar other row of the row's own
//! table. The own table's rows are decoys, because they are non-matches (Elias and Gygi 2007). Their
//! similarity alone does not suffice: a catalogue has many variants of a product, which resemble each other
//! more than two shops' texts of one product do.
//!
//! A logistic function of these differences estimates the probability that a pair is a match
//! ([`Calibration`]). It was fitted to tables with known pairs: products, software, films, publications,
//! restaurants and people, each also with the tables exchanged, with few matches, and with few rows. Only
//! differences of similarities count, so that the function holds for any linker. `benches/threshold.py` fits
//! it, and measures it on tables that it was not fitted to.
//!
//! If a similarity is already the probability of a match, all estimates are sums of probabilities
//! ([`of_probabilities`]).

/// A threshold and the expected quality of its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Pairs with at least this similarity are links.
    pub threshold: f32,
    /// Number of pairs that reach the threshold.
    pub links: usize,
    /// Expected number of links that are matches.
    pub correct: f64,
    /// Expected number of pairs that are matches.
    pub matches: f64,
    /// Error of the expected precision, as a share of links; 0 if it is unknown.
    pub error: f64,
}

impl Estimate {
    /// Returns the expected share of links that are correct.
    pub fn precision(&self) -> f64 {
        if self.links == 0 { 1.0 } else { (self.correct / self.links as f64).min(1.0) }
    }

    /// Returns the range that the precision is probably in, or `None` if the precision can be far lower than
    /// expected: the estimate expects too many matches in tables with few.
    pub fn precision_range(&self) -> Option<[f64; 2]> {
        let range = [-self.error, self.error].map(|error| (self.precision() + error).clamp(0.0, 1.0));
        (self.precision() >= RELIABLE_PRECISION).then_some(range)
    }

    /// Returns the expected share of matches that are linked.
    pub fn recall(&self) -> f64 {
        if self.matches > 0.0 { (self.correct / self.matches).min(1.0) } else { 0.0 }
    }

    /// Returns true if the estimate cannot decide: if two of three links are probably wrong, or if there are
    /// fewer than ten links.
    pub fn is_doubtful(&self) -> bool {
        self.precision() < LEAST_PRECISION || self.links < FEWEST_LINKS
    }

    fn f1(&self) -> f64 {
        2.0 * self.correct / (self.links as f64 + self.matches).max(1.0)
    }
}

/// Minimum number of rows for an estimate.
pub const FEWEST: usize = 50;

/// Expected precision below which an estimate is doubtful.
const LEAST_PRECISION: f64 = 0.35;

/// Expected precision from which the range of the precision is known. `benches/threshold_range.py` counts on
/// generated tables how often the range contains the precision.
const RELIABLE_PRECISION: f64 = 0.7;

/// Number of links below which an estimate is doubtful.
const FEWEST_LINKS: usize = 10;

/// Similarity of a pair, and of the pairs that compete with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rivals {
    /// Similarity of the pair.
    pub similarity: f32,
    /// Similarity of the row's most similar other record.
    pub next_record: f32,
    /// Similarity of the record's most similar other row.
    pub next_row: f32,
    /// Similarity of the row's last candidate, which shows the similarity of non-matches.
    pub last: f32,
    /// Similarity of the most similar other row of the row's own table.
    pub own: f32,
}

/// Logistic function of a pair's lead over its rivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    intercept: f64,
    /// Weights of the leads over the own table, the last candidate, the closer rival, the next record and
    /// the next row.
    leads: [f64; 5],
    /// Weight of the share of pairs without a closer rival.
    reciprocal: f64,
    /// Weight of the mean lead over the own table.
    distinct: f64,
    /// Weight of the logarithm of the number of records for each row.
    ratio: f64,
    /// Error of the expected precision that nine of ten tables did not exceed, each with a function that was
    /// fitted to other tables.
    error: f64,
}

/// Function for each row's most similar record.
pub const BEST_RECORD: Calibration = Calibration {
    intercept: -7.06,
    leads: [-0.23, 1.6, 1.64, 0.79, 1.09],
    reciprocal: 8.44,
    distinct: -2.13,
    ratio: -2.06,
    error: 0.2,
};

/// Function for pairs in which each row and each record occurs once.
pub const ONE_TO_ONE: Calibration = Calibration {
    intercept: -7.7,
    leads: [-0.37, 2.36, 0.69, 0.82, 1.25],
    reciprocal: 8.1,
    distinct: -2.41,
    ratio: -0.55,
    error: 0.3,
};

/// Minimum spread of similarities, in log-odds.
const LEAST_SPREAD: f64 = 0.02;

/// Returns the log-odds of a similarity; 0 and 1 have finite values.
fn log_odds(similarity: f32) -> f64 {
    let similarity = f64::from(similarity.clamp(0.0, 1.0));
    ((similarity + 0.02) / (1.02 - similarity)).ln()
}

impl Rivals {
    /// Returns the pair's leads in log-odds: over the own table, the last candidate, the next record and the
    /// next row.
    fn leads(&self) -> [f64; 4] {
        let own = log_odds(self.similarity);
        [self.own, self.last, self.next_record, self.next_row].map(|rival| own - log_odds(rival))
    }
}

impl Calibration {
    /// Returns the probability that each pair is a match. `ratio` is the number of records for each row.
    pub fn probabilities(&self, pairs: &[Rivals], ratio: f64) -> Vec<f64> {
        let count = pairs.len().max(1) as f64;
        // Linkers differ in the spread of their similarities, so that leads are relative to it.
        let spread = |pair: &Rivals| log_odds(pair.next_record) - log_odds(pair.last);
        let spread = (pairs.iter().map(spread).sum::<f64>() / count).max(LEAST_SPREAD);
        let leads: Vec<[f64; 4]> = pairs.iter().map(|pair| pair.leads().map(|lead| lead / spread)).collect();
        let closer = |lead: &[f64; 4]| lead[2].min(lead[3]);
        let reciprocal = leads.iter().filter(|lead| closer(lead) > 0.0).count() as f64 / count;
        let distinct = leads.iter().map(|lead| lead[0].tanh()).sum::<f64>() / count;
        let of_tables = self.intercept
            + self.reciprocal * reciprocal
            + self.distinct * distinct
            + self.ratio * ratio.ln().clamp(-1.0, 1.0);
        let probability = |lead: &[f64; 4]| {
            let lead = [lead[0], lead[1] / 2.0, closer(lead), lead[2], lead[3]].map(f64::tanh);
            let sum = self.leads.iter().zip(lead).map(|(weight, lead)| weight * lead).sum::<f64>();
            1.0 / (1.0 + (-of_tables - sum).exp())
        };
        leads.iter().map(probability).collect()
    }

    /// Returns the threshold with the best expected F1 of these pairs. `ratio` is the number of records for
    /// each row. Returns `None` if there are fewer than [`FEWEST`] pairs, or if no match is expected.
    pub fn threshold(&self, pairs: &[Rivals], ratio: f64) -> Option<Estimate> {
        let probabilities = self.probabilities(pairs, ratio);
        let scored = pairs.iter().map(|pair| pair.similarity).zip(probabilities).collect();
        best_threshold(scored, 0.0).map(|estimate| Estimate { error: self.error, ..estimate })
    }
}

/// Returns the threshold with the best expected F1 of pairs (similarity, probability), or `None` if there are
/// fewer than [`FEWEST`] pairs or if no match is expected. There are at least `matches` matches.
fn best_threshold(mut pairs: Vec<(f32, f64)>, matches: f64) -> Option<Estimate> {
    if pairs.len() < FEWEST {
        return None;
    }
    pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let matches = matches.max(pairs.iter().map(|pair| pair.1).sum());
    let mut correct = 0.0;
    let mut estimates = Vec::new();
    for (place, &(threshold, probability)) in pairs.iter().enumerate() {
        correct += probability;
        if pairs.get(place + 1).is_none_or(|next| next.0 != threshold) {
            estimates.push(Estimate { threshold, links: place + 1, correct, matches, error: 0.0 });
        }
    }
    let hopeful = estimates.into_iter().filter(|estimate| estimate.correct >= 1.0);
    hopeful.max_by(|a, b| a.f1().total_cmp(&b.f1()))
}

/// Returns the threshold with the best expected F1. `best` is the probability that each row's best record is
/// its match, and `matches` is the expected number of rows with a match. Returns `None` if there are fewer
/// than [`FEWEST`] rows, or if no match is expected.
pub fn of_probabilities(best: &[f32], matches: f64) -> Option<Estimate> {
    best_threshold(best.iter().map(|&probability| (probability, f64::from(probability))).collect(), matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Returns pairs of rows and records, and the truth of each: a share `share` of the rows has a match of
    /// similarity 0.5 to 0.95. Non-matches are uniform from `least` to 0.5, and rows of the own table are as
    /// similar to each other as `own`.
    fn table(rows: usize, share: f64, own: f32, seed: u64) -> (Vec<Rivals>, Vec<bool>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut pair = || {
            let mut others: Vec<f32> = (0..20).map(|_| rng.random_range(0.1..0.5f32)).collect();
            others.sort_unstable_by(|a, b| b.total_cmp(a));
            let right = rng.random::<f64>() < share;
            let similarity = if right { rng.random_range(0.5..0.95) } else { others[0] };
            let next_record = if right { others[0] } else { others[1] };
            // A wrong record usually has a row that is as similar.
            let next_row = if right { rng.random_range(0.1..0.5) } else { rng.random_range(0.3..0.6) };
            (Rivals { similarity, next_record, next_row, last: others[9], own }, right)
        };
        (0..rows).map(|_| pair()).unzip()
    }

    /// A catalogue's products resemble each other more than their matches do: the threshold must not keep only
    /// the few pairs that are more similar than two products of one catalogue.
    #[test]
    fn finds_most_matches_between_tables_of_similar_rows() {
        for (share, own, seed) in
            [(0.3, 0.4, 1), (0.6, 0.4, 2), (0.95, 0.4, 3), (0.95, 0.7, 3), (0.95, 0.9, 3)]
        {
            for function in [BEST_RECORD, ONE_TO_ONE] {
                let (pairs, right) = table(1_000, share, own, seed);
                let estimate = function.threshold(&pairs, 1.0).expect("matches are there");
                let linked = |at: &usize| pairs[*at].similarity >= estimate.threshold;
                let links: Vec<usize> = (0..pairs.len()).filter(linked).collect();
                assert_eq!(links.len(), estimate.links);
                let correct = links.iter().filter(|&&at| right[at]).count() as f64;
                let truth = right.iter().filter(|&&right| right).count() as f64;
                let f1 = 2.0 * correct / (links.len() as f64 + truth);
                // Matches are more similar than all non-matches, so the best threshold has an F1 of 1.
                assert!(f1 > 0.85, "{share} {own}: {f1} {estimate:?}");
                assert!(!estimate.is_doubtful(), "{share} {own}: {estimate:?}");
            }
        }
    }

    #[test]
    fn doubts_links_without_a_lead_and_hardly_any_links() {
        let (mut pairs, _) = table(1_000, 0.0, 0.6, 4);
        pairs.iter_mut().for_each(|pair| (pair.next_record, pair.next_row) = (pair.similarity, 0.9));
        for function in [BEST_RECORD, ONE_TO_ONE] {
            let estimate = function.threshold(&pairs, 1.0);
            assert!(estimate.is_none_or(|estimate| estimate.is_doubtful()), "{estimate:?}");
            assert_eq!(function.threshold(&pairs[..20], 1.0), None, "too few rows");
        }
        let few = Estimate { threshold: 1.0, links: 6, correct: 6.0, matches: 6.0, error: 0.2 };
        assert_eq!(Estimate { links: 100, correct: 75.0, ..few }.precision_range(), Some([0.55, 0.95]));
        assert_eq!(Estimate { links: 100, correct: 69.0, ..few }.precision_range(), None);
        assert!(few.is_doubtful(), "six links are too few to be silent about");
        assert!(!Estimate { links: 600, correct: 500.0, ..few }.is_doubtful());
        assert!(Estimate { links: 600, correct: 100.0, ..few }.is_doubtful());
    }

    /// A lead over each rival makes a match more probable.
    #[test]
    fn probability_rises_with_the_lead_over_each_rival() {
        let plain = Rivals { similarity: 0.7, next_record: 0.6, next_row: 0.6, last: 0.4, own: 0.6 };
        let with = |change: fn(&mut Rivals)| {
            let mut pair = plain;
            change(&mut pair);
            pair
        };
        let changed = [
            with(|pair| pair.next_record = 0.75),
            with(|pair| pair.next_row = 0.75),
            with(|pair| (pair.last, pair.next_record) = (0.65, 0.69)),
        ];
        for function in [BEST_RECORD, ONE_TO_ONE] {
            let all = [&[plain][..], &changed[..]].concat();
            let found = function.probabilities(&all, 1.0);
            assert!(found[1..].iter().all(|less| *less < found[0]), "{found:?}");
        }
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
