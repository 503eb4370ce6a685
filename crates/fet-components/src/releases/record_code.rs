//! `record-code`: a symbol for each of the primary's places, from the one record that belongs to it, through randomised
//! response.
//!
//! Statement, account and proof are in [`fet_privacy::code`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use fet_core::data::{Column, DataError, Features, Keys, PartyTable, Values};
use fet_core::privacy::{Loss, Neighbouring, Randomness};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::release::{
    CodeRecord, Noiseless, PartyRelease, PlaceNeeds, Places, Release, ReleaseLoss, ReleaseRecord, Released,
    TableRelation,
};
use fet_core::rng::ChaCha8Rng;
use fet_privacy::code::{CodeDesign, CodeRelation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::means::{self, Means};
use super::{CHECKSUMS, DECLARED, EXISTENCE, ONE_RECORD, Ranges};

/// Name of an entry for all secondaries, or for all number columns.
const ALL: &str = "*";

/// Settings of `record-code`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordCodeSettings {
    /// Number columns that determine a record's symbol, by secondary, each with its range from public knowledge, as in
    /// `columns.laboratory = { creatinine = [0, 5] }`. The name "*" means all other secondaries, or all other number
    /// columns. A value outside counts as the end of the range, a missing value as the middle.
    #[schemars(extend("x-rule" = "tables of ranges [low, high], by secondary"))]
    pub columns: Ranges,
    /// ε of each secondary's release, the means included.
    #[schemars(range(min = 0.01, max = 20))]
    pub epsilon: f64,
    /// δ, the probability that the bound ε fails: well below one divided by the number of records.
    #[schemars(range(max = 0.001), extend("exclusiveMinimum" = 0))]
    pub delta: f64,
    /// Neighbouring relation of a secondary's tables, which must be indistinguishable.
    pub neighbouring: RecordRelation,
    /// The share of ε for the means of the labels' records, which determine a record's symbol: the label with the nearest
    /// mean.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub means_share: f64,
    /// Number of symbols for a regression: bins with equal numbers of training labels. With classes, each class has a
    /// symbol. With more symbols than about e to the power of ε, few symbols are true: the report has the probability.
    #[schemars(range(min = 2, max = 64))]
    pub bins: usize,
    /// True to release symbols without any record: the control that shows the gain from random symbols.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub noise_only: bool,
}

/// Neighbouring relation of a secondary's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordRelation {
    /// One record is added or removed.
    AddRemove,
    /// One record is added, removed, or replaced with its key.
    Record,
    /// The columns of one record are replaced; its key, and with it its membership, is not protected.
    Features,
}

impl Default for RecordCodeSettings {
    fn default() -> Self {
        Self {
            columns: BTreeMap::new(),
            epsilon: 3.0,
            delta: 1e-5,
            neighbouring: RecordRelation::AddRemove,
            means_share: 0.2,
            bins: 8,
            noise_only: false,
        }
    }
}

impl Recipe<dyn Release> for RecordCodeSettings {
    fn check(&self) -> Result<(), Violation> {
        super::check_ranges(&self.columns)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Release>, Violation> {
        if self.columns.values().all(BTreeMap::is_empty) {
            let rule = "must state the range of the columns from public knowledge, as in `columns = { laboratory = { creatinine = [0, 5] } }`";
            return Err(Violation::new("columns", rule, "{}"));
        }
        let component = RecordCode(self.clone());
        // A wrong ε or δ shows here, before any table is read.
        component.design(1, 2).map_err(|rule| Violation::new("epsilon", rule, self.epsilon))?;
        Ok(Box::new(component))
    }
}

inventory::submit! {
    Plugin::<dyn Release>::new::<RecordCodeSettings>(
        "record-code",
        "a symbol of the one record that belongs to each of the primary's keys, released once by randomised response",
    )
}

struct RecordCode(RecordCodeSettings);

/// A column of a secondary, and its range.
struct Ranged<'a> {
    name: String,
    values: Cow<'a, [f64]>,
    range: [f64; 2],
}

impl Ranged<'_> {
    /// Returns a record's value, mapped from the range to −1 to 1; NaN if it is missing.
    fn scaled(&self, row: usize) -> f64 {
        let [low, high] = self.range;
        (self.values[row] - f64::midpoint(low, high)) / (0.5 * (high - low))
    }

    /// Returns a warning if many values are missing or outside the range, or if they cover little of it.
    fn advice(&self, party: &str) -> Option<String> {
        let rows = self.values.len().max(1) as f64;
        let share = |count: usize| (100.0 * count as f64 / rows).round();
        let scaled: Vec<f64> = (0..self.values.len()).map(|row| self.scaled(row)).collect();
        let missing = scaled.iter().filter(|value| value.is_nan()).count();
        let outside = scaled.iter().filter(|value| value.abs() > 1.0).count();
        let inside = || scaled.iter().copied().filter(|value| value.abs() <= 1.0);
        let covered = 0.5 * (inside().fold(-1.0, f64::max) - inside().fold(1.0, f64::min)).max(0.0);
        let [low, high] = self.range;
        let place = format!("{party}: `release.columns`, column `{}`", self.name);
        if share(outside) > 20.0 {
            let percent = share(outside);
            return Some(format!(
                "{place}: {percent} % of the values are outside [{low}, {high}] and count as its ends"
            ));
        }
        if share(missing) > 20.0 {
            return Some(format!(
                "{place}: {} % of the values are missing and count as the middle",
                share(missing)
            ));
        }
        (covered < 0.1).then(|| {
            let percent = (100.0 * covered).round();
            format!("{place}: the values cover {percent} % of [{low}, {high}], so that the noise hides them")
        })
    }
}

impl RecordCode {
    fn relation(&self) -> CodeRelation {
        match self.0.neighbouring {
            RecordRelation::AddRemove => CodeRelation::AddRemove,
            RecordRelation::Record => CodeRelation::Replace,
            RecordRelation::Features => CodeRelation::Features,
        }
    }

    /// Returns the design for some number of columns and symbols.
    fn design(&self, columns: usize, symbols: usize) -> Result<CodeDesign, String> {
        let RecordCodeSettings { epsilon, delta, means_share, .. } = self.0;
        CodeDesign::for_target([columns, symbols], self.relation(), [epsilon, delta], means_share)
            .map_err(|error| error.to_string())
    }

    /// Returns the columns of a table that determine its symbols.
    fn columns_of<'a>(&self, table: &'a PartyTable) -> Result<Vec<Ranged<'a>>, DataError> {
        static NONE: BTreeMap<String, [f64; 2]> = BTreeMap::new();
        let place = || format!("`release.columns.{}`", table.name);
        let all = &self.0.columns;
        let ranges = all.get(&table.name).or_else(|| all.get(ALL)).unwrap_or(&NONE);
        let range = |name: &str| ranges.get(name).or_else(|| ranges.get(ALL)).copied();
        let mut columns = Vec::new();
        match &table.features {
            Features::Columns(known) => {
                for name in ranges.keys().filter(|name| *name != ALL) {
                    let column = known.table.column(name).map_err(|error| DataError::new(place(), error))?;
                    if !matches!(column.values, Values::Number(_)) {
                        let kind = column.values.kind();
                        let problem = format!("must name columns of numbers; `{name}` is a {kind}");
                        return Err(DataError::new(place(), problem));
                    }
                }
                for column in &known.table.columns {
                    if let (Values::Number(values), Some(range)) = (&column.values, range(&column.name)) {
                        columns.push(Ranged { name: column.name.clone(), values: values.into(), range });
                    }
                }
            }
            Features::Numbers(numbers) => {
                let Some(range) = range(ALL).filter(|_| ranges.len() == 1) else {
                    let problem =
                        "must have a range for \"*\" alone: the columns of this dataset are unnamed";
                    return Err(DataError::new(place(), problem));
                };
                let values =
                    |column: usize| (0..numbers.rows()).map(move |row| f64::from(numbers.row(row)[column]));
                columns.extend((0..numbers.columns()).map(|column| Ranged {
                    name: column.to_string(),
                    values: values(column).collect::<Vec<f64>>().into(),
                    range,
                }));
            }
        }
        if !(1..=MOST_COLUMNS).contains(&columns.len()) {
            let problem = format!(
                "must name 1 to {MOST_COLUMNS} number columns of the table; it names {}",
                columns.len()
            );
            return Err(DataError::new(place(), problem));
        }
        Ok(columns)
    }
}

/// The records of a table that offer themselves to places, and their sums without noise.
struct Records<'a> {
    columns: usize,
    design: CodeDesign,
    /// Columns of each record.
    rows: Vec<Vec<f64>>,
    /// Place of each record.
    offers: &'a [usize],
    /// For each label, the number of records, and the sum of each column.
    totals: Vec<i64>,
}

impl Records<'_> {
    /// Returns the symbols of the records of each place, with the means of these sums.
    fn symbols(&self, places: &Places, sums: &[f64]) -> Vec<Vec<usize>> {
        let mut sums = sums.to_vec();
        let noise = self.design.sums.noise_of_count();
        let noise = means::unmixed(&mut sums, places.symbols, places.label_truth, noise);
        let means = Means::from_sums(&sums, places.symbols, noise);
        let mut of_places: Vec<Vec<usize>> = vec![Vec::new(); places.keys.len()];
        for (row, &place) in self.rows.iter().zip(self.offers) {
            of_places[place].push(means.nearest(row));
        }
        of_places
    }
}

impl RecordCode {
    fn records<'a>(&self, table: &PartyTable, places: &'a Places) -> Result<Records<'a>, DataError> {
        let ranged = self.columns_of(table)?;
        let (columns, symbols) = (ranged.len(), places.symbols);
        if (columns + 1).saturating_mul(symbols) > MOST_SUMS {
            let problem = format!(
                "must have at most {MOST_SUMS} sums, one for each of {symbols} symbols and each of {columns} columns and the count"
            );
            return Err(DataError::new(format!("release of {}", table.name), problem));
        }
        let design = self.design(columns, symbols).map_err(|error| DataError::new("`release`", error))?;
        let mut totals = vec![0i64; design.sums.noise().count()];
        let offers = if self.0.noise_only { &[][..] } else { &places.offers };
        let rows: Vec<Vec<f64>> = (0..offers.len()).map(|row| limited(&ranged, row)).collect();
        for (row, &place) in rows.iter().zip(offers) {
            if let Some(label) = places.labels[place] {
                let of_label = &mut totals[label * (columns + 1)..][..columns + 1];
                of_label.iter_mut().zip(design.sums.of_record(row)).for_each(|(total, own)| *total += own);
            }
        }
        Ok(Records { columns, design, rows, offers, totals })
    }
}

/// Returns a record's columns, each within −1 and 1; 0 for a missing value.
fn limited(columns: &[Ranged<'_>], row: usize) -> Vec<f64> {
    let of = |column: &Ranged<'_>| {
        let value = column.scaled(row);
        if value.is_nan() { 0.0 } else { value.clamp(-1.0, 1.0) }
    };
    columns.iter().map(of).collect()
}

/// Largest number of sums: symbols times columns.
const MOST_SUMS: usize = 1 << 24;
/// Largest number of columns.
const MOST_COLUMNS: usize = 1 << 16;

/// The numbers of a release before those of its places: columns and symbols.
const HEAD: usize = 2;

impl Release for RecordCode {
    fn needs(&self) -> Option<PlaceNeeds> {
        Some(PlaceNeeds { bins: self.0.bins })
    }

    fn is_whole(&self, released: &Released, places: Option<&Places>) -> bool {
        let (Some(places), Some((head, pairs))) = (places, released.values.split_at_checked(HEAD)) else {
            return false;
        };
        let columns = usize::try_from(head[0]).is_ok_and(|columns| (1..=MOST_COLUMNS).contains(&columns));
        let (pairs, rest) = pairs.as_chunks::<2>();
        let symbols = places.symbols as i64;
        let of_place = |(pair, key): (&[i64; 2], &i64)| pair[0] == *key && (0..symbols).contains(&pair[1]);
        columns
            && self.design(head[0] as usize, places.symbols).is_ok()
            && head[1] == symbols
            && rest.is_empty()
            && pairs.len() == places.keys.len()
            && pairs.iter().zip(&places.keys).all(of_place)
    }

    fn check_parties(&self, parties: &[&str]) -> Result<(), Violation> {
        super::check_names(&self.0.columns, parties, Some(ALL))?;
        let has = |name: &&str| self.0.columns.contains_key(*name) || self.0.columns.contains_key(ALL);
        match parties.iter().find(|name| !has(name)) {
            Some(without) => {
                let rule = format!("must have the columns of every secondary; \"{without}\" has none");
                Err(Violation::new("release.columns", rule, format!("{:?}", self.0.columns.keys())))
            }
            None => Ok(()),
        }
    }

    fn make(
        &self,
        table: &PartyTable,
        places: Option<&Places>,
        noise: &mut ChaCha8Rng,
    ) -> Result<Released, DataError> {
        let places = places.expect("the kind of release needs them");
        let records = self.records(table, places)?;
        let Records { columns, design, totals, .. } = &records;
        let sums = design.sums.release(totals.clone(), noise);
        let of_places = records.symbols(places, &sums);
        let drawn = places.keys.iter().zip(&of_places);
        let drawn = drawn.flat_map(|(key, offers)| [*key, design.code.draw(offers, noise) as i64]);
        let values = [*columns as i64, places.symbols as i64].into_iter().chain(drawn).collect();
        Ok(Released { party: table.name.clone(), values })
    }

    fn noiseless(&self, table: &PartyTable, places: Option<&Places>) -> Result<Option<Noiseless>, DataError> {
        let places = places.expect("the kind of release needs them");
        let records = self.records(table, places)?;
        let Records { design, totals, .. } = &records;
        let sums = design.sums.without_noise(totals);
        let single = |of_place: Vec<usize>| match of_place.as_slice() {
            [own] => Some(*own),
            _ => None,
        };
        Ok(Some(Noiseless::Symbols {
            // The number of columns, that of symbols, and the first key.
            first: HEAD + 1,
            step: 2,
            offers: records.symbols(places, &sums).into_iter().map(single).collect(),
            symbols: places.symbols,
            truth: design.code.truth(),
        }))
    }

    fn advice(&self, table: &PartyTable, places: Option<&Places>) -> Vec<String> {
        let party = &table.name;
        let mut all = Vec::new();
        if let Some(Places { keys, offers, .. }) = places {
            let mut counts = vec![0usize; keys.len()];
            offers.iter().for_each(|&place| counts[place] += 1);
            let of = |kind: fn(usize) -> bool| counts.iter().filter(|&&count| kind(count)).count();
            let [none, one, several] =
                [of(|count| count == 0), of(|count| count == 1), of(|count| count > 1)];
            if 2 * one < keys.len() {
                all.push(format!(
                    "{party}: {one} of the primary's {} keys have exactly one record, {none} have none and {several} have several: \
                     only the {one} get a symbol that says something. Remove records that belong to no row, and repeated \
                     records",
                    keys.len()
                ));
            }
        }
        let columns = self.columns_of(table).unwrap_or_default();
        all.extend(columns.iter().filter_map(|column| column.advice(party)));
        all
    }

    fn names(&self, party: &str) -> Vec<String> {
        vec![format!("{party}: code")]
    }

    fn columns(&self, released: &Released, keys: &Keys) -> Result<Vec<Column>, DataError> {
        let place = || format!("release of {}", released.party);
        let (head, pairs) = released.values.split_at_checked(HEAD).unwrap_or_default();
        let symbols = head.get(1).and_then(|&symbols| u32::try_from(symbols).ok()).unwrap_or(0);
        let (pairs, rest) = pairs.as_chunks::<2>();
        let is_known = |[_, symbol]: &[i64; 2]| (0..i64::from(symbols)).contains(symbol);
        if symbols < 2 || !rest.is_empty() || !pairs.iter().all(is_known) {
            return Err(DataError::new(place(), "must have a symbol for each key"));
        }
        let of_keys: BTreeMap<i64, u32> = pairs.iter().map(|[key, symbol]| (*key, *symbol as u32)).collect();
        let found: Vec<Option<u32>> =
            keys.digests().iter().map(|digest| of_keys.get(digest).copied()).collect();
        let codes: Option<Vec<u32>> = found.iter().copied().collect();
        let Some(codes) = codes else {
            let new = found.iter().filter(|code| code.is_none()).count();
            let first = found.iter().position(Option::is_none).unwrap_or(0);
            let problem = format!(
                "has no symbol for {new} of {} records, whose keys were not in the run (the first is row {first}): symbols of \
                 further keys would be another release. Add the rows to the primary's table before the run",
                found.len()
            );
            return Err(DataError::new(place(), problem));
        };
        let names = (0..symbols).map(|symbol| format!("{symbol:02}")).collect();
        let name = self.names(&released.party).remove(0);
        Ok(vec![Column { name, values: Values::Category { codes, names } }])
    }

    fn note(&self, _keys: &Keys) -> Option<String> {
        None
    }

    /// The loss covers a record's membership, also for a release that is designed for the columns alone.
    fn loss(&self, table: &PartyTable, symbols: usize) -> Result<ReleaseLoss, DataError> {
        let design = self.design(self.columns_of(table)?.len(), symbols);
        let design = design.map_err(|error| DataError::new("`release`", error))?;
        let (relation, covered) = match self.0.neighbouring {
            RecordRelation::AddRemove => (Neighbouring::AddRemove, CodeRelation::AddRemove),
            RecordRelation::Record | RecordRelation::Features => {
                (Neighbouring::Record, CodeRelation::Replace)
            }
        };
        if self.0.noise_only {
            return Ok(ReleaseLoss { relation, loss: Loss::NONE });
        }
        let CodeDesign { sums, code, .. } = design.under(covered);
        let symbols = Loss::Bound { epsilon: code.epsilon(covered), delta: 0.0 };
        let means = super::gaussian(sums.noise().noise_multiplier(), sums.noise().count());
        Ok(ReleaseLoss { relation, loss: Loss::Parts { parts: vec![means, symbols] } })
    }

    fn account(&self, released: &[Released]) -> ReleaseRecord {
        let RecordCodeSettings { delta, noise_only, neighbouring, .. } = self.0;
        let design = |one: &Released| {
            let at = |place: usize| one.values[place] as usize;
            self.design(at(0), at(1)).expect("a release was made with this design")
        };
        let designs: Vec<CodeDesign> = released.iter().map(design).collect();
        let bounded = |epsilon: f64| if noise_only { 0.0 } else { epsilon };
        let epsilon_of = |designs: &[CodeDesign]| bounded(CodeDesign::epsilon_of_all(designs, delta));
        let party = |(one, design): (&Released, &CodeDesign)| PartyRelease {
            party: one.party.clone(),
            epsilon: Some(epsilon_of(std::slice::from_ref(design))).filter(|epsilon| epsilon.is_finite()),
            noise_multiplier: design.sums.noise().noise_multiplier(),
            noise_of_count: design.sums.noise_of_count(),
            code: Some(CodeRecord {
                symbols: one.values[1] as usize,
                truth: design.code.truth(),
                epsilon: bounded(design.code.epsilon(self.relation())),
                epsilon_of_columns: bounded(design.under(CodeRelation::Features).epsilon(delta)),
            }),
            values: (one.values.len() - HEAD) / 2,
        };
        let parties: Vec<PartyRelease> = released.iter().zip(&designs).map(party).collect();
        let most = parties.iter().map(|party| party.epsilon.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
        let (neighbouring, relation) = match neighbouring {
            RecordRelation::AddRemove => (TableRelation::AddRemove, "added or removed"),
            RecordRelation::Record => (TableRelation::Record, "added, removed or replaced with its key"),
            RecordRelation::Features => {
                (TableRelation::Features, "whose columns are replaced while its key stays")
            }
        };
        ReleaseRecord {
            kind: "record-code".into(),
            noise_only,
            delta,
            neighbouring,
            // The caller knows the seeds.
            randomness: Randomness::Experiment,
            parties,
            epsilon_of_person: Some(epsilon_of(&designs)).filter(|epsilon| epsilon.is_finite()),
            epsilon_by_colluding: vec![most; released.len().min(2)],
            gate: None,
            of_primary: "Each secondary learned the primary's keys, and the labels of the training rows without protection".into(),
            statement: format!(
                "ε protects one record of one secondary, {relation}, in everything that the primary computes from its \
                 release: training, evaluation and predictions of the run's rows."
            ),
            assumptions: vec![
                "The ranges of `release.columns` do not follow from any party's records.".into(),
                DECLARED.into(),
                ONE_RECORD.into(),
                "This is the only release of the table: runs with other settings, seeds, folders, tables or rows of the \
                 primary add to ε."
                    .into(),
                "The primary's keys and labels do not follow from any secondary's records; the numbers of columns and of symbols \
                 are public."
                    .into(),
                CHECKSUMS.into(),
                "Each secondary draws its own symbols, so that colluding secondaries do not change ε.".into(),
                EXISTENCE.into(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use fet_core::data::Matrix;
    use fet_core::rng::{OwnSeed, Purpose};
    use rand::Rng;

    use super::*;

    /// Number of places of each kind.
    const PLACES: usize = 4_000;

    /// Two labels with the values −1 and 1. The first places have one record each, the next none, the last two.
    fn made(settings: &RecordCodeSettings, seed: u64) -> (Released, Places) {
        let labels: Vec<usize> = (0..3 * PLACES).map(|place| place % 2).collect();
        let offers: Vec<usize> =
            (0..PLACES).chain(2 * PLACES..3 * PLACES).chain(2 * PLACES..3 * PLACES).collect();
        let values = offers.iter().map(|place| [-1.0f32, 1.0][labels[*place]]).collect();
        let table = PartyTable {
            name: "laboratory".into(),
            keys: Keys::Numbers(Matrix::new(1, vec![0.0; offers.len()])),
            features: Features::Numbers(Matrix::new(1, values)),
            bounds: None,
        };
        let places = Places {
            keys: (0..3 * PLACES as i64).collect(),
            labels: labels.into_iter().map(Some).collect(),
            symbols: 2,
            label_truth: 1.0,
            offers,
        };
        let component = settings.build(&()).expect("sound settings");
        let mut noise = OwnSeed::simulated(seed, 1).stream(Purpose::Release, 0);
        let released = component.make(&table, Some(&places), &mut noise).expect("it fits");
        assert!(component.is_whole(&released, Some(&places)));
        (released, places)
    }

    fn settings() -> RecordCodeSettings {
        let all = BTreeMap::from([(ALL.to_string(), [-1.0, 1.0])]);
        let columns = BTreeMap::from([(ALL.to_string(), all)]);
        RecordCodeSettings { columns, epsilon: 2.0, ..RecordCodeSettings::default() }
    }

    /// Nine of ten records have label 0 and the value 0 or 0.4, the others have label 1 and the value 1. Labels that are true with
    /// a probability of 0.6 move the means to 0.26 and 0.31, so that 0.4 would be nearer to label 1. The estimates from
    /// all records separate them. At ε = 8 a symbol is true with a probability above 0.99. The share of 2,000 symbols has a standard
    /// deviation below 0.003; 0.04 below has α = 1e-16.
    #[test]
    fn randomised_labels_do_not_move_the_means() {
        let settings = RecordCodeSettings { epsilon: 8.0, ..settings() };
        let mut rng = OwnSeed::simulated(3, 1).stream(Purpose::Labels, 0);
        let label = |place: usize| usize::from(place.is_multiple_of(10));
        let value = |place: usize| if label(place) == 1 { 1.0 } else { [0.0f32, 0.4][place % 2] };
        let answers = (0..PLACES).map(|place| {
            let is_true = rng.next_u64() % 10 < 6;
            Some(if is_true { label(place) } else { 1 - label(place) })
        });
        let places = Places {
            keys: (0..PLACES as i64).collect(),
            labels: answers.collect(),
            symbols: 2,
            label_truth: 0.6,
            offers: (0..PLACES).collect(),
        };
        let table = PartyTable {
            name: "laboratory".into(),
            keys: Keys::Numbers(Matrix::new(1, vec![0.0; PLACES])),
            features: Features::Numbers(Matrix::new(1, (0..PLACES).map(value).collect())),
            bounds: None,
        };
        let component = settings.build(&()).expect("sound settings");
        let mut noise = OwnSeed::simulated(1, 1).stream(Purpose::Release, 0);
        let released = component.make(&table, Some(&places), &mut noise).expect("it fits");
        let symbols: Vec<i64> = released.values[HEAD..].chunks_exact(2).map(|pair| pair[1]).collect();
        let near = (0..PLACES).filter(|&place| value(place) > 0.3 && label(place) == 0);
        let near: Vec<usize> = near.collect();
        let zero = near.iter().filter(|&&place| symbols[place] == 0).count() as f64 / near.len() as f64;
        assert!(zero > 0.95, "{zero}");
    }

    /// A place with one record has its true symbol with the stated probability, and the others have uniform symbols. Each
    /// share of 4,000 has a standard deviation of at most 0.0079; six of them have α = 2e-9 for each of eight shares.
    #[test]
    fn symbols_are_true_with_one_record_and_uniform_otherwise() {
        for (settings, one) in [
            (settings(), 1.0 - 0.5 * (-1.6f64).exp()),
            (RecordCodeSettings { neighbouring: RecordRelation::Features, ..settings() }, {
                let odds = 1.6f64.exp();
                odds / (1.0 + odds)
            }),
            (RecordCodeSettings { noise_only: true, ..settings() }, 0.5),
        ] {
            let (released, places) = made(&settings, 1);
            let symbols: Vec<i64> = released.values[HEAD..].chunks_exact(2).map(|pair| pair[1]).collect();
            for (kind, expected) in [(0, one), (1, 0.5), (2, 0.5)] {
                let own = kind * PLACES..(kind + 1) * PLACES;
                let true_ones =
                    own.clone().filter(|&place| places.labels[place] == Some(symbols[place] as usize));
                let share = true_ones.count() as f64 / PLACES as f64;
                assert!((share - expected).abs() < 0.048, "{kind}: {share} {expected}");
            }
        }
    }

    /// With few records the means are mostly noise: two releases of the same table differ in more symbols than their
    /// randomised responses explain, which they would not with exact sums.
    #[test]
    fn means_carry_noise() {
        let narrow = |seed: u64| {
            let all = BTreeMap::from([(ALL.to_string(), [-1e4, 1e4])]);
            let columns = BTreeMap::from([(ALL.to_string(), all)]);
            let (released, places) = made(&RecordCodeSettings { columns, epsilon: 20.0, ..settings() }, seed);
            let symbols = released.values[HEAD..].chunks_exact(2).map(|pair| pair[1] as usize);
            let known = symbols.zip(places.labels).take(PLACES);
            known.filter(|(symbol, label)| Some(*symbol) == *label).count() as f64 / PLACES as f64
        };
        // Values of 1e-4 of the range: exact means tell the labels apart in each release, noisy ones do not.
        let shares: Vec<f64> = (0..10).map(narrow).collect();
        assert!(shares.iter().any(|share| *share < 0.9), "{shares:?}");
    }

    #[test]
    fn other_releases_are_not_whole() {
        let component = settings().build(&()).expect("sound settings");
        let (released, places) = made(&settings(), 1);
        let changes: [fn(&mut Vec<i64>); 6] = [
            |values| values.truncate(1),
            |values| values.truncate(10),
            |values| values[0] = 0,
            |values| values[1] = 3,
            |values| values[2] = 7,
            |values| values[3] = 2,
        ];
        for change in changes {
            let mut other = released.clone();
            change(&mut other.values);
            assert!(!component.is_whole(&other, Some(&places)));
        }
    }
}
