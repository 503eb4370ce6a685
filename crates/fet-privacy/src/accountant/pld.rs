//! Privacy loss distributions of the Poisson-subsampled Gaussian, composed by FFT (Koskela, Jälkö, Honkela 2020;
//! Gopi, Lee, Wutschitz 2021), never below the truth.
//!
//! One release is described by the loss L under its dominating pair (`pair`) and put on a grid by connecting the
//! dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the mass between two grid points moves to them so
//! that the masses under both distributions are kept. The result dominates the original, and is off by the order
//! of the squared step. What is cut off is counted as lost.
//!
//! T releases are composed by doubling (`compose`), under an exponential tilt by θ that puts the bulk of the computed
//! distribution where ε is, so that rounding errors are small beside δ itself, however small δ is. They are bounded
//! and added all the same. θ, steps and windows follow from the moments of the loss (`plan`).
//!
//! Not decided here: whether another bound is lower. Where this method has no figure it says infinity.

mod compose;
mod moments;
mod pair;
mod plan;

use super::Event;
use super::gaussian;
use compose::{Composed, compose};
use moments::Kind;
use pair::Direction;
use plan::Plan;

/// Below this noise a release has more panels of integration than are worth computing.
const LEAST_NOISE: f64 = 1e-2;
/// The share of δ that is left for what is cut off, on each side of the outcomes.
const CUT: f64 = 1e-9;
/// The log of the least mass that is a number with all its digits.
const LEAST_LOG: f64 = -700.0;

/// The least ε at δ that the computed distribution shows, the larger of both directions; infinity where none is shown.
pub fn epsilon(events: &[Event], delta: f64) -> f64 {
    if events.iter().any(|event| event.noise < LEAST_NOISE) {
        return f64::INFINITY;
    }
    // `f64::max` would take a number for larger than no number.
    let larger = |most: f64, found: f64| if found.is_nan() { f64::INFINITY } else { most.max(found) };
    [Direction::Remove, Direction::Add]
        .into_iter()
        .map(|direction| in_direction(events, delta, direction))
        .fold(0.0, larger)
}

fn in_direction(events: &[Event], delta: f64, direction: Direction) -> f64 {
    let steps: f64 = events.iter().map(|event| event.steps as f64).sum();
    let log_cut = delta.ln() + CUT.ln() - steps.ln();
    if log_cut < LEAST_LOG {
        return f64::INFINITY;
    }
    let reach = reach(log_cut);
    let kinds = events.iter().map(|event| Kind::new(event, direction, reach)).collect::<Option<Vec<_>>>();
    let log_delta = delta.ln() + (-2.0 * CUT).ln_1p();
    let Some(plan) = kinds.and_then(|kinds| Plan::new(kinds, log_delta)) else { return f64::INFINITY };
    search(&compose(&plan), plan.tilt, log_delta)
}

/// How many standard deviations leave the mass e^`log_mass` in each tail.
fn reach(log_mass: f64) -> f64 {
    // Φ(−t) <= exp(−t²/2)/2.
    (-2.0 * (log_mass + std::f64::consts::LN_2)).max(1.0).sqrt()
}

/// The least ε with δ(ε) <= δ: walks down from the window's end.
///
/// With f the tilted masses, s the grid and κ the log scale, δ(ε) = Σ_{s > ε} (1 − e^{ε−s}) f e^{κ−θs}. Tilted mass x that
/// was lost or misplaced, wherever above ε it belongs, weighs x e^{κ−θε} at most.
fn search(composed: &Composed, tilt: f64, log_delta: f64) -> f64 {
    let Composed { masses, first, step, log_scale, error } = composed;
    // What is no number is not small: nothing below is decided by comparing with it.
    if !(log_scale.is_finite() && error.is_finite() && masses.iter().all(|mass| mass.is_finite())) {
        return f64::INFINITY;
    }
    let (decay, whole) = ((-tilt * step).exp(), -(-step).exp_m1());
    // Within one step below a grid point the weight of what was misplaced grows by this much.
    let error = error * (tilt * step).exp();
    // What the logarithms themselves may be off by, in ε.
    let guarded = |epsilon: f64| {
        let sizes = log_scale.abs() + tilt * epsilon.abs() + log_delta.abs() + 1.0;
        epsilon + 1e-14 * sizes / tilt
    };
    // Above the window lies nothing but `error`.
    let end = (first + masses.len() as i64) as f64 * step;
    if error.ln() + log_scale - tilt * end > log_delta {
        return guarded((error.ln() + log_scale - log_delta) / tilt);
    }
    let (mut lost, mut second) = (0.0, 0.0);
    for (index, mass) in masses.iter().enumerate().rev() {
        // `lost` is Σ f e^{−θ(s−ε)}(1 − e^{ε−s}) at ε = s_index, `second` the same with e^{ε−s} alone, above it.
        let (above_lost, above_second) = (lost, second);
        lost = decay * (lost + whole * second);
        second = mass + decay * (1.0 - whole) * second;
        let epsilon = (first + index as i64) as f64 * step;
        let found = log_scale - tilt * epsilon + (lost + error).ln();
        if found.is_nan() {
            return f64::INFINITY;
        }
        if found > log_delta {
            let allowed = (log_delta + tilt * (epsilon + step) - log_scale).exp() - error - above_lost;
            let share = (allowed / above_second).min(whole);
            let back = if share > 0.0 { -(-share).ln_1p() } else { 0.0 };
            return guarded(epsilon + step - back).max(0.0);
        }
        if epsilon <= 0.0 {
            return 0.0;
        }
    }
    // The window ends above the answer.
    guarded(*first as f64 * step).max(0.0)
}

/// ε of unsampled releases by this method, to be compared with the exact one.
#[doc(hidden)]
pub fn exact_difference(noise: f64, steps: u64, delta: f64) -> f64 {
    let events = [Event { noise, rate: 1.0, steps }];
    epsilon(&events, delta) - gaussian::epsilon(gaussian::compose(&events), delta)
}
