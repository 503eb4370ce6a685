//! The laws of an encoder, for every form of computation.

use burn::tensor::{Device, Int, Tensor};
use fet_core::encoder::{Computation, Encoder, EncoderContext, NeighbourBatch};
use fet_core::model::{ModelShape, Pass};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::registry::Slot;

use crate::probe::probe;
use crate::{random, rng};

/// Tests all laws of an encoder with these settings.
///
/// # Panics
/// If the encoder breaks a law.
pub fn check(slot: &Slot<dyn Encoder>, device: &Device) {
    gradients_match_central_differences(slot, device);
    evaluates_each_record_once_without_dropout(slot, device);
}

struct EncoderCase {
    shape: ModelShape,
    optimizer: OptimizerSettings,
    device: Device,
    computation: Computation,
}

/// All forms of computation of an encoder.
const COMPUTATIONS: [Computation; 4] = [
    Computation { fused: false, recompute: false },
    Computation { fused: false, recompute: true },
    Computation { fused: true, recompute: false },
    Computation { fused: true, recompute: true },
];

impl EncoderCase {
    fn new(device: &Device, positional_encoding: bool, computation: Computation) -> Self {
        let shape = ModelShape {
            hidden: 8,
            heads: 2,
            dropout: 0.25,
            positional_encoding,
            frequency_std: 1.0,
            shared_norm: false,
        };
        Self { shape, optimizer: OptimizerSettings::lamb(), device: device.clone().autodiff(), computation }
    }

    fn build(&self, slot: &Slot<dyn Encoder>) -> Box<dyn Encoder> {
        let context = EncoderContext {
            device: &self.device,
            weights: rng(20),
            neighbours: 4,
            key_columns: 2,
            feature_columns: 3,
            shape: &self.shape,
            optimizer: &self.optimizer,
            computation: self.computation,
        };
        slot.build(&context).expect("sound settings")
    }

    /// Returns three rows with four neighbours among five records.
    fn batch(&self, tracked: bool) -> NeighbourBatch {
        let device = if tracked { self.device.clone() } else { self.device.clone().without_autodiff() };
        NeighbourBatch {
            keys: random([5, 2], 30, &device),
            features: random([5, 3], 31, &device),
            slots: Tensor::<1, Int>::from_data([0, 1, 2, 3, 1, 2, 3, 4, 4, 0, 0, 2], &device),
            rows: 3,
            neighbours: 4,
            available: 4,
            similarities: None,
            listed: None,
        }
    }
}

/// Compares the backward pass with central differences of <R(θ), g>, along the gradient and along random
/// directions.
///
/// Dropout is on, with the same masks each time.
pub fn gradients_match_central_differences(slot: &Slot<dyn Encoder>, device: &Device) {
    let cases = COMPUTATIONS.iter().flat_map(|&how| [(how, true), (how, false)]);
    for (how, encoding) in cases {
        let case = EncoderCase::new(device, encoding, how);
        let mut encoder = case.build(slot);
        let start = encoder.learner().parameters().clone();
        let gradient = random([3, 4, 8], 40, device);
        let weights = host(gradient.clone());
        let pass = || Pass::training(rng(41));
        let representation = encoder.forward(&case.batch(true), &mut pass(), true);
        assert_eq!(representation.dims(), [3, 4, 8], "{slot:?}");
        encoder.backward(gradient);
        let found = encoder.learner().gradient().values.clone();
        let length = found.iter().map(|g| f64::from(g * g)).sum::<f64>().sqrt();
        assert!(length > 0.0, "{slot:?} has a gradient");
        let mut value = |direction: &[f32], step: f64| {
            let mut moved = Parameters::default();
            for segment in start.segments() {
                let values =
                    start.values()[segment.range.clone()].iter().zip(&direction[segment.range.clone()]);
                let values: Vec<f32> =
                    values.map(|(w, d)| (f64::from(*w) + step * f64::from(*d)) as f32).collect();
                moved.push(&segment.name, &segment.shape, &values);
            }
            encoder.learner_mut().load(&moved).expect("the same names");
            let output = host(encoder.forward(&case.batch(true), &mut pass(), true));
            output.iter().zip(&weights).map(|(a, b)| f64::from(a * b)).sum::<f64>()
        };
        let name = format!("{slot:?}, {how:?}");
        let step = 1e-2 / length;
        let numeric = (value(&found, step) - value(&found, -step)) / (2.0 * step);
        let analytic = length * length;
        let difference = (numeric - analytic).abs() / analytic;
        assert!(difference < 1e-2, "{name}: {numeric} and {analytic}");
        let parts: Vec<_> = start.segments().iter().map(|segment| segment.range.clone()).collect();
        probe(&name, &found, &parts, 1e-4, value);
    }
}

/// Tests that an evaluation repeats, and that a record that several rows share is encoded as separate copies are.
pub fn evaluates_each_record_once_without_dropout(slot: &Slot<dyn Encoder>, device: &Device) {
    for how in COMPUTATIONS {
        let case = EncoderCase::new(device, true, how);
        let mut encoder = case.build(slot);
        let batch = case.batch(false);
        let evaluate = |encoder: &mut Box<dyn Encoder>, batch: &NeighbourBatch| {
            host(encoder.forward(batch, &mut Pass::evaluation(), false))
        };
        let output = evaluate(&mut encoder, &batch);
        assert_eq!(output, evaluate(&mut encoder, &batch), "{slot:?}: evaluation repeats");
        // Separate copies of a record for each slot give the same result as a record shared between slots.
        let slots = batch.slots.clone();
        let apart = NeighbourBatch {
            keys: batch.keys.clone().select(0, slots.clone()),
            features: batch.features.clone().select(0, slots),
            slots: Tensor::<1, Int>::arange(0..12, &batch.keys.device()),
            ..batch
        };
        for (a, b) in output.iter().zip(evaluate(&mut encoder, &apart)) {
            assert!((a - b).abs() < 1e-5, "{slot:?}");
        }
    }
}
