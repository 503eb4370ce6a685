//! Products of matrices with about a hundred rows: registers hold tiles of the result, and neither factor is copied.
//!
//! A tile is M rows by N vectors. Each step along the sum loads N vectors of the right factor and M numbers of the left, one after another,
//! and adds M·N products. Every element is one ordered sum, with fused multiply-adds if the processor has them. Its value does not
//! depend on the width of vectors or on the number of rows.

use pulp::{MemMask, Simd, WithSimd};

/// Combination of a product with the values of its target.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// Replaces the values.
    Set,
    /// Adds to the values.
    Add,
    /// Replaces the values by the product plus this row; the pointer refers to one value per column.
    Row(*const f32),
}

/// Product of [m, k] and [k, n]; pointers and strides stay within the matrices.
pub(crate) struct Product {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) factor: f32,
    pub(crate) left: *const f32,
    /// Strides between rows and between columns.
    pub(crate) left_strides: (usize, usize),
    pub(crate) right: *const f32,
    /// Stride between rows; columns are adjacent.
    pub(crate) right_stride: usize,
    pub(crate) target: *mut f32,
    pub(crate) target_stride: usize,
    pub(crate) after: After,
}

/// Unrolls `body` for each value of a constant below a limit.
macro_rules! unrolled {
    ($at:ident < $count:ident, $body:expr) => {
        unrolled!($at < $count, $body, 0 1 2 3)
    };
    ($at:ident < $count:ident, $body:expr, $($value:literal)*) => {
        $(if $value < $count {
            const $at: usize = $value;
            $body;
        })*
    };
}

impl WithSimd for Product {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (lanes, many) = (S::F32_LANES, S::REGISTER_COUNT >= 32);
        // With few registers a mask takes one of them, so the columns that do not fill a vector form a separate panel.
        let whole = if many { self.n.div_ceil(lanes) } else { self.n / lanes };
        let (mut column, mut vectors) = (0, whole);
        while vectors > 0 {
            // Panels have about the same width, so that the last one is not thin.
            let panel = vectors.div_ceil(vectors.div_ceil(if many { 4 } else { 2 }));
            let is_masked = column + panel * lanes > self.n;
            match (panel, is_masked) {
                (1, false) => self.panel::<S, 1, false>(simd, column),
                (2, false) => self.panel::<S, 2, false>(simd, column),
                (3, false) => self.panel::<S, 3, false>(simd, column),
                (_, false) => self.panel::<S, 4, false>(simd, column),
                (1, true) => self.panel::<S, 1, true>(simd, column),
                (2, true) => self.panel::<S, 2, true>(simd, column),
                (3, true) => self.panel::<S, 3, true>(simd, column),
                (_, true) => self.panel::<S, 4, true>(simd, column),
            }
            column += panel * lanes;
            vectors -= panel;
        }
        if column < self.n {
            self.panel::<S, 1, true>(simd, column);
        }
    }
}

impl Product {
    /// N vectors of columns, all rows; a masked last vector may exceed the columns.
    #[inline(always)]
    fn panel<S: Simd, const N: usize, const MASKED: bool>(&self, simd: S, column: usize) {
        let left = (self.n - column).min(N * S::F32_LANES) - (N - 1) * S::F32_LANES;
        let mask = MemMask::new(simd.mask_between_m32s(0, left as u32).mask());
        let mut row = 0;
        macro_rules! rows {
            ($m:literal) => {
                while self.m - row >= $m {
                    self.tile::<S, $m, N, MASKED>(simd, row, column, mask);
                    row += $m;
                }
            };
        }
        match (S::REGISTER_COUNT >= 32, N) {
            (true, 1) => rows!(16),
            (true, 2) => rows!(12),
            (true, 3) => rows!(8),
            (false, 1) => rows!(8),
            _ => rows!(6),
        }
        rows!(4);
        rows!(2);
        rows!(1);
    }

    /// M rows of N vectors.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const N: usize, const MASKED: bool>(
        &self,
        simd: S,
        row: usize,
        column: usize,
        mask: MemMask<S::m32s>,
    ) {
        let lanes = S::F32_LANES;
        let (down, along) = self.left_strides;
        // One variable per row: the compiler does not keep an array of 24 vectors in registers.
        let zero = [simd.splat_f32s(0.0); N];
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [zero; 8];
        let [mut i, mut j, mut k, mut l, mut m, mut n, mut o, mut p] = [zero; 8];
        macro_rules! rows {
            ($row:ident, $sums:ident, $body:expr) => {
                rows!($row, $sums, $body, a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9 k 10 l 11 m 12 n 13 o 14 p 15)
            };
            ($row:ident, $sums:ident, $body:expr, $($name:ident $value:literal)*) => {
                $(if $value < M {
                    const $row: usize = $value;
                    let $sums = &mut $name;
                    $body;
                })*
            };
        }
        #[expect(unsafe_code, reason = "bounds are checked once for the whole product, where it is made")]
        // SAFETY: `Product` promises that rows and columns below m, n and k are within the matrices. A mask that ends with the columns
        // limits the last vector of a masked panel; all other vectors are whole.
        unsafe {
            let read = |place: *const f32, is_whole: bool| {
                if is_whole {
                    place.cast::<S::f32s>().read_unaligned()
                } else {
                    simd.mask_load_ptr_f32s(mask, place)
                }
            };
            let mut left = self.left.add(row * down);
            let mut right = self.right.add(column);
            for _ in 0..self.k {
                let mut values = [simd.splat_f32s(0.0); N];
                unrolled!(J < N, values[J] = read(right.add(J * lanes), !MASKED || J + 1 < N));
                rows!(I, sums, {
                    let number = simd.splat_f32s(*left.add(I * down));
                    unrolled!(J < N, sums[J] = simd.mul_add_e_f32s(number, values[J], sums[J]));
                });
                left = left.wrapping_add(along);
                right = right.wrapping_add(self.right_stride);
            }
            let factor = simd.splat_f32s(self.factor);
            rows!(I, sums, {
                let place = self.target.add((row + I) * self.target_stride + column);
                unrolled!(J < N, {
                    let (place, is_whole) = (place.add(J * lanes), !MASKED || J + 1 < N);
                    let mut value = simd.mul_f32s(sums[J], factor);
                    match self.after {
                        After::Set => {}
                        After::Add => value = simd.add_f32s(read(place, is_whole), value),
                        After::Row(row) => {
                            value = simd.add_f32s(read(row.add(column + J * lanes), is_whole), value);
                        }
                    }
                    if is_whole {
                        place.cast::<S::f32s>().write_unaligned(value);
                    } else {
                        simd.mask_store_ptr_f32s(mask, place, value);
                    }
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;

    use super::*;

    /// Every vector type computes the product by definition, and leaves the gaps between rows unchanged.
    #[test]
    fn every_kind_of_vectors_gives_the_product() {
        let number = |seed: usize, at: usize| ((seed * 7 + at * 13) % 17) as f32 - 8.0;
        let sizes = [1, 2, 3, 7, 8, 9, 15, 16, 17, 25, 31, 33, 48, 64, 65, 100];
        for (case, &n) in sizes.iter().enumerate() {
            let (m, k) = (sizes[(case * 5 + 3) % sizes.len()], sizes[(case * 3 + 1) % sizes.len()]);
            for (transposed, added) in [(false, 0), (true, 1), (false, 2)] {
                let left: Vec<f32> = (0..(m + 3) * (k + 3)).map(|at| number(1, at)).collect();
                let right: Vec<f32> = (0..k * (n + 2)).map(|at| number(2, at)).collect();
                let before: Vec<f32> = (0..m * (n + 5)).map(|at| number(3, at)).collect();
                let row: Vec<f32> = (0..n).map(|at| number(4, at)).collect();
                let strides = if transposed { (1, m + 3) } else { (k + 3, 1) };
                let run = |how: &dyn Fn(Product)| {
                    let mut target = before.clone();
                    how(Product {
                        m,
                        n,
                        k,
                        factor: 0.5,
                        left: left.as_ptr(),
                        left_strides: strides,
                        right: right.as_ptr(),
                        right_stride: n + 2,
                        target: target.as_mut_ptr(),
                        target_stride: n + 5,
                        after: [After::Set, After::Add, After::Row(row.as_ptr())][added],
                    });
                    for at in 0..m * (n + 5) {
                        let (i, j) = (at / (n + 5), at % (n + 5));
                        // Sums of small integers are exact.
                        let term = |p: usize| left[i * strides.0 + p * strides.1] * right[p * (n + 2) + j];
                        let expected = match added {
                            _ if j >= n => before[at],
                            0 => 0.5 * (0..k).map(term).sum::<f32>(),
                            1 => before[at] + 0.5 * (0..k).map(term).sum::<f32>(),
                            _ => row[j] + 0.5 * (0..k).map(term).sum::<f32>(),
                        };
                        assert_eq!(target[at], expected, "[{m}, {k}] by [{k}, {n}], row {i}, column {j}");
                    }
                };
                run(&|product| Scalar.vectorize(product));
                #[cfg(target_arch = "x86_64")]
                {
                    if let Some(simd) = pulp::x86::V3::try_new() {
                        run(&|product| Simd::vectorize(simd, product));
                    }
                    if let Some(simd) = pulp::x86::V4::try_new() {
                        run(&|product| Simd::vectorize(simd, product));
                    }
                }
            }
        }
    }
}
