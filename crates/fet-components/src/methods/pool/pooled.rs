//! A secondary's half: its encoder on each linked record separately, and the weighted mean over a row's
//! neighbours. The encoder can also see each row's similarities, as a record of their own.

use burn::tensor::{Int, Tensor, TensorData};

use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::model::Pass;
use fet_core::parameters::host;
use fet_core::trainable::Learner;

/// Number of columns that describe the similarities of a row ([`described`]).
pub(super) const LINK_COLUMNS: usize = 6;

/// Pools an encoder's representations of records.
///
/// The pooling is linear in the representations and has no parameters. It is computed on the host, row by row
/// in the order of the neighbours, so that a row's result does not depend on the other rows.
pub(super) struct Pooled {
    inner: Box<dyn Encoder>,
    sharpness: f64,
    /// True if `inner` also encodes each row's similarities. Its inputs then have [`LINK_COLUMNS`] more columns.
    similarity_inputs: bool,
    pending: Option<Pending>,
}

/// Linear map of the last tracked pass.
struct Pending {
    weights: Vec<f32>,
    slots: Vec<usize>,
    neighbours: usize,
    records: usize,
    /// Number of records that the encoder saw: those of the table, then those of the rows' similarities, if any.
    inputs: usize,
    /// For each row, true if the encoding of its similarities was added.
    linked: Vec<bool>,
}

/// Returns columns that describe the similarities of one row's neighbours: a 1, the best and the mean similarity,
/// and −ln(0.001 + |s|) of the best, the mean and the least. The logarithm tells small distances apart, whose
/// scale is unknown. Returns `None` if the row has no neighbour.
fn described(similarities: &[f32]) -> Option<[f32; LINK_COLUMNS]> {
    let there: Vec<f64> = similarities.iter().filter(|s| s.is_finite()).map(|s| f64::from(*s)).collect();
    let best = there.iter().copied().reduce(f64::max)?;
    let least = there.iter().copied().fold(best, f64::min);
    let mean = there.iter().sum::<f64>() / there.len() as f64;
    let near = |similarity: f64| -(1e-3 + similarity.abs()).ln();
    let columns = [1.0, best, mean, near(best), near(mean), near(least)];
    Some(columns.map(|value| value.clamp(-10.0, 10.0) as f32))
}

impl Pooled {
    /// Pools `inner`, which sees one record at a time.
    pub(super) fn new(inner: Box<dyn Encoder>, sharpness: f64, similarity_inputs: bool) -> Self {
        Self { inner, sharpness, similarity_inputs, pending: None }
    }

    /// Returns the inputs of `inner`: the records, and with similarity inputs one record for each row, which has
    /// zeros in the columns of the records. Also returns which rows have neighbours.
    fn inputs(&self, batch: &NeighbourBatch) -> (NeighbourBatch, Vec<bool>) {
        let device = batch.features.device();
        let [records, columns] = batch.features.dims();
        let (mut keys, mut features) = (batch.keys.clone(), batch.features.clone());
        let mut linked = vec![false; batch.rows];
        let of_rows = batch.similarities.as_deref().filter(|_| self.similarity_inputs);
        if self.similarity_inputs {
            features = Tensor::cat(vec![features, Tensor::zeros([records, LINK_COLUMNS], &device)], 1);
        }
        if let Some(similarities) = of_rows {
            let mut described_rows = Vec::with_capacity(batch.rows * (columns + LINK_COLUMNS));
            for (row, linked) in similarities.chunks_exact(batch.neighbours).zip(&mut linked) {
                let found = described(&row[..batch.available]);
                *linked = found.is_some();
                described_rows.extend(std::iter::repeat_n(0.0, columns));
                described_rows.extend(found.unwrap_or_default());
            }
            let shape = [batch.rows, columns + LINK_COLUMNS];
            features = Tensor::cat(
                vec![features, Tensor::from_data(TensorData::new(described_rows, shape), &device)],
                0,
            );
            let blank = Tensor::zeros([batch.rows, keys.dims()[1]], &device);
            keys = Tensor::cat(vec![keys, blank], 0);
        }
        let rows = features.dims()[0];
        let slots = Tensor::<1, Int>::arange(0..rows as i64, &device);
        let alone = NeighbourBatch {
            keys,
            features,
            slots,
            rows,
            neighbours: 1,
            available: 1,
            similarities: None,
            listed: None,
        };
        (alone, linked)
    }

    /// Returns for each row a softmax of its neighbours' similarities, or equal weights without similarities.
    /// A similarity of -∞ has weight 0 for every sharpness.
    fn weights(&self, batch: &NeighbourBatch) -> Vec<f32> {
        let NeighbourBatch { rows, neighbours, available, similarities, .. } = batch;
        let mut weights = vec![0.0; rows * neighbours];
        for (row, weights) in weights.chunks_exact_mut(*neighbours).enumerate() {
            let logit = |place: usize| {
                let similarity = similarities.as_ref().map_or(0.0, |all| all[row * neighbours + place]);
                // 0 times infinity would be NaN.
                if similarity == f32::NEG_INFINITY {
                    f64::NEG_INFINITY
                } else {
                    self.sharpness * f64::from(similarity)
                }
            };
            let logits: Vec<f64> = (0..*available).map(logit).collect();
            let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if most == f64::NEG_INFINITY {
                continue;
            }
            let powers = logits.iter().map(|logit| (logit - most).exp());
            let sum: f64 = powers.clone().sum();
            weights.iter_mut().zip(powers).for_each(|(weight, power)| *weight = (power / sum) as f32);
        }
        weights
    }
}

impl Encoder for Pooled {
    fn learner(&self) -> &dyn Learner {
        self.inner.learner()
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        self.inner.learner_mut()
    }

    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3> {
        let records = batch.features.dims()[0];
        let (alone, linked) = self.inputs(batch);
        let encoded = self.inner.forward(&alone, pass, tracked);
        let width = encoded.dims()[2];
        let encoded = host(encoded);
        let weights = self.weights(batch);
        let slots: Vec<usize> = indices(&batch.slots);
        let mut pooled = vec![0.0f32; batch.rows * width];
        let of_rows = weights.chunks_exact(batch.neighbours).zip(slots.chunks_exact(batch.neighbours));
        for (sum, (weights, slots)) in pooled.chunks_exact_mut(width).zip(of_rows) {
            for (weight, slot) in weights.iter().zip(slots).filter(|(weight, _)| **weight > 0.0) {
                let record = &encoded[slot * width..(slot + 1) * width];
                sum.iter_mut().zip(record).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        let of_similarities = encoded[records * width..].chunks_exact(width).zip(&linked);
        for (sum, (encoded, _)) in
            pooled.chunks_exact_mut(width).zip(of_similarities).filter(|(_, (_, linked))| **linked)
        {
            sum.iter_mut().zip(encoded).for_each(|(sum, value)| *sum += value);
        }
        if tracked {
            let neighbours = batch.neighbours;
            self.pending = Some(Pending { weights, slots, neighbours, records, inputs: alone.rows, linked });
        }
        let device = batch.features.device().without_autodiff();
        Tensor::from_data(TensorData::new(pooled, [batch.rows, 1, width]), &device)
    }

    fn backward(&mut self, gradient: Tensor<3>) {
        let Pending { weights, slots, neighbours, records, inputs, linked } =
            self.pending.take().expect("backward follows a tracked forward");
        let (device, width) = (gradient.device(), gradient.dims()[2]);
        let gradient = host(gradient);
        let mut of_records = vec![0.0f32; records * width];
        let of_rows = weights.chunks_exact(neighbours).zip(slots.chunks_exact(neighbours));
        for (gradient, (weights, slots)) in gradient.chunks_exact(width).zip(of_rows) {
            for (weight, slot) in weights.iter().zip(slots).filter(|(weight, _)| **weight > 0.0) {
                let record = &mut of_records[slot * width..(slot + 1) * width];
                record.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        if inputs > records {
            for (gradient, linked) in gradient.chunks_exact(width).zip(&linked) {
                of_records.extend(gradient.iter().map(|value| if *linked { *value } else { 0.0 }));
            }
        }
        self.inner.backward(Tensor::from_data(TensorData::new(of_records, [inputs, 1, width]), &device));
    }
}

/// Returns the record in each place.
fn indices(slots: &Tensor<1, Int>) -> Vec<usize> {
    slots.clone().into_data().iter::<i64>().map(|slot| slot as usize).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use fet_core::trainable::NoParameters;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Represents a record by its features, and stores the gradient that it receives.
    struct FeaturesEncoder(NoParameters, Arc<Mutex<Vec<f32>>>);

    impl Encoder for FeaturesEncoder {
        fn learner(&self) -> &dyn Learner {
            &self.0
        }

        fn learner_mut(&mut self) -> &mut dyn Learner {
            &mut self.0
        }

        fn forward(&mut self, batch: &NeighbourBatch, _pass: &mut Pass, _tracked: bool) -> Tensor<3> {
            let [records, width] = batch.features.dims();
            batch.features.clone().reshape([records, 1, width])
        }

        fn backward(&mut self, gradient: Tensor<3>) {
            *self.1.lock().expect("one thread") = host(gradient);
        }
    }

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

    fn pooled(sharpness: f64) -> (Pooled, Arc<Mutex<Vec<f32>>>) {
        let heard = Arc::default();
        (
            Pooled::new(
                Box::new(FeaturesEncoder(NoParameters::default(), Arc::clone(&heard))),
                sharpness,
                false,
            ),
            heard,
        )
    }

    fn near(found: &[f32], wanted: &[f32]) {
        assert_eq!(found.len(), wanted.len());
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} is not {wanted:?}");
    }

    /// Computed by hand: logarithms of probabilities become the weights, repeated neighbours have weight 0,
    /// and without similarities all weights are equal.
    #[test]
    fn a_row_is_the_mean_of_its_neighbours_by_their_probabilities() {
        let logarithms: Vec<f32> = [0.5f32, 0.25, 0.25, 1.0, 1e-20, 1e-20].iter().map(|p| p.ln()).collect();
        let forward = |sharpness: f64, batch: &NeighbourBatch| {
            host(pooled(sharpness).0.forward(batch, &mut Pass::evaluation(), false))
        };
        near(&forward(1.0, &batch(Some(logarithms.clone()), 3)), &[2.0, 20.0, 4.0, 40.0]);
        near(
            &forward(0.0, &batch(Some(logarithms.clone()), 3)),
            &[7.0 / 3.0, 70.0 / 3.0, 13.0 / 3.0, 130.0 / 3.0],
        );
        near(&forward(1.0, &batch(None, 3)), &[7.0 / 3.0, 70.0 / 3.0, 13.0 / 3.0, 130.0 / 3.0]);
        near(&forward(1.0, &batch(Some(logarithms), 2)), &[4.0 / 3.0, 40.0 / 3.0, 4.0, 40.0]);
    }

    /// Computed by hand: an empty place does not change the weights of the others, and a row of empty places
    /// gives zeros.
    #[test]
    fn blanks_have_no_weight() {
        let none = f32::NEG_INFINITY;
        let similarities = Some(vec![0.5f32.ln(), 0.5f32.ln(), none, none, none, none]);
        for sharpness in [0.0, 1.0] {
            let batch = batch(similarities.clone(), 3);
            let answer = host(pooled(sharpness).0.forward(&batch, &mut Pass::evaluation(), false));
            near(&answer, &[1.5, 15.0, 0.0, 0.0]);
        }
    }

    /// The encoder also sees the similarities of each row, and the representation of a row without neighbours is 0.
    #[test]
    fn similarities_are_a_record_of_their_own() {
        let none = f32::NEG_INFINITY;
        let batch = batch(Some(vec![-0.1, -0.7, none, none, none, none]), 3);
        let (mut pooled, heard) = pooled(0.0);
        pooled.similarity_inputs = true;
        let answer = host(pooled.forward(&batch, &mut Pass::evaluation(), true));
        // The records' columns are those of the mean of the first two; the other columns describe the similarities.
        let near = |similarity: f32| -(1e-3 + similarity.abs()).ln();
        let wanted = [1.5, 15.0, 1.0, -0.1, -0.4, near(-0.1), near(-0.4), near(-0.7)];
        self::near(&answer[..8], &wanted);
        self::near(&answer[8..], &[0.0; 8]);
        let gradient: Vec<f32> = (1..=16).map(|value| value as f32).collect();
        pooled.backward(Tensor::from_data(TensorData::new(gradient.clone(), [2, 1, 8]), &Device::flex()));
        let found = heard.lock().expect("one thread").clone();
        assert_eq!(found.len(), 6 * 8, "four records and two rows");
        self::near(&found[..8], &gradient[..8].iter().map(|value| value / 2.0).collect::<Vec<f32>>());
        self::near(&found[4 * 8..5 * 8], &gradient[..8]);
        self::near(&found[5 * 8..], &[0.0; 8]);
    }

    /// The gradient is the adjoint of the mean: <pool x, g> = <x, poolᵀ g>.
    #[test]
    fn the_gradient_of_a_record_is_that_of_its_rows_by_its_weights() {
        let batch = batch(Some(vec![-0.1, -0.7, -2.0, 0.0, -0.3, -0.4]), 3);
        let (mut pooled, heard) = pooled(2.0);
        let answer = host(pooled.forward(&batch, &mut Pass::evaluation(), true));
        let gradient = [0.3f32, -1.0, 2.0, 0.5];
        pooled.backward(Tensor::from_data(TensorData::new(gradient.to_vec(), [2, 1, 2]), &Device::flex()));
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let found = heard.lock().expect("one thread").clone();
        let (one, other) = (product(&answer, &gradient), product(&host(batch.features), &found));
        assert!((one - other).abs() < 1e-3 && found.iter().all(|g| *g != 0.0), "{one} {other}");
    }
}
