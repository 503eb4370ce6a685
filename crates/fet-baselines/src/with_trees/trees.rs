//! Boosted trees as parameters of a model.

use burn::tensor::Tensor;
use fet_core::method::PrimaryBatch;
use fet_core::objective::Objective;
use fet_core::parameters::{ParameterError, Parameters, host};
use fet_core::registry::Violation;

use crate::gbdt::{Examples, Growth, train_boosters};

/// Largest number of nodes of all trees; each node has four parameters.
const MOST_NODES: usize = 8_000_000;
/// Largest initial score: single precision rounds its probability to 0 or 1.
const LARGEST: f32 = 100.0;
/// Parameters of a node: the column, or -1 in a leaf; the threshold below which a record goes left, or the leaf's value; both children.
const NODE: usize = 4;
/// Parameter names of the trees: a flag and the initial scores, and the nodes.
const BASE: &str = "trees.base";
const NODES: &str = "trees.nodes";

/// Refuses more trees than a model with this number of outputs can hold.
pub(super) fn check_size(growth: &Growth, outputs: usize) -> Result<(), Violation> {
    if growth.trees.saturating_mul(nodes(growth)).saturating_mul(outputs) <= MOST_NODES {
        return Ok(());
    }
    let each = if outputs > 1 { format!(" for each of {outputs} classes") } else { String::new() };
    let rule = format!("must make at most {MOST_NODES} nodes with `leaves`: 2 · leaves - 1 per tree{each}");
    Err(Violation::new("growth.trees", rule, growth.trees))
}

/// The most nodes of a tree.
fn nodes(growth: &Growth) -> usize {
    (2 * growth.leaves).saturating_sub(1)
}

/// Trees of each output, grown or not yet.
pub(super) struct Trees {
    parameters: Parameters,
    growth: Growth,
    objective: Objective,
    seed: u64,
}

impl Trees {
    pub(super) fn new(growth: Growth, objective: Objective, seed: u64) -> Self {
        let mut parameters = Parameters::default();
        parameters.push(BASE, &[1 + objective.outputs], &vec![0.0; 1 + objective.outputs]);
        let shape = [objective.outputs, growth.trees, nodes(&growth), NODE];
        parameters.push(NODES, &shape, &vec![0.0; shape.iter().product()]);
        Self { parameters, growth, objective, seed }
    }

    /// True if the parameter belongs to the trees.
    pub(super) fn owns_parameter(name: &str) -> bool {
        name == BASE || name == NODES
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub(super) fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.parameters.overwrite(parameters)
    }

    pub(super) fn are_grown(&self) -> bool {
        self.parameters.get(BASE).is_some_and(|base| base[0] > 0.0)
    }

    /// Number of values and number of segments of the trees.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.parameters.values().len(), self.parameters.segments().len())
    }

    /// Grows the trees on training rows.
    pub(super) fn grow(&mut self, batch: &PrimaryBatch) {
        let columns = columns(batch);
        if columns.iter().all(|column| column.iter().all(|value| *value == column[0])) {
            // All rows are equal.
            return;
        }
        let examples = Examples { columns: &columns, labels: &batch.labels, weights: &batch.weights };
        let (varying, boosters) = train_boosters(&self.growth, self.objective, self.seed, &examples);
        let size = nodes(&self.growth);
        let mut base = vec![1.0f32];
        let mut all = vec![0.0f32; boosters.len() * self.growth.trees * size * NODE];
        for (booster, of_booster) in boosters.iter().zip(all.chunks_mut(self.growth.trees * size * NODE)) {
            // A class without rows has no log-probability and no splits.
            base.push((booster.base_score as f32).clamp(-LARGEST, LARGEST));
            for (tree, flat) in booster.trees.iter().zip(of_booster.chunks_mut(size * NODE)) {
                for (node, flat) in tree.nodes.iter().zip(flat.chunks_mut(NODE)) {
                    let place = |child: usize| child as f32;
                    flat.copy_from_slice(&match node.is_leaf {
                        true => [
                            -1.0,
                            if node.weight_value.is_finite() { node.weight_value } else { 0.0 },
                            0.0,
                            0.0,
                        ],
                        false => [
                            varying[node.split_feature] as f32,
                            least_from(node.split_value),
                            place(node.left_child),
                            place(node.right_child),
                        ],
                    });
                }
            }
        }
        let mut parameters = Parameters::default();
        let shapes: Vec<Vec<usize>> =
            self.parameters.segments().iter().map(|segment| segment.shape.clone()).collect();
        parameters.push(BASE, &shapes[0], &base);
        parameters.push(NODES, &shapes[1], &all);
        self.parameters = parameters;
    }

    /// Each row's score of each output.
    pub(super) fn scores(&self, batch: &PrimaryBatch) -> Vec<Vec<f64>> {
        let [base, all] =
            [BASE, NODES].map(|name| self.parameters.get(name).expect("it is there from the start"));
        let of_tree = nodes(&self.growth) * NODE;
        let rows = rows(batch);
        let base: Vec<f64> = base[1..].iter().map(|&score| f64::from(score)).collect();
        let mut scores = vec![base; rows.len()];
        // Tree by tree: each is in the cache for all rows.
        for (output, trees) in all.chunks(self.growth.trees * of_tree).enumerate() {
            for tree in trees.chunks(of_tree) {
                for (row, scores) in rows.iter().zip(&mut scores) {
                    scores[output] += f64::from(tree_output(tree, row));
                }
            }
        }
        scores
    }
}

/// Output of a tree for a row; 0 if the parameters do not form a tree.
fn tree_output(tree: &[f32], row: &[f32]) -> f32 {
    let mut node = 0usize;
    for _ in 0..tree.len() / NODE {
        let Some(&[column, value, left, right]) =
            tree.get(node.saturating_mul(NODE)..).and_then(<[f32]>::first_chunk)
        else {
            return 0.0;
        };
        if column < 0.0 {
            return value;
        }
        let Some(own) = row.get(column as usize) else { return 0.0 };
        node = if *own < value { left as usize } else { right as usize };
    }
    0.0
}

/// Keys and features of each row.
fn rows(batch: &PrimaryBatch) -> Vec<Vec<f32>> {
    let part = |tensor: &Tensor<2>| {
        let [rows, columns] = tensor.dims();
        let values = host(tensor.clone().without_autodiff());
        (0..rows).map(|row| values[row * columns..(row + 1) * columns].to_vec()).collect::<Vec<_>>()
    };
    let mut rows = part(&batch.keys);
    rows.iter_mut().zip(part(&batch.features)).for_each(|(row, features)| row.extend(features));
    rows
}

/// Transposed table.
pub(super) fn columns(batch: &PrimaryBatch) -> Vec<Vec<f64>> {
    let rows = rows(batch);
    let count = rows.first().map_or(0, Vec::len);
    (0..count).map(|column| rows.iter().map(|row| f64::from(row[column])).collect()).collect()
}

/// Rounds up to single precision, so that comparisons with single-precision values do not change.
fn least_from(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changed parameters in a file still give a number, and the walk through a tree ends.
    #[test]
    fn trees_that_are_none_end() {
        let circle = [0.0, 0.5, 0.0, 0.0];
        assert!(tree_output(&circle, &[0.0]).is_finite());
        assert!(tree_output(&[7.0, 0.5, 9.0, f32::NAN], &[0.0]).is_finite());
    }
}
