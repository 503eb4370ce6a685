//! Separation of classes by a score.

use fet_core::rng::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Returns the area under the ROC curve: the probability that a row of the class has a higher score than
/// another row. Ties count half. Returns 0.5 if one side is empty.
pub(crate) fn auc(scores: &[f64], is_class: impl Fn(usize) -> bool) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut above, mut inside) = (0.0, 0.0);
    let mut start = 0;
    while start < order.len() {
        let score = scores[order[start]];
        let end = start + order[start..].iter().take_while(|&&row| scores[row] == score).count();
        let members = order[start..end].iter().filter(|&&row| is_class(row)).count() as f64;
        let others = (end - start) as f64 - members;
        // Each member exceeds all earlier others, and half of the tied others.
        above += members * (start as f64 - inside + others / 2.0);
        inside += members;
        start = end;
    }
    let outside = scores.len() as f64 - inside;
    if inside == 0.0 || outside == 0.0 { 0.5 } else { above / (inside * outside) }
}

/// Returns the area regardless of direction: a score that is always wrong is as informative as a score that
/// is always right.
pub(crate) fn telling(scores: &[f64], is_class: impl Fn(usize) -> bool) -> f64 {
    let area = auc(scores, is_class);
    area.max(1.0 - area)
}

/// Returns a permutation of the labels, to estimate the success of an attack by chance.
pub(crate) fn shuffled(labels: &[usize], rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut labels = labels.to_vec();
    labels.shuffle(rng);
    labels
}

/// Returns the share of the most frequent label: the accuracy of guessing.
pub(crate) fn commonest(labels: &[usize]) -> f64 {
    let mut counts = vec![0usize; labels.iter().max().map_or(0, |most| most + 1)];
    labels.iter().for_each(|&label| counts[label] += 1);
    counts.into_iter().max().unwrap_or(0) as f64 / labels.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_counts_pairs() {
        let scores = [0.1, 0.4, 0.35, 0.8, 0.4];
        let classes = [false, false, true, true, true];
        let mut expected = 0.0;
        for (i, _) in classes.iter().enumerate().filter(|(_, class)| **class) {
            for (j, _) in classes.iter().enumerate().filter(|(_, class)| !**class) {
                expected += if scores[i] > scores[j] {
                    1.0
                } else if scores[i] == scores[j] {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert!((auc(&scores, |row| classes[row]) - expected / 6.0).abs() < 1e-12);
        let reversed: Vec<f64> = scores.iter().map(|score| -score).collect();
        assert!((auc(&reversed, |row| classes[row]) - (1.0 - expected / 6.0)).abs() < 1e-12);
        assert_eq!(auc(&scores, |_| true), 0.5);
        assert_eq!(auc(&[1.0; 4], |row| row > 1), 0.5);
        assert_eq!(commonest(&[0, 2, 2, 1]), 0.5);
    }
}
