//! x ← x + FFN(LN x), for any number of rows: H → 2H, GELU, dropout, 2H → H.

use crate::dropout::{Drawn, check_numbers};
use crate::math::{gelu, gelu_with_slope, vectorised};
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::parameters::{FeedForwardGradient, FeedForwardWeights};
use crate::rows::{NormGradient, NormInput, add_rows, add_to_rows, normalise, sized};

/// Scratch memory of the layer.
#[derive(Default)]
pub(crate) struct Scratch {
    normed: Vec<f32>,
    wide: Vec<f32>,
    wide_gradient: Vec<f32>,
}

/// Results of the forward pass that the backward pass reads.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a> {
    /// x before the layer, [n, H].
    pub(crate) x: &'a [f32],
    /// Input of GELU, [n, 2H].
    pub(crate) hidden: &'a [f32],
    /// Dropout mask of the hidden values.
    pub(crate) drawn: Drawn<'a>,
}

/// Transposed weights.
#[derive(Clone, Copy)]
pub(crate) struct TransposedWeights<'a> {
    /// [2H, H].
    pub(crate) hidden: View<'a>,
    /// [H, 2H].
    pub(crate) contraction: View<'a>,
}

impl<'a> TransposedWeights<'a> {
    /// Views of the weights.
    pub(crate) fn lazily(weights: &FeedForwardWeights<'a>) -> Self {
        let width = weights.gain.len();
        Self {
            hidden: View::new(weights.hidden, 2 * width).transposed(),
            contraction: View::new(weights.contraction, width).transposed(),
        }
    }
}

/// Gradients that the backward pass computes.
pub(crate) struct Gradients<'a> {
    /// Gradient of the result, [n, H]; it becomes the gradient of x.
    pub(crate) x: &'a mut [f32],
    /// Gradients of the parameters; accumulated.
    pub(crate) parameters: &'a mut FeedForwardGradient,
}

/// Replaces `x` [n, H] by the result; `hidden` [n, 2H] keeps the input of GELU.
pub(crate) fn forward(
    weights: &FeedForwardWeights<'_>,
    x: &mut [f32],
    hidden: &mut [f32],
    drawn: Drawn<'_>,
    scratch: &mut Scratch,
) {
    let width = weights.gain.len();
    let normed = sized(&mut scratch.normed, x.len());
    normalise(x, weights.gain, weights.bias, normed);
    let (left, right) = (View::new(normed, width), View::new(weights.hidden, 2 * width));
    multiply(1.0, left, right, Into::Row(weights.hidden_bias), ViewMut::new(hidden, 2 * width));
    let active = sized(&mut scratch.wide, 2 * x.len());
    activate(hidden, drawn, active);
    add_to_rows(x, weights.contraction_bias);
    let (left, right) = (View::new(active, 2 * width), View::new(weights.contraction, width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(x, width));
}

/// Backward pass of [`forward`]: turns the gradient of the result into the gradient of `x`.
pub(crate) fn backward(
    weights: &FeedForwardWeights<'_>,
    transposed: TransposedWeights<'_>,
    saved: Saved<'_>,
    gradients: Gradients<'_>,
    scratch: &mut Scratch,
) {
    let width = weights.gain.len();
    let Saved { x, hidden, drawn } = saved;
    let Gradients { x: x_gradient, parameters: gradient } = gradients;
    let wide = sized(&mut scratch.wide, hidden.len());
    let wide_gradient = sized(&mut scratch.wide_gradient, hidden.len());
    let normed = sized(&mut scratch.normed, x.len());
    let above = View::new(x_gradient, width);
    multiply(1.0, above, transposed.contraction, Into::Set, ViewMut::new(wide_gradient, 2 * width));
    activate_back(hidden, drawn, wide, wide_gradient);
    let target = ViewMut::new(&mut gradient.contraction, width);
    multiply(1.0, View::new(wide, 2 * width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.contraction_bias, x_gradient);
    let rows = NormInput::new(x, weights.gain, weights.bias, normed);
    let slopes = View::new(wide_gradient, 2 * width);
    let target = ViewMut::new(&mut gradient.hidden, 2 * width);
    multiply(1.0, View::new(normed, width).transposed(), slopes, Into::Add, target);
    add_rows(&mut gradient.hidden_bias, wide_gradient);
    // The norm's result is no longer needed, so its memory holds its gradient.
    multiply(1.0, slopes, transposed.hidden, Into::Set, ViewMut::new(normed, width));
    let parameters = NormGradient { gain: &mut gradient.gain, bias: &mut gradient.bias };
    rows.back(normed, x_gradient, parameters);
}

/// Sets `active` to GELU of `hidden`, after dropout.
pub(crate) fn activate(hidden: &[f32], drawn: Drawn<'_>, active: &mut [f32]) {
    check_numbers(drawn, hidden);
    vectorised(
        #[inline(always)]
        move || {
            let each = active.iter_mut().zip(hidden);
            match drawn {
                Some((dropout, numbers)) => {
                    let gate = dropout.gate();
                    for ((out, &x), &number) in each.zip(numbers) {
                        *out = gate.pass(number, gelu(x));
                    }
                }
                None => {
                    for (out, &x) in each {
                        *out = gelu(x);
                    }
                }
            }
        },
    );
}

/// Sets `active` to GELU of `hidden`, after dropout, and turns the gradient of `active` into the gradient of `hidden`.
pub(crate) fn activate_back(hidden: &[f32], drawn: Drawn<'_>, active: &mut [f32], gradient: &mut [f32]) {
    check_numbers(drawn, hidden);
    vectorised(
        #[inline(always)]
        move || {
            let each = hidden.iter().zip(active).zip(gradient);
            match drawn {
                Some((dropout, numbers)) => {
                    let gate = dropout.gate();
                    for (((&x, out), slope), &number) in each.zip(numbers) {
                        let (value, derivative) = gelu_with_slope(x);
                        *out = gate.pass(number, value);
                        *slope = gate.pass(number, *slope * derivative);
                    }
                }
                None => {
                    for ((&x, out), slope) in each {
                        let (value, derivative) = gelu_with_slope(x);
                        *out = value;
                        *slope *= derivative;
                    }
                }
            }
        },
    );
}
