//! Compares gradients with central differences, along directions that involve every parameter.
//!
//! A step along the computed gradient says nothing about a parameter that is missing from it, because the
//! step does not move that parameter. The test therefore also uses random directions, and several directions
//! that move only one part of the parameters.

use std::ops::Range;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

/// Number of random directions for each part, and for all parts together.
const DIRECTIONS: u64 = 8;

/// Lengths of the steps along a unit direction; the best step counts.
///
/// A longer step suffers from third derivatives and the corners of ReLU, a shorter step from the rounding of
/// 32-bit floats.
const STEPS: [f64; 3] = [1e-2, 1e-1, 1e-3];

/// Relative tolerance of a directional derivative.
const SHARE: f64 = 1e-2;

/// Direction with its derivatives.
struct Along {
    /// Unit vector.
    direction: Vec<f32>,
    /// Derivative along the direction, for each tried step length.
    derivatives: Vec<f64>,
}

/// Compares the gradient of a function at a point with central differences.
///
/// `value` returns the function at a distance from the point along a direction. `parts` are the ranges of
/// parameters to probe separately. The tolerance is `floor` times the gradient's length, for the value's
/// rounding divided by the step, plus a small share of the difference.
///
/// The check can fail: it detects most parts with a tenth of the gradient's length or more
/// after they are set to zero.
///
/// # Panics
/// If a derivative differs, or if the check misses most large parts that are set to zero.
pub fn probe(
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
    assert!(off <= 1.0, "{name}: the error of a derivative is {off:.3} of the tolerance");
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
    /// Returns the deviation from a gradient, in units of the tolerance.
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
