//! The account of the code, against the enumeration of all outcomes.

use fet_privacy::accountant::gaussian;
use fet_privacy::code::{Code, CodeDesign, CodeRelation, SymbolSums};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RELATIONS: [CodeRelation; 3] = [CodeRelation::AddRemove, CodeRelation::Replace, CodeRelation::Features];

/// A record: its place, and its symbol.
type Record = (usize, usize);

/// Number of places of the small tables.
const PLACES: usize = 3;

/// Returns the probability of these symbols at all places.
fn probability(code: &Code, records: &[Record], symbols: &[usize]) -> f64 {
    let of = |place: usize| {
        let offers: Vec<usize> =
            records.iter().filter(|record| record.0 == place).map(|record| record.1).collect();
        code.probability(symbols[place], &offers)
    };
    (0..PLACES).map(of).product()
}

/// Returns all lists of symbols of the places.
fn outcomes(symbols: usize) -> Vec<Vec<usize>> {
    let all = symbols.pow(PLACES as u32);
    (0..all)
        .map(|code| (0..PLACES).map(|place| code / symbols.pow(place as u32) % symbols).collect())
        .collect()
}

/// Returns the largest logarithm of a ratio over all outcomes.
fn loss(code: &Code, symbols: usize, one: &[Record], other: &[Record]) -> f64 {
    let ratio = |outcome: &Vec<usize>| {
        (probability(code, one, outcome) / probability(code, other, outcome)).ln().abs()
    };
    outcomes(symbols).iter().map(ratio).fold(0.0, f64::max)
}

/// All tables of up to two common records with all neighbours: no loss is above the account, and some pair reaches it.
#[test]
fn no_pair_of_tables_loses_more_than_the_account_and_some_reach_it() {
    for symbols in [2, 3] {
        let records: Vec<Record> =
            (0..PLACES).flat_map(|place| (0..symbols).map(move |symbol| (place, symbol))).collect();
        let mut tables: Vec<Vec<Record>> = vec![Vec::new()];
        tables.extend(records.iter().map(|record| vec![*record]));
        tables.extend(records.iter().flat_map(|one| records.iter().map(|other| vec![*one, *other])));
        for relation in RELATIONS {
            for epsilon in [0.4, 1.0, 3.0] {
                let code = Code::for_target(symbols, relation, epsilon).expect("in range");
                let stated = code.epsilon(relation);
                assert!(stated <= epsilon && stated > epsilon - 1e-6, "{relation:?} {epsilon}: {stated}");
                let mut most = 0.0f64;
                for table in &tables {
                    let with = |record: Record| [table.as_slice(), &[record]].concat();
                    for &one in &records {
                        if relation == CodeRelation::AddRemove {
                            most = most.max(loss(&code, symbols, &with(one), table));
                            continue;
                        }
                        for &other in &records {
                            if relation == CodeRelation::Replace || one.0 == other.0 {
                                most = most.max(loss(&code, symbols, &with(one), &with(other)));
                            }
                        }
                    }
                }
                assert!(most <= stated + 1e-9, "{symbols} {relation:?} {epsilon}: {most} > {stated}");
                assert!(most > stated - 1e-9, "{symbols} {relation:?} {epsilon}: {most} < {stated}");
            }
        }
    }
}

/// Closed forms for ten symbols at ε = 3, and 1,000 seeded settings of all relations.
#[test]
fn accounts_are_those_of_the_closed_forms() {
    let of = |relation| Code::for_target(10, relation, 3.0).expect("in range");
    let code = of(CodeRelation::AddRemove);
    assert!((code.truth() - (1.0 - 0.9 * (-3f64).exp())).abs() < 1e-9, "{}", code.truth());
    assert!((code.response_epsilon() - 5.256).abs() < 1e-3, "{}", code.response_epsilon());
    let code = of(CodeRelation::Replace);
    assert!((code.truth() - 0.1 * 1.5f64.exp()).abs() < 1e-9, "{}", code.truth());
    assert!((code.response_epsilon() - 1.990).abs() < 1e-3, "{}", code.response_epsilon());
    assert!((of(CodeRelation::Features).response_epsilon() - 3.0).abs() < 1e-9);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..1_000 {
        let (k, epsilon) = (rng.random_range(2..200usize), rng.random_range(0.05..9.0));
        for relation in RELATIONS {
            let code = Code::for_target(k, relation, epsilon).expect("in range");
            let (p, k) = (code.truth(), k as f64);
            let (a, b) = ((k * p).ln(), ((k - 1.0) / (k * (1.0 - p))).ln());
            let closed = match relation {
                CodeRelation::AddRemove => a.max(b),
                CodeRelation::Replace => (a + b).max(2.0 * a).max(2.0 * b),
                CodeRelation::Features => a + b,
            };
            assert!(
                closed <= epsilon * (1.0 + 1e-9) && closed >= code.epsilon(relation) - 1e-9,
                "{k} {relation:?}"
            );
        }
    }
}

/// Symbols of places with 0, 1 and 2 offers have the stated probabilities: χ² of 200,000 draws with 4 degrees of
/// freedom below 33.4 each (α = 1e-6).
#[test]
fn symbols_are_drawn_as_stated() {
    let code = Code::for_target(5, CodeRelation::AddRemove, 1.0).expect("in range");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for offers in [&[][..], &[3], &[1, 4]] {
        let mut counts = [0.0; 5];
        (0..200_000).for_each(|_| counts[code.draw(offers, &mut rng)] += 1.0);
        let cell = |symbol: usize| {
            let expected = 200_000.0 * code.probability(symbol, offers);
            (counts[symbol] - expected) * (counts[symbol] - expected) / expected
        };
        let misfit: f64 = (0..5).map(cell).sum();
        assert!(misfit < 33.4, "{offers:?}: {misfit}");
    }
}

/// A record that gives two places the same symbol is certain to be there if they are equal for certain: different
/// symbols never occur with it, and have probability 1 − 1/k without it.
#[test]
fn one_symbol_for_two_places_has_no_bound_when_records_may_be_added() {
    let code = Code::for_target(10, CodeRelation::AddRemove, 3.0).expect("in range");
    let shared =
        |first: usize, second: usize| if first == second { code.probability(first, &[2]) } else { 0.0 };
    let without = |first: usize, second: usize| code.probability(first, &[]) * code.probability(second, &[]);
    let pairs = (0..10).flat_map(|first| (0..10).map(move |second| (first, second)));
    let delta: f64 = pairs
        .map(|(first, second)| (without(first, second) - 50f64.exp() * shared(first, second)).max(0.0))
        .sum();
    assert!((delta - 0.9).abs() < 1e-9, "δ at ε = 50: {delta}");
}

#[test]
fn refuses_targets_that_no_response_meets() {
    assert!(Code::for_target(1, CodeRelation::AddRemove, 1.0).is_err());
    assert!(Code::for_target(10, CodeRelation::AddRemove, 0.0).is_err());
    assert!(Code::for_target(10, CodeRelation::Replace, f64::NAN).is_err());
    assert!(Code::for_target(10, CodeRelation::Features, 30.0).is_ok(), "the most truthful response");
}

/// Random records of three columns: labels, and numbers mostly at the ends of their ranges.
fn record(rng: &mut ChaCha8Rng, columns: usize) -> (usize, Vec<f64>) {
    let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
        0 => rng.random_range(-1.0..1.0),
        1 => 0.0,
        2 => 1.0,
        _ => -1.0,
    };
    (rng.random_range(0..2), (0..columns).map(|_| value(rng)).collect())
}

/// The sums of neighbouring tables never differ by more than the sensitivity, and some reach it. A record may have no
/// label.
#[test]
fn sums_of_neighbouring_tables_are_within_the_sensitivity() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for columns in [1, 2, 5] {
        for relation in RELATIONS {
            let sums = SymbolSums::for_target([columns, 2], relation, [1.0, 1e-5]).expect("in range");
            let of = |record: &Option<(usize, Vec<f64>)>| {
                let mut totals = vec![0i64; sums.noise().count()];
                if let Some((label, values)) = record {
                    let own = sums.of_record(values);
                    totals[label * (columns + 1)..][..columns + 1].copy_from_slice(&own);
                }
                totals
            };
            let mut most = 0.0f64;
            for _ in 0..20_000 {
                let one = Some(record(&mut rng, columns));
                let other = match relation {
                    CodeRelation::AddRemove => None,
                    _ => Some(record(&mut rng, columns)).filter(|_| rng.random_range(0..8) > 0),
                };
                let moved: f64 = of(&one).iter().zip(of(&other)).map(|(a, b)| ((a - b) as f64).powi(2)).sum();
                most = most.max(moved.sqrt() / sums.noise().sensitivity());
            }
            assert!(most <= 1.0 && most > 0.999, "{columns} {relation:?}: {most}");
        }
    }
}

/// ε of sums and symbols is at most the stated one, and at least that of a perfect Gaussian with the symbols' closed form.
/// 1,000 seeded settings.
#[test]
fn sums_and_symbols_together_satisfy_the_target() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..1_000 {
        let shape = [rng.random_range(1..60), rng.random_range(2..20)];
        let (epsilon, share) = (rng.random_range(0.2..9.0), rng.random_range(0.1..0.9));
        let relation = RELATIONS[rng.random_range(0..3)];
        let design = CodeDesign::for_target(shape, relation, [epsilon, 1e-5], share).expect("in range");
        let found = CodeDesign::epsilon_of_all([&design], 1e-5);
        let exact = gaussian::epsilon(1.0 / design.sums.noise().noise_multiplier(), 1e-5)
            + design.code.epsilon(relation);
        assert!(found <= epsilon && found > 0.999 * epsilon, "{shape:?} {relation:?} {epsilon}: {found}");
        assert!(found >= exact - 1e-9, "{shape:?} {relation:?} {epsilon}: {found} {exact}");
        let both = CodeDesign::epsilon_of_all([&design, &design], 1e-5);
        assert!(both > found && both < 2.0 * found, "{both}");
    }
}

/// The sums of a release are those of the records, up to the noise: its standard deviation over 4,000 sums is the stated one
/// (the deviation of an estimate of that size is 1.1 %).
#[test]
fn released_sums_have_the_stated_noise() {
    let relation = CodeRelation::AddRemove;
    let sums = SymbolSums::for_target([399, 10], relation, [1.0, 1e-5]).expect("in range");
    let mut totals = vec![0i64; sums.noise().count()];
    let own = sums.of_record(&[0.5; 399]);
    (0..1_000).for_each(|_| totals[..400].iter_mut().zip(&own).for_each(|(total, own)| *total += own));
    let found = sums.release(totals, &mut ChaCha8Rng::seed_from_u64(2));
    let expected = |at: usize| match at {
        0 => 1_000.0,
        1..400 => 500.0,
        _ => 0.0,
    };
    let square: f64 = found.iter().enumerate().map(|(at, sum)| (sum - expected(at)).powi(2)).sum();
    let ratio = (square / found.len() as f64).sqrt() / sums.noise_of_count();
    assert!((ratio - 1.0).abs() < 0.06, "{ratio}");
}
