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

/// Predictions by secure sums differ from those of the average only by the rounding of the sums, in every request of a
/// session. The parties never reuse a mask: the numbers of the batches ascend over the session.
#[test]
fn predicts_by_secure_sums() {
    let data = square(120, Task::Regression);
    let outputs = |kind: &str| {
        let kind = format!("aggregator.kind={kind}");
        let sets = ["train.epochs=2", "train.evaluation_batch_size=7", &kind];
        let (mut trainer, mut parties) = trained(&experiment(&sets), &data);
        let (table, _) = test_rows(&trainer, &data);
        let first = trainer.predict(table.clone()).expect("predictions");
        assert_eq!(trainer.predict(table).expect("predictions again"), first);
        let batches = 2 * first.rows().div_ceil(7) as u32;
        (first, parties.remove(0), batches)
    };
    let (summed, mut party, batches) = outputs("secure-average");
    let (average, _, _) = outputs("average");
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * a.abs().max(1.0);
    assert!(summed.values().iter().zip(average.values()).all(close), "{summed:?}, {average:?}");
    let mut ask = |batch: u32, attempt: u32, rows: Vec<u32>| {
        let (round, active) = (Round::Predict { batch }, vec![0, 1]);
        party.ask(Request::Forward(Forward { round, rows, active, attempt: Some(attempt) }))
    };
    for batch in 0..batches {
        let refusal = ask(batch, 0, vec![0]).expect_err("answered before").to_string();
        assert!(refusal.contains("must be a batch that was not answered yet"), "{refusal}");
    }
    let first = ask(batches, 0, vec![0]).expect("the next one");
    assert_eq!(ask(batches, 0, vec![0]).expect("repeated"), first);
    for (attempt, rows) in [(0, vec![1]), (1, vec![0]), (1, vec![1])] {
        let refusal = ask(batches, attempt, rows).expect_err("another sum of the same batch").to_string();
        assert!(refusal.contains("attempt"), "{refusal}");
    }
}

/// A primary that chooses the keys of each party learns a party's part from differences between sums. A party whose policy
/// requires sums that hide its part refuses predictions.
#[test]
fn a_party_that_requires_hiding_sums_refuses_to_predict_by_them() {
    const SUMS: &str = "policy.aggregators=[\"secure-average\"]";
    let data = square(120, Task::Regression);
    for (policy, predicts) in
        [(&[SUMS][..], false), (&[SUMS, "policy.differing_sums=true"], true), (&[], true)]
    {
        let sets = [&["train.epochs=1", "aggregator.kind=secure-average"], policy].concat();
        let (mut trainer, _parties) = trained(&experiment(&sets), &data);
        let (table, _) = test_rows(&trainer, &data);
        match trainer.predict(table) {
            Ok(_) => assert!(predicts, "{policy:?}"),
            Err(error) => {
                let refusal = error.to_string();
                assert!(!predicts && refusal.contains("`policy.differing_sums` must be true"), "{refusal}");
            }
        }
    }
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
