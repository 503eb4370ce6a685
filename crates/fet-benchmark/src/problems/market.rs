//! `market`: the direction of tomorrow's share prices, and the exchange's trading volume.

use super::shuffled;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// Number of earlier days whose return the primary knows.
const DAYS: usize = 4;

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let all = Table::read("NYSE.csv", &sources.member("ISLP/data/NYSE.csv")?)?;
    let [date, change, volume, volatility] =
        all.positions(["date", "DJ_return", "log_volume", "log_volatility"])?;
    let mut index = Table::new("index.csv", ["date", "today", "lag1", "lag2", "lag3", "lag4", "rises"]);
    let mut exchange = Table::new("exchange-true.csv", ["date", "log_volume", "log_volatility"]);
    for (day, rows) in all.rows.windows(DAYS + 2).enumerate() {
        let (today, tomorrow) = (&rows[DAYS], &rows[DAYS + 1]);
        let rises = if all.number(tomorrow, change)? > 0.0 { "yes" } else { "no" };
        let earlier = (0..=DAYS).map(|lag| &all.rows[day + DAYS - lag][change]);
        index.push([&today[date]].into_iter().chain(earlier).chain([rises]));
        exchange.push([&today[date], &today[volume], &today[volatility]]);
    }
    let order = shuffled(exchange.rows.len(), "market: order of the exchange");
    let shuffled_exchange = exchange.picked("exchange.csv", &order);
    Ok(vec![index, shuffled_exchange, exchange])
}
