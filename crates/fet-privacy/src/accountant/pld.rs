//! Privacy loss distributions of the Poisson-subsampled Gaussian, composed by FFT (Koskela, Jälkö, Honkela 2020;
//! Gopi, Lee, Wutschitz 2021), never below the truth.
//!
//! One release is described by the loss L under its dominating pair (`pair`) and put on a grid by connecting the
//! dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the mass between two grid points moves to them so
//! that the masses under both distributions are kept. The result dominates the original, and is off by the order
//! of the squared step. What is cut off is counted as lost.
//!
//! The composition is computed under an exponential tilt by θ, which puts the bulk of the computed distribution
//! where ε is, so that the rounding errors of the transform are small beside δ itself, however small δ is. They are
//! bounded and added all the same. θ, step and window follow from the moments of the loss.

mod pair;

use rayon::prelude::*;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::Event;
use super::gaussian;
use pair::{Direction, Pair};

/// Grid points at most: where they do not suffice the step grows, and ε with it.
const MOST_POINTS: usize = 1 << 22;
/// -log of the tilted mass left outside the window on each side.
const WINDOW: f64 = 32.0;

/// The least ε at δ that the computed distribution shows, the larger of both directions.
pub fn epsilon(events: &[Event], delta: f64) -> f64 {
    let directions = [Direction::Remove, Direction::Add];
    directions.into_iter().map(|direction| in_direction(events, delta, direction)).fold(0.0, f64::max)
}

fn in_direction(events: &[Event], delta: f64, direction: Direction) -> f64 {
    let steps: u64 = events.iter().map(|event| event.steps).sum();
    // The tails that are cut off, all releases together, are a negligible part of δ.
    let reach = reach(delta * 1e-9 / steps as f64);
    let pairs: Vec<(Pair, u64)> =
        events.iter().map(|event| (Pair::new(event, direction, reach), event.steps)).collect();
    let moments = Moments::new(&pairs);
    let Some(plan) = Plan::new(&moments, steps, delta) else { return 0.0 };
    let composed = compose(&pairs, &plan);
    let cut: f64 = pairs.iter().map(|(pair, steps)| pair.cut_mass() * *steps as f64).sum();
    search(&composed, &plan, steps, delta - cut)
}

/// How many standard deviations leave `mass` in each tail.
fn reach(mass: f64) -> f64 {
    // Φ(−t) <= exp(−t²/2)/2.
    (2.0 * -(2.0 * mass).ln()).sqrt().max(1.0)
}

/// The cumulants of the composed loss, on nodes coarse enough to be evaluated often.
struct Moments {
    /// For each event (loss, probability) and how often it occurs.
    nodes: Vec<(Vec<(f64, f64)>, f64)>,
}

impl Moments {
    fn new(pairs: &[(Pair, u64)]) -> Self {
        Self { nodes: pairs.iter().map(|(pair, steps)| (pair.nodes(), *steps as f64)).collect() }
    }

    /// log E[e^{θL}] of all releases together.
    fn log(&self, tilt: f64) -> f64 {
        self.nodes.iter().map(|(nodes, steps)| steps * log_moment(nodes, tilt)).sum()
    }

    /// Mean and variance of the loss, tilted.
    fn tilted(&self, tilt: f64) -> (f64, f64) {
        let (mut mean, mut variance) = (0.0, 0.0);
        for (nodes, steps) in &self.nodes {
            let log = log_moment(nodes, tilt);
            let weights = || nodes.iter().map(|&(loss, mass)| (loss, mass * (tilt * loss - log).exp()));
            let center: f64 = weights().map(|(loss, weight)| loss * weight).sum();
            mean += steps * center;
            variance += steps * weights().map(|(loss, weight)| weight * (loss - center).powi(2)).sum::<f64>();
        }
        (mean, variance)
    }
}

fn log_moment(nodes: &[(f64, f64)], tilt: f64) -> f64 {
    let most = nodes.iter().map(|(loss, _)| tilt * loss).fold(f64::NEG_INFINITY, f64::max);
    most + nodes.iter().map(|(loss, mass)| mass * (tilt * loss - most).exp()).sum::<f64>().ln()
}

/// Where and how finely the composition is computed.
struct Plan {
    tilt: f64,
    /// Grid points are multiples of it.
    step: f64,
    /// The first grid point of the window, as a multiple of the step.
    first: i64,
    /// How many grid points the window has.
    points: usize,
    /// log of what the tilted masses of each event are divided by.
    scales: Vec<f64>,
    /// log of the same for all releases together.
    log_scale: f64,
}

impl Plan {
    /// Nothing where even ε = 0 is met at the cost of a Chernoff bound.
    fn new(moments: &Moments, steps: u64, delta: f64) -> Option<Self> {
        let (_, variance) = moments.tilted(0.0);
        let spread = variance.sqrt();
        if spread == 0.0 {
            return None;
        }
        let (low, high) = ((1e-3 / spread).min(1e-2), (60.0 / spread).max(200.0));
        let tilts = (0..=120).map(|i| low * (high / low).powf(f64::from(i) / 120.0));
        let bound = |tilt: f64| (moments.log(tilt) - delta.ln()) / tilt;
        let (tilt, guess) = tilts
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|tilt| (tilt, bound(tilt)))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let log = moments.log(tilt);
        let spread = moments.tilted(tilt).1.sqrt().max(1e-300);
        // Chernoff bounds under the tilt leave e^-WINDOW on each side.
        let turns: Vec<f64> = (0..28).map(|i| 0.2 * 1.25f64.powi(i) / spread).collect();
        let top =
            turns.iter().map(|t| (moments.log(tilt + t) - log + WINDOW) / t).fold(f64::INFINITY, f64::min);
        let bottom = turns
            .iter()
            .map(|t| -(moments.log(tilt - t) - log + WINDOW) / t)
            .fold(f64::NEG_INFINITY, f64::max);
        let tolerance = tolerance(guess.max(1e-9));
        // Connecting the dots adds T θ(θ+1) h²/12 to the log moment at most, and so a θth of it to ε.
        let mut step = (12.0 * tolerance / (steps as f64 * (tilt + 1.0))).sqrt().min((top - bottom) / 64.0);
        let single: f64 = moments.nodes.iter().map(|(nodes, _)| range(nodes)).fold(0.0, f64::max);
        step = step.max((top - bottom) / (MOST_POINTS - 8) as f64).max(single / MOST_POINTS as f64);
        let first = (bottom / step).floor() as i64 - 2;
        let needed = ((top - bottom) / step).ceil() as usize + 6;
        let scales: Vec<f64> = moments.nodes.iter().map(|(nodes, _)| log_moment(nodes, tilt)).collect();
        Some(Self { tilt, step, first, points: needed.next_power_of_two(), log_scale: log, scales })
    }

    fn place(&self, grid: i64) -> usize {
        grid.rem_euclid(self.points as i64) as usize
    }
}

/// What discretisation may add to an ε of about this size: 4e-5, but no more than a share of a small ε, and a little
/// more where ε is so large that its fourth digit means nothing.
fn tolerance(epsilon: f64) -> f64 {
    (2e-4 * epsilon).min((2e-6 * epsilon).clamp(4e-5, 4e-4))
}

fn range(nodes: &[(f64, f64)]) -> f64 {
    let losses = || nodes.iter().map(|node| node.0);
    losses().fold(f64::NEG_INFINITY, f64::max) - losses().fold(f64::INFINITY, f64::min)
}

/// The tilted distribution of the composed loss, from the window's first grid point on. What lies outside of the
/// window wraps into it, which can only add.
fn compose(pairs: &[(Pair, u64)], plan: &Plan) -> Vec<f64> {
    let points = plan.points;
    let mut planner = FftPlanner::new();
    let (forward, backward) = (planner.plan_fft_forward(points), planner.plan_fft_inverse(points));
    let mut product: Vec<Complex<f64>> = vec![Complex::new(1.0, 0.0); points];
    for ((pair, steps), scale) in pairs.iter().zip(&plan.scales) {
        let mut masses = vec![Complex::new(0.0, 0.0); points];
        for (grid, mass) in pair.on_grid(plan.step) {
            let tilted = mass * (plan.tilt * grid as f64 * plan.step - scale).exp();
            masses[plan.place(grid)] += tilted;
        }
        forward.process(&mut masses);
        let power = *steps as f64;
        product.par_iter_mut().zip(masses).for_each(|(all, one)| {
            let (radius, angle) = one.to_polar();
            *all *=
                Complex::from_polar(radius.powf(power), (angle * power).rem_euclid(std::f64::consts::TAU));
        });
    }
    backward.process(&mut product);
    let scale = 1.0 / points as f64;
    (0..points as i64).map(|index| (product[plan.place(plan.first + index)].re * scale).max(0.0)).collect()
}

/// The least ε with δ(ε) <= δ: walks down from the window's end.
///
/// With f the tilted masses, s the grid and κ the log scale, δ(ε) = Σ_{s > ε} (1 − e^{ε−s}) f e^{κ−θs}.
fn search(masses: &[f64], plan: &Plan, steps: u64, delta: f64) -> f64 {
    let Plan { tilt, step, first, log_scale, .. } = *plan;
    let at = |index: usize| (first + index as i64) as f64 * step;
    // Beyond the window lies e^-WINDOW of the tilted mass; the transform errs by a few roundings for each release
    // in every frequency, which Parseval and Cauchy-Schwarz carry over to the weighted sum.
    let decay = (-tilt * step).exp();
    let roundings =
        4e-15 * steps as f64 * (1.0 / (1.0 - decay * decay).max(1.0 / masses.len() as f64)).sqrt();
    let slack = roundings + 2.0 * (-WINDOW).exp();
    let (mut lost, mut second) = (0.0, 0.0);
    for index in (0..masses.len()).rev() {
        // `lost` is Σ f e^{−θ(s−ε)}(1 − e^{ε−s}) at ε = s_index, `second` the same with e^{ε−s} alone, above it.
        let (above_lost, above_second) = (lost, second);
        lost = decay * (lost + -(-step).exp_m1() * second);
        second = masses[index] + decay * (-step).exp() * second;
        let epsilon = at(index);
        let found = (log_scale - tilt * epsilon).exp() * (lost + slack);
        if found > delta {
            let allowed = delta * (tilt * (epsilon + step) - log_scale).exp() - slack - above_lost;
            let share = (allowed / above_second).clamp(0.0, -(-step).exp_m1());
            let back = if share.is_finite() { -(-share).ln_1p() } else { 0.0 };
            return (epsilon + step - back).max(0.0);
        }
        if epsilon <= 0.0 {
            return 0.0;
        }
    }
    0.0
}

/// ε of unsampled releases by this method, to be compared with the exact one.
#[doc(hidden)]
pub fn exact_difference(noise: f64, steps: u64, delta: f64) -> f64 {
    let events = [Event { noise, rate: 1.0, steps }];
    epsilon(&events, delta) - gaussian::epsilon(gaussian::compose(&events), delta)
}
