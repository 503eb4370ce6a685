//! Tests that every method learns a small task, and that the parts of the Federated Transformer have their
//! intended effects.

use fet_core::data::Task;
use fet_core::method::Method;
use fet_core::objective::Direction;
use fet_core::registry::plugins;

use crate::support::{experiment, flex, losses, model, open, square, trainer};

/// Results of a method and of the best constant on the same rows.
struct Outcome {
    /// Best validation metric.
    best: f64,
    /// Validation metric of the best constant for the validation rows.
    constant: f64,
}

/// Trains `epochs` epochs.
fn train(task: Task, sets: &[&str], epochs: usize) -> Outcome {
    let experiment = experiment(&[sets, &[&format!("train.epochs={epochs}")]].concat());
    let data = square(600, task);
    let labels = data.labels.clone();
    let mut trainer = trainer(&experiment, data, &flex()).expect("a trainer");
    for _ in 0..epochs {
        losses(&mut trainer);
    }
    let best = trainer.progress().best.expect("an epoch");
    let validation: Vec<f64> = trainer.split().validation.iter().map(|&row| labels[row]).collect();
    Outcome { best: trainer.progress().epochs[best].validation, constant: constant(task, &validation) }
}

/// Returns the metric of the best constant: the standard deviation of the labels, or the largest class's
/// share.
fn constant(task: Task, labels: &[f64]) -> f64 {
    let n = labels.len() as f64;
    match task {
        Task::Regression => {
            let mean = labels.iter().sum::<f64>() / n;
            (labels.iter().map(|&y| (y - mean).powi(2)).sum::<f64>() / n).sqrt()
        }
        Task::Binary | Task::Multiclass => {
            let count = |class: f64| labels.iter().filter(|&&y| y == class).count();
            [0.0, 1.0, 2.0].map(count).into_iter().max().unwrap_or(0) as f64 / n
        }
    }
}

#[test]
fn every_method_beats_the_best_constant() {
    for plugin in plugins::<dyn Method>() {
        let kind = format!("method.kind={}", plugin.kind);
        for (task, direction) in [
            (Task::Regression, Direction::Minimise),
            (Task::Binary, Direction::Maximise),
            (Task::Multiclass, Direction::Maximise),
        ] {
            let Outcome { best, constant } = train(task, &[&kind], 12);
            let kind = plugin.kind;
            assert!(direction.improves(best, constant), "{kind}: {best}, the best constant {constant}");
        }
    }
}

/// Two thirds of the information about the label are with the other parties, so FeT must get well below the
/// best possible error of the primary alone.
#[test]
fn fet_uses_the_other_parties_features() {
    let sets = ["method.kind=fet", "method.hidden=32", "linker.neighbours=2", "method.frequency_std=1"];
    let solo = train(Task::Regression, &["method.kind=solo"], 40).best;
    let fet = train(Task::Regression, &sets, 40).best;
    assert!(fet < 0.7 * solo, "fet {fet}, solo {solo}");
}

#[test]
fn averaging_equalises_only_the_parties_encodings() {
    let experiment = experiment(&["method.pe_average_every=2"]);
    let (mut trainer, parties) = open(&experiment, square(200, Task::Regression), &flex());
    let mut equal = Vec::new();
    for _ in 0..4 {
        losses(&mut trainer);
        let all = model(&trainer, &parties);
        let part = |party: &str, name: &str| {
            all.get(&format!("{party}.embedding.{name}")).expect("a parameter").to_vec()
        };
        let name = "position.frequencies";
        equal.push(
            part("primary", name) == part("party1", name) && part("party1", name) == part("party2", name),
        );
        assert_ne!(part("party1", "input.weight"), part("party2", "input.weight"));
    }
    assert_eq!(equal, [false, true, false, true], "after every second epoch");
}

#[test]
fn dropped_party_sends_no_messages_and_does_not_learn() {
    let bytes = |rate: &str| {
        let experiment = experiment(&[rate]);
        let mut trainer = trainer(&experiment, square(200, Task::Regression), &flex()).expect("a trainer");
        let before = trainer.federation().traffic().received;
        losses(&mut trainer);
        trainer.federation().traffic().received - before
    };
    let hidden_bytes = 4 * 4 * 16;
    let (train, evaluation) = (140, 20 + 40);
    assert_eq!(bytes("method.party_dropout=0"), 2 * hidden_bytes * (train + evaluation));
    assert_eq!(bytes("method.party_dropout=0.49"), 2 * hidden_bytes * (train + evaluation));
    assert_eq!(bytes("method.party_dropout=0.5"), hidden_bytes * (train + 2 * evaluation));
    // At least one party stays for any dropout rate.
    assert_eq!(bytes("method.party_dropout=0.99"), hidden_bytes * (train + 2 * evaluation));
}

#[test]
fn pads_fewer_records_than_neighbours_on_request() {
    let mut data = square(200, Task::Regression);
    for party in &mut data.secondaries {
        party.keys = party.keys.select_rows(&[0, 1, 2]);
        party.features = party.features.select_rows(&[0, 1, 2]);
    }
    let refused =
        trainer(&experiment(&[]), data.clone(), &flex()).map(|_| ()).expect_err("refused").to_string();
    assert!(refused.contains("party \"first\"") && refused.contains("3 records"), "{refused}");
    // The repeats change nothing: K = 3 without repeats and K = 4 with repeats use the same records. Only the
    // shape of the dynamic mask would differ, so the test switches the mask off.
    let run = |sets: &[&str]| {
        let sets =
            [&["encoder.kind=transformer", "encoder.dynamic_mask=false", "method.dropout=0"], sets].concat();
        losses(&mut trainer(&experiment(&sets), data.clone(), &flex()).expect("a trainer"))
    };
    let (exact, padded) = (run(&["linker.neighbours=3"]), run(&["linker.neighbours=4", "linker.pad=true"]));
    for (a, b) in exact.iter().zip(&padded) {
        assert!((a - b).abs() < 1e-5 * a, "{exact:?} and {padded:?}");
    }
}

/// The first epoch is the same; from the second epoch on the steps are smaller, and the models differ.
#[test]
fn step_size_decays_by_the_settings() {
    let train = |decay: &str| {
        let experiment = experiment(&["train.epochs=4", &format!("train.decay={decay}")]);
        let mut trainer = trainer(&experiment, square(300, Task::Regression), &flex()).expect("a trainer");
        (0..4).for_each(|_| drop(losses(&mut trainer)));
        trainer.progress().epochs.clone()
    };
    let (plateau, cosine) = (train("plateau"), train("cosine"));
    let whole = plateau[0].learning_rate;
    let half = std::f64::consts::FRAC_1_SQRT_2 / 2.0;
    for (epoch, share) in [1.0, 0.5 + half, 0.5, 0.5 - half].into_iter().enumerate() {
        assert_eq!(plateau[epoch].learning_rate, whole, "no plateau in four epochs with a patience of five");
        assert!((cosine[epoch].learning_rate / whole - share).abs() < 1e-12, "epoch {epoch} of {cosine:?}");
    }
    assert_eq!(plateau[0].validation, cosine[0].validation);
    assert_ne!(plateau[1].validation, cosine[1].validation);
}
