//! Measures the speed and the memory of reading a table. The program makes 1,000,000 rows of 30 columns (15
//! numbers, 8 categories, 4 dates, 3 texts, every tenth cell missing) as Parquet and CSV.gz. It then reads
//! each file in a separate process, and prepares the table for a model, fitted on the first 70 % of the rows.
//!
//! A category of up to 32 values becomes one column per value. A larger category, or a text, becomes 32
//! hashed columns. The prepared table is therefore wide. With `FET_BUCKETS=8`, categories of more than eight
//! values are hashed, into eight columns.
//!
//! `cargo run --release -p fet-tables --example read_speed [-- ROWS]`. Peak memory is VmHWM, which exists
//! only on Linux.

#![expect(clippy::print_stdout, reason = "an example prints its figures")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use fet_tables::prepare::{Preparation, Rules};
use fet_tables::{Column, MISSING_CODE, MISSING_DATE, Options, Table, Values, read, write};

const ROWS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = given.as_slice()
        && flag == "--read"
    {
        return measure(Path::new(path));
    }
    let rows = given.first().map_or(Ok(ROWS), |rows| rows.parse())?;
    let folder = tempfile::tempdir()?;
    let table = table(rows)?;
    for name in ["t.parquet", "t.csv.gz"] {
        let path = folder.path().join(name);
        let start = Instant::now();
        write(&path, &table)?;
        let bytes = path.metadata()?.len();
        println!("{name}: written in {:.1} s, {} MB", start.elapsed().as_secs_f64(), bytes / 1_000_000);
    }
    drop(table);
    for name in ["t.parquet", "t.csv.gz"] {
        let status =
            Command::new(std::env::current_exe()?).arg("--read").arg(folder.path().join(name)).status()?;
        if !status.success() {
            return Err(format!("reading {name} failed").into());
        }
    }
    Ok(())
}

fn measure(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let table = read(path, &Options::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kinds: Vec<&str> = table.columns.iter().map(|column| &column.values.kind()[..1]).collect();
    let buckets = std::env::var("FET_BUCKETS").ok().and_then(|text| text.parse().ok());
    let usual = Rules::default();
    let rules = Rules {
        one_hot: buckets.unwrap_or(usual.one_hot),
        buckets: buckets.unwrap_or(usual.buckets),
        ..usual
    };
    let start = Instant::now();
    let fitted: Vec<usize> = (0..table.rows * 7 / 10).collect();
    let prepared = Preparation::fit(&table, &fitted, &rules)?;
    let (columns, rows) = (table.columns.len(), table.rows);
    let numbers = prepared.apply(&table)?.len() / rows.max(1);
    let preparing = start.elapsed().as_secs_f64();
    let after = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = after.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    println!(
        "{name}: {rows} rows x {columns} columns ({}) read in {seconds:.2} s, peak memory {peak}; prepared as {numbers} numbers in \
         {preparing:.2} s, peak memory {most}; load {}",
        kinds.concat(),
        load.trim()
    );
    Ok(())
}

fn table(rows: usize) -> Result<Table, fet_tables::TableError> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let columns = (0..30_usize).map(|at| {
        let mut cell = || Some(next()).filter(|cell| cell % 10 > 0);
        let values = match at {
            0..5 => Values::Number(
                (0..rows).map(|_| cell().map_or(f64::NAN, |cell| cell as f64 / 1e18)).collect(),
            ),
            5..15 => {
                let whole = |cell: u64| (cell % 1_000_000) as f64 / 100.0;
                Values::Number((0..rows).map(|_| cell().map_or(f64::NAN, whole)).collect())
            }
            15..23 => {
                let count = 3 + 40 * (at as u64 - 15);
                let names = (0..count).map(|name| format!("category {name:03}")).collect();
                let code = |cell: u64| (cell / 10 % count) as u32;
                Values::Category {
                    codes: (0..rows).map(|_| cell().map_or(MISSING_CODE, code)).collect(),
                    names,
                }
            }
            23..27 => {
                let unit = if at < 25 { 86_400_000_000 } else { 1_000_000 };
                let date = |cell: u64| (cell / 10 % 20_000) as i64 * unit;
                Values::Date((0..rows).map(|_| cell().map_or(MISSING_DATE, date)).collect())
            }
            _ => {
                let texts: Vec<Option<String>> =
                    (0..rows).map(|_| cell().map(|cell| format!("name {}", cell % 100_000_000))).collect();
                Values::Text(texts.iter().map(Option::as_deref).collect())
            }
        };
        Column { name: format!("c{at}"), values }
    });
    Table::new(columns.collect())
}
