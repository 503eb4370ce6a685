//! Where and how finely the composition is computed.

use super::moments::Kind;

/// Grid points at most: where they do not suffice the step grows, and ε with it.
pub(super) const MOST_POINTS: f64 = (1 << 18) as f64;
/// -log of the tilted mass left outside of a window on each side, counted for the whole composition.
pub(super) const WINDOW: f64 = 22.0;

/// The plan of a composition of several kinds of releases.
pub(super) struct Plan {
    pub(super) kinds: Vec<Kind>,
    /// Releases in all.
    pub(super) steps: f64,
    /// θ.
    pub(super) tilt: f64,
    /// The step of the last grid.
    pub(super) step: f64,
    /// For each kind the losses of one release that are kept.
    pub(super) windows: Vec<Window>,
}

/// The losses that are kept.
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
    /// Nothing where the losses are too small or too large for their moments to be numbers.
    pub(super) fn new(kinds: Vec<Kind>, log_delta: f64) -> Option<Self> {
        let steps: f64 = kinds.iter().map(|kind| kind.steps as f64).sum();
        let (tilt, _) = chernoff(&kinds, log_delta)?;
        let kinds = kinds.into_iter().map(|kind| kind.for_tilt(tilt)).collect::<Option<Vec<_>>>()?;
        let (tilt, guess) = chernoff(&kinds, log_delta)?;
        let turns = Turns::new(&kinds, tilt, usable(spread(&kinds, tilt))?)?;
        let window = turns.window(kinds.iter().map(|kind| kind.steps).enumerate(), WINDOW);
        // Masses are regrouped once at each end and at every other doubling. Each time adds θ(θ+1) h²/12 for each release
        // at most to the log moment, if h is the last grid's step over √T for one release, and so a θth of it to ε.
        let levels: f64 = kinds.iter().map(|kind| 1.0 + 0.5 * (kind.steps as f64).log2()).sum();
        let step = (12.0 * tolerance(guess) / ((tilt + 1.0) * levels)).sqrt();
        let step = usable(step.min(window.width() / 64.0).max(window.width() / MOST_POINTS))?;
        let margin = WINDOW + steps.ln();
        let windows: Vec<Window> =
            (0..kinds.len()).map(|place| turns.window(std::iter::once((place, 1)), margin)).collect();
        windows.iter().try_for_each(|window| usable(window.width()).map(|_| ()))?;
        Some(Self { kinds, steps, tilt, step, windows })
    }

    /// By how many powers of 2 the grid for `count` releases is finer than the last: a grid of step h for n of T releases
    /// adds as much to ε as one of h√(T/n) for all.
    pub(super) fn fineness(&self, count: u64) -> i32 {
        (0.5 * (self.steps / count as f64).log2()).ceil() as i32
    }

    /// The same for one release, whose losses must have room on the grid.
    pub(super) fn first_fineness(&self, place: usize) -> i32 {
        let allowed = (MOST_POINTS * self.step / self.windows[place].width()).log2().floor().max(-1e3);
        self.fineness(1).min(allowed as i32)
    }
}

/// The θ at which Chernoff's bound on ε is least, and that bound.
fn chernoff(kinds: &[Kind], log_delta: f64) -> Option<(f64, f64)> {
    let log = |tilt: f64| kinds.iter().map(|kind| kind.steps as f64 * kind.log_moment(tilt)).sum::<f64>();
    let bound = |log_tilt: f64| (log(log_tilt.exp()) - log_delta) / log_tilt.exp();
    let plain = usable(spread(kinds, 0.0))?;
    let tilt = least((1e-3 / plain).min(1e-2).ln(), (60.0 / plain).max(200.0).ln(), bound);
    Some((tilt.exp(), usable(bound(tilt))?))
}

/// The standard deviation of the composed loss, tilted.
fn spread(kinds: &[Kind], tilt: f64) -> f64 {
    kinds.iter().map(|kind| kind.steps as f64 * kind.variance(tilt)).sum::<f64>().sqrt()
}

/// A positive number.
fn usable(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// What discretisation may add to an ε of about this size: 7e-5 or a hundred-thousandth, but no more than a share of a
/// small ε.
fn tolerance(epsilon: f64) -> f64 {
    (2e-4 * epsilon).min((1e-5 * epsilon).max(7e-5))
}

/// Where a function with one dip has it, by golden section.
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

/// For several t: how much the log moment of each kind grows from θ to θ + t, and to θ − t.
struct Turns {
    /// The least and the largest loss of each kind.
    ends: Vec<(f64, f64)>,
    turns: Vec<(f64, Vec<(f64, f64)>)>,
}

impl Turns {
    fn new(kinds: &[Kind], tilt: f64, spread: f64) -> Option<Self> {
        let single = kinds.iter().map(|kind| kind.variance(tilt).sqrt()).fold(f64::INFINITY, f64::min);
        let (mut turn, last) = (0.1 / spread, 64.0 / usable(single)?);
        let here: Vec<f64> = kinds.iter().map(|kind| kind.log_moment(tilt)).collect();
        let mut turns = Vec::new();
        while turn < last {
            let growth = |(kind, here): (&Kind, &f64)| {
                (kind.resolved_log_moment(tilt + turn) - here, kind.resolved_log_moment(tilt - turn) - here)
            };
            turns.push((turn, kinds.iter().zip(&here).map(growth).collect()));
            turn *= 1.3;
        }
        Some(Self { ends: kinds.iter().map(|kind| kind.pair.ends()).collect(), turns })
    }

    /// The losses of `counts` releases of kinds outside of which lies e^-`margin` of the tilted mass on each side.
    fn window(&self, counts: impl Iterator<Item = (usize, u64)> + Clone, margin: f64) -> Window {
        let mut window = Window { low: 0.0, high: 0.0 };
        for (place, count) in counts.clone() {
            window.low += count as f64 * self.ends[place].0;
            window.high += count as f64 * self.ends[place].1;
        }
        for (turn, growth) in &self.turns {
            let (mut up, mut down) = (margin, margin);
            for (place, count) in counts.clone() {
                up += count as f64 * growth[place].0;
                down += count as f64 * growth[place].1;
            }
            // No number leaves the window as it is.
            window = Window { low: window.low.max(-down / turn), high: window.high.min(up / turn) };
        }
        window
    }
}
