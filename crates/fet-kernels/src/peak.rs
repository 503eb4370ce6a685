//! Speed of matrix products on this machine: large ones by an optimised library, as the baseline of all benchmarks, and small ones
//! by the library and by this crate.

use std::time::Instant;

use gemm::Parallelism;
use pulp::Arch;
use rayon::prelude::*;

use crate::matrix::{Factors, Into, View, ViewMut, multiply_rows};

/// 10⁹ floating-point operations per second of single-precision matrix products, one of 1024³ on every thread, the
/// best of several rounds.
pub fn peak() -> f64 {
    const SIZE: usize = 1024;
    let factors: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 7) as f32).collect();
    let threads = rayon::current_num_threads();
    let mut products = vec![0.0f32; threads * SIZE * SIZE];
    let seconds = fastest(8, || {
        products
            .par_chunks_mut(SIZE * SIZE)
            .for_each(|product| by_library([SIZE; 3], &factors, &factors, product));
    });
    threads as f64 * 2.0 * (SIZE as f64).powi(3) / seconds / 1e9
}

/// Speed of a product [m, k] · [k, n] in cache on one thread, in 10⁹ floating-point operations per second: of this crate with
/// each vector type of this processor, and of the library, which takes the widest.
pub fn products([m, k, n]: [usize; 3]) -> Vec<(&'static str, f64)> {
    let (left, right, mut product) = (vec![0.5f32; m * k], vec![0.25f32; k * n], vec![0.0f32; m * n]);
    const TIMES: usize = 50;
    let operations = (2 * m * k * n * TIMES) as f64 / 1e9;
    let mut speeds: Vec<(&str, f64)> = Vec::new();
    for (name, arch) in kinds() {
        let seconds = fastest(40, || {
            for _ in 0..TIMES {
                let target = ViewMut::new(&mut product, n);
                let factors = Factors { factor: 1.0, left: View::new(&left, k), right: View::new(&right, n) };
                multiply_rows(arch, factors, Into::Set, target);
            }
        });
        speeds.push((name, operations / seconds));
    }
    let seconds = fastest(40, || (0..TIMES).for_each(|_| by_library([m, k, n], &left, &right, &mut product)));
    speeds.push(("library", operations / seconds));
    speeds
}

/// Vector types of this processor.
fn kinds() -> Vec<(&'static str, Arch)> {
    let mut kinds = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        kinds.extend(pulp::x86::V4::try_new().map(|simd| ("AVX-512", Arch::V4(simd))));
        kinds.extend(pulp::x86::V3::try_new().map(|simd| ("AVX2", Arch::V3(simd))));
    }
    if kinds.is_empty() {
        kinds.push(("this processor's", Arch::new()));
    }
    kinds
}

/// Shortest time of `work` over this many rounds, in seconds.
fn fastest(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// `product` [m, n] ← `left` [m, k] · `right` [k, n].
fn by_library([m, k, n]: [usize; 3], left: &[f32], right: &[f32], product: &mut [f32]) {
    assert_eq!((left.len(), right.len(), product.len()), (m * k, k * n, m * n), "whole matrices");
    let row = |columns: usize| columns as isize;
    #[expect(unsafe_code, reason = "the library takes pointers")]
    // SAFETY: all three are whole matrices, and the product is borrowed exclusively.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            product.as_mut_ptr(),
            1,
            row(n),
            false,
            left.as_ptr(),
            1,
            row(k),
            right.as_ptr(),
            1,
            row(n),
            0.0f32,
            1.0f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
