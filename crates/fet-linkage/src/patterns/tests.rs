//! The attack succeeds without hardening, and is no better than a guess if filters contain no patterns.

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::clk::{Encoder, EncoderSettings, Hardening, Salt, Schema};
use crate::text::TextRows;

const SURNAMES: &str = "white clarke green ryan campbell webb reid nguyen matthews mason george morrison coleman dixon harrison burford \
    rudd hawkins crook maxwell donaldson paterson bishop lombardi beams jolly stanley wheatley vincent kranz painter neumann";
const GIVEN: &str = "emily joshua jack lachlan thomas benjamin jessica nicholas william sophie matthew james samuel isabella mitchell joel \
    alexander sarah chloe georgia hannah kyle caitlin olivia jacob daniel ella jasmine ruby zac taylah finn noah amber mia blake erin \
    harry imogen connor lucy callum tara dylan paige luke bailey holly logan abby ethan riley jordan maddison jayden lauren";

/// Returns records of a given name, a surname and a year of birth. Names at the beginning of the lists are
/// more frequent.
fn people(rows: usize, seed: u64) -> Vec<String> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let names = |list: &'static str| list.split_whitespace().collect::<Vec<_>>();
    let draw = |count: usize| {
        WeightedIndex::new((0..count).map(|rank| 1.0 / (rank as f64 + 4.0))).expect("weights above 0")
    };
    let (given, surnames) = (names(GIVEN), names(SURNAMES));
    let (of_given, of_surnames) = (draw(given.len()), draw(surnames.len()));
    let mut record = || {
        let year = 1940 + rng.random_range(0..60);
        [
            given[of_given.sample(&mut rng)].into(),
            surnames[of_surnames.sample(&mut rng)].into(),
            year.to_string(),
        ]
    };
    (0..rows).flat_map(|_| record()).collect()
}

fn column(cells: &[String], at: usize) -> Vec<String> {
    cells.iter().skip(at).step_by(3).cloned().collect()
}

/// Returns the success of the attack on 1,500 filters with 1,500 public records.
fn attacked(hardening: Hardening, salt: Option<Salt>) -> Score {
    let (theirs, ours) = (people(1_500, 1), people(1_500, 2));
    let encode = |secret: &[u8], cells: &[String]| {
        let schema = Schema::fit(&TextRows { cells, fields: 3 }, 2, 205.0, &[], &[]);
        let settings = EncoderSettings { bits: 1_024, q: 2, hardening };
        Encoder::new(settings, secret, &schema).salted(salt).encode(cells)
    };
    let strata = match salt {
        Some(Salt { column: by, .. }) => column(&ours, by),
        None => vec![String::new(); 1_500],
    };
    let own = encode(b"of the attacker", &ours);
    let public = Public { filters: &own, values: &column(&ours, 1), strata: &strata };
    let effort = Effort { values: 20, starts: 2, ..Effort::default() };
    attack(&encode(b"of the owners", &theirs), &public, &effort).score(&column(&theirs, 1))
}

#[test]
fn names_are_read_from_filters_that_nothing_hardens() {
    let score = attacked(Hardening::None, None);
    assert!(score.right > 0.7 && score.baseline < 0.15, "{score:?}");
    assert!(score.precision > 0.7, "{score:?}");
}

#[test]
fn diffusion_and_salt_reduce_the_attack_to_a_guess() {
    let year = Salt { column: 2, signs: 4 };
    for (hardening, salt) in [(Hardening::Diffusion(10), None), (Hardening::None, Some(year))] {
        let score = attacked(hardening, salt);
        assert!(score.right < score.baseline + 0.02, "{hardening:?}, {salt:?}: {score:?}");
    }
}

#[test]
fn the_attack_is_reproducible() {
    assert_eq!(attacked(Hardening::XorFold, None), attacked(Hardening::XorFold, None));
}

#[test]
fn the_most_frequent_values_come_first_and_empty_ones_never() {
    let values = ["b", "a", "", "b", "", "", "c", "a", "b"].map(str::to_string);
    assert_eq!(frequent(&values, 2), ["b", "a"]);
    assert_eq!(frequent(&[String::new()], 2), Vec::<String>::new());
}

/// A record without a pattern gets the most frequent value. A wrong pattern counts against the attack.
#[test]
fn scores_count_records_without_a_guess_as_the_most_frequent_value() {
    let text = |values: &[&str]| values.iter().map(|value| value.to_string()).collect::<Vec<_>>();
    let named = Named {
        values: vec![None, Some("b".into()), Some("b".into()), None],
        wanted: text(&["a", "b"]),
        patterns: 1,
        aligned: 1,
    };
    let score = named.score(&text(&["a", "b", "rare", "b"]));
    let expected = Score { records: 3, right: 2.0 / 3.0, baseline: 1.0 / 3.0, named: 2, precision: 0.5 };
    assert_eq!(score, expected);
}
