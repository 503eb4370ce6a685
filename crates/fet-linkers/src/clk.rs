//! `clk`: compares texts as cryptographic long-term keys, by Dice similarity.
//!
//! The primary computes field weights from its own records ([`Schema::fit`]), encodes them and sends weights and
//! filters; the secondary encodes its records the same way and compares ([`fet_linkage::clk`]). A record with only
//! empty fields has similarity 0.

use fet_linkage::bits::BitTable;
use fet_linkage::blocking::Blocking;
use fet_linkage::clk::{ClkSettings as Code, Encoder, FieldPlan, Hardening, MOST_HASHES, Schema};
use fet_linkage::search::{Index, Measure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{Reader, Writer};
use crate::{check_weights, links, secret, wire};
use fet_core::data::{KeyKind, Keys, Sealed, TextTable};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};

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
    /// The mean number of insertions into a filter, as a share of its length: it decides how many bits a q-gram sets.
    #[schemars(range(max = 2), extend("exclusiveMinimum" = 0))]
    pub load: f64,
    /// The weight of each key column, by which its entropy is multiplied; empty for equal weights.
    #[schemars(inner(range(min = 0)), extend("x-rule" = "empty, or weights of which one is above 0"))]
    pub weights: Vec<f64>,
    /// The group number of each key column: columns of one group are hashed alike, so that their texts may be swapped;
    /// empty if no columns may be swapped.
    pub groups: Vec<u32>,
    /// The defence of filters against attacks on the frequencies of their bits.
    pub hardening: Harden,
    /// The environment variable that holds the parties' shared secret, of 16 bytes or more; empty in a simulation, where the
    /// secret follows from the seed.
    #[schemars(extend("x-rule" = "the name of an environment variable, or empty"))]
    pub secret_env: String,
    /// The number of bits that each blocking table samples, where only records are compared that agree in all bits of a
    /// table; 0 to compare all pairs.
    #[schemars(range(max = 65_536))]
    pub block_bits: usize,
    /// The probability that blocking compares two records of similarity `block_similarity`; it decides the number of tables.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_recall: f64,
    /// The Dice similarity of two filters for which `block_recall` holds.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub block_similarity: f64,
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
}

impl From<Harden> for Hardening {
    fn from(harden: Harden) -> Self {
        match harden {
            Harden::None => Self::None,
            Harden::Balanced => Self::Balanced,
            Harden::XorFold => Self::XorFold,
            Harden::Rehash => Self::Rehash,
        }
    }
}

impl Default for ClkSettings {
    fn default() -> Self {
        Self {
            neighbours: 20,
            pad: false,
            bits: 1_024,
            q: 2,
            load: 0.35,
            weights: Vec::new(),
            groups: Vec::new(),
            hardening: Harden::None,
            secret_env: String::new(),
            block_bits: 0,
            block_recall: 0.99,
            block_similarity: 0.7,
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
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Clk(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<ClkSettings>("clk", "texts compared as keyed Bloom filters (cryptographic long-term keys)")
}

struct Clk(ClkSettings);

impl Linker for Clk {
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "how similar each primary record is to each of its own; it has the secret, so that it can try whether a \
                        guessed name and address is among the primary's; mean length and entropy of the fields",
            primary: "nothing",
            eavesdropper: "filters: how similar primary records are to each other, and how frequent their bits are, which \
                           attacks on frequent names use (`hardening`)",
        };
        let about = About::new(self.0.neighbours, KeyKind::Text, reveals);
        About { floor: Some(0.0), in_the_clear: false, ..about }
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
    settings: ClkSettings,
    seed: u64,
}

impl Side {
    fn encoder(&self, schema: &Schema) -> Result<Encoder, LinkError> {
        let ClkSettings { bits, q, hardening, secret_env, .. } = &self.settings;
        let code = Code { bits: *bits, q: *q, hardening: (*hardening).into() };
        Ok(Encoder::new(code, &secret::secret(secret_env, self.seed, "clk")?, schema))
    }

    /// The schema of the fields, with weights from the primary's records.
    fn schema(&self, queries: &TextTable) -> Result<Schema, LinkError> {
        let ClkSettings { bits, q, load, weights, groups, .. } = &self.settings;
        let fields = queries.columns();
        if !groups.is_empty() && groups.len() != fields {
            return Err(crate::wrong_length("groups", groups.len(), fields));
        }
        let weights = crate::weights(weights, fields)?;
        Ok(Schema::fit(queries.cells(), fields, *q, load * *bits as f64, &weights, groups))
    }

    fn open(&self, message: &Sealed) -> Result<(Schema, BitTable), LinkError> {
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
        let bits = Hardening::from(self.settings.hardening).bits(self.settings.bits);
        Ok((Schema { fields }, BitTable::from_words(bits, reader.words(message.rows(), bits / 64)?)))
    }
}

impl Asker for Side {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let queries = queries.text().ok_or_else(|| LinkError::kind(KeyKind::Text, queries))?;
        let schema = self.schema(queries)?;
        let table = self.encoder(&schema)?.encode(queries.cells());
        let mut writer = Writer::default();
        for field in &schema.fields {
            writer.number(field.group);
            writer.number(field.hashes as u32);
        }
        writer.words(table.words());
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
        let (schema, queries) = self.open(message)?;
        let records = self.encoder(&schema)?.encode(records.cells());
        let take = settings.neighbours.min(records.rows());
        let found = if settings.block_bits == 0 {
            Index::new(&records).search(&queries, take, Measure::Dice, task.progress)
        } else {
            // Two filters of a set bits each and Dice similarity s differ in 2a(1 - s) bits.
            let ones = (0..queries.rows()).map(|row| f64::from(queries.ones(row))).sum::<f64>();
            let ones = ones / queries.rows().max(1) as f64;
            let differing = 2.0 * ones * (1.0 - settings.block_similarity) / queries.bits() as f64;
            let tables = Blocking::tables_for(settings.block_bits, differing.min(1.0), settings.block_recall);
            let blocking = Blocking { tables: tables.min(1_000), sampled: settings.block_bits };
            blocking.search(&queries, &records, take, Measure::Dice, self.seed, task.progress).0
        };
        Ok(links(settings.neighbours, found))
    }
}
