//! The surface's sensitivity, account, noise and values.

use fet_privacy::accountant::{Event, Total, gaussian};
use fet_privacy::surface::{Design, Pyramid, Relation, Surface, UNIT};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DELTA: f64 = 1e-5;

fn pyramid(dimensions: usize) -> Pyramid {
    Pyramid::new(&[[-1.0, 1.0], [0.0, 4.0]][..dimensions], 2, 16).expect("valid")
}

fn design(dimensions: usize, columns: usize, relation: Relation, epsilon: f64) -> Design {
    Design::for_target(pyramid(dimensions), columns, relation, [epsilon, DELTA]).expect("in range")
}

/// A record: its key and its numbers in [−1, 1].
#[derive(Debug, Clone)]
struct Record(Vec<f64>, Vec<f64>);

fn totals(design: &Design, records: &[Record]) -> Vec<i64> {
    let vectors = records.iter().map(|Record(key, values)| (key.as_slice(), design.vector(values)));
    design.pyramid().totals(1 + design.columns(), vectors)
}

fn distance(one: &[i64], other: &[i64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>().sqrt()
}

/// Draws a record. One in ten lies outside the area, half of the numbers are at an end of their range, and
/// some are missing or outside.
fn record(design: &Design, rng: &mut ChaCha8Rng) -> Record {
    let mut number = |low: f64, high: f64| match rng.random_range(0..8) {
        0 | 1 => low,
        2 | 3 => high,
        _ => rng.random_range(low..high),
    };
    let key = [[-1.1, 1.0], [0.0, 4.2]].map(|[low, high]| number(low, high));
    let mut values: Vec<f64> = (0..design.columns()).map(|_| number(-1.0, 1.0)).collect();
    if let Some(value) = values.first_mut() {
        match rng.random_range(0..20) {
            0 => *value = f64::NAN,
            1 => *value = 1e300,
            _ => {}
        }
    }
    Record(key[..design.pyramid().dimensions()].to_vec(), values)
}

/// The totals of neighbouring tables are never farther apart than the stated sensitivity, over 10,000 random
/// pairs for each design, and some pair reaches it.
#[test]
fn neighbouring_tables_are_within_the_stated_sensitivity_and_reach_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for dimensions in [1, 2] {
        for columns in [0, 1, 2, 3, 4] {
            for relation in [Relation::AddRemove, Relation::Record] {
                let design = design(dimensions, columns, relation, 1.0);
                let common: Vec<Record> = (0..3).map(|_| record(&design, &mut rng)).collect();
                let base = totals(&design, &common);
                let mut most = 0.0f64;
                for _ in 0..10_000 {
                    let record = record(&design, &mut rng);
                    let mut other = self::record(&design, &mut rng);
                    if rng.random_bool(0.5) {
                        other.0.clone_from(&record.0);
                    }
                    if rng.random_bool(0.5) {
                        other.1 = record.1.iter().map(|value| -value).collect();
                    }
                    // The common records add the same to both tables.
                    let with = totals(&design, &[record]);
                    let moved = match relation {
                        Relation::AddRemove => distance(&with, &vec![0; with.len()]),
                        Relation::Record => distance(&with, &totals(&design, &[other])),
                    };
                    most = most.max(moved);
                }
                let stated = design.sensitivity();
                assert!(most <= stated, "{dimensions} {columns} {relation:?}: {most} > {stated}");
                // Rounding to whole units loses up to 1/q where √d is no whole number.
                assert!(most > stated * (1.0 - 2e-3), "{dimensions} {columns} {relation:?}: {most} {stated}");
                let whole = distance(
                    &totals(
                        &design,
                        &[&common[..], &[Record(vec![0.1; dimensions], vec![1.0; columns])]].concat(),
                    ),
                    &base,
                );
                assert!(whole <= stated, "in a table with other records: {whole} > {stated}");
            }
        }
    }
}

/// √(2L)·c holds only for c² ≤ 2. With the weight of the count for each of two numbers, c² is 3, and a record whose
/// numbers change their signs within its cell moves √(8L), more than √(6L).
#[test]
fn equal_weights_of_two_numbers_would_break_the_bound_for_replaced_records() {
    let pyramid = pyramid(2);
    let key = [0.3, 1.0];
    let totals = |sign: i64| pyramid.totals(3, [(key.as_slice(), vec![UNIT, sign * UNIT, sign * UNIT])]);
    let moved = distance(&totals(1), &totals(-1));
    let levels = pyramid.levels() as f64;
    assert!((moved - UNIT as f64 * (8.0 * levels).sqrt()).abs() < 1e-6, "{moved}");
    assert!(moved > UNIT as f64 * (2.0 * levels * 3.0).sqrt());
    // The weight 1/√2 of the design keeps both cases equal.
    let design = design(2, 2, Relation::Record, 1.0);
    assert!((design.sensitivity() - UNIT as f64 * (4.0 * levels).sqrt()).abs() < 1e-6);
}

/// The analytic Gaussian mechanism's noise multipliers from an independent library (δ = 1e-5).
#[test]
fn the_noise_is_the_smallest_that_meets_the_target() {
    for (epsilon, expected) in [(0.1, 30.7496), (1.0, 3.73063), (3.0, 1.39059), (5.0, 0.891868)] {
        for (dimensions, columns) in [(1, 0), (2, 1), (2, 5)] {
            for relation in [Relation::AddRemove, Relation::Record] {
                let design = design(dimensions, columns, relation, epsilon);
                let found = design.noise_multiplier();
                assert!(found >= expected * (1.0 - 1e-5), "{epsilon}: {found}");
                assert!(found <= expected * (1.0 + 1e-4), "{epsilon}: {found}");
                assert!(design.epsilon(DELTA) <= epsilon);
            }
        }
    }
}

/// Returns δ of the discrete Gaussian of parameter s at ε for a shift by whole units, summed outcome by
/// outcome: an account that shares no code with the accountant.
fn delta_by_sum(deviation: f64, shift: i64, epsilon: f64) -> f64 {
    let density = |k: i64| (-0.5 * (k as f64 / deviation).powi(2)).exp();
    let reach = (12.0 * deviation) as i64 + shift;
    let normaliser: f64 = (-reach..=reach).map(density).sum();
    let gain = |k: i64| (density(k) - epsilon.exp() * density(k - shift)).max(0.0);
    (-reach..=reach).map(gain).sum::<f64>() / normaliser
}

/// 1,000 seeded settings: the sum over outcomes never finds a larger δ than claimed, nor one far below.
#[test]
fn no_account_is_below_the_sum_over_outcomes() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..1_000 {
        let (coarsest, doubled) = (rng.random_range(1..5usize), rng.random_range(0..5));
        let dimensions = rng.random_range(1..3usize);
        let area = &[[-1.0, 1.0], [0.0, 4.0]][..dimensions];
        let pyramid = Pyramid::new(area, coarsest, coarsest << doubled).expect("valid");
        let relation = if rng.random_bool(0.5) { Relation::AddRemove } else { Relation::Record };
        let (epsilon, exponent) = (rng.random_range(0.3..9.0), rng.random_range(3.0..8.0));
        let delta = 10f64.powf(-exponent);
        let target = [epsilon, delta];
        let design = Design::for_target(pyramid, rng.random_range(0..4), relation, target).expect("in range");
        // A shift by the sensitivity, or by the next smaller whole number.
        let found = delta_by_sum(design.deviation(), design.sensitivity() as i64, design.epsilon(delta));
        assert!(found <= delta, "{target:?} {relation:?}: {found}");
        assert!(found > 0.98 * delta, "{target:?} {relation:?}: {found}");
    }
}

#[test]
fn a_person_in_several_tables_has_the_composition() {
    let designs: Vec<Design> =
        [(1.0, 1), (3.0, 2), (0.5, 0)].map(|(epsilon, d)| design(2, d, Relation::Record, epsilon)).to_vec();
    let precision: f64 = designs.iter().map(|design| design.noise_multiplier().powi(-2)).sum();
    let expected = gaussian::epsilon(precision.sqrt(), DELTA);
    let found = Design::epsilon_of_all(&designs, DELTA);
    assert!(found >= expected && found < expected * 1.001, "{found} {expected}");
    assert!((3.0..4.5).contains(&found), "more than one, less than the sum: {found}");
    let events = designs.iter().map(|design| Event { noise: design.noise_multiplier(), rate: 1.0, steps: 1 });
    let mut total = Total::default();
    total.add_gaussian(events, designs.iter().map(|design| design.len() as f64).sum());
    assert_eq!(found, total.epsilon(DELTA));
}

/// The released noise is the discrete Gaussian of the design: χ² in 64 cells of equal probability within 4.75
/// deviations (α = 1e-6).
#[test]
fn a_release_adds_the_noise_of_the_design_once() {
    let pyramid = Pyramid::new(&[[0.0, 1.0], [0.0, 1.0]], 4, 256).expect("valid");
    let design = Design::for_target(pyramid, 3, Relation::AddRemove, [1.0, DELTA]).expect("in range");
    let zeros = vec![0; design.len()];
    let draw = |seed| design.release(zeros.clone(), &mut ChaCha8Rng::seed_from_u64(seed));
    let noise = draw(1);
    assert_eq!(noise, draw(1), "the same stream gives the same release");
    assert_ne!(noise, draw(2));
    let moved = design.release(vec![7; design.len()], &mut ChaCha8Rng::seed_from_u64(1));
    assert!(moved.iter().zip(&noise).all(|(with, without)| with - without == 7));
    let mut cells = [0.0f64; 64];
    for &value in &noise {
        // At thousands of units the distribution function is that of the Gaussian, half a unit farther.
        let share = 0.5 * libm::erfc(-(value as f64) / design.deviation() / std::f64::consts::SQRT_2);
        cells[((share * 64.0) as usize).min(63)] += 1.0;
    }
    let expected = noise.len() as f64 / 64.0;
    let misfit: f64 = cells.iter().map(|found| (found - expected).powi(2) / expected).sum();
    assert!((misfit - 63.0) / (2.0 * 63.0f64).sqrt() < 4.75, "{misfit}");
}

/// Value of a place, which varies by coarse cells and within them.
fn field(x: f64, y: f64) -> f64 {
    0.6 * (3.0 * x).sin() * (y - 2.0) / 2.0 + 0.2
}

fn places(rows: usize, seed: u64) -> Vec<Record> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let place = |_| {
        let (x, y) = (rng.random_range(-1.0..1.0), rng.random_range(0.0..4.0));
        let noise = rng.random_range(-0.2..0.2);
        Record(vec![x, y], vec![field(x, y) + noise])
    };
    (0..rows).map(place).collect()
}

/// Returns the surface of a table at ε, and its root mean squared error.
fn error(records: &[Record], epsilon: f64, seed: u64) -> (Surface, f64) {
    let design = design(2, 1, Relation::AddRemove, epsilon);
    let released = design.release(totals(&design, records), &mut ChaCha8Rng::seed_from_u64(seed));
    let surface = Surface::new(&design, &released).expect("a release of the design");
    let squared = |Record(key, _): &Record| {
        let [mean, _] = surface.at(key).means[0];
        (mean - field(key[0], key[1])).powi(2)
    };
    let tested = places(2_000, 99);
    let error = (tested.iter().map(squared).sum::<f64>() / tested.len() as f64).sqrt();
    (surface, error)
}

/// The values vary by 0.27 around their mean. A surface of 20,000 places follows them at ε = 1, less so at
/// ε = 0.05, and never errs more than the mean alone.
#[test]
fn a_surface_follows_the_values_as_far_as_the_noise_allows() {
    let records = places(20_000, 1);
    let errors = [100.0, 1.0, 0.05].map(|scale: f64| error(&records, scale.min(15.0), 3).1);
    assert!(errors[0] < 0.06 && errors[1] < 0.08, "{errors:?}");
    assert!(errors[1] < errors[2] && errors[2] < 0.28, "{errors:?}");
    let (surface, _) = error(&records, 1.0, 3);
    let count = surface.at(&[0.1, 0.1]).count;
    assert!((count - 20_000.0 / 256.0).abs() < 60.0, "{count}");
    // Without records, the noise alone gives no value far from the middle.
    let (surface, _) = error(&[], 1.0, 3);
    assert!(places(100, 4).iter().all(|Record(key, _)| surface.at(key).means[0][0].abs() < 0.2));
}

/// The stated deviations are those of the errors: the mean of squared standardised errors is near 1, over 40
/// releases of 20,000 places (within a factor of 2: the model of a field is not exact).
#[test]
fn the_stated_deviation_of_a_mean_is_that_of_its_error() {
    let records = places(20_000, 1);
    let (mut squares, mut count) = (0.0, 0.0);
    for seed in 0..40 {
        let (surface, _) = error(&records, 0.5, seed);
        // Centres of the finest cells: the value there is close to the mean of the cell.
        for place in 0..256 {
            let key = [-1.0 + (f64::from(place / 16) + 0.5) / 8.0, (f64::from(place % 16) + 0.5) / 4.0];
            let [mean, deviation] = surface.at(&key).means[0];
            squares += ((mean - field(key[0], key[1])) / deviation).powi(2);
            count += 1.0;
        }
    }
    let ratio = squares / count;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

/// Few records show little of a mean, so that a deviation of 0 would be wrong. The mean over 40 releases of the
/// squared standardised errors is at most 4; a level whose likeliest spread is 0 cannot make the error 0.
#[test]
fn few_records_leave_a_deviation() {
    let records: Vec<Record> =
        places(20, 5).into_iter().map(|Record(key, _)| Record(key, vec![0.8])).collect();
    let (mut squares, mut count) = (0.0, 0.0);
    for seed in 0..40 {
        let (surface, _) = error(&records, 3.0, seed);
        for Record(key, values) in &records {
            let [mean, deviation] = surface.at(key).means[0];
            assert!(deviation > 0.02, "seed {seed}: {mean} {deviation}");
            squares += ((mean - values[0]) / deviation).powi(2);
            count += 1.0;
        }
    }
    assert!(squares / count < 4.0, "{}", squares / count);
}

#[test]
fn a_release_of_another_length_is_no_surface() {
    let design = design(2, 1, Relation::AddRemove, 1.0);
    assert!(Surface::new(&design, &[0; 3]).is_none());
}
