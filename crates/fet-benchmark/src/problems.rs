//! Preparation of the problems. Each problem has a declaration in `problems/NAME.toml`, an experiment in
//! `experiments/benchmark/NAME.toml`, and one module here.

mod airports;
mod bike;
mod digits;
mod flights;
mod insurance;
mod market;
mod players;
mod rentals;
mod restaurants;
mod serum;

use std::sync::LazyLock;

use crate::draw::Draw;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::problem::{Problem, Role};
use crate::table::Table;

/// Preparation: returns the tables in the order of the declaration.
type Prepare = fn(&Sources) -> Result<Vec<Table>, BenchmarkError>;

/// Problem with its preparation.
pub(crate) struct Entry {
    pub(crate) problem: Problem,
    pub(crate) experiment: &'static str,
    pub(crate) prepare: Prepare,
}

macro_rules! entries {
    ($($name:ident),* $(,)?) => {
        [$((
            include_str!(concat!("../problems/", stringify!($name), ".toml")),
            include_str!(concat!("../../../experiments/benchmark/", stringify!($name), ".toml")),
            $name::prepare as Prepare,
        )),*]
    };
}

/// All problems, in the order of the documentation.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entry = |(declaration, experiment, prepare): (&str, &'static str, Prepare)| Entry {
        problem: toml::from_str(declaration)
            .unwrap_or_else(|error| panic!("a declaration is invalid: {error}")),
        experiment,
        prepare,
    };
    entries![flights, bike, players, insurance, serum, airports, restaurants, rentals, market, digits]
        .into_iter()
        .map(entry)
        .collect()
});

/// Returns all problems.
pub(crate) fn all() -> &'static [Entry] {
    &ENTRIES
}

/// Returns the problem with this name.
pub(crate) fn find(name: &str) -> Result<&'static Entry, BenchmarkError> {
    ENTRIES.iter().find(|entry| entry.problem.name == name).ok_or_else(|| {
        let names = ENTRIES.iter().map(|entry| entry.problem.name.as_str());
        let hint = fet_io::did_you_mean(name, names);
        BenchmarkError::UnknownProblem { name: name.into(), hint }
    })
}

/// Draws rows of the primary. The tables of true records follow the primary's; all others stay whole.
pub(crate) fn fewer(
    tables: Vec<Table>,
    problem: &Problem,
    rows: usize,
) -> Result<Vec<Table>, BenchmarkError> {
    let all = tables[0].rows.len();
    if rows > all {
        return Err(BenchmarkError::Request(format!(
            "--rows {rows}: the primary of `{}` has {all} rows",
            problem.name
        )));
    }
    let mut order: Vec<usize> = (0..all).collect();
    Draw::new(&format!("{}: rows of the primary", problem.name)).shuffle(&mut order);
    order.truncate(rows);
    order.sort_unstable();
    let cut = |(table, role): (Table, Role)| match role {
        Role::Secondary => table,
        Role::Primary | Role::Truth => table.picked(table.file(), &order),
    };
    Ok(tables.into_iter().zip(problem.tables.iter().map(|table| table.role)).map(cut).collect())
}

/// Returns a shuffled order of the rows of a table.
fn shuffled(rows: usize, purpose: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    Draw::new(purpose).shuffle(&mut order);
    order
}
