//! What is done to the rows of a matrix one by one: layer norms, biases, and sums over rows.

use crate::math::{sum, vectorised};

/// Added to the variance by every layer norm.
const EPSILON: f32 = 1e-5;

/// Room for `length` values.
pub(crate) fn sized(values: &mut Vec<f32>, length: usize) -> &mut [f32] {
    values.resize(length, 0.0);
    values
}

/// Every row becomes a copy of `row`.
pub(crate) fn fill_rows(target: &mut [f32], row: &[f32]) {
    for place in target.chunks_exact_mut(row.len()) {
        place.copy_from_slice(row);
    }
}

/// `target` += `values`.
pub(crate) fn add(target: &mut [f32], values: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (place, value) in target.iter_mut().zip(values) {
                *place += value;
            }
        },
    );
}

/// `row` is added to every row of `target`.
pub(crate) fn add_to_rows(target: &mut [f32], row: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for place in target.chunks_exact_mut(row.len()) {
                for (value, more) in place.iter_mut().zip(row) {
                    *value += more;
                }
            }
        },
    );
}

/// The sum over all rows is added to `total`.
pub(crate) fn add_rows(total: &mut [f32], rows: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact(total.len()) {
                for (place, value) in total.iter_mut().zip(row) {
                    *place += value;
                }
            }
        },
    );
}

#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let scale = 1.0 / row.len() as f32;
    let mean = sum(row.len(), |i| row[i]) * scale;
    let variance = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean)) * scale;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// Layer norm of each row.
pub(crate) fn normalise(input: &[f32], gain: &[f32], bias: &[f32], output: &mut [f32]) {
    let width = gain.len();
    vectorised(
        #[inline(always)]
        || {
            for (row, out) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
                let (mean, rate) = moments(row);
                for i in 0..width {
                    out[i] = (row[i] - mean) * rate * gain[i] + bias[i];
                }
            }
        },
    );
}

/// The gradients of a layer norm's parameters.
pub(crate) struct NormGradient<'a> {
    pub(crate) gain: &'a mut [f32],
    pub(crate) bias: &'a mut [f32],
}

/// Back through a layer norm: adds to the gradient of its input and of its parameters.
pub(crate) fn normalise_back(
    input: &[f32],
    gain: &[f32],
    output_gradient: &[f32],
    input_gradient: &mut [f32],
    parameters: NormGradient<'_>,
) {
    let width = gain.len();
    let scale = 1.0 / width as f32;
    let (gain_gradient, bias_gradient) = (&mut parameters.gain[..width], &mut parameters.bias[..width]);
    vectorised(
        #[inline(always)]
        || {
            let rows = input.chunks_exact(width).zip(output_gradient.chunks_exact(width));
            for ((row, above), below) in rows.zip(input_gradient.chunks_exact_mut(width)) {
                let (mean, rate) = moments(row);
                let along = sum(width, |i| above[i] * gain[i]) * scale;
                let across = sum(width, |i| above[i] * gain[i] * (row[i] - mean)) * rate * scale;
                for i in 0..width {
                    let normal = (row[i] - mean) * rate;
                    below[i] += rate * (above[i] * gain[i] - along - normal * across);
                    gain_gradient[i] += above[i] * normal;
                    bias_gradient[i] += above[i];
                }
            }
        },
    );
}
