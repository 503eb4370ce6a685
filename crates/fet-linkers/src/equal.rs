//! Equality of keys, for the linkers that link equal keys: the setting, and the form in which each key is compared.

use fet_core::data::{Comparison, Keys, TextTable, number};
use fet_core::linker::LinkError;
use fet_linkage::text::{normalise, verbatim};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known;

/// How text keys are compared for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// As the primary's cells of a column suggest: as numbers where all are numbers without a leading zero, as they stand where they look like
    /// identifiers (digits, letters with digits, addresses of e-mail), else in their normal form.
    #[default]
    Auto,
    /// As they stand, without the white space around them.
    Verbatim,
    /// In their normal form, without case, accents and punctuation.
    Normal,
}

impl Compare {
    /// The comparison of each column of the primary's keys.
    pub fn columns(self, keys: &TextTable) -> Vec<Comparison> {
        match self {
            Self::Auto => keys.forms().into_iter().map(|form| form.comparison).collect(),
            Self::Verbatim => vec![Comparison::Verbatim; keys.columns()],
            Self::Normal => vec![Comparison::Normal; keys.columns()],
        }
    }

    /// Refuses what the primary says where the common setting says something else.
    pub(crate) fn check(self, said: &[Comparison]) -> Result<(), LinkError> {
        let expected = match self {
            Self::Auto => return Ok(()),
            Self::Verbatim => Comparison::Verbatim,
            Self::Normal => Comparison::Normal,
        };
        if said.iter().all(|said| *said == expected) {
            return Ok(());
        }
        Err(LinkError::Message("it compares keys in another form than `linker.compare` says".into()))
    }

    /// Warnings of the records' owner: columns of identifiers that the primary has compared as names.
    pub(crate) fn warnings(self, said: &[Comparison], records: &Keys) -> Vec<String> {
        let (Self::Auto, Some(records)) = (self, records.text()) else { return Vec::new() };
        let looks = records.forms().into_iter().map(|form| form.comparison);
        let unlike = |(said, own): (&Comparison, Comparison)| {
            (*said, own) == (Comparison::Normal, Comparison::Verbatim)
        };
        let columns = said.iter().zip(looks).enumerate().filter(|(_, pair)| unlike(*pair));
        let warning = |(column, _)| {
            format!(
                "key column {} is compared without case, accents and punctuation, as the primary's cells suggest, and holds identifiers here: \
                 different ones may count as equal (`linker.compare = \"verbatim\"`)",
                column + 1
            )
        };
        columns.map(warning).collect()
    }
}

/// The comparison of each column of text keys by a linker with these settings, or by one inside it; nothing for keys that are no texts.
pub fn comparisons(settings: &toml::Table, keys: &Keys) -> Vec<Comparison> {
    fn setting(settings: &toml::Table) -> Option<Compare> {
        match settings.get("compare") {
            Some(value) => value.clone().try_into().ok(),
            None => settings.values().filter_map(toml::Value::as_table).find_map(setting),
        }
    }
    keys.text().map(|keys| setting(settings).unwrap_or_default().columns(keys)).unwrap_or_default()
}

/// The form in which each key is compared, in order; nothing for a key without content. Cells whose normal form is that of
/// one of `missing` are empty. `compared` names the comparison of each column of texts. Sealed keys have no form.
pub fn contents(keys: &Keys, missing: &[String], compared: &[Comparison]) -> Vec<Option<Vec<u8>>> {
    match keys {
        Keys::Numbers(keys) => (0..keys.rows())
            // Adding zero makes the two zeros one.
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
            let known = cells.iter().any(|cell| !cell.is_empty());
            // No form has a line feed, so that two rows of different cells never become the same bytes.
            known.then(|| cells.join("\n").into_bytes())
        })
        .collect()
}

/// A cell in the form in which it is compared; empty for a cell without letters and digits.
fn form(cell: &str, comparison: Comparison) -> String {
    let as_it_stands = || verbatim(cell).replace('\\', "\\\\").replace('\n', "\\n");
    match comparison {
        Comparison::Normal => normalise(cell),
        Comparison::Verbatim => as_it_stands(),
        // Adding zero makes the two zeros one.
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
            let compared = Compare::Auto.columns(table(primary).text().expect("texts"));
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
        assert!(equal(&["M\u{fc}ller", "O'Brien"], "M\u{fc}ller", "MULLER"), "names keep their normal form");
        assert!(!equal(&["a1", "-"], "-", "-"), "a sign alone equals nothing");
    }

    #[test]
    fn cells_with_line_feeds_stay_apart() {
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
