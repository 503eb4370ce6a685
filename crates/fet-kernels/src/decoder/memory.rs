//! Attention of each sample's absorbed queries to its memory, one sample after another so that the memory stays in cache.

use crate::attention::{SignedWeights, drop_row};
use crate::dropout::{Drawn, passed};
use crate::math::{exp, largest, sum, vectorised};
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::rows::sized;
use crate::shape::Shape;

/// Memories of n samples.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub(super) shape: &'a Shape,
    /// [n, K, H].
    pub(super) values: &'a [f32],
    /// Term added to the logits of each position, [n, K].
    pub(super) mask: Option<&'a [f32]>,
}

/// Scratch memory of attention.
#[derive(Default)]
pub(super) struct Scratch {
    logits: Vec<f32>,
    weights: Vec<f32>,
    context_gradient: Vec<f32>,
    total_gradient: Vec<f32>,
    absorbed_gradient: Vec<f32>,
}

impl Scratch {
    /// Returns the memory for the gradients of the context and the total of `queries` queries, which
    /// [`Memory::attend_back`] reads.
    pub(super) fn gradients(&mut self, queries: usize, width: usize) -> (&mut [f32], &mut [f32]) {
        (sized(&mut self.context_gradient, queries * width), sized(&mut self.total_gradient, queries))
    }
}

/// Results of the forward pass that the backward pass reads.
pub(super) struct Saved<'a> {
    /// Weights, with the sign bit marking dropped ones, [n, heads, K].
    pub(super) kept: &'a mut [f32],
    /// Weighted sums of the memory, [n, heads, H].
    pub(super) context: &'a mut [f32],
    /// Sums of the weights, [n, heads].
    pub(super) total: &'a mut [f32],
}

impl Memory<'_> {
    /// absorbed [n, heads, H] → weights, context and sums of the weights.
    pub(super) fn attend(&self, absorbed: &[f32], drawn: Drawn<'_>, saved: Saved<'_>, scratch: &mut Scratch) {
        let Saved { kept, context, total } = saved;
        let Shape { width, heads, positions } = *self.shape;
        let logits = sized(&mut scratch.logits, heads * positions);
        let weights = sized(&mut scratch.weights, heads * positions);
        for (sample, values) in self.values.chunks_exact(positions * width).enumerate() {
            let queries = &absorbed[sample * heads * width..(sample + 1) * heads * width];
            let kept = &mut kept[sample * heads * positions..(sample + 1) * heads * positions];
            let total = &mut total[sample * heads..(sample + 1) * heads];
            let mask = self.mask.map(|mask| &mask[sample * positions..(sample + 1) * positions]);
            let left = View::new(queries, width);
            let right = View::new(values, width);
            multiply(1.0, left, right.transposed(), Into::Set, ViewMut::new(logits, positions));
            let numbers = drawn.map(|(dropout, numbers)| {
                (dropout, &numbers[sample * heads * positions..(sample + 1) * heads * positions])
            });
            for (head, total) in total.iter_mut().enumerate() {
                let place = head * positions..(head + 1) * positions;
                let numbers = numbers.map(|(dropout, numbers)| (dropout, &numbers[place.clone()]));
                let (logits, kept) = (&mut logits[place.clone()], &mut kept[place.clone()]);
                *total = softmax(logits, mask, numbers, kept, &mut weights[place]);
            }
            let target = &mut context[sample * heads * width..(sample + 1) * heads * width];
            multiply(1.0, View::new(weights, positions), right, Into::Set, ViewMut::new(target, width));
        }
    }

    /// Backward pass from the gradients of context and total in the scratch memory.
    ///
    /// Replaces the gradient of the memory or adds to it, as `into` says, and computes the gradient of the absorbed queries.
    pub(super) fn attend_back<'s>(
        &self,
        absorbed: &[f32],
        kept: SignedWeights<'_>,
        memory_gradient: &mut [f32],
        into: Into<'_>,
        scratch: &'s mut Scratch,
    ) -> &'s [f32] {
        let Shape { width, heads, positions } = *self.shape;
        // Slopes and weights are adjacent, and so are their factors: one product computes both parts of the memory's gradient.
        let both = sized(&mut scratch.logits, 2 * heads * positions);
        let with = sized(&mut scratch.weights, 2 * heads * width);
        let absorbed_gradient = sized(&mut scratch.absorbed_gradient, absorbed.len());
        let samples = self.values.chunks_exact(positions * width);
        for (sample, (values, gradient)) in
            samples.zip(memory_gradient.chunks_exact_mut(positions * width)).enumerate()
        {
            let rows = sample * heads * width..(sample + 1) * heads * width;
            let (slopes, weights) = both.split_at_mut(heads * positions);
            let above = &scratch.context_gradient[rows.clone()];
            let right = View::new(values, width);
            let target = ViewMut::new(slopes, positions);
            multiply(1.0, View::new(above, width), right.transposed(), Into::Set, target);
            for head in 0..heads {
                let place = head * positions..(head + 1) * positions;
                let kept = kept.part(sample * heads * positions + place.start, positions);
                let total = scratch.total_gradient[sample * heads + head];
                softmax_back(total, kept, &mut slopes[place.clone()], &mut weights[place]);
            }
            let target = ViewMut::new(&mut absorbed_gradient[rows.clone()], width);
            multiply(1.0, View::new(slopes, positions), right, Into::Set, target);
            with[..heads * width].copy_from_slice(&absorbed[rows]);
            with[heads * width..].copy_from_slice(above);
            let left = View::new(both, positions).transposed();
            multiply(1.0, left, View::new(with, width), into, ViewMut::new(gradient, width));
        }
        absorbed_gradient
    }
}

/// Softmax and dropout of one row; returns the sum of the kept weights.
fn softmax(
    logits: &mut [f32],
    mask: Option<&[f32]>,
    drawn: Drawn<'_>,
    kept: &mut [f32],
    weights: &mut [f32],
) -> f32 {
    #[inline(always)]
    fn of_row(logits: &[f32], kept: &mut [f32]) {
        let top = largest(logits.len(), [logits], |[logit]| logit);
        for (kept, logit) in kept.iter_mut().zip(logits) {
            *kept = exp(logit - top);
        }
        let scale = 1.0 / sum(kept.len(), [kept], |[weight]| weight);
        for weight in kept.iter_mut() {
            *weight *= scale;
        }
    }
    let drawn = drawn.map(|(dropout, numbers)| (dropout.gate(), numbers));
    vectorised(
        #[inline(always)]
        move || {
            if let Some(mask) = mask {
                for (logit, more) in logits.iter_mut().zip(mask) {
                    *logit += more;
                }
            }
            of_row(logits, kept);
            match drawn {
                Some((gate, numbers)) => drop_row(gate, numbers, kept, weights),
                None => weights.copy_from_slice(kept),
            }
            sum(weights.len(), [weights], |[weight]| weight)
        },
    )
}

/// Turns `slopes` from the gradient of the dropped weights into the gradient of the logits; `total` is the gradient of their sum.
/// Applies dropout to `weights`.
fn softmax_back(total: f32, kept: SignedWeights<'_>, slopes: &mut [f32], weights: &mut [f32]) {
    #[inline(always)]
    fn of_row(kept: &[f32], mean: f32, weights: &[f32], slopes: &mut [f32]) {
        for ((slope, weight), kept) in slopes.iter_mut().zip(weights).zip(kept) {
            *slope = weight * *slope - kept.abs() * mean;
        }
    }
    let SignedWeights { values: kept, scale } = kept;
    vectorised(
        #[inline(always)]
        move || {
            for (weight, kept) in weights.iter_mut().zip(kept) {
                *weight = passed(scale, *kept);
            }
            slopes.iter_mut().for_each(|slope| *slope += total);
            let mean = sum(weights.len(), [&*weights, &*slopes], |[weight, slope]| weight * slope);
            of_row(kept, mean, weights, slopes);
        },
    );
}
