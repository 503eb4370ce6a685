//! A secondary's linked records as columns of the primary's rows, which stay with the secondary.

use fet_core::encoder::NeighbourBatch;
use fet_core::parameters::host;

use crate::gbdt::Pool;

/// Returns the columns of the linked records, in these forms; each has one value for each of the batch's rows.
///
/// The similarities are those of the linker. Without them, `weighted` is the mean, and `similarity` gives no column. A row
/// without a record has zeros.
pub(super) fn of_links(batch: &NeighbourBatch, forms: &[Pool]) -> Vec<Vec<f32>> {
    let links = Links::new(batch);
    let has = |form: Pool| forms.contains(&form);
    let mut columns = Vec::new();
    for form in forms {
        match form {
            Pool::Nearest => columns.extend(links.means(1, |_| 1.0)),
            // With one record, the forms of several records are equal to it.
            Pool::Mean | Pool::Weighted if batch.neighbours == 1 && has(Pool::Nearest) => {}
            Pool::Mean => columns.extend(links.means(links.real, |_| 1.0)),
            Pool::Weighted => columns.extend(links.means(links.real, f64::exp)),
            Pool::Similarity => {
                let mean = |all: &[f32]| all.iter().sum::<f32>() / all.len() as f32;
                columns.extend(links.of_similarities(|all| all[0]));
                columns.extend(links.of_similarities(mean).filter(|_| batch.neighbours > 1));
            }
        }
    }
    columns
}

/// The linked records of a batch.
struct Links<'a> {
    batch: &'a NeighbourBatch,
    /// Number of real neighbours of a row.
    real: usize,
    /// The record in each slot.
    slots: Vec<usize>,
    /// Values of the records, by record.
    values: Vec<f32>,
    /// Number of columns of a record.
    width: usize,
}

impl<'a> Links<'a> {
    fn new(batch: &'a NeighbourBatch) -> Self {
        Self {
            real: batch.available.clamp(1, batch.neighbours),
            slots: batch.slots.clone().into_data().iter::<i64>().map(|slot| slot as usize).collect(),
            values: host(batch.features.clone().without_autodiff()),
            width: batch.features.dims()[1],
            batch,
        }
    }

    /// Returns the finite similarities of a row's real neighbours, in the order of the neighbours. A neighbour with a
    /// similarity of -∞ is none.
    fn similarities(&self, row: usize) -> Option<Vec<f32>> {
        let all = self.batch.similarities.as_deref()?;
        let of_row = &all[row * self.batch.neighbours..][..self.real];
        Some(of_row.iter().copied().filter(|similarity| similarity.is_finite()).collect())
    }

    /// Returns a column that follows from each row's similarities, if there are similarities.
    fn of_similarities(&self, of_row: impl Fn(&[f32]) -> f32) -> Option<Vec<f32>> {
        let value =
            |similarities: Vec<f32>| if similarities.is_empty() { 0.0 } else { of_row(&similarities) };
        (0..self.batch.rows).map(|row| self.similarities(row).map(value)).collect()
    }

    /// Returns the means of each row's first `count` neighbours, column by column, with weights that follow from the
    /// similarity minus the largest one.
    fn means(&self, count: usize, weight: impl Fn(f64) -> f64) -> Vec<Vec<f32>> {
        let mut means = vec![vec![0.0f32; self.batch.rows]; self.width];
        let mut sums = vec![0.0; self.width];
        for row in 0..self.batch.rows {
            let similarity = |place: usize| {
                self.batch.similarities.as_ref().map_or(0.0, |all| all[row * self.batch.neighbours + place])
            };
            let most = (0..count).map(similarity).fold(f32::NEG_INFINITY, f32::max);
            let mut total = 0.0;
            sums.fill(0.0);
            for place in (0..count).filter(|&place| similarity(place).is_finite()) {
                let weight = weight(f64::from(similarity(place) - most));
                let slot = self.slots[row * self.batch.neighbours + place];
                let record = &self.values[slot * self.width..(slot + 1) * self.width];
                sums.iter_mut().zip(record).for_each(|(sum, value)| *sum += weight * f64::from(*value));
                total += weight;
            }
            if total > 0.0 {
                means.iter_mut().zip(&sums).for_each(|(column, sum)| column[row] = (sum / total) as f32);
            }
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Int, Tensor};

    use super::*;

    /// Two rows with three places for four records of two columns.
    fn batch(similarities: Option<Vec<f32>>, available: usize) -> NeighbourBatch {
        let device = Device::flex();
        NeighbourBatch {
            keys: Tensor::zeros([4, 1], &device),
            features: Tensor::from_data([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]], &device),
            slots: Tensor::<1, Int>::from_data([0, 1, 2, 2, 3, 0], &device),
            rows: 2,
            neighbours: 3,
            available,
            similarities,
            listed: None,
        }
    }

    fn near(found: &[Vec<f32>], wanted: &[[f32; 2]]) {
        let all = found.iter().flatten().zip(wanted.iter().flatten());
        assert!(found.len() == wanted.len() && all.clone().count() == 2 * wanted.len(), "{found:?}");
        assert!(all.clone().all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} is not {wanted:?}");
    }

    /// Computed by hand.
    #[test]
    fn linked_records_have_columns_in_every_form() {
        let probabilities = [0.5f32, 0.25, 0.25, 0.5, 0.5, 1e-9].map(f32::ln).to_vec();
        let with = |forms: &[Pool]| of_links(&batch(Some(probabilities.clone()), 3), forms);
        near(&with(&[Pool::Nearest]), &[[1.0, 4.0], [10.0, 40.0]]);
        near(&with(&[Pool::Mean]), &[[7.0 / 3.0, 13.0 / 3.0], [70.0 / 3.0, 130.0 / 3.0]]);
        near(&with(&[Pool::Weighted]), &[[2.0, 6.0], [20.0, 60.0]]);
        let [best, mean] = [probabilities[0], (probabilities[0] + 2.0 * probabilities[1]) / 3.0];
        near(&with(&[Pool::Similarity])[..1], &[[best, probabilities[3]]]);
        assert!((with(&[Pool::Similarity])[1][0] - mean).abs() < 1e-4);
        let without = |forms: &[Pool], available| of_links(&batch(None, available), forms);
        assert_eq!(without(&[Pool::Weighted], 3), without(&[Pool::Mean], 3));
        assert!(without(&[Pool::Similarity], 3).is_empty());
        // The columns do not depend on the number of real records.
        let nearest = without(&[Pool::Nearest], 1);
        assert_eq!(without(&[Pool::Nearest, Pool::Mean], 1), [nearest.clone(), nearest].concat());
        near(&without(&[Pool::Mean], 2), &[[1.5, 6.0], [15.0, 60.0]]);
    }

    #[test]
    fn an_empty_place_is_left_out_and_a_row_without_records_has_zeros() {
        let none = f32::NEG_INFINITY;
        let similarities = vec![0.5f32.ln(), 0.5f32.ln(), none, none, none, none];
        let forms = [Pool::Nearest, Pool::Mean, Pool::Weighted, Pool::Similarity];
        let half = 0.5f32.ln();
        let wanted = [
            [1.0, 0.0],
            [10.0, 0.0],
            [1.5, 0.0],
            [15.0, 0.0],
            [1.5, 0.0],
            [15.0, 0.0],
            [half, 0.0],
            [half, 0.0],
        ];
        near(&of_links(&batch(Some(similarities), 3), &forms), &wanted);
    }
}
