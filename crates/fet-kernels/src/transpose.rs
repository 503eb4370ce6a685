//! Transposition in blocks of sixteen by sixteen in registers, on processors with vectors of sixteen.

/// The side of a block.
#[cfg(target_arch = "x86_64")]
pub(crate) const SIDE: usize = 16;

/// Transposes `values` [rows, columns], with rows `stride` apart, into `out` [columns, rows].
///
/// # Panics
/// If a row exceeds its values, or if `out` is too small.
pub(crate) fn transpose(values: &[f32], (rows, columns): (usize, usize), stride: usize, out: &mut [f32]) {
    assert!(rows > 0 && columns > 0 && (rows - 1) * stride + columns <= values.len(), "rows to transpose");
    assert!(rows * columns <= out.len(), "memory for the transposed rows");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        #[expect(
            unsafe_code,
            reason = "the processor supports these instructions, and the bounds are checked above"
        )]
        // SAFETY: the processor supports these instructions, as checked above.
        return unsafe { vectors::transpose(values, (rows, columns), stride, out) };
    }
    one_by_one(values, (rows, columns), stride, out);
}

fn one_by_one(values: &[f32], (rows, columns): (usize, usize), stride: usize, out: &mut [f32]) {
    for (row, values) in values.chunks(stride).take(rows).enumerate() {
        for (column, value) in values[..columns].iter().enumerate() {
            out[column * rows + row] = *value;
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors {
    //! AVX-512 version.

    use std::arch::x86_64::{
        __m512, _mm512_castpd_ps, _mm512_castps_pd, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
        _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd,
        _mm512_unpacklo_ps,
    };

    use super::SIDE;

    /// Transposes like [`super::transpose`], whose checks the caller must have made.
    #[expect(unsafe_code, reason = "loads and stores of these instructions take pointers")]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn transpose(
        values: &[f32],
        (rows, columns): (usize, usize),
        stride: usize,
        out: &mut [f32],
    ) {
        for first_row in (0..rows).step_by(SIDE) {
            let high = (rows - first_row).min(SIDE);
            for first in (0..columns).step_by(SIDE) {
                let wide = (columns - first).min(SIDE);
                let mut block = [_mm512_setzero_ps(); SIDE];
                for (row, place) in block.iter_mut().enumerate().take(high) {
                    let mask = ((1u32 << wide) - 1) as u16;
                    // SAFETY: the row is below `rows`, and the mask ends with its columns.
                    *place = unsafe {
                        _mm512_maskz_loadu_ps(mask, values.as_ptr().add((first_row + row) * stride + first))
                    };
                }
                let columns_of_block = block_of_sixteen(block);
                for (column, value) in columns_of_block.into_iter().enumerate().take(wide) {
                    let mask = ((1u32 << high) - 1) as u16;
                    // SAFETY: the column is below `columns`, and the mask ends with its rows.
                    unsafe {
                        _mm512_mask_storeu_ps(
                            out.as_mut_ptr().add((first + column) * rows + first_row),
                            mask,
                            value,
                        );
                    }
                }
            }
        }
    }

    /// Transposes a block of sixteen by sixteen.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn block_of_sixteen(rows: [__m512; SIDE]) -> [__m512; SIDE] {
        // Pairs of rows, then fours: each quarter of a vector of `fours` holds one column of four rows.
        let mut pairs = rows;
        for i in (0..SIDE).step_by(2) {
            pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
        }
        let mut fours = rows;
        for i in (0..SIDE).step_by(4) {
            let (a, b) = (_mm512_castps_pd(pairs[i]), _mm512_castps_pd(pairs[i + 1]));
            let (c, d) = (_mm512_castps_pd(pairs[i + 2]), _mm512_castps_pd(pairs[i + 3]));
            fours[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
            fours[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
            fours[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
            fours[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
        }
        let mut columns = rows;
        for c in 0..4 {
            let even = _mm512_shuffle_f32x4::<0x88>(fours[c], fours[4 + c]);
            let odd = _mm512_shuffle_f32x4::<0xdd>(fours[c], fours[4 + c]);
            let more_even = _mm512_shuffle_f32x4::<0x88>(fours[8 + c], fours[12 + c]);
            let more_odd = _mm512_shuffle_f32x4::<0xdd>(fours[8 + c], fours[12 + c]);
            columns[c] = _mm512_shuffle_f32x4::<0x88>(even, more_even);
            columns[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd, more_odd);
            columns[8 + c] = _mm512_shuffle_f32x4::<0xdd>(even, more_even);
            columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(odd, more_odd);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_where_its_row_and_column_are_exchanged() {
        for (rows, columns, more) in
            [(1, 1, 0), (3, 17, 2), (16, 16, 0), (25, 100, 5), (100, 25, 275), (33, 1, 1)]
        {
            let stride = columns + more;
            let values: Vec<f32> = (0..rows * stride).map(|value| value as f32).collect();
            for function in [transpose, one_by_one] {
                let mut out = vec![-1.0f32; rows * columns + 1];
                function(&values, (rows, columns), stride, &mut out);
                for row in 0..rows {
                    for column in 0..columns {
                        assert_eq!(
                            out[column * rows + row],
                            values[row * stride + column],
                            "{rows} x {columns}"
                        );
                    }
                }
                assert_eq!(out[rows * columns], -1.0, "a write beyond the end");
            }
        }
    }
}
