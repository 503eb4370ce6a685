//! One tree, grown leaf by leaf from histograms of the gradients: the split that reduces the loss most comes first.

use std::ops::Range;

use rayon::prelude::*;

use super::bins::{Bins, MOST_BINS};
use super::growth::Growth;

/// Smallest number of rows times columns for which several threads share the work.
const SHARED_WORK: usize = 1 << 15;

/// Sums in the histograms of all leaves at most: 1 GiB. Further leaves sum again when they are split.
const MOST_SUMS: usize = 1 << 26;

/// Sum of the first derivatives of the loss, and of the second derivatives.
type Sums = [f64; 2];

/// A node of a tree: a split or a leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    /// Column of a split, or -1 in a leaf.
    pub(super) column: f32,
    /// Threshold of a split, below which a row goes left, or the output of a leaf.
    pub(super) value: f32,
    /// Place of the left child; the right child follows it.
    pub(super) left: f32,
}

impl Node {
    pub(super) fn leaf(output: f32) -> Self {
        Self { column: -1.0, value: output, left: 0.0 }
    }

    /// Returns the node with its column, if it has one, as `place` gives it.
    pub(super) fn with_column(self, place: impl Fn(usize) -> usize) -> Self {
        if self.column < 0.0 { self } else { Self { column: place(self.column as usize) as f32, ..self } }
    }

    pub(super) fn split(column: usize, threshold: f32, left: usize) -> Self {
        Self { column: column as f32, value: threshold, left: left as f32 }
    }
}

/// Data that a tree is grown on.
pub(super) struct Rows<'a> {
    /// All columns of the table, in bins.
    pub(super) bins: &'a [Bins],
    /// Columns that the tree may use.
    pub(super) columns: &'a [usize],
    /// First and second derivative of the loss by each row's score.
    pub(super) derivatives: &'a [[f32; 2]],
}

/// The best split of a leaf.
#[derive(Clone, Copy)]
struct Split {
    /// Reduction of the loss, doubled.
    gain: f64,
    /// Place of the column in `Rows::columns`.
    column: usize,
    /// Last bin on the left side.
    bin: u8,
    /// Sums of the left side.
    left: Sums,
}

/// A leaf while the tree grows.
struct Leaf {
    /// Rows of the leaf, as a range of the rows in the tree's order.
    rows: Range<usize>,
    /// Sums of its rows.
    sums: Sums,
    /// Number of splits above it.
    depth: usize,
    /// Place of its node.
    node: usize,
    /// Sums by column and bin; empty for a leaf that is not split.
    histogram: Vec<Sums>,
    /// The best split, if one is allowed.
    split: Option<Split>,
}

/// A grown tree, and the leaves of the rows it was grown on.
pub(super) struct Grown {
    /// The nodes; the first is the root.
    pub(super) nodes: Vec<Node>,
    /// Rows and output of each leaf.
    pub(super) leaves: Vec<(Vec<u32>, f32)>,
}

impl Rows<'_> {
    /// Grows a tree on these rows of the table.
    pub(super) fn grow(&self, growth: &Growth, mut order: Vec<u32>) -> Grown {
        let all = 0..order.len();
        let mut sums = [0.0; 2];
        for &row in &order {
            let [first, second] = self.derivatives[row as usize];
            sums[0] += f64::from(first);
            sums[1] += f64::from(second);
        }
        let mut nodes = vec![Node::leaf(0.0)];
        let histogram = self.histogram(&order);
        let mut root = Leaf { rows: all, sums, depth: 0, node: 0, histogram, split: None };
        root.split = self.best_split(growth, &root);
        let mut leaves = vec![root];
        while leaves.len() < growth.leaves {
            let gain = |leaf: &Leaf| leaf.split.map_or(0.0, |split| split.gain);
            // The first of equal leaves, so that the tree does not depend on chance.
            let best = (0..leaves.len()).rev().max_by(|&a, &b| gain(&leaves[a]).total_cmp(&gain(&leaves[b])));
            let Some((best, split)) = best.and_then(|best| Some((best, leaves[best].split?))) else { break };
            let column = self.columns[split.column];
            let Bins { of_rows, thresholds } = &self.bins[column];
            let parent = &mut leaves[best];
            let (start, middle, end) = {
                let rows = &mut order[parent.rows.clone()];
                let (left, right): (Vec<u32>, Vec<u32>) =
                    rows.iter().partition(|&&row| of_rows[row as usize] <= split.bin);
                rows[..left.len()].copy_from_slice(&left);
                rows[left.len()..].copy_from_slice(&right);
                (parent.rows.start, parent.rows.start + left.len(), parent.rows.end)
            };
            let children = nodes.len();
            nodes[parent.node] = Node::split(column, thresholds[usize::from(split.bin)], children);
            nodes.extend([Node::leaf(0.0); 2]);
            let right_sums = [parent.sums[0] - split.left[0], parent.sums[1] - split.left[1]];
            let depth = parent.depth + 1;
            let child = |rows: Range<usize>, sums: Sums, node: usize| Leaf {
                rows,
                sums,
                depth,
                node,
                histogram: Vec::new(),
                split: None,
            };
            let mut left = child(start..middle, split.left, children);
            let mut right = child(middle..end, right_sums, children + 1);
            if depth < growth.depth && leaves.len() + 1 < growth.leaves {
                let mut larger = std::mem::take(&mut leaves[best].histogram);
                let (small, large) = if left.rows.len() <= right.rows.len() {
                    (&mut left, &mut right)
                } else {
                    (&mut right, &mut left)
                };
                small.histogram = self.histogram(&order[small.rows.clone()]);
                if larger.is_empty() {
                    larger = self.histogram(&order[large.rows.clone()]);
                } else {
                    for (sums, small) in larger.iter_mut().zip(&small.histogram) {
                        sums[0] -= small[0];
                        sums[1] -= small[1];
                    }
                }
                large.histogram = larger;
                small.split = self.best_split(growth, small);
                large.split = self.best_split(growth, large);
                let is_kept = (leaves.len() + 1) * self.columns.len() * MOST_BINS <= MOST_SUMS;
                for leaf in [small, large] {
                    if leaf.split.is_none() || !is_kept {
                        leaf.histogram = Vec::new();
                    }
                }
            }
            leaves[best] = left;
            leaves.push(right);
        }
        let leaves = leaves.into_iter().map(|leaf| {
            let [first, second] = leaf.sums;
            let output = if second > 0.0 { (-growth.learning_rate * first / second) as f32 } else { 0.0 };
            nodes[leaf.node] = Node::leaf(output);
            (order[leaf.rows].to_vec(), output)
        });
        let leaves = leaves.collect();
        Grown { nodes, leaves }
    }

    /// Returns the number of bins of a column.
    fn bins_of(&self, column: usize) -> usize {
        self.bins[column].thresholds.len() + 1
    }

    /// Sums the derivatives of these rows by column and bin. Each column is summed by one thread in the order of the rows,
    /// so that the sums do not depend on the number of threads.
    fn histogram(&self, rows: &[u32]) -> Vec<Sums> {
        let derivatives: Vec<[f32; 2]> = rows.iter().map(|&row| self.derivatives[row as usize]).collect();
        let mut all = vec![[0.0; 2]; self.columns.iter().map(|&column| self.bins_of(column)).sum()];
        let mut parts = Vec::with_capacity(self.columns.len());
        let mut rest = all.as_mut_slice();
        for &column in self.columns {
            let (part, others) = rest.split_at_mut(self.bins_of(column));
            parts.push((part, column));
            rest = others;
        }
        // With a place for every value of a byte, the loop needs no check of its bounds.
        let sum = |buffer: &mut [Sums; MOST_BINS], (sums, column): (&mut [Sums], usize)| {
            let used = sums.len();
            buffer[..used].fill([0.0; 2]);
            for (&row, &[first, second]) in rows.iter().zip(&derivatives) {
                let sums = &mut buffer[usize::from(self.bins[column].of_rows[row as usize])];
                sums[0] += f64::from(first);
                sums[1] += f64::from(second);
            }
            sums.copy_from_slice(&buffer[..used]);
        };
        let buffer = || [[0.0; 2]; MOST_BINS];
        if rows.len() * self.columns.len() >= SHARED_WORK {
            parts.into_par_iter().for_each_init(buffer, |buffer, part| sum(buffer, part));
        } else {
            let mut buffer = buffer();
            parts.into_iter().for_each(|part| sum(&mut buffer, part));
        }
        all
    }

    /// Returns the split of a leaf that reduces the loss most, or `None` if each leaves too little on a side.
    fn best_split(&self, growth: &Growth, leaf: &Leaf) -> Option<Split> {
        // Sums of bins without rows are rounding errors of a subtraction.
        let least = growth.leaf_weight.max(1e-9 * leaf.sums[1]);
        if leaf.rows.len() < 2 || leaf.sums[1] < 2.0 * least {
            return None;
        }
        let score = |[first, second]: Sums| if second > 0.0 { first * first / second } else { 0.0 };
        let whole = score(leaf.sums);
        let mut best: Option<Split> = None;
        let mut rest = leaf.histogram.as_slice();
        for (place, &column) in self.columns.iter().enumerate() {
            let (sums, others) = rest.split_at(self.bins_of(column));
            rest = others;
            let mut left = [0.0; 2];
            for (bin, sums) in sums.iter().enumerate().take(self.bins[column].thresholds.len()) {
                left[0] += sums[0];
                left[1] += sums[1];
                let right = [leaf.sums[0] - left[0], leaf.sums[1] - left[1]];
                if left[1] < least || left[1] <= 0.0 {
                    continue;
                }
                if right[1] < least || right[1] <= 0.0 {
                    break;
                }
                let gain = score(left) + score(right) - whole;
                // A gain below the rounding of the sums is none.
                if gain > 1e-9 * whole.max(1e-9) && best.is_none_or(|best| gain > best.gain) {
                    best = Some(Split { gain, column: place, bin: bin as u8, left });
                }
            }
        }
        best
    }
}
