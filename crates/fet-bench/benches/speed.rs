//! Training speed of the hdb preset on every device that is compiled in: rows per second of training steps,
//! evaluation not counted.
//!
//! The tables are made here with the real ones' shapes (68 features, 165 schools of 8 features, K = 100), so
//! that no file is needed; a step costs the same whatever the numbers are. Device names after `--` choose.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fet::experiment_file::{Source, load};
use fet_core::data::{Matrix, PartyTable, Task, VerticalData};
use fet_core::rng::{Purpose, stream};
use fet_core::trainer::{StepReport, Trainer};
use rand::RngExt;

const ROWS: usize = 1_000;

/// Tables of the shapes of hdb.
fn tables() -> VerticalData {
    let mut rng = stream(0, 0, Purpose::Parties, 0);
    let mut party = |name: &str, rows: usize, features: usize| PartyTable {
        name: name.to_string(),
        keys: Matrix::new(2, (0..2 * rows).map(|_| rng.random()).collect()),
        features: Matrix::new(features, (0..features * rows).map(|_| rng.random()).collect()),
    };
    VerticalData {
        task: Task::Regression,
        classes: 1,
        primary: party("flats", ROWS, 68),
        secondaries: vec![party("schools", 165, 8)],
        labels: (0..ROWS).map(|row| row as f32).collect(),
        standardise_keys: true,
    }
}

fn hdb(criterion: &mut Criterion) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/hdb.toml").into();
    let experiment = load(&Source { file, ..Source::default() }).expect("the preset is sound");
    let mut group = criterion.benchmark_group("hdb");
    group.sample_size(10).throughput(Throughput::Elements(ROWS as u64 * 7 / 10));
    for name in fet_backends::NAMES {
        let Ok(backend) = fet_backends::open(name) else { continue };
        let mut trainer = Trainer::with_data(&experiment, tables(), &fet::run::machine(&backend))
            .expect("the tables fit the preset");
        group.bench_function(name, |bencher| {
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
    group.finish();
}

criterion_group!(benches, hdb);
criterion_main!(benches);
