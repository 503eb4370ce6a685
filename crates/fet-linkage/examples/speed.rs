//! Comparisons of 1,024-bit vectors per second, top 100: `cargo run --release -p fet-linkage --example speed -- ROWS`.
#![expect(clippy::print_stdout, reason = "a program answers on standard output")]
use fet_linkage::bits::BitTable;
use fet_linkage::search::{Index, Kernel, Measure};
use rand::{Rng, SeedableRng};
use std::time::Instant;

fn main() {
    let rows: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let table = |seed| {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        BitTable::from_words(1024, (0..rows * 16).map(|_| rng.next_u64() & (rng.next_u64() | rng.next_u64())).collect())
    };
    let (queries, records) = (table(1), table(2));
    for kernel in Kernel::all() {
        let start = Instant::now();
        let index = Index::new(&records);
        let built = start.elapsed().as_secs_f64();
        let found = index.search_with(kernel, &queries, 100.min(rows), Measure::Dice, &|_| ());
        let seconds = start.elapsed().as_secs_f64();
        println!("{kernel:?}: {rows} x {rows}: {built:.3} s index, {seconds:.3} s, {:.0} million comparisons/s, {:?}", (rows * rows) as f64 / seconds / 1e6, found);
    }
}
