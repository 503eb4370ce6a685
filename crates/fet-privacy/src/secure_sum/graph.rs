//! Which parties share masks: a circulant graph, k-regular and k-connected.
//!
//! The parties that take part stand in a circle, each linked to the k/2 next on either side (a Harary graph). It stays
//! connected whichever k−1 parties are taken out (Harary 1962). That is what secrecy needs: if t < k parties collude
//! with the receiver, the others are connected by masks that the colluders do not know, so that of the others'
//! values they learn the sum and nothing else. No randomness and no probability of failure is involved.

/// A k-regular graph on n parties; complete where n <= k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskGraph {
    parties: usize,
    reach: usize,
}

impl MaskGraph {
    /// `degree` is rounded up to an even number.
    pub fn new(parties: usize, degree: usize) -> Self {
        Self { parties, reach: degree.max(2).div_ceil(2) }
    }

    /// The parties that `party` shares masks with; all numbers are places in the circle.
    pub fn neighbours(self, party: usize) -> Vec<usize> {
        let n = self.parties;
        if 2 * self.reach + 1 >= n {
            return (0..n).filter(|&other| other != party).collect();
        }
        (1..=self.reach).flat_map(|step| [(party + step) % n, (party + n - step) % n]).collect()
    }

    /// How many colluding parties leave the others connected: as many as it has neighbours, less one.
    pub fn tolerates(self) -> usize {
        self.neighbours(0).len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the parties that `gone` does not name are connected.
    fn connected(graph: MaskGraph, gone: u32) -> bool {
        let left: Vec<usize> = (0..graph.parties).filter(|party| gone >> party & 1 == 0).collect();
        let mut seen = 1u32 << left[0];
        let mut queue = vec![left[0]];
        while let Some(party) = queue.pop() {
            for next in graph.neighbours(party) {
                if gone >> next & 1 == 0 && seen >> next & 1 == 0 {
                    seen |= 1 << next;
                    queue.push(next);
                }
            }
        }
        left.iter().all(|party| seen >> party & 1 == 1)
    }

    #[test]
    fn whichever_tolerated_number_colludes_the_rest_is_connected() {
        for parties in 2..=11 {
            for degree in [2, 3, 4, 6, 8, 20] {
                let graph = MaskGraph::new(parties, degree);
                for party in 0..parties {
                    for other in graph.neighbours(party) {
                        assert!(graph.neighbours(other).contains(&party), "{graph:?} is symmetric");
                    }
                    assert_eq!(graph.neighbours(party).len(), graph.neighbours(0).len(), "{graph:?}");
                }
                let tolerated = graph.tolerates();
                assert!(tolerated + 1 >= degree.min(parties - 1), "{graph:?}");
                for gone in 0u32..1 << parties {
                    if gone.count_ones() as usize <= tolerated.min(parties - 1) {
                        assert!(connected(graph, gone), "{graph:?} without {gone:b}");
                    }
                }
            }
        }
    }
}
