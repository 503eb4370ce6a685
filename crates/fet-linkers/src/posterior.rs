//! `posterior`: another linker whose similarities become probabilities that a neighbour is the right record.
//!
//! Keys are taken to be off by a normal error of one size in every column, so that a neighbour at distance d speaks with exp(-d²/2s²),
//! and a row's having no record as one at the distance that one in a thousand right records has.
//! Where records are one to one, a neighbour that other rows want more is less likely this row's: the marginals of the matching follow by
//! sum-product messages between rows and records (Williams and Lau 2014; Huang and Jebara 2009), all within the party that links. Links
//! are sorted by probability, and the similarity of each is its logarithm.

use fet_core::data::{Keys, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::noisy::schema_of_inner;

/// Settings of `posterior`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PosteriorSettings {
    /// s, the standard deviation of the error of a key's column, in the unit of the inner linker's similarities; 0 to estimate it from
    /// the run's links, also for predictions (from those of each release where records are drawn anew for it).
    #[schemars(range(min = 0))]
    pub noise: f64,
    /// Whether a record is the right one of at most one row.
    pub one_to_one: bool,
    /// The linker that finds the neighbours; one that has similarities.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Linker>,
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner("The linker that finds the neighbours; its settings stand beside its kind.")
}

impl Default for PosteriorSettings {
    fn default() -> Self {
        Self { noise: 0.0, one_to_one: true, inner: Slot::of("nearest").expect("this crate registers it") }
    }
}

impl Recipe<dyn Linker> for PosteriorSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        let inner = self.inner.build_inner(&())?;
        if !inner.about().similarities {
            let rule = "must give similarities";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
        }
        if self.inner.kind() == "posterior" {
            let rule = "must be a linker whose similarities are no probabilities already";
            return Err(Violation::new("inner.kind", rule, "\"posterior\""));
        }
        Ok(Box::new(Posterior { noise: self.noise, one_to_one: self.one_to_one, inner }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PosteriorSettings>(
        "posterior",
        "another linker, with the probability that each neighbour is the right record",
    )
}

struct Posterior {
    noise: f64,
    one_to_one: bool,
    inner: Box<dyn Linker>,
}

impl Linker for Posterior {
    fn about(&self) -> About {
        let about = self.inner.about();
        // The probabilities of a row depend on what other rows are like, by the matching or by the estimate of the error. Whoever learns
        // what the inner linker reveals learns no more.
        let independent = about.independent && !self.one_to_one && self.noise > 0.0;
        About { floor: None, independent, ..about }
    }

    fn asker(&self, seed: u64) -> Box<dyn Asker> {
        self.inner.asker(seed)
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        let Self { noise, one_to_one, .. } = *self;
        let floor = self.inner.about().floor;
        Box::new(Weighing { noise, one_to_one, floor, warnings: Vec::new(), inner: self.inner.owner(seed) })
    }
}

struct Weighing {
    noise: f64,
    one_to_one: bool,
    /// Of the inner linker.
    floor: Option<f32>,
    warnings: Vec<String>,
    inner: Box<dyn Owner>,
}

impl Owner for Weighing {
    fn challenge(&mut self, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.inner.challenge(records)
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let links = self.inner.link(task)?;
        self.warn_of_unlinked(&links);
        let (rows, records) = (links.rows(), task.records.rows());
        if self.one_to_one && rows > records {
            self.warnings.push(format!(
                "{rows} rows cannot each have a record of their own among {records}; where a record belongs to several rows, \
                 `linker.one_to_one = false` is right"
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

/// The rounds of messages, and of the estimate of s.
const ROUNDS: usize = 30;
const ESTIMATES: usize = 10;
/// The weight of a record's being no row's, before any distance is known.
const UNMATCHED: f64 = 0.01;
/// The normal quantiles of a half and of 0.999.
const MEDIAN: f64 = 0.0;
const FAR: f64 = 3.09;
/// The least logarithm of a probability.
const LEAST: f64 = -60.0;

impl Weighing {
    /// Probabilities have no floor: what is below that of the inner linker shows nowhere else.
    fn warn_of_unlinked(&mut self, links: &Links) {
        let Some(floor) = self.floor else { return };
        let best = |row| links.similarities(row).and_then(<[f32]>::first);
        let none = (0..links.rows()).filter(|&row| best(row).is_some_and(|best| *best <= floor)).count();
        if none > 0 {
            let of = links.rows();
            self.warnings.push(format!(
                "{none} of {of} rows resemble no record; what is linked with them are other records"
            ));
        }
    }

    fn weigh(&self, links: &Links, task: &LinkTask<'_>) -> Links {
        let (rows, available) = (links.rows(), links.available());
        // Similarities with a floor are 1 at most; those without one are negative distances.
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
            // Few new rows would tell little of it.
            (false, Some(variance)) => variance,
            (false, None) => table.variance(),
        };
        let logarithms = table.logarithms(variance);
        let (mut indices, mut similarities) = (Vec::new(), Vec::new());
        for (found, logarithms) in table.indices.chunks(available).zip(logarithms.chunks(available)) {
            let mut pairs: Vec<(f32, u32)> =
                logarithms.iter().map(|&l| l as f32).zip(found.iter().copied()).collect();
            pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for place in 0..links.neighbours() {
                similarities.push(pairs[place % available].0);
                indices.push(pairs[place % available].1);
            }
        }
        Links::new(links.neighbours(), available, indices, similarities).with_estimate(Some(variance))
    }
}

/// Rows and their neighbours at squared distances.
struct Table {
    available: usize,
    records: usize,
    /// The columns of a key.
    columns: f64,
    one_to_one: bool,
    squares: Vec<f64>,
    indices: Vec<u32>,
}

impl Table {
    /// A quantile of the squared length of as many normal errors as a key has columns, in units of s² (Wilson and Hilferty 1931).
    fn quantile(&self, normal: f64) -> f64 {
        let part = 2.0 / (9.0 * self.columns);
        self.columns * (1.0 - part + normal * part.sqrt()).max(0.0).powi(3)
    }

    /// s² by expectation and maximisation, from the median square of the nearest: rows far from every record have no say.
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

    /// The weight of a row's having no record.
    fn none(&self) -> f64 {
        (-self.quantile(FAR) / 2.0).exp()
    }

    /// The logarithms of the probabilities of each row's neighbours, given that one of them is the right one.
    fn logarithms(&self, variance: f64) -> Vec<f64> {
        let mut scores = self.scores(variance);
        for row in scores.chunks_mut(self.available) {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = row.iter().map(|l| (l - most).exp()).sum::<f64>().ln();
            row.iter_mut().for_each(|l| *l = (*l - most - sum).max(LEAST));
        }
        scores
    }

    /// How a row's neighbours stand to each other, and to its having none: logarithms.
    fn scores(&self, variance: f64) -> Vec<f64> {
        let mut scores: Vec<f64> =
            self.squares.iter().map(|square| (-square / (2.0 * variance)).max(-1e300)).collect();
        if self.one_to_one {
            let free = self.messages(&scores);
            scores.iter_mut().zip(free).for_each(|(l, free)| *l += free.max(f64::MIN_POSITIVE).ln());
        }
        scores
    }

    /// What records say to rows: how free each is, given what other rows want of it.
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
                // The geometric mean with the message before: without it they swing.
                *free = (*free / (others + UNMATCHED)).sqrt();
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use fet_core::data::Matrix;
    use fet_core::linker::link;
    use fet_core::rng::{Purpose, stream};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Records in a random order; each row's true record is known.
    fn tables(rows: usize, noise: f64) -> (Keys, Keys, Vec<u32>) {
        let mut rng = stream(9, 0, Purpose::Linking, 0);
        let mut normal = || StandardNormal.sample(&mut rng);
        let keys: Vec<f64> = (0..2 * rows).map(|_| normal()).collect();
        let records: Vec<f64> = keys.iter().map(|key| key + noise * normal()).collect();
        let order: Vec<usize> = (0..rows).map(|row| row * 7 % rows).collect();
        let mut place = vec![0; rows];
        order.iter().enumerate().for_each(|(at, &row)| place[row] = at as u32);
        let records = Matrix::new(2, records).select_rows(&order);
        (Matrix::new(2, keys).into(), records.into(), place)
    }

    fn linker(text: &str) -> Box<dyn Linker> {
        let table = text.parse().expect("TOML");
        Slot::<dyn Linker>::from_table(table).expect("settings").build(&()).expect("sound")
    }

    /// The mean probability of the right record.
    fn right(settings: &str, noise: f64) -> f64 {
        let (queries, records, place) = tables(1000, noise);
        let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
        let of = |(row, place): (usize, &u32)| {
            let at = links.row(row).iter().position(|record| record == place);
            at.map_or(0.0, |at| f64::from(links.similarities(row).expect("similarities")[at]).exp())
        };
        place.iter().enumerate().map(of).sum::<f64>() / place.len() as f64
    }

    const INNER: &str = "inner = { kind = 'nearest', neighbours = 10 }";

    #[test]
    fn one_to_one_tells_more_than_distance_alone_and_the_error_is_estimated() {
        let told = right(&format!("kind = 'posterior'\nnoise = 0.05\none_to_one = false\n{INNER}"), 0.05);
        let matched = right(&format!("kind = 'posterior'\nnoise = 0.05\n{INNER}"), 0.05);
        let estimated = right(&format!("kind = 'posterior'\n{INNER}"), 0.05);
        assert!(matched > told + 0.05, "{told} {matched} {estimated}");
        assert!((estimated - matched).abs() < 0.05, "{matched} {estimated}");
    }

    /// A row that comes alone is judged by what all rows of the run said.
    #[test]
    fn the_error_is_that_of_the_run_where_it_is_given() {
        let (queries, records, _) = tables(1000, 0.05);
        let linker = linker(&format!("kind = 'posterior'\none_to_one = false\n{INNER}"));
        let links = |queries: &Keys, estimate| {
            let task = LinkTask { estimate, ..LinkTask::new(queries, &records) };
            linker.owner(3).link(&task).expect("linkable")
        };
        let run = links(&queries, None);
        let alone = queries.select_rows(&[17]);
        assert_eq!(links(&alone, run.estimate()).row(0), run.row(17));
        assert_eq!(links(&alone, run.estimate()).similarities(0), run.similarities(17));
        assert_ne!(links(&alone, None).similarities(0), run.similarities(17));
    }

    /// By a table: keys of one column, s = 1. The row at -20 has no record, and takes none from the row at 0.5.
    #[test]
    fn a_row_far_from_every_record_takes_none_from_others() {
        let keys = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
        let settings = "kind = 'posterior'\nnoise = 1\ninner = { kind = 'nearest', neighbours = 2 }";
        let links = link(linker(settings).as_ref(), &keys(&[0.5, -20.0]), &keys(&[0.0, 4.0]), 3, &|_| ());
        let links = links.expect("linkable");
        let first = f64::from(links.similarities(0).expect("similarities")[0]).exp();
        assert!(links.row(0)[0] == 0 && first > 0.99, "{first}");
    }

    /// One key that means that it is missing does not make every other row's links alike.
    #[test]
    fn one_key_far_out_leaves_the_estimate_as_it_is() {
        let (queries, records, place) = tables(300, 0.02);
        let mut values = queries.numbers().expect("numbers").values().to_vec();
        let right = |values: Vec<f64>| {
            let queries = Keys::from(Matrix::new(2, values));
            let settings = "kind = 'posterior'\ninner = { kind = 'nearest', neighbours = 5 }";
            let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
            let of = |row: usize| {
                let at = links.row(row).iter().position(|record| *record == place[row]);
                at.map_or(0.0, |at| f64::from(links.similarities(row).expect("similarities")[at]).exp())
            };
            (1..300).map(of).sum::<f64>() / 299.0
        };
        let before = right(values.clone());
        values[..2].fill(-999.0);
        let after = right(values);
        assert!(before > 0.8 && (before - after).abs() < 0.01, "{before} {after}");
    }

    #[test]
    fn probabilities_of_a_row_sum_to_one() {
        let (queries, records, _) = tables(100, 0.3);
        for settings in [
            "kind = 'posterior'",
            "kind = 'posterior'\none_to_one = false",
            "kind = 'posterior'\nnoise = 1e-300",
        ] {
            let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
            for row in 0..100 {
                let all = links.similarities(row).expect("similarities");
                let sum: f64 = all.iter().map(|&l| f64::from(l).exp()).sum();
                assert!((sum - 1.0).abs() < 1e-4 && all.iter().all(|l| l.is_finite()), "{settings}: {sum}");
            }
        }
    }

    #[test]
    fn an_inner_linker_without_similarities_is_refused() {
        let table = "kind = 'posterior'\ninner = { kind = 'random' }".parse().expect("TOML");
        let slot = Slot::<dyn Linker>::from_table(table).expect("settings");
        let Err(error) = slot.build(&()) else { panic!("it is refused") };
        assert!(error.to_string().contains("inner.kind"), "{error}");
    }
}
