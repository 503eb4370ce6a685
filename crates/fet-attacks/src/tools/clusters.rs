//! Clustering of directions: the direction of a row's gradient depends on its label.

use fet_core::rng::ChaCha8Rng;
use rand::RngExt;

/// Returns the inner product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Normalises a vector to length 1. A zero vector stays zero.
pub(crate) fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let norm = dot(&vector, &vector).sqrt().max(f64::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= norm);
    vector
}

/// Returns the cluster of each direction by spherical k-means (Dhillon and Modha 2001) with k-means++ starts:
/// the best of ten results by the k-means objective.
pub(crate) fn cluster(directions: &[Vec<f64>], clusters: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    const STARTS: usize = 10;
    const STEPS: usize = 30;
    let Some(width) = directions.first().map(Vec::len) else { return Vec::new() };
    let mut best = (f64::NEG_INFINITY, vec![0; directions.len()]);
    for _ in 0..STARTS {
        let mut centres = starts(directions, clusters, rng);
        let mut own = vec![0; directions.len()];
        let mut total = 0.0;
        for _ in 0..STEPS {
            total = 0.0;
            for (own, x) in own.iter_mut().zip(directions) {
                let scores = centres.iter().map(|centre| dot(centre, x)).enumerate();
                let (nearest, score) = scores.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
                *own = nearest;
                total += score;
            }
            let mut sums = vec![vec![0.0; width]; clusters];
            for (x, &own) in directions.iter().zip(&own) {
                sums[own].iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            }
            centres = sums.into_iter().map(unit).collect();
        }
        if total > best.0 {
            best = (total, own);
        }
    }
    best.1
}

/// Draws starting centres. A direction far from all previous centres is more probable.
fn starts(directions: &[Vec<f64>], clusters: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let mut centres = vec![directions[rng.random_range(0..directions.len())].clone()];
    let mut far: Vec<f64> = vec![f64::INFINITY; directions.len()];
    while centres.len() < clusters {
        let last = &centres[centres.len() - 1];
        far.iter_mut().zip(directions).for_each(|(far, x)| *far = far.min((1.0 - dot(last, x)).max(0.0)));
        let mut at = rng.random::<f64>() * far.iter().sum::<f64>();
        let chosen = far.iter().position(|far| {
            at -= far;
            at <= 0.0
        });
        centres.push(directions[chosen.unwrap_or(0)].clone());
    }
    centres
}

/// Returns the share of rows that have the most frequent label of their cluster.
pub(crate) fn purity(own: &[usize], labels: &[usize]) -> f64 {
    let (clusters, classes) = (size(own), size(labels));
    let mut counts = vec![vec![0usize; classes]; clusters];
    own.iter().zip(labels).for_each(|(&own, &label)| counts[own][label] += 1);
    let pure: usize = counts.iter().filter_map(|count| count.iter().max()).sum();
    pure as f64 / labels.len().max(1) as f64
}

fn size(numbers: &[usize]) -> usize {
    numbers.iter().max().map_or(0, |most| most + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::rng::{Purpose, stream};

    #[test]
    fn directions_of_one_kind_fall_together() {
        let mut rng = stream(0, 0, Purpose::Linking, 0);
        let labels: Vec<usize> = (0..300).map(|row| row % 3).collect();
        let around = |label: usize, rng: &mut ChaCha8Rng| {
            unit((0..8).map(|i| f64::from(i == label) + 0.1 * (rng.random::<f64>() - 0.5)).collect())
        };
        let directions: Vec<Vec<f64>> = labels.iter().map(|&label| around(label, &mut rng)).collect();
        assert_eq!(purity(&cluster(&directions, 3, &mut rng), &labels), 1.0);
        // Uninformative directions: three clusters, and three labels of a third each.
        let nothing: Vec<Vec<f64>> = (0..300).map(|_| around(9, &mut rng)).collect();
        assert!(purity(&cluster(&nothing, 3, &mut rng), &labels) < 0.6);
        assert!(cluster(&[], 3, &mut rng).is_empty());
    }
}
