//! Calibration: finds the smallest noise that keeps a sequence of releases within (ε, δ).

use super::event::{AccountError, Event, NOISE_RANGE, check_delta};
use super::{Account, gaussian};

/// Returns the smallest noise multiplier at which the releases of a run satisfy (ε, δ), rounded up to a
/// relative precision of 1e-7. `events` returns the releases of the run for a noise multiplier.
pub fn noise_for(epsilon: f64, delta: f64, events: impl Fn(f64) -> Vec<Event>) -> Result<f64, AccountError> {
    check_delta(delta)?;
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return Err(AccountError::Value { field: "epsilon", rule: "must be positive", value: epsilon });
    }
    let (low, high) = NOISE_RANGE;
    // A multiplier below the accepted range costs too much for any target.
    let cost = |noise: f64| match Account::from_events(&events(noise), delta) {
        Err(AccountError::Value { field: "noise", value, .. }) if value <= low || value.is_nan() => {
            Ok(f64::INFINITY)
        }
        account => account.map(|account| account.epsilon()),
    };
    // Without sampling, one multiplier scales all noise and the answer is exact: start from this answer.
    let plain = |noise: f64| gaussian::epsilon(gaussian::compose(&unsampled(&events(noise))), delta);
    let mut above = bisect(low, high, |noise| plain(noise) <= epsilon);
    // Sampling only reduces the cost, so `above` suffices if any noise in the range does.
    let most = cost(above)?;
    if most > epsilon {
        let (least, most) = (cost(high)?, cost(low)?);
        return Err(AccountError::OutOfReach { target: epsilon, low, high, least, most });
    }
    if events(above).iter().all(|event| event.rate >= 1.0) {
        return Ok(above);
    }
    let mut below = above;
    while cost(below)? <= epsilon {
        above = below;
        if below <= low {
            return Ok(low);
        }
        below = (below / 2.0).max(low);
    }
    secant(below, above, epsilon, cost)
}

fn unsampled(events: &[Event]) -> Vec<Event> {
    events
        .iter()
        .map(|event| Event { rate: if event.rate > 0.0 { 1.0 } else { 0.0 }, ..*event })
        .filter(|event| event.rate > 0.0)
        .collect()
}

/// Returns the smallest value from `low` to `high` that `enough` accepts, or `high` if there is none.
fn bisect(low: f64, high: f64, enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Narrows the interval between noise that costs too much and noise that does not. Uses the Illinois variant
/// of the secant method on logarithms, which needs few evaluations: each is a whole composition.
fn secant(
    mut below: f64,
    mut above: f64,
    epsilon: f64,
    cost: impl Fn(f64) -> Result<f64, AccountError>,
) -> Result<f64, AccountError> {
    // The logarithm of ε = 0 is infinite.
    let miss =
        |noise: f64| cost(noise).map(|found| (found.clamp(1e-3 * epsilon, 1e6 * epsilon) / epsilon).ln());
    let (mut at_below, mut at_above) = (miss(below)?, miss(above)?);
    for _ in 0..60 {
        if above / below < 1.0 + 1e-7 {
            break;
        }
        let (a, b) = (below.ln(), above.ln());
        let guess = b - at_above * (b - a) / (at_above - at_below);
        // Keep away from the ends so that the interval keeps shrinking.
        let margin = 1e-8_f64.max(1e-4 * (b - a)).min(0.4 * (b - a));
        let middle = guess.clamp(a + margin, b - margin).exp();
        let found = miss(middle)?;
        if found <= 0.0 {
            above = middle;
            at_above = found;
            at_below *= 0.5;
        } else {
            below = middle;
            at_below = found;
            at_above *= 0.5;
        }
    }
    Ok(above)
}
