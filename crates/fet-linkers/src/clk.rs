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
mod settings;
mod shared;
mod weights;

use std::collections::HashMap;

use fet_linkage::bits::BitTable;
use fet_linkage::blocking::{Blocking, FilterTables};
use fet_linkage::clk::{Encoder, EncoderSettings, FieldPlan, MOST_HASHES, Rarity, Schema};
use fet_linkage::search::{Index, Measure};
use fet_linkage::text::TextRows;
use fet_linkage::weights::candidates;
use zeroize::Zeroizing;

use crate::wire::{Reader, Writer};
use crate::{check_weights, known, links, secret, wire};
use fet_core::data::{KeyKind, Keys, Sealed, TextTable};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals, check_shapes,
};
use fet_core::registry::{Plugin, Recipe, Violation};

use settings::When;

pub use settings::{ClkSettings, Harden, Order, Scoring, Sign, Weighting};
pub use shared::LinkageSchema;

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
        // Match weights are learned from all pairs of a request.
        let independent_of_new = !probabilities;
        About {
            floor: Some(0.0),
            in_the_clear: false,
            probabilities,
            independent_of_new,
            has_threshold: true,
            ..about
        }
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new(), learned: None })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Side { settings: self.0.clone(), seed, warnings: Vec::new(), learned: None })
    }
}

/// Either side. Its state is the secret, which both sides have.
struct Side {
    settings: ClkSettings,
    seed: u64,
    warnings: Vec<String>,
    /// Schema of the keys that the querier encoded last, as in its message.
    learned: Option<Vec<u8>>,
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

    /// Reads the schema of a message with this number of columns.
    fn read_schema(&self, reader: &mut Reader<'_>, columns: usize) -> Result<Schema, LinkError> {
        let mut fields = Vec::new();
        for _ in 0..columns {
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
            let unseen = (0..columns).map(|_| stored(reader)).collect::<Result<_, _>>()?;
            let mut grams = HashMap::new();
            for _ in 0..reader.number()? {
                let tag = u64::from(reader.number()?) | u64::from(reader.number()?) << 32;
                grams.insert(tag, stored(reader)?);
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
        Ok(schema)
    }

    /// Reads the schema and the filters of the records, followed by the filters of each field if there are
    /// any.
    fn open(&self, message: &Sealed) -> Result<(Schema, Vec<BitTable>), LinkError> {
        let mut reader = Reader::new(message.bytes());
        let schema = self.read_schema(&mut reader, message.columns())?;
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

/// Writes a schema.
fn write_schema(writer: &mut Writer, schema: &Schema) {
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
}

impl Side {
    /// Encodes the keys with a given schema, or with a schema of these keys.
    fn encode_keys(&mut self, queries: &Keys, learned: Option<&[u8]>) -> Result<Keys, LinkError> {
        let queries = queries.text().ok_or_else(|| LinkError::kind(KeyKind::Text, queries))?;
        let queries = known(queries, &self.settings.missing);
        let queries = near::Forms::from_settings(&self.settings).spelled(&queries)?;
        let secret = self.secret()?;
        let schema = match learned {
            Some(learned) => self.read_schema(&mut Reader::new(learned), queries.columns())?,
            None => schema(&self.settings, &secret, &queries)?,
        };
        let table = encoder(&self.settings, &secret, &schema).encode(&queries.cells());
        let mut writer = Writer::default();
        write_schema(&mut writer, &schema);
        let fields = weights::encode(&self.settings, &secret, &schema, &queries);
        let tables: Vec<&BitTable> = std::iter::once(&table).chain(&fields).collect();
        weights::join(&tables, queries.rows()).for_each(|words| writer.words(words));
        let mut learned = Writer::default();
        write_schema(&mut learned, &schema);
        self.learned = Some(learned.bytes());
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), writer.bytes())))
    }
}

impl Querier for Side {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        self.encode_keys(queries, None)
    }

    fn learned(&self) -> Option<Vec<u8>> {
        self.learned.clone()
    }

    fn encode_like(&mut self, queries: &Keys, learned: &[u8]) -> Result<Keys, LinkError> {
        self.encode_keys(queries, Some(learned))
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
