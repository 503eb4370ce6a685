//! Graph of the parties that share masks: a circulant graph, k-regular and k-connected.
//!
//! The parties that take part form a circle, each linked to the next k/2 on either side (a Harary graph). The
//! graph stays connected if any k−1 parties are removed (Harary 1962), as secrecy requires. If t < k parties
//! collude with the receiver, masks that the colluders do not know connect the others. The colluders then
//! learn only the sum of the others' values. The graph needs no randomness and cannot fail by chance.

/// k-regular graph on n parties; complete if n <= k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskGraph {
    parties: usize,
    reach: usize,
}

impl MaskGraph {
    /// Creates the graph; `degree` is rounded up to an even number.
    pub fn new(parties: usize, degree: usize) -> Self {
        Self { parties, reach: degree.max(2).div_ceil(2) }
    }

    /// Returns the parties that `party` shares masks with; all numbers are places in the circle.
    pub fn neighbours(self, party: usize) -> Vec<usize> {
        let n = self.parties;
        if 2 * self.reach + 1 >= n {
            return (0..n).filter(|&other| other != party).collect();
        }
        (1..=self.reach).flat_map(|step| [(party + step) % n, (party + n - step) % n]).collect()
    }

    /// Returns the number of colluding parties that leave the others connected: the number of neighbours
    /// minus one.
    pub fn tolerates(self) -> usize {
        self.neighbours(0).len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if the parties outside `dropped_out` are connected.
    fn connected(graph: MaskGraph, dropped_out: u32) -> bool {
        let left: Vec<usize> = (0..graph.parties).filter(|party| dropped_out >> party & 1 == 0).collect();
        let mut seen = 1u32 << left[0];
        let mut queue = vec![left[0]];
        while let Some(party) = queue.pop() {
            for next in graph.neighbours(party) {
                if dropped_out >> next & 1 == 0 && seen >> next & 1 == 0 {
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
                for dropped_out in 0u32..1 << parties {
                    if dropped_out.count_ones() as usize <= tolerated.min(parties - 1) {
                        assert!(connected(graph, dropped_out), "{graph:?} without {dropped_out:b}");
                    }
                }
            }
        }
    }
}
