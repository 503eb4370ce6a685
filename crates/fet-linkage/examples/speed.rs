//! Measures the speed of the searches, compared with brute force where that is of interest:
//!
//! ```text
//! cargo run --release -p fet-linkage --example speed -- clk 100000 100
//! cargo run --release -p fet-linkage --example speed -- blocking 20000 24 50
//! cargo run --release -p fet-linkage --example speed -- nearest
//! cargo run --release -p fet-linkage --example speed -- psi 100000
//! zcat train-images-idx3-ubyte.gz | cargo run --release -p fet-linkage --example speed -- hnsw 100 300
//! ```
//!
//! Data are drawn with a fixed seed, outside the timed part.

#![expect(clippy::print_stdout, reason = "a program answers on standard output")]

use std::io::Read;
use std::time::Instant;

use fet_linkage::bits::BitTable;
use fet_linkage::blocking::{Blocking, FilterTables};
use fet_linkage::hnsw::{self, Graph, HnswSettings};
use fet_linkage::points;
use fet_linkage::psi::{DataHolder, Querier};
use fet_linkage::search::{Index, Kernel, Measure};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| {
        arguments.get(place).map_or(default, |text| text.parse().expect("a number"))
    };
    match arguments.first().map(String::as_str) {
        Some("clk") => clk(number(1, 100_000), number(2, 100)),
        Some("blocking") => blocking(number(1, 20_000), number(2, 24), number(3, 50)),
        Some("nearest") => nearest(),
        Some("psi") => psi(number(1, 100_000)),
        Some("hnsw") => graph(number(1, 100), number(2, 300)),
        _ => println!("usage: speed clk|blocking|nearest|psi|hnsw"),
    }
    println!("peak memory: {:.0} MB", peak_megabytes());
}

fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0 / 1e6
}

/// Returns vectors of 1,024 bits, with a share of 0.375 set.
fn filters(rows: usize, seed: u64) -> BitTable {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut word = || rng.next_u64() & (rng.next_u64() | rng.next_u64());
    BitTable::from_words(1_024, (0..rows * 16).map(|_| word()).collect())
}

/// Times the exact search with two similarity measures.
fn clk(rows: usize, take: usize) {
    let (queries, records) = (filters(rows, 1), filters(rows, 2));
    let take = take.min(rows);
    for measure in [Measure::Dice, Measure::Correlation(1_024)] {
        for kernel in Kernel::all() {
            let start = Instant::now();
            let found = Index::new(&records).search_with(kernel, &queries, take, measure, &|_| ());
            let seconds = start.elapsed().as_secs_f64();
            let millions = (rows * rows) as f64 / seconds / 1e6;
            println!(
                "{measure:?}, {kernel:?}: {rows} x {rows}, top {take}: {seconds:.2} s, {millions:.0} million comparisons/s ({found:?})"
            );
        }
    }
}

/// Times blocking and the comparison of all pairs, and prints the expected ratio.
fn blocking(rows: usize, sampled: usize, tables: usize) {
    let (queries, records) = (filters(rows, 1), filters(rows, 2));
    let blocking = Blocking { tables, sampled };
    let (take, measure) = (20.min(rows), Measure::Correlation(1_024));
    let start = Instant::now();
    let both = FilterTables { queries: &queries, records: &records };
    let (_, met) = blocking.search(both, take, measure, 1, &|_| ());
    let blocked = start.elapsed().as_secs_f64();
    let start = Instant::now();
    Index::new(&records).search(&queries, take, measure, &|_| ());
    let all = start.elapsed().as_secs_f64();
    println!(
        "{rows} x {rows}, {sampled} bits, {tables} tables: {blocked:.2} s for {met} pairs met; all pairs {all:.2} s; expected to take {:.2} \
         times as long",
        blocking.cost(both, take)
    );
}

fn nearest() {
    for (rows, columns) in [(27_827, 2), (60_000, 4)] {
        let points = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            (0..rows * columns).map(|_| rng.random()).collect::<Vec<f64>>()
        };
        let (queries, records) = (points(1), points(2));
        let start = Instant::now();
        let found = points::nearest(&queries, &records, columns, 100);
        let seconds = start.elapsed().as_secs_f64();
        let links = found.indices.len();
        println!(
            "{rows} queries in {rows} points of {columns} dimensions, K = 100: {:.0} queries/s ({links} links)",
            rows as f64 / seconds
        );
    }
}

fn psi(rows: usize) {
    // Both tables have half of the keys in common.
    let keys = |from: usize| (from..from + rows).map(|key| format!("key {key}")).collect::<Vec<_>>();
    let (queries, records) = (keys(0), keys(rows / 2));
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let start = Instant::now();
    let (querier, first) = Querier::ask(&queries, &mut rng);
    let (data_holder, offer) = DataHolder::offer(&records, &mut rng);
    let third = querier.answer(&offer).expect("a message of the data holder's");
    let found = data_holder.intersect(&first, &third).expect("messages of the querier's");
    let seconds = start.elapsed().as_secs_f64();
    let common = found.iter().filter(|equal| !equal.is_empty()).count();
    let sent = first.len() + offer.len() + third.len();
    println!("{rows} x {rows} keys, {common} in common: {seconds:.1} s, {:.1} MB sent", sent as f64 / 1e6);
}

/// Searches MNIST's training images, read from standard input: each image among all 60,000.
fn graph(construction: usize, candidates: usize) {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("images on standard input");
    let (columns, take) = (784, 100);
    let images: Vec<f32> = bytes[16..].iter().map(|&pixel| f32::from(pixel)).collect();
    let rows = images.len() / columns;
    let few = 500.min(rows);
    let doubles: Vec<f64> = images.iter().map(|&x| f64::from(x)).collect();
    let start = Instant::now();
    let exact = points::all(&doubles[..few * columns], &doubles, columns, take);
    let brute = start.elapsed().as_secs_f64() / few as f64;
    println!(
        "brute force: {:.0} queries/s, {:.0} s for all {rows} (from {few})",
        1.0 / brute,
        brute * rows as f64
    );
    let start = Instant::now();
    let graph =
        Graph::new(&images, columns, take, HnswSettings { construction, search: candidates, seed: 0 });
    println!("hnsw, construction {construction}: built in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let searched = 10_000.min(rows);
    let found = graph.search(&images[..searched * columns], take, &|_| ());
    let rate = searched as f64 / start.elapsed().as_secs_f64();
    let recall = hnsw::recall(&found.indices[..few * take], &exact.indices, take);
    println!(
        "search {candidates}: {rate:.0} queries/s, {:.1} s for all {rows} (from {searched}), recall@{take} {recall:.4}",
        rows as f64 / rate
    );
}
