//! `serum`: patients of a clinic, and the measurements of a laboratory.

use super::shuffled;
use crate::draw::Draw;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::persons::{COLUMNS, Person, Sex};
use crate::table::{Table, present};

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let arff = sources.member("sksurv/datasets/data/flchain.arff")?;
    let all = Table::read("flchain.arff", &as_csv(&arff))?;
    let [age, sex, year, death] = all.positions(["age", "sex", "sample.yr", "death"])?;
    let [kappa, lambda, group, creatinine, mgus] =
        all.positions(["kappa", "lambda", "flc.grp", "creatinine", "mgus"])?;

    let mut patients =
        Table::new("patients.csv", COLUMNS.into_iter().chain(["age", "sex", "year", "mgus", "died"]));
    let measured = ["kappa", "lambda", "flc_group", "creatinine"];
    let mut laboratory = Table::new("laboratory-true.csv", COLUMNS.into_iter().chain(measured));
    let mut draw = Draw::new("serum: persons");
    for row in &all.rows {
        let gender = if &row[sex] == "F" { Sex::Female } else { Sex::Male };
        let born = all.number(row, year)? - all.number(row, age)?;
        let person = Person::invent(&mut draw, gender, born as i32);
        let died = if &row[death] == "dead" { "yes" } else { "no" };
        let own = [&row[age], &row[sex], &row[year], &row[mgus], died].map(String::from);
        patients.push(person.cells().into_iter().chain(own));
        let other = [kappa, lambda, group, creatinine].map(|column| present(&row[column]).to_string());
        laboratory.push(person.registered(&mut draw).into_iter().chain(other));
    }
    let order = shuffled(laboratory.rows.len(), "serum: order of the laboratory");
    let shuffled_laboratory = laboratory.picked("laboratory.csv", &order);
    Ok(vec![patients, shuffled_laboratory, laboratory])
}

/// Returns the rows of an ARFF file as CSV with a header.
fn as_csv(arff: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(arff);
    let mut columns = Vec::new();
    let mut rows = String::new();
    let mut is_data = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('%')) {
        if is_data {
            rows += line;
            rows.push('\n');
        } else if line.eq_ignore_ascii_case("@data") {
            is_data = true;
        } else if let Some(name) =
            line.strip_prefix("@attribute ").and_then(|rest| rest.split_whitespace().next())
        {
            columns.push(name);
        }
    }
    format!("{}\n{rows}", columns.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arff_becomes_csv() {
        let arff = b"% note\n@relation r\n@attribute a numeric\n@attribute b {x,y}\n\n@data\n1,x\n2,?\n";
        assert_eq!(String::from_utf8(as_csv(arff)).expect("text"), "a,b\n1,x\n2,?\n");
    }
}
