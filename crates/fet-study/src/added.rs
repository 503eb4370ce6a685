//! Contribution of the other parties: the difference between a variant and its control variant.
//!
//! The control variant is the same method without any data from other parties. The difference from the
//! study's base shows which variant is better, but not why: a method may win only because it makes better use
//! of the primary's own record. A file names a variant's control variant (`control = "FeT alone"`), and this
//! module compares the two over seeds.

use super::grid::StudyGrid;
use super::paired::TestedCells;
use super::row::{ComparisonVerdict, Row};
use super::statistics::paired::{PairedComparison, correct};
use fet_eval::Metric;

/// Contribution of the other parties to one variant.
#[derive(Debug)]
pub(crate) struct Added {
    /// Index of the variant in the grid.
    pub(crate) index: usize,
    /// Index of its control variant in the grid.
    pub(crate) control: usize,
    /// Variant minus control variant, over the seeds that both have.
    pub(crate) comparison: PairedComparison,
    /// Outcome of the test.
    pub(crate) verdict: ComparisonVerdict,
}

impl Added {
    /// Compares each variant with its control variant, if the variant has one and both have a seed in common.
    /// Variants that differ only in the attack are one run, which is compared once. The p-values are corrected for
    /// the number of comparisons (Holm).
    pub(crate) fn compare_with_controls(
        grid: &StudyGrid,
        rows: &[Row<'_>],
        runs: &[usize],
        metric: Option<Metric>,
        tested: &mut TestedCells,
    ) -> Vec<Self> {
        let Some(metric) = metric else { return Vec::new() };
        let compare = |index: usize| {
            let control = grid.control_of(index).map(|control| runs[control])?;
            if runs[index] != index || control == index {
                return None;
            }
            let (own, other) = (&rows[index], &rows[control]);
            let comparison = PairedComparison::from_pairs(&own.pairs(other), own.correlated(), || {
                tested.compare(own, other, metric)
            })?;
            Some((index, control, comparison))
        };
        let mut found: Vec<_> = (0..rows.len()).filter_map(compare).collect();
        correct(found.iter_mut().map(|(_, _, comparison)| comparison));
        let added = found.into_iter().map(|(index, control, comparison)| {
            let verdict = ComparisonVerdict::new(metric, Some(&comparison));
            Self { index, control, comparison, verdict }
        });
        added.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Scope;
    use super::super::results::tests::{RMSE, finished};
    use super::super::summary::StudySummary;
    use super::super::summary::tests::pair;
    use super::*;

    #[test]
    fn compares_a_variant_with_its_control_and_not_with_the_base() {
        let text = "name = 'x'\n[ablation]\nseeds = [0, 1, 2]\nvariants = [{ name = 'Trees' }, { name = 'FeT', control = 'Alone' }, { name = 'Alone' }]";
        let grid = StudyGrid::parse(text, &Scope::default()).expect("a grid");
        let values = [[26.0, 27.0, 28.0], [24.0, 25.1, 25.9], [24.5, 25.5, 26.5]];
        let each = values.iter().enumerate().flat_map(|(variant, seeds)| {
            seeds.iter().enumerate().map(move |(seed, test)| finished(variant, seed as u64, RMSE, *test))
        });
        let (cells, reports): (Vec<_>, Vec<_>) = each.unzip();
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        let [added] = summary.added.as_slice() else { panic!("{:?}", summary.added) };
        assert_eq!((added.index, added.control, added.comparison.n), (1, 2, 3));
        assert!((added.comparison.difference + 0.5).abs() < 1e-9, "{added:?}");
        assert_eq!(added.verdict, ComparisonVerdict::Better);
        // Holm's correction leaves the p-value of a single comparison unchanged.
        let test = added.comparison.test.as_ref().expect("three seeds");
        assert_eq!(test.corrected, test.p);
    }

    #[test]
    fn refuses_a_variant_as_its_own_control() {
        let parse = |control: &str| {
            let text =
                format!("[ablation]\nseeds = [0]\nvariants = [{{ name = 'A', control = '{control}' }}]");
            StudyGrid::parse(&text, &Scope::default()).expect_err("refused").to_string()
        };
        assert!(parse("B").contains("unknown variant \"B\""), "{}", parse("B"));
        assert!(parse("A").contains("itself"), "{}", parse("A"));
    }
}
