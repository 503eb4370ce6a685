//! Compares the gradients of every method's primary submodel with central differences, with respect to its
//! own parameters and to the memory from the other parties.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::Computation;
use fet_core::method::{Memory, Method, Primary, PrimaryBatch, PrimaryContext};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::{Parameters, host};
use fet_core::registry::{Slot, plugins};
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::Learner;
use rand::RngExt;

use crate::support::devices;
use fet_contract::probe::probe;

const ROWS: usize = 6;
const PARTIES: usize = 2;
const NEIGHBOURS: usize = 5;

struct StepCase {
    primary: Box<dyn Primary>,
    batch: PrimaryBatch,
    memory: Option<Memory>,
}

fn random<const D: usize>(shape: [usize; D], round: u64, device: &Device) -> Tensor<D> {
    let mut rng = stream(21, 0, Purpose::Linking, round);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random::<f32>() - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

impl StepCase {
    fn new(kind: &str, task: Task, device: &Device, fused: bool) -> Self {
        let tracked = device.clone().autodiff();
        let method = Slot::<dyn Method>::with_defaults(kind)
            .expect("sound defaults")
            .build(&())
            .expect("sound defaults");
        let plan = method.plan();
        let aggregator =
            Slot::<dyn Aggregator>::with_defaults(plan.aggregator).expect("a plug-in").build(&());
        let width = aggregator.expect("sound defaults").width(PARTIES, plan.width);
        let positions = plan.positions(plan.neighbours.represented(1, NEIGHBOURS));
        let outputs = if task == Task::Multiclass { 3 } else { 1 };
        let context = PrimaryContext {
            device: &tracked,
            weights: stream(22, 0, Purpose::Weights, 0),
            key_columns: 2,
            feature_columns: 3,
            objective: Objective { task, outputs, minimum: 0.0, range: 1.0 },
            parties: PARTIES,
            positions,
            memory_width: width,
            computation: Computation { fused, recompute: false },
        };
        let similarities = vec![random([ROWS, positions], 4, device); PARTIES];
        let tensor = random([ROWS, positions, width], 3, device);
        let mut primary = method.primary(&context).expect("the sizes fit");
        leave_zero(primary.learner_mut());
        Self {
            primary,
            batch: PrimaryBatch {
                keys: random([ROWS, 2], 1, &tracked),
                features: random([ROWS, 3], 2, &tracked),
                labels: vec![0.0, 1.0, 1.0, 0.0, 1.0, 0.0],
                weights: Vec::new(),
            },
            memory: plan.secondaries.then_some(Memory { tensor, available: positions, similarities }),
        }
    }

    /// Computes the loss with the same dropout masks each time.
    fn loss(&mut self, memory: Option<Memory>) -> (f64, Option<Tensor<3>>) {
        let mut pass = Pass::training(stream(23, 0, Purpose::Dropout, 0));
        let outcome = self.primary.train(&self.batch, memory, &mut pass);
        (outcome.loss, outcome.memory_gradient)
    }
}

/// Replaces initial zeros of parameters by small values, because some zeros stop every gradient behind them.
fn leave_zero(learner: &mut dyn Learner) {
    let mut parameters = learner.parameters().clone();
    let mut rng = stream(24, 0, Purpose::Weights, 0);
    let (_, values) = parameters.split_mut();
    values
        .iter_mut()
        .filter(|value| **value == 0.0)
        .for_each(|value| *value = 0.2 * (rng.random::<f32>() - 0.5));
    learner.load(&parameters).expect("its own parameters");
}

/// Returns `start` moved along `direction` by `step`.
fn moved(start: &[f32], direction: &[f32], step: f64) -> Vec<f32> {
    start.iter().zip(direction).map(|(x, d)| (f64::from(*x) + step * f64::from(*d)) as f32).collect()
}

fn square(values: &[f32]) -> f64 {
    values.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// Checks that central differences along the gradient give its squared length.
///
/// The step moves the loss by about 0.02, far above the rounding of 32 bits. The tolerance covers third
/// derivatives and the corners of ReLU.
///
/// Random directions detect missing parts of the gradient: see [`probe`].
fn agree(
    name: &str,
    gradient: &[f32],
    parts: &[Range<usize>],
    floor: f64,
    mut loss_at: impl FnMut(&[f32], f64) -> f64,
) {
    let analytic = square(gradient);
    assert!(analytic > 0.0, "{name}: there is a gradient");
    let step = 1e-2 / analytic;
    let step = step.min(1e-2 / analytic.sqrt());
    let numeric = (loss_at(gradient, step) - loss_at(gradient, -step)) / (2.0 * step);
    assert!((numeric - analytic).abs() < 2e-2 * analytic, "{name}: {numeric} and {analytic}");
    probe(name, gradient, parts, floor, loss_at);
}

#[test]
fn primary_gradients_match_central_differences() {
    for backend in devices() {
        for plugin in plugins::<dyn Method>() {
            let method = Slot::<dyn Method>::with_defaults(plugin.kind).expect("sound defaults").build(&());
            if method.expect("sound defaults").plan().at_once.is_some() {
                continue;
            }
            let mut before = None;
            let tasks = [Task::Regression, Task::Binary, Task::Multiclass];
            for (task, fused) in tasks.into_iter().flat_map(|task| [(task, false), (task, true)]) {
                let name = format!("{} on {}, {task:?}, fused: {fused}", plugin.kind, backend.name);
                let mut case = StepCase::new(plugin.kind, task, &backend.device, fused);
                let memory = case.memory.clone();
                let (loss, memory_gradient) = case.loss(memory.clone());
                let gradient = case.primary.learner().gradient().values.clone();
                let memory_gradient = memory_gradient.map(host);
                // A method without blocks to fuse computes the same bits again.
                let found = (loss, gradient.clone(), memory_gradient.clone());
                if before.as_ref() == Some(&found) {
                    continue;
                }
                before = Some(found);
                let start = case.primary.learner().parameters().clone();
                let parts = start.segments().iter().map(|segment| segment.range.clone());
                // Trees that are not grown yet are empty.
                let parts: Vec<_> = parts.filter(|range| !range.is_empty()).collect();
                agree(&name, &gradient, &parts, 1.5e-3, |direction, step| {
                    let mut other = Parameters::default();
                    let values = moved(start.values(), direction, step);
                    for segment in start.segments() {
                        other.push(&segment.name, &segment.shape, &values[segment.range.clone()]);
                    }
                    case.primary.learner_mut().load(&other).expect("the same names");
                    case.loss(memory.clone()).0
                });
                case.primary.learner_mut().load(&start).expect("the same names");
                let Some(memory) = memory else { continue };
                let gradient = memory_gradient.expect("a method with secondaries differentiates");
                let (start, shape) = (host(memory.tensor.clone()), memory.tensor.dims());
                let row = shape[1] * shape[2];
                let rows: Vec<_> = (0..shape[0]).map(|index| index * row..(index + 1) * row).collect();
                agree(&format!("{name}, memory"), &gradient, &rows, 5e-3, |direction, step| {
                    let data = TensorData::new(moved(&start, direction, step), shape);
                    let tensor = Tensor::from_data(data, &backend.device);
                    case.loss(Some(Memory { tensor, ..memory.clone() })).0
                });
            }
        }
    }
}
