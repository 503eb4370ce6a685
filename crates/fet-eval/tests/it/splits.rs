//! Laws of every split: parts partition the rows, and each strategy satisfies its own law.

use fet_eval::split::{SplitPart, codes, folds, quantile_strata};
use fet_eval::{ChaCha8Rng, Fractions, Split, SplitError, SplitStrategy};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// The stream of `fet_core::rng::stream(seed, 0, Purpose::Split, 0)`.
fn stream(seed: u64) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    for (slot, word) in key.chunks_exact_mut(8).zip([seed, 0, 6, 0]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Checks that every row is in exactly one part and that no part is empty.
#[track_caller]
fn check_partition(split: &Split, rows: usize) {
    let mut all = [split.train.clone(), split.validation.clone(), split.test.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..rows).collect::<Vec<_>>());
    assert!(SplitPart::ALL.iter().all(|part| !split.part(*part).is_empty()));
}

/// Checks `law` on splits and folds of random tables under `strategy_of`. Returns the number of splits: a
/// strategy can refuse a table.
fn check_law(
    column_of: impl Fn(usize, &mut ChaCha8Rng) -> Vec<usize>,
    strategy_of: impl Fn(&[usize]) -> SplitStrategy<'_>,
    law: impl Fn(&Split, &[usize], Fractions),
) -> usize {
    let mut made = 0;
    for seed in 0..300 {
        let mut random = rng(seed);
        let rows = random.random_range(20..200usize);
        let column = column_of(rows, &mut random);
        let fractions = Fractions::new(random.random_range(0.06..0.3), random.random_range(0.06..0.5))
            .expect("fractions");
        let strategy = strategy_of(&column);
        let Ok(split) = Split::new(rows, &strategy, fractions, &mut rng(seed)) else { continue };
        check_partition(&split, rows);
        law(&split, &column, fractions);
        assert_eq!(Split::new(rows, &strategy, fractions, &mut rng(seed)), Ok(split), "it repeats");
        made += 1;
    }
    made
}

#[test]
fn random_splits_never_change() {
    for (rows, seed) in [(10, 0), (37, 7), (999, 3), (1_000, 7)] {
        // Same sizes as in fet-federation/src/schedule/split.rs.
        let (test, validation) = (rows / 5, rows / 10);
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut stream(seed));
        let validation_part = order.split_off(rows - validation);
        let test_part = order.split_off(rows - validation - test);
        let before = Split { train: order, validation: validation_part, test: test_part, aside: vec![] };
        let now = Split::new(rows, &SplitStrategy::Random, Fractions::default(), &mut stream(seed))
            .expect("enough");
        assert_eq!(now, before, "{rows} rows, seed {seed}");
        check_partition(&now, rows);
    }
    let other = |seed| Split::new(50, &SplitStrategy::Random, Fractions::default(), &mut stream(seed));
    assert_ne!(other(1), other(2));
}

#[test]
fn strata_keep_their_proportions_within_one_row() {
    let law = |split: &Split, strata: &[usize], fractions: Fractions| {
        let sizes = fractions.sizes(strata.len()).expect("enough");
        assert_eq!((split.validation.len(), split.test.len()), (sizes.validation, sizes.test));
        for stratum in 0..6 {
            let among = |rows: &[usize]| rows.iter().filter(|row| strata[**row] == stratum).count() as f64;
            let count = strata.iter().filter(|other| **other == stratum).count() as f64;
            for part in SplitPart::ALL {
                let share = count * split.part(part).len() as f64 / strata.len() as f64;
                assert!((among(split.part(part)) - share).abs() < 1.0, "{stratum} in {part:?}");
            }
        }
    };
    let classes = |rows: usize, rng: &mut ChaCha8Rng| {
        (0..rows).map(|_| rng.random_range(0..6usize).min(rng.random_range(0..6usize))).collect()
    };
    assert_eq!(check_law(classes, |column| SplitStrategy::Stratified(column), law), 300);
    let bins = |rows: usize, rng: &mut ChaCha8Rng| {
        let values: Vec<f64> = (0..rows).map(|_| rng.random_range(-3.0..3.0f64).powi(3)).collect();
        quantile_strata(&values, 5).expect("finite")
    };
    assert_eq!(check_law(bins, |column| SplitStrategy::Stratified(column), law), 300);
}

#[test]
fn no_group_is_on_two_sides() {
    let law = |split: &Split, groups: &[usize], fractions: Fractions| {
        let mut side = vec![None; groups.len()];
        let largest =
            (0..groups.len()).map(|g| groups.iter().filter(|o| **o == g).count()).max().unwrap_or(0);
        for part in SplitPart::ALL {
            for &row in split.part(part) {
                assert!(*side[groups[row]].get_or_insert(part) == part, "group {}", groups[row]);
            }
        }
        // A group goes to the part that lacks most rows: no part exceeds its size by a whole group.
        let sizes = fractions.sizes(groups.len()).expect("enough");
        for (part, size) in SplitPart::ALL.into_iter().zip([sizes.train, sizes.validation, sizes.test]) {
            assert!(split.part(part).len() < size + largest, "{part:?}");
        }
    };
    let groups = |rows: usize, rng: &mut ChaCha8Rng| {
        let count = rng.random_range(3..20usize);
        codes(&(0..rows).map(|_| rng.random_range(0..count)).collect::<Vec<_>>())
    };
    assert_eq!(check_law(groups, |column| SplitStrategy::Group(column), law), 300);
}

#[test]
fn time_split_tests_the_latest_rows_and_divides_no_time() {
    let latest = |rows: &[usize], times: &[i64]| rows.iter().map(|row| times[*row]).max();
    let earliest = |rows: &[usize], times: &[i64]| rows.iter().map(|row| times[*row]).min();
    let mut made = 0;
    for seed in 0..300 {
        let mut random = rng(seed);
        let rows = random.random_range(20..200usize);
        let range = random.random_range(5..300i64);
        let times: Vec<i64> = (0..rows).map(|_| random.random_range(-range..range)).collect();
        let strategy = SplitStrategy::Time(&times);
        let splits = folds(rows, &strategy, 3, Fractions::default(), &mut rng(0)).unwrap_or_default();
        let split = Split::new(rows, &strategy, Fractions::default(), &mut rng(0));
        if let Ok(split) = &split {
            check_partition(split, rows);
            let sizes = Fractions::default().sizes(rows).expect("enough");
            assert!(split.test.len() >= sizes.test && split.validation.len() >= sizes.validation);
            assert_eq!(
                split,
                &Split::new(rows, &strategy, Fractions::default(), &mut rng(1)).expect("as before")
            );
        }
        for split in splits.iter().chain(&split) {
            assert!(latest(&split.train, &times) < earliest(&split.validation, &times));
            assert!(latest(&split.validation, &times) < earliest(&split.test, &times));
            made += 1;
        }
    }
    assert!(made > 900, "{made}");
    let ties = [1, 1, 1, 2, 2, 3, 4, 4, 5, 5];
    let split = Split::new(
        10,
        &SplitStrategy::Time(&ties),
        Fractions::new(0.1, 0.1).expect("fractions"),
        &mut rng(0),
    );
    let expect =
        Split { train: vec![0, 1, 2, 3, 4, 5], validation: vec![6, 7], test: vec![8, 9], aside: vec![] };
    assert_eq!(split, Ok(expect));
}

#[test]
fn column_can_name_the_parts() {
    let names = ["test", "train", "validation", "train"];
    let parts = SplitPart::parse_column(names).expect("parts");
    let split = Split::new(4, &SplitStrategy::Labels(&parts), Fractions::default(), &mut rng(0));
    assert_eq!(split, Ok(Split { train: vec![1, 3], validation: vec![2], test: vec![0], aside: vec![] }));
}

#[test]
fn folds_test_every_row_once() {
    let mut random = rng(9);
    let strata: Vec<usize> = (0..103).map(|_| random.random_range(0..4)).collect();
    let groups: Vec<usize> = (0..103).map(|_| random.random_range(0..25)).collect();
    for (strategy, slack) in [
        (SplitStrategy::Random, 1),
        (SplitStrategy::Stratified(&strata), 1),
        (SplitStrategy::Group(&groups), 8),
    ] {
        let splits = folds(103, &strategy, 5, Fractions::default(), &mut rng(4)).expect("folds");
        assert_eq!(splits, folds(103, &strategy, 5, Fractions::default(), &mut rng(4)).expect("again"));
        let mut tested = Vec::new();
        for split in &splits {
            check_partition(split, 103);
            assert!(
                split.test.len().abs_diff(103 / 5) <= slack,
                "{} of {}",
                split.test.len(),
                strategy.name()
            );
            assert!(split.validation.len().abs_diff(10) < slack, "{}", split.validation.len());
            tested.extend(split.test.clone());
            if let SplitStrategy::Group(groups) = strategy {
                let of = |rows: &[usize]| rows.iter().map(|row| groups[*row]).collect::<Vec<_>>();
                let (train, validation) = (of(&split.train), of(&split.validation));
                assert!(
                    !of(&split.test).iter().any(|group| train.contains(group) || validation.contains(group))
                );
                assert!(!validation.iter().any(|group| train.contains(group)));
            }
            if let SplitStrategy::Stratified(strata) = strategy {
                for stratum in 0..4 {
                    let among =
                        |rows: &[usize]| rows.iter().filter(|row| strata[**row] == stratum).count() as f64;
                    let all = strata.iter().filter(|other| **other == stratum).count() as f64;
                    let share = all * split.test.len() as f64 / 103.0;
                    assert!((among(&split.test) - share).abs() < 1.0, "stratum {stratum}");
                }
            }
        }
        tested.sort_unstable();
        assert_eq!(tested, (0..103).collect::<Vec<_>>(), "{}", strategy.name());
        let validated: std::collections::BTreeSet<_> = splits.iter().map(|split| &split.validation).collect();
        assert_eq!(validated.len(), 5, "another part validates each fold");
    }
}

#[test]
fn refuses_impossible_splits() {
    let half = Fractions::new(0.01, 0.01).expect("fractions");
    let labels = vec![SplitPart::Train; 20];
    let new = |rows, strategy: SplitStrategy<'_>, fractions| {
        Split::new(rows, &strategy, fractions, &mut rng(0)).map(drop)
    };
    let fold = |rows, strategy: SplitStrategy<'_>, count| {
        folds(rows, &strategy, count, Fractions::default(), &mut rng(0)).map(drop)
    };
    let usual = Fractions::default();
    for (result, expect) in [
        (
            new(9, SplitStrategy::Random, usual),
            "9 rows give 0 for validation and 1 for the test; use at least 10",
        ),
        (new(99, SplitStrategy::Random, half), "use at least 100 rows"),
        (
            new(20, SplitStrategy::Time(&[1; 19]), usual),
            "\"time\" needs a value for each of 20 rows; the column has 19",
        ),
        (
            new(20, SplitStrategy::Time(&[1; 20]), usual),
            "leaves no row for train among 20; too many rows share a time",
        ),
        (
            new(20, SplitStrategy::Group(&[1; 20]), usual),
            "each part needs a group: 3 groups are needed, but the column has 1",
        ),
        (
            new(20, SplitStrategy::Labels(&labels), usual),
            "leaves no row for validation among 20; label some rows",
        ),
        (fold(20, SplitStrategy::Labels(&labels), 3), "use the strategy \"group\""),
        (fold(20, SplitStrategy::Random, 1), "not 1 for 20 rows; use 5"),
        (fold(4, SplitStrategy::Random, 5), "not 5 for 4 rows"),
        (fold(2, SplitStrategy::Random, 2), "leaves no row for train"),
        (fold(20, SplitStrategy::Group(&[1; 20]), 2), "2 groups are needed"),
        (fold(20, SplitStrategy::Time(&[1; 20]), 2), "leaves no row for train"),
        (
            SplitPart::parse_column(["train", "tset"]).map(drop),
            "row 1 (from 0) has the label \"tset\"; did you mean \"test\"?",
        ),
    ] {
        let error: SplitError = result.expect_err(expect);
        assert!(error.to_string().contains(expect), "{error}");
    }
}

#[test]
fn search_over_settings_never_uses_the_test_rows() {
    let rng = || ChaCha8Rng::seed_from_u64(3);
    let whole =
        Split::new(101, &SplitStrategy::Random, Fractions::default(), &mut rng()).expect("enough rows");
    for alternate in [false, true] {
        let tuning = whole.clone().for_tuning(alternate).expect("enough rows");
        assert_eq!((&tuning.train, &tuning.aside), (&whole.train, &whole.test));
        assert_eq!((tuning.validation.len(), tuning.test.len(), tuning.rows()), (5, 5, 101));
        let mut halves = [tuning.validation.clone(), tuning.test.clone()].concat();
        halves.sort_unstable();
        let mut validation = whole.validation.clone();
        validation.sort_unstable();
        assert_eq!(halves, validation);
        assert_eq!(tuning.validation[1] == whole.validation[1], !alternate);
    }
    let one = Split { train: vec![0], validation: vec![1], test: vec![2], aside: vec![] };
    assert!(one.for_tuning(false).is_err(), "one validation row cannot be two parts");
}

#[test]
fn leaves_out_rows_without_a_part() {
    let parts = [Some(SplitPart::Test), None, Some(SplitPart::Train), Some(SplitPart::Validation), None];
    let split = Split::given(&parts).expect("each part has a row");
    assert_eq!(split, Split { train: vec![2], validation: vec![3], test: vec![0], aside: vec![1, 4] });
    assert!(Split::given(&[None, Some(SplitPart::Train), Some(SplitPart::Test)]).is_err());
}
