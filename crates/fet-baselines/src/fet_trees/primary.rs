//! The primary's half of `fet-trees`.

use burn::tensor::{Tensor, TensorData};
use fet_core::method::{Memory, Primary, PrimaryBatch, PrimaryContext, TrainOutcome};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::host;
use fet_core::trainable::Learner;
use rand::Rng;
use rayon::prelude::*;

use super::grown::GrownTrees;
use super::settings::FetTreesSettings;
use crate::boosting::{Ensemble, Growth, Stepwise, base, derivatives, output_of, relative};
use crate::gbdt::{activated, input_columns};

/// Trees on the primary's columns and the proposals of the other parties.
pub(super) struct GrowingPrimary {
    growth: Growth,
    /// Number of proposals of a party in a step.
    proposals: usize,
    /// Number of parts of the memory: the number of parties, 1 for their mean, or 0 without other parties.
    parts: usize,
    seed: u64,
    objective: Objective,
    trees: GrownTrees,
    training: Option<Training>,
}

/// The training rows, which are the same in every step.
struct Training {
    rows: Stepwise,
    /// Number of the primary's own columns.
    own: usize,
    weights: Vec<f32>,
    /// Score of each row, for each output.
    scores: Vec<Vec<f64>>,
    step: usize,
}

impl GrowingPrimary {
    /// Creates the half without trees.
    pub(super) fn new(settings: &FetTreesSettings, context: &PrimaryContext<'_>) -> Self {
        Self {
            growth: settings.growth.for_task(context.objective.task),
            proposals: settings.proposals,
            parts: if settings.others { context.memory_width / settings.proposals } else { 0 },
            seed: context.weights.clone().next_u64(),
            objective: context.objective,
            trees: GrownTrees::new(context.objective.outputs),
            training: None,
        }
    }

    /// Prepares the training rows, and sets the initial scores.
    fn begin_steps(&mut self, batch: &PrimaryBatch) -> Training {
        let weights = relative(&batch.weights);
        let ensemble = Ensemble::of_base(&base(self.objective, &batch.labels, &weights));
        let scores = ensemble.base_scores(batch.labels.len());
        self.trees.set(ensemble);
        let columns = input_columns(batch, None, &[]);
        let own = columns.len();
        let rows = Stepwise::new(self.growth.clone(), self.seed, columns);
        Training { rows, own, weights, scores, step: 0 }
    }

    /// Returns the outputs whose gradients the parties' trees of a step fit in all rows. They take turns if there are
    /// more outputs than proposals.
    fn outputs_of(&self, step: usize) -> impl Iterator<Item = usize> {
        let all = self.objective.outputs;
        let count = self.proposals.min(all);
        (step * count..(step + 1) * count).map(move |tree| tree % all)
    }

    /// Returns the gradients of the mean loss that the parties' trees for the next step fit,
    /// [B, parts · proposals].
    fn gradients(&self, training: &Training, labels: &[f32]) -> Vec<f32> {
        let all = derivatives(self.objective, &training.scores, labels, &training.weights);
        let mean = |derivatives: [f32; 2]| derivatives[0] / labels.len() as f32;
        let mut values = vec![0.0; labels.len() * self.proposals];
        for (proposal, output) in self.outputs_of(training.step).enumerate() {
            for (row, values) in values.chunks_exact_mut(self.proposals).enumerate() {
                values[proposal] = mean(all[output][row]);
            }
        }
        let outputs = self.objective.outputs;
        let of_step = &all[training.step % outputs];
        let regions = training.rows.regions(self.proposals.saturating_sub(outputs), training.step, of_step);
        for (proposal, region) in (outputs..).zip(regions) {
            for row in region {
                values[row as usize * self.proposals + proposal] = mean(of_step[row as usize]);
            }
        }
        let of_parts = |row: &[f32]| row.repeat(self.parts);
        values.chunks_exact(self.proposals).flat_map(of_parts).collect()
    }

    /// Returns the place of a training step's column among the columns of an evaluation, which has the proposals of
    /// all steps.
    fn place(&self, own: usize, step: usize, column: usize) -> usize {
        let Some(proposal) = column.checked_sub(own) else { return column };
        let (part, proposal) = (proposal / self.proposals, proposal % self.proposals);
        // The parties grew the trees of these proposals in the step before.
        own + (part * self.growth.trees + step - 1) * self.proposals + proposal
    }
}

impl Primary for GrowingPrimary {
    fn learner(&self) -> &dyn Learner {
        &self.trees
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trees
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, _pass: &mut Pass) -> TrainOutcome {
        let device = batch.keys.device().without_autodiff();
        let mut training = self.training.take().unwrap_or_else(|| self.begin_steps(batch));
        let (step, own) = (training.step, training.own);
        // The parties have no trees before the first gradient.
        if let Some(memory) = memory.as_ref().filter(|_| step > 0) {
            training.rows.set_others(columns_of(memory));
        }
        let all = derivatives(self.objective, &training.scores, &batch.labels, &training.weights);
        for (derivatives, scores) in all.iter().zip(&mut training.scores) {
            let place = |column| self.place(own, step, column);
            self.trees.push(training.rows.grow(step, derivatives, place, scores));
        }
        training.step += 1;
        // No step would see the proposals of the last one.
        let memory_gradient = memory.filter(|_| training.step < self.growth.trees).map(|_| {
            let values = self.gradients(&training, &batch.labels);
            let shape = [batch.labels.len(), 1, self.parts * self.proposals];
            Tensor::from_data(TensorData::new(values, shape), &device)
        });
        let output = activated(self.objective.task, &training.scores, &device);
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        self.training = Some(training);
        TrainOutcome { loss, memory_gradient, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let columns = input_columns(batch, None, &[]);
        let (rows, own) = (columns.first().map_or(0, Vec::len), columns.len());
        // Without other parties, all proposals are 0.
        let width = memory.as_ref().map_or(0, |memory| memory.tensor.dims()[2]);
        let proposals = memory.map(|memory| host(memory.tensor)).unwrap_or_default();
        let ensemble = self.trees.ensemble();
        let mut scores = match ensemble.is_grown() {
            true => ensemble.base_scores(rows),
            false => vec![vec![0.0; rows]; self.objective.outputs],
        };
        let outputs = scores.len();
        for (output, scores) in scores.iter_mut().enumerate() {
            scores.par_iter_mut().enumerate().for_each(|(row, score)| {
                let value = |column: usize| match column.checked_sub(own) {
                    None => Some(columns[column][row]),
                    Some(_) if width == 0 => Some(0.0),
                    Some(proposal) => (proposal < width).then(|| proposals[row * width + proposal]),
                };
                let trees = ensemble.trees().iter().skip(output).step_by(outputs);
                *score += trees.map(|tree| f64::from(output_of(tree, value))).sum::<f64>();
            });
        }
        activated(self.objective.task, &scores, &batch.keys.device())
    }
}

/// Returns the columns of a memory with one position.
fn columns_of(memory: &Memory) -> Vec<Vec<f32>> {
    let width = memory.tensor.dims()[2];
    let values = host(memory.tensor.clone());
    (0..width).map(|column| values.iter().skip(column).step_by(width).copied().collect()).collect()
}
