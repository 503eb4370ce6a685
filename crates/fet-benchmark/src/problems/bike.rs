//! `bike`: durations of bicycle trips, and taxi trips between the same places.

use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// Key columns: the start and the end of a trip.
const KEYS: [&str; 4] = ["start_lon", "start_lat", "end_lon", "end_lat"];

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let trips = Table::read("bike_compact.csv.gz", &sources.whole("bike_compact.csv.gz")?)?;
    let taxis = Table::read("taxi.csv.gz", &sources.whole("taxi.csv.gz")?)?;
    let own = ["start_hour", "age", "tripduration"];
    let other = ["start_hour", "end_hour", "trip_distance", "taxi_duration"];
    Ok(vec![chosen(&trips, "bicycles.csv", &own)?, chosen(&taxis, "taxis.csv", &other)?])
}

/// Returns the keys and some columns of a table.
fn chosen(table: &Table, file: &str, columns: &[&str]) -> Result<Table, BenchmarkError> {
    let names: Vec<&str> = KEYS.iter().chain(columns).copied().collect();
    let positions = names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Table::new(file, names);
    for row in &table.rows {
        out.push(positions.iter().map(|&column| &row[column]));
    }
    Ok(out)
}
