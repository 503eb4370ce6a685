//! Row-wise operations on a matrix: layer norms, biases, and sums over rows.

use crate::math::{sum, vectorised};

/// Constant that every layer norm adds to the variance.
const EPSILON: f32 = 1e-5;

/// Memory for `length` values.
pub(crate) fn sized(values: &mut Vec<f32>, length: usize) -> &mut [f32] {
    values.resize(length, 0.0);
    values
}

/// `target` += `values`.
pub(crate) fn add(target: &mut [f32], values: &[f32]) {
    vectorised(
        #[inline(always)]
        move || add_row(target, values),
    );
}

#[inline(always)]
fn add_row(target: &mut [f32], values: &[f32]) {
    for (place, value) in target.iter_mut().zip(values) {
        *place += value;
    }
}

/// Adds `row` to every row of `target`.
pub(crate) fn add_to_rows(target: &mut [f32], row: &[f32]) {
    vectorised(
        #[inline(always)]
        move || {
            for place in target.chunks_exact_mut(row.len()) {
                add_row(place, row);
            }
        },
    );
}

/// Adds the sum over all rows to `total`.
pub(crate) fn add_rows(total: &mut [f32], rows: &[f32]) {
    vectorised(
        #[inline(always)]
        move || {
            for row in rows.chunks_exact(total.len()) {
                add_row(total, row);
            }
        },
    );
}

#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let scale = 1.0 / row.len() as f32;
    let mean = sum([row], |[x]| x) * scale;
    let variance = sum([row], |[x]| (x - mean) * (x - mean)) * scale;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// Layer norm of each row.
pub(crate) fn normalise(input: &[f32], gain: &[f32], bias: &[f32], output: &mut [f32]) {
    #[inline(always)]
    fn of_row(row: &[f32], gain: &[f32], bias: &[f32], out: &mut [f32]) {
        let (mean, rate) = moments(row);
        for (((out, x), gain), bias) in out.iter_mut().zip(row).zip(gain).zip(bias) {
            *out = (x - mean) * rate * gain + bias;
        }
    }
    let width = gain.len();
    vectorised(
        #[inline(always)]
        move || {
            for (row, out) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
                of_row(row, gain, bias, out);
            }
        },
    );
}

/// The gradients of a layer norm's parameters.
pub(crate) struct NormGradient<'a> {
    pub(crate) gain: &'a mut [f32],
    pub(crate) bias: &'a mut [f32],
}

/// Scratch memory for the backward pass of a layer that follows a norm, as long as the rows.
pub(crate) struct NormScratch<'a> {
    /// Memory for the norm's result.
    pub(crate) normed: &'a mut [f32],
    /// Memory for the gradient of the norm's result.
    pub(crate) gradient: &'a mut [f32],
}

/// Backward pass of a layer norm: adds to the gradients of its input and of its parameters.
pub(crate) fn normalise_back(
    input: &[f32],
    gain: &[f32],
    output_gradient: &[f32],
    input_gradient: &mut [f32],
    parameters: NormGradient<'_>,
) {
    #[inline(always)]
    fn of_row(row: &[f32], gain: &[f32], above: &[f32], below: &mut [f32], to: [&mut [f32]; 2]) {
        let scale = 1.0 / row.len() as f32;
        let (mean, rate) = moments(row);
        let along = sum([above, gain], |[above, gain]| above * gain) * scale;
        let across = sum([above, gain, row], |[above, gain, x]| above * gain * (x - mean)) * rate * scale;
        let [gain_gradient, bias_gradient] = to;
        let to = below.iter_mut().zip(gain_gradient).zip(bias_gradient);
        for ((((below, to_gain), to_bias), above), (x, gain)) in to.zip(above).zip(row.iter().zip(gain)) {
            let normal = (x - mean) * rate;
            *below += rate * (above * gain - along - normal * across);
            *to_gain += above * normal;
            *to_bias += above;
        }
    }
    let width = gain.len();
    let NormGradient { gain: gain_gradient, bias: bias_gradient } = parameters;
    vectorised(
        #[inline(always)]
        move || {
            let rows = input.chunks_exact(width).zip(output_gradient.chunks_exact(width));
            for ((row, above), below) in rows.zip(input_gradient.chunks_exact_mut(width)) {
                of_row(row, gain, above, below, [&mut *gain_gradient, &mut *bias_gradient]);
            }
        },
    );
}
