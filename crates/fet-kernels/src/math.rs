//! Elementary functions that the compiler can vectorise, and the run-time choice of vector instructions.
//!
//! Multiplications and additions are fused only where `mul_add` says so, and every processor computes the same bits. Without the
//! instruction FMA, which most x86 processors since 2013 have, `mul_add` is a slow call.

use pulp::Arch;

/// Runs `work` with the widest vector instructions of this processor; its callees must be inlined.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}

/// Number of lanes of a sum, on every processor.
pub(crate) const LANES: usize = 16;

/// Σ f(x, y, …) over the first `count` values of each column.
#[inline(always)]
pub(crate) fn sum<const N: usize>(count: usize, columns: [&[f32]; N], f: impl Fn([f32; N]) -> f32) -> f32 {
    fold(count, columns, 0.0, f, |a, b| a + b)
}

/// The largest f(x, y, …) over the first `count` values of each column.
#[inline(always)]
pub(crate) fn largest<const N: usize>(
    count: usize,
    columns: [&[f32]; N],
    f: impl Fn([f32; N]) -> f32,
) -> f32 {
    fold(count, columns, f32::NEG_INFINITY, f, larger)
}

/// The larger value; `a` if one of them is not a number.
#[inline(always)]
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Folds `count` values, sixteen lanes at a time.
///
/// Arrays of lanes with constant indices stay in a register. Columns may go on after `count` values; then the last lanes are read
/// whole, and those beyond `count` are ignored.
#[inline(always)]
fn fold<const N: usize>(
    count: usize,
    columns: [&[f32]; N],
    start: f32,
    f: impl Fn([f32; N]) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let (whole, rest) = (count / LANES, count % LANES);
    let mut lanes = [start; LANES];
    let parts = columns.map(|column| column.as_chunks::<LANES>());
    for chunk in 0..whole {
        let values: [&[f32; LANES]; N] = std::array::from_fn(|column| &parts[column].0[chunk]);
        for lane in 0..LANES {
            lanes[lane] = join(lanes[lane], f(values.map(|values| values[lane])));
        }
    }
    if rest > 0 {
        let mut spare = [[0.0; LANES]; N];
        let mut values = [&[0.0; LANES]; N];
        for ((value, spare), column) in values.iter_mut().zip(&mut spare).zip(columns) {
            *value = window(column, whole * LANES, count, spare);
        }
        for lane in 0..LANES {
            let joined = join(lanes[lane], f(values.map(|values| values[lane])));
            lanes[lane] = if lane < rest { joined } else { lanes[lane] };
        }
    }
    join_lanes(lanes, join)
}

/// The lanes of `column` from `start`; if the column ends before they do, a copy in `spare` of those below `count`.
#[inline(always)]
fn window<'a>(
    column: &'a [f32],
    start: usize,
    count: usize,
    spare: &'a mut [f32; LANES],
) -> &'a [f32; LANES] {
    match column[start..].first_chunk() {
        Some(lanes) => lanes,
        None => {
            spare[..count - start].copy_from_slice(&column[start..count]);
            spare
        }
    }
}

/// Joins lanes i and i + 8, then i and i + 4, and so on.
#[inline(always)]
pub(crate) fn join_lanes(lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    #[inline(always)]
    fn halve<const FROM: usize, const TO: usize>(
        lanes: [f32; FROM],
        join: impl Fn(f32, f32) -> f32,
    ) -> [f32; TO] {
        std::array::from_fn(|lane| join(lanes[lane], lanes[lane + TO]))
    }
    let lanes: [f32; 8] = halve(lanes, &join);
    let lanes: [f32; 4] = halve(lanes, &join);
    let lanes: [f32; 2] = halve(lanes, &join);
    join(lanes[0], lanes[1])
}

/// e^x within 2 units in the last place; 0 below -87.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r. Adding and subtracting 1.5 · 2²³ rounds to an integer; the sum holds its bits.
    const ROUND: f32 = 12_582_912.0;
    let bounded = if x > 88.0 { 88.0 } else { x };
    let bounded = if bounded < -87.0 { -87.0 } else { bounded };
    let shifted = bounded.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, bounded));
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_2e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 1.666_666_5e-1);
    p = p.mul_add(r, 5e-1);
    let mantissa = (p * r).mul_add(r, r) + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    let result = mantissa * f32::from_bits(exponent);
    if x < -87.0 { 0.0 } else { result }
}

/// sin x and cos x, within 1.5e-7, for |x| up to 10⁹.
#[inline(always)]
pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
    // x = n π/2 + r, in 64 bits: angles are frequencies times keys and reach thousands, where a 32-bit remainder is inexact. Adding
    // 1.5 · 2⁵² rounds to an integer; its lowest bits are the quadrant.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let wide = f64::from(x);
    let shifted = wide * std::f64::consts::FRAC_2_PI + ROUND;
    let r = (wide - (shifted - ROUND) * std::f64::consts::FRAC_PI_2) as f32;
    let quadrant = shifted.to_bits() as u32;
    let s = r * r;
    // The polynomials of Cephes' sinf and cosf, for |r| up to π/4.
    let mut p = -1.951_529_6e-4;
    p = p * s + 8.332_161e-3;
    p = p * s - 1.666_665_5e-1;
    let sin = p * s * r + r;
    let mut q = 2.443_315_7e-5;
    q = q * s - 1.388_731_6e-3;
    q = q * s + 4.166_664_6e-2;
    let cos = q * s * s - 0.5 * s + 1.0;
    let odd = quadrant & 1 == 1;
    let (a, b) = if odd { (cos, sin) } else { (sin, cos) };
    let sign = |bits: u32| (bits & 2) << 30;
    (
        f32::from_bits(a.to_bits() ^ sign(quadrant)),
        f32::from_bits(b.to_bits() ^ sign(quadrant.wrapping_add(1))),
    )
}

/// Φ(x), the standard normal distribution function, within 2e-7.
#[inline(always)]
fn phi(x: f32) -> f32 {
    // erf as a quotient of two polynomials, as in Eigen and XLA; above 4 it equals 1 to the last place.
    let z = x * std::f32::consts::FRAC_1_SQRT_2;
    let z = if z > 4.0 { 4.0 } else { z };
    let z = if z < -4.0 { -4.0 } else { z };
    let s = z * z;
    let mut p = -2.726_142_3e-10f32;
    p = p.mul_add(s, 2.770_681_4e-8);
    p = p.mul_add(s, -2.101_024_e-6);
    p = p.mul_add(s, -5.692_506_4e-5);
    p = p.mul_add(s, -7.349_906_e-4);
    p = p.mul_add(s, -2.954_6e-3);
    p = p.mul_add(s, -1.609_603_3e-2);
    let mut q = -1.456_607_2e-5f32;
    q = q.mul_add(s, -2.133_740_6e-4);
    q = q.mul_add(s, -1.682_827e-3);
    q = q.mul_add(s, -7.373_329e-3);
    q = q.mul_add(s, -1.426_473_9e-2);
    (z * p / q).mul_add(0.5, 0.5)
}

/// GELU: x Φ(x).
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    x * phi(x)
}

/// GELU and its derivative, Φ(x) + x φ(x).
#[inline(always)]
pub(crate) fn gelu_with_slope(x: f32) -> (f32, f32) {
    const DENSITY: f32 = 0.398_942_3; // 1/√(2π)
    let cumulative = phi(x);
    (x * cumulative, (x * DENSITY).mul_add(exp(-0.5 * x * x), cumulative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_accurate() {
        for step in -8_700..8_800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}) is off by {error:e}");
        }
        assert_eq!((exp(0.0), exp(-88.0), exp(-1e9)), (1.0, 0.0, 0.0));
        assert!(exp(f32::NAN).is_nan(), "a model that diverges must not be hidden");
    }

    #[test]
    fn gelu_and_its_slope_are_accurate() {
        for step in -1_000..=1_000 {
            let x = step as f32 / 100.0;
            let wide = f64::from(x);
            let cumulative = 0.5 * libm::erfc(-wide / std::f64::consts::SQRT_2);
            let density = (-0.5 * wide * wide).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let (value, slope) = gelu_with_slope(x);
            assert_eq!(value, gelu(x));
            assert!((f64::from(value) - wide * cumulative).abs() < 1e-6, "gelu({x}) = {value}");
            let exact = cumulative + wide * density;
            assert!((f64::from(slope) - exact).abs() < 1e-6, "gelu'({x}) = {slope}, not {exact}");
        }
    }

    #[test]
    fn sines_and_cosines_are_accurate() {
        for step in -200_000i32..200_000 {
            // Steps of two sizes, both far from multiples of π/2.
            for x in [step as f32 * 1.3e-4, step as f32 * 0.37] {
                let (sin, cos) = sin_cos(x);
                let wide = f64::from(x);
                assert!((f64::from(sin) - wide.sin()).abs() < 1.5e-7, "sin {x} = {sin}");
                assert!((f64::from(cos) - wide.cos()).abs() < 1.5e-7, "cos {x} = {cos}");
            }
        }
        assert_eq!(sin_cos(0.0), (0.0, 1.0));
        assert!(sin_cos(f32::INFINITY).0.is_nan(), "a model that diverges must not be hidden");
    }

    #[test]
    fn folds_see_every_element_once() {
        let numbers: Vec<f32> = (0..100).map(|i| i as f32).collect();
        for count in [0, 1, 15, 16, 17, 100] {
            let column = &numbers[..count];
            let expected = (count * count.saturating_sub(1) / 2) as f32;
            assert_eq!(sum(count, [column], |[x]| x), expected);
            assert_eq!(sum(count, [&numbers], |[x]| x), expected, "values after the column are ignored");
            let mut longer = column.to_vec();
            longer.extend([f32::NAN; 3]);
            assert_eq!(sum(count, [&longer], |[x]| x), expected, "as are those within the last lanes");
            assert_eq!(sum(count, [column, &numbers], |[x, y]| 2.0 * x - y), expected);
        }
        assert_eq!(largest(37, [&numbers], |[x]| -(x - 20.0).abs()), 0.0);
        assert_eq!(largest(37, [&numbers], |[x]| x), 36.0);
    }
}
