//! Neighbours that several rows have in common are encoded once in an evaluation, and no figure differs by it.

use fet_backends::Backend;
use fet_core::data::{Keys, Matrix, Task, VerticalData};
use fet_core::encoder::Encoder;
use fet_core::experiment::Experiment;
use fet_core::method::Method;
use fet_core::registry::{Slot, plugins};

use crate::support::{devices, experiment, flex, square, trainer};

/// Records whose keys are the middles of sixteen fields, so that many have the same neighbours.
fn fields(task: Task) -> VerticalData {
    let mut data = square(400, task);
    let Keys::Numbers(points) = &data.primary.keys else { panic!("they are numbers") };
    let middles: Vec<f64> =
        points.values().iter().map(|x| ((x * 4.0).floor().clamp(0.0, 3.0) + 0.5) / 4.0).collect();
    data.primary.keys = Matrix::new(2, middles).into();
    data
}

/// What three epochs leave: every epoch's metrics, and the best model's values.
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
    assert_eq!(with("0"), with("1"), "{} {sets:?}", backend.name);
}

#[test]
fn a_cache_of_evaluations_changes_no_figure() {
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
        let slot = Slot::<dyn Method>::of(plugin.kind).expect("sound defaults");
        if slot.build(&()).expect("sound defaults").plan().secondaries {
            check(&flex(), &[&format!("method.kind={}", plugin.kind)]);
        }
    }
    check(&flex(), &["aggregator.kind=secure-average"]);
    check(&flex(), &["method.kind=fet-pool", "linker.kind=posterior"]);
}
