//! A person's decisions about pairs, read from the files of a review and applied to the candidates. This
//! module selects no links.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use fet_core::data::Keys;
use fet_core::linker::Links;
use fet_data::read_texts;
use fet_tables::{Kind, Options, Table, Values};

use super::arguments::LinkArguments;
use super::candidates::{Candidate, DecidedPairs, found};
use super::named::{RowInFile, Side};
use super::pairs::LinkedPairs;
use super::tables;
use fet_io::input::input;

/// Name of the column with the decision.
pub(super) const DECISION: &str = "decision";
/// Names of the columns with row numbers, the primary's first.
pub(super) const ROWS: [&str; 2] = ["primary_row", "secondary_row"];
/// Names of the columns with the rows' ids.
pub(super) const IDS: [&str; 2] = ["primary_id", "secondary_id"];

/// Name of the column with the digest of the compared cells.
pub(super) const COMPARED: &str = "compared";

/// Verbatim key cells of both tables, which identify the rows of a decision.
pub(super) struct Cells {
    columns: [usize; 2],
    pub(super) cells: [Vec<String>; 2],
}

impl Cells {
    /// Reads the cells if decisions or a review need them.
    pub(super) fn read(arguments: &LinkArguments, keys: [&Keys; 2]) -> anyhow::Result<Self> {
        let names = tables::names(arguments);
        let files = [&arguments.primary, &arguments.secondary];
        let wanted = arguments.review.is_some() || !arguments.decisions.is_empty();
        let cells = |side: usize| match keys[side].text() {
            _ if !wanted => Ok(Vec::new()),
            Some(texts) => Ok(texts.cells().into_iter().map(String::from).collect()),
            None => read_texts(files[side], names[side]).map_err(input),
        };
        Ok(Self { columns: names.map(<[String]>::len), cells: [cells(0)?, cells(1)?] })
    }

    /// Returns the cells of a row of the primary (side 0) or the secondary (side 1).
    pub(super) fn row(&self, side: usize, row: usize) -> &[String] {
        &self.cells[side][row * self.columns[side]..(row + 1) * self.columns[side]]
    }

    /// Returns a digest of the cells of a pair, which does not depend on the positions of the rows.
    pub(super) fn digest(&self, pair: (u32, u32)) -> String {
        let mut bytes = Vec::new();
        for cell in self.row(0, pair.0 as usize).iter().chain(self.row(1, pair.1 as usize)) {
            bytes.extend_from_slice(&(cell.len() as u64).to_le_bytes());
            bytes.extend_from_slice(cell.as_bytes());
        }
        // The leading letter keeps spreadsheets from reading the digest as a number.
        format!("c{}", &fet_io::hex(&fet_io::sha256(&bytes))[..16])
    }
}

/// Decision about a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Yes,
    No,
    /// Reviewed, but left to the linker.
    Unsure,
}

/// Decision with its position in a file.
#[derive(Debug, Clone)]
struct Decision {
    word: Word,
    file: PathBuf,
    row: usize,
}

impl Decision {
    fn row_in_file(&self) -> RowInFile<'_> {
        RowInFile { file: &self.file, row: self.row }
    }
}

/// Decisions of all files.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Decisions by primary and secondary row.
    pairs: BTreeMap<(u32, u32), Decision>,
    /// Number of decisions that identify rows by number alone, without a digest of the compared cells.
    unchecked: usize,
}

impl Decisions {
    /// Reads files of decisions. `ids` contains the ids of both tables, `rows` their numbers of rows.
    pub(super) fn read(
        files: &[PathBuf],
        ids: Option<&[Vec<String>; 2]>,
        rows: [usize; 2],
        cells: &Cells,
    ) -> anyhow::Result<Self> {
        let mut all = Self::default();
        if files.is_empty() {
            return Ok(all);
        }
        let sides = Side::both(ids, rows);
        for file in files {
            all.add(&Columns::read(file, ids.is_some())?, file, &sides, cells)?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        columns: &Columns,
        file: &Path,
        sides: &[Side<'_>; 2],
        cells: &Cells,
    ) -> anyhow::Result<()> {
        let (mut taken, mut changed) = (0, Vec::new());
        for row in 0..columns.decisions.len() {
            let place = RowInFile { file, row };
            let Some(word) = parse_word(&columns.decisions[row], place)? else { continue };
            let number = |side: usize| columns.numbers.as_ref().map(|numbers| numbers[side][row].as_str());
            let named = |side: usize| match (&columns.ids, number(side)) {
                (Some(ids), number) => sides[side].by_id(place, &ids[side][row], number),
                (None, number) => sides[side].by_number(place, number.unwrap_or_default()),
            };
            let pair = (named(0)?, named(1)?);
            taken += 1;
            match columns.compared.as_ref().map(|compared| compared[row].as_str()) {
                Some(compared) if compared != cells.digest(pair) => changed.push(row),
                None if columns.ids.is_none() => self.unchecked += 1,
                _ => {}
            }
            self.insert(pair, Decision { word, file: file.to_path_buf(), row })?;
        }
        match changed.first() {
            None => Ok(()),
            Some(first) => Err(input(format!(
                "{}: {} of {taken} decisions do not match the present cells of their rows (the first is row {first}, \
                 from 0): a table was changed or sorted, or --keys names other columns. Decide about these pairs \
                 again. To use the decisions anyway, remove the column `{COMPARED}`.",
                file.display(),
                changed.len()
            ))),
        }
    }

    /// Adds a decision. Yes or no overrides another person's unsure; yes and no contradict each other.
    fn insert(&mut self, pair: (u32, u32), new: Decision) -> anyhow::Result<()> {
        match self.pairs.get(&pair) {
            Some(old) if new.word == Word::Unsure || old.word == new.word => {}
            Some(old) if old.word != Word::Unsure => {
                return Err(input(format!(
                    "{}: the pair of primary row {} and secondary row {} has the opposite decision in {}. Remove one \
                     of the two.",
                    new.row_in_file(),
                    pair.0,
                    pair.1,
                    old.row_in_file()
                )));
            }
            _ => {
                self.pairs.insert(pair, new);
            }
        }
        Ok(())
    }

    /// Refuses two confirmed pairs of the same row if each row may be in only one pair.
    pub(super) fn check_one_to_one(&self) -> anyhow::Result<()> {
        let mut seen: [HashMap<u32, (u32, &Decision)>; 2] = Default::default();
        for ((primary, secondary), decision) in self.with_word(Word::Yes) {
            for (side, row, other) in [(0, primary, secondary), (1, secondary, primary)] {
                let Some((first, before)) = seen[side].insert(row, (other, decision)) else { continue };
                let [name, others] = [["primary", "secondary"], ["secondary", "primary"]][side];
                return Err(input(format!(
                    "{}: {name} row {row} belongs to {others} row {other}, but in {} to {others} row {first}. With \
                     --assign one-to-one it can belong to only one row: correct a decision.",
                    decision.row_in_file(),
                    before.row_in_file()
                )));
            }
        }
        Ok(())
    }

    fn with_word(&self, word: Word) -> impl Iterator<Item = ((u32, u32), &Decision)> {
        self.pairs
            .iter()
            .filter(move |(_, decision)| decision.word == word)
            .map(|(&pair, decision)| (pair, decision))
    }

    /// Returns true without any decision.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns true if there is a decision about the pair.
    pub(super) fn has(&self, pair: (u32, u32)) -> bool {
        self.pairs.contains_key(&pair)
    }

    /// Returns the confirmed pairs.
    pub(super) fn confirmed(&self) -> impl Iterator<Item = (u32, u32)> {
        self.with_word(Word::Yes).map(|(pair, _)| pair)
    }

    /// Returns the maximum number of rejected records of a row. The linker must find this many more
    /// candidates to replace them.
    pub(super) fn most_rejected(&self) -> usize {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.with_word(Word::No).for_each(|((row, _), _)| *counts.entry(row).or_default() += 1);
        counts.into_values().max().unwrap_or(0)
    }

    /// Returns the candidates of each row with decisions: the confirmed records, and up to `searched` others
    /// that the linker found, without the rejected records.
    pub(super) fn candidates(&self, links: &Links, searched: usize) -> DecidedPairs {
        let mut rows: BTreeMap<usize, [Vec<u32>; 2]> = BTreeMap::new();
        for ((row, record), decision) in &self.pairs {
            let side = match decision.word {
                Word::Yes => 0,
                Word::No => 1,
                Word::Unsure => continue,
            };
            rows.entry(*row as usize).or_default()[side].push(*record);
        }
        let of_row = |(row, [yes, no]): (usize, [Vec<u32>; 2])| {
            let all = (0..links.available()).map(|rank| found(links, row, rank));
            let (mut first, others): (Vec<_>, Vec<_>) =
                all.partition(|candidate| yes.contains(&candidate.record));
            first.iter_mut().for_each(|candidate| candidate.decided = true);
            for &record in &yes {
                if first.iter().all(|candidate| candidate.record != record) {
                    first.push(Candidate { record, similarity: None, decided: true });
                }
            }
            let left = others.into_iter().filter(|candidate| !no.contains(&candidate.record));
            (row, first.into_iter().chain(left.take(searched)).collect())
        };
        rows.into_iter().map(of_row).collect()
    }

    /// Returns a line for people about the decisions, and about the difference that they make between two
    /// selections of links.
    pub(super) fn describe(&self, before: &LinkedPairs<'_>, after: &LinkedPairs<'_>) -> String {
        let (yes, no) = (self.with_word(Word::Yes).count(), self.with_word(Word::No).count());
        let changing = |word, linked: bool| {
            self.with_word(word)
                .filter(|((row, record), _)| before.has(*row as usize, *record) == linked)
                .count()
        };
        let (mut came, mut went) = (0, 0);
        for row in 0..before.candidates.rows() {
            let news = |a: &LinkedPairs<'_>, b: &LinkedPairs<'_>| {
                a.row(row).filter(|(_, c)| !b.has(row, c.record)).count()
            };
            came += news(after, before);
            went += news(before, after);
        }
        let unchecked = match self.unchecked {
            0 => String::new(),
            some => format!(
                "decisions: {some} name rows by number alone, without the compared cells (`{COMPARED}`); they are \
                 wrong if a table was sorted\n"
            ),
        };
        unchecked
            + &format!(
                "decisions: {yes} yes, {no} no, {} unsure; {} changed the links: {came} pairs added, {went} removed\n",
                self.pairs.len() - yes - no,
                changing(Word::Yes, false) + changing(Word::No, true)
            )
    }
}

/// Parses the decision in a cell, if any.
fn parse_word(cell: &str, place: RowInFile<'_>) -> anyhow::Result<Option<Word>> {
    match cell.to_lowercase().as_str() {
        "" => Ok(None),
        "yes" => Ok(Some(Word::Yes)),
        "no" => Ok(Some(Word::No)),
        "unsure" => Ok(Some(Word::Unsure)),
        _ => Err(input(format!("{place}: `{DECISION}` must be yes, no, unsure or empty; it is \"{cell}\""))),
    }
}

/// Returns true if a file contains a decision.
///
/// # Errors
/// Returns an error if the file is not a file of decisions.
pub(super) fn any_in(file: &Path) -> anyhow::Result<bool> {
    Ok(Columns::read(file, false)?.decisions.iter().any(|cell| !cell.is_empty()))
}

/// Verbatim columns of a file of decisions, which identifies rows by numbers, by ids, or by both.
struct Columns {
    decisions: Vec<String>,
    numbers: Option<[Vec<String>; 2]>,
    ids: Option<[Vec<String>; 2]>,
    compared: Option<Vec<String>>,
}

impl Columns {
    fn read(file: &Path, by_id: bool) -> anyhow::Result<Self> {
        // A column may be empty until the user has decided.
        let options = Options { keep_empty: true, ..Options::default() };
        let table = fet_tables::read(file, &options).map_err(input)?;
        let has = |names: [&str; 2]| names.iter().all(|name| table.column(name).is_ok());
        let (numbers, ids) = (has(ROWS), by_id && has(IDS));
        let compared = table.column(COMPARED).is_ok();
        if !numbers && !ids {
            let hint = match (has(IDS), by_id) {
                (true, false) => "the file has ids: name their columns in both tables with --id",
                _ => "or primary_id and secondary_id with --id",
            };
            return Err(input(format!(
                "{}: must have the columns primary_row and secondary_row, like the file of a review ({hint})",
                file.display()
            )));
        }
        let used = [DECISION]
            .into_iter()
            .chain(compared.then_some(COMPARED))
            .chain(numbers.then_some(ROWS).into_iter().flatten());
        let used: Vec<String> =
            used.chain(ids.then_some(IDS).into_iter().flatten()).map(String::from).collect();
        let kinds = used.iter().map(|name| (name.clone(), Kind::Text)).collect();
        let table =
            fet_tables::read(file, &Options { kinds, columns: Some(used), ..options }).map_err(input)?;
        let both = |names: [&str; 2]| names.map(|name| texts(&table, name));
        Ok(Self {
            decisions: texts(&table, DECISION),
            numbers: numbers.then(|| both(ROWS)),
            ids: ids.then(|| both(IDS)),
            compared: compared.then(|| texts(&table, COMPARED)),
        })
    }
}

/// Returns a column that was read as text, with missing cells as empty text.
fn texts(table: &Table, name: &str) -> Vec<String> {
    match table.column(name).map(|column| &column.values) {
        Ok(Values::Text(texts)) => texts.iter().map(|cell| cell.unwrap_or_default().to_string()).collect(),
        _ => vec![String::new(); table.rows],
    }
}
