//! Privacy loss distributions of the Poisson-subsampled Gaussian, composed by FFT (Koskela, Jälkö, Honkela
//! 2020; Gopi, Lee, Wutschitz 2021). The resulting ε is never below the true one.
//!
//! The dominating pair of one release (`pair`) gives the distribution of its loss L. Connecting the dots puts
//! this distribution on a grid (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the mass between two grid
//! points moves to these points so that both distributions of the pair keep their masses. The result
//! dominates the original distribution, with an error of the order of the squared step. Mass that is cut off
//! counts towards δ.
//!
//! T releases are composed by doubling (`compose`), under an exponential tilt by θ. The tilt puts the bulk of
//! the computed distribution near ε, so that rounding errors are small compared with δ, however small δ is.
//! The result still includes a bound on these errors. θ, steps and windows follow from the moments of the
//! loss (`plan`).
//!
//! The caller has to check if another bound is lower. If this method has no figure, it returns infinity.

mod compose;
mod moments;
mod pair;
mod plan;

use super::event::Event;
use super::gaussian;
use compose::{Composed, compose};
use moments::Kind;
use pair::Direction;
use plan::Plan;

/// Smallest noise for this method. Below it, the integration would need too many panels.
const LEAST_NOISE: f64 = 1e-2;
/// Share of δ that is reserved for outcomes that are cut off, on each side.
const CUT: f64 = 1e-9;
/// Logarithm of the smallest mass with full floating-point precision.
const LEAST_LOG: f64 = -700.0;

/// Returns the smallest ε at δ that the computed distribution shows, the larger of both directions. Returns
/// infinity if the distribution shows none.
pub fn epsilon(events: &[Event], delta: f64) -> f64 {
    if events.iter().any(|event| event.noise < LEAST_NOISE) {
        return f64::INFINITY;
    }
    // `f64::max` would ignore NaN.
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
    let reach = tail_deviations(log_cut);
    let kinds = events.iter().map(|event| Kind::new(event, direction, reach)).collect::<Option<Vec<_>>>();
    let log_delta = delta.ln() + (-2.0 * CUT).ln_1p();
    let Some(plan) = kinds.and_then(|kinds| Plan::new(kinds, log_delta)) else { return f64::INFINITY };
    search(&compose(&plan), plan.tilt, log_delta)
}

/// Returns the number of standard deviations that leaves the mass e^`log_mass` in each tail.
fn tail_deviations(log_mass: f64) -> f64 {
    // Φ(−t) <= exp(−t²/2)/2.
    (-2.0 * (log_mass + std::f64::consts::LN_2)).max(1.0).sqrt()
}

/// Returns the smallest ε with δ(ε) <= δ by walking down from the end of the window.
///
/// With tilted masses f, grid points s and log scale κ, δ(ε) = Σ_{s > ε} (1 − e^{ε−s}) f e^{κ−θs}. Tilted
/// mass x that was lost or misplaced has a weight of at most x e^{κ−θε}, wherever above ε it belongs.
fn search(composed: &Composed, tilt: f64, log_delta: f64) -> f64 {
    let Composed { masses, first, step, log_scale, error } = composed;
    // Comparisons with NaN are false, so check for NaN before comparing anything.
    if !(log_scale.is_finite() && error.is_finite() && masses.iter().all(|mass| mass.is_finite())) {
        return f64::INFINITY;
    }
    let (decay, whole) = ((-tilt * step).exp(), -(-step).exp_m1());
    // Within one step below a grid point, the weight of misplaced mass grows by this factor.
    let error = error * (tilt * step).exp();
    // Adds the possible rounding error of the logarithms to ε.
    let guarded = |epsilon: f64| {
        let sizes = log_scale.abs() + tilt * epsilon.abs() + log_delta.abs() + 1.0;
        epsilon + 1e-14 * sizes / tilt
    };
    // Above the window there is only `error`.
    let end = (first + masses.len() as i64) as f64 * step;
    if error.ln() + log_scale - tilt * end > log_delta {
        return guarded((error.ln() + log_scale - log_delta) / tilt);
    }
    let (mut lost, mut second) = (0.0, 0.0);
    for (index, mass) in masses.iter().enumerate().rev() {
        // `lost` is Σ f e^{−θ(s−ε)}(1 − e^{ε−s}) at ε = s_index; `second` is the same sum with e^{ε−s} as its
        // last factor.
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

/// Returns the difference between ε of unsampled releases by this method and their exact ε.
#[doc(hidden)]
pub fn exact_difference(noise: f64, steps: u64, delta: f64) -> f64 {
    let events = [Event { noise, rate: 1.0, steps }];
    epsilon(&events, delta) - gaussian::epsilon(gaussian::compose(&events), delta)
}
