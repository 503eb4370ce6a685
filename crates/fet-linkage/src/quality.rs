//! Quality of links if the truth is known: precision, recall and F1 over thresholds.

use std::collections::HashSet;

/// Quality of links at one threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Pairs with at least this similarity are links.
    pub threshold: f32,
    /// Number of links.
    pub links: usize,
    /// Number of links that are true pairs.
    pub correct: usize,
    /// Number of true pairs.
    pub truth: usize,
}

impl Quality {
    /// Returns the share of links that are true; 1 if there are no links.
    pub fn precision(&self) -> f64 {
        if self.links == 0 { 1.0 } else { self.correct as f64 / self.links as f64 }
    }

    /// Returns the share of true pairs that are links.
    pub fn recall(&self) -> f64 {
        self.correct as f64 / self.truth.max(1) as f64
    }

    /// Returns the harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        2.0 * self.correct as f64 / (self.links + self.truth).max(1) as f64
    }
}

/// Returns the quality at each similarity that occurs, from the highest down. `pairs` are (query, record,
/// similarity).
pub fn curve(pairs: &[(u32, u32, f32)], truth: &HashSet<(u32, u32)>) -> Vec<Quality> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable_by(|a, b| b.2.total_cmp(&a.2));
    let mut out: Vec<Quality> = Vec::new();
    let (mut links, mut correct) = (0, 0);
    for (query, record, similarity) in pairs {
        links += 1;
        correct += usize::from(truth.contains(&(query, record)));
        let quality = Quality { threshold: similarity, links, correct, truth: truth.len() };
        match out.last_mut() {
            Some(last) if last.threshold == similarity => *last = quality,
            _ => out.push(quality),
        }
    }
    out
}

/// Returns the point of a curve with the highest F1. If several points are equal, it returns the highest
/// threshold.
pub fn best(curve: &[Quality]) -> Option<Quality> {
    curve.iter().copied().reduce(|best, next| if next.f1() > best.f1() { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_counts_ties_together() {
        let truth = HashSet::from([(0, 0), (1, 1), (2, 2)]);
        let curve = curve(&[(0, 0, 0.9), (1, 1, 0.8), (2, 0, 0.8), (3, 3, 0.1)], &truth);
        let counts: Vec<_> = curve.iter().map(|q| (q.links, q.correct)).collect();
        assert_eq!(counts, [(1, 1), (3, 2), (4, 2)]);
        let best = best(&curve).expect("there are links");
        assert_eq!((best.threshold, best.f1()), (0.8, 4.0 / 6.0));
        assert_eq!((best.precision(), best.recall()), (2.0 / 3.0, 2.0 / 3.0));
    }
}
