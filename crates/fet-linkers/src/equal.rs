//! Equality of keys for the linkers that link equal keys: the setting, and the compared form of each key.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fet_core::data::{Comparison, Keys, TextTable, number};
use fet_core::linker::LinkError;
use fet_linkage::text::{normalise, verbatim};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Comparison of text keys for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Determined by the primary's cells of each column: as numbers if all cells are numbers without leading
    /// zeros, unchanged if they look like identifiers (digits, letters with digits, e-mail addresses), and
    /// otherwise in normal form.
    #[default]
    Auto,
    /// Unchanged, except for surrounding white space.
    Verbatim,
    /// In normal form, without case, accents and punctuation.
    Normal,
}

impl Compare {
    /// Returns the comparison of each column of the primary's keys. Cells that count as missing, as `missing` lists them,
    /// decide nothing.
    pub fn columns(self, keys: &TextTable, missing: &[String]) -> Vec<Comparison> {
        match self {
            Self::Auto => known(keys, missing).forms().into_iter().map(|form| form.comparison).collect(),
            Self::Verbatim => vec![Comparison::Verbatim; keys.columns()],
            Self::Normal => vec![Comparison::Normal; keys.columns()],
        }
    }

    /// Refuses comparisons of the primary that contradict the common setting.
    pub(crate) fn check(self, stated: &[Comparison]) -> Result<(), LinkError> {
        let expected = match self {
            Self::Auto => return Ok(()),
            Self::Verbatim => Comparison::Verbatim,
            Self::Normal => Comparison::Normal,
        };
        if stated.iter().all(|comparison| *comparison == expected) {
            return Ok(());
        }
        Err(LinkError::Message("it compares keys in another form than `linker.compare` requires".into()))
    }

    /// Refuses settings of texts for keys that are numbers, which would have no effect.
    pub(crate) fn check_keys(self, keys: &Keys, missing: &[String]) -> Result<(), LinkError> {
        let setting = match keys {
            Keys::Numbers(_) if self != Self::Auto => "compare",
            Keys::Numbers(_) if !missing.is_empty() => "missing",
            _ => return Ok(()),
        };
        Err(LinkError::Setting(format!(
            "`linker.{setting}` applies to keys that are texts, but the keys are numbers: remove it, or set `data.key_kind = \"text\"`"
        )))
    }

    /// Notes for the primary's user: columns of texts that are compared as numbers.
    pub(crate) fn notes(self, keys: &Keys, missing: &[String]) -> Vec<String> {
        let compared = keys.text().map(|keys| self.columns(keys, missing)).unwrap_or_default();
        let numbers = compared.iter().enumerate().filter(|(_, how)| **how == Comparison::Numbers);
        let note = |(column, how): (usize, &Comparison)| {
            format!(
                "key column {} holds texts and is compared {}, because all of its cells are plain numbers; set `linker.compare = \"verbatim\"` if they \
                 are codes",
                column + 1,
                how.description()
            )
        };
        numbers.map(note).collect()
    }

    /// Returns the warnings for the data holder: columns of identifiers that the primary has compared as names, and different cells that the
    /// comparison makes equal.
    pub(crate) fn warnings(self, stated: &[Comparison], records: &Keys, missing: &[String]) -> Vec<String> {
        let (Self::Auto, Some(records)) = (self, records.text()) else { return Vec::new() };
        let apparent = records.forms().into_iter().map(|form| form.comparison);
        let conflicts = |(stated, own): (&Comparison, Comparison)| {
            (*stated, own) == (Comparison::Normal, Comparison::Verbatim)
        };
        let columns = stated.iter().zip(apparent).enumerate().filter(|(_, pair)| conflicts(*pair));
        let warning = |(column, _)| {
            format!(
                "key column {} contains identifiers here, but is compared without case, accents and punctuation, as the primary's cells suggest. \
                 Different identifiers may count as equal. Set `linker.compare = \"verbatim\"`.",
                column + 1
            )
        };
        let merged = merged(&known(records, missing), stated).into_iter().map(|merged| {
            format!(
                "key column {}: {merged}: it is compared {}; set `linker.compare = \"verbatim\"` to compare the cells unchanged",
                merged.column + 1,
                stated[merged.column].description()
            )
        });
        columns.map(warning).chain(merged).collect()
    }
}

/// Different cells of a column that its comparison makes equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The column, from 0.
    pub column: usize,
    /// The number of different cells that are equal to another one.
    pub cells: usize,
    /// Two of them.
    pub example: [String; 2],
}

impl std::fmt::Display for Merged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cells, example: [one, other], .. } = self;
        write!(f, "{cells} different cells equal another one, for example {one:?} and {other:?}")
    }
}

/// Returns different cells that a comparison makes equal, by column. Names have several spellings, so columns in normal form are checked only
/// if they hold single words without digits, which may be codes.
pub fn merged(keys: &TextTable, compared: &[Comparison]) -> Vec<Merged> {
    let of = |(column, how): (usize, &Comparison)| {
        let is_code =
            |cell: &str| !cell.trim().contains(|sign: char| sign.is_whitespace() || sign.is_numeric());
        let may_merge = match how {
            Comparison::Verbatim => false,
            Comparison::Numbers => true,
            Comparison::Normal => keys.column(column).all(is_code),
        };
        let mut forms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for cell in keys.column(column).filter(|_| may_merge) {
            let form = form(cell, *how);
            if !form.is_empty() {
                forms.entry(form).or_default().insert(verbatim(cell));
            }
        }
        let several = || forms.values().filter(|cells| cells.len() > 1);
        let mut first = several().next()?.iter().cloned();
        let example = [first.next()?, first.next()?];
        Some(Merged { column, cells: several().map(BTreeSet::len).sum(), example })
    };
    compared.iter().enumerate().filter_map(of).collect()
}

/// A key marks a missing one if at least 1/SHARE of the records have it, OFTEN times as many as have the usual key.
const SHARE: usize = 50;
const OFTEN: usize = 10;

/// Returns the warnings of the data holder: records that K leaves out, and a key that marks a missing one. `forms` are those of [`contents`].
pub(crate) fn repeated(forms: &[Option<Vec<u8>>], records: &Keys, neighbours: usize) -> Vec<String> {
    let mut found: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for (row, form) in forms.iter().enumerate() {
        if let Some(form) = form {
            found.entry(form).or_insert((0, row)).0 += 1;
        }
    }
    let mut warnings = Vec::new();
    let left_out: usize = found.values().map(|(count, _)| *count).filter(|count| *count > neighbours).sum();
    if left_out > 0 {
        let (have, first) = match neighbours {
            1 => ("record has", "the first".to_string()),
            several => ("records have", format!("the first {several}")),
        };
        warnings.push(format!(
            "{left_out} of {} records have a key that more than {neighbours} {have}: a row of the primary with that key is linked with \
             {first} of them and with none of the others (raise `linker.neighbours`, or keep one record for each key)",
            forms.len()
        ));
    }
    let mut counts: Vec<usize> = found.values().map(|(count, _)| *count).collect();
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
    // The first record decides between keys of one count.
    let most = found.values().max_by_key(|(count, row)| (*count, std::cmp::Reverse(*row)));
    if let Some(&(count, row)) = most
        && count >= OFTEN * usual.max(1)
        && count * SHARE >= forms.len()
    {
        warnings.push(format!(
            "{count} of {} records have the key {}: if it marks a missing key, add it to `linker.missing` or leave the cell empty",
            forms.len(),
            shown(records, row)
        ));
    }
    warnings
}

/// A key, for a message.
fn shown(keys: &Keys, row: usize) -> String {
    let cells: Vec<String> = match keys {
        Keys::Numbers(keys) => keys.row(row).iter().map(f64::to_string).collect(),
        Keys::Text(keys) => {
            keys.row(row).map(|cell| format!("{:?}", cell.chars().take(40).collect::<String>())).collect()
        }
        Keys::Sealed(_) => Vec::new(),
    };
    cells.join(", ")
}

/// Returns the comparison of each column of text keys by a linker with these settings, or by its inner linker; empty for other keys.
pub fn comparisons(settings: &toml::Table, keys: &Keys) -> Vec<Comparison> {
    let columns = |keys| setting::<Compare>(settings, "compare").columns(keys, &missing(settings));
    keys.text().map(columns).unwrap_or_default()
}

/// The cells that count as missing by a linker with these settings, or by one inside it.
pub fn missing(settings: &toml::Table) -> Vec<String> {
    setting(settings, "missing")
}

/// Returns the keys with empty cells instead of cells that count as missing, that is, whose normal form
/// equals that of one of `missing`.
pub fn known<'a>(keys: &'a TextTable, missing: &[String]) -> Cow<'a, TextTable> {
    if missing.is_empty() {
        return Cow::Borrowed(keys);
    }
    let missing: HashSet<String> = missing.iter().map(|cell| normalise(cell)).collect();
    let known = |cell| if missing.contains(&normalise(cell)) { "" } else { cell };
    let table = TextTable::from_cells(keys.columns(), keys.cells().into_iter().map(known));
    Cow::Owned(table.with_forms(keys.given_forms().to_vec()))
}

/// A setting of a linker, or of one inside it.
fn setting<T: serde::de::DeserializeOwned + Default>(settings: &toml::Table, name: &str) -> T {
    fn find<'a>(settings: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
        let inner =
            || settings.values().filter_map(toml::Value::as_table).find_map(|inner| find(inner, name));
        settings.get(name).or_else(inner)
    }
    find(settings, name).and_then(|value| value.clone().try_into().ok()).unwrap_or_default()
}

/// Returns the compared form of each key in order, or `None` for a key without content. Cells whose normal
/// form equals that of one of `missing` count as empty. `compared` gives the comparison of each column of
/// texts. For sealed keys the result is empty.
pub fn contents(keys: &Keys, missing: &[String], compared: &[Comparison]) -> Vec<Option<Vec<u8>>> {
    match keys {
        Keys::Numbers(keys) => (0..keys.rows())
            // Adding zero turns -0 into 0.
            .map(|row| Some(keys.row(row).iter().flat_map(|x| (x + 0.0).to_le_bytes()).collect()))
            .collect(),
        Keys::Text(keys) => of_texts(&known(keys, missing), compared),
        Keys::Sealed(_) => Vec::new(),
    }
}

fn of_texts(keys: &TextTable, compared: &[Comparison]) -> Vec<Option<Vec<u8>>> {
    (0..keys.rows())
        .map(|row| {
            let cells: Vec<String> =
                keys.row(row).zip(compared).map(|(cell, how)| form(cell, *how)).collect();
            let known = cells.iter().all(|cell| !cell.is_empty());
            // No form has a line feed, so that two rows of different cells never become the same bytes.
            known.then(|| cells.join("\n").into_bytes())
        })
        .collect()
}

/// Returns the compared form of a cell, which is empty for a cell without letters and digits.
fn form(cell: &str, comparison: Comparison) -> String {
    let as_it_stands = || verbatim(cell).replace('\\', "\\\\").replace('\n', "\\n");
    match comparison {
        Comparison::Normal => normalise(cell),
        Comparison::Verbatim => as_it_stands(),
        // Adding zero turns -0 into 0.
        Comparison::Numbers => {
            number(cell.trim()).map_or_else(as_it_stands, |number| format!("{}", number + 0.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_identifiers_are_different_keys() {
        let equal = |primary: &[&str], cell: &str, other: &str| {
            let table = |cells: &[&str]| Keys::Text(TextTable::from_cells(1, cells));
            let compared = Compare::Auto.columns(table(primary).text().expect("texts"), &[]);
            let of = |cell: &str| contents(&table(&[cell]), &[], &compared).remove(0);
            of(cell).is_some() && of(cell) == of(other)
        };
        for (primary, same, others) in [
            (
                &["001A0000006Vm9r"][..],
                ["001A0000006Vm9r", " 001A0000006Vm9r\u{a0}"],
                ["001A0000006VM9R", "001A-0000006Vm9r"],
            ),
            (
                &["ann@example.org"],
                ["j.s@example.org", "j.s@example.org "],
                ["j-s@example.org", "J.S@example.org"],
            ),
            (&["0123", "123"], ["0123", "0123"], ["123", "00123"]),
            (&["77", "78.5"], ["77", "77.0"], ["077", "77a"]),
            (&["Mu\u{308}ller 5x", "a1"], ["Mu\u{308}ller5", "M\u{fc}ller5"], ["Muller5", "m\u{fc}ller5"]),
        ] {
            assert!(equal(primary, same[0], same[1]), "{same:?}");
            for other in others {
                assert!(!equal(primary, same[0], other), "{} and {other}", same[0]);
            }
        }
        assert!(
            equal(&["M\u{fc}ller", "O'Brien"], "M\u{fc}ller", "MULLER"),
            "names are compared in normal form"
        );
        assert!(!equal(&["a1", "-"], "-", "-"), "punctuation alone equals no key");
    }

    #[test]
    fn a_key_with_an_empty_cell_equals_nothing() {
        let keys = Keys::Text(TextTable::from_cells(
            2,
            ["Ann", "", "Ann", "1990", "Bob", "-", "", "1990", "x", "n/a"],
        ));
        for how in [Comparison::Normal, Comparison::Verbatim, Comparison::Numbers] {
            let all = contents(&keys, &["N/A".to_string()], &[how; 2]);
            let present: Vec<bool> = all.iter().map(Option::is_some).collect();
            assert_eq!(present, [false, true, false, false, false], "{how:?}");
        }
    }

    #[test]
    fn missing_cells_decide_no_comparison() {
        let keys = TextTable::from_cells(1, ["77", "78", "n/a"]);
        assert_eq!(Compare::Auto.columns(&keys, &[]), [Comparison::Verbatim]);
        assert_eq!(Compare::Auto.columns(&keys, &["N/A".to_string()]), [Comparison::Numbers]);
    }

    #[test]
    fn cells_with_line_feeds_stay_distinct() {
        let keys = Keys::Text(TextTable::from_cells(2, ["a1\nb1", "c1", "a1", "b1\nc1", "a1\\nb1", "c1"]));
        let all = contents(&keys, &[], &[Comparison::Verbatim; 2]);
        assert!(all[0] != all[1] && all[0] != all[2], "{all:?}");
    }

    #[test]
    fn the_settings_of_an_inner_linker_are_found() {
        let keys = Keys::Text(TextTable::from_cells(1, ["Ann"]));
        let settings: toml::Table =
            toml::from_str("kind = 'noisy'\ninner = { kind = 'exact', compare = 'verbatim' }").expect("TOML");
        assert_eq!(comparisons(&settings, &keys), [Comparison::Verbatim]);
        assert_eq!(comparisons(&toml::Table::new(), &keys), [Comparison::Normal]);
    }
}
