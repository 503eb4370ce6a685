//! Settings of `clk`.

use fet_linkage::clk::Hardening;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `clk` (Schnell, Bachteler, Reiher 2009). They are on one level, because nesting would change the users' files.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClkSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Length of a record's Bloom filter before hardening, in bits.
    #[schemars(range(min = 128, max = 65_536), extend("x-rule" = "a power of two"))]
    pub bits: usize,
    /// Length of the hashed q-grams, in characters.
    #[schemars(range(min = 1, max = 8))]
    pub q: usize,
    /// Mean number of insertions into a filter, as a share of its length. It determines the number of bits
    /// that q-grams set.
    #[schemars(range(max = 2), extend("exclusiveMinimum" = 0))]
    pub load: f64,
    /// Number of bits that each q-gram sets.
    pub weighting: Weighting,
    /// Meaning of a similarity. `match-weights` is not available for tables that are encoded separately (`fet
    /// link schema`).
    pub scoring: Scoring,
    /// Weight of each key column, which multiplies the bits of its q-grams; empty for equal weights.
    #[schemars(inner(range(min = 0)), extend("x-rule" = "empty, or weights with at least one above 0"))]
    pub weights: Vec<f64>,
    /// Group number of each key column. Columns of one group use the same hashes, so that their texts may be
    /// swapped. Empty if no columns may be swapped.
    pub groups: Vec<u32>,
    /// For each key column of numbers, the distance from which two numbers have nothing in common (nearer
    /// numbers are more similar); 0 for columns of texts. Empty if all columns are texts.
    #[schemars(inner(range(min = 0)))]
    pub near: Vec<f64>,
    /// Numbers of the key columns (the first is 1) with dates, for which `near` is in days. Dates may be
    /// written as 1990-02-03, 3.2.1990 or 19900203. The cells of each column show its order of day and month
    /// (`date_order`).
    pub dates: Vec<usize>,
    /// Order of day and month in dates that do not begin with the year, at both parties. It applies if the
    /// cells of a column do not show the order.
    pub date_order: Order,
    /// Decimal separator of numbers in columns with a distance in `near`, at both parties. It applies if the
    /// cells of a column do not show the separator.
    pub decimal: Sign,
    /// Protection of filters against attacks on the frequencies of their bits.
    pub hardening: Harden,
    /// Number of a filter's bits that `hardening = "diffusion"` combines into each bit. A larger number hides
    /// more, but finds only more similar records.
    #[schemars(range(min = 2, max = 64))]
    pub diffusion: usize,
    /// Number of the key column (the first is 1) whose value changes all hashes of a record, such as the year
    /// of birth; 0 for none. The frequency of a name is then its frequency among records with the same value.
    /// A record with a missing or wrong value is not linked.
    pub salt_column: usize,
    /// Number of leading characters of that value's normal form that count (4 for the year of 1956-04-09); 0
    /// for all.
    pub salt_signs: usize,
    /// Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
    /// where the seed determines the secret.
    #[schemars(extend("x-rule" = "the name of an environment variable, or empty"))]
    pub secret_env: String,
    /// Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Use of blocking, which compares only pairs that agree in all bits of at least one sample.
    pub blocking: When,
    /// Number of bits of each sample. With 0, the linker chooses the number if comparing all pairs would take
    /// minutes.
    #[schemars(range(max = 65_536))]
    pub block_bits: usize,
    /// Probability that blocking compares two records with similarity `block_similarity`. It determines the
    /// number of tables.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_recall: f64,
    /// Dice similarity of two filters at which `block_recall` holds.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_similarity: f64,
}

/// Number of bits that a q-gram sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// By the rarity of the q-gram among the primary's records, as in tf-idf vectors. The secondary learns
    /// the frequencies of q-grams.
    #[default]
    Rarity,
    /// Equal for all q-grams of a column, by the entropy of its values. Words do not count separately.
    Entropy,
}

/// Use of blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Uses blocking if it is expected to take less time.
    #[default]
    Auto,
    /// Compares all pairs.
    Never,
}

/// Order of day and month in dates that do not begin with the year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Chooses the order that fits all cells of a column. If both orders fit, the linker refuses the column.
    #[default]
    Auto,
    /// 31/12/1990.
    DayFirst,
    /// 12/31/1990.
    MonthFirst,
}

/// Decimal separator of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Chooses the separator that fits all cells of a column. If both separators fit, the linker refuses the
    /// column.
    #[default]
    Auto,
    /// 1,234.5.
    Point,
    /// 1.234,5.
    Comma,
}

/// Meaning of a similarity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scoring {
    /// Correlation of the bits of two filters, one for each record.
    #[default]
    Correlation,
    /// Probability that a record is the row's match, by weights of each column's similarity that are learned
    /// from these tables without truth (Fellegi and Sunter 1969). Each column has a separate filter, and the
    /// secondary learns the similarity of each column.
    MatchWeights,
}

/// Protection of filters against attacks on the frequencies of their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Harden {
    /// No protection.
    #[default]
    None,
    /// Appends the complement of the filter.
    Balanced,
    /// Combines the filter's halves by exclusive-or.
    XorFold,
    /// Computes new bits from each window of old bits.
    Rehash,
    /// Computes each bit as the exclusive-or of `diffusion` bits of the filter at secret places.
    Diffusion,
}

impl Harden {
    /// Returns the hardening, with `indices` for diffusion.
    pub(super) fn with(self, indices: usize) -> Hardening {
        match self {
            Self::None => Hardening::None,
            Self::Balanced => Hardening::Balanced,
            Self::XorFold => Hardening::XorFold,
            Self::Rehash => Hardening::Rehash,
            Self::Diffusion => Hardening::Diffusion(indices),
        }
    }
}

impl Default for ClkSettings {
    fn default() -> Self {
        Self {
            neighbours: 20,
            pad: false,
            bits: 2_048,
            q: 3,
            load: 0.2,
            weighting: Weighting::Rarity,
            scoring: Scoring::Correlation,
            weights: Vec::new(),
            groups: Vec::new(),
            near: Vec::new(),
            dates: Vec::new(),
            date_order: Order::Auto,
            decimal: Sign::Auto,
            hardening: Harden::None,
            diffusion: 10,
            salt_column: 0,
            salt_signs: 0,
            secret_env: String::new(),
            missing: Vec::new(),
            blocking: When::Auto,
            block_bits: 0,
            block_recall: 0.99,
            block_similarity: 0.65,
        }
    }
}
