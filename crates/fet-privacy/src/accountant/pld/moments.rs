//! Cumulants of one kind of release, on nodes coarse enough for frequent evaluation. They only guide the
//! search; `compose` recomputes the result.

use super::pair::{Direction, Pair};
use crate::accountant::event::Event;

/// Releases of one event, in one direction.
pub(super) struct Kind {
    pub(super) pair: Pair,
    pub(super) steps: u64,
    /// Pairs of (loss, probability); the probabilities add up to 1.
    nodes: Vec<(f64, f64)>,
}

/// Maximum number of nodes.
const MOST_NODES: usize = 40_000;
/// Negative logarithm of the smallest weight of a loss that counts. E[L] >= 0 and therefore E[e^{θL}] >= 1.
const NEGLIGIBLE: f64 = 80.0;

impl Kind {
    /// Returns `None` if the allowed number of nodes does not suffice.
    pub(super) fn new(event: &Event, direction: Direction, reach: f64) -> Option<Self> {
        let pair = Pair::new(event, direction, reach);
        Self { pair, steps: event.steps, nodes: Vec::new() }.with_nodes(f64::INFINITY, 0.0)
    }

    /// Replaces the nodes by ones on which the tilted mass e^{θl} m is smooth.
    pub(super) fn for_tilt(self, tilt: f64) -> Option<Self> {
        self.with_nodes(0.5 / tilt, -NEGLIGIBLE / tilt)
    }

    fn with_nodes(mut self, fine: f64, floor: f64) -> Option<Self> {
        let (least, most) = self.pair.ends();
        let all = 2e-3 * (most - least);
        self.nodes = self.pair.nodes((fine.min(all), floor), all, MOST_NODES)?;
        let total: f64 = self.nodes.iter().map(|node| node.1).sum();
        self.nodes.iter_mut().for_each(|node| node.1 /= total);
        Some(self)
    }

    /// Returns log E[e^{θL}] of one release.
    pub(super) fn log_moment(&self, tilt: f64) -> f64 {
        let most = self.nodes.iter().map(|(loss, _)| tilt * loss).fold(f64::NEG_INFINITY, f64::max);
        if most < 30.0 {
            // Near 1, computing the difference from 1 keeps the precision.
            let excess: f64 = self.nodes.iter().map(|(loss, mass)| mass * (tilt * loss).exp_m1()).sum();
            if excess > -0.5 {
                return excess.ln_1p();
            }
        }
        most + self.nodes.iter().map(|(loss, mass)| mass * (tilt * loss - most).exp()).sum::<f64>().ln()
    }

    /// Returns the log moment, or infinity if the nodes are too far apart for this tilt and the error may
    /// matter.
    pub(super) fn resolved_log_moment(&self, tilt: f64) -> f64 {
        let log = self.log_moment(tilt);
        let rough = |pair: &[(f64, f64)]| {
            // The distance of a cell's two nodes gives its width; the larger node and the width give its end.
            let width = 1.7321 * (tilt * (pair[1].0 - pair[0].0)).abs();
            let most = (tilt * pair[0].0).max(tilt * pair[1].0) + 0.2114 * width;
            if width > 1.0 { (pair[0].1 + pair[1].1) * (most - log).exp() } else { 0.0 }
        };
        let share: f64 = self.nodes.chunks_exact(2).map(rough).sum();
        if share < 1e-12 { log } else { f64::INFINITY }
    }

    /// Returns the variance of the tilted loss of one release.
    pub(super) fn variance(&self, tilt: f64) -> f64 {
        let log = self.log_moment(tilt);
        let weights = || self.nodes.iter().map(|&(loss, mass)| (loss, mass * (tilt * loss - log).exp()));
        let center: f64 = weights().map(|(loss, weight)| loss * weight).sum();
        weights().map(|(loss, weight)| weight * (loss - center).powi(2)).sum()
    }
}
