//! Model of a golden file, built from the program's own slots and cut at every party boundary.

use std::collections::BTreeSet;

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_core::aggregator::{Aggregation, Aggregator, Role};
use fet_core::encoder::{Computation, Encoder, NeighbourBatch};
use fet_core::method::{Memory, Primary, PrimaryBatch, PrimaryContext, SecondaryContext};
use fet_core::model::Pass;
use fet_core::parameters::{Parameters, host};
use fet_core::registry::Violation;
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_core::trainable::Learner;

use super::file::{GoldenError, GoldenFile};
use super::names;
use super::slots::GoldenSlots;

/// Parties' submodels with the file's parameters, and the file's batch.
pub(super) struct GoldenModel {
    primary: Box<dyn Primary>,
    secondaries: Vec<Box<dyn Encoder>>,
    aggregator: Box<dyn Aggregator>,
    batch: PrimaryBatch,
    neighbours: Vec<NeighbourBatch>,
    similarities: Vec<Tensor<2>>,
}

/// Results of a pass.
pub(super) struct GoldenOutcome {
    pub(super) output: Vec<f32>,
    pub(super) loss: f64,
}

impl GoldenModel {
    pub(super) fn new(golden: &GoldenFile, device: &Device, fused: bool) -> Result<Self, GoldenError> {
        let computation = Computation { fused, ..Computation::default() };
        let device = device.clone().autodiff();
        let refused =
            |violation: Violation| golden.bad(&format!("its configuration is impossible: {violation}"));
        let slots = GoldenSlots::from_golden(golden)?;
        let method = slots.method.build(&()).map_err(refused)?;
        let aggregator = slots.aggregator.build(&()).map_err(refused)?;
        let parties = slots.data_dims.len() - 1;
        let primary = method.primary(&PrimaryContext {
            device: &device,
            weights: weights(0),
            key_columns: slots.key_dims[0],
            feature_columns: slots.data_dims[0],
            objective: slots.objective,
            parties,
            positions: slots.neighbours,
            memory_width: aggregator.width(parties, method.plan().width),
            computation,
        });
        let mut primary = primary.map_err(refused)?;
        let mut secondaries = Vec::new();
        for party in 1..=parties {
            let context = SecondaryContext {
                device: &device,
                weights: weights(party),
                neighbours: slots.neighbours,
                key_columns: slots.key_dims[party],
                feature_columns: slots.data_dims[party],
                computation,
            };
            secondaries.push(method.secondary(&slots.encoder, &context).map_err(refused)?);
        }
        load(golden, 0, primary.learner_mut())?;
        for (index, secondary) in secondaries.iter_mut().enumerate() {
            load(golden, index + 1, secondary.learner_mut())?;
        }
        let neighbours = (1..=parties).map(|party| neighbours(golden, party, slots.neighbours, &device));
        let features = flat(golden, "input.data.0", &device)?;
        let mut similarities = Vec::new();
        if method.plan().similarities {
            similarities.push(flat(golden, "input.similarity", &device.clone().without_autodiff())?);
        }
        Ok(Self {
            primary,
            secondaries,
            aggregator,
            batch: PrimaryBatch {
                keys: keys(golden, 0, features.dims()[0], &device)?,
                features,
                labels: golden.floats("input.label")?,
                weights: Vec::new(),
            },
            neighbours: neighbours.collect::<Result<_, _>>()?,
            similarities,
        })
    }

    /// Runs the forward and the backward pass; only representations and gradients pass between the parties.
    pub(super) fn pass(&mut self) -> GoldenOutcome {
        let mut pass = Pass::evaluation();
        let parties = self.secondaries.iter_mut().zip(&self.neighbours);
        let parts: Vec<_> = parties.map(|(party, batch)| party.forward(batch, &mut pass, true)).collect();
        let round = Aggregation {
            parties: parts.len(),
            active: (0..parts.len()).collect(),
            shapes: parts.iter().map(|part| part.dims()).collect(),
            similarities: self.similarities.clone(),
        };
        let available = parts[0].dims()[1];
        let tensor = match self.aggregator.role() {
            Role::Combine(open) => open.combine(parts, &round),
            // Parts of a golden file are not secret, so the check sums them in the clear.
            Role::Sum(hidden) => {
                let sum = parts.into_iter().reduce(|a, b| a + b).expect("a golden file has a secondary");
                hidden.mean(sum, &round)
            }
        };
        let memory = Memory { tensor, available, similarities: self.similarities.clone() };
        let outcome = self.primary.train(&self.batch, Some(memory), &mut pass);
        let gradient = outcome.memory_gradient.expect("the primary differentiates its memory");
        let shares = self.aggregator.spread(gradient, &round).into_parts(round.active.len());
        for (party, gradient) in self.secondaries.iter_mut().zip(shares) {
            party.backward(gradient);
        }
        GoldenOutcome { output: host(outcome.output), loss: outcome.loss }
    }

    pub(super) fn step(&mut self, learning_rate: f64) {
        self.primary.learner_mut().step(learning_rate);
        for secondary in &mut self.secondaries {
            secondary.learner_mut().step(learning_rate);
        }
    }

    /// Returns the largest difference of a gradient, relative to the largest absolute value of that gradient.
    ///
    /// A gradient below rounding (of the file's largest gradient) is compared relative to this rounding.
    pub(super) fn compare_gradients(&self, golden: &GoldenFile) -> Result<f64, GoldenError> {
        self.compare(golden, "grad.", gradient_floor(golden)?, |learner| &learner.gradient().values)
    }

    /// Returns the largest difference of a parameter, relative to the parameter's largest absolute value.
    pub(super) fn compare_parameters(&self, golden: &GoldenFile) -> Result<f64, GoldenError> {
        self.compare(golden, "after.", f32::MIN_POSITIVE, |learner| learner.parameters().values())
    }

    fn compare(
        &self,
        golden: &GoldenFile,
        prefix: &str,
        floor: f32,
        values: impl Fn(&dyn Learner) -> &[f32],
    ) -> Result<f64, GoldenError> {
        let learners = std::iter::once(self.primary.learner());
        let learners = learners.chain(self.secondaries.iter().map(|party| party.learner()));
        let parties: Vec<_> = learners.map(|learner| (learner.parameters(), values(learner))).collect();
        compare(golden, prefix, floor, &parties)
    }
}

/// Returns the smallest relevant gradient: the rounding of the file's largest gradient.
pub(super) fn gradient_floor(golden: &GoldenFile) -> Result<f32, GoldenError> {
    let mut scale = 0.0f32;
    for name in golden.names("grad.") {
        let (_, values) = golden.tensor(&format!("grad.{name}"))?;
        scale = values.iter().fold(scale, |m, x| m.max(x.abs()));
    }
    Ok(scale * f32::EPSILON)
}

/// Returns the largest difference between each party's values (in the layout of its parameters) and the
/// file's.
///
/// Differences are relative to the largest absolute value of the same tensor, or to `floor` if that is
/// larger.
pub(super) fn compare(
    golden: &GoldenFile,
    prefix: &str,
    floor: f32,
    parties: &[(&Parameters, &[f32])],
) -> Result<f64, GoldenError> {
    let mut wanted: BTreeSet<&str> = golden.names(prefix).into_iter().collect();
    let mut worst = 0.0f64;
    for (party, (layout, ours)) in parties.iter().enumerate() {
        for segment in layout.segments() {
            let name = reference(golden, party, &segment.name)?;
            wanted.remove(name.as_str());
            let theirs = transposed(golden, &format!("{prefix}{name}"), &segment.shape)?;
            let size = theirs.iter().fold(floor, |m, x| m.max(x.abs()));
            for (a, b) in ours[segment.range.clone()].iter().zip(&theirs) {
                worst = largest(worst, f64::from((a - b).abs() / size));
            }
        }
    }
    // After a training run, the reference also lists unused parameters; these must not have changed.
    let moved = |name: &&str| {
        let before = golden.tensor(&format!("param.{name}")).map(|(_, values)| values.clone());
        let after = golden.tensor(&format!("{prefix}{name}")).map(|(_, values)| values.clone());
        prefix == "grad." || before.ok() != after.ok()
    };
    if let Some(name) = wanted.into_iter().find(moved) {
        return Err(golden.bad(&format!("`{prefix}{name}` belongs to a parameter that the model lacks")));
    }
    Ok(finite(worst))
}

fn weights(party: usize) -> ChaCha8Rng {
    stream(0, party, Purpose::Weights, 0)
}

fn reference(golden: &GoldenFile, party: usize, ours: &str) -> Result<String, GoldenError> {
    names::reference(golden.method(), party, ours)
        .ok_or_else(|| golden.bad(&format!("the reference lacks a name for `{ours}`")))
}

fn load(golden: &GoldenFile, party: usize, learner: &mut dyn Learner) -> Result<(), GoldenError> {
    let parameters = parameters(golden, party, learner.parameters())?;
    learner.load(&parameters).map_err(|error| golden.bad(&error.to_string()))
}

/// Returns the file's parameters of a party, in this program's layout.
pub(super) fn parameters(
    golden: &GoldenFile,
    party: usize,
    layout: &Parameters,
) -> Result<Parameters, GoldenError> {
    let mut parameters = Parameters::default();
    for segment in layout.segments() {
        let name = format!("param.{}", reference(golden, party, &segment.name)?);
        parameters.push(&segment.name, &segment.shape, &transposed(golden, &name, &segment.shape)?);
    }
    Ok(parameters)
}

/// Returns a tensor of the file in this program's layout.
///
/// Matrices are [in, out] here and [out, in] in the file. A convolution's kernel lacks the second dimension
/// here.
fn transposed(golden: &GoldenFile, name: &str, shape: &[usize]) -> Result<Vec<f32>, GoldenError> {
    let (theirs, values) = golden.tensor(name)?;
    let expected = match shape {
        &[rows, columns] => vec![columns, rows],
        &[channels, inputs, kernel] => vec![channels, inputs, kernel, 1],
        other => other.to_vec(),
    };
    if *theirs != expected {
        return Err(golden.bad(&format!("`{name}` has the shape {theirs:?}; {expected:?} is expected")));
    }
    let &[rows, columns] = shape else { return Ok(values.clone()) };
    Ok((0..rows).flat_map(|r| (0..columns).map(move |c| values[c * rows + r])).collect())
}

/// Returns an input [B, L, columns] or [B, columns] as rows.
fn flat(golden: &GoldenFile, name: &str, device: &Device) -> Result<Tensor<2>, GoldenError> {
    let (shape, values) = golden.tensor(name)?;
    let (rows, columns) = match *shape.as_slice() {
        [rows, columns] => (rows, columns),
        [batch, length, columns] => (batch * length, columns),
        _ => {
            let message = format!("`{name}` must have two or three dimensions; it has the shape {shape:?}");
            return Err(golden.bad(&message));
        }
    };
    Ok(Tensor::from_data(TensorData::new(values.clone(), [rows, columns]), device))
}

/// Returns a party's keys. Without keys in the file, they are one column of zeros, which no model uses.
fn keys(golden: &GoldenFile, party: usize, rows: usize, device: &Device) -> Result<Tensor<2>, GoldenError> {
    match golden.method() {
        "fedsim" => Ok(Tensor::zeros([rows, 1], device)),
        _ => flat(golden, &format!("input.key.{party}"), device),
    }
}

/// Returns a party's neighbours, all treated as distinct records.
fn neighbours(
    golden: &GoldenFile,
    party: usize,
    neighbours: usize,
    device: &Device,
) -> Result<NeighbourBatch, GoldenError> {
    let features = flat(golden, &format!("input.data.{party}"), device)?;
    let slots = features.dims()[0];
    if neighbours == 0 || !slots.is_multiple_of(neighbours) {
        return Err(
            golden.bad(&format!("party {party} has {slots} records for {neighbours} neighbours per row"))
        );
    }
    Ok(NeighbourBatch {
        keys: keys(golden, party, slots, device)?,
        features,
        slots: Tensor::<1, Int>::arange(0..slots as i64, device),
        rows: slots / neighbours,
        neighbours,
        available: neighbours,
        similarities: None,
        listed: None,
    })
}

/// Returns the larger of two numbers; NaN counts as the largest.
pub(super) fn largest(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Replaces NaN, which JSON lacks, by the largest number, which exceeds every tolerance.
pub(super) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::MAX }
}
