//! A secondary's half of `fet-trees`.

use burn::tensor::{Tensor, TensorData};
use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::model::Pass;
use fet_core::parameters::host;
use fet_core::trainable::Learner;
use rayon::prelude::*;

use super::columns::of_links;
use super::grown::GrownTrees;
use super::settings::FetTreesSettings;
use crate::boosting::{Ensemble, Growth, Stepwise, output_of};
use crate::gbdt::Pool;

/// Trees that fit the primary's gradients on a secondary's own columns.
pub(super) struct Proposals {
    forms: Vec<Pool>,
    growth: Growth,
    /// Number of trees of a step.
    width: usize,
    seed: u64,
    trees: GrownTrees,
    training: Option<Training>,
}

/// The training rows, which are the same in every step.
struct Training {
    rows: Stepwise,
    step: usize,
    /// Outputs of the last step's trees, [B, W].
    outputs: Vec<f32>,
}

impl Proposals {
    /// Creates the half without trees; `seed` draws each step's sample.
    pub(super) fn new(settings: &FetTreesSettings, seed: u64) -> Self {
        let (width, leaves) = (settings.proposals, settings.proposal_leaves);
        let row_share = settings.proposal_rows;
        let growth = Growth { leaves, row_share, learning_rate: 1.0, ..settings.growth.clone() };
        let mut trees = GrownTrees::new(width);
        trees.set(Ensemble::of_base(&vec![0.0; width]));
        Self { forms: settings.columns.clone(), growth, width, seed, trees, training: None }
    }

    /// Returns the outputs of all trees for new rows; 0 for trees that are not grown yet.
    fn all_outputs(&self, batch: &NeighbourBatch) -> Tensor<3> {
        let columns = of_links(batch, &self.forms);
        let all = self.width * self.growth.trees;
        let trees = self.trees.ensemble().trees();
        let mut outputs = vec![0.0; batch.rows * all];
        outputs.par_chunks_mut(all).enumerate().for_each(|(row, outputs)| {
            for (output, tree) in outputs.iter_mut().zip(trees) {
                *output = output_of(tree, |column| columns.get(column).map(|all| all[row]));
            }
        });
        let device = batch.features.device().without_autodiff();
        Tensor::from_data(TensorData::new(outputs, [batch.rows, 1, all]), &device)
    }
}

impl Encoder for Proposals {
    fn learner(&self) -> &dyn Learner {
        &self.trees
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trees
    }

    fn forward(&mut self, batch: &NeighbourBatch, _pass: &mut Pass, tracked: bool) -> Tensor<3> {
        if !tracked {
            return self.all_outputs(batch);
        }
        let Self { forms, growth, seed, width, .. } = self;
        let training = self.training.get_or_insert_with(|| Training {
            rows: Stepwise::new(growth.clone(), *seed, of_links(batch, forms)),
            step: 0,
            outputs: vec![0.0; batch.rows * *width],
        });
        let device = batch.features.device().without_autodiff();
        Tensor::from_data(TensorData::new(training.outputs.clone(), [batch.rows, 1, *width]), &device)
    }

    fn backward(&mut self, gradient: Tensor<3>) {
        let Self { trees, width, .. } = self;
        let Training { rows, step, outputs } =
            self.training.as_mut().expect("backward follows a tracked forward");
        let gradient = host(gradient);
        for proposal in 0..*width {
            // A gradient of 0 leaves a row out: it lies outside the proposal's region.
            let of_row = |row: &[f32]| [row[proposal], if row[proposal] == 0.0 { 0.0 } else { 1.0 }];
            let derivatives: Vec<[f32; 2]> = gradient.chunks_exact(*width).map(of_row).collect();
            let mut scores = vec![0.0; derivatives.len()];
            // Each tree has its own sample.
            let sample = *step * *width + proposal;
            trees.push(rows.grow(sample, &derivatives, |column| column, &mut scores));
            for (outputs, score) in outputs.chunks_exact_mut(*width).zip(scores) {
                outputs[proposal] = score as f32;
            }
        }
        *step += 1;
    }
}
