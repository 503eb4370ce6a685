//! Links, disclosure, refusals and limits of `clk` with match weights.

use fet_core::data::{Keys, TextTable};
use fet_core::linker::{Linker, Links, link, link_between};
use fet_core::registry::Recipe;
use fet_core::rng::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::super::{Clk, Harden, LinkageSchema, Weighting};
use super::*;

fn clk(change: impl Fn(&mut ClkSettings)) -> Clk {
    let mut settings =
        ClkSettings { neighbours: 1, scoring: Scoring::MatchWeights, ..ClkSettings::default() };
    change(&mut settings);
    Clk(settings)
}

fn keys(columns: usize, cells: &[String]) -> Keys {
    Keys::Text(TextTable::new(columns, cells.to_vec()))
}

fn word(draw: &mut ChaCha8Rng, length: usize) -> String {
    (0..length).map(|_| char::from(b'a' + draw.random_range(0..26u8))).collect()
}

/// Returns people with five columns (name, surname, town, number, street). The first `matched` people are in
/// both tables at the same row. A share of the cells is blank and some are misspelt.
fn people(rows: usize, matched: usize, blank: f64, seed: u64) -> (Vec<String>, Vec<String>) {
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let mut words = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|_| word(&mut draw, length)).collect()
    };
    let (names, surnames, towns, streets) = (words(60, 6), words(150, 7), words(25, 8), words(100, 9));
    let mut draw = ChaCha8Rng::seed_from_u64(seed + 1);
    let mut person = || {
        let of = |list: &[String], draw: &mut ChaCha8Rng| {
            let at = (draw.random::<f64>().powi(2) * list.len() as f64) as usize;
            list[at].clone()
        };
        let number = draw.random_range(1..3_000).to_string();
        [
            of(&names, &mut draw),
            of(&surnames, &mut draw),
            of(&towns, &mut draw),
            number,
            of(&streets, &mut draw),
        ]
    };
    let ours: Vec<[String; 5]> = (0..rows).map(|_| person()).collect();
    let theirs: Vec<[String; 5]> =
        (0..rows).map(|row| if row < matched { ours[row].clone() } else { person() }).collect();
    let mut draw = ChaCha8Rng::seed_from_u64(seed + 2);
    let mut spoil = |table: Vec<[String; 5]>| -> Vec<String> {
        let mut cell = |mut cell: String| {
            if draw.random::<f64>() < blank {
                cell.clear();
            } else if draw.random::<f64>() < 0.1 {
                cell.replace_range(0..1, "x");
            }
            cell
        };
        table.into_iter().flatten().map(&mut cell).collect()
    };
    (spoil(ours), spoil(theirs))
}

fn linked(linker: &Clk, columns: usize, (ours, theirs): &(Vec<String>, Vec<String>)) -> Links {
    link(linker, &keys(columns, ours), &keys(columns, theirs), 1, &|_| ()).expect("linkable")
}

fn best(links: &Links) -> Vec<f32> {
    (0..links.rows()).filter_map(|row| links.similarities(row)).map(|of_row| of_row[0]).collect()
}

fn found(links: &Links, matched: usize) -> usize {
    (0..matched).filter(|&row| links.row(row)[0] == row as u32).count()
}

#[test]
fn match_weights_find_more_in_tables_with_blank_cells() {
    let tables = people(600, 600, 0.3, 1);
    let by = |scoring| found(&linked(&clk(|settings| settings.scoring = scoring), 5, &tables), 600);
    let (correlation, weights) = (by(Scoring::Correlation), by(Scoring::MatchWeights));
    // Without a difference, each pair that only one scoring finds is equally likely for either. 30 of 600 are
    // five standard deviations of 36 such pairs.
    assert!(weights > correlation + 30, "{weights} {correlation}");
}

/// A number of 400 has a standard deviation of at most 10. Since the matches are learned too, the tolerance
/// is six standard deviations.
#[test]
fn probabilities_are_calibrated() {
    let (rows, matched) = (800, 400);
    let links = linked(&clk(|_| ()), 5, &people(rows, matched, 0.1, 3));
    let best = best(&links);
    let sure: Vec<usize> = (0..rows).filter(|&row| best[row] >= 0.5).collect();
    let expected: f64 = sure.iter().map(|&row| f64::from(best[row])).sum();
    let right = sure.iter().filter(|&&row| row < matched && links.row(row)[0] == row as u32).count();
    assert!(
        (expected - right as f64).abs() < 60.0,
        "{right} of {} are right, {expected} expected",
        sure.len()
    );
    assert!(right > 250, "{right}");
    let matched = links.estimate().expect("an estimate") * rows as f64;
    assert!((matched - 400.0).abs() < 80.0, "{matched}");
}

#[test]
fn tables_without_a_match_are_not_linked() {
    let links = linked(&clk(|_| ()), 5, &people(600, 0, 0.1, 4));
    let sure = best(&links).iter().filter(|&&probability| probability >= 0.5).count();
    assert!(sure < 30, "{sure} of 600 rows");
}

#[test]
fn small_and_odd_tables_have_links() {
    let cells = |cells: &[&str]| cells.iter().map(|cell| cell.to_string()).collect::<Vec<_>>();
    // Three rows and one column.
    let three = (
        cells(&["anna smith", "bert jones", "carl weber"]),
        cells(&["carl weber", "anna smyth", "bert jones"]),
    );
    let links = linked(&clk(|_| ()), 1, &three);
    assert_eq!([links.row(0), links.row(1), links.row(2)], [&[1], &[2], &[0]]);
    // All cells are equal, so no record can be the match.
    let same = (vec!["smith".to_string(); 100], vec!["smith".to_string(); 100]);
    let most = best(&linked(&clk(|_| ()), 1, &same)).into_iter().fold(0.0, f32::max);
    assert!(most < 0.1, "{most}");
    // One column without blanks.
    let mut draw = ChaCha8Rng::seed_from_u64(6);
    let names: Vec<String> = (0..200).map(|_| word(&mut draw, 9)).collect();
    let links = linked(&clk(|_| ()), 1, &(names.clone(), names));
    assert_eq!(found(&links, 200), 200);
    assert!(best(&links).iter().all(|&probability| probability > 0.9));
    // Only blanks on one side.
    let none = (vec![String::new(); 60], vec!["smith".to_string(); 60]);
    assert!(best(&linked(&clk(|_| ()), 1, &none)).iter().all(|&probability| probability == 0.0));
    // More neighbours than the minimum number of candidates, and more than there are records.
    let links = linked(
        &clk(|settings| (settings.neighbours, settings.pad) = (150, true)),
        5,
        &people(100, 100, 0.1, 7),
    );
    assert_eq!((links.neighbours(), links.available()), (150, 100));
}

#[test]
fn every_weighting_hardening_and_group_finds_matches() {
    let tables = people(300, 300, 0.0, 8);
    for hardening in [Harden::None, Harden::Balanced, Harden::XorFold, Harden::Rehash] {
        for weighting in [Weighting::Rarity, Weighting::Entropy] {
            let linker = clk(|settings| (settings.hardening, settings.weighting) = (hardening, weighting));
            let found = found(&linked(&linker, 5, &tables), 300);
            assert!(found > 240, "{hardening:?} {weighting:?}: {found}");
        }
    }
    // Names in either order, in columns of one group. Without the group, the other columns cannot compensate
    // for many blanks.
    let tables = people(300, 300, 0.3, 8);
    let swapped: Vec<String> =
        tables.1.chunks(5).flat_map(|p| [&p[1], &p[0], &p[2], &p[3], &p[4]]).cloned().collect();
    let tables = (tables.0, swapped);
    let with =
        |groups: &[u32]| found(&linked(&clk(|settings| settings.groups = groups.to_vec()), 5, &tables), 300);
    let (grouped, single) = (with(&[0, 0, 1, 2, 3]), with(&[]));
    assert!(grouped > 150 && grouped > single + 20, "{grouped} {single}");
}

#[test]
fn match_weights_are_described_and_refused_where_unsupported() {
    let (with, without) =
        (clk(|_| ()).about(), clk(|settings| settings.scoring = Scoring::Correlation).about());
    assert!(with.probabilities && !without.probabilities);
    assert_ne!(with.reveals.secondary, without.reveals.secondary);
    assert_ne!(with.reveals.eavesdropper, without.reveals.eavesdropper);
    let settings = ClkSettings { scoring: Scoring::MatchWeights, ..ClkSettings::default() };
    let table = TextTable::new(1, vec!["smith".to_string()]);
    let refused = LinkageSchema::learn(&settings, &["name".to_string()], [7; 16], b"a secret of two", &table);
    assert!(refused.expect_err("refused").to_string().contains("match-weights"));
    let inner = "inner = { kind = 'clk', scoring = 'match-weights' }";
    let posterior: crate::PosteriorSettings = toml::from_str(inner).expect("settings");
    assert!(posterior.build(&()).is_err_and(|error| error.to_string().contains("not already probabilities")));
}

#[test]
fn warns_if_no_match_is_expected() {
    let linker = clk(|_| ());
    let (mut querier, mut data_holder) = (linker.querier(1), linker.data_holder(1));
    let same = keys(1, &vec!["smith".to_string(); 60]);
    link_between(querier.as_mut(), data_holder.as_mut(), &keys(1, &vec![String::new(); 60]), &same, &|_| ())
        .expect("linkable");
    assert!(data_holder.warnings().join("\n").contains("none of 60 rows is expected to have a match"));
}

/// Columns are compared within the strata of whole records. A record with another town is not found, even if
/// its other columns match.
#[test]
fn columns_are_compared_within_the_record_s_stratum() {
    let mut tables = people(300, 200, 0.0, 31);
    let town = |row: usize| 5 * row + 2;
    (0..40).for_each(|row| tables.1[town(row)] = "elsewhere".into());
    let same = |row: &usize| tables.0[town(*row)] == tables.1[town(*row)];
    let (salted, plain) =
        (linked(&clk(|settings| settings.salt_column = 3), 5, &tables), linked(&clk(|_| ()), 5, &tables));
    let right =
        |links: &Links, rows: &[usize]| rows.iter().filter(|&&row| links.row(row)[0] == row as u32).count();
    let (moved, stayed): (Vec<usize>, Vec<usize>) = ((0..40).collect(), (40..200).filter(same).collect());
    assert!(right(&plain, &moved) > 35, "{}", right(&plain, &moved));
    assert!(right(&salted, &moved) < 5, "{}", right(&salted, &moved));
    assert!(
        stayed.len() > 120 && right(&salted, &stayed) * 10 >= stayed.len() * 9,
        "{}",
        right(&salted, &stayed)
    );
}

/// All titles are mistyped, so that no two values are equal and each value is unique.
#[test]
fn finds_matches_without_equal_values() {
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let words: Vec<String> = (0..12).map(|_| word(&mut draw, 5)).collect();
    let title = |draw: &mut ChaCha8Rng| -> String {
        let common: Vec<&str> = (0..3).map(|_| words[draw.random_range(0..12)].as_str()).collect();
        format!("{} {}", common.join(" "), word(draw, 5))
    };
    let ours: Vec<String> = (0..100).map(|_| title(&mut draw)).collect();
    let mut theirs: Vec<String> = ours[..60].iter().map(|title| title.replacen(' ', "q", 1)).collect();
    theirs.extend((0..45).map(|_| title(&mut draw)));
    let tables = (ours, theirs);
    let links = linked(&clk(|_| ()), 1, &tables);
    assert!(found(&links, 60) > 55, "{}", found(&links, 60));
    // 60 of 100 rows have a match, and the share has a standard deviation of at most 0.05.
    let expected = links.estimate().expect("match weights tell it");
    assert!((expected - 0.6).abs() < 0.2, "{expected}");
    let sure = best(&links).iter().filter(|&&probability| probability > 0.5).count();
    assert!((40..70).contains(&sure), "{sure} of 60");
}
