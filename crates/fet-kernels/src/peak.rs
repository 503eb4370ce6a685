//! How fast this machine multiplies large matrices: the yardstick for everything else here.

use std::time::Instant;

use rayon::prelude::*;

use crate::matrix::{Into, View, ViewMut, multiply};

/// 10⁹ floating-point operations per second of single-precision matrix products, one of 1024³ on every thread, the
/// best of several rounds.
pub fn peak() -> f64 {
    const SIZE: usize = 1024;
    let factors: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 7) as f32).collect();
    let threads = rayon::current_num_threads();
    let mut products = vec![0.0f32; threads * SIZE * SIZE];
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let start = Instant::now();
        products.par_chunks_mut(SIZE * SIZE).for_each(|product| {
            let factor = View::new(&factors, SIZE);
            multiply(1.0, factor, factor, Into::Set, ViewMut::new(product, SIZE));
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    threads as f64 * 2.0 * (SIZE as f64).powi(3) / best / 1e9
}
