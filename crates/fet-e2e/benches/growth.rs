//! Time of a training step and memory of a run, as parties, neighbours, rows and width grow: a table for
//! each, and a chart of the cost per unit next to that of the matrix products alone at the peak.
//!
//! Each case runs in a separate process. A step is the median of [`STEPS`] steps after some warm-up steps. An
//! argument chooses an axis. FET_BENCH_PICTURE names the file for the chart.

#![expect(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use fet_chart::{Mark, Panel, Picture, Series, Size, Titles};
use fet_e2e::workload::{Workload, operations};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::{RunError, StepReport};
use fet_io::memory::peak_memory;
use serde::{Deserialize, Serialize};

/// Number of measured steps; the figure is their median.
const STEPS: usize = 15;
/// Number of warm-up steps.
const WARM: usize = 3;
/// Number of rows in a batch.
const BATCH: usize = 128;

/// Name of the series of measured steps.
const MEASURED: &str = "measured";
/// Name of the series of a step's counted operations at the measured speed of large products.
const LIMIT: &str = "matrix products alone, at the measured peak";

const CASE: &str = "FET_BENCH_CASE";
const PICTURE: &str = "FET_BENCH_PICTURE";

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Figures {
    /// Milliseconds per step.
    step: f64,
    /// Number of floating-point operations per step.
    operations: f64,
    /// Peak memory in megabytes.
    memory: f64,
    /// Size of the tables in megabytes, as 32-bit floats.
    tables: f64,
    /// Seconds until the first step: links and models.
    setup: f64,
}

/// Axis of growth with its cases.
struct Axis {
    name: &'static str,
    about: &'static str,
    values: Vec<usize>,
    workload: fn(usize) -> Workload,
    /// Divisor of a step's cost, as a function of the value.
    per: fn(usize) -> f64,
    unit: &'static str,
}

fn axes() -> Vec<Axis> {
    let steps = BATCH * (STEPS + WARM + 2) * 10 / 7;
    assert!(steps < 4_000, "rows for all steps in one epoch");
    vec![
        Axis {
            name: "parties",
            about: "mnist, H = 64, K = 20, no party dropout",
            values: vec![2, 4, 8, 16, 32, 64, 128],
            workload: |parties| {
                let sets = ["method.hidden=64", "linker.neighbours=20", "method.party_dropout=0"];
                Workload { records: 10_000, ..Workload::mnist(parties, 4_000) }.with("parties", &sets)
            },
            per: |parties| (parties - 1) as f64,
            unit: "secondary",
        },
        Axis {
            name: "neighbours",
            about: "house, one block, H = 100",
            values: vec![5, 10, 20, 50, 100, 200, 400],
            workload: |k| {
                let k = format!("linker.neighbours={k}");
                Workload::house(4_000).with("neighbours", &[&k, "encoder.blocks=1"])
            },
            per: |k| k as f64,
            unit: "neighbour",
        },
        Axis {
            name: "rows",
            about: "hdb, H = 64, K = 20",
            values: vec![1_000, 10_000, 100_000, 1_000_000],
            workload: |rows| Workload::hdb(rows).with("rows", &["method.hidden=64", "linker.neighbours=20"]),
            per: |_| 1.0,
            unit: "step",
        },
        Axis {
            name: "width",
            about: "hdb, K = 100",
            values: vec![16, 32, 64, 128, 256],
            workload: |width| Workload::hdb(4_000).with("width", &[&format!("method.hidden={width}")]),
            per: |width| width as f64,
            unit: "unit of H",
        },
    ]
}

fn main() -> Result<()> {
    if let Ok(case) = std::env::var(CASE) {
        return one(&case);
    }
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let peak = fet_kernels::peak();
    println!("product of large matrices, all cores: {peak:.0} GFLOP/s (single precision)");
    let mut panels = Vec::new();
    for axis in axes().iter().filter(|axis| chosen.is_empty() || chosen.iter().any(|name| name == axis.name))
    {
        println!("\n{}\n", axis.about);
        println!(
            "| {} | ms per step | at the peak | ms per {} | memory | tables | set-up |",
            axis.name, axis.unit
        );
        println!("|---|---|---|---|---|---|---|");
        let (mut marks, mut limits) = (Vec::new(), Vec::new());
        for (place, &value) in axis.values.iter().enumerate() {
            let case = format!("{} {value}", axis.name);
            let output = Command::new(std::env::current_exe()?).env(CASE, &case).output()?;
            ensure!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
            let figures: Figures = serde_json::from_slice(&output.stdout).context(case)?;
            let Figures { step, operations, memory, tables, setup } = figures;
            let least = operations / peak / 1e6;
            let each = step / (axis.per)(value);
            println!(
                "| {value} | {step:.1} | {least:.2} | {each:.3} | {memory:.0} MB | {tables:.0} MB | {setup:.1} s |"
            );
            let mark = |series: &str, mean: f64| Mark {
                place,
                mean,
                title: format!("{value}, {series}: {mean:.3} ms"),
                ..Mark::default()
            };
            marks.push(mark(MEASURED, each));
            limits.push(mark(LIMIT, least / (axis.per)(value)));
        }
        panels.push(panel(axis, [(MEASURED, marks), (LIMIT, limits)]));
    }
    if let Some(path) = std::env::var_os(PICTURE).map(PathBuf::from) {
        let title = "Cost of one more party, neighbour, row or unit of width".to_string();
        let legend = [MEASURED, LIMIT].into_iter().enumerate();
        let legend = legend.map(|(number, name)| (number, name.to_string())).collect();
        let picture = Picture { title, panels, columns: 2, legend, caption: String::new() };
        std::fs::write(&path, picture.svg()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn panel(axis: &Axis, series: [(&str, Vec<Mark>); 2]) -> Panel {
    let size = Size { width: 460.0, height: 260.0, names: 0.0 };
    let ticks: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
    let y = format!("ms for each {}", axis.unit);
    let series: Vec<Series> = series
        .into_iter()
        .enumerate()
        .map(|(number, (name, marks))| Series { number, marks, name: name.to_string(), ..Series::default() })
        .collect();
    let titles = Titles { chart: axis.about, x: axis.name, y: &y };
    let chart = fet_chart::amounts(size, titles, &ticks, &series);
    Panel { title: axis.about.to_string(), size, chart }
}

/// Runs one case and prints its figures.
fn one(case: &str) -> Result<()> {
    let (name, value) = case.split_once(' ').context("an axis and a value")?;
    let value: usize = value.parse()?;
    let axes = axes();
    let axis = axes.iter().find(|axis| axis.name == name).context("no such axis")?;
    let workload = (axis.workload)(value);
    let experiment = workload.experiment();
    let tables = workload.tables();
    let cells = workload.rows * (workload.primary_features + workload.key_columns)
        + workload.secondaries * workload.records * (workload.features + workload.key_columns);
    let operations = operations(&workload, &experiment, &tables, BATCH as f64);
    let backend = fet_backends::open("flex")?;
    let start = Instant::now();
    let mut trainer = Simulation::new(&experiment, &fet::run::machine(&backend)).start(tables)?;
    let setup = start.elapsed().as_secs_f64();
    let mut ends = vec![Instant::now()];
    // With few rows, an epoch is too short for all steps.
    while ends.len() <= WARM + STEPS {
        let mut watch = |_: StepReport| {
            ends.push(Instant::now());
            ends.len() <= WARM + STEPS
        };
        match trainer.epoch(&mut watch) {
            Ok(_) | Err(RunError::Interrupted { .. }) => {}
            Err(error) => bail!(error),
        }
    }
    let mut steps: Vec<f64> =
        ends.windows(2).skip(WARM).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
    steps.sort_by(f64::total_cmp);
    let figures = Figures {
        step: steps[steps.len() / 2],
        operations,
        memory: peak_memory() as f64 / 1e6,
        tables: 4.0 * cells as f64 / 1e6,
        setup,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
