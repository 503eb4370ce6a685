//! Tests of `posterior` on tables with a known true record.

use fet_core::data::Matrix;
use fet_core::linker::link;
use fet_core::rng::{Purpose, stream};
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// Returns keys, records in a different order, and the true record of each row.
fn tables(rows: usize, noise: f64) -> (Keys, Keys, Vec<u32>) {
    let mut rng = stream(9, 0, Purpose::Linking, 0);
    let mut normal = || StandardNormal.sample(&mut rng);
    let keys: Vec<f64> = (0..2 * rows).map(|_| normal()).collect();
    let records: Vec<f64> = keys.iter().map(|key| key + noise * normal()).collect();
    let order: Vec<usize> = (0..rows).map(|row| row * 7 % rows).collect();
    let mut place = vec![0; rows];
    order.iter().enumerate().for_each(|(at, &row)| place[row] = at as u32);
    let records = Matrix::new(2, records).select_rows(&order);
    (Matrix::new(2, keys).into(), records.into(), place)
}

fn linker(text: &str) -> Box<dyn Linker> {
    let table = text.parse().expect("TOML");
    Slot::<dyn Linker>::from_table(table).expect("settings").build(&()).expect("sound")
}

/// Returns the mean probability of the right record.
fn right(settings: &str, noise: f64) -> f64 {
    let (queries, records, place) = tables(1000, noise);
    let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
    let of = |(row, place): (usize, &u32)| {
        let at = links.row(row).iter().position(|record| record == place);
        at.map_or(0.0, |at| f64::from(links.similarities(row).expect("similarities")[at]).exp())
    };
    place.iter().enumerate().map(of).sum::<f64>() / place.len() as f64
}

const INNER: &str = "inner = { kind = 'nearest', neighbours = 10 }";

#[test]
fn one_to_one_improves_on_distance_and_the_error_is_estimated() {
    let known = right(&format!("kind = 'posterior'\nnoise = 0.05\none_to_one = false\n{INNER}"), 0.05);
    let matched = right(&format!("kind = 'posterior'\nnoise = 0.05\n{INNER}"), 0.05);
    let estimated = right(&format!("kind = 'posterior'\n{INNER}"), 0.05);
    assert!(matched > known + 0.05, "{known} {matched} {estimated}");
    assert!((estimated - matched).abs() < 0.05, "{matched} {estimated}");
}

/// The estimate from all rows of the run applies to a single row.
#[test]
fn the_error_is_that_of_the_run_where_it_is_given() {
    let (queries, records, _) = tables(1000, 0.05);
    let linker = linker(&format!("kind = 'posterior'\none_to_one = false\n{INNER}"));
    let links = |queries: &Keys, estimate| {
        let task = LinkTask { estimate, ..LinkTask::new(queries, &records) };
        linker.data_holder(3).link(&task).expect("linkable")
    };
    let run = links(&queries, None);
    let alone = queries.select_rows(&[17]);
    assert_eq!(links(&alone, run.estimate()).row(0), run.row(17));
    assert_eq!(links(&alone, run.estimate()).similarities(0), run.similarities(17));
    assert_ne!(links(&alone, None).similarities(0), run.similarities(17));
}

/// Keys have one column and s = 1. The row at -20 lacks a record, and does not take the record of the row at
/// 0.5.
#[test]
fn a_row_far_from_every_record_takes_none_from_others() {
    let keys = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
    let settings = "kind = 'posterior'\nnoise = 1\ninner = { kind = 'nearest', neighbours = 2 }";
    let links = link(linker(settings).as_ref(), &keys(&[0.5, -20.0]), &keys(&[0.0, 4.0]), 3, &|_| ());
    let links = links.expect("linkable");
    let first = f64::from(links.similarities(0).expect("similarities")[0]).exp();
    assert!(links.row(0)[0] == 0 && first > 0.99, "{first}");
}

/// Keys have one column and s = 2: a distance of d has the likelihood −d²/8, and a row that is very far has a finite
/// one. The differences within a row are those of the probabilities.
#[test]
fn a_likelihood_tells_the_distance() {
    let keys = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
    let found = |similarity: &str| {
        let settings = format!(
            "kind = 'posterior'\nnoise = 2\none_to_one = false\nsimilarity = '{similarity}'\ninner = {{ kind = 'nearest', neighbours = 2 }}"
        );
        let (queries, records) = (keys(&[1.0, -2e6]), keys(&[0.0, 4.0]));
        link(linker(&settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable")
    };
    let (likelihood, probability) = (found("likelihood"), found("probability"));
    let near = |found: &[f32], expected: &[f32]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} {expected:?}");
    };
    let [of_row, far] = [0, 1].map(|row| likelihood.similarities(row).expect("similarities"));
    near(of_row, &[-1.0 / 8.0, -9.0 / 8.0]);
    assert!(far.iter().all(|value| *value < -9_000.0 && value.is_finite()), "{far:?}");
    let shares = probability.similarities(0).expect("similarities");
    near(&[shares[0] - shares[1]], &[of_row[0] - of_row[1]]);
}

/// With one-to-one links, too, a likelihood tells the distance: it is nearly −d²/2 if one record is much nearer than
/// the other, and not the preference of the record for this row.
#[test]
fn a_likelihood_of_one_to_one_links_tells_the_distance() {
    let keys = |values: &[f64]| Keys::from(Matrix::new(1, values.to_vec()));
    let settings = "kind = 'posterior'\nnoise = 1\nsimilarity = 'likelihood'\ninner = { kind = 'nearest', neighbours = 2 }";
    let (queries, records) = (keys(&[0.2, 101.5, 203.0]), keys(&[0.0, 100.0, 200.0]));
    let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
    for (row, distance) in [0.2f32, 1.5, 3.0].into_iter().enumerate() {
        let found = links.similarities(row).expect("similarities")[0];
        assert!((found + distance * distance / 2.0).abs() < 1e-3, "{distance}: {found}");
    }
}

/// A single code for a missing key (-999) does not make the links of all other rows equally likely.
#[test]
fn one_outlier_does_not_change_the_estimate() {
    let (queries, records, place) = tables(300, 0.02);
    let mut values = queries.numbers().expect("numbers").values().to_vec();
    let right = |values: Vec<f64>| {
        let queries = Keys::from(Matrix::new(2, values));
        let settings = "kind = 'posterior'\ninner = { kind = 'nearest', neighbours = 5 }";
        let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
        let of = |row: usize| {
            let at = links.row(row).iter().position(|record| *record == place[row]);
            at.map_or(0.0, |at| f64::from(links.similarities(row).expect("similarities")[at]).exp())
        };
        (1..300).map(of).sum::<f64>() / 299.0
    };
    let before = right(values.clone());
    values[..2].fill(-999.0);
    let after = right(values);
    assert!(before > 0.8 && (before - after).abs() < 0.01, "{before} {after}");
}

#[test]
fn probabilities_of_a_row_sum_to_one() {
    let (queries, records, _) = tables(100, 0.3);
    for settings in
        ["kind = 'posterior'", "kind = 'posterior'\none_to_one = false", "kind = 'posterior'\nnoise = 1e-300"]
    {
        let links = link(linker(settings).as_ref(), &queries, &records, 3, &|_| ()).expect("linkable");
        for row in 0..100 {
            let all = links.similarities(row).expect("similarities");
            let sum: f64 = all.iter().map(|&l| f64::from(l).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4 && all.iter().all(|l| l.is_finite()), "{settings}: {sum}");
        }
    }
}

#[test]
fn an_inner_linker_without_similarities_is_refused() {
    let table = "kind = 'posterior'\ninner = { kind = 'random' }".parse().expect("TOML");
    let slot = Slot::<dyn Linker>::from_table(table).expect("settings");
    let Err(error) = slot.build(&()) else { panic!("it is refused") };
    assert!(error.to_string().contains("inner.kind"), "{error}");
}
