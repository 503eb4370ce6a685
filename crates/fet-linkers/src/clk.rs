//! `clk`: compares texts as cryptographic long-term keys, by the correlation of their bits.
//!
//! The primary learns from its own records how rare q-grams and words are ([`Encoder::rarity`]), encodes them and sends both; the
//! secondary encodes its records the same way and compares ([`fet_linkage::clk`]). A record with only empty fields has similarity -1.
//! What is missing on one side sets no bits there, and the correlation judges by what is left. With match weights ([`Scoring`]) the records
//! that correlate most are compared column by column, and the similarity is the probability that one is the row's match.

mod near;
mod salt;
mod shared;
mod weights;

use std::collections::HashMap;

use fet_linkage::bits::BitTable;
use fet_linkage::blocking::Blocking;
use fet_linkage::clk::{ClkSettings as Code, Encoder, FieldPlan, Hardening, MOST_HASHES, Rarity, Schema};
use fet_linkage::search::{Index, Measure};
use fet_linkage::weights::candidates;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::wire::{Reader, Writer};
use crate::{check_weights, known, links, secret, wire};
use fet_core::data::{KeyKind, Keys, Sealed, TextTable};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};

pub use near::{Order, Sign};
pub use shared::LinkageSchema;
pub use weights::Scoring;

/// Settings of `clk` (Schnell, Bachteler, Reiher 2009).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClkSettings {
    /// K, the number of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them up to K (repeats are masked out); otherwise it is refused.
    pub pad: bool,
    /// The length of a record's Bloom filter before hardening, in bits.
    #[schemars(range(min = 128, max = 65_536), extend("x-rule" = "a power of two"))]
    pub bits: usize,
    /// The length of the hashed q-grams, in characters.
    #[schemars(range(min = 1, max = 8))]
    pub q: usize,
    /// The mean number of insertions into a filter, as a share of its length: it decides how many bits q-grams set.
    #[schemars(range(max = 2), extend("exclusiveMinimum" = 0))]
    pub load: f64,
    /// How many bits a q-gram sets.
    pub weighting: Weighting,
    /// What a similarity is; not in encodings of owners who are apart.
    pub scoring: Scoring,
    /// The weight of each key column, by which that is multiplied; empty for equal weights.
    #[schemars(inner(range(min = 0)), extend("x-rule" = "empty, or weights of which one is above 0"))]
    pub weights: Vec<f64>,
    /// The group number of each key column: columns of one group are hashed alike, so that their texts may be swapped;
    /// empty if no columns may be swapped.
    pub groups: Vec<u32>,
    /// For each key column that holds numbers the distance from which on two of them have nothing in common (nearer ones are the more
    /// alike the nearer they are), and 0 for one of texts; empty where all are texts.
    #[schemars(inner(range(min = 0)))]
    pub near: Vec<f64>,
    /// The numbers of the key columns (the first is 1) that hold dates, for which `near` counts days: as 1990-02-03, 3.2.1990 or 19900203,
    /// each column in the order of day and month that its own cells show (`date_order`).
    pub dates: Vec<usize>,
    /// The order of day and month in dates that do not begin with the year, at both parties, where the cells of a column do not show it.
    pub date_order: Order,
    /// The sign before the decimals of numbers for which `near` says a distance, at both parties, where the cells of a column do not show it.
    pub decimal: Sign,
    /// The defence of filters against attacks on the frequencies of their bits.
    pub hardening: Harden,
    /// The number of a filter's bits that `hardening = "diffusion"` combines into each bit: more hide more, and only more similar
    /// records are found.
    #[schemars(range(min = 2, max = 64))]
    pub diffusion: usize,
    /// The number of the key column (the first is 1) on whose value all hashes of a record depend, as its year of birth; 0 for none.
    /// Names are then frequent only among records that have the same value. A record in which it is missing or wrong is not linked.
    pub salt_column: usize,
    /// The number of characters of that value's normal form that count, from its beginning (4 for the year of 1956-04-09); 0 for all.
    pub salt_signs: usize,
    /// The environment variable that holds the parties' shared secret, of 16 bytes or more; empty in a simulation, where the
    /// secret follows from the seed.
    #[schemars(extend("x-rule" = "the name of an environment variable, or empty"))]
    pub secret_env: String,
    /// What counts as missing beside an empty cell, whatever its case, as in ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Whether only some pairs are compared: those that agree in all bits of a sample, of several samples.
    pub blocking: When,
    /// The number of bits that each sample has; 0 to choose it where there are so many rows that comparing all pairs would take minutes.
    #[schemars(range(max = 65_536))]
    pub block_bits: usize,
    /// The probability that blocking compares two records of similarity `block_similarity`; it decides the number of tables.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_recall: f64,
    /// The Dice similarity of two filters for which `block_recall` holds.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_similarity: f64,
}

/// How many bits a q-gram sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// By how rare it is among the primary's records, as in tf-idf vectors; the secondary learns how frequent q-grams are.
    #[default]
    Rarity,
    /// All of a column the same, by the entropy of its values; words do not count by themselves.
    Entropy,
}

/// Whether only some pairs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Where it is expected to take less time.
    #[default]
    Auto,
    /// Not: all pairs are compared.
    Never,
}

/// The defence of filters against attacks on the frequencies of their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Harden {
    /// No defence.
    #[default]
    None,
    /// The filter followed by its complement.
    Balanced,
    /// The exclusive-or of the filter's halves.
    XorFold,
    /// New bits computed from each window of old ones.
    Rehash,
    /// Each bit the exclusive-or of `diffusion` bits of the filter at secret places.
    Diffusion,
}

impl Harden {
    /// The hardening; `indices` are those of diffusion.
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

/// What is revealed by each weighting and scoring.
fn reveals(settings: &ClkSettings) -> Reveals {
    let secondary = match (settings.weighting, settings.scoring) {
        (Weighting::Rarity, Scoring::Correlation) => {
            "how similar each primary record is to each of its own; it has the secret, so that it can try whether a guessed name and \
             address is among the primary's; how frequent each q-gram and word is that three primary records or more have, how much the \
             others tell in each field"
        }
        (Weighting::Entropy, Scoring::Correlation) => {
            "how similar each primary record is to each of its own; it has the secret, so that it can try whether a guessed name and \
             address is among the primary's; mean length and entropy of the fields"
        }
        (Weighting::Rarity, Scoring::MatchWeights) => {
            "how similar each field of each primary record is to that of each of its own; it has the secret, so that it can try guesses, \
             and one field at a time, which takes few; how frequent each q-gram and word is that three primary records or more have, how \
             much the others tell in each field; which fields are missing"
        }
        (Weighting::Entropy, Scoring::MatchWeights) => {
            "how similar each field of each primary record is to that of each of its own; it has the secret, so that it can try guesses, \
             and one field at a time, which takes few; mean length and entropy of the fields; which fields are missing"
        }
    };
    let eavesdropper = match settings.scoring {
        Scoring::Correlation => {
            "filters: how similar primary records are to each other, and how frequent their bits are, which attacks on frequent names use \
             (`hardening`, `salt_column`); how many q-grams are how rare, not which"
        }
        Scoring::MatchWeights => {
            "filters of records and of each field: which fields are missing, which primary records have equal values in a field and how \
             frequent each value is, which attacks on frequent names use with more success than on filters of records; `hardening` does not \
             hide equal values; how many q-grams are how rare, not which"
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

    fn asker(&self, seed: u64) -> Box<dyn Asker> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new() })
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new() })
    }
}

/// Either side: its state is the secret, which both have.
struct Side {
    settings: ClkSettings,
    seed: u64,
    warnings: Vec<String>,
}

/// An encoder by these settings.
fn encoder(settings: &ClkSettings, secret: &[u8; 32], schema: &Schema) -> Encoder {
    let code =
        Code { bits: settings.bits, q: settings.q, hardening: settings.hardening.with(settings.diffusion) };
    Encoder::new(code, secret, schema)
        .salted(salt::of(settings.salt_column, settings.salt_signs))
        .near(near::of(&settings.near, &settings.dates))
}

/// The schema of the fields, with weights from these records.
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
        Weighting::Entropy => Ok(Schema::fit(&records.cells(), fields, *q, insertions, &weights, groups)),
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

    /// Warns where many filters are more than half full: what two of them have in common is then mostly chance.
    fn warn(&mut self, filters: &BitTable, whose: &str) {
        let full = (0..filters.rows()).filter(|&row| 2 * filters.ones(row) as usize > filters.bits()).count();
        if self.settings.hardening == Harden::None && 20 * full > filters.rows() {
            self.warnings.push(format!(
                "{full} of {} {whose} records fill more than half of their {} bits: long texts want more (`linker.bits`)",
                filters.rows(),
                filters.bits()
            ));
        }
    }

    /// The blocking of the settings, if it pays; it says so if it does not, or if nobody asked for it.
    fn blocking(&mut self, queries: &BitTable, records: &BitTable, take: usize) -> Option<Blocking> {
        let ClkSettings { blocking, block_bits, block_recall, block_similarity, .. } = self.settings;
        if blocking == When::Never {
            return None;
        }
        if block_bits == 0 {
            let chosen = Blocking::choose(queries, records, take, block_similarity, block_recall)?;
            self.warnings.push(format!(
                "{} by {} rows are not all compared: those of Dice similarity {block_similarity} are with probability {block_recall}, by {} \
                 samples of {} bits (`linker.blocking = \"never\"` compares all)",
                queries.rows(),
                records.rows(),
                chosen.tables,
                chosen.sampled
            ));
            return Some(chosen);
        }
        let differing = Blocking::differing(queries, block_similarity);
        let tables = Blocking::tables_for(block_bits, differing, block_recall);
        let chosen = Blocking { tables, sampled: block_bits };
        if chosen.cost(queries, records, take) < 1.0 {
            return Some(chosen);
        }
        self.warnings.push(format!(
            "`block_bits = {block_bits}` needs {tables} samples for a recall of {block_recall} at similarity {block_similarity}: comparing \
             all pairs costs less, and is done"
        ));
        None
    }

    /// The schema, and filters of the records, followed by those of each field where they have any.
    fn open(&self, message: &Sealed) -> Result<(Schema, Vec<BitTable>), LinkError> {
        let mut reader = Reader::new(message.bytes());
        let mut fields = Vec::new();
        for _ in 0..message.columns() {
            let plan = FieldPlan { group: reader.number()?, hashes: reader.number()? as usize };
            if plan.hashes > MOST_HASHES {
                let problem =
                    format!("a field sets {} bits for each q-gram; {MOST_HASHES} are the most", plan.hashes);
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

/// What is stored of a q-gram's bits.
fn stored(reader: &mut Reader<'_>) -> Result<u16, LinkError> {
    let value = reader.number()?;
    u16::try_from(value)
        .map_err(|_| LinkError::Message(format!("a q-gram sets {value} parts of a bit; 65535 are the most")))
}

impl Asker for Side {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let queries = queries.text().ok_or_else(|| LinkError::kind(KeyKind::Text, queries))?;
        let queries = known(queries, &self.settings.missing);
        let queries = near::Forms::of(&self.settings).spelled(&queries)?;
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

impl Owner for Side {
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
            queries.split_first().ok_or_else(|| LinkError::Message("it has no filters".into()))?;
        let (secret, known) = (self.secret()?, known(records, &settings.missing));
        let known = near::Forms::of(settings).spelled(&known).map_err(LinkError::of_own_table)?;
        let of_records = weights::encode(settings, &secret, &schema, &known);
        let records = encoder(settings, &secret, &schema).encode(&known.cells());
        self.warnings.extend(near::warnings(&self.settings, &known));
        self.warn(queries, "primary");
        self.warn(&records, "own");
        let wanted = self.settings.neighbours.min(records.rows());
        let weigh = self.settings.scoring == Scoring::MatchWeights;
        let take = if weigh { candidates(wanted, records.rows()) } else { wanted };
        let measure = Measure::Correlation(queries.bits() as u32);
        let found = match self.blocking(queries, &records, take) {
            Some(blocking) => blocking.search(queries, &records, take, measure, self.seed, task.progress).0,
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
