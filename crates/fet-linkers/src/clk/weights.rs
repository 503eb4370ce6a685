//! Match weights in `clk`: a separate filter for each column, or group of columns, in addition to the filter
//! of the record.

use fet_core::data::TextTable;
use fet_core::linker::LinkError;
use fet_linkage::bits::BitTable;
use fet_linkage::clk::{Encoder, EncoderSettings, Schema};
use fet_linkage::neighbours::Neighbours;
use fet_linkage::weights::{Fields, rank};

use super::settings::{ClkSettings, Scoring};
use super::{near, salt};

/// Length of a column's filter, as a multiple of its mean number of insertions.
const ROOM: f64 = 4.0;
/// Minimum length of a filter.
const LEAST: usize = 128;

/// Returns the groups of columns, each with one filter, in order of their first columns.
fn groups(schema: &Schema) -> Vec<u32> {
    let mut groups = Vec::new();
    for plan in &schema.fields {
        if !groups.contains(&plan.group) {
            groups.push(plan.group);
        }
    }
    groups
}

/// Returns the length of the filter of a column before hardening.
fn bits(settings: &ClkSettings, fields: usize) -> usize {
    let wanted = ROOM * settings.load * settings.bits as f64 / fields.max(1) as f64;
    (wanted as usize).clamp(1, settings.bits).next_power_of_two().clamp(LEAST, settings.bits.max(LEAST))
}

/// Returns the lengths of a row's filters after hardening; empty if similarities are correlations.
pub(super) fn lengths(settings: &ClkSettings, schema: &Schema) -> Vec<usize> {
    if settings.scoring == Scoring::Correlation {
        return Vec::new();
    }
    let fields = groups(schema).len();
    vec![settings.hardening.with(settings.diffusion).bits(bits(settings, fields)); fields]
}

/// Returns the filters of each column or group; empty if similarities are correlations.
pub(super) fn encode(
    settings: &ClkSettings,
    secret: &[u8; 32],
    schema: &Schema,
    records: &TextTable,
) -> Vec<BitTable> {
    if settings.scoring == Scoring::Correlation {
        return Vec::new();
    }
    let groups = groups(schema);
    let bits = bits(settings, groups.len());
    let code =
        EncoderSettings { bits, q: settings.q, hardening: settings.hardening.with(settings.diffusion) };
    let salt = salt::from_settings(settings.salt_column, settings.salt_signs);
    let near = near::distances(&settings.near, &settings.dates);
    let encoder = Encoder::new(code, secret, schema).salted(salt).near(near);
    groups.iter().map(|&group| encoder.encode_group(&records.cells(), group)).collect()
}

/// Returns the words of all rows. Each row consists of its vectors in all tables.
pub(super) fn join<'a>(tables: &'a [&'a BitTable], rows: usize) -> impl Iterator<Item = &'a [u64]> {
    (0..rows).flat_map(move |row| tables.iter().map(move |table| table.row(row)))
}

/// Splits joined words ([`join`]) into tables of vectors of these lengths.
pub(super) fn split(words: Vec<u64>, lengths: &[usize]) -> Vec<BitTable> {
    if let &[bits] = lengths {
        return vec![BitTable::from_words(bits, words)];
    }
    let width: usize = lengths.iter().map(|bits| bits / 64).sum();
    let mut start = 0;
    let mut table = |bits: &usize| {
        let place = start..start + bits / 64;
        start = place.end;
        BitTable::from_words(
            *bits,
            words.chunks_exact(width).flat_map(|row| &row[place.clone()]).copied().collect(),
        )
    };
    lengths.iter().map(&mut table).collect()
}

/// The data holder's filters of both sides.
pub(super) struct Sides<'a> {
    pub(super) queries: &'a BitTable,
    pub(super) of_queries: &'a [BitTable],
    pub(super) of_records: &'a [BitTable],
}

/// Returns the best of the candidates by match weights, and the mean number of matches of a row. Warns if no
/// match is expected.
pub(super) fn best(
    sides: &Sides<'_>,
    found: &Neighbours,
    take: usize,
    seed: u64,
    warnings: &mut Vec<String>,
) -> (Neighbours, f64) {
    let fields = Fields { queries: sides.of_queries, records: sides.of_records };
    let ranked = rank(sides.queries, fields, found, take, seed);
    let rows = sides.queries.rows();
    if ranked.matched * (rows as f64) < 1.0 && rows >= fet_linkage::threshold::FEWEST {
        warnings.push(format!(
            "by the match weights, none of {rows} rows is expected to have a match. Set `linker.scoring = \"correlation\"` to rank records anyway."
        ));
    }
    (ranked.neighbours, ranked.matched)
}

/// Refuses match weights for data holders who encode their tables separately.
pub(super) fn refuse(scoring: Scoring) -> Result<(), LinkError> {
    if scoring == Scoring::Correlation {
        return Ok(());
    }
    Err(LinkError::Setting(
        "`linker.scoring=match-weights` needs a filter for each column, but encodings have one for each record. Omit the setting, or link \
         both tables in one place with `fet link`."
            .into(),
    ))
}

#[cfg(test)]
mod tests;
