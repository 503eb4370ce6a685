//! Columns computed from a table's own keys: the difference of two points, and the parts of a date.
//!
//! A tree splits one column at a time, so it approximates a distance between two key columns only with many
//! splits. A party computes its columns alone, and they stay with it.

use std::f64::consts::TAU;

use fet_core::data::Matrix;
use fet_tables::{Column, Kind, Values};

use super::table::TableSettings;

/// Mean radius of the earth in metres (IUGG).
const EARTH: f64 = 6_371_008.8;
/// Days of a mean Gregorian year.
const YEAR: f64 = 365.2425;
/// Days from a Monday to 1970-01-01, a Thursday.
const MONDAY: f64 = 3.0;

/// Name of the distance between the two points of a row.
const DISTANCE: &str = "distance between the keys";

/// Returns the columns that the keys give, [rows, keys] with one name for each key.
///
/// - Two points: every last word of a key's name occurs twice, as in `start_lon`, `start_lat`, `end_lon`, `end_lat`.
///   Their columns are the difference on each axis; and with two axes or more the distance. If the axes are named as
///   latitude and longitude, the distance is in metres along the earth, and the difference of longitude is that of the
///   short way; otherwise both are in the unit of the keys. With two axes there is also the direction, as a cosine and
///   a sine.
/// - A date: sine and cosine of the hour of the day, of the day of the week and of the day of the year.
/// - A time of day: sine and cosine.
pub(super) fn columns(settings: &TableSettings, keys: &Matrix<f64>) -> Vec<Column> {
    let mut found = Vec::new();
    let axes = axes(&settings.keys);
    let column = |at: usize| (0..keys.rows()).map(move |row| keys.row(row)[at]).collect::<Vec<f64>>();
    if !axes.is_empty() {
        found.extend(between_points(&settings.keys, &axes, keys));
    }
    for (at, name) in settings.keys.iter().enumerate() {
        match settings.columns.get(name) {
            Some(Kind::Date { .. }) => {
                let days = column(at);
                found.extend(cycle(name, "hour", days.iter().map(|day| day.rem_euclid(1.0))));
                let weekdays = days.iter().map(|day| (day.floor() + MONDAY).rem_euclid(7.0) / 7.0);
                found.extend(cycle(name, "day of the week", weekdays));
                found.extend(cycle(
                    name,
                    "day of the year",
                    days.iter().map(|day| day.rem_euclid(YEAR) / YEAR),
                ));
            }
            Some(Kind::Time) => found.extend(cycle(name, "hour", column(at).iter().map(|hour| hour / 24.0))),
            _ => {}
        }
    }
    found
}

impl TableSettings {
    /// Returns the names of the columns that `key_features` computes from these keys.
    pub fn key_features(&self) -> Vec<String> {
        let none = Matrix::new(self.keys.len(), Vec::new());
        columns(self, &none).into_iter().map(|column| column.name).collect()
    }
}

/// Returns true if a column differs between rows.
pub(super) fn varies(column: &Column) -> bool {
    match &column.values {
        Values::Number(values) => values.iter().any(|value| value != &values[0]),
        _ => true,
    }
}

/// Returns the two keys of each axis, by place, if the keys are two points; otherwise an empty list.
fn axes(names: &[String]) -> Vec<[usize; 2]> {
    let mut axes: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let word = last_word(name);
        match axes.iter_mut().find(|(known, _)| *known == word) {
            Some((_, places)) => places.push(at),
            None => axes.push((word, vec![at])),
        }
    }
    let pair = |(_, places): &(String, Vec<usize>)| <[usize; 2]>::try_from(places.as_slice()).ok();
    axes.iter().map(pair).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Returns the last word of a name in lower case.
fn last_word(name: &str) -> String {
    let word = name.rsplit(|sign: char| !sign.is_alphanumeric()).find(|word| !word.is_empty());
    word.unwrap_or(name).to_lowercase()
}

fn between_points(names: &[String], axes: &[[usize; 2]], keys: &Matrix<f64>) -> Vec<Column> {
    let is_axis =
        |[first, _]: &[usize; 2], words: &[&str]| words.contains(&last_word(&names[*first]).as_str());
    let latitude = axes.iter().position(|axis| is_axis(axis, &["lat", "latitude"]));
    let longitude = axes.iter().position(|axis| is_axis(axis, &["lon", "lng", "long", "longitude"]));
    let on_earth = latitude.zip(longitude).filter(|_| axes.len() == 2);
    let (mut differences, mut distances, mut directions) =
        (vec![Vec::new(); axes.len()], Vec::new(), [Vec::new(), Vec::new()]);
    for row in 0..keys.rows() {
        let key = keys.row(row);
        let mut steps: Vec<f64> = axes.iter().map(|&[from, to]| key[to] - key[from]).collect();
        if let Some((_, longitude)) = on_earth {
            steps[longitude] = short_way(steps[longitude]);
        }
        for (axis, step) in differences.iter_mut().zip(&steps) {
            axis.push(*step);
        }
        let straight = |steps: &[f64]| steps.iter().map(|step| step * step).sum::<f64>().sqrt();
        distances.push(match on_earth {
            Some((latitude, longitude)) => {
                let [from, to] = axes[latitude].map(|place| key[place]);
                steps[longitude] *= ((from + to) / 2.0).to_radians().cos();
                haversine([from, to], key[axes[longitude][1]] - key[axes[longitude][0]])
            }
            None => straight(&steps),
        });
        let length = straight(&steps);
        for (direction, step) in directions.iter_mut().zip(&steps) {
            direction.push(if length > 0.0 { step / length } else { 0.0 });
        }
    }
    let number = |name: String, values: Vec<f64>| Column { name, values: Values::Number(values) };
    let mut found: Vec<Column> = axes
        .iter()
        .zip(differences)
        .map(|(&[from, to], values)| number(format!("{} - {}", names[to], names[from]), values))
        .collect();
    if axes.len() >= 2 {
        found.push(number(DISTANCE.to_string(), distances));
    }
    if axes.len() == 2 {
        for (part, values) in ["cosine", "sine"].into_iter().zip(directions) {
            found.push(number(format!("direction between the keys ({part})"), values));
        }
    }
    found
}

/// Returns a difference of longitude the short way around the earth, in degrees from -180 to 180.
fn short_way(difference: f64) -> f64 {
    if difference.abs() <= 180.0 { difference } else { (difference + 180.0).rem_euclid(360.0) - 180.0 }
}

/// Returns the distance in metres of two points with these latitudes and this difference of longitude, in degrees.
fn haversine([from, to]: [f64; 2], longitude: f64) -> f64 {
    let half = |degrees: f64| (degrees.to_radians() / 2.0).sin().powi(2);
    let chord = half(to - from) + from.to_radians().cos() * to.to_radians().cos() * half(longitude);
    2.0 * EARTH * chord.clamp(0.0, 1.0).sqrt().asin()
}

/// Returns cosine and sine of a share of a cycle.
fn cycle(key: &str, what: &str, shares: impl Iterator<Item = f64> + Clone) -> [Column; 2] {
    let part = |name: &str, values: Vec<f64>| Column {
        name: format!("{key}: {what} ({name})"),
        values: Values::Number(values),
    };
    [
        part("cosine", shares.clone().map(|share| (TAU * share).cos()).collect()),
        part("sine", shares.map(|share| (TAU * share).sin()).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(keys: &[&str], columns: &[(&str, Kind)]) -> TableSettings {
        TableSettings {
            keys: keys.iter().map(ToString::to_string).collect(),
            columns: columns.iter().map(|(name, kind)| (name.to_string(), kind.clone())).collect(),
            ..TableSettings::default()
        }
    }

    fn numbers(column: &Column) -> &[f64] {
        let Values::Number(values) = &column.values else { panic!("{column:?} has numbers") };
        values
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    #[test]
    fn two_points_give_differences_distance_and_direction() {
        let keys = Matrix::new(4, vec![0.0, 0.0, 3.0, 4.0, 1.0, 1.0, 1.0, 1.0]);
        let found = columns(&settings(&["x", "y", "to.x", "to.y"], &[]), &keys);
        let names: Vec<&str> = found.iter().map(|column| column.name.as_str()).collect();
        let [cosine, sine] = ["cosine", "sine"].map(|part| format!("direction between the keys ({part})"));
        assert_eq!(names, ["to.x - x", "to.y - y", DISTANCE, &cosine, &sine]);
        let values: Vec<&[f64]> = found.iter().map(numbers).collect();
        assert_eq!(values, [&[3.0, 0.0][..], &[4.0, 0.0], &[5.0, 0.0], &[0.6, 0.0], &[0.8, 0.0]]);
    }

    #[test]
    fn places_on_earth_have_a_distance_in_metres() {
        // Paris to London, 343.5 km (haversine).
        let names = ["start_lon", "start_lat", "end_lon", "end_lat"];
        let keys = Matrix::new(4, vec![2.3522, 48.8566, -0.1276, 51.5072, 0.0, 0.0, 0.0, 1.0]);
        let found = columns(&settings(&names, &[]), &keys);
        let distance = found.iter().find(|column| column.name == DISTANCE).expect("a distance");
        near(numbers(distance)[0], 343_556.0, 100.0);
        near(numbers(distance)[1], EARTH * 1.0_f64.to_radians(), 1e-3);
        let cosine = found.iter().find(|column| column.name.ends_with("(cosine)")).expect("a direction");
        assert!(numbers(cosine)[0] < 0.0, "London is west of Paris");
        near(numbers(cosine)[1], 0.0, 1e-12);
    }

    /// Two points at the date line are 2 degrees apart, and the second one is east of the first.
    #[test]
    fn longitudes_differ_the_short_way() {
        let names = ["start_lon", "start_lat", "end_lon", "end_lat"];
        let keys =
            Matrix::new(4, vec![179.0, 0.0, -179.0, 0.0, -179.0, 0.0, 179.0, 0.0, -90.0, 0.0, 90.0, 0.0]);
        let found = columns(&settings(&names, &[]), &keys);
        assert_eq!(numbers(&found[0]), [2.0, -2.0, 180.0]);
        let of = |name: &str| numbers(found.iter().find(|column| column.name.contains(name)).expect(name));
        near(of(DISTANCE)[0], EARTH * 2.0_f64.to_radians(), 1e-3);
        assert_eq!(of("(cosine)"), [1.0, -1.0, 1.0]);
    }

    #[test]
    fn one_point_and_unpaired_keys_give_nothing() {
        let keys = Matrix::new(3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(columns(&settings(&["lon", "lat", "hours"], &[]), &keys).is_empty());
        assert!(columns(&settings(&["start_x", "end_x", "y"], &[]), &keys).is_empty());
    }

    #[test]
    fn dates_and_times_are_cycles() {
        let date = Kind::Date { format: None };
        // 1970-01-05 was a Monday; day 4.25 is 06:00.
        let found = columns(&settings(&["day"], &[("day", date)]), &Matrix::new(1, vec![4.25, 11.25, 5.0]));
        let of = |name: &str| numbers(found.iter().find(|column| column.name == name).expect(name)).to_vec();
        near(of("day: day of the week (cosine)")[0], 1.0, 1e-12);
        near(of("day: day of the week (cosine)")[1], 1.0, 1e-12);
        near(of("day: day of the week (sine)")[2], (TAU / 7.0).sin(), 1e-12);
        near(of("day: hour (sine)")[0], 1.0, 1e-12);
        let found = columns(&settings(&["at"], &[("at", Kind::Time)]), &Matrix::new(1, vec![0.0, 12.0]));
        near(numbers(&found[0])[1], -1.0, 1e-12);
        // The hour of dates without times does not vary.
        let date = Kind::Date { format: None };
        let found = columns(&settings(&["day"], &[("day", date)]), &Matrix::new(1, vec![4.0, 5.0]));
        assert!(found.iter().all(|column| varies(column) != column.name.contains("hour")), "{found:?}");
    }
}
