//! Summary of a study, independent of the output format: one row per variant, compared with its base, the
//! failures, and notes for the reader.
//!
//! The numbers are not rounded; `write` rounds them.

use std::collections::BTreeMap;
use std::collections::HashMap;

use fet_eval::Metric;
use fet_eval::records::{AttackRecord, ReleaseRecord};

use super::added::Added;
use super::cell::Cell;
use super::composed::Composed;
use super::defences::{Defences, runs};
use super::failure::CellFailure;
use super::grid::StudyGrid;
use super::paired::TestedCells;
use super::report::{epsilon, label_epsilon};
use super::results::FinishedCell;
use super::row::{ComparisonVerdict, Row};
use super::statistics::paired::{PairedComparison, correct};
use super::statistics::power::{MOST, POWER};
use super::statistics::{CONFIDENCE, FEWEST, half_width, mean, median, standard_deviation};

/// The summary of a study.
#[derive(Debug)]
pub(crate) struct StudySummary<'a> {
    /// Grid of the study.
    pub(crate) grid: &'a StudyGrid,
    /// All cells.
    pub(crate) cells: &'a [Cell],
    /// Cells that are done.
    pub(crate) results: &'a [FinishedCell<'a>],
    /// Metric of all results; `None` if they have different metrics and cannot be compared.
    pub(crate) metric: Option<Metric>,
    /// One row for each variant, in the order of the grid.
    pub(crate) rows: Vec<Row<'a>>,
    /// Index of the row that represents the run of each row. Variants that differ only in the attack are one
    /// run.
    pub(crate) runs: Vec<usize>,
    /// Contributions of the other parties, for the variants that have a control variant.
    pub(crate) added: Vec<Added>,
    /// The variants grouped as defences; `None` if no attack has a result.
    pub(crate) defences: Option<Defences>,
    /// Cells that failed.
    pub(crate) failures: Vec<(&'a Cell, CellFailure)>,
    /// Notes for the reader.
    pub(crate) notes: Vec<String>,
}

impl<'a> StudySummary<'a> {
    /// Summarises the results of a grid.
    pub(crate) fn new(grid: &'a StudyGrid, cells: &'a [Cell], results: &'a [FinishedCell<'a>]) -> Self {
        let first = results.first().map(|result| result.report.metric);
        let metric = first.filter(|first| results.iter().all(|result| result.report.metric == *first));
        let mut by_variant: HashMap<usize, Vec<&FinishedCell<'_>>> = HashMap::new();
        for result in results {
            by_variant.entry(result.cell.index).or_default().push(result);
        }
        let row = |index: usize| {
            let results = by_variant.remove(&index).unwrap_or_default();
            let tests = results.iter().map(|result| result.report.best.test).collect();
            let (variant, base) = (&grid.variants[index], grid.base_of(index));
            Row { variant, results, tests, base, comparison: None, verdict: ComparisonVerdict::Alone }
        };
        let mut rows: Vec<Row<'_>> = (0..grid.variants.len()).map(row).collect();
        let runs = runs(cells, &rows);
        let mut tested = TestedCells::default();
        let compare = |(index, row): (usize, &Row<'_>)| {
            let metric = metric?;
            // Each run is compared once, and never with itself.
            let base = row.base.filter(|base| runs[index] == index && runs[*base] != index)?;
            // The row that represents the base's run has the most seeds.
            let base = &rows[runs[base]];
            PairedComparison::from_pairs(&row.pairs(base), row.correlated(), || {
                tested.compare(row, base, metric)
            })
        };
        let mut comparisons: Vec<Option<PairedComparison>> = rows.iter().enumerate().map(compare).collect();
        let asked: Vec<bool> = (0..rows.len()).map(|index| grid.asks_about(index)).collect();
        let family = comparisons.iter_mut().zip(&asked).filter(|(_, asked)| **asked);
        correct(family.filter_map(|(comparison, _)| comparison.as_mut()));
        for ((row, comparison), asked) in rows.iter_mut().zip(comparisons).zip(asked) {
            row.verdict = match metric {
                Some(_) if comparison.is_some() && !asked => ComparisonVerdict::NotAsked,
                Some(metric) => ComparisonVerdict::new(metric, comparison.as_ref()),
                None => ComparisonVerdict::Alone,
            };
            row.comparison = comparison;
        }
        let done: std::collections::HashSet<_> = results.iter().map(|result| &result.cell.folder).collect();
        let undone = cells.iter().filter(|cell| !done.contains(&cell.folder));
        let failures = undone.filter_map(|cell| Some((cell, CellFailure::read(cell)?))).collect();
        let defences = Defences::from_rows(grid, &rows, &runs, metric);
        let added = Added::compare_with_controls(grid, &rows, &runs, metric, &mut tested);
        let mut summary =
            Self { grid, cells, results, metric, rows, runs, added, defences, failures, notes: Vec::new() };
        summary.notes = summary.notes();
        summary
    }

    /// Returns the largest [`Row::correlated`] of all rows.
    pub(crate) fn correlated(&self) -> f64 {
        self.rows.iter().map(Row::correlated).fold(0.0, f64::max)
    }

    /// Returns the number of tested comparisons.
    pub(crate) fn tested(&self) -> usize {
        self.rows.iter().filter(|row| row.test().is_some()).count()
    }

    /// Returns true if any row has a comparison.
    pub(crate) fn compares(&self) -> bool {
        self.rows.iter().any(|row| row.comparison.is_some())
    }

    /// Returns one row for each run, with its name. Without attacks this is every row.
    pub(crate) fn distinct(&self) -> Vec<(String, &Row<'a>)> {
        let own = self.rows.iter().enumerate().filter(|(index, _)| self.runs[*index] == *index);
        own.map(|(_, row)| (row.variant.run(), row)).collect()
    }

    /// Returns true if any result has a bounded privacy loss.
    pub(crate) fn protects(&self) -> bool {
        self.rows.iter().filter_map(Row::epsilon).any(f64::is_finite)
    }

    /// Returns true if any result has a bounded privacy loss of the labels.
    pub(crate) fn protects_labels(&self) -> bool {
        self.rows.iter().filter_map(Row::label_epsilon).any(f64::is_finite)
    }

    /// Returns the δ of all bounded privacy losses if they are equal.
    pub(crate) fn delta(&self) -> Option<f64> {
        let all = self.results.iter().filter_map(|result| result.report.privacy.as_ref());
        let mut bounded = all.filter(|privacy| epsilon(privacy).is_finite()).map(|privacy| privacy.delta);
        let first = bounded.next()?;
        bounded.all(|delta| delta == first).then_some(first)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(profile) = &self.grid.profile {
            notes.push(format!(
                "Profile \"{profile}\": a smaller form of the study. Do not compare its figures with those of the full study."
            ));
        }
        let (done, all, failed) = (self.results.len(), self.cells.len(), self.failures.len());
        if done < all {
            notes.push(format!(
                "{done} of {all} cells are done, {failed} failed. The table covers only the finished cells."
            ));
        }
        if self.defences.is_some() {
            notes.push(
                "Leakage: success of an attack, from 0 (the attacker's success without the run) to 1 (complete success)."
                    .to_string(),
            );
        }
        if self.defences.is_some() && self.compares() {
            notes.push(
                "Variants that differ only in the attack are one run, which is compared once.".to_string(),
            );
        }
        let mut bases: Vec<usize> =
            self.rows.iter().filter(|row| row.comparison.is_some()).filter_map(|row| row.base).collect();
        bases.dedup();
        if bases.len() > 1 {
            notes.push(
                "Each variant is compared with the base at the same values of the axes. The base itself is compared with \
                 its first values."
                    .to_string(),
            );
        }
        let few = self.rows.iter().filter(|row| row.verdict == ComparisonVerdict::Untested).count();
        if few > 0 {
            notes.push(format!(
                "Fewer than {FEWEST} {}: there is no test, so differences may be due to chance ({few} of them); `--seeds` adds \
                 seeds.",
                self.grid.unit()
            ));
        }
        if self.grid.folds > 0 {
            notes.push(format!(
                "Cross-validation: every variant ran on {} folds of the rows for each seed, and each fold counts as a repetition. Folds \
                 share training rows, so p and intervals are those of the corrected resampled t-test (Nadeau and Bengio 2003). The \
                 correction is approximate: no unbiased estimate of the variance over folds exists (Bengio and Grandvalet 2004).",
                self.grid.folds
            ));
        }
        let tested = self.tested();
        if tested > 0 {
            let level = 1.0 - CONFIDENCE;
            notes.push(format!(
                "Bold, or * in plain text: a difference from the base by the {} over {}, p below {level:.2} after Holm's \
                 correction for {tested} comparison{}. Other differences are not significant, which does not mean that the variants are equal.",
                if self.grid.folds > 0 { "corrected t-test" } else { "paired t-test" },
                self.grid.unit(),
                if tested == 1 { "" } else { "s" }
            ));
        }
        if let Some(metric) = self.metric {
            let with = |verdict: fn(ComparisonVerdict) -> bool| -> Vec<(String, &PairedComparison)> {
                let rows = self.rows.iter().filter(|row| verdict(row.verdict));
                rows.filter_map(|row| Some((row.variant.run(), row.comparison.as_ref()?))).collect()
            };
            notes.extend(reversible_note(self.grid.unit(), &with(ComparisonVerdict::differs)));
            let open = with(|verdict| verdict == ComparisonVerdict::NotShown);
            notes.extend(power_note("Differences from the base", metric, &open));
        }
        notes.extend(few_rows(self.results));
        if self.rows.iter().any(|row| row.verdict == ComparisonVerdict::NotAsked) {
            notes.push(
                "No p: a control variant, or a variant whose control variant is the base. Contributions are a separate family of \
                 comparisons."
                    .to_string(),
            );
        }
        if self.rows.iter().any(|row| row.base.is_some_and(|base| !share_rows(row, &self.rows[base]))) {
            notes.push(
                "Some variants and their bases were run on different rows. Their pairs share only the seed, so their \
                 tests are weaker than the other tests."
                    .to_string(),
            );
        }
        let mut commits = BTreeMap::new();
        // The version of another program is a part of its cells' identity.
        let of_fet = self.results.iter().filter(|result| result.cell.identity.program.is_none());
        for FinishedCell { report, .. } in of_fet {
            *commits.entry(report.program.commit.as_str()).or_insert(0) += 1;
        }
        if commits.len() > 1 {
            let parts: Vec<String> = commits
                .iter()
                .map(|(commit, cells)| format!("{cells} by {}", commit.get(..12).unwrap_or(commit)))
                .collect();
            let parts = parts.join(", ");
            notes.push(format!(
                "Different commits of `fet` with the same version of results computed the cells ({parts})."
            ));
        }
        let mut composed = Composed::default();
        self.results.iter().for_each(|result| composed.add(&result.report));
        notes.extend(composed.warning());
        let all: Vec<&str> =
            self.results.iter().flat_map(|result| &result.report.warnings).map(String::as_str).collect();
        notes.extend(
            without_repetition(&all).into_iter().map(|warning| format!("Warning about the data: {warning}.")),
        );
        notes
    }
}

/// Returns one of the warnings that differ in nothing but numbers, in the order of their texts, with the number of the others.
fn without_repetition(warnings: &[&str]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for &warning in warnings {
        let text = warning
            .trim_end_matches('.')
            .chars()
            .filter(|c| !c.is_ascii_digit() && !"-.".contains(*c))
            .collect();
        alike.entry(text).or_default().push(warning.trim_end_matches('.'));
    }
    let one = |mut all: Vec<&str>| {
        all.sort_unstable();
        all.dedup();
        match all.len() {
            1 => all[0].to_string(),
            count => format!("{} ({} more with other numbers)", all[0], count - 1),
        }
    };
    alike.into_values().map(one).collect()
}

impl Row<'_> {
    /// Returns the mean of the test metric, or NaN without results.
    pub(crate) fn mean(&self) -> f64 {
        mean(&self.tests)
    }

    /// Returns the standard deviation of the test metric over seeds.
    pub(crate) fn deviation(&self) -> Option<f64> {
        standard_deviation(&self.tests)
    }

    /// Returns half the width of the mean's 95 % interval.
    pub(crate) fn half_width(&self) -> Option<f64> {
        half_width(&self.tests, self.correlated())
    }

    /// Returns the test against the base, if the study asks about the variant.
    pub(crate) fn test(&self) -> Option<&super::statistics::paired::Test> {
        if self.verdict == ComparisonVerdict::NotAsked {
            return None;
        }
        self.comparison.as_ref()?.test.as_ref()
    }

    /// Returns true if the test shows a difference.
    pub(crate) fn differs(&self) -> bool {
        self.verdict.differs()
    }

    /// Returns the largest ε of the row's cells, infinity if one of them is unbounded, or `None` if no
    /// secondary took part.
    pub(crate) fn epsilon(&self) -> Option<f64> {
        let all = self.results.iter().filter_map(|result| result.report.privacy.as_ref()).map(epsilon);
        let releases = self.results.iter().filter_map(|result| result.report.release.as_ref());
        all.chain(releases.map(ReleaseRecord::epsilon)).max_by(f64::total_cmp)
    }

    /// Returns the largest ε for one training label of the primary, with the same conventions as
    /// [`Row::epsilon`].
    pub(crate) fn label_epsilon(&self) -> Option<f64> {
        let all = self.results.iter().filter_map(|result| result.report.labels.as_ref());
        all.map(label_epsilon).max_by(f64::total_cmp)
    }

    /// Returns the leakage of each cell that has an attack.
    pub(crate) fn leakage(&self) -> Vec<f64> {
        let attacks = self.results.iter().filter_map(|result| result.report.attack.as_ref());
        attacks.map(AttackRecord::leakage).collect()
    }

    /// Returns the mean of `value` over cells, or NaN without cells.
    pub(crate) fn mean_of(&self, value: impl Fn(&FinishedCell<'_>) -> f64) -> f64 {
        mean(&self.results.iter().map(|result| value(result)).collect::<Vec<_>>())
    }

    /// Returns the median of `value` over cells, or NaN without cells.
    pub(crate) fn median_of(&self, value: impl Fn(&FinishedCell<'_>) -> f64) -> f64 {
        median(&self.results.iter().map(|result| value(result)).collect::<Vec<_>>())
    }
}

/// Returns true if variant and base were trained and tested on the same rows, for each seed that both have.
fn share_rows(row: &Row<'_>, base: &Row<'_>) -> bool {
    row.results.iter().all(|own| {
        let same_seed = base.results.iter().find(|result| result.cell.repetition == own.cell.repetition);
        same_seed.is_none_or(|base| base.report.data.split == own.report.data.split)
    })
}

/// Maximum number of comparisons that a note names.
const NAMED: usize = 8;

/// Returns a note on the repetitions that comparisons without a significant difference would need. `what` names the
/// comparisons.
pub(crate) fn power_note(what: &str, metric: Metric, open: &[(String, &PairedComparison)]) -> Option<String> {
    let one = |(name, comparison): &(String, &PairedComparison)| {
        let power = &comparison.test.as_ref()?.power;
        let (n, found) = (comparison.n, comparison.difference.abs());
        let needed = match power.needed(found) {
            Some(needed) => needed.to_string(),
            None => format!("more than {MOST}"),
        };
        let unit = if power.correlated > 0.0 { "folds" } else { "seeds" };
        let least = metric.show(power.detectable(n)?);
        Some(format!("{name}: {needed} {unit} for the measured {}, and {n} for {least}", metric.show(found)))
    };
    let mut named: Vec<String> = open.iter().filter_map(one).collect();
    if named.is_empty() {
        return None;
    }
    if named.len() > NAMED {
        let left = named.len() - NAMED;
        named.truncate(NAMED);
        named.push(format!("and {left} more in results.json"));
    }
    Some(format!(
        "{what} that are not significant, with the repetitions that show a difference with a probability of {:.0} %: {}. Few \
         repetitions measure the deviation roughly, so these numbers are orders of magnitude.",
        100.0 * POWER,
        named.join("; ")
    ))
}

/// Returns a warning about significant differences whose interval over test rows and splits contains 0.
pub(crate) fn reversible_note(unit: &str, significant: &[(String, &PairedComparison)]) -> Option<String> {
    let is_open = |comparison: &PairedComparison| {
        let found = comparison.over_rows.as_ref().ok();
        found.and_then(|found| found.over_rows_and_splits).is_some_and(|ends| ends.contains_zero())
    };
    let open = significant.iter().filter(|(_, comparison)| is_open(comparison));
    let names: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Warning: over the {unit} the difference is significant, but other test rows could reverse it: {}.",
            names.join("; ")
        )
    })
}

/// Number of test rows, in all and of each class, below which a note warns.
const FEW_ROWS: usize = 100;
const FEW_OF_A_CLASS: f64 = 30.0;

/// Returns a warning if a comparison rests on few test rows, or on few rows of a class. The rows of all folds of a
/// seed count together.
fn few_rows(results: &[FinishedCell<'_>]) -> Option<String> {
    let mut rows: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    let mut classes: BTreeMap<(usize, u64, String), f64> = BTreeMap::new();
    for FinishedCell { cell, report } in results {
        *rows.entry((cell.index, cell.repetition.seed)).or_default() += report.rows.test;
        let Some(confusion) = &report.evaluation.confusion else { continue };
        for (class, predicted) in confusion.cells.iter().enumerate() {
            let name = report.class_names.get(class).cloned().unwrap_or_else(|| class.to_string());
            *classes.entry((cell.index, cell.repetition.seed, name)).or_default() +=
                predicted.iter().sum::<f64>();
        }
    }
    let fewest = classes.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let part = match (fewest, rows.into_values().min()) {
        (Some(((_, seed, name), count)), _) if count < FEW_OF_A_CLASS => {
            format!("{count} test rows of class `{name}` (seed {seed})")
        }
        (_, Some(count)) if count < FEW_ROWS => {
            format!("{count} test row{}", if count == 1 { "" } else { "s" })
        }
        _ => return None,
    };
    let has_folds = results.iter().any(|result| result.cell.repetition.fold.is_some());
    let advice = if has_folds { "" } else { ", or test every row by cross-validation (`--folds 5`)" };
    Some(format!(
        "Warning: the comparisons rest on {part}; a few other rows can change them. Read the intervals by test rows{advice}."
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::grid::Scope;
    use fet_eval::records::Report;

    use super::super::results::tests::{ACCURACY, RMSE, finished};
    use super::*;

    /// Returns a grid of the variants A, B and C, with cells of (variant, seed, metric, test).
    pub(crate) fn study(cells: &[(usize, u64, Metric, f64)]) -> (StudyGrid, Vec<Cell>, Vec<Report>) {
        let text = "name = 'x'\n[ablation]\nseeds = [0, 1, 2]\nvariants = [{ name = 'A' }, { name = 'B' }, { name = 'C|x' }]";
        let grid = StudyGrid::parse(text, &Scope::default()).expect("a grid");
        let made = cells.iter().map(|&(variant, seed, metric, test)| finished(variant, seed, metric, test));
        let (cells, reports) = made.unzip();
        (grid, cells, reports)
    }

    /// Pairs the cells of a study with their reports.
    pub(crate) fn pair<'a>(cells: &'a [Cell], reports: &[Report]) -> Vec<FinishedCell<'a>> {
        cells
            .iter()
            .zip(reports)
            .map(|(cell, report)| FinishedCell { cell, report: report.clone() })
            .collect()
    }

    #[test]
    fn warnings_that_differ_in_numbers_are_one_line() {
        let found = without_repetition(&[
            "column `b`: 3 rows are far outside -1.5 to 2",
            "column `a`: 7 rows are far outside 0.25 to 1",
            "column `a`: 42 rows are far outside 0 to 1.5.",
            "column `a`: 7 rows are far outside 0.25 to 1",
            "the last rows are later..",
        ]);
        assert_eq!(
            found,
            [
                "column `a`: 42 rows are far outside 0 to 1.5 (1 more with other numbers)",
                "column `b`: 3 rows are far outside -1.5 to 2",
                "the last rows are later",
            ]
        );
    }

    fn verdicts(cells: &[(usize, u64, Metric, f64)]) -> (Vec<ComparisonVerdict>, Vec<String>) {
        let (grid, cells, reports) = study(cells);
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        (summary.rows.iter().map(|row| row.verdict).collect(), summary.notes)
    }

    #[test]
    fn only_a_test_makes_a_difference() {
        use ComparisonVerdict::{Alone, Better, NotShown, Untested, Worse};
        // B exceeds A by about 0.1 for every seed. C has about the same mean difference, but only by chance.
        let cells = |metric, seeds: u64| {
            let of = |variant, values: [f64; 3]| {
                (0..seeds).map(move |seed| (variant, seed, metric, values[seed as usize]))
            };
            let all = of(0, [0.1, 0.5, 0.9]).chain(of(1, [0.2, 0.61, 1.0])).chain(of(2, [0.9, 0.1, 0.8]));
            all.collect::<Vec<_>>()
        };
        let check = |metric, seeds, expected: [ComparisonVerdict; 3], parts: &[&str]| {
            let (found, notes) = verdicts(&cells(metric, seeds));
            assert_eq!(found, expected, "{metric:?}, {seeds} seeds");
            let notes = notes.join("\n");
            for part in parts {
                assert!(notes.contains(part), "{part:?} is not in {notes}");
            }
        };
        check(
            ACCURACY,
            3,
            [Alone, Better, NotShown],
            &["Holm", "2 comparisons", "Warning: the comparisons rest on 2 test rows of class `no`"],
        );
        check(RMSE, 3, [Alone, Worse, NotShown], &["Bold", "Warning: the comparisons rest on 1 test row;"]);
        // C differs from A by 0.8, −0.4 and −0.1: d = 0.1 / 0.6245, for which 306 pairs are needed at α = 0.05, and
        // more at half of it.
        let power = "show a difference with a probability of 80 %: C|x: 3";
        check(RMSE, 3, [Alone, Worse, NotShown], &[power, " seeds for the measured 0.100, and 3 for "]);
        check(RMSE, 2, [Alone, Untested, Untested], &["Fewer than 3 seeds", "(2 of them)"]);
        let mixed = [(0, 0, RMSE, 0.1), (1, 0, ACCURACY, 0.1)];
        assert_eq!(verdicts(&mixed).0, [Alone, Alone, Alone], "other metrics cannot be compared");
    }

    /// A variant whose control variant is the base, a variant with another control variant, and that control variant.
    #[test]
    fn each_question_is_counted_once() {
        let text = "name = 'x'\n[ablation]\nseeds = [0, 1, 2]\nvariants = [{ name = 'A' }, { name = 'B', control = 'A' }, \
                    { name = 'C|x', control = 'D' }, { name = 'D' }]";
        let grid = StudyGrid::parse(text, &Scope::default()).expect("a grid");
        let made = (0..4).flat_map(|variant| (0..3).map(move |seed| (variant, seed)));
        let made =
            made.map(|(variant, seed)| finished(variant, seed, RMSE, (variant as u64 * (seed + 2)) as f64));
        let (cells, reports): (Vec<_>, Vec<_>) = made.unzip();
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        let corrected = |index: usize| summary.rows[index].test().map(|test| test.corrected / test.p);
        use ComparisonVerdict::{Alone, NotAsked};
        let verdicts: Vec<ComparisonVerdict> = summary.rows.iter().map(|row| row.verdict).collect();
        assert_eq!((verdicts[0], verdicts[1], verdicts[3]), (Alone, NotAsked, NotAsked));
        assert_eq!(
            (corrected(1), corrected(2), corrected(3)),
            (None, Some(1.0), None),
            "one question about the base"
        );
        assert_eq!(summary.added.len(), 2);
        let least = summary.added.iter().filter_map(|added| added.comparison.test.as_ref());
        let least = least.min_by(|a, b| a.p.total_cmp(&b.p)).expect("a test");
        assert!((least.corrected / least.p - 2.0).abs() < 1e-9, "two questions about contributions");
        assert!(
            summary.notes.iter().any(|note| note.starts_with("No p: a control variant")),
            "{:?}",
            summary.notes
        );
        assert!(summary.rows[1].comparison.is_some(), "the difference remains");
    }

    #[test]
    fn pairs_are_made_by_seed() {
        let (grid, cells, reports) = study(&[
            (0, 1, RMSE, 1.0),
            (0, 0, RMSE, 5.0),
            (1, 0, RMSE, 7.0),
            (1, 2, RMSE, 100.0),
            (1, 1, RMSE, 2.0),
        ]);
        let results = pair(&cells, &reports);
        let summary = StudySummary::new(&grid, &cells, &results);
        let comparison = summary.rows[1].comparison.as_ref().expect("compared");
        assert_eq!((comparison.n, comparison.difference), (2, 1.5));
        assert_eq!(summary.rows[2].comparison, None);
    }

    #[test]
    fn names_results_that_cannot_be_compared() {
        let (grid, cells, mut reports) = study(&[(0, 0, RMSE, 1.0), (1, 0, RMSE, 5.0), (2, 0, RMSE, 5.0)]);
        reports[1].program.commit = "aaaaaaaaaaaaaaaa".into();
        reports[2].data.split = "other rows".into();
        let results = pair(&cells, &reports);
        let notes = StudySummary::new(&grid, &cells, &results).notes.join("\n");
        for part in ["1 by aaaaaaaaaaaa, 2 by commit", "run on different rows"] {
            assert!(notes.contains(part), "{part:?} is not in {notes}");
        }
    }
}
