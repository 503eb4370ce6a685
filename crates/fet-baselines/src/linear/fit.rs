//! Penalised linear regression and logistic regression, by a Newton method with conjugate gradients.
//!
//! The fit minimises the mean loss of the rows plus half the penalty times the squared weights. The loss is half the
//! squared error of a regression, and the cross-entropy of classes. The constant is free of it. Newton steps are solved by
//! conjugate gradients and shortened until the loss falls enough (Nocedal and Wright, Numerical Optimization, 2nd edition,
//! algorithm 7.1).

use fet_core::data::Task;

/// Newton steps of one penalty at most.
const MOST_STEPS: usize = 50;
/// Iterations of conjugate gradients for one Newton step at most.
const MOST_ITERATIONS: usize = 500;
/// Norm of the gradient at the end, as a share of its norm at weights of 0.
const PRECISION: f64 = 1e-7;
/// Share of the expected decrease of the loss that a step must reach.
const LEAST_DECREASE: f64 = 1e-4;

/// Training rows: standardised columns, labels and weights that sum to 1.
pub(super) struct Rows<'a> {
    /// The columns; each has one value per row.
    pub(super) columns: &'a [Vec<f64>],
    /// Weight of each row.
    pub(super) weights: &'a [f64],
    /// Label of each row: a number, or the number of a class.
    pub(super) labels: &'a [f64],
    /// The task.
    pub(super) task: Task,
    /// Outputs of the model: the number of classes for several classes, otherwise 1.
    pub(super) outputs: usize,
}

/// State of the loss at some weights.
struct State {
    /// Mean loss with the penalty.
    loss: f64,
    /// Derivative of the loss by each weight.
    gradient: Vec<f64>,
    /// For each output and row: the probability for classes; unused for a regression.
    probabilities: Vec<Vec<f64>>,
}

impl Rows<'_> {
    /// Improves `model` until its gradient is small. The model has, for each output, the weight of each column and a
    /// constant.
    pub(super) fn fit(&self, model: &mut Vec<f64>, penalty: f64) {
        let size = self.columns.len() + 1;
        let scale =
            norm(&self.state(&vec![0.0; self.outputs * size], penalty).gradient).max(f64::MIN_POSITIVE);
        let mut state = self.state(model, penalty);
        for _ in 0..MOST_STEPS {
            let remaining = norm(&state.gradient) / scale;
            if remaining <= PRECISION {
                return;
            }
            // The loss of a regression is quadratic, so that one exact step ends.
            let precision = if self.task == Task::Regression {
                0.1 * PRECISION / remaining
            } else {
                remaining.sqrt().min(0.5)
            };
            let step = self.newton_step(&state, penalty, precision);
            let slope = dot(&state.gradient, &step);
            let mut length = 1.0;
            let next = loop {
                let moved: Vec<f64> = model.iter().zip(&step).map(|(at, step)| at + length * step).collect();
                let next = self.state(&moved, penalty);
                if next.loss <= state.loss + LEAST_DECREASE * length * slope {
                    *model = moved;
                    break Some(next);
                }
                length /= 2.0;
                if length < 1e-10 {
                    break None;
                }
            };
            // Rounding prevents a further decrease.
            let Some(next) = next else { return };
            state = next;
        }
    }

    /// Computes loss, gradient and probabilities.
    fn state(&self, model: &[f64], penalty: f64) -> State {
        let mut scores = self.scores(model);
        let mut loss = 0.0;
        let mut residuals = vec![vec![0.0; self.labels.len()]; self.outputs];
        for (row, (&label, &weight)) in self.labels.iter().zip(self.weights).enumerate() {
            match self.task {
                Task::Regression => {
                    let error = scores[0][row] - label;
                    loss += weight * error * error / 2.0;
                    residuals[0][row] = weight * error;
                }
                Task::Binary => {
                    let score = scores[0][row];
                    // log(1 + exp(x)) without overflow.
                    loss += weight * (score.max(0.0) + (-score.abs()).exp().ln_1p() - label * score);
                    scores[0][row] = 1.0 / (1.0 + (-score).exp());
                    residuals[0][row] = weight * (scores[0][row] - label);
                }
                Task::Multiclass => {
                    let most = scores.iter().map(|scores| scores[row]).fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = scores.iter().map(|scores| (scores[row] - most).exp()).sum();
                    loss += weight * (sum.ln() + most - scores[label as usize][row]);
                    for (class, (scores, residuals)) in scores.iter_mut().zip(&mut residuals).enumerate() {
                        scores[row] = (scores[row] - most).exp() / sum;
                        residuals[row] =
                            weight * (scores[row] - f64::from(u8::from(class == label as usize)));
                    }
                }
            }
        }
        let mut gradient = self.transposed(&residuals);
        for (gradient, weight) in self.penalised(&mut gradient).zip(self.penalised(&mut model.to_vec())) {
            loss += penalty * *weight * *weight / 2.0;
            *gradient += penalty * *weight;
        }
        State { loss, gradient, probabilities: scores }
    }

    /// Solves for the step that minimises the quadratic model of the loss, to a residual of `precision` times the gradient.
    fn newton_step(&self, state: &State, penalty: f64, precision: f64) -> Vec<f64> {
        let mut step = vec![0.0; state.gradient.len()];
        let mut residual: Vec<f64> = state.gradient.iter().map(|x| -x).collect();
        let mut direction = residual.clone();
        let mut square = dot(&residual, &residual);
        let enough = (precision * square.sqrt()).powi(2);
        for _ in 0..MOST_ITERATIONS {
            if square <= enough {
                break;
            }
            let curved = self.curvature(state, penalty, &direction);
            let curvature = dot(&direction, &curved);
            if curvature <= 0.0 {
                break;
            }
            let length = square / curvature;
            add(&mut step, length, &direction);
            add(&mut residual, -length, &curved);
            let next = dot(&residual, &residual);
            let ratio = next / square;
            direction
                .iter_mut()
                .zip(&residual)
                .for_each(|(direction, residual)| *direction = residual + ratio * *direction);
            square = next;
        }
        step
    }

    /// Multiplies the second derivatives of the loss by a direction.
    fn curvature(&self, state: &State, penalty: f64, direction: &[f64]) -> Vec<f64> {
        let mut moved = self.scores(direction);
        for (row, &weight) in self.weights.iter().enumerate() {
            match self.task {
                Task::Regression => moved[0][row] *= weight,
                Task::Binary => {
                    let probability = state.probabilities[0][row];
                    moved[0][row] *= weight * probability * (1.0 - probability);
                }
                Task::Multiclass => {
                    let both = moved.iter().zip(&state.probabilities);
                    let mean: f64 = both.map(|(moved, probabilities)| moved[row] * probabilities[row]).sum();
                    for (moved, probabilities) in moved.iter_mut().zip(&state.probabilities) {
                        moved[row] = weight * probabilities[row] * (moved[row] - mean);
                    }
                }
            }
        }
        let mut curved = self.transposed(&moved);
        for (curved, direction) in self.penalised(&mut curved).zip(self.penalised(&mut direction.to_vec())) {
            *curved += penalty * *direction;
        }
        curved
    }

    /// Computes each output's score of each row.
    fn scores(&self, model: &[f64]) -> Vec<Vec<f64>> {
        let of_output = |weights: &[f64]| {
            let mut scores = vec![weights[self.columns.len()]; self.labels.len()];
            for (column, &weight) in self.columns.iter().zip(weights) {
                add(&mut scores, weight, column);
            }
            scores
        };
        model.chunks(self.columns.len() + 1).map(of_output).collect()
    }

    /// Computes each column's product with each output's values, and the sum of these values for the constant.
    fn transposed(&self, values: &[Vec<f64>]) -> Vec<f64> {
        let of_output = |values: &Vec<f64>| {
            let products = self.columns.iter().map(|column| dot(column, values));
            products.chain([values.iter().sum()]).collect::<Vec<f64>>()
        };
        values.iter().flat_map(of_output).collect()
    }

    /// Returns the weights in `model` that have a penalty, without the constants.
    fn penalised<'a>(&self, model: &'a mut [f64]) -> impl Iterator<Item = &'a mut f64> + use<'a> {
        let columns = self.columns.len();
        model.chunks_mut(columns + 1).flat_map(move |weights| &mut weights[..columns])
    }
}

/// Returns the inner product of two vectors.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    // Eight sums let the compiler use vector instructions.
    let mut sums = [0.0; 8];
    let (left, left_rest) = left.as_chunks::<8>();
    let (right, right_rest) = right.as_chunks::<8>();
    for (left, right) in left.iter().zip(right) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f64>() + rest
}

/// Adds a multiple of a vector to another.
fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ridge regression of two columns, against the solution of its normal equations.
    #[test]
    fn a_regression_solves_the_normal_equations() {
        let columns = vec![vec![-1.0, 0.0, 1.0, 2.0, -2.0], vec![1.0, -1.0, 0.5, -0.5, 0.0]];
        let labels = [1.0, 2.0, 0.0, 5.0, -3.0];
        let rows = Rows {
            columns: &columns,
            weights: &[0.2; 5],
            labels: &labels,
            task: Task::Regression,
            outputs: 1,
        };
        let mut model = vec![0.0; 3];
        rows.fit(&mut model, 0.3);
        // Gradient of the loss by each weight and the constant, written out.
        let error =
            |row: usize| model[0] * columns[0][row] + model[1] * columns[1][row] + model[2] - labels[row];
        for (at, gradient) in [0, 1]
            .map(|at| (0..5).map(|row| 0.2 * error(row) * columns[at][row]).sum::<f64>())
            .iter()
            .enumerate()
        {
            assert!((gradient + 0.3 * model[at]).abs() < 1e-6, "{gradient} {model:?}");
        }
        assert!((0..5).map(error).sum::<f64>().abs() < 1e-6);
    }

    /// The logistic regression of two classes is the softmax regression whose weights are antisymmetric, with half the
    /// penalty; both gradients vanish.
    #[test]
    fn two_classes_are_fitted_equally_in_both_forms() {
        let columns = vec![vec![-1.0, 0.3, 1.0, 0.2, -0.5, 0.1], vec![0.4, -1.0, 0.5, -0.5, 0.9, 0.0]];
        let labels = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        let rows = |task, outputs| Rows {
            columns: &columns,
            weights: &[1.0 / 6.0; 6],
            labels: &labels,
            task,
            outputs,
        };
        let (mut one, mut two) = (vec![0.0; 3], vec![0.0; 6]);
        rows(Task::Binary, 1).fit(&mut one, 0.05);
        rows(Task::Multiclass, 2).fit(&mut two, 0.1);
        for (at, weight) in one.iter().enumerate() {
            assert!((two[3 + at] - two[at] - weight).abs() < 1e-4, "{one:?} {two:?}");
        }
    }

    /// Second derivatives of three classes with weights, against differences of the gradient.
    #[test]
    fn curvature_is_the_change_of_the_gradient() {
        let columns = vec![vec![-1.0, 0.3, 1.0, 0.2, -0.5, 0.1], vec![0.4, -1.0, 0.5, -0.5, 0.9, 0.0]];
        let rows = |task, outputs, labels| Rows {
            columns: &columns,
            weights: &[0.1, 0.3, 0.1, 0.2, 0.1, 0.2],
            labels,
            task,
            outputs,
        };
        let classes = [0.0, 2.0, 1.0, 0.0, 2.0, 1.0];
        let signs = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        for rows in [
            rows(Task::Multiclass, 3, &classes),
            rows(Task::Binary, 1, &signs),
            rows(Task::Regression, 1, &classes),
        ] {
            let size = 3 * rows.outputs;
            let model: Vec<f64> = (0..size).map(|at| (at as f64 * 0.7).sin()).collect();
            let direction: Vec<f64> = (0..size).map(|at| (at as f64 * 1.3).cos()).collect();
            let gradient = |length: f64| {
                let moved: Vec<f64> =
                    model.iter().zip(&direction).map(|(at, step)| at + length * step).collect();
                rows.state(&moved, 0.2).gradient
            };
            let found = rows.curvature(&rows.state(&model, 0.2), 0.2, &direction);
            for ((up, down), found) in gradient(1e-5).iter().zip(gradient(-1e-5)).zip(found) {
                assert!(((up - down) / 2e-5 - found).abs() < 1e-8, "{:?}: {found}", rows.task);
            }
        }
    }

    /// Weights grow without bound for classes that a plane separates, except for the penalty.
    #[test]
    fn separable_classes_have_finite_weights() {
        let columns = vec![vec![-1.0, -0.5, 0.5, 1.0]];
        let rows = Rows {
            columns: &columns,
            weights: &[0.25; 4],
            labels: &[0.0, 0.0, 1.0, 1.0],
            task: Task::Binary,
            outputs: 1,
        };
        let mut model = vec![0.0; 2];
        let mut last = 0.0;
        for penalty in [1.0, 1e-2, 1e-5] {
            rows.fit(&mut model, penalty);
            assert!(model[0].is_finite() && model[0] > last, "{model:?}");
            last = model[0];
        }
    }
}
