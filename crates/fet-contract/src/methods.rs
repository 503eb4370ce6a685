//! The laws of a method's half at the primary, for every task and form of computation.
//!
//! A method also learns a tiny task; that law needs a trainer, and so is not here.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::Computation;
use fet_core::method::{Memory, Method, Primary, PrimaryBatch, PrimaryContext};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::{Parameters, host};
use fet_core::registry::Slot;
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::Learner;
use rand::RngExt;

use crate::probe::probe;

const ROWS: usize = 6;
const PARTIES: usize = 2;
const NEIGHBOURS: usize = 5;
const TASKS: [Task; 3] = [Task::Regression, Task::Binary, Task::Multiclass];

/// Tests all laws of a method with these settings.
///
/// # Panics
/// If the method breaks a law.
pub fn check(slot: &Slot<dyn Method>, device: &Device) {
    predicts_each_row_on_its_own(slot, device);
    gradients_match_central_differences(slot, device);
}

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

fn build(slot: &Slot<dyn Method>) -> Box<dyn Method> {
    slot.build(&()).unwrap_or_else(|violation| panic!("{}: {violation}", slot.kinds()))
}

impl StepCase {
    fn new(slot: &Slot<dyn Method>, task: Task, device: &Device, fused: bool) -> Self {
        let tracked = device.clone().autodiff();
        let method = build(slot);
        let plan = method.plan();
        let width = match plan.secondaries {
            true => {
                let aggregator = Slot::<dyn Aggregator>::with_defaults(plan.aggregator).expect("a plug-in");
                aggregator.build(&()).expect("sound defaults").width(PARTIES, plan.width)
            }
            false => 0,
        };
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
        let primary = method.primary(&context);
        let mut primary = primary.unwrap_or_else(|violation| panic!("{}: {violation}", slot.kinds()));
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

    /// Predicts some of the rows.
    fn predict(&self, rows: Range<usize>) -> Vec<f32> {
        let columns = |all: &Tensor<2>| all.clone().without_autodiff().slice([rows.clone()]);
        let batch = PrimaryBatch {
            keys: columns(&self.batch.keys),
            features: columns(&self.batch.features),
            labels: Vec::new(),
            weights: Vec::new(),
        };
        let memory = self.memory.as_ref().map(|memory| Memory {
            tensor: memory.tensor.clone().slice([rows.clone()]),
            available: memory.available,
            similarities: memory.similarities.iter().map(columns).collect(),
        });
        host(self.primary.predict(&batch, memory))
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

/// Loss and gradients of one step.
struct Step {
    loss: f64,
    own: Vec<f32>,
    memory: Option<Vec<f32>>,
}

/// Tolerance between two forms of computation, relative to the loss and to the length of the gradient. The comparison misses
/// a wrong part of a gradient only if the part is shorter than that.
const AGREEMENT: f64 = 1e-4;

impl Step {
    fn of(case: &mut StepCase) -> Self {
        let (loss, memory) = case.loss(case.memory.clone());
        Self { loss, own: case.primary.learner().gradient().values.clone(), memory: memory.map(host) }
    }

    /// Returns the relative differences of the losses and of the gradients, added up so that NaN is never lost.
    fn difference(&self, other: &Self) -> f64 {
        let between = |a: &[f32], b: &[f32]| {
            if a.len() != b.len() {
                return f64::INFINITY;
            }
            let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            (square(&difference) / square(a).max(f64::MIN_POSITIVE)).sqrt()
        };
        let memory = match (&self.memory, &other.memory) {
            (None, None) => 0.0,
            (Some(a), Some(b)) => between(a, b),
            _ => f64::INFINITY,
        };
        let loss = (self.loss - other.loss).abs() / self.loss.abs();
        loss + between(&self.own, &other.own) + memory
    }
}

/// Compares the gradients with respect to the half's own parameters and to the memory from the other parties with central
/// differences. A fused form that agrees with the plain one has the same gradients. A method that takes all training rows at
/// once has none.
pub fn gradients_match_central_differences(slot: &Slot<dyn Method>, device: &Device) {
    if build(slot).plan().at_once.is_some() {
        return;
    }
    for task in TASKS {
        let plain = compare_gradients(slot, task, device, false, None);
        compare_gradients(slot, task, device, true, Some(&plain));
    }
}

/// Compares the loss and the gradients on a second device with those of the first, in both forms of computation.
pub fn gradients_agree_between_devices(slot: &Slot<dyn Method>, first: &Device, second: &Device) {
    if build(slot).plan().at_once.is_some() {
        return;
    }
    for (task, fused) in TASKS.into_iter().flat_map(|task| [(task, false), (task, true)]) {
        let [expected, found] =
            [first, second].map(|device| Step::of(&mut StepCase::new(slot, task, device, fused)));
        let difference = expected.difference(&found);
        let kinds = slot.kinds();
        assert!(
            difference < AGREEMENT,
            "{kinds}, {task:?}, fused: {fused}: devices differ by {difference:.1e}"
        );
    }
}

/// Compares the gradients of one form of computation with central differences, unless they agree with those of `checked`.
fn compare_gradients(
    slot: &Slot<dyn Method>,
    task: Task,
    device: &Device,
    fused: bool,
    checked: Option<&Step>,
) -> Step {
    let name = format!("{}, {task:?}, fused: {fused}", slot.kinds());
    let mut case = StepCase::new(slot, task, device, fused);
    let step = Step::of(&mut case);
    if checked.is_some_and(|checked| checked.difference(&step) < AGREEMENT) {
        return step;
    }
    let memory = case.memory.clone();
    let start = case.primary.learner().parameters().clone();
    let parts = start.segments().iter().map(|segment| segment.range.clone());
    // Trees that are not grown yet are empty.
    let parts: Vec<_> = parts.filter(|range| !range.is_empty()).collect();
    agree(&name, &step.own, &parts, 1.5e-3, |direction, step| {
        let mut other = Parameters::default();
        let values = moved(start.values(), direction, step);
        for segment in start.segments() {
            other.push(&segment.name, &segment.shape, &values[segment.range.clone()]);
        }
        case.primary.learner_mut().load(&other).expect("the same names");
        case.loss(memory.clone()).0
    });
    case.primary.learner_mut().load(&start).expect("the same names");
    let Some(memory) = memory else { return step };
    let gradient = step.memory.as_ref().expect("a method with secondaries differentiates");
    let (start, shape) = (host(memory.tensor.clone()), memory.tensor.dims());
    let row = shape[1] * shape[2];
    let rows: Vec<_> = (0..shape[0]).map(|index| index * row..(index + 1) * row).collect();
    agree(&format!("{name}, memory"), gradient, &rows, 5e-3, |direction, step| {
        let data = TensorData::new(moved(&start, direction, step), shape);
        let tensor = Tensor::from_data(data, device);
        case.loss(Some(Memory { tensor, ..memory.clone() })).0
    });
    step
}

/// Tests that a prediction repeats, and that it does not depend on the other rows of its batch.
pub fn predicts_each_row_on_its_own(slot: &Slot<dyn Method>, device: &Device) {
    for task in TASKS {
        let case = StepCase::new(slot, task, device, false);
        let together = case.predict(0..ROWS);
        let kinds = slot.kinds();
        assert_eq!(together, case.predict(0..ROWS), "{kinds}, {task:?}: a prediction repeats");
        let alone: Vec<f32> = (0..ROWS).flat_map(|row| case.predict(row..row + 1)).collect();
        for (alone, together) in alone.iter().zip(&together) {
            let name =
                format!("{kinds}, {task:?}: a row's prediction depends on the other rows of its batch");
            assert!((alone - together).abs() < 1e-4, "{name}: {alone} and {together}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_differ_by_wrong_parts_and_by_numbers_that_are_none() {
        let step = || Step { loss: 2.0, own: vec![3.0, 0.0, 4.0], memory: Some(vec![1.0, -1.0]) };
        let agrees = |change: fn(&mut Step)| {
            let mut other = step();
            change(&mut other);
            step().difference(&other) < AGREEMENT
        };
        assert!(agrees(|_| {}));
        assert!(agrees(|other| other.own[1] = 1e-5));
        assert!(!agrees(|other| other.own[1] = 1e-3));
        assert!(!agrees(|other| other.own[0] = 0.0));
        assert!(!agrees(|other| other.own[2] = f32::NAN));
        assert!(!agrees(|other| other.own.truncate(2)));
        assert!(!agrees(|other| other.memory = Some(vec![1.0, 1.0])));
        assert!(!agrees(|other| other.memory = Some(vec![f32::NAN, -1.0])));
        assert!(!agrees(|other| other.memory = None));
        assert!(!agrees(|other| other.loss = 2.001));
        assert!(!agrees(|other| other.loss = f64::NAN));
    }
}
