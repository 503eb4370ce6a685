//! `clk`: compares texts as cryptographic long-term keys, by the correlation of their bits.
//!
//! The primary learns the rarity of q-grams and words from its own records ([`Encoder::rarity`]), encodes the
//! records and sends both. The secondary encodes its records the same way and compares
//! ([`fet_linkage::clk`]). A record with only empty fields has similarity -1. A field that is missing on one
//! side sets no bits there, and the correlation depends on the remaining fields. With match weights
//! ([`Scoring`]), the secondary compares the records with the highest correlation column by column. The
//! similarity is then the probability that a record is the row's match.

mod near;
mod salt;
mod shared;
mod weights;

use std::collections::HashMap;

use fet_linkage::bits::BitTable;
use fet_linkage::blocking::{Blocking, FilterTables};
use fet_linkage::clk::{Encoder, EncoderSettings, FieldPlan, Hardening, MOST_HASHES, Rarity, Schema};
use fet_linkage::search::{Index, Measure};
use fet_linkage::text::TextRows;
use fet_linkage::weights::candidates;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::wire::{Reader, Writer};
use crate::{check_weights, known, links, secret, wire};
use fet_core::data::{KeyKind, Keys, Sealed, TextTable};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals, check_shapes,
};
use fet_core::registry::{Plugin, Recipe, Violation};

pub use near::{Order, Sign};
pub use shared::LinkageSchema;
pub use weights::Scoring;

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
    fn with(self, indices: usize) -> Hardening {
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

impl Recipe<dyn Linker> for ClkSettings {
    fn check(&self) -> Result<(), Violation> {
        check_weights(&self.weights)?;
        secret::check(&self.secret_env)?;
        if !self.bits.is_power_of_two() {
            return Err(Violation::new("bits", "must be a power of two", self.bits));
        }
        near::check(self)?;
        salt::check(self.salt_column, self.salt_signs)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Clk(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<ClkSettings>("clk", "texts compared as keyed Bloom filters (cryptographic long-term keys)")
}

struct Clk(ClkSettings);

/// Returns the disclosure of each weighting and scoring.
fn reveals(settings: &ClkSettings) -> Reveals {
    let secondary = match (settings.weighting, settings.scoring) {
        (Weighting::Rarity, Scoring::Correlation) => {
            "the similarity of each primary record to each of its own records; since it has the secret, it can test whether a guessed name \
             and address is among the primary's; the frequency of each q-gram and word in at least three primary records, and the weight of \
             all others in each field"
        }
        (Weighting::Entropy, Scoring::Correlation) => {
            "the similarity of each primary record to each of its own records; since it has the secret, it can test whether a guessed name \
             and address is among the primary's; mean length and entropy of the fields"
        }
        (Weighting::Rarity, Scoring::MatchWeights) => {
            "the similarity of each field of each primary record to that of each of its own records; since it has the secret, it can test \
             guesses, and even one field at a time, which takes few guesses; the frequency of each q-gram and word in at least three primary \
             records, and the weight of all others in each field; the missing fields"
        }
        (Weighting::Entropy, Scoring::MatchWeights) => {
            "the similarity of each field of each primary record to that of each of its own records; since it has the secret, it can test \
             guesses, and even one field at a time, which takes few guesses; mean length and entropy of the fields; the missing fields"
        }
    };
    let eavesdropper = match settings.scoring {
        Scoring::Correlation => {
            "filters: the similarities between primary records, and the frequencies of their bits, which attacks on frequent names use \
             (`hardening`, `salt_column`); the number of q-grams of each rarity, but not the q-grams"
        }
        Scoring::MatchWeights => {
            "filters of records and of each field: the missing fields, the primary records with equal values in a field and the frequency of \
             each value, which attacks on frequent names use with more success than filters of records; `hardening` does not hide equal \
             values; the number of q-grams of each rarity, but not the q-grams"
        }
    };
    Reveals { secondary, primary: "nothing", eavesdropper }
}

impl Linker for Clk {
    fn about(&self) -> About {
        let reveals = reveals(&self.0);
        let about = About::new(self.0.neighbours, KeyKind::Text, reveals);
        let probabilities = self.0.scoring == Scoring::MatchWeights;
        About { floor: Some(0.0), in_the_clear: false, probabilities, has_threshold: true, ..about }
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new() })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new() })
    }
}

/// Either side. Its state is the secret, which both sides have.
struct Side {
    settings: ClkSettings,
    seed: u64,
    warnings: Vec<String>,
}

/// Returns an encoder with these settings.
fn encoder(settings: &ClkSettings, secret: &[u8; 32], schema: &Schema) -> Encoder {
    let code = EncoderSettings {
        bits: settings.bits,
        q: settings.q,
        hardening: settings.hardening.with(settings.diffusion),
    };
    Encoder::new(code, secret, schema)
        .salted(salt::from_settings(settings.salt_column, settings.salt_signs))
        .near(near::distances(&settings.near, &settings.dates))
}

/// Returns the schema of the fields, with weights from these records.
fn schema(settings: &ClkSettings, secret: &[u8; 32], records: &TextTable) -> Result<Schema, LinkError> {
    let ClkSettings { bits, q, load, weights, groups, .. } = settings;
    let fields = records.columns();
    salt::fits(settings.salt_column, fields)?;
    near::fits(&settings.near, fields)?;
    if !groups.is_empty() && groups.len() != fields {
        return Err(crate::wrong_length("groups", groups.len(), fields));
    }
    let weights = crate::weights(weights, fields)?;
    let insertions = load * *bits as f64;
    match settings.weighting {
        Weighting::Entropy => {
            Ok(Schema::fit(&TextRows { cells: &records.cells(), fields }, *q, insertions, &weights, groups))
        }
        Weighting::Rarity => {
            let mut schema = Schema::of_groups(fields, groups);
            let encoder = encoder(settings, secret, &schema);
            schema.rarity = Some(encoder.rarity(&records.cells(), insertions, &weights));
            Ok(schema)
        }
    }
}

impl Side {
    fn secret(&self) -> Result<Zeroizing<[u8; 32]>, LinkError> {
        secret::secret(&self.settings.secret_env, self.seed, "clk")
    }

    /// Warns if many filters are more than half full. The common bits of two such filters are mostly chance.
    fn warn(&mut self, filters: &BitTable, whose: &str) {
        let full = (0..filters.rows()).filter(|&row| 2 * filters.ones(row) as usize > filters.bits()).count();
        if self.settings.hardening == Harden::None && 20 * full > filters.rows() {
            self.warnings.push(format!(
                "{full} of {} {whose} records fill more than half of their {} bits. Long texts need more bits: increase `linker.bits`.",
                filters.rows(),
                filters.bits()
            ));
        }
    }

    /// Returns the blocking of the settings if it saves time. Warns if it does not, or if blocking was chosen
    /// automatically.
    fn blocking(&mut self, tables: FilterTables<'_>, take: usize) -> Option<Blocking> {
        let ClkSettings { blocking, block_bits, block_recall, block_similarity, .. } = self.settings;
        if blocking == When::Never {
            return None;
        }
        if block_bits == 0 {
            let chosen = Blocking::choose(tables, take, block_similarity, block_recall)?;
            self.warnings.push(format!(
                "{} by {} rows are compared with blocking: pairs of Dice similarity {block_similarity} are compared with probability {block_recall}, \
                 by {} samples of {} bits. Set `linker.blocking = \"never\"` to compare all pairs.",
                tables.queries.rows(),
                tables.records.rows(),
                chosen.tables,
                chosen.sampled
            ));
            return Some(chosen);
        }
        let differing = Blocking::differing(tables.queries, block_similarity);
        let samples = Blocking::tables_for(block_bits, differing, block_recall);
        let chosen = Blocking { tables: samples, sampled: block_bits };
        if chosen.cost(tables, take) < 1.0 {
            return Some(chosen);
        }
        self.warnings.push(format!(
            "`block_bits = {block_bits}` needs {samples} samples for a recall of {block_recall} at similarity {block_similarity}. The \
             linker compares all pairs instead, which costs less."
        ));
        None
    }

    /// Reads the schema and the filters of the records, followed by the filters of each field if there are
    /// any.
    fn open(&self, message: &Sealed) -> Result<(Schema, Vec<BitTable>), LinkError> {
        let mut reader = Reader::new(message.bytes());
        let mut fields = Vec::new();
        for _ in 0..message.columns() {
            let plan = FieldPlan { group: reader.number()?, hashes: reader.number()? as usize };
            if plan.hashes > MOST_HASHES {
                let problem = format!(
                    "a field sets {} bits for each q-gram; the maximum is {MOST_HASHES}",
                    plan.hashes
                );
                return Err(LinkError::Message(problem));
            }
            fields.push(plan);
        }
        let rarity = if self.settings.weighting == Weighting::Rarity {
            let unseen = (0..message.columns()).map(|_| stored(&mut reader)).collect::<Result<_, _>>()?;
            let mut grams = HashMap::new();
            for _ in 0..reader.number()? {
                let tag = u64::from(reader.number()?) | u64::from(reader.number()?) << 32;
                grams.insert(tag, stored(&mut reader)?);
            }
            Some(Rarity::new(grams, unseen))
        } else {
            None
        };
        let schema = Schema { fields, rarity };
        if !schema.is_sound() {
            let problem = "fields of one group set different numbers of bits for a text".to_string();
            return Err(LinkError::Message(problem));
        }
        let mut lengths =
            vec![self.settings.hardening.with(self.settings.diffusion).bits(self.settings.bits)];
        lengths.extend(weights::lengths(&self.settings, &schema));
        let words = reader.words(message.rows(), lengths.iter().sum::<usize>() / 64)?;
        Ok((schema, weights::split(words, &lengths)))
    }
}

/// Reads the stored number of bits of a q-gram.
fn stored(reader: &mut Reader<'_>) -> Result<u16, LinkError> {
    let value = reader.number()?;
    u16::try_from(value).map_err(|_| {
        LinkError::Message(format!("a q-gram sets {value} fractions of a bit; the maximum is 65535"))
    })
}

impl Querier for Side {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let queries = queries.text().ok_or_else(|| LinkError::kind(KeyKind::Text, queries))?;
        let queries = known(queries, &self.settings.missing);
        let queries = near::Forms::from_settings(&self.settings).spelled(&queries)?;
        let secret = self.secret()?;
        let schema = schema(&self.settings, &secret, &queries)?;
        let table = encoder(&self.settings, &secret, &schema).encode(&queries.cells());
        let mut writer = Writer::default();
        for field in &schema.fields {
            writer.number(field.group);
            writer.number(field.hashes as u32);
        }
        if let Some(rarity) = &schema.rarity {
            rarity.unseen().iter().for_each(|&stored| writer.number(u32::from(stored)));
            let grams = rarity.grams();
            writer.number(grams.len() as u32);
            for (tag, stored) in grams {
                writer.number(tag as u32);
                writer.number((tag >> 32) as u32);
                writer.number(u32::from(stored));
            }
        }
        let fields = weights::encode(&self.settings, &secret, &schema, &queries);
        let tables: Vec<&BitTable> = std::iter::once(&table).chain(&fields).collect();
        weights::join(&tables, queries.rows()).for_each(|words| writer.words(words));
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), writer.bytes())))
    }
}

impl DataHolder for Side {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let settings = &self.settings;
        let (message, records) = (wire::sealed(task.queries)?, task.records);
        let records = records.text().ok_or_else(|| LinkError::kind(KeyKind::Text, records))?;
        check_shapes(
            message.columns(),
            records.columns(),
            records.rows(),
            settings.neighbours,
            settings.pad,
        )?;
        salt::fits(settings.salt_column, records.columns())?;
        near::fits(&settings.near, records.columns())?;
        let (schema, queries) = self.open(message)?;
        let (queries, of_queries) =
            queries.split_first().ok_or_else(|| LinkError::Message("it contains no filters".into()))?;
        let (secret, known) = (self.secret()?, known(records, &settings.missing));
        let known = near::Forms::from_settings(settings).spelled(&known).map_err(LinkError::of_own_table)?;
        let of_records = weights::encode(settings, &secret, &schema, &known);
        let records = encoder(settings, &secret, &schema).encode(&known.cells());
        self.warnings.extend(near::warnings(&self.settings, &known));
        self.warn(queries, "primary");
        self.warn(&records, "own");
        let wanted = self.settings.neighbours.min(records.rows());
        let weigh = self.settings.scoring == Scoring::MatchWeights;
        let take = if weigh { candidates(wanted, records.rows()) } else { wanted };
        let measure = Measure::Correlation(queries.bits() as u32);
        let tables = FilterTables { queries, records: &records };
        let found = match self.blocking(tables, take) {
            Some(blocking) => blocking.search(tables, take, measure, self.seed, task.progress).0,
            None => Index::new(&records).search(queries, take, measure, task.progress),
        };
        if !weigh {
            return Ok(links(self.settings.neighbours, found));
        }
        let sides = weights::Sides { queries, of_queries, of_records: &of_records };
        let (found, matched) = weights::best(&sides, &found, wanted, self.seed, &mut self.warnings);
        Ok(links(self.settings.neighbours, found).with_estimate(Some(matched)))
    }

    fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

#[cfg(test)]
mod tests;
