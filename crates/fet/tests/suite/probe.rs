//! Gradients against central differences, along directions that see every parameter.
//!
//! A step along the gradient that was found says nothing of a parameter whose gradient is missing from it: the step does
//! not move that parameter. So the function is also differenced along directions drawn at random, and along several that
//! move one part of the parameters alone.

use std::ops::Range;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

/// So many directions are drawn for each part, and for all parts together.
const DIRECTIONS: u64 = 8;

/// The lengths of the steps along a direction of length 1, of which the best counts: a longer one suffers from third
/// derivatives and from the corners of ReLU, a shorter one from the rounding of 32-bit floats.
const STEPS: [f64; 3] = [1e-2, 1e-1, 1e-3];

/// How far a directional derivative may be off relative to itself.
const SHARE: f64 = 1e-2;

/// One direction.
struct Along {
    /// Of length 1.
    direction: Vec<f32>,
    /// The derivative along it, by steps of each length that was tried.
    derivatives: Vec<f64>,
}

/// Holds the gradient of a function at a point against central differences. `value` tells the function so far away from
/// the point along a direction; `parts` are the ranges of parameters that are probed by themselves.
///
/// Differences may be off by `floor` times the gradient's length, where the value's rounding, divided by the step, shows;
/// and by [`SHARE`] of themselves.
///
/// That this can fail is tested with it: most of the parts that hold a tenth of the gradient's length or more are missed
/// where they are zeroed.
pub(crate) fn probe(
    name: &str,
    gradient: &[f32],
    parts: &[Range<usize>],
    floor: f64,
    mut value: impl FnMut(&[f32], f64) -> f64,
) {
    let mut found = Vec::new();
    for (part, range) in parts.iter().chain([&(0..gradient.len())]).enumerate() {
        for number in 0..DIRECTIONS {
            let mut rng = stream(71, 0, Purpose::Linking, part as u64 * DIRECTIONS + number);
            let mut along = Along { direction: vec![0.0; gradient.len()], derivatives: Vec::new() };
            along.direction[range.clone()].iter_mut().for_each(|x| *x = rng.random::<f32>() - 0.5);
            let length = dot(&along.direction, &along.direction).sqrt();
            along.direction.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
            for step in STEPS {
                let difference = value(&along.direction, step) - value(&along.direction, -step);
                along.derivatives.push(difference / (2.0 * step));
                if along.off(gradient, floor) <= 0.5 {
                    break;
                }
            }
            found.push(along);
        }
    }
    let worst = |gradient: &[f32]| found.iter().map(|along| along.off(gradient, floor)).fold(0.0, f64::max);
    let off = worst(gradient);
    assert!(off <= 1.0, "{name}: a derivative is off by {off:.3} of what is allowed");
    let (mut missed, mut large) = (0, 0);
    for part in parts {
        let own = &gradient[part.clone()];
        if dot(own, own) >= 0.01 * dot(gradient, gradient) {
            let mut without = gradient.to_vec();
            without[part.clone()].fill(0.0);
            large += 1;
            missed += usize::from(worst(&without) > 1.0);
        }
    }
    assert!(2 * missed > large, "{name}: {missed} of {large} parts are missed where they are zeroed");
}

impl Along {
    /// The disagreement with a gradient, in units of what is allowed.
    fn off(&self, gradient: &[f32], floor: f64) -> f64 {
        let analytic = dot(gradient, &self.direction);
        let allowed = floor * dot(gradient, gradient).sqrt() + SHARE * analytic.abs();
        let off = self.derivatives.iter().map(|numeric| (numeric - analytic).abs() / allowed);
        off.fold(f64::INFINITY, f64::min)
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
