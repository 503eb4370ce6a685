//! How fast this machine multiplies large matrices: the yardstick for everything else here, by a library that is made for it.

use std::time::Instant;

use gemm::Parallelism;
use rayon::prelude::*;

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
            let (to, from, row) = (product.as_mut_ptr(), factors.as_ptr(), SIZE as isize);
            #[expect(unsafe_code, reason = "the library takes pointers")]
            // SAFETY: all three are whole matrices of SIZE rows and columns, and the product is borrowed exclusively.
            unsafe {
                gemm::gemm(
                    SIZE,
                    SIZE,
                    SIZE,
                    to,
                    1,
                    row,
                    false,
                    from,
                    1,
                    row,
                    from,
                    1,
                    row,
                    0.0f32,
                    1.0f32,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    threads as f64 * 2.0 * (SIZE as f64).powi(3) / best / 1e9
}
