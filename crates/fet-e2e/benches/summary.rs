//! Benchmark table of whole runs. For each preset and device: rows per second, time per phase, operations per
//! second and their share of this machine's product of large matrices, peak memory, and set-up time.
//! `growth.rs` measures growth with the size of the problem.
//!
//! Each figure is the median of five portions of one run. Each case runs in a separate process, one after
//! another. Raw figures go to `benches/runs/DATE-MACHINE/summary.json`, or to the file in `FET_BENCH_OUT`.
//! Arguments choose cases by a part of their name; only a complete run is saved.

#![expect(clippy::print_stdout, reason = "the program prints a table")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fet_e2e::workload::{Workload, operations};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::{Phases, StepReport};
use fet_io::memory::peak_memory;
use serde::{Deserialize, Serialize};

/// Number of measured portions after one warm-up portion; the figure is their median.
const PORTIONS: usize = 5;

const CASE: &str = "FET_BENCH_CASE";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Figures {
    case: String,
    device: String,
    /// Training rows per second in each portion.
    rows_per_second: Vec<f64>,
    /// Milliseconds per step in each phase; for evaluation, per evaluated row.
    phases: Phases,
    /// Operations per step, in 10⁹.
    giga_operations: f64,
    /// 10⁹ operations per second of training.
    achieved: f64,
    peak_memory_bytes: u64,
    /// Seconds before the first step: links and models.
    setup_seconds: f64,
}

fn main() -> Result<()> {
    if let Ok(case) = std::env::var(CASE) {
        // On a separate thread, as in `fet run`: the allocator returns the main thread's memory to the system
        // after every step.
        return std::thread::scope(|scope| scope.spawn(|| one(&case)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let peak = fet_kernels::peak();
    println!("product of large matrices, all cores: {peak:.0} GFLOP/s (single precision)\n");
    println!(
        "| case | device | rows/s (lowest to highest) | encode | aggregate | decode | learn | step | evaluation | GFLOP/s | of peak | memory | set-up |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut all = Vec::new();
    for (workload, devices) in cases() {
        for device in devices {
            let name = format!("{} / {device}", workload.name);
            let wanted = chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()));
            if !wanted || fet_backends::open(device).is_err() {
                continue;
            }
            let output = Command::new(std::env::current_exe()?).env(CASE, &name).output()?;
            let errors = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{name}: {errors}");
            let figures: Figures = serde_json::from_slice(&output.stdout).context(name)?;
            println!("{}", row(&figures, peak));
            all.push(figures);
        }
    }
    let out = std::env::var_os("FET_BENCH_OUT").map(PathBuf::from);
    if let Some(path) = out.or_else(|| chosen.is_empty().then(place)) {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let raw = serde_json::json!({ "peak_gflops": peak, "cases": all });
        std::fs::write(&path, serde_json::to_string_pretty(&raw)? + "\n")?;
        println!("\nraw figures: {}", path.display());
    }
    Ok(())
}

/// Returns the file for the raw figures of this day and machine.
fn place() -> PathBuf {
    let output = Command::new("date").arg("+%F").output();
    let date = output
        .map_or_else(|_| "undated".into(), |out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1)).unwrap_or(std::env::consts::ARCH);
    let words: Vec<&str> =
        model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let name = format!("{date}-{}-{cores}", words.join("-").to_lowercase());
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/runs")).join(name).join("summary.json")
}

/// Returns every case with its devices.
fn cases() -> Vec<(Workload, Vec<&'static str>)> {
    let both = vec!["flex", "libtorch", "libtorch-cuda", "cuda", "wgpu"];
    let every = vec!["flex", "ndarray", "libtorch", "libtorch-cuda", "cuda", "wgpu"];
    vec![
        (Workload::hdb(1_500), every),
        (Workload::hdb(1_000).with("hdb, operation by operation", &["train.kernels=tensor"]), both.clone()),
        (Workload::house(750), both.clone()),
        (Workload::mnist(10, 750), both.clone()),
        (Workload::mnist(50, 400), both.clone()),
    ]
}

/// Runs one case and prints its figures.
fn one(case: &str) -> Result<()> {
    let (workload, device) = cases()
        .into_iter()
        .flat_map(|(workload, devices)| devices.into_iter().map(move |device| (workload.clone(), device)))
        .find(|(workload, device)| format!("{} / {device}", workload.name) == case)
        .context("no such case")?;
    fet::threads::take_part();
    let experiment = workload.experiment();
    let tables = workload.tables();
    let batch = 128.0f64.min(workload.rows as f64 * 0.7);
    let needed = operations(&workload, &experiment, &tables, batch) / batch;
    let backend = fet_backends::open(device)?;
    let start = Instant::now();
    let mut trainer = Simulation::new(&experiment, &fet::run::machine(&backend)).start(tables)?;
    backend.share(workload.secondaries);
    let setup_seconds = start.elapsed().as_secs_f64();
    let mut rates = Vec::new();
    let mut before = Phases::default();
    for portion in 0..=PORTIONS {
        let mut rate = 0.0;
        let mut watch = |step: StepReport| {
            rate = step.rows_per_second;
            true
        };
        trainer.epoch(&mut watch)?;
        if portion == 0 {
            before = trainer.phases();
        } else {
            rates.push(rate);
        }
    }
    let split = trainer.split();
    let steps = (split.train.len() as f64 / 128.0).ceil() * PORTIONS as f64;
    // Each epoch evaluates the validation rows, and also the test rows if the validation metric improved.
    let tested = trainer.progress().epochs.iter().skip(1).filter(|epoch| epoch.test.is_some()).count();
    let evaluated = (split.validation.len() * PORTIONS + split.test.len() * tested) as f64;
    let after = trainer.phases();
    let each = |after: f64, before: f64, count: f64| (after - before) / count * 1e3;
    let phases = Phases {
        encode: each(after.encode, before.encode, steps),
        aggregate: each(after.aggregate, before.aggregate, steps),
        decode: each(after.decode, before.decode, steps),
        learn: each(after.learn, before.learn, steps),
        step: each(after.step, before.step, steps),
        evaluate: each(after.evaluate, before.evaluate, evaluated),
    };
    let figures = Figures {
        case: workload.name.clone(),
        device: device.to_string(),
        achieved: needed * median(&rates) / 1e9,
        rows_per_second: rates,
        phases,
        giga_operations: needed * batch / 1e9,
        peak_memory_bytes: peak_memory(),
        setup_seconds,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn row(figures: &Figures, peak: f64) -> String {
    let Figures { case, device, rows_per_second: rates, phases, achieved, .. } = figures;
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    format!(
        "| {case} | {device} | {:.0} ({lowest:.0} to {highest:.0}) | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {achieved:.0} | {:.0} % | {:.2} GB | {:.2} s |",
        median(rates),
        phases.encode,
        phases.aggregate,
        phases.decode,
        phases.learn,
        phases.step,
        phases.evaluate,
        100.0 * achieved / peak,
        figures.peak_memory_bytes as f64 / 1e9,
        figures.setup_seconds,
    )
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
