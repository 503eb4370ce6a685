//! A kd-tree over points of M dimensions, split at the median of the widest dimension, with leaves of a few
//! points.
//!
//! Inner nodes are in one array. The points are in another array, in the order of the leaves, so that
//! neighbouring leaves are neighbours in memory.

use rayon::prelude::*;

use super::candidates::{Candidates, Nearest};

/// Maximum number of points of a leaf: enough to justify the cost of a visit.
const LEAF: usize = 24;

pub(super) fn search<const M: usize>(queries: &[f64], records: &[f64], take: usize) -> Nearest {
    let tree = Tree::<M>::new(records.as_chunks::<M>().0);
    let queries = queries.as_chunks::<M>().0;
    // Queries run in the order of their leaves, so that a query finds the previous query's points in the
    // cache.
    let mut order: Vec<(u32, u32)> =
        queries.par_iter().enumerate().map(|(row, query)| (tree.leaf_of(query), row as u32)).collect();
    order.par_sort_unstable();
    let mut found =
        Nearest { indices: vec![0; queries.len() * take], squared: vec![0.0; queries.len() * take] };
    let chunk = 256;
    let sorted: Vec<(Vec<u32>, Vec<f64>)> = order
        .par_chunks(chunk)
        .map_init(
            || Candidates::new(take),
            |candidates, rows| {
                let (mut indices, mut squared) = (vec![0; rows.len() * take], vec![0.0; rows.len() * take]);
                let out = indices.chunks_exact_mut(take).zip(squared.chunks_exact_mut(take));
                for (&(_, row), (indices, squared)) in rows.iter().zip(out) {
                    tree.visit(tree.root, &queries[row as usize], &mut [0.0; M], 0.0, candidates);
                    candidates.drain(indices, squared);
                }
                (indices, squared)
            },
        )
        .collect();
    for (rows, (indices, squared)) in order.chunks(chunk).zip(&sorted) {
        let answers = indices.chunks_exact(take).zip(squared.chunks_exact(take));
        for (&(_, row), (indices, squared)) in rows.iter().zip(answers) {
            let place = row as usize * take;
            found.indices[place..place + take].copy_from_slice(indices);
            found.squared[place..place + take].copy_from_slice(squared);
        }
    }
    found
}

/// A child of a node: an inner node, or the points of a leaf.
#[derive(Clone, Copy)]
enum Child {
    Node(u32),
    Leaf { start: u32, end: u32 },
}

struct Node {
    dimension: u32,
    at: f64,
    below: Child,
    above: Child,
}

struct Tree<const M: usize> {
    root: Child,
    nodes: Vec<Node>,
    points: Vec<[f64; M]>,
    indices: Vec<u32>,
}

impl<const M: usize> Tree<M> {
    fn new(records: &[[f64; M]]) -> Self {
        let mut order: Vec<u32> = (0..records.len() as u32).collect();
        let mut nodes = Vec::with_capacity(2 * records.len() / LEAF + 1);
        let root = build(records, &mut order, 0, &mut nodes);
        let points = order.iter().map(|&index| records[index as usize]).collect();
        Self { root, nodes, points, indices: order }
    }

    fn leaf_of(&self, query: &[f64; M]) -> u32 {
        let mut child = self.root;
        loop {
            match child {
                Child::Leaf { start, .. } => return start,
                Child::Node(node) => {
                    let node = &self.nodes[node as usize];
                    child = if query[node.dimension as usize] < node.at { node.below } else { node.above };
                }
            }
        }
    }

    /// Offers every point of `child` that may be near enough. `offset` is the distance of the query from the
    /// child's box in each dimension, and `squared` is the squared length of `offset`.
    fn visit(
        &self,
        child: Child,
        query: &[f64; M],
        offset: &mut [f64; M],
        squared: f64,
        candidates: &mut Candidates,
    ) {
        match child {
            Child::Leaf { start, end } => {
                let places = start as usize..end as usize;
                for (point, &index) in self.points[places.clone()].iter().zip(&self.indices[places]) {
                    let mut sum = 0.0;
                    for (x, y) in query.iter().zip(point) {
                        sum += (x - y) * (x - y);
                    }
                    candidates.offer(sum, index);
                }
            }
            Child::Node(node) => {
                let node = &self.nodes[node as usize];
                let dimension = node.dimension as usize;
                let beyond = query[dimension] - node.at;
                let (near, far) =
                    if beyond < 0.0 { (node.below, node.above) } else { (node.above, node.below) };
                self.visit(near, query, offset, squared, candidates);
                let old = offset[dimension];
                let further = squared - old * old + beyond * beyond;
                // Rounding must not hide a point at exactly the distance of the worst candidate so far.
                if further * (1.0 - 1e-12) <= candidates.bound {
                    offset[dimension] = beyond;
                    self.visit(far, query, offset, further, candidates);
                    offset[dimension] = old;
                }
            }
        }
    }
}

fn build<const M: usize>(
    records: &[[f64; M]],
    order: &mut [u32],
    start: u32,
    nodes: &mut Vec<Node>,
) -> Child {
    let leaf = Child::Leaf { start, end: start + order.len() as u32 };
    if order.len() <= LEAF {
        return leaf;
    }
    let (mut low, mut high) = ([f64::INFINITY; M], [f64::NEG_INFINITY; M]);
    for &index in order.iter() {
        for ((low, high), x) in low.iter_mut().zip(&mut high).zip(&records[index as usize]) {
            *low = low.min(*x);
            *high = high.max(*x);
        }
    }
    let width = |dimension: &usize| high[*dimension] - low[*dimension];
    let dimension = (0..M).max_by(|a, b| width(a).total_cmp(&width(b))).unwrap_or(0);
    if width(&dimension) <= 0.0 {
        // All points are equal, and no plane separates them.
        return leaf;
    }
    let middle = order.len() / 2;
    let coordinate = |index: u32| records[index as usize][dimension];
    order.select_nth_unstable_by(middle, |&a, &b| coordinate(a).total_cmp(&coordinate(b)));
    // Points on the plane may be on either side, since both sides touch it.
    let at = coordinate(order[middle]);
    let number = nodes.len();
    nodes.push(Node { dimension: dimension as u32, at, below: leaf, above: leaf });
    let (left, right) = order.split_at_mut(middle);
    let below = build(records, left, start, nodes);
    let above = build(records, right, start + middle as u32, nodes);
    nodes[number].below = below;
    nodes[number].above = above;
    Child::Node(number as u32)
}
