//! `federal`: compares numbers as bit vectors around secret random pivots, by Hamming distance.
//!
//! This is FedSim's encoding ([`fet_linkage::pivots`]). The primary sends the ranges of its columns and its
//! vectors. The secondary encodes its records the same way and compares. ε, δ and the threshold determine the
//! number of bits, unless `bits` is set.

use fet_linkage::bits::BitTable;
use fet_linkage::pivots::{Pivots, bit_budget};
use fet_linkage::search::{Index, Measure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{Reader, Writer};
use crate::{links, secret, wire};
use fet_core::data::{KeyKind, Keys, Matrix, Sealed};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals, check_shapes,
};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `federal` (Karapiperis, Gkoulalas-Divanis, Verykios 2018).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FederalSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Maximum distance from a pivot at which its bit is set, as a share of a column's range. Distances
    /// beyond twice this threshold cannot be distinguished.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub threshold: f64,
    /// Relative error ε of a distance that is estimated from bits. A distance of `threshold` is estimated
    /// within the factor 1 ± ε, except with probability δ. It is unrelated to privacy loss.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub epsilon: f64,
    /// Probability δ that a distance of `threshold` is estimated with a relative error above ε.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub delta: f64,
    /// Length of a column's bit vector. With 0, ε, δ and the threshold determine the length: 3 ln(2/δ) / (ε²
    /// p) bits, where p is the share of differing bits of two numbers at a distance of `threshold`.
    #[schemars(range(max = MOST_BITS))]
    pub bits: usize,
    /// Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
    /// where the seed determines the secret.
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

/// Maximum number of bits per column. Longer encodings are impractical for linking many records.
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
                "must not require more than {MOST_BITS} bits per column (increase `epsilon` or `threshold`)"
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
            secondary: "approximately every primary key, since it has the secret and a vector then gives a number to within \
                        range / bits; the ranges of the columns",
            primary: "nothing",
            eavesdropper: "the distances between primary records, up to twice the threshold, and the ranges of the \
                           columns",
        };
        About { in_the_clear: false, ..About::new(self.0.neighbours, KeyKind::Numbers, reveals) }
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        Box::new(Side { settings: self.0.clone(), seed })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Side { settings: self.0.clone(), seed })
    }
}

/// Either side. Its state is the secret, which both sides have.
struct Side {
    settings: FederalSettings,
    seed: u64,
}

impl Side {
    fn pivots(&self, ranges: &[(f64, f64)]) -> Result<Pivots, LinkError> {
        // A constant column also gets a range, so that records with other values differ from it.
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
            return Err(LinkError::Message("it contains an impossible range of a column".into()));
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

/// Returns true if pivots can be drawn from a range.
fn sound(&(low, high): &(f64, f64)) -> bool {
    // Each side of a range is widened by less than the width of the range.
    let most = f64::MAX / 8.0;
    low <= high && low >= -most && high <= most
}

impl Querier for Side {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
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

impl DataHolder for Side {
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
