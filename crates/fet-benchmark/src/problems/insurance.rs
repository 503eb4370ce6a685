//! `insurance`: customers of an insurer, and a geodemographic company's description of their households.

use super::shuffled;
use crate::draw::Draw;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::persons::{COLUMNS, Person, Sex};
use crate::table::Table;

/// Number of columns about the household, before those about the customer's products.
const HOUSEHOLD: usize = 43;

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let all = Table::read("Caravan.csv", &sources.member("ISLP/data/Caravan.csv")?)?;
    let label = all.column("Purchase")?;
    let last_of_household = all.column("MKOOPKLA")?;
    if last_of_household + 1 != HOUSEHOLD {
        return Err(BenchmarkError::Content {
            place: "Caravan.csv".into(),
            problem: format!("the columns of the household end at {last_of_household}"),
        });
    }
    let names = |from: usize, to: usize| all.columns[from..to].iter().map(String::as_str);
    let mut customers =
        Table::new("customers.csv", COLUMNS.into_iter().chain(names(HOUSEHOLD, label)).chain(["purchase"]));
    let mut households = Table::new("households-true.csv", COLUMNS.into_iter().chain(names(0, HOUSEHOLD)));
    let mut draw = Draw::new("insurance: persons");
    for row in &all.rows {
        let sex = if draw.chance(0.5) { Sex::Female } else { Sex::Male };
        let year = 1920 + draw.below(60) as i32;
        let person = Person::invent(&mut draw, sex, year);
        let bought = if &row[label] == "Yes" { "yes" } else { "no" };
        let own = (HOUSEHOLD..label).map(|column| row[column].to_string());
        customers.push(person.cells().into_iter().chain(own).chain([bought.to_string()]));
        let other = (0..HOUSEHOLD).map(|column| row[column].to_string());
        households.push(person.registered(&mut draw).into_iter().chain(other));
    }
    let order = shuffled(households.rows.len(), "insurance: order of the households");
    let shuffled_households = households.picked("households.csv", &order);
    Ok(vec![customers, shuffled_households, households])
}
