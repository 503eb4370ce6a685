//! Range and resolution of the composition.

use super::moments::Kind;

/// Maximum number of grid points. If they do not suffice, the step grows, and ε with it.
pub(super) const MOST_POINTS: f64 = (1 << 18) as f64;
/// Negative logarithm of the tilted mass that the window leaves out on each side, for the whole composition.
pub(super) const WINDOW: f64 = 22.0;

/// Plan for the composition of several kinds of releases.
pub(super) struct Plan {
    pub(super) kinds: Vec<Kind>,
    /// Total number of releases.
    pub(super) steps: f64,
    /// Tilt θ.
    pub(super) tilt: f64,
    /// Step of the last grid.
    pub(super) step: f64,
    /// For each kind, the range of losses of one release.
    pub(super) windows: Vec<Window>,
}

/// Range of losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Window {
    fn width(self) -> f64 {
        self.high - self.low
    }
}

impl Plan {
    /// Returns `None` if the losses are too small or too large for finite moments.
    pub(super) fn new(kinds: Vec<Kind>, log_delta: f64) -> Option<Self> {
        let steps: f64 = kinds.iter().map(|kind| kind.steps as f64).sum();
        let (tilt, _) = chernoff(&kinds, log_delta)?;
        let kinds = kinds.into_iter().map(|kind| kind.for_tilt(tilt)).collect::<Option<Vec<_>>>()?;
        let (tilt, guess) = chernoff(&kinds, log_delta)?;
        let growth = TiltGrowth::new(&kinds, tilt, usable(spread(&kinds, tilt))?)?;
        let window = growth.window(kinds.iter().map(|kind| kind.steps).enumerate(), WINDOW);
        // Masses are regrouped once at each end and at every second doubling. Each regrouping adds at most
        // θ(θ+1) h²/12 per release to the log moment, where h is the step of the last grid divided by √T for
        // one release. It adds 1/θ of that to ε.
        let levels: f64 = kinds.iter().map(|kind| 1.0 + 0.5 * (kind.steps as f64).log2()).sum();
        let step = (12.0 * tolerance(guess) / ((tilt + 1.0) * levels)).sqrt();
        let step = usable(step.min(window.width() / 64.0).max(window.width() / MOST_POINTS))?;
        let margin = WINDOW + steps.ln();
        let windows: Vec<Window> =
            (0..kinds.len()).map(|place| growth.window(std::iter::once((place, 1)), margin)).collect();
        windows.iter().try_for_each(|window| usable(window.width()).map(|_| ()))?;
        Some(Self { kinds, steps, tilt, step, windows })
    }

    /// Returns the number of halvings from the step of the last grid to that of the grid for `count`
    /// releases. A grid of step h for n of T releases adds as much to ε as a grid of step h√(T/n) for all.
    pub(super) fn fineness(&self, count: u64) -> i32 {
        (0.5 * (self.steps / count as f64).log2()).ceil() as i32
    }

    /// Returns the fineness for one release, limited so that its losses fit on the grid.
    pub(super) fn first_fineness(&self, place: usize) -> i32 {
        let allowed = (MOST_POINTS * self.step / self.windows[place].width()).log2().floor().max(-1e3);
        self.fineness(1).min(allowed as i32)
    }
}

/// Returns the θ that minimises Chernoff's bound on ε, and that bound.
fn chernoff(kinds: &[Kind], log_delta: f64) -> Option<(f64, f64)> {
    let log = |tilt: f64| kinds.iter().map(|kind| kind.steps as f64 * kind.log_moment(tilt)).sum::<f64>();
    let bound = |log_tilt: f64| (log(log_tilt.exp()) - log_delta) / log_tilt.exp();
    let plain = usable(spread(kinds, 0.0))?;
    let tilt = least((1e-3 / plain).min(1e-2).ln(), (60.0 / plain).max(200.0).ln(), bound);
    Some((tilt.exp(), usable(bound(tilt))?))
}

/// Returns the standard deviation of the tilted composed loss.
fn spread(kinds: &[Kind], tilt: f64) -> f64 {
    kinds.iter().map(|kind| kind.steps as f64 * kind.variance(tilt)).sum::<f64>().sqrt()
}

/// Returns the value if it is positive and finite.
fn usable(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// Returns the amount that discretisation may add to an ε of about this size: 7e-5 or 1e-5 of ε, whichever is
/// larger, but at most 2e-4 of ε.
fn tolerance(epsilon: f64) -> f64 {
    (2e-4 * epsilon).min((1e-5 * epsilon).max(7e-5))
}

/// Returns the position of the minimum of a function with a single minimum, by golden-section search.
fn least(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let inner = |low: f64, high: f64| (low + 0.381_966 * (high - low), low + 0.618_034 * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..32 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = inner(low, high).0;
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = inner(low, high).1;
            at_right = value(right);
        }
    }
    if at_left < at_right { left } else { right }
}

/// Growth of the log moment of each kind from θ to θ + t and to θ − t, for several t.
struct TiltGrowth {
    /// Smallest and largest loss of each kind.
    ends: Vec<(f64, f64)>,
    shifts: Vec<(f64, Vec<(f64, f64)>)>,
}

impl TiltGrowth {
    fn new(kinds: &[Kind], tilt: f64, spread: f64) -> Option<Self> {
        let single = kinds.iter().map(|kind| kind.variance(tilt).sqrt()).fold(f64::INFINITY, f64::min);
        let (mut shift, last) = (0.1 / spread, 64.0 / usable(single)?);
        let here: Vec<f64> = kinds.iter().map(|kind| kind.log_moment(tilt)).collect();
        let mut shifts = Vec::new();
        while shift < last {
            let growth = |(kind, here): (&Kind, &f64)| {
                (kind.resolved_log_moment(tilt + shift) - here, kind.resolved_log_moment(tilt - shift) - here)
            };
            shifts.push((shift, kinds.iter().zip(&here).map(growth).collect()));
            shift *= 1.3;
        }
        Some(Self { ends: kinds.iter().map(|kind| kind.pair.ends()).collect(), shifts })
    }

    /// Returns a range of losses for `counts` releases of each kind that leaves at most e^-`margin` of the
    /// tilted mass on each side.
    fn window(&self, counts: impl Iterator<Item = (usize, u64)> + Clone, margin: f64) -> Window {
        let mut window = Window { low: 0.0, high: 0.0 };
        for (place, count) in counts.clone() {
            window.low += count as f64 * self.ends[place].0;
            window.high += count as f64 * self.ends[place].1;
        }
        for (shift, growth) in &self.shifts {
            let (mut up, mut down) = (margin, margin);
            for (place, count) in counts.clone() {
                up += count as f64 * growth[place].0;
                down += count as f64 * growth[place].1;
            }
            // `max` and `min` ignore NaN, so NaN leaves the window unchanged.
            window = Window { low: window.low.max(-down / shift), high: window.high.min(up / shift) };
        }
        window
    }
}
