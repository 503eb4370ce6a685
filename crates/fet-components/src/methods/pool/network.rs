//! The primary's model: a perceptron on its own record, and the contribution of the other parties' answer.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use crate::model::{Init, Inputs, KeyEncoding, Linear, NumberEncoding, PeriodicEncoding, apply};
use fet_core::method::{Memory, PrimaryBatch, PrimaryNetwork};
use fet_core::model::Pass;

/// o = W₁ h + W₂ s + W₄ ReLU(W₃ [h, s]), with the own record's last hidden layer h and the answer s; W₂ and
/// W₄ are zero at the start.
#[derive(Module, Debug)]
pub(super) struct Tower {
    layers: Vec<Linear>,
    output: Linear,
    /// W₂; `None` if the other parties are not queried.
    answer: Option<Linear>,
    joint: Vec<Linear>,
    inputs: Inputs,
    /// Encoding of the own record's numbers, if they are encoded.
    numbers: Option<PeriodicEncoding>,
    dropout: f64,
    clip: f64,
    /// Factor on the mean over the parties ([`TowerShape::scale`]).
    scale: f64,
}

/// Sizes of a tower.
pub(super) struct TowerShape<'a> {
    /// Number of key columns of the own record.
    pub(super) keys: usize,
    /// Number of feature columns of the own record.
    pub(super) features: usize,
    /// Encoding of the own key.
    pub(super) key_encoding: &'a KeyEncoding,
    /// Encoding of the own numbers.
    pub(super) number_encoding: &'a NumberEncoding,
    /// Widths of the hidden layers.
    pub(super) hidden: &'a [usize],
    /// Width of the answer.
    pub(super) memory: usize,
    /// True if the other parties are queried for an answer.
    pub(super) asks: bool,
    /// Number of parties in the mean.
    pub(super) parties: usize,
    /// Width of W₃; 0 for none.
    pub(super) joint: usize,
    /// Number of outputs.
    pub(super) outputs: usize,
    /// Bound on the absolute value of the inputs; 0 for none.
    pub(super) clip: f64,
    /// Dropout rate.
    pub(super) dropout: f64,
}

impl TowerShape<'_> {
    /// Returns the number of columns of the own record.
    pub(super) fn raw(&self) -> usize {
        self.keys + self.features
    }

    /// Returns the number of inputs of the first layer: the own record, and its encoded key and numbers.
    pub(super) fn inputs(&self) -> usize {
        self.raw() + self.key_encoding.outputs(self.keys) + self.number_encoding.outputs(self.raw())
    }

    /// Returns √parties: gives the mean over the parties the norm of a single party's answer.
    pub(super) fn scale(&self) -> f64 {
        (self.parties.max(1) as f64).sqrt()
    }
}

impl Tower {
    /// Draws initial weights for layers before a ReLU (He et al. 2015).
    pub(super) fn new(init: &mut Init<'_>, shape: &TowerShape<'_>) -> Self {
        let widths: Vec<usize> = [&[shape.inputs()], shape.hidden].concat();
        let last = *widths.last().expect("the own inputs");
        let outputs = shape.outputs;
        let layers = widths.windows(2).map(|pair| layer(init, pair[0], pair[1], 2.0)).collect();
        let joint = match shape.joint {
            0 => Vec::new(),
            joint => {
                vec![layer(init, last + shape.memory, joint, 2.0), layer(init, joint, outputs, 0.0)]
            }
        };
        // The joint layers are drawn in any case, so that the initial weights of the primary's own half do
        // not depend on `asks`.
        let joint = if shape.asks { joint } else { Vec::new() };
        Self {
            layers,
            output: layer(init, last, outputs, 1.0),
            answer: shape.asks.then(|| layer(init, shape.memory, outputs, 0.0)),
            joint,
            inputs: Inputs::new(init, shape.key_encoding, shape.keys),
            numbers: shape.number_encoding.layer(init, shape.raw()),
            dropout: shape.dropout,
            clip: shape.clip,
            scale: shape.scale(),
        }
    }
}

/// Returns x / √(1 + (x/c)²): close to x near 0, and never beyond c (RealMLP; Holzmüller et al. 2024). A rare
/// category, once standardised, has a large value.
fn smoothly_clipped(x: Tensor<2>, clip: f64) -> Tensor<2> {
    if clip == 0.0 {
        return x;
    }
    x.clone() / x.div_scalar(clip).powi_scalar(2).add_scalar(1.0).sqrt()
}

/// Makes an affine map whose weights have the variance `gain` / inputs.
fn layer(init: &mut Init<'_>, inputs: usize, outputs: usize, gain: f64) -> Linear {
    let shape = [inputs, outputs];
    let weight = match gain {
        0.0 => init.constant(shape, 0.0),
        _ => init.normal(shape, (gain / inputs.max(1) as f64).sqrt()),
    };
    Linear { weight, bias: Some(init.constant([outputs], 0.0)) }
}

impl PrimaryNetwork for Tower {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let own = Tensor::cat(vec![batch.keys.clone(), batch.features.clone()], 1);
        let own = smoothly_clipped(own, self.clip);
        let own = match &self.numbers {
            Some(numbers) => Tensor::cat(vec![own.clone(), numbers.forward(own)], 1),
            None => own,
        };
        let mut hidden = self.inputs.join(batch.keys.clone(), own);
        for layer in &self.layers {
            hidden = pass.dropout(activation::relu(apply(layer, hidden)), self.dropout);
        }
        let output = apply(&self.output, hidden.clone());
        let Some(to_answer) = &self.answer else { return output };
        let memory = memory.expect("the trainer gives a memory to a method with secondaries");
        // A party's answer has one position.
        let [rows, _, width] = memory.tensor.dims();
        let answer = memory.tensor.clone().sum_dim(1).reshape([rows, width]).mul_scalar(self.scale);
        let output = output + apply(to_answer, answer.clone());
        let [first, second] = self.joint.as_slice() else { return output };
        let joint = activation::relu(apply(first, Tensor::cat(vec![hidden, answer], 1)));
        output + apply(second, pass.dropout(joint, self.dropout))
    }
}
