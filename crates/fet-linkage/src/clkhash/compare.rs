//! Tokens of a value. Two values have the bits of their common tokens in common.

use super::json::{Node, SchemaError};
use super::python;

/// Comparison of the values of a feature.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comparison {
    /// Common n-grams, each with its place if `positional`.
    Ngram {
        /// Length n of the n-grams.
        n: usize,
        /// True if an n-gram at another place is a different token.
        positional: bool,
    },
    /// Equality.
    Exact,
    /// Distance (Vatsalan, Christen 2015).
    Numeric(Numeric),
}

/// Grid whose points are the tokens of a number, so that near numbers have tokens in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numeric {
    /// Distance between two points of the grid, after scaling.
    interval: i128,
    /// Number of points on either side of a number.
    resolution: usize,
    /// Number of significant digits after the decimal point.
    precision: u32,
}

impl Comparison {
    pub(super) fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        match node.property("type")?.choice(&["ngram", "exact", "numeric"])? {
            0 => {
                let object = node.object(&["type", "n", "positional"])?;
                let positional = object.get("positional").map_or(Ok(false), |node| node.truth())?;
                Ok(Self::Ngram { n: object.need("n")?.count(1..=1_000)?, positional })
            }
            1 => node.object(&["type"]).map(|_| Self::Exact),
            _ => Numeric::parse(node).map(Self::Numeric),
        }
    }

    /// Returns the number of tokens of a value.
    pub(super) fn count(&self, value: &str) -> usize {
        match self {
            _ if value.is_empty() => 0,
            Self::Ngram { n, .. } => value.chars().count() + n - 1,
            Self::Exact => 1,
            Self::Numeric(numeric) => 2 * numeric.resolution + 1,
        }
    }

    /// Calls `take` with each token of a value, in order. Fails with the rule that the value breaks.
    pub(super) fn tokens(&self, value: &str, mut take: impl FnMut(&str)) -> Result<(), &'static str> {
        match self {
            _ if value.is_empty() => {}
            Self::Ngram { n, positional } => ngrams(value, *n, *positional, take),
            Self::Exact => take(value),
            Self::Numeric(numeric) => {
                let middle = numeric.middle(value)?;
                let side = numeric.resolution as i128;
                (-side..=side).for_each(|step| take(&(middle + step * numeric.interval).to_string()));
            }
        }
        Ok(())
    }
}

/// Calls `take` with the n-grams of a value with n - 1 spaces on either side. Places count from 1.
fn ngrams(value: &str, n: usize, positional: bool, mut take: impl FnMut(&str)) {
    let spaces = || std::iter::repeat_n(' ', n - 1);
    let signs: Vec<char> = spaces().chain(value.chars()).chain(spaces()).collect();
    let mut token = String::new();
    for (place, gram) in signs.windows(n).enumerate() {
        token.clear();
        if positional {
            token.push_str(&(place + 1).to_string());
            token.push(' ');
        }
        token.extend(gram);
        take(&token);
    }
}

impl Numeric {
    /// Largest number after scaling. The tokens around it stay below 2^127.
    const LARGEST: i128 = 1 << 125;

    fn parse(node: &Node<'_>) -> Result<Self, SchemaError> {
        let object = node.object(&["type", "thresholdDistance", "resolution", "fractional_precision"])?;
        let resolution = object.need("resolution")?.count(1..=65_536)?;
        let precision = object.get("fractional_precision").map_or(Ok(0), |node| node.count(0..=30))? as u32;
        let threshold = object.need("thresholdDistance")?;
        let distance = threshold.number()?;
        if distance <= 0.0 {
            return Err(threshold.refuse("must be above 0"));
        }
        let interval = (distance * power(precision)).round_ties_even();
        if interval < 1.0 {
            return Err(threshold.refuse("must not be 0 when rounded to fractional_precision digits"));
        }
        // Up to this limit a float is as exact as Python's integers.
        if interval > (1u64 << 53) as f64 {
            return Err(threshold.refuse("must be at most 2^53 in units of the last significant digit"));
        }
        Ok(Self { interval: interval as i128, resolution, precision })
    }

    /// Returns the grid point nearest to a number.
    fn middle(&self, value: &str) -> Result<i128, &'static str> {
        const LARGE: &str = "must be a number whose tokens are below 2^125";
        let scaled = match python::integer(value) {
            Some(digits) => {
                let whole: i128 = digits.parse().map_err(|_| LARGE)?;
                whole.checked_mul(10i128.pow(self.precision))
            }
            None => {
                let number = python::float(value).ok_or("must be a number")?;
                // clkhash truncates if there are no digits after the decimal point, and rounds otherwise.
                let scaled = match self.precision {
                    0 => number.trunc(),
                    digits => (number * power(digits)).round_ties_even(),
                };
                (scaled.abs() <= Self::LARGEST as f64).then_some(scaled as i128)
            }
        };
        let grid = scaled.and_then(|scaled| scaled.checked_mul(2 * self.resolution as i128));
        let grid = grid.filter(|grid| grid.abs() <= Self::LARGEST).ok_or(LARGE)?;
        let residue = grid.rem_euclid(self.interval);
        Ok(match residue {
            0 => grid,
            low if 2 * low < self.interval => grid - low,
            high => grid + (self.interval - high),
        })
    }
}

/// Returns the float nearest to 10^digits.
fn power(digits: u32) -> f64 {
    format!("1e{digits}").parse().unwrap_or(f64::INFINITY)
}
