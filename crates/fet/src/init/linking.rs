//! Choice of the linker and of the number of neighbours, by the uniqueness of the keys in both tables.

use std::collections::BTreeSet;

use super::keys::{KeyChoice, PairFacts};
use super::tables::PartyFile;

/// Minimum share of equal keys for the linker `exact`.
const EQUAL: f64 = 0.95;
/// Minimum share of mutual nearest records for tables whose rows have one counterpart. Unrelated tables of similar
/// size have at most 0.56.
const MUTUAL: f64 = 0.65;
/// Share of equal keys below which codes of both tables do not fit each other.
const NONE: f64 = 0.005;
/// Numbers of neighbours: for one counterpart, for a place, and for a place in a large table.
const FEW: usize = 5;
const PLACES: usize = 10;
const MANY: usize = 20;
/// Minimum number of records of a large table.
const LARGE: usize = 1_000;
/// Initial setting for the distance, in days, at which the similarity of two dates becomes 0.
const NEAR_DAYS: f64 = 30.0;

/// Linker of an experiment.
pub(super) struct Linking {
    /// Linker that finds the records.
    pub(super) kind: &'static str,
    /// Number of neighbours.
    pub(super) neighbours: usize,
    /// Setting `one_to_one` of `posterior`, which weighs the links; `None` for a linker without it.
    pub(super) one_to_one: Option<bool>,
    /// True if a study should compare one-to-one links, because the keys allow them but do not show them.
    pub(super) perhaps_one_to_one: bool,
    /// Further settings of the linker, one a line.
    pub(super) settings: Vec<String>,
    /// Ambiguity of the links to each other table, one sentence each.
    pub(super) facts: Vec<String>,
    /// Reasons, one sentence each.
    pub(super) reasons: Vec<String>,
    /// Facts that the user should know before a run.
    pub(super) warnings: Vec<String>,
}

/// Chooses the linker.
pub(super) fn choose(keys: &KeyChoice, tables: &[PartyFile]) -> Linking {
    let (primary, others) = (&tables[0], &tables[1..]);
    let pairs: Vec<PairFacts> = others.iter().map(|other| PairFacts::new(keys, primary, other)).collect();
    let least = others.iter().map(PartyFile::rows).min().unwrap_or(1).max(1);
    let mut linking = match keys {
        _ if keys.are_identifiers(tables) => of_identifiers(keys, &pairs),
        KeyChoice { are_texts: true, .. } => of_texts(keys, tables, &pairs),
        KeyChoice { are_texts: false, .. } => of_numbers(keys, &pairs),
    };
    if keys.are_texts {
        let marks: BTreeSet<String> =
            tables.iter().flat_map(|table| keys.names.iter().flat_map(|name| table.marks(name))).collect();
        if !marks.is_empty() {
            let marks: Vec<String> = marks.into_iter().collect();
            let marks = toml::Value::from(marks);
            linking.settings.push(format!("missing = {marks}  # cells that count as empty"));
        }
    }
    linking.neighbours = linking.neighbours.clamp(1, least.div_ceil(4));
    if linking.neighbours == 1 {
        linking.one_to_one = None;
    }
    linking.facts = pairs.iter().map(facts).collect();
    if !keys.are_texts && linking.neighbours > 1 && keys.names.iter().any(|name| primary.is_date(name)) {
        linking.warnings.push(
            "the nearest records by date include later ones, which a prediction may not know in time; `linker.neighbours = 1` \
             links the nearest one only"
                .into(),
        );
    }
    if keys.are_codes(tables) {
        linking.warnings.extend(pairs.iter().filter(|pair| pair.equal < NONE).map(different));
    }
    if let Some(units) = keys.units(primary).filter(|_| linking.kind == "nearest") {
        let differ = "one column would decide the distance, because the ranges of the keys differ";
        linking.warnings.push(format!(
            "{differ}; `units` = {units:?} makes a standard deviation of {} count as 1 in each column; set the differences that matter \
             equally to the prediction",
            keys.names.join(", ")
        ));
        linking.settings.push(format!("units = {units:?}"));
    }
    linking
}

fn of_identifiers(keys: &KeyChoice, pairs: &[PairFacts]) -> Linking {
    let most = most_records(pairs);
    let mut linking = Linking::new("exact");
    linking.neighbours = most.min(MANY);
    linking.reasons = vec![
        "These numbers are identifiers: two of them are equal or different, and their distance is meaningless".into(),
        format!("K is the number of records with one key, for nineteen in twenty rows ({most})"),
        "`psi` in place of `exact` hides the identifiers that the other party does not have".into(),
    ];
    if keys.are_texts {
        linking.reasons.push(
            "Some cells are empty, so the keys are read as texts; a row with an empty key is not linked"
                .into(),
        );
    }
    linking
}

/// Returns the number of records with the key of a row, over all parties.
fn most_records(pairs: &[PairFacts]) -> usize {
    pairs.iter().map(|pair| pair.records_per_key).max().unwrap_or(1)
}

fn of_numbers(keys: &KeyChoice, pairs: &[PairFacts]) -> Linking {
    let all = |holds: &dyn Fn(&PairFacts) -> bool| pairs.iter().all(holds);
    let most = most_records(pairs);
    let mut linking = Linking::new("nearest");
    if keys.on_sphere {
        linking.settings.push("metric = \"haversine\"  # metres along the earth".into());
    }
    let has_counterpart = |pair: &PairFacts| pair.mutual.is_some_and(|share| share >= MUTUAL);
    let unique = all(&|pair| pair.has_unique_keys());
    if all(&|pair| pair.equal >= EQUAL) {
        linking.neighbours = most.min(MANY);
        linking.one_to_one = Some(false);
        linking.reasons.push(format!(
            "Nearly every row has a record with an equal key: K is the number of records with one key, for nineteen in twenty \
             rows ({most})"
        ));
    } else if unique && all(&|pair| pair.has_similar_sizes() && has_counterpart(pair)) {
        linking.neighbours = FEW;
        linking.one_to_one = Some(true);
        linking.reasons.push(
            "Keys are unique on both sides, and rows and their nearest records are mutual: a record belongs to one row at \
             most, so `posterior` computes the probability of each pair"
                .into(),
        );
    } else {
        let least = pairs.iter().map(|pair| pair.rows[1]).min().unwrap_or(0);
        linking.neighbours = if least >= LARGE { MANY } else { PLACES };
        linking.one_to_one = Some(false);
        linking.perhaps_one_to_one = unique && all(&PairFacts::has_similar_sizes);
        linking.reasons.push(
            "Many rows have no record with an equal key: several near records describe a row, and `posterior` weighs them by \
             their distance"
                .into(),
        );
    }
    linking.reasons.push(
        "The secondary sees the primary's keys in the clear; `rotation` and `federal` hide them in part"
            .into(),
    );
    linking
}

fn of_texts(keys: &KeyChoice, tables: &[PartyFile], pairs: &[PairFacts]) -> Linking {
    let all = |holds: &dyn Fn(&PairFacts) -> bool| pairs.iter().all(holds);
    let most = most_records(pairs);
    if all(&|pair| pair.equal >= EQUAL) {
        let mut linking = Linking::new("exact");
        linking.neighbours = most.min(MANY);
        linking.reasons = vec![
            "Nearly every row has a record with an equal key".into(),
            format!("K is the number of records with one key, for nineteen in twenty rows ({most})"),
            "`psi` in place of `exact` hides the keys that the other party does not have".into(),
        ];
        return linking;
    }
    let mut linking = Linking::new("clk");
    let unique = all(&|pair| pair.unique[1] >= EQUAL);
    linking.neighbours = if unique { FEW } else { most.clamp(FEW, MANY) };
    if all(&|pair| pair.has_unique_keys() && pair.has_similar_sizes()) {
        linking.one_to_one = Some(true);
        linking.reasons.push(
            "Keys are unique on both sides: a record belongs to one row at most, so `posterior` computes the probability of \
             each pair"
                .into(),
        );
    } else {
        linking.one_to_one = Some(false);
        linking
            .reasons
            .push("Several rows may share a record; `posterior` weighs records by their similarity".into());
    }
    linking
        .reasons
        .push("`clk` compares similar texts under a secret; for exactly equal keys use `psi`".into());
    let is_date = |name: &String| tables.iter().all(|table| table.is_date(name));
    let dates: Vec<usize> =
        (1..).zip(&keys.names).filter(|(_, name)| is_date(name)).map(|(number, _)| number).collect();
    if !dates.is_empty() {
        let near: Vec<f64> =
            keys.names.iter().map(|name| if is_date(name) { NEAR_DAYS } else { 0.0 }).collect();
        linking.settings.push(format!("dates = {dates:?}  # key columns with dates, counted from 1"));
        linking.settings.push(format!(
            "near = {near:?}  # distance in days at which two dates have nothing in common; 0 for texts"
        ));
    }
    linking
}

impl Linking {
    fn new(kind: &'static str) -> Self {
        Self {
            kind,
            neighbours: 1,
            one_to_one: None,
            perhaps_one_to_one: false,
            settings: Vec::new(),
            facts: Vec::new(),
            reasons: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Warns that keys are never equal, although they should be.
fn different(pair: &PairFacts) -> String {
    let PairFacts { name, rows: [rows, _], equal, examples: [own, theirs], .. } = pair;
    let found = (equal * *rows as f64).round();
    format!(
        "{found} of the primary's {rows} rows have a key that `{name}` has, too. The first key is `{own}` in the primary's table and \
         `{theirs}` in the other one: write both in the same way, or name other keys with `--keys`"
    )
}

/// Describes the keys of two tables.
fn facts(pair: &PairFacts) -> String {
    let mut text = format!(
        "`{}`: {} of the primary's {} rows have an equal key there; keys of one row only: {} of the primary's, {} of its {}",
        pair.name,
        percent(pair.equal),
        pair.rows[0],
        percent(pair.unique[0]),
        percent(pair.unique[1]),
        pair.rows[1]
    );
    if let Some(mutual) = pair.mutual {
        text += &format!("; nearest records that are mutual: {}", percent(mutual));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
