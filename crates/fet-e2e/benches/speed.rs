//! Criterion benchmarks of single parts, on every compiled device: training steps of the presets (rows per
//! second, without evaluation), and linking.
//!
//! `cargo xtask bench -- NAME` chooses benchmarks. `summary.rs` measures whole runs.

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fet_core::linker::{Linker, link};
use fet_core::registry::Slot;
use fet_e2e::workload::Workload;
use fet_federation::simulation::Simulation;
use fet_federation::trainer::StepReport;

fn training(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("training");
    for workload in [Workload::hdb(1_000), Workload::house(500), Workload::mnist(10, 500)] {
        let experiment = workload.experiment();
        let rows = workload.rows as u64 * 7 / 10;
        group.sample_size(10).throughput(Throughput::Elements(rows));
        for name in fet_backends::NAMES {
            let Ok(backend) = fet_backends::open(name) else { continue };
            let machine = fet::run::machine(&backend);
            let mut trainer = Simulation::new(&experiment, &machine)
                .start(workload.tables())
                .expect("the tables fit the preset");
            group.bench_function(format!("{}/{name}", workload.name), |bencher| {
                bencher.iter_custom(|epochs| {
                    let mut seconds = 0.0;
                    for _ in 0..epochs {
                        let mut last = 0.0;
                        let mut watch = |step: StepReport| {
                            last = step.rows as f64 / step.rows_per_second;
                            true
                        };
                        trainer.epoch(&mut watch).expect("an epoch");
                        seconds += last;
                    }
                    Duration::from_secs_f64(seconds)
                });
            });
        }
    }
    group.finish();
}

fn linking(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("linking");
    for (name, workload, records) in
        [("2-d", Workload::house(27_827), 27_827), ("4-d", Workload::mnist(10, 60_000), 60_000)]
    {
        let tables = Workload { secondaries: 1, records, ..workload }.tables();
        let linker: Box<dyn Linker> = Slot::<dyn Linker>::with_defaults("nearest")
            .expect("a plug-in")
            .build(&())
            .expect("sound defaults");
        let neighbours = linker.about().neighbours;
        group.sample_size(10).throughput(Throughput::Elements(records as u64));
        group.bench_function(format!("nearest/{name}, K = {neighbours}"), |bencher| {
            let keys = &tables.secondaries[0].keys;
            let link = |()| link(linker.as_ref(), &tables.primary.keys, keys, 0, &|_| ()).expect("links");
            bencher.iter_batched(|| (), link, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, training, linking);
criterion_main!(benches);
