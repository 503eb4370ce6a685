//! A secondary's linked records as columns of the primary's rows, which stay with the secondary.

use fet_core::encoder::NeighbourBatch;
use fet_core::parameters::host;

use crate::gbdt::Pool;

/// Returns the columns of the linked records, in these forms; each has one value for each of the batch's rows.
///
/// The similarities are those of the linker. Without them, `weighted` is the mean and `similarity` has no column.
pub(super) fn of_links(batch: &NeighbourBatch, forms: &[Pool]) -> Vec<Vec<f32>> {
    let links = Links::new(batch);
    let has = |form: Pool| forms.contains(&form);
    let mut columns = Vec::new();
    for form in forms {
        match form {
            Pool::Nearest => columns.extend(links.means(|_| vec![1.0])),
            // With one record, the forms of several records are equal to it.
            Pool::Mean | Pool::Weighted if links.real == 1 && has(Pool::Nearest) => {}
            Pool::Mean => columns.extend(links.means(|_| vec![1.0; links.real])),
            Pool::Weighted => columns.extend(
                links.means(|row| links.similarities(row).map_or_else(|| vec![1.0; links.real], softmax)),
            ),
            Pool::Similarity => {
                let best = |all: &[f32]| all.iter().copied().fold(f32::MIN, f32::max);
                let mean = |all: &[f32]| all.iter().sum::<f32>() / all.len() as f32;
                columns.extend(links.of_similarities(best));
                if links.real > 1 {
                    columns.extend(links.of_similarities(mean));
                }
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

    /// Returns the similarities of a row's real neighbours.
    fn similarities(&self, row: usize) -> Option<&[f32]> {
        let all = self.batch.similarities.as_deref()?;
        Some(&all[row * self.batch.neighbours..][..self.real])
    }

    /// Returns a column that follows from each row's similarities, if there are similarities.
    fn of_similarities(&self, of_row: impl Fn(&[f32]) -> f32) -> Option<Vec<f32>> {
        (0..self.batch.rows).map(|row| self.similarities(row).map(&of_row)).collect()
    }

    /// Returns the means of each row's first neighbours with these weights, column by column.
    fn means(&self, weights: impl Fn(usize) -> Vec<f64>) -> Vec<Vec<f32>> {
        let mut means = vec![vec![0.0f32; self.batch.rows]; self.width];
        let mut sums = vec![0.0; self.width];
        for row in 0..self.batch.rows {
            let weights = weights(row);
            let total: f64 = weights.iter().sum();
            sums.fill(0.0);
            for (weight, &slot) in weights.iter().zip(&self.slots[row * self.batch.neighbours..]) {
                let record = &self.values[slot * self.width..(slot + 1) * self.width];
                sums.iter_mut().zip(record).for_each(|(sum, value)| *sum += weight * f64::from(*value));
            }
            means.iter_mut().zip(&sums).for_each(|(column, sum)| column[row] = (sum / total) as f32);
        }
        means
    }
}

/// Returns the exponentials of similarities, of which the largest is 1.
fn softmax(similarities: &[f32]) -> Vec<f64> {
    let most = similarities.iter().copied().fold(f32::MIN, f32::max);
    similarities.iter().map(|&similarity| f64::from(similarity - most).exp()).collect()
}
