//! `federal`: compares numbers as bit vectors around secret random pivots, by Hamming distance.
//!
//! FedSim's encoding ([`fet_linkage::pivots`]). The primary sends its columns' ranges and its vectors; the secondary
//! encodes its records the same way and compares. ε, δ and the threshold determine the number of bits, unless it is
//! set.

use fet_linkage::bits::BitTable;
use fet_linkage::pivots::{Pivots, bit_budget};
use fet_linkage::search::{Index, Measure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{Reader, Writer};
use crate::{links, secret, wire};
use fet_core::data::{KeyKind, Keys, Matrix, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `federal` (Karapiperis, Gkoulalas-Divanis, Verykios 2018).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FederalSettings {
    /// K, the number of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them up to K (repeats are masked out); otherwise it is refused.
    pub pad: bool,
    /// The distance from a pivot up to which its bit is set, as a share of a column's range; distances beyond twice
    /// that are not distinguished.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub threshold: f64,
    /// ε, the relative error of a distance that is estimated from bits: a distance of `threshold` is estimated within the
    /// factor 1 ± ε, except with probability δ. It is no privacy loss.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub epsilon: f64,
    /// δ, the probability that a distance of `threshold` is estimated with a relative error above ε.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub delta: f64,
    /// The length of a column's bit vector; 0 for what ε, δ and the threshold require: 3 ln(2/δ) / (ε² p) bits, where p is
    /// the share of bits in which numbers at a distance of `threshold` differ.
    #[schemars(range(max = MOST_BITS))]
    pub bits: usize,
    /// The environment variable that holds the parties' shared secret, of 16 bytes or more; empty in a simulation, where the
    /// secret follows from the seed.
    #[schemars(extend("x-rule" = "the name of an environment variable, or empty"))]
    pub secret_env: String,
}

impl Default for FederalSettings {
    fn default() -> Self {
        Self {
            neighbours: 20,
            pad: false,
            threshold: 0.1,
            epsilon: 0.2,
            delta: 0.01,
            bits: 0,
            secret_env: String::new(),
        }
    }
}

/// The maximum number of bits per column: longer encodings are useless for linking many records.
const MOST_BITS: usize = 1 << 20;

impl FederalSettings {
    fn bits(&self) -> usize {
        if self.bits > 0 { self.bits } else { bit_budget(self.epsilon, self.delta, self.threshold, 1.0) }
    }
}

impl Recipe<dyn Linker> for FederalSettings {
    fn check(&self) -> Result<(), Violation> {
        secret::check(&self.secret_env)?;
        if self.bits() > MOST_BITS {
            let rule = format!(
                "must not ask for more than {MOST_BITS} bits a column (try a larger epsilon or threshold)"
            );
            return Err(Violation::new("epsilon", rule, self.bits()));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Federal(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<FederalSettings>("federal", "numbers compared as bit vectors around secret pivots (FEDERAL)")
}

struct Federal(FederalSettings);

impl Linker for Federal {
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "every primary key, nearly: it has the secret, and with it a vector gives a number to within range / \
                        bits; the ranges of the columns",
            primary: "nothing",
            eavesdropper: "how near primary records are to each other, up to twice the threshold, and the ranges of the \
                           columns",
        };
        About { in_the_clear: false, ..About::new(self.0.neighbours, KeyKind::Numbers, reveals) }
    }

    fn asker(&self, seed: u64) -> Box<dyn Asker> {
        Box::new(Side { settings: self.0.clone(), seed })
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(Side { settings: self.0.clone(), seed })
    }
}

/// Either side: its state is the secret, which both have.
struct Side {
    settings: FederalSettings,
    seed: u64,
}

impl Side {
    fn pivots(&self, ranges: &[(f64, f64)]) -> Result<Pivots, LinkError> {
        // A column that is constant gets a range all the same: records that differ from it must show.
        let width = |&(low, high): &(f64, f64)| if high > low { high - low } else { 1.0 };
        let thresholds: Vec<f64> =
            ranges.iter().map(|range| self.settings.threshold * width(range)).collect();
        let secret = secret::secret(&self.settings.secret_env, self.seed, "federal")?;
        Ok(Pivots::new(ranges, &thresholds, self.settings.bits(), *secret))
    }

    fn open(&self, message: &Sealed) -> Result<(Vec<(f64, f64)>, BitTable), LinkError> {
        let mut reader = Reader::new(message.bytes());
        let mut ranges = Vec::new();
        for _ in 0..message.columns() {
            ranges.push((reader.double()?, reader.double()?));
        }
        if !ranges.iter().all(sound) {
            return Err(LinkError::Message("it holds a column's range that no numbers have".into()));
        }
        let bits = (message.columns() * self.settings.bits()).next_multiple_of(64);
        Ok((ranges, BitTable::from_words(bits, reader.words(message.rows(), bits / 64)?)))
    }
}

fn ranges(keys: &Matrix<f64>) -> Vec<(f64, f64)> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); keys.columns()];
    for row in keys.values().chunks_exact(keys.columns().max(1)) {
        for ((low, high), &x) in ranges.iter_mut().zip(row) {
            (*low, *high) = (low.min(x), high.max(x));
        }
    }
    ranges
}

/// Whether pivots can be drawn from a range.
fn sound(&(low, high): &(f64, f64)) -> bool {
    // A range is widened on both sides, by less than its width.
    let most = f64::MAX / 8.0;
    low <= high && low >= -most && high <= most
}

impl Asker for Side {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let queries = queries.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, queries))?;
        let ranges = ranges(queries);
        let mut writer = Writer::default();
        if queries.rows() > 0 {
            if !ranges.iter().all(sound) {
                let problem = "the numbers of a column must be finite and within ±2e307".into();
                return Err(LinkError::Value { row: 0, problem });
            }
            for (low, high) in &ranges {
                writer.double(*low);
                writer.double(*high);
            }
            writer.words(self.pivots(&ranges)?.encode(queries.values()).words());
        } else {
            ranges.iter().for_each(|_| (0..2).for_each(|_| writer.double(0.0)));
        }
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), writer.bytes())))
    }
}

impl Owner for Side {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let FederalSettings { neighbours, pad, .. } = self.settings;
        let (message, records) = (wire::sealed(task.queries)?, task.records);
        let records = records.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, records))?;
        check_shapes(message.columns(), records.columns(), records.rows(), neighbours, pad)?;
        let (ranges, queries) = self.open(message)?;
        let records = self.pivots(&ranges)?.encode(records.values());
        let take = neighbours.min(records.rows());
        Ok(links(neighbours, Index::new(&records).search(&queries, take, Measure::Hamming, task.progress)))
    }
}
