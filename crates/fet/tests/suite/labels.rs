//! Tests how much secondaries learn about the primary's labels from the gradients, and the effect of label
//! protections.
//!
//! The attacker is a secondary that follows the protocol; it clusters the gradients of the first epoch by
//! direction.

use std::sync::{Arc, Mutex};

use fet_core::data::{DatasetContext, Folders, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::message::Request;
use fet_core::party::Party;
use fet_core::rng::{OwnSeed, Purpose, stream};
use fet_federation::simulation::ObservedParty;
use fet_federation::trainer::Trainer;

use crate::attacks::record;
use crate::command::TINY;
use crate::errors::refuse;
use crate::support::{experiment, flex, intercepted, losses, square, trainer, watched};

/// Gradient of every row of every step, in the order of receipt.
type Received = Arc<Mutex<Vec<Vec<f32>>>>;

pub(crate) fn digits(experiment: &Experiment) -> VerticalData {
    let context = DatasetContext { folders: &Folders::default(), seed: experiment.seed, metadata: &[] };
    experiment.data.build(&context).expect("sound").load().expect("digits are compiled in")
}

/// Trains one epoch on digits. Returns the trainer, the gradients that the first secondary received, and the
/// true labels of their rows.
fn first_epoch(sets: &[&str]) -> (Trainer, Vec<Vec<f32>>, Vec<usize>) {
    let experiment = experiment(&[&["train.epochs=1", "method.dropout=0"], sets].concat());
    let data = digits(&experiment);
    let labels = data.labels.clone();
    let received = Received::default();
    let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
        if index != 0 {
            return Box::new(party);
        }
        let received = Arc::clone(&received);
        intercepted(party, move |party, request| {
            if let Request::Backward(message) = &request {
                let [_, positions, width] = message.gradient.shape();
                let rows = message.gradient.values().chunks(positions * width).map(<[f32]>::to_vec);
                received.lock().expect("no panic").extend(rows);
            }
            party.ask(request)
        })
    };
    let (mut trainer, _) = watched(&experiment, data, &flex(), wrap).expect("a trainer");
    losses(&mut trainer);
    let batches = trainer.schedule().batches(0);
    let labels = batches.iter().flatten().map(|&row| labels[row] as usize).collect();
    let received = std::mem::take(&mut *received.lock().expect("no panic"));
    (trainer, received, labels)
}

/// Returns the purity of the clusters of the first epoch's gradients.
fn leak(sets: &[&str]) -> f64 {
    let experiment = experiment(&[&["train.epochs=1", "method.dropout=0"], sets].concat());
    let record = record(&experiment, digits(&experiment), "kind = \"gradient-clustering\"");
    record.measures[0].value
}

/// A file sorted by the label reaches the secondaries in an order that reveals nothing about the labels.
///
/// Of 199 neighbouring pairs in this order, about half are ascending (a run test at α = 1e-6: 4.9 standard
/// deviations of √(200/12)). Each row still has its own record.
#[test]
fn order_of_sent_rows_reveals_no_labels() {
    let mut data = square(200, Task::Regression);
    data.labels.sort_by(f64::total_cmp);
    data.metadata.rows = (1000..1200).collect();
    let reorder = |seed: u8| fet_federation::data::reordered(data.clone(), &OwnSeed::new([seed; 32]));
    let (sent, again, other) = (reorder(1), reorder(1), reorder(2));
    assert_eq!(sent.labels, again.labels);
    assert_ne!(sent.labels, other.labels);
    let ascending = sent.labels.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((79..=120).contains(&ascending), "{ascending} of 199 pairs ascend");
    let (keys, before) = (sent.primary.keys.numbers(), data.primary.keys.numbers());
    let (keys, before) = (keys.expect("numbers"), before.expect("numbers"));
    let mut found = sent.metadata.rows.clone();
    for (row, &file_row) in found.iter().enumerate() {
        let place = file_row - 1000;
        assert_eq!((sent.labels[row], keys.row(row)), (data.labels[place], before.row(place)));
    }
    found.sort_unstable();
    assert_eq!(found, (1000..1200).collect::<Vec<_>>());
}

/// Without protection the gradients of one epoch reveal almost every label; the most frequent class has a
/// tenth of all labels.
///
/// The gradients also reveal a randomised label. The remaining protection is the probability that the
/// randomised answer is false.
#[test]
fn unprotected_gradients_reveal_labels() {
    let open = leak(&[]);
    eprintln!("purity without protection: {open:.3}");
    assert!(open > 0.9, "{open}");
    let mut last = open;
    for epsilon in [4.0f64, 2.0, 0.5] {
        let found = leak(&["labels.kind=randomised-response", &format!("labels.epsilon={epsilon}")]);
        let told = epsilon.exp() / (epsilon.exp() + 9.0);
        eprintln!("purity at ε = {epsilon}: {found:.3}; an answer is true with probability {told:.3}");
        // Five standard deviations of a frequency among 1,259 labels, and the gain of clusters of noise by
        // chance.
        assert!(found < last && found < told + 0.1, "{epsilon}: {found} {last} {told}");
        last = found;
    }
    let noisy = leak(&["labels.kind=noisy-gradients", "labels.clip=0.01", "labels.noise=4"]);
    eprintln!("purity with noise of 4 times the clipped gradient: {noisy:.3}");
    assert!(noisy < 0.25, "{noisy}");
}

/// The primary trains with the randomised answers, in their exact proportion, but validates and tests with
/// true labels.
#[test]
fn randomises_only_training_labels() {
    // At ε = 20, the probability that any of 1,259 labels changes is 3e-5, so the run equals the run without
    // protection, bit for bit.
    let run = |sets: &[&str]| {
        let (trainer, received, _) = first_epoch(sets);
        (trainer.progress().epochs.clone(), received, trainer.label_privacy().expect("others take part"))
    };
    let open = run(&[]);
    let told = run(&["labels.kind=randomised-response", "labels.epsilon=20"]);
    assert_eq!((&open.0, &open.1), (&told.0, &told.1));
    assert_eq!((open.2.epsilon, told.2.delta), (None, 0.0));
    assert!(told.2.epsilon.is_some_and(|epsilon| epsilon <= 20.0 && epsilon > 19.999), "{:?}", told.2);
    let half = run(&["labels.kind=randomised-response", "labels.epsilon=2"]);
    assert_ne!(open.1, half.1);
    // The answers depend on the run, not on the process, so they repeat.
    assert_eq!(half.1, run(&["labels.kind=randomised-response", "labels.epsilon=2"]).1);
}

/// If two data sets differ in one label, the gradient of its row differs by at most 2C, for any batch size.
/// The noise has the stated standard deviation.
#[test]
fn gradients_get_the_stated_clipping_and_noise() {
    const WIDTH: usize = 40;
    let build = |sets: &[&str]| {
        let experiment = experiment(&[&["labels.kind=noisy-gradients"], sets].concat());
        experiment.labels.build(&()).expect("sound")
    };
    let rng = |round| stream(4, 0, Purpose::Noise, round);
    // With almost no noise the result is the clipped row.
    let clipping = build(&["labels.clip=0.5", "labels.noise=1e-6"]);
    let mut rows: Vec<f32> = (0..3 * WIDTH).map(|i| [1e-3, 7.0, f32::NAN][i / WIDTH]).collect();
    clipping.gradients(&mut rows, WIDTH, &mut rng(0));
    let norm = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    assert!((norm(&rows[..WIDTH]) - 1e-3 * (WIDTH as f64).sqrt()).abs() < 1e-4, "short rows stay");
    assert!((norm(&rows[WIDTH..2 * WIDTH]) - 0.5).abs() < 1e-4, "long ones are cut");
    assert!(norm(&rows[2 * WIDTH..]) < 1e-4, "NaN contributes nothing");
    // χ² with n degrees of freedom has the standard deviation √(2n); 5.3 standard deviations are α = 1e-6,
    // two-sided.
    let noisy = build(&["labels.clip=0.5", "labels.noise=3"]);
    let n = 100_000;
    let mut values = vec![0.0f32; n];
    noisy.gradients(&mut values, WIDTH, &mut rng(1));
    let square: f64 = values.iter().map(|&x| (f64::from(x) / 1.5).powi(2)).sum();
    assert!((square - n as f64).abs() < 5.3 * (2.0 * n as f64).sqrt(), "{square}");
}

/// Computes μ by hand: every sent gradient, or one gradient per epoch, moves by 2C under noise of σC.
#[test]
fn account_counts_gradients() {
    let spent = |sets: &[&str]| {
        let sets = [&["labels.kind=noisy-gradients", "labels.noise=50", "train.epochs=3"], sets].concat();
        let trainer = trainer(&experiment(&sets), square(200, Task::Multiclass), &flex()).expect("a trainer");
        (trainer.label_privacy().expect("others take part"), trainer.split().train.len() as f64)
    };
    for (sets, rows) in [
        (&["labels.learning=counted"][..], None),
        (&["labels.learning=assumed"], Some(3.0)),
        (&["labels.learning=assumed", "labels.target_epsilon=2"], None),
        (&["labels.learning=counted", "labels.target_epsilon=2"], None),
    ] {
        let (found, train) = spent(sets);
        let epsilon = found.epsilon.expect("bounded");
        if sets.len() == 2 {
            assert!(epsilon <= 2.0 && epsilon > 1.999, "{sets:?}: {epsilon}");
        } else {
            let mu = 2.0 * rows.unwrap_or(3.0 * train).sqrt() / 50.0;
            let expected = fet_privacy::accountant::gaussian::epsilon(mu, 1e-5);
            assert!((epsilon - expected).abs() < 1e-9, "{sets:?}: {epsilon} {expected}");
        }
        assert_eq!(found.statement.contains("NOT COUNTED"), sets[0].ends_with("assumed"), "{found:?}");
    }
    // Poisson batches send a row each time it is drawn.
    let (found, _) = spent(&["labels.learning=assumed", "train.batches=poisson"]);
    let (shuffled, _) = spent(&["labels.learning=assumed"]);
    assert!(found.epsilon > shuffled.epsilon, "{found:?}");
    // A method of several steps over all rows sends every row in each of them.
    for trees in [20u32, 60] {
        let trees_set = format!("method.growth.trees={trees}");
        let sets = ["labels.learning=assumed", "method.kind=fet-trees", trees_set.as_str()];
        let epsilon = spent(&sets).0.epsilon.expect("bounded");
        let expected = fet_privacy::accountant::gaussian::epsilon(2.0 * f64::from(trees).sqrt() / 50.0, 1e-5);
        assert!((epsilon - expected).abs() < 1e-9, "{trees}: {epsilon} {expected}");
    }
    // With frozen secondaries no gradient leaves the primary.
    let frozen = ["privacy.kind=discrete-gaussian", "privacy.learning=frozen"];
    assert_eq!(spent(&frozen).0.epsilon, Some(0.0));
    let open = trainer(&experiment(&frozen), square(200, Task::Multiclass), &flex()).expect("a trainer");
    let open = open.label_privacy().expect("others take part").statement;
    assert!(open.contains("not exposed through gradients"), "{open}");
    let solo = experiment(&["method.kind=solo", "method.hidden=[4]"]);
    let solo = trainer(&solo, square(200, Task::Multiclass), &flex()).expect("a trainer");
    assert_eq!(solo.label_privacy(), None, "no party receives anything");
}

/// Numeric labels get noise within declared bounds, and the objective uses these bounds instead of the
/// labels' own range.
#[test]
fn scales_numbers_by_declared_bounds() {
    let sets = ["labels.kind=laplace", "labels.low=50", "labels.high=150", "labels.epsilon=3"];
    let mut trainer = trainer(&experiment(&sets), square(200, Task::Regression), &flex()).expect("a trainer");
    let objective = trainer.objective();
    assert_eq!((objective.minimum, objective.range), (50.0, 100.0));
    assert!(losses(&mut trainer).iter().all(|loss| loss.is_finite()));
    assert_eq!(trainer.label_privacy().and_then(|spent| spent.epsilon), Some(3.0));
}

#[test]
fn refuses_wrong_use() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        refuse(folder.path(), "tiny.toml", &sets, parts);
    };
    let response = "labels.kind=randomised-response";
    check(&["labels.kind=randomized-response"], &["labels.kind", "did you mean \"randomised-response\""]);
    check(
        &[response, "labels.epsilon=0"],
        &["labels", "epsilon", "at least 0.001 and at most 20", "it is 0"],
    );
    check(&[response, "labels.prior=[0.5, 0.6]"], &["labels", "prior", "add up to 1", "it is 1.1"]);
    check(&[response, "labels.prior=[0.5, 0.5]"], &["labels.prior", "each of 10 classes", "2 probabilities"]);
    check(&[response, "labels.sigma=1"], &["labels", "sigma"]);
    check(&["labels.kind=laplace", "labels.low=1"], &["labels", "high", "above `low`", "it is 1"]);
    check(&["labels.kind=laplace"], &["labels.kind", "randomised-response", "it is \"laplace\""]);
    let noise = "labels.kind=noisy-gradients";
    check(&[noise, "labels.clip=0"], &["labels", "clip", "at least 0.000001", "it is 0"]);
    check(&[noise, "labels.delta=1"], &["labels", "delta", "below 1", "it is 1"]);
    check(&[noise, "labels.target_epsilon=21"], &["labels", "target_epsilon", "it is 21"]);
    check(&[noise, "method.pe_average_every=1"], &["method.pe_average_every", "labels.kind", "it is 1"]);
    let compressed = ["labels.kind=compressed-gradients", "method.kind=fet-trees"];
    check(&compressed, &["labels.kind", "fet-trees", "equal values", "it is \"compressed-gradients\""]);
    let numbers = trainer(&experiment(&[response]), square(200, Task::Regression), &flex());
    let error = numbers.err().expect("refused").to_string();
    assert!(error.contains("labels.kind") && error.contains("\"laplace\""), "{error}");
}

/// The primary alone chooses a label protection: the terms do not contain it, and secondaries with other
/// settings agree.
#[test]
fn other_parties_need_not_know() {
    let protected = experiment(&["labels.kind=randomised-response"]);
    assert_eq!(protected.common().to_toml(), experiment(&[]).common().to_toml());
    assert!(!protected.common().to_toml().contains("labels"));
}
