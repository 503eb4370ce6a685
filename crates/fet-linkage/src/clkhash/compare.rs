//! From a value to its tokens: what two values share, they have in common as bits.

use super::json::Node;
use super::python;
use super::schema::SchemaError;

/// How the values of a feature are compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comparison {
    /// By the n-grams they share, each with its place if `positional`.
    Ngram {
        /// The n.
        n: usize,
        /// Whether an n-gram is another one at another place.
        positional: bool,
    },
    /// Equal or not.
    Exact,
    /// By their distance (Vatsalan, Christen 2015).
    Numeric(Numeric),
}

/// Near numbers share tokens of a grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numeric {
    /// Between two points of the grid, after scaling.
    interval: i128,
    /// How many points a number has on either side.
    resolution: usize,
    /// Digits after the point that count.
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

    /// How many tokens a value has.
    pub(super) fn count(&self, value: &str) -> usize {
        match self {
            _ if value.is_empty() => 0,
            Self::Ngram { n, .. } => value.chars().count() + n - 1,
            Self::Exact => 1,
            Self::Numeric(numeric) => 2 * numeric.resolution + 1,
        }
    }

    /// Calls `take` with each token of a value, in order; the rule that the value breaks if it has none.
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

/// The n-grams of a value with n - 1 spaces on either side; places count from 1.
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
    /// What a number may be after scaling: its tokens are beyond it by less than what is left to 2^127.
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
            return Err(threshold.refuse("must not vanish when rounded to fractional_precision digits"));
        }
        // Up to here a float is as exact as the integers that Python computes with.
        if interval > (1u64 << 53) as f64 {
            return Err(threshold.refuse("must be at most 2^53 in units of the last digit that counts"));
        }
        Ok(Self { interval: interval as i128, resolution, precision })
    }

    /// The point of the grid that is nearest to a number.
    fn middle(&self, value: &str) -> Result<i128, &'static str> {
        const LARGE: &str = "must be a number whose tokens are below 2^125";
        let scaled = match python::integer(value) {
            Some(digits) => {
                let whole: i128 = digits.parse().map_err(|_| LARGE)?;
                whole.checked_mul(10i128.pow(self.precision))
            }
            None => {
                let number = python::float(value).ok_or("must be a number")?;
                // Without digits after the point clkhash cuts them off, and otherwise it rounds.
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

/// 10^digits, the float nearest to it.
fn power(digits: u32) -> f64 {
    format!("1e{digits}").parse().unwrap_or(f64::INFINITY)
}
