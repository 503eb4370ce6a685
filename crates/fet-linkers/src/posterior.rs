//! `posterior`: turns the similarities of another linker into probabilities that a neighbour is the right
//! record.
//!
//! The model assumes a normal error with standard deviation s in every column of a key, so a neighbour at
//! distance d has the likelihood exp(-d²/2s²). The alternative of a row without a record has the likelihood of
//! a neighbour at a distance that one in a thousand right records exceeds. If records are one to one, a
//! neighbour that fits other rows better is less likely to belong to this row. Sum-product messages between
//! rows and records yield the marginals of the matching (Williams and Lau 2014; Huang and Jebara 2009),
//! within the party that links. Links are sorted by probability, and each similarity is the logarithm of the
//! probability.

use crate::resorted;
use fet_core::data::{Keys, Sealed};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier};
use fet_core::registry::{Plugin, Recipe, Slot, Violation, schema_of_inner};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Name of the linker.
const KIND: &str = "posterior";

/// Settings of `posterior`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PosteriorSettings {
    /// Standard deviation s of the error of a key's column, in the unit of the inner linker's similarities.
    /// With 0, s is estimated from the run's links, also for predictions (from the links of each release if
    /// records are drawn again for each release).
    #[schemars(range(min = 0))]
    pub noise: f64,
    /// True if a record is the right record of at most one row.
    pub one_to_one: bool,
    /// The similarity of a neighbour. `fet-pool` weights neighbours equally with both.
    pub similarity: Similarity,
    /// Linker that finds the neighbours. It must have similarities.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Linker>,
}

/// Similarity of a neighbour in the links of `posterior`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Similarity {
    /// Logarithm of the probability that the neighbour is the right record, given that one of the row's
    /// neighbours is.
    #[default]
    Probability,
    /// Logarithm of the likelihood, which also tells how near the neighbour is: −d²/(2s²) for a distance d. With
    /// `one_to_one`, the probability times the sum of the likelihoods of the row's neighbours. The sum of a row
    /// counts as at least e^−10000.
    Likelihood,
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Linker>(
        "Linker that finds the neighbours, with its settings in the same table as its kind.",
        |kind| kind != "posterior",
    )
}

impl Default for PosteriorSettings {
    fn default() -> Self {
        Self {
            noise: 0.0,
            one_to_one: true,
            similarity: Similarity::Probability,
            inner: Slot::with_defaults("nearest").expect("this crate registers it"),
        }
    }
}

impl Recipe<dyn Linker> for PosteriorSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        let inner = self.inner.build_inner(&())?;
        if !inner.about().similarities {
            let rule = "must give similarities";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
        }
        if self.inner.kind() == KIND || inner.about().probabilities {
            let rule = "must be a linker whose similarities are not already probabilities";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
        }
        let Self { noise, one_to_one, similarity, .. } = *self;
        Ok(Box::new(Posterior { noise, one_to_one, similarity, inner }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PosteriorSettings>(
        KIND,
        "another linker, with the probability that each neighbour is the right record",
    )
}

struct Posterior {
    noise: f64,
    one_to_one: bool,
    similarity: Similarity,
    inner: Box<dyn Linker>,
}

impl Linker for Posterior {
    fn about(&self) -> About {
        let about = self.inner.about();
        // The probabilities of a row depend on other rows, through the matching or through the estimate of
        // the error. The linker only reveals what its inner linker reveals.
        let independent = about.independent && !self.one_to_one && self.noise > 0.0;
        // New rows use the run's estimate of the error.
        let independent_of_new = (about.independent || about.independent_of_new) && !self.one_to_one;
        About { floor: None, independent, independent_of_new, has_threshold: false, ..about }
    }

    fn notes(&self, queries: &Keys) -> Vec<String> {
        self.inner.notes(queries)
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        self.inner.querier(seed)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        let Self { noise, one_to_one, similarity, .. } = *self;
        let floor = self.inner.about().floor;
        Box::new(Weighing {
            noise,
            one_to_one,
            similarity,
            floor,
            warnings: Vec::new(),
            inner: self.inner.data_holder(seed),
        })
    }
}

struct Weighing {
    noise: f64,
    one_to_one: bool,
    similarity: Similarity,
    /// Floor of the inner linker's similarities.
    floor: Option<f32>,
    warnings: Vec<String>,
    inner: Box<dyn DataHolder>,
}

impl DataHolder for Weighing {
    fn challenge(&mut self, queries: &Keys, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.inner.challenge(queries, records)
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let links = self.inner.link(task)?;
        self.warn_of_unlinked(&links);
        let (rows, records) = (links.rows(), task.records.rows());
        if self.one_to_one && rows > records {
            self.warnings.push(format!(
                "{rows} rows cannot each have a separate record among {records}. If a record can belong to several rows, set \
                 `linker.one_to_one = false`."
            ));
        }
        Ok(self.weigh(&links, task))
    }

    fn warnings(&mut self) -> Vec<String> {
        let mut warnings = self.inner.warnings();
        warnings.append(&mut self.warnings);
        warnings
    }
}

/// Rounds of messages, and rounds of the estimate of s.
const ROUNDS: usize = 30;
const ESTIMATES: usize = 10;
/// Prior weight of a record without a row.
const UNMATCHED: f64 = 0.01;
/// Normal quantiles of 0.5 and of 0.999.
const MEDIAN: f64 = 0.0;
const FAR: f64 = 3.09;
/// Smallest logarithm of a probability.
const LEAST: f64 = -60.0;
/// Smallest likelihood of a row, in logarithms. The differences within the row must stay exact in 32 bits.
const FARTHEST: f64 = -1e4;

impl Weighing {
    /// Warns of rows without a neighbour above the inner linker's floor. Probabilities lack a floor, so such
    /// rows are not visible later.
    fn warn_of_unlinked(&mut self, links: &Links) {
        let Some(floor) = self.floor else { return };
        let best = |row| links.similarities(row).and_then(<[f32]>::first);
        let none = (0..links.rows()).filter(|&row| best(row).is_some_and(|best| *best <= floor)).count();
        if none > 0 {
            let of = links.rows();
            self.warnings.push(format!(
                "{none} of {of} rows {} no record, and {} linked with unrelated records",
                if none == 1 { "resembles" } else { "resemble" },
                if none == 1 { "is" } else { "are" }
            ));
        }
    }

    fn weigh(&self, links: &Links, task: &LinkTask<'_>) -> Links {
        let (rows, available) = (links.rows(), links.available());
        // Similarities with a floor are at most 1. Similarities without a floor are negative distances.
        let most = if self.floor.is_some() { 1.0 } else { 0.0 };
        let row_squares = |row: usize| {
            let of_row = links.similarities(row).unwrap_or_default();
            of_row[..available].iter().map(move |&s| (most - f64::from(s)).max(0.0).powi(2))
        };
        let table = Table {
            available,
            records: task.records.rows(),
            columns: task.records.columns().max(1) as f64,
            one_to_one: self.one_to_one,
            squares: (0..rows).flat_map(row_squares).collect(),
            indices: (0..rows).flat_map(|row| &links.row(row)[..available]).copied().collect(),
        };
        let variance = match (self.noise > 0.0, task.estimate) {
            (true, _) => self.noise.powi(2).max(f64::MIN_POSITIVE),
            // The run's estimate, since a few new rows give a poor estimate.
            (false, Some(variance)) => variance,
            (false, None) => table.variance(),
        };
        let logarithms = table.logarithms(variance, self.similarity);
        let rows = table.indices.chunks(available).zip(logarithms.chunks(available));
        let rows = rows.map(|(found, logarithms)| {
            logarithms.iter().map(|&l| l as f32).zip(found.iter().copied()).collect()
        });
        resorted(links, rows).with_estimate(Some(variance))
    }
}

/// Rows with their neighbours and squared distances.
struct Table {
    available: usize,
    records: usize,
    /// Number of columns of a key.
    columns: f64,
    one_to_one: bool,
    squares: Vec<f64>,
    indices: Vec<u32>,
}

impl Table {
    /// Returns a quantile of the squared length of the error of a key, in units of s² (Wilson and Hilferty
    /// 1931). The error has one normal component for each column.
    fn quantile(&self, normal: f64) -> f64 {
        let part = 2.0 / (9.0 * self.columns);
        self.columns * (1.0 - part + normal * part.sqrt()).max(0.0).powi(3)
    }

    /// Estimates s² by expectation-maximisation, starting from the median squared distance of the nearest
    /// neighbours. Rows far from every record do not affect the estimate.
    fn variance(&self) -> f64 {
        let of_row = |row: &[f64]| row.iter().copied().fold(f64::MAX, f64::min);
        let mut nearest: Vec<f64> = self.squares.chunks(self.available).map(of_row).collect();
        nearest.sort_unstable_by(f64::total_cmp);
        let median = nearest.get(nearest.len() / 2).copied().unwrap_or(0.0);
        let mut variance = (median / self.quantile(MEDIAN)).max(f64::MIN_POSITIVE);
        for _ in 0..ESTIMATES {
            let (mut weights, mut sum) = (0.0, 0.0);
            let scores = self.scores(variance);
            for (scores, squares) in scores.chunks(self.available).zip(self.squares.chunks(self.available)) {
                let powers = scores.iter().map(|score| score.exp());
                let all = powers.clone().sum::<f64>() + self.none();
                for (power, square) in powers.zip(squares) {
                    weights += power / all;
                    sum += power / all * square;
                }
            }
            if weights > 0.0 {
                variance = (sum / weights / self.columns).max(f64::MIN_POSITIVE);
            }
        }
        variance
    }

    /// Returns the weight of the alternative of no record.
    fn none(&self) -> f64 {
        (-self.quantile(FAR) / 2.0).exp()
    }

    /// Returns the similarities of each row's neighbours: logarithms of probabilities, or of likelihoods. Both have
    /// the same differences within a row.
    fn logarithms(&self, variance: f64, similarity: Similarity) -> Vec<f64> {
        let mut scores = self.scores(variance);
        for (row, distances) in
            scores.chunks_mut(self.available).zip(self.distances(variance).chunks(self.available))
        {
            let shift = match similarity {
                Similarity::Probability => 0.0,
                Similarity::Likelihood => {
                    let [most, sum] = sum_of_exponentials(distances);
                    (most + sum).max(FARTHEST)
                }
            };
            let [most, sum] = sum_of_exponentials(row);
            row.iter_mut().for_each(|l| *l = (*l - most - sum).max(LEAST) + shift);
        }
        scores
    }

    /// Returns −d²/(2s²) of each row's neighbours.
    fn distances(&self, variance: f64) -> Vec<f64> {
        self.squares.iter().map(|square| (-square / (2.0 * variance)).max(-1e300)).collect()
    }

    /// Returns the logarithms of the weights of each row's neighbours, relative to each other and to the
    /// alternative of no record.
    fn scores(&self, variance: f64) -> Vec<f64> {
        let mut scores = self.distances(variance);
        if self.one_to_one {
            let free = self.messages(&scores);
            scores.iter_mut().zip(free).for_each(|(l, free)| *l += free.max(f64::MIN_POSITIVE).ln());
        }
        scores
    }

    /// Returns the messages of records to rows: the availability of each record, given its affinity to other
    /// rows.
    fn messages(&self, logarithms: &[f64]) -> Vec<f64> {
        let affinity: Vec<f64> = logarithms.iter().map(|l| l.exp()).collect();
        let mut free = vec![1.0f64; affinity.len()];
        let (mut wants, none) = (vec![0.0; affinity.len()], self.none());
        for _ in 0..ROUNDS {
            let mut of_record = vec![0.0; self.records];
            for start in (0..affinity.len()).step_by(self.available) {
                let row = start..start + self.available;
                let total: f64 = row.clone().map(|edge| affinity[edge] * free[edge]).sum();
                for edge in row {
                    let others = (total - affinity[edge] * free[edge]).max(0.0);
                    wants[edge] = affinity[edge] / (others + none);
                    of_record[self.indices[edge] as usize] += wants[edge];
                }
            }
            for (edge, free) in free.iter_mut().enumerate() {
                let others = (of_record[self.indices[edge] as usize] - wants[edge]).max(0.0);
                // The geometric mean with the previous message prevents oscillation.
                *free = (*free / (others + UNMATCHED)).sqrt();
            }
        }
        free
    }
}

/// Returns ln Σ eˣ in two parts, the largest x and the rest.
fn sum_of_exponentials(values: &[f64]) -> [f64; 2] {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [most, values.iter().map(|value| (value - most).exp()).sum::<f64>().ln()]
}

#[cfg(test)]
mod tests;
