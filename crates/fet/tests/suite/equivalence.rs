//! Tests that every device computes the same results from the same seed and the same weights, masks and
//! batches, which the host draws: the loss in each of 20 steps, the parameters after them, and the validation
//! metric.
//!
//! Devices differ in the order of sums and in the last bits of exp, erf, sin and cos. A training step
//! amplifies such differences only slightly. Over 20 steps of a small model, measured differences are at or
//! below 3e-7 of a step's usual loss and 4e-8 of the validation metric (the test prints them). The tolerance
//! is more than three times as large.
//!
//! Parameters move by gradients that the optimiser divides by their own size, including rounding errors.
//! Their measured differences are at or below 9e-6 of a tensor's length, and the tolerance is ten times as
//! large.

use fet_backends::Backend;
use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::Encoder;
use fet_core::experiment::Experiment;
use fet_core::method::Method;
use fet_core::parameters::Parameters;
use fet_core::registry::{Slot, plugins};
use fet_federation::trainer::StepReport;

use crate::support::{devices, experiment, model, open, square};

/// Tolerance of losses and metrics.
const TOLERANCE: f64 = 1e-6;

/// Tolerance of parameters: the length of a tensor's difference relative to the length of the tensor. A step
/// of default size moves a tensor by about 1e-3.
const PARAMETER_TOLERANCE: f64 = 1e-4;

/// Results of one device after an epoch.
struct Run {
    device: String,
    /// Loss of each step.
    losses: Vec<f64>,
    validation: f64,
    /// Parameters of all parties after the last step.
    parameters: Parameters,
}

impl Run {
    fn train(experiment: &Experiment, task: Task, backend: &Backend) -> Self {
        let (mut trainer, parties) = open(experiment, square(920, task), backend);
        let (mut losses, mut rows, mut total) = (Vec::new(), 0, 0.0);
        let mut watch = |step: StepReport| {
            // The trainer reports the mean over the epoch so far.
            let sum = step.loss * step.rows as f64;
            losses.push((sum - total) / (step.rows - rows) as f64);
            (rows, total) = (step.rows, sum);
            true
        };
        let report = trainer.epoch(&mut watch).expect("the epoch is trained");
        let validation = report.expect("a whole epoch").validation;
        Self { device: backend.name.clone(), losses, validation, parameters: model(&trainer, &parties) }
    }

    /// Returns the differences of the losses, the validation metrics and the parameters.
    fn differences(&self, other: &Self) -> [f64; 3] {
        assert_eq!(self.losses.len(), other.losses.len());
        // Errors of outputs are proportional to their own size, so errors of a loss are proportional to the
        // usual loss, even in a step with a small loss.
        let usual = self.losses.iter().sum::<f64>() / self.losses.len() as f64;
        let losses = self.losses.iter().zip(&other.losses).map(|(a, b)| (a - b).abs() / usual);
        let validation = (self.validation - other.validation).abs() / self.validation.abs();
        let (ours, theirs) = (self.parameters.values(), other.parameters.values());
        assert_eq!(self.parameters.segments(), other.parameters.segments());
        let parameters = self.parameters.segments().iter().map(|segment| {
            let parts = || ours[segment.range.clone()].iter().zip(&theirs[segment.range.clone()]);
            let squared: f64 = parts().map(|(a, b)| f64::from(a - b).powi(2)).sum();
            let length: f64 = parts().map(|(a, _)| f64::from(*a).powi(2)).sum();
            (squared / length.max(f64::MIN_POSITIVE)).sqrt()
        });
        [losses.fold(0.0, f64::max), validation, parameters.fold(0.0, f64::max)]
    }
}

fn check(task: Task, sets: &[&str]) {
    let experiment = experiment(sets);
    let runs: Vec<Run> = devices().iter().map(|backend| Run::train(&experiment, task, backend)).collect();
    let base = &runs[0];
    assert!(base.losses.len() >= 20, "20 steps, not {}", base.losses.len());
    for run in &runs[1..] {
        let [losses, validation, parameters] = base.differences(run);
        eprintln!(
            "{task:?} {sets:?}: {} differs from {} by at most {losses:.1e} of a step's usual loss, {validation:.1e} of the validation \
             metric, {parameters:.1e} of a parameter",
            run.device, base.device
        );
        let name = format!("{task:?} {sets:?}: {} and {}", base.device, run.device);
        assert!(losses < TOLERANCE, "{name}: a step's loss is {losses:e} apart");
        assert!(validation < TOLERANCE, "{name}: the validation metric is {validation:e} apart");
        assert!(parameters < PARAMETER_TOLERANCE, "{name}: a parameter is {parameters:e} apart");
    }
}

#[test]
fn fet_trains_equally_on_every_device() {
    for task in [Task::Regression, Task::Binary, Task::Multiclass] {
        check(task, &[]);
        // Compute everything on the device, including the secondaries' blocks.
        check(task, &["train.kernels=tensor"]);
    }
}

#[test]
fn components_train_equally_on_every_device() {
    check(Task::Multiclass, &["encoder.kind=transformer", "encoder.blocks=2", "encoder.dynamic_mask=false"]);
    check(Task::Multiclass, &["method.positional_encoding=false"]);
    check(Task::Multiclass, &["method.party_dropout=0.5", "method.shared_norm=true", "method.agg_blocks=2"]);
    check(Task::Multiclass, &["train.kernels=tensor", "encoder.blocks=2", "method.shared_norm=true"]);
    check(Task::Regression, &["train.neighbours_per_step=2"]);
    check(Task::Regression, &["train.kernels=tensor", "train.neighbours_per_step=2"]);
}

#[test]
fn every_method_trains_equally_on_every_device() {
    for plugin in plugins::<dyn Method>() {
        let slot = Slot::<dyn Method>::with_defaults(plugin.kind).expect("sound defaults");
        // A method that takes all rows at once lacks 20 steps, and does not compute on the device.
        if slot.build(&()).expect("sound defaults").plan().at_once.is_none() {
            check(Task::Regression, &[&format!("method.kind={}", plugin.kind)]);
        }
    }
}

#[test]
fn every_aggregator_and_encoder_trains_equally_on_every_device() {
    for plugin in plugins::<dyn Aggregator>() {
        check(Task::Regression, &[&format!("aggregator.kind={}", plugin.kind)]);
    }
    for plugin in plugins::<dyn Encoder>() {
        check(Task::Regression, &[&format!("encoder.kind={}", plugin.kind)]);
    }
}
