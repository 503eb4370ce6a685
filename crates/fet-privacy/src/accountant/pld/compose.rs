//! Distribution of the composed loss, tilted and scaled to a sum of 1, by doubling.
//!
//! T releases are composed along the bits of T. A few releases have little spread and need a fine grid.
//! Whenever the number of releases has grown fourfold, the step of the grid doubles, again by connecting the
//! dots, so that the number of grid points stays constant. The module adds up the possible effects of
//! rounding and of mass outside the windows.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::plan::{MOST_POINTS, Plan, WINDOW};

/// Tilted distribution on multiples of a step.
#[derive(Debug, Clone)]
pub(super) struct Composed {
    /// Masses, which add up to 1.
    pub(super) masses: Vec<f64>,
    /// First grid point as a multiple of the step.
    pub(super) first: i64,
    pub(super) step: f64,
    /// Logarithm of the scale: the tilted masses before scaling are `masses` times e^log_scale.
    pub(super) log_scale: f64,
    /// Upper bound on the tilted mass that is missing or misplaced.
    pub(super) error: f64,
}

/// Rounding error of a convolution per doubling of its size. An FFT of N points has an error of (log2
/// N)·6.7·2⁻⁵³ in the Euclidean norm (Higham 2002, theorem 24.2), and a convolution of three factors has four
/// times this error.
const ROUNDING: f64 = 3e-15;
/// Number of blocks of grid points for computing moments.
const BLOCKS: usize = 512;

/// Returns the distribution of the composed loss of all releases.
pub(super) fn compose(plan: &Plan) -> Composed {
    Composer { plan, transforms: FftPlanner::new() }.compose()
}

/// Composition of the releases of one plan.
struct Composer<'a> {
    plan: &'a Plan,
    /// Transforms that the composition has planned so far.
    transforms: FftPlanner<f64>,
}

impl Composer<'_> {
    fn compose(&mut self) -> Composed {
        let tilt = self.plan.tilt;
        let mut whole: Option<Composed> = None;
        for place in 0..self.plan.kinds.len() {
            let kind = self.compose_kind(place);
            whole = Some(match whole {
                None => kind,
                Some(other) => {
                    let finest = kind.step.max(other.step);
                    let (mut one, mut two) = (other.at_step(finest, tilt), kind.at_step(finest, tilt));
                    self.convolve(&mut one, &mut two, 1, WINDOW)
                }
            });
        }
        whole.expect("a plan has a kind of releases")
    }

    /// Composes all releases of one kind.
    fn compose_kind(&mut self, place: usize) -> Composed {
        let plan = self.plan;
        let kind = &plan.kinds[place];
        let mut one = single(plan, place, plan.step * 2f64.powi(-plan.first_fineness(place)));
        let mut all = one.clone();
        for shift in (0..kind.steps.ilog2()).rev() {
            let count = kind.steps >> shift;
            let margin = WINDOW + (plan.steps / count as f64).ln();
            all = if count % 2 == 1 {
                self.convolve(&mut all, &mut one, 2, margin)
            } else {
                let mut same = all.clone();
                self.convolve(&mut all, &mut same, 1, margin)
            };
            let step = plan.step * 2f64.powi(-plan.fineness(count));
            all = all.at_step(step, plan.tilt);
            one = one.at_step(all.step, plan.tilt);
        }
        all.at_step(plan.step, plan.tilt)
    }

    /// Returns the sum of `times` independent losses of the first distribution and one of the second. Mass
    /// outside the window, at most e^-`margin` on each side, wraps into the window. If the window is too wide for
    /// the grid, both distributions move to a coarser grid.
    fn convolve(&mut self, one: &mut Composed, other: &mut Composed, times: i32, margin: f64) -> Composed {
        let nothing =
            |step: f64| Composed { masses: vec![0.0], first: 0, step, log_scale: 0.0, error: f64::INFINITY };
        if !(one.error.is_finite() && other.error.is_finite()) {
            return nothing(one.step);
        }
        let (mut first, mut last) = window(one, other, times, margin);
        while last.saturating_sub(first) as f64 > MOST_POINTS {
            (*one, *other) = (one.coarser(self.plan.tilt), other.coarser(self.plan.tilt));
            (first, last) = window(one, other, times, margin);
        }
        let step = one.step;
        let errors = f64::from(times) * one.error.ln_1p() + other.error.ln_1p();
        if !errors.is_finite() || last < first || !step.is_finite() {
            return nothing(step);
        }
        let points = size_for((last - first + 1) as usize);
        let size = points as i64;
        // One complex vector holds both real vectors.
        let mut values = vec![Complex::new(0.0, 0.0); points];
        for (grid, mass) in (one.first..).zip(&one.masses) {
            values[grid.rem_euclid(size) as usize].re += mass;
        }
        for (grid, mass) in (other.first..).zip(&other.masses) {
            values[grid.rem_euclid(size) as usize].im += mass;
        }
        self.transforms.plan_fft_forward(points).process(&mut values);
        let product = |here: Complex<f64>, there: Complex<f64>| {
            let there = there.conj();
            let (a, b) = ((here + there) * 0.5, (here - there) * Complex::new(0.0, -0.5));
            if times == 2 { a * a * b } else { a * b }
        };
        for index in 0..=points / 2 {
            let mirror = (points - index) % points;
            let (here, there) = (values[index], values[mirror]);
            (values[index], values[mirror]) = (product(here, there), product(there, here));
        }
        self.transforms.plan_fft_inverse(points).process(&mut values);
        let norm = |line: &Composed| line.masses.iter().map(|mass| mass * mass).sum::<f64>().sqrt();
        // From the Euclidean norm to a sum by the Cauchy-Schwarz inequality.
        let rounding =
            ROUNDING * (points as f64).log2() * (points as f64).sqrt() * norm(one).max(norm(other));
        // Values that may be rounding noise only would look like a tail in the next window. They are dropped, and
        // counted a second time in the error.
        let (scale, noise) = (1.0 / points as f64, rounding / points as f64);
        let mass = |grid: i64| {
            let mass = values[grid.rem_euclid(size) as usize].re * scale;
            if mass > noise { mass } else { 0.0 }
        };
        while first < last && mass(first) == 0.0 {
            first += 1;
        }
        while last > first && mass(last) == 0.0 {
            last -= 1;
        }
        let log_scale = f64::from(times) * one.log_scale + other.log_scale;
        let error = errors.exp_m1() + 2.0 * rounding + 4.0 * (-margin).exp();
        Composed { masses: (first..=last).map(mass).collect(), first, step, log_scale, error }.scaled()
    }
}

/// Returns the distribution of one release.
fn single(plan: &Plan, place: usize, step: f64) -> Composed {
    let (kind, window) = (&plan.kinds[place], plan.windows[place]);
    let guess = kind.log_moment(plan.tilt);
    let (first, masses) = kind.pair.on_grid(step, plan.tilt, guess, window.low, window.high);
    // Each mass is exact up to a few roundings. The margin of the window is that of all releases together.
    let error = ROUNDING + 4.0 * (-WINDOW).exp() / plan.steps;
    Composed { masses, first, step, log_scale: guess, error }.scaled()
}

/// Returns the first and last grid points of a window that leaves at most e^-`margin` of the sum on each
/// side. Uses Chernoff's bound from the masses themselves.
fn window(one: &Composed, other: &Composed, times: i32, margin: f64) -> (i64, i64) {
    let times = f64::from(times);
    let reach = |up: bool| {
        let (one, other) = (one.blocks(up), other.blocks(up));
        let farthest = times * one[one.len() - 1].0 + other[other.len() - 1].0;
        let bound = |exponent: f64| {
            (times * log_growth(&one, exponent) + log_growth(&other, exponent) + margin) / exponent
        };
        // Search over log t: the bound has a single minimum.
        let inner = |low: f64, high: f64| (low + 0.381_966 * (high - low), low + 0.618_034 * (high - low));
        let nearest = times * one[0].0 + other[0].0;
        let least = (0.01 * margin / (farthest - nearest).max(1.0)).ln();
        let (mut low, mut high) = (least, least + 14.0);
        let (mut left, mut right) = inner(low, high);
        let (mut at_left, mut at_right) = (bound(left.exp()), bound(right.exp()));
        for _ in 0..14 {
            if at_left < at_right {
                (high, right, at_right) = (right, left, at_left);
                left = inner(low, high).0;
                at_left = bound(left.exp());
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = inner(low, high).1;
                at_right = bound(right.exp());
            }
        }
        let reach = at_left.min(at_right).min(farthest).ceil();
        if reach.is_finite() { reach as i64 } else { 0 }
    };
    (-reach(false), reach(true))
}

/// Returns log Σ m e^{tx} over blocks (x, m).
fn log_growth(blocks: &[(f64, f64)], exponent: f64) -> f64 {
    let most = blocks.iter().map(|(place, _)| exponent * place).fold(f64::NEG_INFINITY, f64::max);
    most + blocks.iter().map(|(place, mass)| mass * (exponent * place - most).exp()).sum::<f64>().ln()
}

/// Returns the smallest size of a fast transform for `needed` points: 2^k or 3·2^k.
fn size_for(needed: usize) -> usize {
    let whole = needed.next_power_of_two().max(4);
    if 3 * whole / 4 >= needed { 3 * whole / 4 } else { whole }
}

impl Composed {
    /// Scales the masses to a sum of 1.
    fn scaled(mut self) -> Self {
        let total: f64 = self.masses.iter().sum();
        self.masses.iter_mut().for_each(|mass| *mass /= total);
        self.log_scale += total.ln();
        if !(total > 0.0 && self.log_scale.is_finite()) {
            // The figures are invalid from here on, and an infinite error marks them.
            self.error = f64::INFINITY;
        }
        self
    }

    /// Returns (grid point, mass) of a few hundred blocks, each represented by its upper end. If `up` is
    /// false, the grid points are negated and the lower end represents each block.
    fn blocks(&self, up: bool) -> Vec<(f64, f64)> {
        let size = self.masses.len().div_ceil(BLOCKS);
        let block = |(index, masses): (usize, &[f64])| {
            let low = self.first + (index * size) as i64;
            let end = if up { low + masses.len() as i64 - 1 } else { -low };
            (end as f64, masses.iter().sum())
        };
        let mut blocks: Vec<(f64, f64)> = self.masses.chunks(size).enumerate().map(block).collect();
        if !up {
            blocks.reverse();
        }
        blocks
    }

    /// Coarsens the grid until its step is at least `step`.
    fn at_step(mut self, step: f64, tilt: f64) -> Self {
        while self.step < 0.75 * step {
            self = self.coarser(tilt);
        }
        self
    }

    /// Returns the distribution on a grid of twice the step. The mass between two grid points is divided so
    /// that Σ m and Σ m e^{−l} stay the same.
    fn coarser(&self, tilt: f64) -> Self {
        let first = self.first.div_euclid(2);
        let count = (self.first + self.masses.len() as i64).div_euclid(2) - first + 1;
        let mut masses = vec![0.0; count as usize];
        let upper = 1.0 / (1.0 + (-self.step).exp());
        let (down, up) = ((1.0 - upper) * (-tilt * self.step).exp(), upper * (tilt * self.step).exp());
        for (grid, mass) in (self.first..).zip(&self.masses) {
            let place = (grid.div_euclid(2) - first) as usize;
            if grid.rem_euclid(2) == 0 {
                masses[place] += mass;
            } else {
                masses[place] += mass * down;
                masses[place + 1] += mass * up;
            }
        }
        let (first, step, log_scale) = (first, 2.0 * self.step, self.log_scale);
        // Misplaced mass may grow by the same factor as any other mass.
        let error = self.error * up.max(1.0).max(down + up);
        Self { masses, first, step, log_scale, error }.scaled()
    }
}
