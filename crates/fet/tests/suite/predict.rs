//! Tests predictions for new records: they come from the best model, and the run stays unchanged.

use fet_core::data::{Keys, PartyTable, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::message::{Forward, LinkKeys, Request, Round};
use fet_core::party::Party;
use fet_federation::trainer::Trainer;

use crate::support::{experiment, flex, losses, model, open, square};

/// Returns the test rows in the form of new records: their table and their labels.
fn test_rows(trainer: &Trainer, data: &VerticalData) -> (PartyTable, Vec<f64>) {
    let rows = &trainer.split().test;
    let PartyTable { name, keys, features, .. } = &data.primary;
    let (keys, features) = (keys.select_rows(rows), features.select_rows(rows));
    let table = PartyTable { name: name.clone(), keys, features, bounds: None };
    (table, rows.iter().map(|&row| data.labels[row]).collect())
}

/// Returns the root mean square error of predictions in the label's unit.
fn error(trainer: &Trainer, outputs: &[f32], labels: &[f64]) -> f64 {
    let predictions = trainer.label_scale().predictions(outputs);
    let squared = predictions.iter().zip(labels).map(|(prediction, label)| (prediction - label).powi(2));
    (squared.sum::<f64>() / labels.len() as f64).sqrt()
}

fn trained(
    experiment: &Experiment,
    data: &VerticalData,
) -> (Trainer, Vec<fet_federation::simulation::ObservedParty>) {
    let (mut trainer, parties) = open(experiment, data.clone(), &flex());
    while !trainer.is_done() {
        losses(&mut trainer);
    }
    (trainer, parties)
}

/// The predictions for test rows as new records equal the best epoch's evaluation exactly, for all slots. The
/// parties' models do not change.
#[test]
fn test_rows_as_new_records_have_the_error_of_the_best_epoch() {
    let mut best_was_earlier = false;
    for sets in [
        &[][..],
        &["aggregator.kind=similarity-weighted"],
        &["aggregator.kind=concat", "train.wire=bytes"],
        &["linker.kind=rotation", "linker.neighbours=4"],
        &["linker.kind=psi"],
        &["method.kind=fedsim"],
        &["method.kind=top1sim"],
        &["method.kind=solo"],
        &["method.kind=gbdt-top1"],
        &["method.kind=gbdt-pooled"],
        &["method.kind=fet-trees", "method.growth.trees=40", "linker.kind=posterior"],
        &["method.kind=linear-solo"],
        &["method.kind=linear-top1"],
        &["method.kind=fet-pool"],
        &["method.kind=with-trees", "method.inner.kind=fet-pool"],
        &["method.kind=with-trees", "method.inner.kind=fet-pool", "method.share=fitted"],
        &["method.kind=with-linear", "method.inner.kind=fet", "method.share=fitted"],
        &["train.target=log"],
        &["method.kind=gbdt-top1", "train.target=quantile"],
        &["method.kind=linear-top1", "train.target=quantile"],
        &["train.key_inputs=false"],
        &["method.kind=gbdt-solo", "train.key_inputs=false", "train.target=log"],
        &["method.kind=fet-pool", "train.refine_keys=true", "aggregator.kind=concat"],
    ] {
        let rate = "method.optimizer.learning_rate=0.05";
        let sets = [&["train.epochs=4", rate, "train.evaluation_batch_size=7"], sets].concat();
        let without_rate = sets
            .iter()
            .any(|set| set.contains("gbdt") || set.contains("fet-trees") || set.contains("linear"));
        let sets: Vec<&str> = sets.into_iter().filter(|set| !(without_rate && *set == rate)).collect();
        let experiment = experiment(&sets);
        let mut data = square(120, Task::Regression);
        if sets.contains(&"linker.kind=psi") {
            for party in &mut data.secondaries {
                party.keys = data.primary.keys.clone();
            }
        }
        let (mut trainer, parties) = trained(&experiment, &data);
        let best = trainer.progress().best.expect("an epoch");
        best_was_earlier |= !trainer.last_is_best();
        let reported = trainer.progress().epochs[best].test.expect("the best epoch is tested");
        let (table, labels) = test_rows(&trainer, &data);
        let before = model(&trainer, &parties);
        let outputs = trainer.predict(table).expect("predictions");
        assert_eq!(outputs.rows(), labels.len(), "{sets:?}");
        let found = error(&trainer, outputs.values(), &labels);
        assert!((found - reported).abs() <= 1e-6 * reported, "{sets:?}: {found}, reported {reported}");
        assert_eq!(model(&trainer, &parties), before, "{sets:?}");
    }
    assert!(best_was_earlier, "in some case the best model is not the last");
}

/// A sum of predictions over other parties, or for other keys, would reveal one party's part by the
/// difference.
#[test]
fn refuses_predictions_by_secure_sums() {
    let data = square(120, Task::Regression);
    let (mut trainer, _parties) =
        trained(&experiment(&["train.epochs=1", "aggregator.kind=secure-average"]), &data);
    let (table, _) = test_rows(&trainer, &data);
    let refusal = trainer.predict(table).expect_err("no sum covers it").to_string();
    assert!(refusal.contains("predictions do not support secure sums yet"), "{refusal}");
}

/// A prediction is a release. With a privacy mechanism no account covers it, so every party itself refuses.
#[test]
fn protected_run_refuses_predictions() {
    let sets = ["train.epochs=1", "aggregator.kind=secure-average", "privacy.kind=discrete-gaussian"];
    let data = square(120, Task::Regression);
    let (mut trainer, parties) = trained(&experiment(&sets), &data);
    let (table, _) = test_rows(&trainer, &data);
    let keys: Keys = table.keys.clone();
    let refusal = trainer.predict(table).expect_err("no account covers it").to_string();
    let reason = "Predict: a prediction is a release that the run's privacy account does not count";
    assert!(refusal.contains(reason), "{refusal}");
    let round = Round::Predict { batch: 0 };
    let forward = Forward { round, rows: vec![0], active: vec![0, 1], attempt: Some(0) };
    for request in [Request::Predict(LinkKeys { keys }), Request::Forward(forward)] {
        let refusal = parties[0].clone().ask(request).expect_err("refused").to_string();
        assert!(refusal.contains("does not count"), "{refusal}");
    }
}
