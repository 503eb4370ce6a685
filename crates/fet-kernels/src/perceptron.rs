//! y = W₂ GELU(W₁ x + b₁) + b₂ for any number of rows, used by the dynamic mask and the positional encoding.

use crate::buffer::Buffer;
use crate::feed_forward::{activate, activate_back};
use crate::matrix::{Into, View, ViewMut, multiply, transposed};
use crate::rows::{add, add_rows, sized};

/// The parameters of a perceptron of one hidden layer. Matrices are [inputs, outputs], row by row.
#[derive(Debug, Clone, Copy)]
pub struct PerceptronWeights<'a> {
    /// [I, J].
    pub hidden: &'a [f32],
    /// J values.
    pub hidden_bias: &'a [f32],
    /// [J, O].
    pub output: &'a [f32],
    /// O values.
    pub output_bias: &'a [f32],
}

/// Their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceptronGradient {
    /// [I, J].
    pub hidden: Buffer,
    /// J values.
    pub hidden_bias: Buffer,
    /// [J, O].
    pub output: Buffer,
    /// O values.
    pub output_bias: Buffer,
}

impl PerceptronWeights<'_> {
    /// I.
    pub(crate) fn inputs(&self) -> usize {
        self.hidden.len() / self.wide()
    }

    /// J.
    pub(crate) fn wide(&self) -> usize {
        self.hidden_bias.len()
    }

    /// O.
    pub(crate) fn outputs(&self) -> usize {
        self.output_bias.len()
    }

    /// # Panics
    /// If the sizes of the two layers do not match.
    pub(crate) fn check(&self, inputs: usize, outputs: usize) {
        assert_eq!(self.hidden.len(), inputs * self.wide(), "the hidden layer's weights");
        assert_eq!(self.outputs(), outputs, "the outputs");
        assert_eq!(self.output.len(), self.wide() * outputs, "the output layer's weights");
    }
}

impl PerceptronGradient {
    pub(crate) fn zeros(weights: &PerceptronWeights<'_>) -> Self {
        Self {
            hidden: Buffer::zeros(weights.hidden.len()),
            hidden_bias: Buffer::zeros(weights.hidden_bias.len()),
            output: Buffer::zeros(weights.output.len()),
            output_bias: Buffer::zeros(weights.output_bias.len()),
        }
    }

    /// Adds the others in order.
    pub(crate) fn add_all(&mut self, others: &[&Self]) {
        let Self { hidden, hidden_bias, output, output_bias } = self;
        let layer = |sum: &mut Buffer, of: fn(&Self) -> &Buffer| {
            others.iter().for_each(|other| add(sum, of(other)));
        };
        rayon::join(|| layer(hidden, |other| &other.hidden), || layer(output, |other| &other.output));
        layer(hidden_bias, |other| &other.hidden_bias);
        layer(output_bias, |other| &other.output_bias);
    }
}

/// Weights and their transposed matrices, computed once for all rows.
pub(crate) struct TransposedPerceptron<'a> {
    weights: &'a PerceptronWeights<'a>,
    /// [J, I].
    hidden: Vec<f32>,
    /// [O, J].
    output: Vec<f32>,
}

/// Scratch memory of the backward pass.
#[derive(Default)]
pub(crate) struct Scratch {
    active: Vec<f32>,
    wide: Vec<f32>,
}

impl PerceptronWeights<'_> {
    /// `x` [n, I] → `hidden` [n, J], before its GELU, and `out` [n, O].
    pub(crate) fn forward(
        &self,
        x: &[f32],
        hidden: &mut [f32],
        out: &mut [f32],
        into: Into<'_>,
        scratch: &mut Scratch,
    ) {
        let (inputs, wide, outputs) = (self.inputs(), self.wide(), self.outputs());
        let right = View::new(self.hidden, wide);
        multiply(1.0, View::new(x, inputs), right, Into::Row(self.hidden_bias), ViewMut::new(hidden, wide));
        let active = sized(&mut scratch.active, hidden.len());
        activate(hidden, None, active);
        let right = View::new(self.output, outputs);
        multiply(1.0, View::new(active, wide), right, into, ViewMut::new(out, outputs));
    }
}

/// Values of the forward pass that the backward pass reads.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a> {
    /// [n, I].
    pub(crate) x: &'a [f32],
    /// Input of GELU, [n, J].
    pub(crate) hidden: &'a [f32],
}

impl<'a> TransposedPerceptron<'a> {
    pub(crate) fn new(weights: &'a PerceptronWeights<'a>) -> Self {
        Self {
            weights,
            hidden: transposed(weights.hidden, weights.wide()),
            output: transposed(weights.output, weights.outputs()),
        }
    }

    /// Backward pass of [`PerceptronWeights::forward`] from the gradient `above` [n, O]: adds to the gradient of the parameters,
    /// and computes the gradient of `x` on request.
    pub(crate) fn backward(
        &self,
        saved: Saved<'_>,
        above: &[f32],
        gradient: &mut PerceptronGradient,
        x_gradient: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) {
        let (weights, Saved { x, hidden }) = (self.weights, saved);
        let (inputs, wide, outputs) = (weights.inputs(), weights.wide(), weights.outputs());
        let active = sized(&mut scratch.active, hidden.len());
        let slopes = sized(&mut scratch.wide, hidden.len());
        let above_view = View::new(above, outputs);
        multiply(1.0, above_view, View::new(&self.output, wide), Into::Set, ViewMut::new(slopes, wide));
        activate_back(hidden, None, active, slopes);
        let target = ViewMut::new(&mut gradient.output, outputs);
        multiply(1.0, View::new(active, wide).transposed(), above_view, Into::Add, target);
        add_rows(&mut gradient.output_bias, above);
        let target = ViewMut::new(&mut gradient.hidden, wide);
        multiply(1.0, View::new(x, inputs).transposed(), View::new(slopes, wide), Into::Add, target);
        add_rows(&mut gradient.hidden_bias, slopes);
        if let Some(x_gradient) = x_gradient {
            let right = View::new(&self.hidden, inputs);
            multiply(1.0, View::new(slopes, wide), right, Into::Set, ViewMut::new(x_gradient, inputs));
        }
    }
}
