//! The K best of many candidates, without storing the rest.
//!
//! The order is total: by score, highest first, then by index, lowest first. The result is therefore
//! independent of the order of the candidates and of the number of threads.

/// Keeps the K best (score, index) pairs offered.
#[derive(Debug, Clone)]
pub struct Top {
    capacity: usize,
    /// Heap with the worst pair on top.
    heap: Vec<(f32, u32)>,
}

/// Returns true if `a` is better than `b`.
#[inline]
fn better(a: (f32, u32), b: (f32, u32)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)
}

impl Top {
    /// Returns an empty collection with room for `capacity` pairs.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, heap: Vec::with_capacity(capacity) }
    }

    /// Returns the score that a candidate must reach to be kept, or -∞ while there is room.
    #[inline]
    pub fn bar(&self) -> f32 {
        if self.heap.len() < self.capacity {
            return f32::NEG_INFINITY;
        }
        self.heap.first().map_or(f32::INFINITY, |worst| worst.0)
    }

    /// Returns true if the capacity is above 0.
    #[inline]
    pub fn wants(&self) -> bool {
        self.capacity > 0
    }

    /// Returns true if the collection is full.
    pub fn is_full(&self) -> bool {
        self.heap.len() == self.capacity
    }

    /// Keeps the pair if it is among the K best so far.
    pub fn offer(&mut self, score: f32, index: u32) {
        let pair = (score, index);
        if self.heap.len() < self.capacity {
            self.heap.push(pair);
            let mut place = self.heap.len() - 1;
            while place > 0 && better(self.heap[(place - 1) / 2], self.heap[place]) {
                self.heap.swap(place, (place - 1) / 2);
                place = (place - 1) / 2;
            }
        } else if self.capacity > 0 && better(pair, self.heap[0]) {
            self.heap[0] = pair;
            let mut place = 0;
            loop {
                let (left, right) = (2 * place + 1, 2 * place + 2);
                let mut worst = place;
                for child in [left, right] {
                    if child < self.heap.len() && better(self.heap[worst], self.heap[child]) {
                        worst = child;
                    }
                }
                if worst == place {
                    break;
                }
                self.heap.swap(place, worst);
                place = worst;
            }
        }
    }

    /// Keeps the pair if it is among the K best so far and its index is new.
    pub fn offer_once(&mut self, score: f32, index: u32) {
        if score >= self.bar() && self.heap.iter().all(|&(_, own)| own != index) {
            self.offer(score, index);
        }
    }

    /// Returns the pairs, best first.
    pub fn into_sorted(mut self) -> Vec<(f32, u32)> {
        sort(&mut self.heap);
        self.heap
    }
}

/// Sorts pairs of score and index, best first.
pub fn sort(pairs: &mut [(f32, u32)]) {
    pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_best_in_any_order() {
        let pairs: Vec<(f32, u32)> = (0..500u32).map(|i| ((i * 7_919 % 101) as f32, i)).collect();
        let mut sorted = pairs.clone();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for order in [pairs.clone(), pairs.iter().rev().copied().collect(), sorted.clone()] {
            let mut top = Top::new(37);
            order.iter().for_each(|&(score, index)| top.offer(score, index));
            assert_eq!(top.into_sorted(), sorted[..37]);
        }
    }
}
