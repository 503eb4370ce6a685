//! Tests of defences: the grouping of variants, the leakage, and scores computed by hand.

use fet_eval::records::Report;
use serde_json::json;

use super::super::grid::Scope;
use super::super::results::FinishedCell;
use super::super::results::tests::{ACCURACY, RMSE, attack, finished};
use super::super::summary::StudySummary;
use super::super::summary::tests::pair;
use super::*;

pub(crate) const GRID: &str = "name = 'x'\n[ablation]\nseeds = [0, 1]\nvariants = [{ name = 'none' }, { name = 'noise' }]\n\
    [ablation.axes]\n'attack.kind' = ['norm', 'cosine', 'reconstruction']\n";

/// Cells of one variant with seeds 0 and 1, in the order of the grid: (settings of the variant, its attack or
/// "", its tests, its leakages).
pub(crate) type Given<'a> = (&'a str, &'a str, [f64; 2], [f64; 2]);

/// Two defences under three attacks. Two of the attacks target labels.
pub(crate) const GIVEN: [Given<'static>; 6] = [
    ("none", "norm", [0.9, 0.8], [0.8, 0.6]),
    ("none", "cosine", [0.9, 0.8], [0.2, 0.4]),
    ("none", "reconstruction", [0.9, 0.8], [0.4, 0.4]),
    ("noise", "norm", [0.8, 0.82], [0.2, 0.0]),
    ("noise", "cosine", [0.8, 0.82], [0.6, 0.1]),
    ("noise", "reconstruction", [0.8, 0.82], [0.1, 0.3]),
];

/// Returns a study whose last variant is not attacked.
pub(crate) fn with_alone() -> (String, Vec<Given<'static>>) {
    let grid = GRID.replace("{ name = 'noise' }", "{ name = 'noise' }, { name = 'alone', attacked = false }");
    let alone = ("alone", "", [0.6, 0.7], [0.0, 0.0]);
    (grid, GIVEN.into_iter().chain([alone]).collect())
}

fn cells(given: &[Given<'_>], metric: Metric) -> (Vec<Cell>, Vec<Report>) {
    let cell = |(index, seed): (usize, u64)| {
        let (settings, kind, tests, leakages) = given[index];
        let (mut cell, mut report) = finished(0, seed, metric, tests[seed as usize]);
        let target = if kind == "reconstruction" { Target::Features } else { Target::Labels };
        let mut experiment = json!({"privacy": settings, "seed": seed});
        if !kind.is_empty() {
            experiment["attack"] = json!({"kind": kind});
            // The attack's value is between 0.5 and 1.
            report.attack = attack(kind, target, 0.5 + leakages[seed as usize] / 2.0, 1.0);
        }
        (cell.index, cell.variant) = (index, format!("{settings}, {kind}"));
        (cell.identity.experiment, report.experiment) = (experiment.clone(), experiment);
        (cell, report)
    };
    (0..given.len()).flat_map(|index| [(index, 0), (index, 1)]).map(cell).unzip()
}

/// Calls `look` with the summary of such a study, in which the cells in `missing` have no result.
pub(crate) fn look_without(
    grid: &str,
    given: &[Given<'_>],
    missing: &[(usize, u64)],
    look: impl FnOnce(&StudySummary<'_>),
) {
    let grid = StudyGrid::parse(grid, &Scope::default()).expect("a grid");
    let (cells, reports) = cells(given, ACCURACY);
    let mut results: Vec<FinishedCell<'_>> = pair(&cells, &reports);
    results.retain(|result| !missing.contains(&(result.cell.index, result.cell.repetition.seed)));
    look(&StudySummary::new(&grid, &cells, &results));
}

/// Calls `look` with the summary of such a study.
fn look(
    grid: &str,
    only: &[&str],
    given: &[Given<'_>],
    metric: Metric,
    look: impl FnOnce(&StudySummary<'_>),
) {
    let only = only.iter().map(ToString::to_string).collect();
    let grid = StudyGrid::parse(grid, &Scope { only, ..Scope::default() }).expect("a grid");
    let (cells, reports) = cells(given, metric);
    let results: Vec<FinishedCell<'_>> = pair(&cells, &reports);
    look(&StudySummary::new(&grid, &cells, &results));
}

fn close(found: &BySeed, expected: &[(u64, f64)], what: &str) {
    let is_close = |(found, expected): ((&Repetition, &f64), &(u64, f64))| {
        *found.0 == expected.0.into() && (found.1 - expected.1).abs() < 1e-6
    };
    let same = found.len() == expected.len() && found.iter().zip(expected).all(is_close);
    assert!(same, "{what}: {found:?}, not {expected:?}");
}

#[test]
fn variants_that_differ_only_in_the_attack_are_one_defence() {
    look(GRID, &[], &GIVEN, ACCURACY, |summary| {
        assert_eq!(summary.runs, [0, 0, 0, 3, 3, 3]);
        let defences = summary.defences.as_ref().expect("attacked");
        let names: Vec<(&str, &[usize])> =
            defences.defences.iter().map(|one| (one.name.as_str(), one.variants.as_slice())).collect();
        assert_eq!(names, [("none", &[0, 1, 2][..]), ("noise", &[3, 4, 5])]);
        let attacks: Vec<&str> = defences.attacks.iter().map(|attack| attack.name.as_str()).collect();
        assert_eq!(attacks, ["norm", "cosine", "reconstruction"]);
        assert_eq!(
            (defences.targets.as_slice(), defences.undefended),
            (&[Target::Labels, Target::Features][..], Some(0))
        );
        close(&defences.defences[1].leakage[1], &[(0, 0.6), (1, 0.1)], "leakage");
        let compared: Vec<bool> = summary.rows.iter().map(|row| row.comparison.is_some()).collect();
        assert_eq!(compared, [false, false, false, true, false, false], "a run is compared once");
    });
    // A difference in any setting other than the attack makes another defence, whatever the variant's name.
    let mut given = GIVEN;
    given[4].0 = "more noise";
    look(GRID, &[], &given, ACCURACY, |summary| {
        assert_eq!(summary.runs, [0, 0, 0, 3, 4, 3]);
        let defences = &summary.defences.as_ref().expect("attacked").defences;
        assert_eq!(defences.len(), 3);
        assert!(defences[2].leakage[0].is_empty() && defences[2].comprehensive.is_empty(), "{defences:?}");
    });
}

/// The noise is one run under three attacks, so its contribution is one comparison.
#[test]
fn a_contribution_is_compared_once_for_all_attacks() {
    let grid = GRID.replace("{ name = 'noise' }", "{ name = 'noise', control = 'none' }");
    look(&grid, &[], &GIVEN, ACCURACY, |summary| {
        let added: Vec<[usize; 2]> = summary.added.iter().map(|added| [added.index, added.control]).collect();
        assert_eq!(added, [[3, 0]]);
    });
}

/// Each DCS equals the rounded result of `cal_dcs` in VFLAIR's `src/metrics/data_process.py`. For the noise
/// under "norm" with seed 0 it is 1 / (1 + √(0.5 · 0.2² + 0.5 · 0.1²)) = 1 / 1.158114.
#[test]
fn scores_equal_those_of_vflair() {
    look(GRID, &[], &GIVEN, ACCURACY, |summary| {
        let defences = &summary.defences.as_ref().expect("attacked").defences;
        assert_eq!(defences.len(), 2, "{defences:?}");
        let (none, noise) = (&defences[0], &defences[1]);
        close(&none.scores[0], &[(0, 0.638_698), (1, 0.702_117)], "no loss");
        close(
            &noise.scores[0],
            &[(0, 0.863_473), (1, 1.0)],
            "norm; a better metric does not raise the score",
        );
        close(&noise.scores[1], &[(0, 0.699_244), (1, 0.933_959)], "cosine");
        close(&noise.by_target[0], &[(0, 0.781_358), (1, 0.966_980)], "the mean over both attacks on labels");
        close(&noise.by_target[1], &[(0, 0.909_091), (1, 0.824_993)], "features");
        close(&noise.comprehensive, &[(0, 0.845_225), (1, 0.895_986)], "every target counts the same");
    });
}

#[test]
fn an_error_counts_by_its_relative_increase() {
    for (undefended, own, leakage, expected) in [
        (2.0, 2.5, 0.5, 1.0 / (1.0 + (0.5 * 0.25_f64 + 0.5 * 0.0625).sqrt())),
        (2.0, 1.0, 0.5, 1.0 / (1.0 + (0.5 * 0.25_f64).sqrt())),
        (2.0, 9.0, 0.0, 1.0 / (1.0 + 0.5_f64.sqrt())),
        (0.0, 0.1, 0.0, 1.0 / (1.0 + 0.5_f64.sqrt())),
        (0.0, 0.0, 1.0, 1.0 / (1.0 + 0.5_f64.sqrt())),
        (2.0, 9.0, 1.0, 0.5),
        (2.0, 2.0, 0.0, 1.0),
    ] {
        let found = score(leakage, loss(RMSE, own, undefended));
        assert!((found - expected).abs() < 1e-12, "{undefended}, {own}, {leakage}: {found}, not {expected}");
    }
}

#[test]
fn seeds_without_an_undefended_run_get_no_score() {
    look_without(GRID, &GIVEN, &[(0, 0), (1, 0), (2, 0)], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let noise = &defences.defences[1];
        close(&noise.leakage[0], &[(0, 0.2), (1, 0.0)], "what there is");
        close(&noise.scores[0], &[(1, 1.0)], "seeds of the undefended run");
        close(&noise.comprehensive, &[(1, 0.895_986)], "seeds of the undefended run");
        assert_eq!(noise.lacking(&defences.attacks), []);
    });
}

#[test]
fn attacks_with_different_seeds_get_no_common_score() {
    // The result of the noise under "cosine" with seed 1 is missing.
    look_without(GRID, &GIVEN, &[(4, 1)], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let (none, noise) = (&defences.defences[0], &defences.defences[1]);
        close(&noise.leakage[1], &[(0, 0.6)], "what there is");
        close(&noise.by_target[0], &[(0, 0.781_358)], "seeds of both attacks on labels");
        close(&noise.by_target[1], &[(0, 0.909_091), (1, 0.824_993)], "features");
        close(&noise.comprehensive, &[], "the attacks have different seeds");
        assert_eq!(noise.lacking(&defences.attacks), [(&defences.attacks[1], vec![1.into()])]);
        // 1 / (1 + √0.5 L) for the undefended run: labels (0.638698 + 0.876101) / 2 and (0.702117 + 0.779519)
        // / 2, features 0.779519.
        close(&none.comprehensive, &[(0, 0.768_459), (1, 0.760_168)], "the other has them all");
        assert_eq!(none.lacking(&defences.attacks), []);
    });
    // Each attack lacks another seed: equal numbers of different seeds.
    look_without(GRID, &GIVEN, &[(3, 0), (4, 1), (5, 1)], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let noise = &defences.defences[1];
        let lacking: Vec<Vec<Repetition>> =
            noise.lacking(&defences.attacks).into_iter().map(|(_, seeds)| seeds).collect();
        assert_eq!(lacking, [0, 1, 1].map(|seed: u64| vec![Repetition::from(seed)]));
        close(&noise.comprehensive, &[], "no seed in common");
    });
}

#[test]
fn ignores_an_attack_without_success_on_the_undefended_run() {
    let with = |row: usize, leakages: [f64; 2]| {
        let mut given = GIVEN;
        given[row].3 = leakages;
        given
    };
    let counts = |given: &[Given<'_>], missing: &[(usize, u64)]| {
        let mut found = Vec::new();
        look_without(GRID, given, missing, |summary| {
            let attacks = &summary.defences.as_ref().expect("attacked").attacks;
            found = attacks.iter().map(|attack| attack.counts).collect();
        });
        found
    };
    assert_eq!(counts(&GIVEN, &[]), [true, true, true]);
    assert_eq!(counts(&with(5, [0.0, 0.0]), &[]), [true, true, true], "only what it finds without a defence");
    assert_eq!(counts(&with(2, [0.09, 0.0]), &[]), [true, true, false], "the mean over seeds");
    assert_eq!(counts(&with(2, [0.11, 0.0]), &[]), [true, true, true], "the mean over seeds");
    assert_eq!(counts(&GIVEN, &[(2, 0), (2, 1)]), [true, true, true], "not known");

    // The only attack on features finds nothing, so only the label attacks count.
    look_without(GRID, &with(2, [0.0, 0.0]), &[], |summary| {
        let defences = &summary.defences.as_ref().expect("attacked").defences;
        let (none, noise) = (&defences[0], &defences[1]);
        close(&none.comprehensive, &[(0, 0.757_399), (1, 0.740_818)], "the undefended run's labels");
        close(&noise.comprehensive, &[(0, 0.781_358), (1, 0.966_980)], "the noise's labels");
        close(&noise.by_target[1], &[], "no attack on features counts");
        close(&noise.scores[2], &[(0, 0.909_091), (1, 0.824_993)], "its own score stays");
    });
    // One of two attacks on labels finds nothing. Its missing seed does not matter.
    look_without(GRID, &with(1, [0.0, 0.0]), &[(4, 1)], |summary| {
        let noise = &summary.defences.as_ref().expect("attacked").defences[1];
        close(&noise.by_target[0], &[(0, 0.863_473), (1, 1.0)], "the other attack on labels");
        close(&noise.comprehensive, &[(0, 0.886_282), (1, 0.912_496)], "both targets");
    });
}

#[test]
fn unattacked_run_is_a_row() {
    let (grid, given) = with_alone();
    look_without(&grid, &given, &[], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let alone = &defences.defences[2];
        assert_eq!((alone.name.as_str(), alone.variants.as_slice()), ("alone", &[6][..]));
        close(&alone.tests, &[(0, 0.6), (1, 0.7)], "what it reaches");
        assert!(!alone.is_attacked() && alone.comprehensive.is_empty(), "{alone:?}");
        assert!(alone.lacking(&defences.attacks).is_empty() && alone.by_target.iter().all(BySeed::is_empty));
        close(&defences.defences[1].comprehensive, &[(0, 0.845_225), (1, 0.895_986)], "the others as before");
        assert!((summary.rows[6].comparison.as_ref().expect("compared").difference + 0.2).abs() < 1e-12);
    });
    // The defence is compared with the undefended run even if the first attack on the undefended run has no
    // result.
    look_without(&grid, &given, &[(0, 0), (0, 1)], |summary| {
        assert_eq!(summary.rows[6].comparison.as_ref().expect("compared").n, 2);
    });
    // A base without attacks is not an undefended run: it cannot show which attacks find something.
    let grid = grid.replace("seeds = [0, 1]", "seeds = [0, 1]\nbase = 'alone'");
    look_without(&grid, &given, &[], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        assert_eq!((defences.undefended, defences.scores()), (None, false));
        assert!((summary.rows[3].comparison.as_ref().expect("compared").difference - 0.16).abs() < 1e-12);
    });
}

#[test]
fn the_base_of_the_study_is_the_undefended_run() {
    let undefended = |grid: &str, only: &[&str], given: &[Given<'_>]| {
        let mut found = None;
        look(grid, only, given, ACCURACY, |summary| {
            let defences = summary.defences.as_ref().expect("attacked");
            found = defences.undefended.map(|number| defences.defences[number].name.clone());
            assert_eq!(defences.scores(), found.is_some());
        });
        found
    };
    assert_eq!(undefended(GRID, &[], &GIVEN).as_deref(), Some("none"));
    let named = GRID.replace("seeds = [0, 1]", "seeds = [0, 1]\nbase = 'noise'");
    assert_eq!(undefended(&named, &[], &GIVEN).as_deref(), Some("noise"));
    assert_eq!(undefended(&named, &["none"], &GIVEN[..3]), None, "it is not in the selection");
}

#[test]
fn names_attacks_of_one_kind_by_their_differences() {
    let record = |kind: &str| attack(kind, Target::Features, 0.5, 1.0).expect("an attack");
    let (first, second) =
        (json!({"kind": "grn", "party": 1, "known": 0.5}), json!({"kind": "grn", "party": 2, "known": 0.5}));
    let other = json!({"kind": "ridge", "party": 3, "known": 0.5});
    let (grn, ridge) = (record("grn"), record("ridge"));
    let all = [(&first, &grn), (&second, &grn), (&other, &ridge)];
    let names: Vec<String> = all.iter().map(|(settings, record)| name(settings, record, &all)).collect();
    assert_eq!(names, ["grn · party=1", "grn · party=2", "ridge"]);
}

#[test]
fn study_without_attacks_has_no_defences() {
    let grid = StudyGrid::parse(GRID, &Scope::default()).expect("a grid");
    let (mut cells, mut reports) = cells(&GIVEN, ACCURACY);
    for (cell, report) in cells.iter_mut().zip(&mut reports) {
        cell.identity.experiment = json!({});
        (report.experiment, report.attack) = (json!({}), None);
    }
    let results = pair(&cells, &reports);
    let summary = StudySummary::new(&grid, &cells, &results);
    assert!(summary.defences.is_none() && summary.distinct().len() == 6);
}
