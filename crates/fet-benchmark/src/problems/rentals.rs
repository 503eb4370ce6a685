//! `rentals`: hourly rentals of a bicycle hire, and the weather.

use chrono::{Duration, NaiveDate};

use super::shuffled;
use crate::draw::Draw;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// Standard deviation of the weather's time, in minutes.
const CLOCK: f64 = 6.0;
/// Columns of the weather.
const WEATHER: [&str; 5] = ["weathersit", "temp", "atemp", "hum", "windspeed"];

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let all = Table::read("Bikeshare.csv", &sources.member("ISLP/data/Bikeshare.csv")?)?;
    let [day, hour, holiday, working, bikers] =
        all.positions(["day", "hr", "holiday", "workingday", "bikers"])?;
    let measured = all.positions(WEATHER)?;
    let mut rentals = Table::new("rentals.csv", ["at", "date", "holiday", "workingday", "bikers"]);
    let mut weather = Table::new("weather-true.csv", ["at"].into_iter().chain(WEATHER));
    let mut draw = Draw::new("rentals: clock of the weather");
    let start =
        NaiveDate::from_ymd_opt(2011, 1, 1).and_then(|date| date.and_hms_opt(0, 0, 0)).expect("a date");
    for row in &all.rows {
        let hours = (all.number(row, day)? - 1.0) * 24.0 + all.number(row, hour)?;
        let at = start + Duration::hours(hours as i64);
        let [text, date] = [at.format("%Y-%m-%d %H:%M").to_string(), at.format("%Y-%m-%d").to_string()];
        rentals.push([&text, &date, &row[holiday], &row[working], &row[bikers]]);
        let read = at + Duration::minutes((CLOCK * draw.normal()).round() as i64);
        let read = read.format("%Y-%m-%d %H:%M").to_string();
        weather.push([read.as_str()].into_iter().chain(measured.iter().map(|&column| &row[column])));
    }
    let order = shuffled(weather.rows.len(), "rentals: order of the weather");
    let shuffled_weather = weather.picked("weather.csv", &order);
    Ok(vec![rentals, shuffled_weather, weather])
}
