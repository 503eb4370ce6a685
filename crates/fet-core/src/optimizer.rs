//! First-order optimisers on flat host parameters.
//!
//! They run on the host so that every backend takes the same step, and on flat vectors so that a step is one
//! pass over memory. A step leaves a parameter unchanged if the parameter took no part in the backward pass.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::{FlatGradient, Parameters};

/// The update rule of an optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with L2 weight decay in the gradient and bias correction (Kingma & Ba 2015).
    Adam,
    /// Adam with weight decay decoupled from the gradient (Loshchilov & Hutter 2019) and bias correction.
    AdamW,
    /// LAMB without bias correction, with its trust ratio ‖w‖ clamped to [0, 10] (You et al. 2020).
    Lamb,
}

/// Settings of an optimiser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// Update rule of the optimiser.
    pub kind: OptimizerKind,
    /// Initial learning rate.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub learning_rate: f64,
    /// Weight decay: added to the gradient as L2 for Adam, subtracted from the weights in proportion to the
    /// learning rate for AdamW, added to the update for LAMB; 0 for none.
    #[schemars(range(min = 0))]
    pub weight_decay: f64,
    /// Decay of the first moment.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta1: f64,
    /// Decay of the second moment.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta2: f64,
    /// Constant added to the denominator of an update.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon: f64,
}

impl Default for OptimizerSettings {
    fn default() -> Self {
        Self::lamb()
    }
}

impl OptimizerSettings {
    /// Returns the settings of LAMB as in the paper.
    pub fn lamb() -> Self {
        let kind = OptimizerKind::Lamb;
        Self { kind, learning_rate: 1e-3, weight_decay: 1e-5, beta1: 0.9, beta2: 0.999, epsilon: 1e-6 }
    }

    /// Returns the settings of AdamW, with a weight decay for networks of plain layers.
    pub fn adamw() -> Self {
        Self { kind: OptimizerKind::AdamW, weight_decay: 0.2, ..Self::lamb() }
    }

    /// Returns the settings of Adam as the paper uses it for Solo.
    pub fn adam() -> Self {
        Self { kind: OptimizerKind::Adam, epsilon: 1e-8, ..Self::lamb() }
    }
}

/// The moments of one model's parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moments {
    /// Exponential average of gradients.
    pub first: Vec<f32>,
    /// Exponential average of squared gradients.
    pub second: Vec<f32>,
    /// Number of steps that each segment has taken.
    pub steps: Vec<u64>,
}

/// An optimiser with its state.
#[derive(Debug, Clone)]
pub struct Optimizer {
    settings: OptimizerSettings,
    moments: Moments,
}

impl Optimizer {
    /// Creates an optimiser without any state.
    pub fn new(settings: OptimizerSettings) -> Self {
        Self { settings, moments: Moments::default() }
    }

    /// Returns the state, for a checkpoint.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Restores the state of a checkpoint.
    pub fn restore(&mut self, moments: Moments) {
        self.moments = moments;
    }

    /// Takes one step; `learning_rate` comes from the schedule and replaces the rate in the settings.
    pub fn step(&mut self, learning_rate: f64, parameters: &mut Parameters, gradient: &FlatGradient) {
        let (segments, values) = parameters.split_mut();
        let Moments { first, second, steps } = &mut self.moments;
        first.resize(values.len(), 0.0);
        second.resize(values.len(), 0.0);
        steps.resize(segments.len(), 0);
        let mut rest = Part { values, gradient: &gradient.values, first, second };
        let mut parts = Vec::with_capacity(segments.len());
        for (index, segment) in segments.iter().enumerate() {
            let (part, after) = rest.split_at(segment.range.len());
            rest = after;
            if gradient.present[index] {
                steps[index] += 1;
                parts.push((part, steps[index]));
            }
        }
        let settings = &self.settings;
        parts.into_par_iter().for_each_init(Vec::new, |update, (part, step)| match settings.kind {
            OptimizerKind::Lamb => lamb(settings, learning_rate, part, update),
            OptimizerKind::Adam => adam(settings, learning_rate, step, part),
            OptimizerKind::AdamW => {
                let kept = 1.0 - (learning_rate * settings.weight_decay) as f32;
                part.values.iter_mut().for_each(|value| *value *= kept);
                let settings = OptimizerSettings { weight_decay: 0.0, ..settings.clone() };
                adam(&settings, learning_rate, step, part);
            }
        });
    }
}

/// A parameter with its gradient and moments.
struct Part<'a> {
    values: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl<'a> Part<'a> {
    fn split_at(self, at: usize) -> (Self, Self) {
        let (values, values_after) = self.values.split_at_mut(at);
        let (gradient, gradient_after) = self.gradient.split_at(at);
        let (first, first_after) = self.first.split_at_mut(at);
        let (second, second_after) = self.second.split_at_mut(at);
        let after =
            Self { values: values_after, gradient: gradient_after, first: first_after, second: second_after };
        (Self { values, gradient, first, second }, after)
    }
}

fn lamb(settings: &OptimizerSettings, learning_rate: f64, part: Part<'_>, update: &mut Vec<f32>) {
    let Part { values, gradient, first, second } = part;
    update.resize(values.len(), 0.0);
    lamb_update(settings, (values, gradient), (first, second), update);
    let (mut weight_norm, mut update_norm) = (0.0f64, 0.0f64);
    for (&w, &u) in values.iter().zip(update.iter()) {
        weight_norm += f64::from(w) * f64::from(w);
        update_norm += f64::from(u) * f64::from(u);
    }
    let (weight_norm, update_norm) = (weight_norm.sqrt().min(10.0), update_norm.sqrt());
    let trust = if weight_norm == 0.0 || update_norm == 0.0 { 1.0 } else { weight_norm / update_norm };
    let rate = (learning_rate * trust) as f32;
    values.iter_mut().zip(update.iter()).for_each(|(value, update)| *value -= rate * update);
}

/// Computes the moments of a step and its direction. The norms are separate sums in a fixed order, so that
/// the compiler can vectorise this loop.
fn lamb_update(
    settings: &OptimizerSettings,
    (values, gradient): (&[f32], &[f32]),
    (first, second): (&mut [f32], &mut [f32]),
    update: &mut [f32],
) {
    let (beta1, beta2) = (settings.beta1 as f32, settings.beta2 as f32);
    let (epsilon, decay) = (settings.epsilon as f32, settings.weight_decay as f32);
    let moments = first.iter_mut().zip(second);
    for (((update, w), g), (first, second)) in update.iter_mut().zip(values).zip(gradient).zip(moments) {
        *first = beta1 * *first + (1.0 - beta1) * g;
        *second = beta2 * *second + (1.0 - beta2) * g * g;
        *update = *first / (second.sqrt() + epsilon) + decay * w;
    }
}

fn adam(settings: &OptimizerSettings, learning_rate: f64, step: u64, part: Part<'_>) {
    let (beta1, beta2) = (settings.beta1 as f32, settings.beta2 as f32);
    let (epsilon, decay) = (settings.epsilon as f32, settings.weight_decay as f32);
    let correction1 = 1.0 - settings.beta1.powf(step as f64);
    let correction2 = (1.0 - settings.beta2.powf(step as f64)).sqrt() as f32;
    let rate = (learning_rate / correction1) as f32;
    for i in 0..part.values.len() {
        let g = part.gradient[i] + decay * part.values[i];
        part.first[i] = beta1 * part.first[i] + (1.0 - beta1) * g;
        part.second[i] = beta2 * part.second[i] + (1.0 - beta2) * g * g;
        part.values[i] -= rate * part.first[i] / (part.second[i].sqrt() / correction2 + epsilon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(settings: OptimizerSettings, weights: &[f32], gradients: &[&[f32]]) -> Vec<f32> {
        let mut parameters = Parameters::default();
        parameters.push("w", &[weights.len()], weights);
        let mut optimizer = Optimizer::new(settings.clone());
        for gradient in gradients {
            let gradient = FlatGradient { values: gradient.to_vec(), present: vec![true] };
            optimizer.step(settings.learning_rate, &mut parameters, &gradient);
        }
        parameters.values().to_vec()
    }

    fn close(found: &[f32], wanted: &[f64]) {
        // The tolerance is a few roundings of a 32-bit float.
        for (f, w) in found.iter().zip(wanted) {
            let tolerance = 4.0 * f64::from(f32::EPSILON) * w.abs().max(1.0);
            assert!((f64::from(*f) - w).abs() < tolerance, "{found:?} is not {wanted:?}");
        }
    }

    /// Computed by hand: m = 0.1 g, v = 0.001 g², so that each component of the update is ±0.1/√0.001 (up to
    /// ε).
    #[test]
    fn the_first_lamb_step_has_the_length_of_the_weights_times_the_rate() {
        let settings = OptimizerSettings { weight_decay: 0.0, epsilon: 1e-12, ..OptimizerSettings::lamb() };
        let r = 1e-3 * 5.0 / 2f64.sqrt();
        close(&step(settings.clone(), &[3.0, 4.0], &[&[0.5, -0.25]]), &[3.0 - r, 4.0 + r]);
        // A norm above 10 is clamped: the step equals that of a weight vector of length 10.
        let r = 1e-3 * 10.0 / 2f64.sqrt();
        close(&step(settings.clone(), &[30.0, 40.0], &[&[0.5, -0.25]]), &[30.0 - r, 40.0 + r]);
        // A weight vector of length 0 has trust ratio 1.
        let r = 1e-3 * 0.1 / 0.001f64.sqrt();
        close(&step(settings, &[0.0, 0.0], &[&[0.5, -0.25]]), &[-r, r]);
    }

    /// In its first step, Adam with bias correction moves by the learning rate, for gradients of any size.
    #[test]
    fn the_first_adam_steps_have_the_length_of_the_rate() {
        let settings = OptimizerSettings { weight_decay: 0.0, ..OptimizerSettings::adam() };
        close(&step(settings.clone(), &[1.0, -1.0], &[&[0.3, -20.0]]), &[0.999, -0.999]);
        close(&step(settings, &[1.0, -1.0], &[&[0.3, -20.0], &[0.3, -20.0]]), &[0.998, -0.998]);
    }

    /// AdamW takes Adam's step without decay, from weights that have shrunk by rate times decay.
    #[test]
    fn adamw_decays_apart_from_the_gradient() {
        let settings =
            OptimizerSettings { kind: OptimizerKind::AdamW, weight_decay: 0.5, ..OptimizerSettings::adam() };
        close(
            &step(settings, &[1.0, -1.0], &[&[0.3, -20.0]]),
            &[1.0 - 0.0005 - 0.001, -1.0 + 0.0005 + 0.001],
        );
    }

    #[test]
    fn a_parameter_without_gradient_is_left_alone() {
        let mut parameters = Parameters::default();
        parameters.push("used", &[1], &[1.0]);
        parameters.push("unused", &[1], &[1.0]);
        let gradient = FlatGradient { values: vec![1.0, 0.0], present: vec![true, false] };
        Optimizer::new(OptimizerSettings::lamb()).step(0.1, &mut parameters, &gradient);
        assert_ne!(parameters.values()[0], 1.0);
        assert_eq!(parameters.values()[1], 1.0);
    }
}
