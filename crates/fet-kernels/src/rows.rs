//! Row-wise operations on a matrix: layer norms, biases, and sums over rows.

use crate::math::{LANES, sum, vectorised};

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

/// Mean and 1 / deviation of the first `width` values.
#[inline(always)]
fn moments(width: usize, rows: &[f32]) -> (f32, f32) {
    let scale = 1.0 / width as f32;
    let mean = sum(width, [rows], |[x]| x) * scale;
    let variance = sum(width, [rows], |[x]| (x - mean) * (x - mean)) * scale;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// Layer norm of each row.
pub(crate) fn normalise(input: &[f32], gain: &[f32], bias: &[f32], output: &mut [f32]) {
    normalise_rows(input, gain, bias, output, |_| {});
}

/// Layer norm of each row; `note` receives mean and 1 / deviation of each row.
#[inline(always)]
fn normalise_rows(
    input: &[f32],
    gain: &[f32],
    bias: &[f32],
    output: &mut [f32],
    mut note: impl FnMut((f32, f32)),
) {
    let width = gain.len();
    vectorised(
        #[inline(always)]
        move || {
            for (row, out) in output.chunks_exact_mut(width).enumerate() {
                let rows = &input[row * width..];
                let (mean, rate) = moments(width, rows);
                for (((out, x), gain), bias) in out.iter_mut().zip(rows).zip(gain).zip(bias) {
                    *out = (x - mean) * rate * gain + bias;
                }
                note((mean, rate));
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

/// Input of a layer norm with the moments of its rows, for the backward pass.
pub(crate) struct NormInput<'a> {
    rows: &'a [f32],
    gain: &'a [f32],
    /// Mean and 1 / deviation of each row.
    moments: Vec<(f32, f32)>,
}

impl<'a> NormInput<'a> {
    /// Computes the norm of `rows` again, into `output`, and keeps the moments.
    pub(crate) fn new(rows: &'a [f32], gain: &'a [f32], bias: &[f32], output: &mut [f32]) -> Self {
        let mut moments = Vec::with_capacity(rows.len() / gain.len());
        normalise_rows(rows, gain, bias, output, |each| moments.push(each));
        Self { rows, gain, moments }
    }

    /// Backward pass: adds to the gradients of the rows and of the norm's parameters.
    pub(crate) fn back(self, above: &[f32], rows_gradient: &mut [f32], parameters: NormGradient<'_>) {
        let Self { rows, gain, moments } = self;
        let width = gain.len();
        let NormGradient { gain: to_gain, bias: to_bias } = parameters;
        // A padded row of gains lets the sums read whole vectors.
        let mut gains = vec![0.0; width.next_multiple_of(LANES)];
        gains[..width].copy_from_slice(gain);
        vectorised(
            #[inline(always)]
            move || {
                let scale = 1.0 / width as f32;
                for ((row, &(mean, rate)), below) in
                    moments.iter().enumerate().zip(rows_gradient.chunks_exact_mut(width))
                {
                    let (rows, above) = (&rows[row * width..], &above[row * width..]);
                    let along = sum(width, [above, &gains], |[above, gain]| above * gain) * scale;
                    let across = |[above, gain, x]: [f32; 3]| above * gain * (x - mean);
                    let across = sum(width, [above, &gains, rows], across) * rate * scale;
                    let each = below.iter_mut().zip(to_gain.iter_mut().zip(to_bias.iter_mut()));
                    for (((below, (to_gain, to_bias)), (above, x)), gain) in
                        each.zip(above.iter().zip(rows)).zip(gain)
                    {
                        let normal = (x - mean) * rate;
                        *below += rate * (above * gain - along - normal * across);
                        *to_gain += above * normal;
                        *to_bias += above;
                    }
                }
            },
        );
    }
}
