//! Periodic encodings of numbers as additional inputs of a model (Gorishniy et al. 2022, "On embeddings for
//! numerical features in tabular deep learning"), in the form with a bias of RealMLP (Holzmüller et al. 2024).
//!
//! A perceptron learns steep or wavy functions of a raw number slowly. Cosines of several frequencies of the
//! same number make such functions nearly linear.

use std::f64::consts::{PI, TAU};

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use fet_core::model::MOST_WIDTH;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Init;

/// Periodic encoding of each input column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NumberEncoding {
    /// Number of additional inputs for each column; 0 for no encoding.
    #[schemars(range(min = 0, max = MOST_WIDTH))]
    pub width: usize,
    /// Number of learned frequencies of each column.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub frequencies: usize,
    /// Standard deviation of the initial frequencies, in cycles for each standard deviation of a column.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub frequency_std: f64,
}

impl Default for NumberEncoding {
    fn default() -> Self {
        Self { width: 0, frequencies: 16, frequency_std: 0.1 }
    }
}

impl NumberEncoding {
    /// Returns the number of additional inputs for `columns` columns.
    pub fn outputs(&self, columns: usize) -> usize {
        self.width * columns
    }

    /// Makes the layer for `columns` columns, if numbers are encoded.
    pub fn layer(&self, init: &mut Init<'_>, columns: usize) -> Option<PeriodicEncoding> {
        (self.outputs(columns) > 0).then(|| PeriodicEncoding::new(init, columns, self))
    }
}

/// W₂ cos(2π (x f + b)) + c for each column x, with its own frequencies f, phases b, weights W₂ and bias c.
#[derive(Module, Debug)]
pub struct PeriodicEncoding {
    /// f, [1, columns, frequencies].
    pub frequencies: Param<Tensor<3>>,
    /// 2π b, [1, columns, frequencies].
    pub phases: Param<Tensor<3>>,
    /// W₂, [columns, frequencies, width].
    pub weights: Param<Tensor<3>>,
    /// c, [columns, 1, width].
    pub bias: Param<Tensor<3>>,
}

impl PeriodicEncoding {
    fn new(init: &mut Init<'_>, columns: usize, encoding: &NumberEncoding) -> Self {
        let NumberEncoding { width, frequencies, frequency_std } = *encoding;
        let bound = 1.0 / (frequencies as f64).sqrt();
        Self {
            frequencies: init.normal([1, columns, frequencies], frequency_std),
            phases: init.uniform([1, columns, frequencies], PI),
            weights: init.uniform([columns, frequencies, width], bound),
            bias: init.uniform([columns, 1, width], bound),
        }
    }

    /// # Shapes
    /// - x: [n, columns], result: [n, columns · width]
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, columns] = x.dims();
        let [_, _, width] = self.weights.dims();
        let cycles =
            x.reshape([rows, columns, 1]) * self.frequencies.val().mul_scalar(TAU) + self.phases.val();
        let encoded = cycles.cos().swap_dims(0, 1).matmul(self.weights.val()) + self.bias.val();
        encoded.swap_dims(0, 1).reshape([rows, columns * width])
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use fet_core::parameters::host;
    use fet_core::rng::{Purpose, stream};

    use super::*;

    /// Computed by hand from the formula of the layer.
    #[test]
    fn an_encoding_is_a_sum_of_cosines_of_each_column() {
        let device = Device::flex().autodiff();
        let mut init = Init::new(stream(1, 0, Purpose::Weights, 0), &device);
        let encoding = NumberEncoding { width: 3, frequencies: 5, frequency_std: 0.7 };
        let layer = encoding.layer(&mut init, 2).expect("a width above 0");
        let x = [[0.3f32, -1.2], [2.0, 0.0], [-0.4, 5.0]];
        let input = TensorData::new(x.concat(), [3, 2]);
        let found = host(layer.forward(Tensor::from_data(input, &device)).without_autodiff());
        assert_eq!(found.len(), 3 * encoding.outputs(2));
        let parameter = |tensor: &Param<Tensor<3>>| host(tensor.val().without_autodiff());
        let [f, b, w, c] = [&layer.frequencies, &layer.phases, &layer.weights, &layer.bias].map(parameter);
        for (row, cells) in x.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                for output in 0..3 {
                    let cosine = |k: usize| (TAU as f32 * cell * f[column * 5 + k] + b[column * 5 + k]).cos();
                    let sum: f32 = (0..5).map(|k| cosine(k) * w[(column * 5 + k) * 3 + output]).sum();
                    let expected = sum + c[column * 3 + output];
                    let value = found[row * 6 + column * 3 + output];
                    assert!((value - expected).abs() < 1e-5, "{row} {column} {output}: {value} {expected}");
                }
            }
        }
    }
}
