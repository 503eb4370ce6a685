//! Boosting one step at a time: some columns stay the same, and others change from step to step.

use super::bins::Bins;
use super::growth::Growth;
use super::tree::{Node, Rows};
use super::{Sample, varying};

/// The training rows of a step.
pub(crate) struct Stepwise {
    growth: Growth,
    seed: u64,
    /// Number of columns that stay the same, which come first.
    own: usize,
    columns: Vec<Vec<f32>>,
    bins: Vec<Bins>,
}

impl Stepwise {
    /// Divides columns that stay the same into bins; `seed` draws each step's sample of rows and columns.
    pub(crate) fn new(growth: Growth, seed: u64, columns: Vec<Vec<f32>>) -> Self {
        Self { growth, seed, own: columns.len(), bins: Bins::of_columns(&columns), columns }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Replaces the columns of the last step after those that stay the same.
    pub(crate) fn set_others(&mut self, others: Vec<Vec<f32>>) {
        self.columns.truncate(self.own);
        self.bins.truncate(self.own);
        self.bins.extend(Bins::of_columns(&others));
        self.columns.extend(others);
    }

    /// Grows a tree of a step on a sample of the rows whose second derivative is not 0, and adds its output to the
    /// scores of all rows. `place` gives the column of a node from its place among the present columns.
    pub(crate) fn grow(
        &self,
        step: usize,
        derivatives: &[[f32; 2]],
        place: impl Fn(usize) -> usize,
        scores: &mut [f64],
    ) -> Vec<Node> {
        let varying = varying(&self.bins);
        if varying.is_empty() {
            return vec![Node::leaf(0.0)];
        }
        let mut sample = Sample::draw(&self.growth, self.seed, step, self.rows(), &varying);
        sample.retain(|row| derivatives[row][1] != 0.0);
        let rows = Rows { bins: &self.bins, columns: &sample.columns, derivatives };
        let nodes = sample.grow(&self.growth, &rows, &self.columns, scores);
        nodes.into_iter().map(|node| node.with_column(&place)).collect()
    }

    /// Divides all rows by the columns that stay the same, so that the derivatives of different parts differ most.
    /// Returns at most `count` of the parts.
    pub(crate) fn regions(&self, count: usize, step: usize, derivatives: &[[f32; 2]]) -> Vec<Vec<u32>> {
        let varying = varying(&self.bins[..self.own]);
        if varying.is_empty() || count == 0 {
            return Vec::new();
        }
        let growth =
            Growth { leaves: count.max(2), row_share: 1.0, column_share: 0.5, ..self.growth.clone() };
        let sample = Sample::draw(&growth, self.seed.wrapping_add(1), step, self.rows(), &varying);
        let rows = Rows { bins: &self.bins, columns: &sample.columns, derivatives };
        let leaves = rows.grow(&growth, sample.rows).leaves;
        let parts = leaves.into_iter().map(|(rows, _)| rows);
        // One part of all rows would repeat the proposal of all rows.
        parts.filter(|part| part.len() < self.rows()).take(count).collect()
    }
}
