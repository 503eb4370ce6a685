//! `fet account`: the privacy loss of a sequence of noisy releases, or the noise for a given loss. It runs no training
//! and reads no file.

use fet_privacy::accountant::{Account, AccountError, Event, noise_for};
use serde_json::{Value, json};

/// The arguments of `fet account`.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["noise", "epsilon"])))]
pub struct Question {
    /// Standard deviation of the noise, in units of the sensitivity.
    #[arg(long, allow_negative_numbers = true)]
    pub noise: Option<f64>,
    /// Instead of the noise: the target ε; the answer is the least noise that meets it.
    #[arg(long, allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// The probability that a record is used in a release, drawn independently for each (Poisson sampling).
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub rate: f64,
    /// How many releases.
    #[arg(long, default_value = "1", value_parser = count)]
    pub steps: u64,
    /// δ of the (ε, δ) guarantee.
    #[arg(long, allow_negative_numbers = true)]
    pub delta: f64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A whole number, also in the form `1e6`.
fn count(text: &str) -> Result<u64, String> {
    if let Ok(count) = text.parse() {
        return Ok(count);
    }
    match text.parse::<f64>() {
        Ok(value) if value.fract() == 0.0 && (0.0..=1e15).contains(&value) => Ok(value as u64),
        _ => Err("must be a whole number, not negative".to_string()),
    }
}

const NEIGHBOURING: &str = "one record added or removed; noise in units of its sensitivity";

/// The answer, as text or JSON.
pub fn answer(question: &Question) -> Result<String, AccountError> {
    let Question { rate, steps, delta, .. } = *question;
    let noise = match question.epsilon {
        Some(epsilon) => noise_for(epsilon, delta, |noise| vec![Event { noise, rate, steps }])?,
        None => question.noise.unwrap_or_default(),
    };
    let account = Account::of(&[Event { noise, rate, steps }], delta)?;
    Ok(if question.json {
        object(question, noise, &account).to_string()
    } else {
        text(question, noise, &account)
    })
}

fn object(question: &Question, noise: f64, account: &Account) -> Value {
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

fn text(question: &Question, noise: f64, account: &Account) -> String {
    let Question { rate, steps, delta, .. } = *question;
    let mut lines = vec![format!("{steps} releases, rate {rate}, δ = {delta:e}; {NEIGHBOURING}")];
    let found = if question.epsilon.is_some() { "  (the least that meets the target)" } else { "" };
    lines.push(format!("noise                           {noise:.6}{found}"));
    if let Some(exact) = account.exact {
        lines.push(format!("ε, exact (Gaussian DP)          {}", bound(exact)));
    } else {
        lines.push(format!("ε, privacy loss distributions   {}", bound(account.pld)));
    }
    lines.push(format!("ε, Rényi divergences            {}", bound(account.rdp)));
    lines.join("\n")
}

/// An ε in words where it is no number that bounds anything. JSON has no infinity: there it is `null`.
fn bound(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("{epsilon:.6}") } else { "infinite: no guarantee".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_nothing_is_said_in_words() {
        for (epsilon, expected) in [
            (1.25, "1.250000"),
            (f64::INFINITY, "infinite: no guarantee"),
            (f64::NAN, "infinite: no guarantee"),
        ] {
            assert_eq!(bound(epsilon), expected);
        }
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!((count("12"), count("1e6")), (Ok(12), Ok(1_000_000)));
        for text in ["-1", "1.5", "many", "1e30", "nan"] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
