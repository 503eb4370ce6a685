//! `fet account`: computes the privacy loss of a sequence of noisy releases, or the noise for a target loss.
//!
//! The command trains nothing and reads no file.

use fet_privacy::accountant::{Account, AccountError, Event, noise_for};
use serde_json::{Value, json};

/// Arguments of `fet account`.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["noise", "epsilon"])))]
pub struct AccountArguments {
    /// Standard deviation of the noise, in units of the sensitivity.
    #[arg(long, allow_negative_numbers = true)]
    pub noise: Option<f64>,
    /// Target ε, given instead of the noise; the command prints the smallest noise that meets the target.
    #[arg(long, allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// Probability that a release uses a record, drawn independently for each release (Poisson sampling).
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub rate: f64,
    /// Number of releases.
    #[arg(long, default_value = "1", value_parser = count)]
    pub steps: u64,
    /// δ of the (ε, δ) guarantee.
    #[arg(long, allow_negative_numbers = true)]
    pub delta: f64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Parses a whole number, also in the form `1e6`.
fn count(text: &str) -> Result<u64, String> {
    if let Ok(count) = text.parse() {
        return Ok(count);
    }
    match text.parse::<f64>() {
        Ok(value) if value.fract() == 0.0 && (0.0..=1e15).contains(&value) => Ok(value as u64),
        _ => Err("must be a whole number that is not negative".to_string()),
    }
}

const NEIGHBOURING: &str = "one record added or removed; noise in units of its sensitivity";

/// Returns the answer as text or JSON.
pub fn answer(question: &AccountArguments) -> Result<String, AccountError> {
    let AccountArguments { rate, steps, delta, .. } = *question;
    let noise = match question.epsilon {
        Some(epsilon) => noise_for(epsilon, delta, |noise| vec![Event { noise, rate, steps }])?,
        None => question.noise.unwrap_or_default(),
    };
    let account = Account::from_events(&[Event { noise, rate, steps }], delta)?;
    Ok(if question.json {
        object(question, noise, &account).to_string()
    } else {
        text(question, noise, &account)
    })
}

fn object(question: &AccountArguments, noise: f64, account: &Account) -> Value {
    json!({
        "noise": noise,
        "rate": question.rate,
        "steps": question.steps,
        "delta": question.delta,
        "target_epsilon": question.epsilon,
        "epsilon": { "exact": account.exact, "pld": account.pld, "rdp": account.rdp },
        "neighbouring": NEIGHBOURING,
    })
}

fn text(question: &AccountArguments, noise: f64, account: &Account) -> String {
    let AccountArguments { rate, steps, delta, .. } = *question;
    let mut lines = vec![format!("{steps} releases, rate {rate}, δ = {delta:e}; {NEIGHBOURING}")];
    let found = if question.epsilon.is_some() { "  (the smallest that meets the target)" } else { "" };
    lines.push(format!("noise                           {noise:.6}{found}"));
    if let Some(exact) = account.exact {
        lines.push(format!("ε, exact (Gaussian DP)          {}", bound(exact)));
    } else {
        lines.push(format!("ε, privacy loss distributions   {}", bound(account.pld)));
    }
    lines.push(format!("ε, Rényi divergences            {}", bound(account.rdp)));
    lines.join("\n")
}

/// Formats an ε; an infinite or undefined ε becomes words. JSON uses `null` for infinity.
fn bound(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("{epsilon:.6}") } else { "infinite: no guarantee".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn states_a_missing_bound_in_words() {
        for (epsilon, expected) in [
            (1.25, "1.250000"),
            (f64::INFINITY, "infinite: no guarantee"),
            (f64::NAN, "infinite: no guarantee"),
        ] {
            assert_eq!(bound(epsilon), expected);
        }
    }

    #[test]
    fn accepts_only_whole_counts() {
        assert_eq!((count("12"), count("1e6")), (Ok(12), Ok(1_000_000)));
        for text in ["-1", "1.5", "many", "1e30", "nan"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    /// Returns the larger of two integrals: ∫ max(0, p − e^ε q), and the same integral with p and q
    /// exchanged.
    ///
    /// Here p is the mixture of N(0, σ²) and N(1, σ²) at `rate`, and q is N(0, σ²). The function integrates
    /// by Simpson's rule.
    fn exact_delta(noise: f64, rate: f64, epsilon: f64) -> f64 {
        const STEPS: usize = 40_000;
        let (low, high) = (-12.0 * noise, 1.0 + 12.0 * noise);
        let width = (high - low) / STEPS as f64;
        let density = |x: f64, mean: f64| {
            (-0.5 * ((x - mean) / noise).powi(2)).exp() / (noise * (2.0 * std::f64::consts::PI).sqrt())
        };
        let value = |x: f64| {
            let (q, one) = (density(x, 0.0), density(x, 1.0));
            let p = (1.0 - rate) * q + rate * one;
            [(p - epsilon.exp() * q).max(0.0), (q - epsilon.exp() * p).max(0.0)]
        };
        let mut sums = [0.0; 2];
        for place in 0..=STEPS {
            let weight = if place == 0 || place == STEPS { 1.0 } else { [2.0, 4.0][place % 2] };
            let values = value(low + place as f64 * width);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value * width / 3.0);
        }
        sums[0].max(sums[1])
    }

    /// Checks on 1,000 seeded questions that no answer is below the exact loss, which the test integrates
    /// numerically.
    ///
    /// Several releases without sampling equal one release with less noise. With sampling the test asks about
    /// one release; `secondary/lifetime` in `fet-federation` tests several.
    #[test]
    fn never_answers_below_the_exact_loss() {
        let mut random = fet_eval::ChaCha8Rng::seed_from_u64(36);
        for number in 0..1000 {
            let sampled = number % 4 == 3;
            let steps = if sampled { 1 } else { random.random_range(1..2000) };
            let question = AccountArguments {
                noise: Some((steps as f64).sqrt() * random.random_range(0.4..6.0)),
                epsilon: None,
                rate: if sampled { random.random_range(0.05..0.9) } else { 1.0 },
                steps,
                delta: 10f64.powf(random.random_range(-6.0..-2.0)),
                json: true,
            };
            let answer: Value = serde_json::from_str(&answer(&question).expect("in range")).expect("JSON");
            let figure = |name: &str| answer["epsilon"][name].as_f64();
            let noise = question.noise.expect("given") / (steps as f64).sqrt();
            for name in ["exact", "pld", "rdp"] {
                let Some(epsilon) = figure(name) else { continue };
                let found = exact_delta(noise, question.rate, epsilon);
                assert!(
                    found <= question.delta * (1.0 + 1e-4),
                    "{question:?}: {name} {epsilon} has δ = {found:e}"
                );
            }
            let epsilon = figure("exact").or(figure("pld")).expect("bounded");
            if epsilon > 0.01 {
                let found = exact_delta(noise, question.rate, 0.98 * epsilon - 1e-3);
                assert!(found > question.delta, "{question:?}: {epsilon} is more than needed");
            }
        }
    }
}
