//! Equality of keys for the linkers that link equal keys: the setting, and the compared form of each key.

use fet_core::data::{Comparison, Keys, TextTable, number};
use fet_core::linker::LinkError;
use fet_linkage::text::{normalise, verbatim};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known;

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
    /// Returns the comparison of each column of the primary's keys.
    pub fn columns(self, keys: &TextTable) -> Vec<Comparison> {
        match self {
            Self::Auto => keys.forms().into_iter().map(|form| form.comparison).collect(),
            Self::Verbatim => vec![Comparison::Verbatim; keys.columns()],
            Self::Normal => vec![Comparison::Normal; keys.columns()],
        }
    }

    /// Refuses comparisons of the primary that contradict the common setting.
    pub(crate) fn check(self, said: &[Comparison]) -> Result<(), LinkError> {
        let expected = match self {
            Self::Auto => return Ok(()),
            Self::Verbatim => Comparison::Verbatim,
            Self::Normal => Comparison::Normal,
        };
        if said.iter().all(|said| *said == expected) {
            return Ok(());
        }
        Err(LinkError::Message("it compares keys in another form than `linker.compare` requires".into()))
    }

    /// Returns the data holder's warnings about columns of identifiers that the primary compares as names.
    pub(crate) fn warnings(self, said: &[Comparison], records: &Keys) -> Vec<String> {
        let (Self::Auto, Some(records)) = (self, records.text()) else { return Vec::new() };
        let looks = records.forms().into_iter().map(|form| form.comparison);
        let unlike = |(said, own): (&Comparison, Comparison)| {
            (*said, own) == (Comparison::Normal, Comparison::Verbatim)
        };
        let columns = said.iter().zip(looks).enumerate().filter(|(_, pair)| unlike(*pair));
        let warning = |(column, _)| {
            format!(
                "key column {} contains identifiers here, but is compared without case, accents and punctuation, as the primary's cells suggest. \
                 Different identifiers may count as equal. Set `linker.compare = \"verbatim\"`.",
                column + 1
            )
        };
        columns.map(warning).collect()
    }
}

/// Returns the comparison of each column of text keys by a linker with these settings, or by its inner
/// linker. Returns an empty list for keys that are not texts.
pub fn comparisons(settings: &toml::Table, keys: &Keys) -> Vec<Comparison> {
    fn setting(settings: &toml::Table) -> Option<Compare> {
        match settings.get("compare") {
            Some(value) => value.clone().try_into().ok(),
            None => settings.values().filter_map(toml::Value::as_table).find_map(setting),
        }
    }
    keys.text().map(|keys| setting(settings).unwrap_or_default().columns(keys)).unwrap_or_default()
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
            let known = cells.iter().any(|cell| !cell.is_empty());
            // A form contains no line feed, so rows with different cells never give the same bytes.
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
        assert!(
            equal(&["M\u{fc}ller", "O'Brien"], "M\u{fc}ller", "MULLER"),
            "names are compared in normal form"
        );
        assert!(!equal(&["a1", "-"], "-", "-"), "punctuation alone equals no key");
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
