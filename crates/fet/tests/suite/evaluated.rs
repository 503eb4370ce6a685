//! Tests that an evaluation encodes neighbours that several rows share only once, without any change of the
//! results.

use fet_backends::Backend;
use fet_core::data::{Keys, Matrix, Task, VerticalData};
use fet_core::encoder::Encoder;
use fet_core::experiment::Experiment;
use fet_core::method::Method;
use fet_core::registry::{Slot, plugins};

use crate::support::{devices, experiment, flex, losses, square, trainer};

/// Returns records with keys at the centres of sixteen squares, so that many rows have the same neighbours.
fn fields(task: Task) -> VerticalData {
    let mut data = square(400, task);
    let Keys::Numbers(points) = &data.primary.keys else { panic!("they are numbers") };
    let middles: Vec<f64> =
        points.values().iter().map(|x| ((x * 4.0).floor().clamp(0.0, 3.0) + 0.5) / 4.0).collect();
    data.primary.keys = Matrix::new(2, middles).into();
    data
}

/// Returns the results of three epochs: every epoch's metrics, and the best model's values.
fn run(experiment: &Experiment, backend: &Backend) -> Vec<u64> {
    let mut trainer = trainer(experiment, fields(Task::Regression), backend).expect("a trainer");
    let mut bits = Vec::new();
    for _ in 0..3.min(trainer.epochs()) {
        let report = trainer.epoch(&mut |_| true).expect("the epoch is trained").expect("a whole epoch");
        bits.extend([report.train_loss, report.validation, report.test.unwrap_or(-1.0)].map(f64::to_bits));
    }
    let [validation, test] = trainer.evaluated().expect("there is a best epoch");
    bits.extend(validation.values.iter().chain(&test.values).map(|value| value.to_bits()));
    bits
}

fn check(backend: &Backend, sets: &[&str]) {
    let with = |megabytes: &str| {
        let cache = format!("train.evaluation_cache={megabytes}");
        let small = "train.evaluation_batch_size=16";
        run(&experiment(&[sets, &[cache.as_str(), small]].concat()), backend)
    };
    let (without, with) = (with("0"), with("1"));
    if backend.on_host {
        assert_eq!(without, with, "{} {sets:?}", backend.name);
        return;
    }
    // A GPU chooses another order of summation for another number of rows: rounding may differ.
    assert_eq!(without.len(), with.len());
    for (without, with) in without.into_iter().zip(with).map(|(a, b)| (f64::from_bits(a), f64::from_bits(b)))
    {
        assert!(
            (without - with).abs() <= 1e-5 * without.abs().max(1e-3),
            "{}: {without} {with}",
            backend.name
        );
    }
}

#[test]
fn evaluation_cache_does_not_change_figures() {
    for backend in devices() {
        for kernels in ["auto", "tensor"] {
            check(&backend, &[&format!("train.kernels={kernels}")]);
        }
        check(&backend, &["train.wire=bytes", "encoder.blocks=2", "encoder.dynamic_mask=false"]);
    }
    for plugin in plugins::<dyn Encoder>() {
        check(&flex(), &[&format!("encoder.kind={}", plugin.kind)]);
    }
    for plugin in plugins::<dyn Method>() {
        let slot = Slot::<dyn Method>::with_defaults(plugin.kind).expect("sound defaults");
        if slot.build(&()).expect("sound defaults").plan().secondaries {
            check(&flex(), &[&format!("method.kind={}", plugin.kind)]);
        }
    }
    check(&flex(), &["aggregator.kind=secure-average"]);
    check(&flex(), &["method.kind=fet-pool", "linker.kind=posterior"]);
}

/// For all forms of sending and summing parts, training works in steps that see only some neighbours, and
/// messages shrink accordingly.
#[test]
fn trains_with_steps_that_see_some_neighbours() {
    let begins_near = |sets: &[&str]| {
        let all = experiment(sets);
        let some = experiment(&[sets, &["train.neighbours_per_step=2"]].concat());
        let [all, some] = [all, some].map(|experiment| {
            let mut trainer = trainer(&experiment, fields(Task::Regression), &flex()).expect("a trainer");
            let report = trainer.epoch(&mut |_| true).expect("the epoch is trained").expect("a whole epoch");
            (report.train_loss, report.validation, trainer.federation().traffic().received)
        });
        assert_ne!(all.0.to_bits(), some.0.to_bits(), "{sets:?}: it sees something else");
        assert!((all.1 - some.1).abs() < 0.5 * all.1, "{sets:?}: {} and {}", all.1, some.1);
        (all.2, some.2)
    };
    for sets in [
        &["aggregator.kind=average"][..],
        &["aggregator.kind=secure-average"],
        &["aggregator.kind=similarity-weighted"],
        &["aggregator.kind=concat", "encoder.kind=mlp"],
        &["train.wire=bytes", "train.recompute=true", "method.party_dropout=0.5"],
    ] {
        let (all, some) = begins_near(sets);
        assert!(some < all, "{sets:?}: {some} of {all} bytes");
    }
    // One vector per row, for any number of neighbours.
    let (all, some) = begins_near(&["method.kind=fet-pool", "method.dropout=0.0"]);
    assert_eq!(all, some);
}

/// Without a mask, whose size is fixed to one length, steps that see the nearest neighbours of a list train
/// as if the list contained no others. This also holds for a party with fewer records than either length.
#[test]
fn nearest_of_a_list_equal_a_shorter_list() {
    for records in [400, 3] {
        let losses = |sets: &[&str]| {
            let fixed = ["encoder.dynamic_mask=false", "train.neighbours_shown=nearest", "linker.pad=true"];
            let experiment = experiment(&[&fixed, sets].concat());
            let mut data = fields(Task::Regression);
            for party in &mut data.secondaries {
                let first: Vec<usize> = (0..records).collect();
                party.features = party.features.select_rows(&first);
                party.keys = party.keys.select_rows(&first);
            }
            losses(&mut trainer(&experiment, data, &flex()).expect("a trainer"))
        };
        for sets in
            [&["train.kernels=auto"][..], &["train.kernels=tensor"], &["aggregator.kind=secure-average"]]
        {
            let short = losses(&[sets, &["linker.neighbours=4"]].concat());
            let long = losses(&[sets, &["linker.neighbours=6", "train.neighbours_per_step=4"]].concat());
            assert_eq!(short.len(), long.len());
            // Hidden records contribute zeros to sums of gradients.
            for (a, b) in short.iter().zip(&long) {
                assert!((a - b).abs() <= 1e-6 * a, "{sets:?}, {records} records: {a} and {b}");
            }
        }
    }
}

#[test]
fn refuses_steps_with_some_neighbours_if_all_are_needed() {
    for (sets, because) in [
        (&["method.kind=fedsim"][..], "its model needs all linked neighbours"),
        (&["privacy.kind=gaussian"], "every release covers all neighbours"),
    ] {
        let mut table = toml::Table::try_from(experiment(sets)).expect("settings");
        fet_core::experiment::set(&mut table, "train.neighbours_per_step=2").expect("an assignment");
        let error = Experiment::from_table(table).expect_err("it is refused").to_string();
        assert!(error.contains("train.neighbours_per_step") && error.contains(because), "{error}");
    }
}
