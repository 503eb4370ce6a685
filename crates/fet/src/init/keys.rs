//! Choice of the keys, and facts about the keys of two tables: uniqueness, equality and distance.

use std::collections::HashMap;

use fet_core::data::{Comparison, number};
use fet_io::input::input;
use fet_linkage::{points, text::normalise};
use fet_tables::Values;

use super::tables::{PartyFile, Request, is_identifier, is_named_id, words};

/// Maximum number of primary rows whose nearest records are examined.
const SAMPLE: usize = 2_000;
/// Maximum number of characters of a key in a message.
const MOST_SHOWN: usize = 60;
/// Minimum share of distinct texts in a column of keys.
const NAMES: f64 = 0.2;
/// Minimum ratio of spreads of a key column that dominates the distances.
const DOMINANT: f64 = 10.0;

/// Chosen keys.
pub(super) struct KeyChoice {
    /// Names of the columns, in the order of all tables.
    pub(super) names: Vec<String>,
    /// True if the keys are texts.
    pub(super) are_texts: bool,
    /// True if the keys are a longitude and a latitude, in this order.
    pub(super) on_sphere: bool,
    /// Reason for the keys.
    pub(super) reason: String,
}

/// Chooses the key columns: those that the user names, or columns that all tables share.
pub(super) fn choose(request: &Request<'_>, tables: &[PartyFile]) -> anyhow::Result<KeyChoice> {
    let is_number =
        |name: &str| tables.iter().all(|table| matches!(table.values(name), Some(Values::Number(_))));
    let is_date = |name: &str| tables.iter().all(|table| table.is_date(name));
    let is_whole =
        |name: &str| tables.iter().all(|table| table.column(name).is_some_and(|column| column.missing == 0));
    let (names, are_texts, reason) = if request.keys.is_empty() {
        let shared = shared(request, tables)?;
        let (identifiers, besides): (Vec<String>, Vec<String>) =
            shared.iter().cloned().partition(|name| is_named_id(name) && holds_identifiers(name, tables));
        let (numbers, others): (Vec<String>, Vec<String>) =
            shared.iter().cloned().partition(|name| (is_number(name) || is_date(name)) && is_whole(name));
        let name_records = |name: &String| {
            let is_text =
                |table: &&PartyFile| !matches!(table.values(name), Some(Values::Number(_) | Values::Date(_)));
            let distinct = |table: &PartyFile| {
                let column = table.column(name).expect("a shared column");
                column.distinct as f64 / table.rows().max(1) as f64
            };
            tables.iter().filter(is_text).map(distinct).fold(0.0, f64::max) >= NAMES
        };
        let are_named = others.iter().any(name_records);
        if are_named || (numbers.is_empty() && identifiers.is_empty()) {
            (shared, true, "the columns that all tables share, compared as texts".to_string())
        } else if !identifiers.is_empty() {
            let mut reason = "the identifiers that all tables share".to_string();
            if !besides.is_empty() {
                reason += &format!("; {} are also shared", besides.join(", "));
            }
            let are_texts = !identifiers.iter().all(|name| is_whole(name));
            (identifiers, are_texts, reason)
        } else {
            let mut reason = "the columns of numbers and dates that all tables share".to_string();
            if !others.is_empty() {
                reason +=
                    &format!("; {} are also shared, but hold other values or empty cells", others.join(", "));
            }
            (numbers, false, reason)
        }
    } else {
        let names = request.keys.to_vec();
        for table in tables {
            names.iter().try_for_each(|key| table.find(key, "--keys").map(drop))?;
        }
        let has_numbers = |name: &String| is_number(name) || is_date(name);
        let are_numbers = names.iter().all(|name| has_numbers(name) && is_whole(name));
        (names, !are_numbers, "named by `--keys`".to_string())
    };
    let mut choice = KeyChoice { names, are_texts, on_sphere: false, reason };
    choice.put_longitude_first(tables);
    Ok(choice)
}

/// Returns the columns that all tables share, except for the label.
fn shared(request: &Request<'_>, tables: &[PartyFile]) -> anyhow::Result<Vec<String>> {
    let (primary, others) = (&tables[0], &tables[1..]);
    let is_shared =
        |name: &&str| *name != request.label && others.iter().all(|table| table.column(name).is_some());
    let shared: Vec<String> = primary.names().filter(is_shared).map(String::from).collect();
    if !shared.is_empty() {
        return Ok(shared);
    }
    let columns = |table: &PartyFile| {
        format!("{} has {}", table.path.display(), table.names().collect::<Vec<_>>().join(", "))
    };
    let known: Vec<String> = tables.iter().map(columns).collect();
    let problem = match others.iter().all(|table| table.column(request.label).is_some()) {
        true => format!("only the label `{}` is in all tables, and it cannot be a key", request.label),
        false => "no column is in all tables".to_string(),
    };
    Err(input(format!("{problem}; name the keys with --keys ({})", known.join("; "))))
}

impl KeyChoice {
    /// Recognises a pair of longitude and latitude, and puts the longitude first, as the linker requires.
    fn put_longitude_first(&mut self, tables: &[PartyFile]) {
        let [one, other] = self.names.as_slice() else { return };
        let swapped = match (coordinate(one), coordinate(other)) {
            (Some(Coordinate::Longitude), Some(Coordinate::Latitude)) => false,
            (Some(Coordinate::Latitude), Some(Coordinate::Longitude)) => true,
            _ => return,
        };
        let (longitude, latitude) = if swapped { (other, one) } else { (one, other) };
        let within = |name: &str, low: f64, high: f64| {
            tables.iter().all(|table| {
                table.numbers(name).is_some_and(|numbers| numbers.iter().all(|n| (low..=high).contains(n)))
            })
        };
        if self.are_texts || !within(longitude, -180.0, 360.0) || !within(latitude, -90.0, 90.0) {
            return;
        }
        self.on_sphere = true;
        if swapped {
            self.reason += "; the longitude comes first, as `haversine` requires";
            self.names.swap(0, 1);
        }
    }

    /// Returns true if all keys are coordinates of places.
    pub(super) fn are_places(&self) -> bool {
        !self.are_texts && self.names.iter().all(|name| coordinate(name).is_some())
    }

    /// Returns true if the keys are identifiers, such as a single column `id`, whose distances are meaningless. Cells
    /// may be empty, although such keys are compared as texts.
    pub(super) fn are_identifiers(&self, tables: &[PartyFile]) -> bool {
        self.names.iter().all(|name| holds_identifiers(name, tables))
    }

    /// Returns true if keys are equal or different, because they are codes or identifiers: then some must be equal.
    pub(super) fn are_codes(&self, tables: &[PartyFile]) -> bool {
        let is_code = |name: &String| {
            let texts = tables[0].values(name).map(Values::texts).unwrap_or_default();
            Comparison::detect(texts.iter().map(String::as_str)) != Comparison::Normal
        };
        self.are_identifiers(tables) || (self.are_texts && self.names.iter().all(is_code))
    }

    /// Returns a unit for each key column if one column would otherwise decide the
    /// distance. The unit is the standard deviation in the primary's table; coordinates share one unit.
    pub(super) fn units(&self, primary: &PartyFile) -> Option<Vec<f64>> {
        if self.are_texts || self.names.len() < 2 || self.on_sphere {
            return None;
        }
        let spreads: Vec<f64> = self
            .names
            .iter()
            .map(|name| primary.numbers(name).map(|numbers| deviation(&numbers)))
            .collect::<Option<_>>()?;
        let are_places: Vec<bool> = self.names.iter().map(|name| coordinate(name).is_some()).collect();
        let places: Vec<f64> =
            spreads.iter().zip(&are_places).filter(|(_, is)| **is).map(|(spread, _)| *spread).collect();
        let of_places = places.iter().copied().fold(0.0, f64::max);
        let units: Vec<f64> = spreads
            .iter()
            .zip(&are_places)
            .map(|(&spread, &is_place)| if is_place { of_places } else { spread })
            .map(|unit| if unit > 0.0 { three_digits(unit) } else { 1.0 })
            .collect();
        let least = units.iter().copied().fold(f64::INFINITY, f64::min);
        let most = units.iter().copied().fold(0.0, f64::max);
        (most > DOMINANT * least).then_some(units)
    }
}

enum Coordinate {
    Longitude,
    Latitude,
    /// In a plane.
    Plane,
}

/// Returns the coordinate that a column's name says.
fn coordinate(name: &str) -> Option<Coordinate> {
    let words = words(name);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    if has(&["lon", "lng", "long", "longitude"]) {
        Some(Coordinate::Longitude)
    } else if has(&["lat", "latitude"]) {
        Some(Coordinate::Latitude)
    } else if has(&["x", "y", "easting", "northing", "east", "north"]) {
        Some(Coordinate::Plane)
    } else {
        None
    }
}

/// Rounds to three significant digits.
fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn deviation(numbers: &[f64]) -> f64 {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|number| number / count).sum::<f64>();
    (numbers.iter().map(|number| (number - mean).powi(2) / count).sum::<f64>()).sqrt()
}

/// Facts about the keys of the primary and of another party.
pub(super) struct PairFacts {
    /// Name of the other party.
    pub(super) name: String,
    /// Numbers of rows of the primary and of the other party.
    pub(super) rows: [usize; 2],
    /// Shares of rows with a key that no other row of the same table has.
    pub(super) unique: [f64; 2],
    /// Share of the primary's rows with a key that the other party has.
    pub(super) equal: f64,
    /// Number of the other party's records with the key of a row: nineteen in twenty rows with an equal key
    /// have at most as many.
    pub(super) records_per_key: usize,
    /// Share of rows that are the nearest row of their nearest record; `None` for texts.
    pub(super) mutual: Option<f64>,
    /// First key of the primary and of the other party, as written.
    pub(super) examples: [String; 2],
}

impl PairFacts {
    /// Compares the keys of two tables.
    pub(super) fn new(keys: &KeyChoice, primary: &PartyFile, other: &PartyFile) -> Self {
        let written = [primary, other].map(|table| -> Vec<Vec<String>> {
            keys.names.iter().map(|name| table.written(name, keys.are_texts)).collect()
        });
        let own = cells(keys, primary, &written[0], &written[0]);
        let theirs = cells(keys, other, &written[1], &written[0]);
        let (own_counts, their_counts) = (counts(&own), counts(&theirs));
        let unique = |cells: &[String], counts: &HashMap<&str, usize>| {
            let single = cells.iter().filter(|cell| counts.get(cell.as_str()) == Some(&1)).count();
            single as f64 / cells.len().max(1) as f64
        };
        let mut found: Vec<usize> =
            own.iter().filter_map(|cell| their_counts.get(cell.as_str()).copied()).collect();
        found.sort_unstable();
        let records_per_key = found.get(found.len() * 19 / 20).copied().unwrap_or(1);
        Self {
            name: other.name.clone(),
            rows: [primary.rows(), other.rows()],
            unique: [unique(&own, &own_counts), unique(&theirs, &their_counts)],
            equal: found.len() as f64 / own.len().max(1) as f64,
            records_per_key,
            mutual: if keys.are_texts { None } else { mutual(keys, primary, other) },
            examples: [example(&written[0], &own), example(&written[1], &theirs)],
        }
    }

    /// Returns true if almost every key is unique in both tables.
    pub(super) fn has_unique_keys(&self) -> bool {
        self.unique.iter().all(|share| *share >= 0.95)
    }

    /// Returns true if both tables have a similar number of rows.
    pub(super) fn has_similar_sizes(&self) -> bool {
        let ratio = self.rows[0] as f64 / self.rows[1].max(1) as f64;
        (0.8..=1.25).contains(&ratio)
    }
}

/// Returns true if the column of this name holds whole numbers in all tables, and its name says that it identifies records.
/// Cells may be empty.
fn holds_identifiers(name: &str, tables: &[PartyFile]) -> bool {
    let is_whole = |number: &f64| number.is_nan() || number.fract() == 0.0;
    let are_whole = |table: &PartyFile| matches!(table.values(name), Some(Values::Number(numbers)) if numbers.iter().all(is_whole));
    is_identifier(name) && tables.iter().all(are_whole)
}

/// Returns the key of each row of a table as a text that is equal where a run compares the keys as equal; an empty text if
/// a cell is missing. `written` has the cells of each key column, and `primary` those of the primary, which decide the
/// comparison.
fn cells(
    keys: &KeyChoice,
    table: &PartyFile,
    written: &[Vec<String>],
    primary: &[Vec<String>],
) -> Vec<String> {
    let compared = |(at, name): (usize, &String)| -> Vec<String> {
        let form = match table.values(name) {
            Some(Values::Number(_)) if keys.are_texts => {
                Comparison::detect(primary[at].iter().map(String::as_str))
            }
            Some(Values::Number(_) | Values::Date(_)) => Comparison::Verbatim,
            _ => Comparison::Normal,
        };
        let compare = |cell: &String| match form {
            Comparison::Verbatim => cell.trim().to_string(),
            Comparison::Numbers => number(cell.trim()).map_or(cell.trim().to_string(), |own| own.to_string()),
            Comparison::Normal => normalise(cell),
        };
        written[at].iter().map(compare).collect()
    };
    let columns: Vec<Vec<String>> = keys.names.iter().enumerate().map(compared).collect();
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column[row].as_str());
        if cells.clone().any(str::is_empty) {
            String::new()
        } else {
            cells.collect::<Vec<_>>().join("\u{1f}")
        }
    };
    (0..table.rows()).map(row).collect()
}

/// Returns the first key without a missing cell, as written; empty if every row misses a cell.
fn example(written: &[Vec<String>], cells: &[String]) -> String {
    let Some(first) = cells.iter().position(|cell| !cell.is_empty()) else { return String::new() };
    let key = written.iter().map(|column| column[first].as_str()).collect::<Vec<_>>().join(", ");
    key.chars().take(MOST_SHOWN).map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

/// Returns the number of rows of each key; rows with a missing cell do not count.
fn counts(cells: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for cell in cells.iter().filter(|cell| !cell.is_empty()) {
        *counts.entry(cell.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Returns the share of the primary's rows that are the nearest row of their nearest record. Tables without any
/// relation and with similar numbers of records have a share of about one half.
fn mutual(keys: &KeyChoice, primary: &PartyFile, other: &PartyFile) -> Option<f64> {
    let units = keys.units(primary).unwrap_or_else(|| vec![1.0; keys.names.len()]);
    let points_of = |table: &PartyFile| -> Option<Vec<f64>> {
        let scaled = |(name, unit): (&String, &f64)| {
            Some(table.numbers(name)?.into_iter().map(|number| number / unit).collect())
        };
        let columns: Vec<Vec<f64>> = keys.names.iter().zip(&units).map(scaled).collect::<Option<_>>()?;
        Some((0..table.rows()).flat_map(|row| columns.iter().map(move |column| column[row])).collect())
    };
    let width = keys.names.len();
    let (own, theirs) = (points_of(primary)?, points_of(other)?);
    let (own, theirs, width) = match keys.on_sphere {
        true => (points::on_sphere(&own), points::on_sphere(&theirs), 3),
        false => (own, theirs, width),
    };
    let rows = own.len() / width;
    if width > 8 || rows == 0 || theirs.is_empty() {
        return None;
    }
    let step = rows.div_ceil(SAMPLE);
    let sample: Vec<usize> = (0..rows).step_by(step).collect();
    let at = |points: &[f64], row: usize| points[row * width..(row + 1) * width].to_vec();
    let queries: Vec<f64> = sample.iter().flat_map(|&row| at(&own, row)).collect();
    let nearest = points::nearest(&queries, &theirs, width, 1).indices;
    let records: Vec<f64> = nearest.iter().flat_map(|&record| at(&theirs, record as usize)).collect();
    let back = points::nearest(&records, &own, width, 1).indices;
    let same = sample.iter().zip(back).filter(|(row, back)| **row == *back as usize).count();
    Some(same as f64 / sample.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_coordinates_by_their_names() {
        let is = |name: &str| coordinate(name).is_some();
        assert!(["lon", "start_lat", "Longitude", "x", "east"].into_iter().all(is));
        assert!(!["plate", "hours", "belong", "flat"].into_iter().any(is));
    }

    #[test]
    fn deviation_is_the_square_root_of_the_mean_squared_difference() {
        assert!((deviation(&[1.0, 3.0, 1.0, 3.0]) - 1.0).abs() < 1e-12);
        assert_eq!(deviation(&[]), 0.0);
        assert_eq!([three_digits(0.012_345), three_digits(1234.5)], [0.0123, 1230.0]);
    }
}
