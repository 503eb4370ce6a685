//! Standardised training rows, and the weights of a linear model as parameters.

use fet_core::objective::Objective;
use fet_core::parameters::{ParameterError, Parameters};

use super::fit::Rows;

/// Parameter names: mean of each column, inverse of its standard deviation (0 for a constant column), and the weights of each output with the constant last.
const MEAN: &str = "linear.mean";
const FACTOR: &str = "linear.factor";
const WEIGHTS: &str = "linear.weights";

/// Weights of a linear model and the standardisation of its columns, in shapes that the data determine; empty before a fit.
pub(crate) struct Weights {
    /// Outputs of the model.
    outputs: usize,
    parameters: Parameters,
}

impl Weights {
    pub(crate) fn new(outputs: usize) -> Self {
        let mut parameters = Parameters::default();
        parameters.push(MEAN, &[0], &[]);
        parameters.push(FACTOR, &[0], &[]);
        parameters.push(WEIGHTS, &[outputs, 0], &[]);
        Self { outputs, parameters }
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns true if the weights were fitted or loaded.
    pub(crate) fn is_fitted(&self) -> bool {
        !self.parameters.values().is_empty()
    }

    /// Replaces the weights by others, which may have other columns.
    pub(crate) fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        if let Some(unknown) = parameters
            .segments()
            .iter()
            .find(|segment| ![MEAN, FACTOR, WEIGHTS].contains(&segment.name.as_str()))
        {
            return Err(ParameterError::Unknown { name: unknown.name.clone() });
        }
        let length = |name: &str| parameters.get(name).map_or(0, <[f32]>::len);
        let (columns, factors, weights) = (length(MEAN), length(FACTOR), length(WEIGHTS));
        let one_constant = usize::from(weights > 0);
        for (name, expected, found) in
            [(FACTOR, columns, factors), (WEIGHTS, self.outputs * (columns + one_constant), weights)]
        {
            if expected != found {
                return Err(ParameterError::Shape {
                    name: name.to_string(),
                    expected: vec![expected],
                    found: vec![found],
                });
            }
        }
        self.parameters = parameters.clone();
        Ok(())
    }

    /// Replaces the weights by the result of a fit on these rows.
    pub(crate) fn set(&mut self, rows: &Standardised, model: &[f64]) {
        let weights: Vec<f32> = model.iter().map(|&weight| weight as f32).collect();
        let mut parameters = Parameters::default();
        parameters.push(MEAN, &[rows.mean.len()], &rows.mean);
        parameters.push(FACTOR, &[rows.factor.len()], &rows.factor);
        parameters.push(WEIGHTS, &[self.outputs, rows.mean.len() + 1], &weights);
        self.parameters = parameters;
    }

    /// Returns each output's scores of all rows; they are 0 before a fit.
    pub(crate) fn scores(&self, columns: &[Vec<f32>]) -> Vec<Vec<f64>> {
        let mut scores = vec![vec![0.0f64; columns.first().map_or(0, Vec::len)]; self.outputs];
        if let (Some(mean), Some(factor), Some(weights)) =
            (self.parameters.get(MEAN), self.parameters.get(FACTOR), self.parameters.get(WEIGHTS))
            && mean.len() == columns.len()
            && factor.len() == columns.len()
            && weights.len() == self.outputs * (columns.len() + 1)
        {
            for (scores, weights) in scores.iter_mut().zip(weights.chunks(columns.len() + 1)) {
                scores.fill(f64::from(weights[columns.len()]));
                for (column, values) in columns.iter().enumerate() {
                    let [mean, factor, weight] =
                        [mean[column], factor[column], weights[column]].map(f64::from);
                    scores
                        .iter_mut()
                        .zip(values)
                        .for_each(|(score, &x)| *score += weight * ((f64::from(x) - mean) * factor));
                }
            }
        }
        scores
    }
}

/// Standardised training rows.
pub(crate) struct Standardised {
    columns: Vec<Vec<f64>>,
    weights: Vec<f64>,
    labels: Vec<f64>,
    mean: Vec<f32>,
    factor: Vec<f32>,
}

impl Standardised {
    pub(crate) fn new(columns: &[Vec<f32>], labels: &[f32], weights: &[f32]) -> Self {
        let mut columns: Vec<Vec<f64>> =
            columns.iter().map(|column| column.iter().map(|&x| f64::from(x)).collect()).collect();
        let mut weights: Vec<f64> = match weights.is_empty() {
            true => vec![1.0; labels.len()],
            false => weights.iter().map(|&weight| f64::from(weight)).collect(),
        };
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let (mut means, mut factors) = (Vec::new(), Vec::new());
        for column in &mut columns {
            let moment = |value: &dyn Fn(f64) -> f64| {
                column.iter().zip(&weights).map(|(&x, weight)| weight * value(x)).sum::<f64>()
            };
            let mean = moment(&|x| x);
            let deviation = moment(&|x| (x - mean).powi(2)).sqrt();
            // In single precision, as the model stores both. A constant column has no effect.
            let (mean, factor) = (
                mean as f32,
                if deviation > (4.0 * f64::from(f32::EPSILON) * mean.abs()).max(1e-30) {
                    (1.0 / deviation) as f32
                } else {
                    0.0
                },
            );
            column.iter_mut().for_each(|x| *x = (*x - f64::from(mean)) * f64::from(factor));
            means.push(mean);
            factors.push(factor);
        }
        let labels = labels.iter().map(|&label| f64::from(label)).collect();
        Self { columns, weights, labels, mean: means, factor: factors }
    }

    /// Improves `model`, the weights of each output with the constant last, until the gradient of the penalised loss is
    /// small. An empty model begins with weights of 0.
    pub(crate) fn fit(&self, objective: Objective, model: &mut Vec<f64>, penalty: f64) {
        model.resize(objective.outputs * (self.columns.len() + 1), 0.0);
        let rows = Rows {
            columns: &self.columns,
            weights: &self.weights,
            labels: &self.labels,
            task: objective.task,
            outputs: objective.outputs,
        };
        rows.fit(model, penalty);
    }
}
