//! When training stops because validation no longer improves.
//!
//! The rule knows no epochs: it is asked once for each value. Keeping the best weights is the trainer's affair.

use serde::{Deserialize, Serialize};

use crate::metric::Direction;

/// Stop after `patience` values in a row of which none is better than the best before by more than `min_delta`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct EarlyStopping {
    patience: usize,
    min_delta: f64,
    direction: Direction,
}

impl EarlyStopping {
    /// A checked rule.
    ///
    /// - patience: at least 1
    /// - min_delta: at least 0, in the unit of the value that is watched
    pub fn new(patience: usize, min_delta: f64, direction: Direction) -> Result<Self, EarlyStoppingError> {
        if patience == 0 {
            return Err(EarlyStoppingError::Patience);
        }
        if !min_delta.is_finite() || min_delta < 0.0 {
            return Err(EarlyStoppingError::MinDelta(min_delta));
        }
        Ok(Self { patience, min_delta, direction })
    }

    /// Begins to watch.
    pub fn watch(self) -> Watch {
        Watch { rule: self, best: None, since: 0 }
    }
}

/// What was seen so far; a checkpoint keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    rule: EarlyStopping,
    best: Option<f64>,
    since: usize,
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Better than the best before by more than `min_delta`.
    Better,
    /// Not so, and patience lasts.
    NotBetter,
    /// Not so for `patience` values in a row: stop.
    Stop,
}

impl Watch {
    /// Takes the next value. NaN and infinities are no improvement, not even as the first value.
    pub fn see(&mut self, value: f64) -> Seen {
        let gain = self.best.map_or(f64::INFINITY, |best| self.rule.direction.gain(value, best));
        if value.is_finite() && gain > self.rule.min_delta {
            self.best = Some(value);
            self.since = 0;
            return Seen::Better;
        }
        self.since += 1;
        if self.since >= self.rule.patience { Seen::Stop } else { Seen::NotBetter }
    }

    /// The best value; an improvement by `min_delta` or less does not count.
    pub fn best(&self) -> Option<f64> {
        self.best
    }
}

/// The rule as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    patience: usize,
    min_delta: f64,
    direction: Direction,
}

impl TryFrom<Unchecked> for EarlyStopping {
    type Error = EarlyStoppingError;

    fn try_from(given: Unchecked) -> Result<Self, EarlyStoppingError> {
        Self::new(given.patience, given.min_delta, given.direction)
    }
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EarlyStoppingError {
    /// No patience.
    #[error("patience is at least 1 value, not 0; leave early stopping out to train to the last epoch")]
    Patience,
    /// Not a difference.
    #[error("min_delta is finite and not negative, not {0}; take 0")]
    MinDelta(f64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Maximise, Minimise};

    /// Sees each value; a letter for each answer: better, not better, stop.
    #[track_caller]
    fn check(
        patience: usize,
        min_delta: f64,
        direction: Direction,
        values: &[f64],
        expect: &str,
        best: Option<f64>,
    ) {
        let mut watch = EarlyStopping::new(patience, min_delta, direction).expect("a rule").watch();
        let letter = |seen| match seen {
            Seen::Better => 'b',
            Seen::NotBetter => 'n',
            Seen::Stop => 's',
        };
        let seen: String = values.iter().map(|value| letter(watch.see(*value))).collect();
        assert_eq!((seen.as_str(), watch.best()), (expect, best), "{values:?}");
    }

    #[test]
    fn values_are_judged_against_the_best() {
        check(2, 0.0, Minimise, &[3.0, 2.0, 2.0, 1.0, 1.5, 1.2], "bbnbns", Some(1.0));
        check(2, 0.0, Maximise, &[0.5, 0.6, 0.6, 0.7, 0.1, 0.2], "bbnbns", Some(0.7));
        check(1, 0.0, Minimise, &[1.0, 1.0], "bs", Some(1.0));
        check(3, 0.5, Minimise, &[3.0, 2.75, 2.5, 2.25], "bnnb", Some(2.25));
        check(3, 0.5, Maximise, &[1.0, 1.5, 1.4, 1.3], "bnns", Some(1.0));
        check(2, 0.0, Minimise, &[f64::NAN, 2.0, f64::NAN, f64::NEG_INFINITY], "nbns", Some(2.0));
        check(2, 0.0, Maximise, &[f64::NAN, f64::NAN], "ns", None);
    }

    #[test]
    fn a_rule_is_checked_when_it_is_read() {
        assert_eq!(EarlyStopping::new(0, 0.0, Minimise), Err(EarlyStoppingError::Patience));
        for delta in [-1e-9, f64::NAN, f64::INFINITY] {
            assert!(EarlyStopping::new(1, delta, Minimise).is_err(), "{delta}");
        }
        let read = |text| serde_json::from_str::<EarlyStopping>(text);
        assert!(read(r#"{"patience":5,"min_delta":0.0,"direction":"minimise"}"#).is_ok());
        assert!(read(r#"{"patience":0,"min_delta":0.0,"direction":"minimise"}"#).is_err());
    }
}
