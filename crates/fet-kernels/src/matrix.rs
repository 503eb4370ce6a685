//! Strided views of matrices, and their product.
//!
//! These functions check all bounds before they call the unsafe products of `product.rs`.

use std::cell::RefCell;

use pulp::Arch;

use crate::product::{After, Product};
use crate::transpose::transpose;

/// Read-only view of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// Mutable view of a matrix, stored row by row.
pub(crate) struct ViewMut<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

impl<'a> View<'a> {
    /// `rows` rows of `columns` values, the first values of each `stride`.
    pub(crate) fn strided(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        Self { values, rows, columns, row_stride: stride, column_stride: 1 }
    }

    /// A matrix without gaps.
    pub(crate) fn new(values: &'a [f32], columns: usize) -> Self {
        Self::strided(values, values.len() / columns, columns, columns)
    }

    /// The columns `start..start + count`.
    pub(crate) fn columns(self, start: usize, count: usize) -> Self {
        let values = &self.values[start * self.column_stride..];
        Self { values, columns: count, ..self }
    }

    /// The rows `start..start + count`.
    pub(crate) fn rows(self, start: usize, count: usize) -> Self {
        let values = &self.values[start * self.row_stride..];
        Self { values, rows: count, ..self }
    }

    /// Transposed view.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

impl<'a> ViewMut<'a> {
    /// `rows` rows of `columns` values, the first values of each `stride`.
    pub(crate) fn strided(values: &'a mut [f32], rows: usize, columns: usize, stride: usize) -> Self {
        Self { values, rows, columns, row_stride: stride }
    }

    /// A matrix without gaps.
    pub(crate) fn new(values: &'a mut [f32], columns: usize) -> Self {
        let rows = values.len() / columns;
        Self::strided(values, rows, columns, columns)
    }
}

/// Combination of a product with the values of its target.
#[derive(Clone, Copy)]
pub(crate) enum Into<'a> {
    /// Replaces the values.
    Set,
    /// Adds to the values.
    Add,
    /// Replaces the values by the product plus this row.
    Row(&'a [f32]),
}

thread_local! {
    /// Memory for the transposed copy of a right factor with non-adjacent columns.
    static TRANSPOSED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Sets `target` to `factor` · `left` · `right`, or adds it.
///
/// # Panics
/// If the shapes do not fit, or if a view exceeds its values.
pub(crate) fn multiply(factor: f32, left: View<'_>, right: View<'_>, into: Into<'_>, target: ViewMut<'_>) {
    if right.column_stride == 1 {
        return multiply_rows(Arch::new(), Factors { factor, left, right }, into, target);
    }
    TRANSPOSED.with_borrow_mut(|transposed| {
        pack(right, transposed);
        let right = View::new(&transposed[..right.rows * right.columns], right.columns);
        multiply_rows(Arch::new(), Factors { factor, left, right }, into, target);
    });
}

/// Copies a view's values row by row.
pub(crate) fn pack(view: View<'_>, out: &mut Vec<f32>) {
    let View { values, rows, columns, row_stride, column_stride } = view;
    if out.len() < rows * columns {
        out.resize(rows * columns, 0.0);
    }
    if row_stride == 1 {
        return transpose(values, (columns, rows), column_stride, out);
    }
    for (row, out) in out.chunks_exact_mut(columns).take(rows).enumerate() {
        for (column, out) in out.iter_mut().enumerate() {
            *out = values[row * row_stride + column * column_stride];
        }
    }
}

/// Transposed copy of a matrix without gaps.
pub(crate) fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    let mut out = Vec::new();
    pack(View::new(values, columns).transposed(), &mut out);
    out
}

/// Factors of a product: a number and two matrices.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a> {
    pub(crate) factor: f32,
    pub(crate) left: View<'a>,
    pub(crate) right: View<'a>,
}

/// Multiplies with one vector type; the right factor's columns must be adjacent.
pub(crate) fn multiply_rows(arch: Arch, factors: Factors<'_>, into: Into<'_>, target: ViewMut<'_>) {
    let Factors { factor, left, right } = factors;
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!((k, m, n), (right.rows, target.rows, target.columns), "shapes of a product");
    let last = |rows: usize, row_stride: usize, columns: usize, column_stride: usize| {
        rows.saturating_sub(1) * row_stride + columns.saturating_sub(1) * column_stride
    };
    assert!(m > 0 && n > 0 && k > 0, "a product of nothing");
    assert!(last(m, left.row_stride, k, left.column_stride) < left.values.len(), "left factor");
    assert!(right.column_stride == 1, "columns of the right factor lie side by side");
    assert!(last(k, right.row_stride, n, 1) < right.values.len(), "right factor");
    assert!(n <= target.row_stride, "rows of a product overlap");
    assert!(last(m, target.row_stride, n, 1) < target.values.len(), "product");
    let after = match into {
        Into::Set => After::Set,
        Into::Add => After::Add,
        Into::Row(row) => {
            assert_eq!(row.len(), n, "the row that is added");
            After::Row(row.as_ptr())
        }
    };
    arch.dispatch(Product {
        m,
        n,
        k,
        factor,
        left: left.values.as_ptr(),
        left_strides: (left.row_stride, left.column_stride),
        right: right.values.as_ptr(),
        right_stride: right.row_stride,
        target: target.values.as_mut_ptr(),
        target_stride: target.row_stride,
        after,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_follow_their_definition() {
        let a: Vec<f32> = (0..6).map(|v| v as f32).collect(); // 2 x 3
        let b: Vec<f32> = (0..12).map(|v| v as f32 - 5.0).collect(); // 3 x 4
        let mut c = vec![1.0f32; 2 * 5]; // 2 x 4 in rows of 5
        multiply(2.0, View::new(&a, 3), View::new(&b, 4), Into::Add, ViewMut::strided(&mut c, 2, 4, 5));
        for i in 0..2 {
            for j in 0..4 {
                let sum: f32 = (0..3).map(|k| a[i * 3 + k] * b[k * 4 + j]).sum();
                assert_eq!(c[i * 5 + j], 1.0 + 2.0 * sum);
            }
            assert_eq!(c[i * 5 + 4], 1.0, "the gap is left alone");
        }
        let mut d = vec![7.0f32; 9]; // aᵀ a, 3 x 3
        multiply(1.0, View::new(&a, 3).transposed(), View::new(&a, 3), Into::Set, ViewMut::new(&mut d, 3));
        assert_eq!(d, [9.0, 12.0, 15.0, 12.0, 17.0, 22.0, 15.0, 22.0, 29.0]);
        let mut e = vec![0.0f32; 2]; // the middle column of a, times b's first value
        let column = View::new(&a, 3).columns(1, 1);
        multiply(1.0, column, View::new(&b[..1], 1), Into::Set, ViewMut::new(&mut e, 1));
        assert_eq!(e, [-5.0, -20.0]);
    }

    #[test]
    #[should_panic(expected = "left factor")]
    fn a_view_beyond_its_values_is_refused() {
        let mut c = [0.0f32; 4];
        let short = View::strided(&[1.0, 2.0, 3.0], 2, 2, 2);
        multiply(1.0, short, View::new(&[1.0; 4], 2), Into::Set, ViewMut::new(&mut c, 2));
    }
}
