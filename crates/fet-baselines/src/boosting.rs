//! Gradient-boosted trees: grown leaf by leaf on histograms, as in LightGBM (Ke et al., NeurIPS 2017).
//!
//! Every sum is computed in an order that does not depend on the number of threads, so that a seed gives the same trees
//! everywhere. Trees compare single-precision values with single-precision thresholds, so that a saved ensemble predicts
//! the same bits.

mod bins;
mod growth;
mod stepwise;
mod tree;

use std::ops::Range;

use fet_core::data::Task;
use fet_core::objective::Objective;
use fet_core::parameters::{ParameterError, Parameters};
use fet_core::rng::{Purpose, stream};
use rand::seq::index;
use rayon::prelude::*;

use self::bins::Bins;
pub use self::growth::Growth;
pub(crate) use self::growth::PORTIONS;
pub(crate) use self::stepwise::Stepwise;
pub(crate) use self::tree::Node;
use self::tree::Rows;

/// Largest initial score: single precision rounds its probability to 0 or 1.
const LARGEST: f64 = 100.0;
/// Rows that one thread predicts at a time.
const CHUNK: usize = 1024;

/// Trees of every output.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ensemble {
    /// Initial score of each output; empty before the growth.
    base: Vec<f32>,
    /// Trees in the order of their growth; those of the outputs take turns.
    trees: Vec<Vec<Node>>,
}

/// Training rows.
pub(crate) struct Examples<'a> {
    /// The columns; each has one value per row.
    pub(crate) columns: &'a [Vec<f32>],
    /// Label of each row, as the model sees it.
    pub(crate) labels: &'a [f32],
    /// Relative weight of each row; empty for equal weights.
    pub(crate) weights: &'a [f32],
}

/// A table as the trees see it: values row by row.
pub(crate) struct Table {
    values: Vec<f32>,
    columns: usize,
}

impl Table {
    /// Creates a table from its columns.
    pub(crate) fn from_columns(columns: &[Vec<f32>]) -> Self {
        let rows = columns.first().map_or(0, Vec::len);
        let values = (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
        Self { values, columns: columns.len() }
    }
}

impl Ensemble {
    /// Grows `growth.trees` trees for each output.
    pub(crate) fn grow(growth: &Growth, objective: Objective, seed: u64, examples: &Examples<'_>) -> Self {
        Self::grow_with_scores(growth, objective, seed, examples).0
    }

    /// Grows the trees, and returns the scores of the training rows, too.
    fn grow_with_scores(
        growth: &Growth,
        objective: Objective,
        seed: u64,
        examples: &Examples<'_>,
    ) -> (Self, Vec<Vec<f64>>) {
        let Examples { columns, labels, weights } = *examples;
        let weights = &relative(weights);
        let growth = growth.for_task(objective.task);
        let bins = Bins::of_columns(columns);
        let varying = varying(&bins);
        let base = base(objective, labels, weights);
        let mut ensemble = Self::of_base(&base);
        let mut scores = ensemble.base_scores(labels.len());
        if varying.is_empty() {
            return (ensemble, scores);
        }
        for iteration in 0..growth.trees {
            let sample = Sample::draw(&growth, seed, iteration, labels.len(), &varying);
            let derivatives = derivatives(objective, &scores, labels, weights);
            for (scores, derivatives) in scores.iter_mut().zip(&derivatives) {
                let rows = Rows { bins: &bins, columns: &sample.columns, derivatives };
                ensemble.trees.push(sample.grow(&growth, &rows, columns, scores));
            }
        }
        (ensemble, scores)
    }

    /// Creates an ensemble without trees that has these initial scores.
    pub(crate) fn of_base(base: &[f64]) -> Self {
        Self { base: base.iter().map(|&score| score as f32).collect(), trees: Vec::new() }
    }

    /// Adds the next tree.
    pub(crate) fn push(&mut self, nodes: Vec<Node>) {
        self.trees.push(nodes);
    }

    /// Returns the trees in the order of their growth; those of the outputs take turns.
    pub(crate) fn trees(&self) -> &[Vec<Node>] {
        &self.trees
    }

    /// Returns true if the trees were grown.
    pub(crate) fn is_grown(&self) -> bool {
        !self.base.is_empty()
    }

    /// Returns the initial scores of every row, for each output.
    pub(crate) fn base_scores(&self, rows: usize) -> Vec<Vec<f64>> {
        self.base.iter().map(|&score| vec![f64::from(score); rows]).collect()
    }

    /// Adds the output of these trees of each output to the scores of the table's rows.
    pub(crate) fn add(&self, scores: &mut [Vec<f64>], table: &Table, trees: Range<usize>) {
        let outputs = self.base.len();
        for (output, scores) in scores.iter_mut().enumerate() {
            let places = trees.clone().map(|tree| tree * outputs + output);
            let trees: Vec<&[Node]> =
                places.filter_map(|place| Some(self.trees.get(place)?.as_slice())).collect();
            scores.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, scores)| {
                let values = &table.values[chunk * CHUNK * table.columns..];
                // Tree by tree, so that each is in the cache for all rows.
                for tree in &trees {
                    for (score, row) in scores.iter_mut().zip(values.chunks(table.columns.max(1))) {
                        *score += f64::from(output_of(tree, |column| row.get(column).copied()));
                    }
                }
            });
        }
    }

    /// Names of the parameters: initial scores, number of nodes of each tree, and all nodes.
    pub(crate) const NAMES: [&str; 3] = ["trees.base", "trees.sizes", "trees.nodes"];

    /// Returns the ensemble as parameters of a model.
    pub(crate) fn parameters(&self) -> Parameters {
        let sizes: Vec<f32> = self.trees.iter().map(|tree| tree.len() as f32).collect();
        let nodes: Vec<f32> =
            self.trees.iter().flatten().flat_map(|node| [node.column, node.value, node.left]).collect();
        let mut parameters = Parameters::default();
        parameters.push(Self::NAMES[0], &[self.base.len()], &self.base);
        parameters.push(Self::NAMES[1], &[sizes.len()], &sizes);
        parameters.push(Self::NAMES[2], &[nodes.len() / 3, 3], &nodes);
        parameters
    }

    /// Reads the ensemble from parameters of a model with this number of outputs.
    pub(crate) fn from_parameters(parameters: &Parameters, outputs: usize) -> Result<Self, ParameterError> {
        let find = |name: &str| {
            parameters.get(name).ok_or_else(|| ParameterError::Missing { name: name.to_string() })
        };
        let [base, sizes, nodes] = [find(Self::NAMES[0])?, find(Self::NAMES[1])?, find(Self::NAMES[2])?];
        let wrong = |at: usize, expected: usize, found: usize| ParameterError::Shape {
            name: Self::NAMES[at].to_string(),
            expected: vec![expected],
            found: vec![found],
        };
        if base.len() != outputs && !base.is_empty() {
            return Err(wrong(0, outputs, base.len()));
        }
        let total: usize = sizes.iter().map(|&size| size as usize).fold(0, usize::saturating_add);
        if total.checked_mul(3) != Some(nodes.len()) {
            return Err(wrong(2, total.saturating_mul(3), nodes.len()));
        }
        let mut rest =
            nodes.chunks_exact(3).map(|node| Node { column: node[0], value: node[1], left: node[2] });
        let trees = sizes.iter().map(|&size| rest.by_ref().take(size as usize).collect()).collect();
        Ok(Self { base: base.to_vec(), trees })
    }
}

/// The rows and the columns that a tree is grown on.
pub(crate) struct Sample {
    /// The rows.
    rows: Vec<u32>,
    /// The other rows.
    others: Vec<u32>,
    /// The columns.
    columns: Vec<usize>,
}

impl Sample {
    /// Draws the sample of an iteration among `rows` rows and the columns `varying`.
    fn draw(growth: &Growth, seed: u64, iteration: usize, rows: usize, varying: &[usize]) -> Self {
        let mut rng = stream(seed, 0, Purpose::Sampling, iteration as u64);
        let mut choose = |all: usize, share: f64| {
            let count = ((all as f64 * share).round() as usize).clamp(1, all);
            let mut is_chosen = vec![false; all];
            index::sample(&mut rng, all, count).into_iter().for_each(|at| is_chosen[at] = true);
            (0..all as u32).partition::<Vec<u32>, _>(|&at| is_chosen[at as usize])
        };
        let (rows, others) = choose(rows, growth.row_share);
        let columns = choose(varying.len(), growth.column_share).0;
        Self { rows, others, columns: columns.into_iter().map(|at| varying[at as usize]).collect() }
    }

    /// Grows a tree on the sample of `table`, whose values are in `columns`, and adds its output to the scores of all
    /// rows. Returns its nodes.
    fn grow(&self, growth: &Growth, table: &Rows<'_>, columns: &[Vec<f32>], scores: &mut [f64]) -> Vec<Node> {
        let grown = table.grow(growth, self.rows.clone());
        for (rows, output) in &grown.leaves {
            rows.iter().for_each(|&row| scores[row as usize] += f64::from(*output));
        }
        for &row in &self.others {
            let row = row as usize;
            scores[row] +=
                f64::from(output_of(&grown.nodes, |column| columns.get(column).map(|all| all[row])));
        }
        grown.nodes
    }

    /// Leaves the rows without `is_kept` out of the sample.
    fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        let (rows, out) = std::mem::take(&mut self.rows).into_iter().partition(|&row| is_kept(row as usize));
        self.rows = rows;
        self.others.extend::<Vec<u32>>(out);
    }
}

/// Returns the columns with more than one value.
fn varying(bins: &[Bins]) -> Vec<usize> {
    (0..bins.len()).filter(|&column| !bins[column].thresholds.is_empty()).collect()
}

/// Returns the weights divided by their mean.
pub(crate) fn relative(weights: &[f32]) -> Vec<f32> {
    let mean = weights.iter().map(|&weight| f64::from(weight)).sum::<f64>() / weights.len().max(1) as f64;
    weights.iter().map(|&weight| (f64::from(weight) / mean) as f32).collect()
}

/// Returns the initial score of each output, which minimises the loss without trees.
pub(crate) fn base(objective: Objective, labels: &[f32], weights: &[f32]) -> Vec<f64> {
    let weight = |row: usize| weights.get(row).map_or(1.0, |&weight| f64::from(weight));
    let all: f64 = (0..labels.len()).map(weight).sum();
    let mean = |value: &dyn Fn(f32) -> f64| {
        labels.iter().enumerate().map(|(row, &label)| weight(row) * value(label)).sum::<f64>() / all
    };
    match objective.task {
        Task::Regression => vec![mean(&|label| f64::from(label))],
        Task::Binary => {
            let share = mean(&|label| f64::from(label));
            vec![(share / (1.0 - share)).ln().clamp(-LARGEST, LARGEST)]
        }
        Task::Multiclass => {
            let share = |class: usize| mean(&|label| f64::from(u8::from(label as usize == class)));
            (0..objective.outputs).map(|class| share(class).ln().max(-LARGEST)).collect()
        }
    }
}

/// Returns the first and second derivative of each row's loss by each score. Classes use the bound K/(K-1) p(1-p) of the
/// softmax's second derivative, as LightGBM does.
pub(crate) fn derivatives(
    objective: Objective,
    scores: &[Vec<f64>],
    labels: &[f32],
    weights: &[f32],
) -> Vec<Vec<[f32; 2]>> {
    let mut all = vec![vec![[0.0f32; 2]; labels.len()]; scores.len()];
    let mut probabilities = vec![0.0; scores.len()];
    for (row, &label) in labels.iter().enumerate() {
        let weight = weights.get(row).map_or(1.0, |&weight| f64::from(weight));
        match objective.task {
            Task::Regression => {
                all[0][row] = [(weight * (scores[0][row] - f64::from(label))) as f32, weight as f32];
            }
            Task::Binary => {
                let probability = 1.0 / (1.0 + (-scores[0][row]).exp());
                let first = probability - f64::from(label);
                all[0][row] = [(weight * first) as f32, (weight * probability * (1.0 - probability)) as f32];
            }
            Task::Multiclass => {
                let most = scores.iter().map(|scores| scores[row]).fold(f64::NEG_INFINITY, f64::max);
                probabilities.iter_mut().zip(scores).for_each(|(p, scores)| *p = (scores[row] - most).exp());
                let sum: f64 = probabilities.iter().sum();
                let factor = scores.len() as f64 / (scores.len() as f64 - 1.0).max(1.0);
                for (class, (of_class, probability)) in all.iter_mut().zip(&probabilities).enumerate() {
                    let probability = probability / sum;
                    let first = probability - f64::from(u8::from(label as usize == class));
                    let second = factor * probability * (1.0 - probability);
                    of_class[row] = [(weight * first) as f32, (weight * second) as f32];
                }
            }
        }
    }
    all
}

/// Returns a tree's output for a row, whose values `value` gives by column; 0 if the nodes do not form a tree, as in a damaged
/// file.
pub(crate) fn output_of(tree: &[Node], value: impl Fn(usize) -> Option<f32>) -> f32 {
    let mut at = 0;
    for _ in 0..tree.len() {
        let Some(node) = tree.get(at) else { return 0.0 };
        if node.column < 0.0 {
            return node.value;
        }
        let Some(value) = value(node.column as usize) else { return 0.0 };
        at = (node.left as usize).saturating_add(usize::from(value >= node.value));
    }
    0.0
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    const REGRESSION: Objective = Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 1.0 };

    fn columns(rows: usize) -> Vec<Vec<f32>> {
        let mut rng = stream(3, 0, Purpose::Source, 0);
        let mut columns: Vec<Vec<f32>> = (0..5).map(|_| (0..rows).map(|_| rng.random()).collect()).collect();
        columns.push(vec![1.0; rows]);
        columns
    }

    fn growth(trees: usize) -> Growth {
        Growth { trees, leaves: 15, ..Growth::default() }
    }

    fn scores(ensemble: &Ensemble, columns: &[Vec<f32>], trees: usize) -> Vec<Vec<f64>> {
        let mut scores = ensemble.base_scores(columns[0].len());
        ensemble.add(&mut scores, &Table::from_columns(columns), 0..trees);
        scores
    }

    /// A single tree with one split finds the best step of a step function, and its leaves are the means of both sides.
    #[test]
    fn one_split_is_the_best_of_all() {
        let columns = vec![(0..100).map(|row| (row * 37 % 100) as f32).collect::<Vec<f32>>(), vec![0.0; 100]];
        let labels: Vec<f32> = columns[0].iter().map(|&x| if x < 30.0 { 1.0 } else { 5.0 }).collect();
        let growth = Growth {
            trees: 1,
            leaves: 2,
            learning_rate: 1.0,
            row_share: 1.0,
            column_share: 1.0,
            leaf_weight: 1.0,
            ..Growth::default()
        };
        let ensemble = Ensemble::grow(
            &growth,
            REGRESSION,
            1,
            &Examples { columns: &columns, labels: &labels, weights: &[] },
        );
        assert_eq!(ensemble.trees, [vec![Node::split(0, 29.5, 1), Node::leaf(-2.8), Node::leaf(1.2)]]);
        assert_eq!(ensemble.base, [3.8]);
        // Weights of 0 leave rows out.
        let weights: Vec<f32> = columns[0].iter().map(|&x| f32::from(u8::from(x >= 30.0))).collect();
        let ensemble = Ensemble::grow(
            &growth,
            REGRESSION,
            1,
            &Examples { columns: &columns, labels: &labels, weights: &weights },
        );
        assert_eq!((ensemble.base, ensemble.trees), (vec![5.0], vec![vec![Node::leaf(0.0)]]));
    }

    /// LightGBM 4.7 with these settings errs by 0.10, 0.05 and 0.14 on such rows, and a constant by 0.37, 0.5 and 0.5.
    #[test]
    fn trees_learn_every_task() {
        let columns = columns(2000);
        let new = columns.iter().map(|column| column[1500..].to_vec()).collect::<Vec<_>>();
        let training = columns.iter().map(|column| column[..1500].to_vec()).collect::<Vec<_>>();
        let value = |row: usize| 4.0 * (columns[0][row] - 0.5) * (columns[1][row] - 0.5) + columns[2][row];
        for (task, outputs, most) in
            [(Task::Regression, 1, 0.11), (Task::Binary, 1, 0.08), (Task::Multiclass, 3, 0.18)]
        {
            let objective = Objective { task, outputs, ..REGRESSION };
            let label = |row: usize| match task {
                Task::Regression => value(row),
                Task::Binary => f32::from(u8::from(value(row) > 0.5)),
                Task::Multiclass => (value(row) * 3.0).floor().clamp(0.0, 2.0),
            };
            let labels: Vec<f32> = (0..2000).map(label).collect();
            let ensemble = Ensemble::grow(
                &growth(150),
                objective,
                5,
                &Examples { columns: &training, labels: &labels[..1500], weights: &[] },
            );
            let scores = scores(&ensemble, &new, 150);
            let error = |row: usize| match task {
                Task::Regression => (scores[0][row] - f64::from(labels[1500 + row])).abs(),
                Task::Binary => f64::from(u8::from((scores[0][row] > 0.0) != (labels[1500 + row] > 0.5))),
                Task::Multiclass => {
                    let best = (0..3).max_by(|&a, &b| scores[a][row].total_cmp(&scores[b][row]));
                    f64::from(u8::from(best != Some(labels[1500 + row] as usize)))
                }
            };
            let mean = (0..500).map(error).sum::<f64>() / 500.0;
            assert!(mean < most, "{task:?}: {mean}");
        }
    }

    /// Rows in bags and rows outside have the scores that a saved ensemble gives, and any number of threads grows the same.
    #[test]
    fn saved_trees_predict_the_same_bits() {
        let columns = columns(3000);
        let labels: Vec<f32> = (0..3000).map(|row| columns[0][row] * columns[1][row]).collect();
        let grow = || {
            Ensemble::grow(
                &growth(20),
                REGRESSION,
                5,
                &Examples { columns: &columns, labels: &labels, weights: &[] },
            )
        };
        let (ensemble, trained) = Ensemble::grow_with_scores(
            &growth(20),
            REGRESSION,
            5,
            &Examples { columns: &columns, labels: &labels, weights: &[] },
        );
        let read = Ensemble::from_parameters(&ensemble.parameters(), 1).expect("an ensemble");
        assert_eq!(read, ensemble);
        assert_eq!(scores(&read, &columns, 20), trained);
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread").install(grow);
        assert_eq!(alone, ensemble);
        let other = Ensemble::grow(
            &growth(20),
            REGRESSION,
            6,
            &Examples { columns: &columns, labels: &labels, weights: &[] },
        );
        assert_ne!(other, ensemble);
    }

    #[test]
    fn damaged_parameters_are_refused_or_give_numbers() {
        let columns = columns(300);
        let ensemble = Ensemble::grow(
            &growth(2),
            REGRESSION,
            5,
            &Examples { columns: &columns, labels: &columns[0], weights: &[] },
        );
        let parameters = ensemble.parameters();
        assert!(Ensemble::from_parameters(&parameters, 2).is_err());
        let mut shorter = Parameters::default();
        for segment in parameters.segments() {
            let values = &parameters.values()[segment.range.clone()];
            let values = if segment.name == Ensemble::NAMES[1] { &values[1..] } else { values };
            shorter.push(&segment.name, &[values.len()], values);
        }
        assert!(Ensemble::from_parameters(&shorter, 1).is_err());
        let circle = [Node { column: 0.0, value: 0.5, left: 0.0 }];
        assert_eq!(output_of(&circle, |_| Some(0.0)), 0.0);
        let outside = [Node { column: 7.0, value: 0.5, left: f32::NAN }];
        assert_eq!(output_of(&outside, |column| [0.0].get(column).copied()), 0.0);
    }
}
