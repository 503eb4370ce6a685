//! The difference between a training and an evaluation pass: dropout, with masks drawn on the host.

use burn::tensor::{Tensor, TensorData};
use rand::Rng;

use crate::rng::ChaCha8Rng;

/// One pass through a model.
#[derive(Debug, Clone)]
pub struct Pass {
    dropout: Option<ChaCha8Rng>,
}

impl Pass {
    /// Creates a training pass whose dropout masks come from `rng`.
    pub fn training(rng: ChaCha8Rng) -> Self {
        Self { dropout: Some(rng) }
    }

    /// Creates an evaluation pass, which drops nothing.
    pub fn evaluation() -> Self {
        Self { dropout: None }
    }

    /// Returns the stream of the next masks, if the pass draws any.
    pub fn stream(&self) -> Option<&ChaCha8Rng> {
        self.dropout.as_ref()
    }

    /// Continues with a stream after other code has drawn masks.
    pub fn resume(&mut self, rng: ChaCha8Rng) {
        self.dropout = Some(rng);
    }

    /// Applies inverted dropout: each value is zero with probability `rate`, and otherwise divided by `1 -
    /// rate`.
    ///
    /// The rate is rounded to 1/65536, and the scale uses the rounded rate.
    pub fn dropout<const D: usize>(&mut self, input: Tensor<D>, rate: f64) -> Tensor<D> {
        let Some(rng) = self.dropout.as_mut().filter(|_| rate > 0.0) else {
            return input;
        };
        let threshold = (rate * 65536.0).round();
        let scale = (65536.0 / (65536.0 - threshold)) as f32;
        let threshold = threshold as u16;
        let shape = input.dims();
        let count: usize = shape.iter().product();
        let mut bytes = vec![0u8; 2 * count];
        rng.fill_bytes(&mut bytes);
        let keep = |pair: &[u8; 2]| if u16::from_le_bytes(*pair) >= threshold { scale } else { 0.0 };
        let mask: Vec<f32> = bytes.as_chunks::<2>().0.iter().map(keep).collect();
        let mask = Tensor::from_data(TensorData::new(mask, shape), &input.device());
        input * mask
    }
}
