//! `posterior`: another linker whose similarities become probabilities that a neighbour is the right record.
//!
//! Keys are taken to be off by a normal error of one size in every column, so that a neighbour at distance d speaks with exp(-d²/2s²).
//! Where records are one to one, a neighbour that other rows want more is less likely this row's: the marginals of the matching follow by
//! sum-product messages between rows and records (Williams and Lau 2014; Huang and Jebara 2009), all within the party that links. Links
//! are sorted by probability, and the similarity of each is its logarithm.

use fet_core::data::{Keys, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::noisy::schema_of_inner;

/// Settings of `posterior`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PosteriorSettings {
    /// s, the standard deviation of the error of a key's column, in the unit of the inner linker's similarities; 0 to estimate it from
    /// the links.
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
        let inner = self.inner.build(&()).map_err(|violation| violation.within("inner"))?;
        if !inner.about().similarities {
            let rule = "must give similarities";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
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
        let primary = "nothing more than with the inner linker; where a method asks for similarities, the logarithms of probabilities";
        // The probabilities of a row depend on what other rows are like.
        About { reveals: Reveals { primary, ..about.reveals }, floor: None, independent: false, ..about }
    }

    fn asker(&self, seed: u64) -> Box<dyn Asker> {
        self.inner.asker(seed)
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(Weighing { noise: self.noise, one_to_one: self.one_to_one, inner: self.inner.owner(seed) })
    }
}

struct Weighing {
    noise: f64,
    one_to_one: bool,
    inner: Box<dyn Owner>,
}

impl Owner for Weighing {
    fn challenge(&mut self, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.inner.challenge(records)
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let links = self.inner.link(task)?;
        Ok(self.weigh(&links, task.records.rows(), task.records.columns()))
    }

    fn warnings(&mut self) -> Vec<String> {
        self.inner.warnings()
    }
}

/// The rounds of messages, and of the estimate of s.
const ROUNDS: usize = 30;
const ESTIMATES: usize = 10;
/// The weight of a record's being no row's, and a row's having no record, before any distance is known.
const UNMATCHED: f64 = 0.01;
/// The least logarithm of a probability.
const LEAST: f64 = -60.0;

impl Weighing {
    fn weigh(&self, links: &Links, records: usize, columns: usize) -> Links {
        let (rows, available) = (links.rows(), links.available());
        let all = links.all_similarities().unwrap_or_default();
        // Distances are below 0; other similarities are 1 at most.
        let most = if all.iter().all(|&similarity| similarity <= 0.0) { 0.0 } else { 1.0 };
        let row_squares = |row: usize| {
            let of_row = links.similarities(row).unwrap_or_default();
            of_row[..available].iter().map(move |&s| (most - f64::from(s)).max(0.0).powi(2))
        };
        let table = Table {
            available,
            records,
            one_to_one: self.one_to_one,
            squares: (0..rows).flat_map(row_squares).collect(),
            indices: (0..rows).flat_map(|row| &links.row(row)[..available]).copied().collect(),
        };
        let variance = if self.noise > 0.0 { self.noise.powi(2) } else { table.variance(columns) };
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
        Links::new(links.neighbours(), available, indices, similarities)
    }
}

/// Rows and their neighbours at squared distances.
struct Table {
    available: usize,
    records: usize,
    one_to_one: bool,
    squares: Vec<f64>,
    indices: Vec<u32>,
}

impl Table {
    /// s² by expectation and maximisation, from the mean square of the nearest.
    fn variance(&self, columns: usize) -> f64 {
        let columns = columns.max(1) as f64;
        let nearest =
            self.squares.chunks(self.available).map(|row| row.iter().copied().fold(f64::MAX, f64::min));
        let rows = (self.squares.len() / self.available).max(1) as f64;
        let mut variance = (nearest.sum::<f64>() / rows / columns).max(f64::MIN_POSITIVE);
        for _ in 0..ESTIMATES {
            let logarithms = self.logarithms(variance);
            let sum: f64 = logarithms.iter().zip(&self.squares).map(|(l, square)| l.exp() * square).sum();
            variance = (sum / rows / columns).max(f64::MIN_POSITIVE);
        }
        variance
    }

    /// The logarithms of the probabilities of each row's neighbours, one of which is the right one.
    fn logarithms(&self, variance: f64) -> Vec<f64> {
        let mut logarithms: Vec<f64> = self.squares.iter().map(|square| -square / (2.0 * variance)).collect();
        // What is common to a row's neighbours says nothing of which it is; what is left does not underflow.
        for row in logarithms.chunks_mut(self.available) {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|l| *l -= most);
        }
        if self.one_to_one {
            let wanted = self.messages(&logarithms);
            logarithms
                .iter_mut()
                .zip(wanted)
                .for_each(|(l, message)| *l += message.max(f64::MIN_POSITIVE).ln());
        }
        for row in logarithms.chunks_mut(self.available) {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = row.iter().map(|l| (l - most).exp()).sum::<f64>().ln() + most;
            row.iter_mut().for_each(|l| *l = (*l - sum).max(LEAST));
        }
        logarithms
    }

    /// What records say to rows: how free each is, given what other rows want of it.
    fn messages(&self, logarithms: &[f64]) -> Vec<f64> {
        let affinity: Vec<f64> = logarithms.iter().map(|l| l.exp()).collect();
        let mut free = vec![1.0f64; affinity.len()];
        let mut wants = vec![0.0; affinity.len()];
        for _ in 0..ROUNDS {
            let mut of_record = vec![0.0; self.records];
            for start in (0..affinity.len()).step_by(self.available) {
                let row = start..start + self.available;
                let total: f64 = row.clone().map(|edge| affinity[edge] * free[edge]).sum();
                for edge in row {
                    let others = (total - affinity[edge] * free[edge]).max(0.0);
                    wants[edge] = affinity[edge] / (others + UNMATCHED * UNMATCHED);
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

    #[test]
    fn probabilities_of_a_row_sum_to_one() {
        let (queries, records, _) = tables(100, 0.3);
        for settings in [
            "kind = 'posterior'",
            "kind = 'posterior'\none_to_one = false",
            "kind = 'posterior'\nnoise = 1e-9",
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
