//! The least noise that keeps a sequence of releases within (ε, δ).

use super::{Account, AccountError, Event, NOISE_RANGE, check_delta, gaussian};

/// The least noise multiplier with which `steps` releases at `rate` satisfy (ε, δ), to a relative 1e-7 and on the
/// safe side. `events` turns a noise multiplier into the releases of the run.
pub fn noise_for(epsilon: f64, delta: f64, events: impl Fn(f64) -> Vec<Event>) -> Result<f64, AccountError> {
    check_delta(delta)?;
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return Err(AccountError::Value { field: "epsilon", rule: "must be positive", value: epsilon });
    }
    let (low, high) = NOISE_RANGE;
    // A multiplier below what is accounted for costs too much for any target.
    let cost = |noise: f64| match Account::of(&events(noise), delta) {
        Err(AccountError::Value { field: "noise", value, .. }) if value <= low || value.is_nan() => {
            Ok(f64::INFINITY)
        }
        account => account.map(|account| account.epsilon()),
    };
    // Without sampling one multiplier scales all: start where the exact answer is.
    let plain = |noise: f64| gaussian::epsilon(gaussian::compose(&unsampled(&events(noise))), delta);
    let mut above = bisect(low, high, |noise| plain(noise) <= epsilon);
    // Sampling only helps, so that `above` is enough, if anything is.
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

/// The least value from `low` to `high` that `enough` accepts; `high` where none does.
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

/// Closes in on the noise between one that costs too much and one that does not, on logarithms, by the Illinois
/// rule: each evaluation is a composition, so few are made.
fn secant(
    mut below: f64,
    mut above: f64,
    epsilon: f64,
    cost: impl Fn(f64) -> Result<f64, AccountError>,
) -> Result<f64, AccountError> {
    // ε can be 0, whose logarithm would lead nowhere.
    let miss =
        |noise: f64| cost(noise).map(|found| (found.clamp(1e-3 * epsilon, 1e6 * epsilon) / epsilon).ln());
    let (mut at_below, mut at_above) = (miss(below)?, miss(above)?);
    for _ in 0..60 {
        if above / below < 1.0 + 1e-7 {
            break;
        }
        let (a, b) = (below.ln(), above.ln());
        let guess = b - at_above * (b - a) / (at_above - at_below);
        // Never so near an end that the interval stops shrinking.
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
