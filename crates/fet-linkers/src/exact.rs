//! `exact`: links records with equal plain keys.
//!
//! Numbers are compared as numbers and texts as [`Compare`] specifies: identifiers unchanged, names in normal
//! form. A key without content equals no key. A linked record has similarity 1. A primary record with fewer
//! than K equal keys gets random records drawn by the seed, with similarity 0. Models need K neighbours, and
//! a random record represents "no link" rather than a match.

use std::collections::{HashMap, HashSet};

use fet_linkage::neighbours::Neighbours;
use rand::Rng;
use rand::seq::index;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::equal::{Compare, contents, repeated};
use crate::nearest::CLEAR;
use crate::{links, wire};
use fet_core::data::{KeyKind, Keys};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, check_apart, check_either};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};

/// Settings of `exact`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExactSettings {
    /// Number K of records that are linked to each primary record. Records without an equal key are drawn at
    /// random.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Comparison of text keys: unchanged, in normal form, or as the primary's cells of each column
    /// determine.
    pub compare: Compare,
}

impl Default for ExactSettings {
    fn default() -> Self {
        Self { neighbours: 1, pad: false, missing: Vec::new(), compare: Compare::Auto }
    }
}

impl Recipe<dyn Linker> for ExactSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Exact(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<ExactSettings>("exact", "records with an equal key")
}

struct Exact(ExactSettings);

impl Linker for Exact {
    fn about(&self) -> About {
        About { floor: Some(0.0), equality: true, ..About::new(self.0.neighbours, KeyKind::Either, CLEAR) }
    }

    fn notes(&self, queries: &Keys) -> Vec<String> {
        self.0.compare.notes(queries, &self.0.missing)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Equal { settings: self.0.clone(), seed, warnings: Vec::new() })
    }
}

struct Equal {
    settings: ExactSettings,
    seed: u64,
    warnings: Vec<String>,
}

impl DataHolder for Equal {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let LinkTask { queries, records, .. } = *task;
        let ExactSettings { neighbours, pad, ref missing, compare } = self.settings;
        wire::in_the_clear(queries)?;
        check_either(queries, records, neighbours, pad)?;
        compare.check_keys(queries, missing)?;
        check_apart(queries)?;
        check_apart(records).map_err(LinkError::of_own_table)?;
        let compared = queries.text().map(|keys| compare.columns(keys, missing)).unwrap_or_default();
        self.warnings.extend(compare.warnings(&compared, records, missing));
        let keys = contents(records, missing, &compared);
        self.warnings.extend(repeated(&keys, records, neighbours));
        let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
        for (record, key) in keys.into_iter().enumerate() {
            if let Some(key) = key {
                known.entry(key).or_default().push(record as u32);
            }
        }
        let equal = contents(queries, missing, &compared)
            .into_iter()
            .map(|key| key.and_then(|key| known.get(&key)).map_or(&[][..], Vec::as_slice));
        let mut rng = filling(self.seed, task);
        let found = filled(equal, neighbours.min(records.rows()), records.rows(), &mut rng);
        (task.progress)(queries.rows());
        Ok(links(neighbours, found))
    }

    fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// Returns the random stream of [`filled`]. New rows use another stream, so that they do not get the random
/// records of the run's rows at the same places.
pub(super) fn filling(seed: u64, task: &LinkTask<'_>) -> impl Rng + use<> {
    stream(seed, 0, Purpose::Linking, if task.new_rows { 3 } else { 1 })
}

/// Returns the first `take` of the `equal` records of each query with similarity 1. Random other records,
/// drawn with [`filling`], fill the remaining places with similarity 0.
pub(super) fn filled<'a>(
    equal: impl Iterator<Item = &'a [u32]>,
    take: usize,
    records: usize,
    rng: &mut impl Rng,
) -> Neighbours {
    let mut found = Neighbours { take, indices: Vec::new(), scores: Vec::new() };
    for equal in equal {
        let kept = &equal[..equal.len().min(take)];
        found.indices.extend(kept);
        found.scores.resize(found.indices.len(), 1.0);
        let missing = take - kept.len();
        if missing > 0 {
            let taken: HashSet<usize> = kept.iter().map(|&record| record as usize).collect();
            let drawn = index::sample(rng, records, (missing + taken.len()).min(records));
            let others = drawn.into_iter().filter(|record| !taken.contains(record)).take(missing);
            found.indices.extend(others.map(|record| record as u32));
            found.scores.resize(found.indices.len(), 0.0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::{Matrix, TextTable};

    #[test]
    fn equal_keys_are_found_and_empty_ones_equal_nothing() {
        let text =
            |cells: &[&str]| Keys::Text(TextTable::new(1, cells.iter().map(|c| c.to_string()).collect()));
        let link = |queries: &Keys, records: &Keys| {
            let linker = Exact(ExactSettings { neighbours: 2, ..ExactSettings::default() });
            fet_core::linker::link(&linker, queries, records, 5, &|_| ()).expect("linkable")
        };
        let links = link(&text(&["Müller", "", "smith"]), &text(&["", "muller", "x", "MULLER"]));
        assert_eq!((links.row(0), links.similarities(0)), ([1, 3].as_slice(), Some([1.0, 1.0].as_slice())));
        assert_eq!(links.similarities(1), Some([0.0, 0.0].as_slice()), "empty is not equal to empty");
        assert_eq!(links.similarities(2), Some([0.0, 0.0].as_slice()));
        let numbers = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
        let links = link(&numbers(&[0.0]), &numbers(&[1.0, -0.0, 2.0]));
        assert_eq!((links.row(0)[0], links.similarities(0)), (1, Some([1.0, 0.0].as_slice())));
    }

    /// Records for rows without a link are drawn differently for new rows and for the run's rows.
    #[test]
    fn new_rows_without_a_link_draw_other_records() {
        let keys = |from: usize| Keys::from(Matrix::new(1, (from..from + 500).map(|x| x as f64).collect()));
        let (queries, records) = (keys(1000), keys(0));
        let links = |new_rows| {
            let task = LinkTask { new_rows, ..LinkTask::new(&queries, &records) };
            ExactSettings::default()
                .build(&())
                .expect("a linker")
                .data_holder(1)
                .link(&task)
                .expect("linkable")
        };
        let (run, new) = (links(false), links(true));
        let same = (0..500).filter(|&row| run.row(row)[0] == new.row(row)[0]).count();
        // Binomial(500, 1/500) exceeds 12 with probability below 1e-9 (α).
        assert!(same <= 12, "{same} rows");
    }

    /// Links by `exact` and `psi`, which must give the same warnings about the records.
    fn warned(settings: &str, queries: &Keys, records: &Keys) -> String {
        let mut all = ["exact", "psi"].map(|kind| {
            let settings = format!("kind = '{kind}'\n{settings}");
            let table = toml::from_str(&settings).expect("TOML");
            let slot = fet_core::registry::Slot::<dyn Linker>::from_table(table).expect("settings");
            let linker = slot.build(&()).expect("a linker");
            let (mut querier, mut data_holder) = (linker.querier(5), linker.data_holder(5));
            fet_core::linker::link_between(querier.as_mut(), data_holder.as_mut(), queries, records, &|_| ())
                .expect("linkable");
            data_holder.warnings().join("\n")
        });
        assert_eq!(all[0], all[1]);
        std::mem::take(&mut all[0])
    }

    fn cells(cells: &[&str]) -> Keys {
        Keys::Text(TextTable::from_cells(1, cells))
    }

    #[test]
    fn warns_of_equal_records_that_k_leaves_out() {
        let records = cells(&["a1", "b2", "a1", "c3", "", "", "b2", "a1"]);
        let warning = warned("neighbours = 1", &cells(&["a1"]), &records);
        assert!(warning.contains("5 of 8 records have a key that more than 1 record has"), "{warning}");
        assert!(warning.contains("`linker.neighbours`"), "{warning}");
        let warning = warned("neighbours = 2", &cells(&["a1"]), &records);
        assert!(warning.contains("3 of 8 records have a key that more than 2 records have"), "{warning}");
        assert_eq!(warned("neighbours = 3", &cells(&["a1"]), &records), "");
        let numbers = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
        let warning = warned("neighbours = 1", &numbers(&[1.0]), &numbers(&[2.0, 1.0, 2.0]));
        assert!(warning.contains("2 of 3 records"), "{warning}");
    }

    #[test]
    fn warns_of_different_cells_that_a_comparison_makes_equal() {
        let (names, codes) = (cells(&["Ann", "Bob"]), cells(&["aBc", "AbC", "O'b", "ob", "ob", "only"]));
        let warning = warned("neighbours = 3", &names, &codes);
        assert!(warning.contains("key column 1: 4 different cells equal another one"), "{warning}");
        assert!(warning.contains("\"AbC\" and \"aBc\""), "{warning}");
        assert_eq!(warned("neighbours = 3\ncompare = 'verbatim'", &names, &codes), "");
        // People write names in several ways.
        assert_eq!(warned("neighbours = 3", &names, &cells(&["Ann Lee", "ann lee", "Bob"])), "");
        let warning = warned("neighbours = 3", &cells(&["77", "78"]), &cells(&["77", "77.0", "1E2", "100"]));
        assert!(warning.contains("key column 1: 2 different cells equal another one"), "{warning}");
        assert!(warning.contains("as numbers") && warning.contains("\"77\" and \"77.0\""), "{warning}");
    }

    #[test]
    fn warns_of_one_key_that_many_records_share() {
        let mut records: Vec<String> = (0..300).map(|row| format!("a{row}")).collect();
        records.extend(vec!["NA1".to_string(); 12]);
        let keys = |records: &[String]| Keys::Text(TextTable::from_cells(1, records));
        let warning = warned("neighbours = 20", &keys(&records[..3]), &keys(&records));
        assert!(
            warning.contains("12 of 312 records have the key \"NA1\"")
                && warning.contains("`linker.missing`"),
            "{warning}"
        );
        // If every key is frequent, no key marks a missing one.
        let shared: Vec<String> = (0..300).map(|row| format!("a{}", row % 20)).collect();
        assert_eq!(warned("neighbours = 20", &keys(&records[..3]), &keys(&shared)), "");
    }

    #[test]
    fn notes_text_keys_that_are_compared_as_numbers() {
        for linker in [
            ExactSettings::default().build(&()).expect("a linker"),
            crate::PsiSettings::default().build(&()).expect("a linker"),
        ] {
            let notes = linker.notes(&cells(&["77", "78"])).join("\n");
            assert!(notes.contains("key column 1 holds texts and is compared as numbers"), "{notes}");
            assert!(linker.notes(&cells(&["a1", "b2"])).is_empty());
            assert!(linker.notes(&Keys::from(Matrix::new(1, vec![77.0]))).is_empty());
        }
    }

    /// By `exact` and `psi`.
    #[test]
    fn refuses_settings_of_texts_for_numbers() {
        let numbers = Keys::from(Matrix::new(1, vec![1.0, 2.0]));
        let settings = |missing: &[&str], compare| ExactSettings {
            missing: missing.iter().map(ToString::to_string).collect(),
            compare,
            ..ExactSettings::default()
        };
        for (setting, ExactSettings { missing, compare, .. }) in [
            ("missing", settings(&["2"], Compare::Auto)),
            ("compare", settings(&[], Compare::Verbatim)),
            ("compare", settings(&[], Compare::Normal)),
        ] {
            let exact = ExactSettings { missing: missing.clone(), compare, ..ExactSettings::default() };
            let psi = crate::PsiSettings { missing, compare, ..crate::PsiSettings::default() };
            for linker in [exact.build(&()), psi.build(&())].map(|linker| linker.expect("a linker")) {
                let refused = fet_core::linker::link(&*linker, &numbers, &numbers, 5, &|_| ());
                let message = refused.expect_err("refused").to_string();
                assert!(message.contains(&format!("`linker.{setting}`")), "{message}");
            }
        }
    }

    /// By `exact` and `psi`, on either side.
    #[test]
    fn refuses_numbers_that_doubles_cannot_distinguish() {
        let plugins = [
            ExactSettings::default().build(&()).expect("a linker"),
            crate::PsiSettings::default().build(&()).expect("a linker"),
        ];
        let numbers = |value: f64| Keys::from(Matrix::new(1, vec![1.0, value]));
        // 2^53 - 1, and the number that represents 2^53 + 1.
        let (largest, beyond) = (numbers(9_007_199_254_740_991.0), numbers(-9_007_199_254_740_993.0));
        for linker in plugins {
            let link = |queries, records| fet_core::linker::link(&*linker, queries, records, 5, &|_| ());
            assert_eq!(link(&largest, &largest).expect("linkable").row(1)[0], 1);
            let refused =
                [link(&beyond, &largest), link(&largest, &beyond)].map(|links| links.expect_err("refused"));
            assert!(matches!(refused[0], LinkError::Value { row: 1, .. }), "{}", refused[0]);
            assert!(matches!(refused[1], LinkError::Own { row: 1, .. }), "{}", refused[1]);
        }
    }
}
