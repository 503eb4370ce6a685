//! The model of a golden file, put together from the program's own slots and cut at every party boundary.

use std::collections::BTreeSet;

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::method::{Memory, Method, Primary, PrimaryBatch, PrimaryContext, SecondaryContext};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::{Parameters, host};
use fet_core::registry::{SettingsError, Slot};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_core::trainable::Learner;

use super::file::{GoldenError, GoldenFile};
use super::{finite, largest, names};

/// The parties' halves with the file's parameters, and the file's batch.
pub(super) struct GoldenModel {
    primary: Box<dyn Primary>,
    secondaries: Vec<Box<dyn Encoder>>,
    aggregator: Box<dyn Aggregator>,
    batch: PrimaryBatch,
    neighbours: Vec<NeighbourBatch>,
}

/// What a pass gives.
pub(super) struct GoldenOutcome {
    pub(super) output: Vec<f32>,
    pub(super) loss: f64,
}

impl GoldenModel {
    pub(super) fn new(golden: &GoldenFile, device: &Device) -> Result<Self, GoldenError> {
        let device = device.clone().autodiff();
        let refused = |error: SettingsError| golden.bad(&format!("its configuration is impossible: {error}"));
        let method = method(golden)?.build(&()).map_err(|v| refused(v.into()))?;
        let encoder = encoder(golden)?;
        let (key_dims, data_dims): (Vec<usize>, Vec<usize>) =
            (golden.setting("key_dims")?, golden.setting("data_dims")?);
        if key_dims.len() != data_dims.len() || key_dims.len() < 2 {
            return Err(golden.bad("`key_dims` and `data_dims` must name the same two or more parties"));
        }
        let objective = objective(golden)?;
        let primary = method.primary(&PrimaryContext {
            device: &device,
            weights: weights(0),
            key_columns: key_dims[0],
            feature_columns: data_dims[0],
            objective,
        });
        let mut primary = primary.map_err(|v| refused(v.into()))?;
        let mut secondaries = Vec::new();
        for party in 1..key_dims.len() {
            let context = SecondaryContext {
                device: &device,
                weights: weights(party),
                neighbours: golden.setting("neighbours")?,
                key_columns: key_dims[party],
                feature_columns: data_dims[party],
            };
            secondaries.push(method.secondary(&encoder, &context).map_err(|v| refused(v.into()))?);
        }
        load(golden, 0, primary.learner_mut())?;
        for (index, secondary) in secondaries.iter_mut().enumerate() {
            load(golden, index + 1, secondary.learner_mut())?;
        }
        let aggregator = Slot::<dyn Aggregator>::of("average").map_err(refused)?;
        let neighbours = (1..key_dims.len()).map(|party| neighbours(golden, party, &device));
        Ok(Self {
            primary,
            secondaries,
            aggregator: aggregator.build(&()).map_err(|v| refused(v.into()))?,
            batch: PrimaryBatch {
                keys: flat(golden, "input.key.0", &device)?,
                features: flat(golden, "input.data.0", &device)?,
                labels: golden.floats("input.label")?,
            },
            neighbours: neighbours.collect::<Result<_, _>>()?,
        })
    }

    /// Forward and backward, with nothing but representations and gradients between the parties.
    pub(super) fn pass(&mut self) -> GoldenOutcome {
        let mut pass = Pass::evaluation();
        let parties = self.secondaries.iter_mut().zip(&self.neighbours);
        let parts: Vec<_> = parties.map(|(party, batch)| party.forward(batch, &mut pass, true)).collect();
        let available = parts[0].dims()[1];
        let memory = Memory { tensor: self.aggregator.combine(parts), available };
        let outcome = self.primary.train(&self.batch, Some(memory), &mut pass);
        let gradient = outcome.memory_gradient.expect("the primary of fet differentiates its memory");
        let shares = self.aggregator.spread(gradient, self.secondaries.len());
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

    /// The largest difference of a gradient, relative to the largest absolute value of that gradient. A
    /// gradient below rounding (of the file's largest) counts as that rounding.
    pub(super) fn compare_gradients(&self, golden: &GoldenFile) -> Result<f64, GoldenError> {
        let mut scale = 0.0f32;
        for name in golden.names("grad.") {
            let (_, values) = golden.tensor(&format!("grad.{name}"))?;
            scale = values.iter().fold(scale, |m, x| m.max(x.abs()));
        }
        self.compare(golden, "grad.", scale * f32::EPSILON, |learner| &learner.gradient().values)
    }

    /// The largest difference of a parameter, relative to the parameter's largest absolute value.
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
        let mut wanted: BTreeSet<&str> = golden.names(prefix).into_iter().collect();
        let mut worst = 0.0f64;
        let learners = std::iter::once(self.primary.learner());
        let learners = learners.chain(self.secondaries.iter().map(|party| party.learner()));
        for (party, learner) in learners.enumerate() {
            let ours = values(learner);
            for segment in learner.parameters().segments() {
                let name = reference(golden, party, &segment.name)?;
                wanted.remove(name.as_str());
                let theirs = transposed(golden, &format!("{prefix}{name}"), &segment.shape)?;
                let size = theirs.iter().fold(floor, |m, x| m.max(x.abs()));
                for (a, b) in ours[segment.range.clone()].iter().zip(&theirs) {
                    worst = largest(worst, f64::from((a - b).abs() / size));
                }
            }
        }
        // After a training run the reference also lists what it never uses; that must not have moved.
        let moved = |name: &&str| {
            let before = golden.tensor(&format!("param.{name}")).map(|(_, values)| values.clone());
            let after = golden.tensor(&format!("{prefix}{name}")).map(|(_, values)| values.clone());
            prefix == "grad." || before.ok() != after.ok()
        };
        if let Some(name) = wanted.into_iter().find(moved) {
            return Err(
                golden.bad(&format!("`{prefix}{name}` is of a parameter that the model does not have"))
            );
        }
        Ok(finite(worst))
    }
}

fn method(golden: &GoldenFile) -> Result<Slot<dyn Method>, GoldenError> {
    let mut table = toml::Table::new();
    table.insert("kind".into(), "fet".into());
    for (ours, theirs) in [("hidden", "hidden"), ("heads", "heads"), ("agg_blocks", "agg_blocks")] {
        table.insert(ours.into(), golden.setting::<i64>(theirs)?.into());
    }
    table.insert("positional_encoding".into(), golden.setting::<bool>("positional_encoding")?.into());
    table.insert("dropout".into(), 0.0.into());
    table.insert("shared_norm".into(), true.into());
    if golden.losses()?.is_some() {
        let optimizer: String = golden.setting("optimizer")?;
        let mut settings = toml::Table::new();
        settings.insert("kind".into(), optimizer.into());
        settings.insert("learning_rate".into(), golden.number("lr")?.into());
        settings.insert("weight_decay".into(), golden.number("weight_decay")?.into());
        table.insert("optimizer".into(), settings.into());
    }
    Slot::from_table(table).map_err(|error| golden.bad(&format!("its configuration is impossible: {error}")))
}

fn encoder(golden: &GoldenFile) -> Result<Slot<dyn Encoder>, GoldenError> {
    let mut table = toml::Table::new();
    table.insert("kind".into(), "transformer".into());
    table.insert("blocks".into(), golden.setting::<i64>("local_blocks")?.into());
    table.insert("dynamic_mask".into(), golden.setting::<bool>("dynamic_mask")?.into());
    Slot::from_table(table).map_err(|error| golden.bad(&format!("its configuration is impossible: {error}")))
}

fn objective(golden: &GoldenFile) -> Result<Objective, GoldenError> {
    let task: String = golden.setting("task")?;
    let task = match task.as_str() {
        "reg" => Task::Regression,
        "bin" => Task::Binary,
        "cls" => Task::Multiclass,
        other => return Err(golden.bad(&format!("`task` must be reg, bin or cls; it is \"{other}\""))),
    };
    Ok(Objective { task, outputs: golden.setting("out_dim")?, minimum: 0.0, range: 1.0 })
}

fn weights(party: usize) -> ChaCha8Rng {
    stream(0, party, Purpose::Weights, 0)
}

fn reference(golden: &GoldenFile, party: usize, ours: &str) -> Result<String, GoldenError> {
    names::reference(party, ours).ok_or_else(|| golden.bad(&format!("`{ours}` has no name in the reference")))
}

fn load(golden: &GoldenFile, party: usize, learner: &mut dyn Learner) -> Result<(), GoldenError> {
    let mut parameters = Parameters::default();
    for segment in learner.parameters().segments() {
        let name = format!("param.{}", reference(golden, party, &segment.name)?);
        parameters.push(&segment.name, &segment.shape, &transposed(golden, &name, &segment.shape)?);
    }
    learner.load(&parameters).map_err(|error| golden.bad(&error.to_string()))
}

/// A tensor of the file in our layout: matrices are [in, out] here and [out, in] there.
fn transposed(golden: &GoldenFile, name: &str, shape: &[usize]) -> Result<Vec<f32>, GoldenError> {
    let (theirs, values) = golden.tensor(name)?;
    let reversed: Vec<usize> = shape.iter().rev().copied().collect();
    if *theirs != reversed {
        return Err(golden.bad(&format!("`{name}` has the shape {theirs:?}; {reversed:?} is expected")));
    }
    let &[rows, columns] = shape else { return Ok(values.clone()) };
    Ok((0..rows).flat_map(|r| (0..columns).map(move |c| values[c * rows + r])).collect())
}

/// An input [B, L, columns] as rows.
fn flat(golden: &GoldenFile, name: &str, device: &Device) -> Result<Tensor<2>, GoldenError> {
    let (shape, values) = golden.tensor(name)?;
    let &[batch, length, columns] = shape.as_slice() else {
        return Err(golden.bad(&format!("`{name}` must have three dimensions; it has the shape {shape:?}")));
    };
    Ok(Tensor::from_data(TensorData::new(values.clone(), [batch * length, columns]), device))
}

/// A party's neighbours, none of them told apart from another.
fn neighbours(golden: &GoldenFile, party: usize, device: &Device) -> Result<NeighbourBatch, GoldenError> {
    let keys = flat(golden, &format!("input.key.{party}"), device)?;
    let neighbours: usize = golden.setting("neighbours")?;
    let slots = keys.dims()[0];
    if neighbours == 0 || !slots.is_multiple_of(neighbours) {
        return Err(
            golden.bad(&format!("party {party} has {slots} records for {neighbours} neighbours a row"))
        );
    }
    Ok(NeighbourBatch {
        features: flat(golden, &format!("input.data.{party}"), device)?,
        keys,
        slots: Tensor::<1, Int>::arange(0..slots as i64, device),
        rows: slots / neighbours,
        neighbours,
        available: neighbours,
    })
}
