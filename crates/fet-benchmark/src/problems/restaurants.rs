//! `restaurants`: ratings in one restaurant guide, and the reviews of another.

use super::shuffled;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let read = |name: &str| Table::read(name, &sources.member(&format!("tests/test_datasets/{name}"))?);
    let (guide, other) = (read("restA.csv")?, read("restB.csv")?);
    let columns = ["NAME", "ADDRESS", "NO_OF_REVIEWS", "RATING"];
    let rated = |table: &Table, file: &str, names: [&str; 4]| -> Result<Table, BenchmarkError> {
        let positions = table.positions(columns)?;
        let mut out = Table::new(file, names);
        for row in table.rows.iter().filter(|row| !row[positions[3]].is_empty()) {
            out.push(positions.map(|column| &row[column]));
        }
        Ok(out)
    };
    let guide = rated(&guide, "guide.csv", ["name", "address", "reviews", "rating"])?;
    let reviews = rated(&other, "reviews.csv", ["name", "address", "reviews", "stars"])?;
    let order = shuffled(reviews.rows.len(), "restaurants: order of the reviews");
    let shuffled_reviews = reviews.picked("reviews.csv", &order);
    Ok(vec![guide, shuffled_reviews])
}
