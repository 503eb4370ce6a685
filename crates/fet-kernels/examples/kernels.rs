//! Times the kernels alone: `cargo run --release -p fet-kernels --example kernels -- [hdb|house|mnist|products] [threads]`.
//!
//! Prints for each case the milliseconds, and the share of the machine's peak, of a forward pass with its tape, of the backward pass
//! and of an evaluation. A hash of every output and gradient shows if a change keeps the bits.

#![expect(clippy::print_stdout, reason = "the program prints a table")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use fet_kernels::{
    AttentionWeights, BlockWeights, ChainInput, DecoderBlockWeights, DecoderInput, Dropout,
    FeedForwardWeights, Shape, backward, decode, decode_back, forward, peak, products,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows of a batch.
const BATCH: usize = 128;
const ROUNDS: usize = 15;

struct Case {
    name: &'static str,
    width: usize,
    heads: usize,
    positions: usize,
    blocks: usize,
    decoder: usize,
    records: usize,
    dropout: f64,
}

const CASES: [Case; 3] = [
    Case {
        name: "hdb",
        width: 100,
        heads: 4,
        positions: 100,
        blocks: 1,
        decoder: 2,
        records: 165,
        dropout: 0.3,
    },
    Case {
        name: "house",
        width: 100,
        heads: 4,
        positions: 100,
        blocks: 3,
        decoder: 3,
        records: 9_000,
        dropout: 0.3,
    },
    Case {
        name: "mnist",
        width: 200,
        heads: 1,
        positions: 100,
        blocks: 1,
        decoder: 1,
        records: 9_000,
        dropout: 0.0,
    },
];

/// The products of hdb and house: of the layers, and of a head's keys and values.
const PRODUCTS: [[usize; 3]; 5] =
    [[100, 100, 200], [100, 200, 100], [100, 100, 100], [100, 25, 100], [100, 100, 25]];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(2);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("the first pool");
    let peak = peak();
    println!("{threads} threads, {peak:.0} GFLOP/s");
    let is_chosen = |name: &str| {
        let mut names = arguments.iter().filter(|argument| argument.parse::<usize>().is_err()).peekable();
        names.peek().is_none() || names.any(|chosen| chosen == name)
    };
    if is_chosen("products") {
        for shape in PRODUCTS {
            let each: Vec<String> =
                products(shape).iter().map(|(name, speed)| format!("{name} {speed:.0}")).collect();
            println!("[m, k, n] = {shape:?}, one thread, GFLOP/s: {}", each.join(", "));
        }
    }
    for case in CASES.iter().filter(|case| is_chosen(case.name)) {
        run(case, peak);
    }
}

fn drawn(rng: &mut ChaCha8Rng, count: usize, spread: f32) -> Vec<f32> {
    (0..count).map(|_| spread * (rng.random::<f32>() - 0.5)).collect()
}

struct Layer([Vec<f32>; 6]);

impl Layer {
    fn new(rng: &mut ChaCha8Rng, width: usize, sizes: [usize; 4]) -> Self {
        let scale = 2.0 / (width as f32).sqrt();
        let [a, b, c, d] = sizes.map(|size| drawn(rng, size, scale));
        Self([vec![1.0; width], vec![0.0; width], a, b, c, d])
    }

    fn attention(rng: &mut ChaCha8Rng, width: usize) -> Self {
        Self::new(rng, width, [3 * width * width, 3 * width, width * width, width])
    }

    fn feed_forward(rng: &mut ChaCha8Rng, width: usize) -> Self {
        Self::new(rng, width, [2 * width * width, 2 * width, 2 * width * width, width])
    }

    fn as_attention(&self) -> AttentionWeights<'_> {
        let [gain, bias, projection, projection_bias, output, output_bias] = &self.0;
        AttentionWeights { gain, bias, projection, projection_bias, output, output_bias }
    }

    fn as_feed_forward(&self) -> FeedForwardWeights<'_> {
        let [gain, bias, hidden, hidden_bias, contraction, contraction_bias] = &self.0;
        FeedForwardWeights { gain, bias, hidden, hidden_bias, contraction, contraction_bias }
    }
}

/// Adds the bits of these values.
fn mix(hasher: &mut DefaultHasher, values: &[f32]) {
    values.iter().for_each(|value| value.to_bits().hash(hasher));
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2] * 1e3
}

fn run(case: &Case, peak: f64) {
    let Case { width, heads, positions, .. } = *case;
    let shape = Shape { width, heads, positions };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let layers: Vec<[Layer; 2]> = (0..case.blocks)
        .map(|_| [Layer::attention(&mut rng, width), Layer::feed_forward(&mut rng, width)])
        .collect();
    let blocks: Vec<BlockWeights<'_>> = layers
        .iter()
        .map(|[a, b]| BlockWeights { attention: a.as_attention(), feed_forward: b.as_feed_forward() })
        .collect();
    let records = drawn(&mut rng, case.records * width, 2.0);
    let slots: Vec<u32> = (0..BATCH * positions).map(|_| rng.random_range(0..case.records as u32)).collect();
    let mask = drawn(&mut rng, BATCH * positions, 1.0);
    let gradient = drawn(&mut rng, BATCH * positions * width, 0.1);
    let input = ChainInput { records: &records, slots: &slots, mask: Some(&mask) };
    let dropout = || (case.dropout > 0.0).then(|| Dropout::new(ChaCha8Rng::seed_from_u64(9), case.dropout));
    let (mut there, mut back, mut evaluated) = (Vec::new(), Vec::new(), Vec::new());
    let mut hash = DefaultHasher::new();
    for round in 0..ROUNDS {
        let start = Instant::now();
        let passed = forward(&shape, &blocks, input, dropout(), true);
        there.push(start.elapsed().as_secs_f64());
        let copy = gradient.clone();
        let start = Instant::now();
        let tape = passed.tape.expect("a tape was requested");
        let found = backward(&shape, &blocks, input, tape, copy);
        back.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let plain = forward(&shape, &blocks, input, None, false);
        evaluated.push(start.elapsed().as_secs_f64());
        if round == 0 {
            mix(&mut hash, &passed.values);
            mix(&mut hash, &plain.values);
            mix(&mut hash, &found.records);
            mix(&mut hash, found.mask.as_deref().unwrap_or_default());
            for block in &found.blocks {
                mix(&mut hash, &block.attention.projection);
                mix(&mut hash, &block.attention.output);
                mix(&mut hash, &block.feed_forward.hidden);
                mix(&mut hash, &block.feed_forward.contraction);
            }
        }
    }
    let (k, h, tokens) = (positions as f64, width as f64, (BATCH * positions) as f64);
    let projections = 6.0 * h * h * (case.records as f64 + (case.blocks as f64 - 1.0) * tokens);
    let operations = (case.blocks as f64 * tokens * (4.0 * k * h + 10.0 * h * h) + projections) / 1e9;
    let share = |ms: f64, times: f64| 100.0 * times * operations / (ms / 1e3) / peak;
    let (there, back, evaluated) = (median(there), median(back), median(evaluated));
    println!(
        "{:6} chain: there {there:.2} ms ({:.0} %), back {back:.2} ms ({:.0} %), evaluation {evaluated:.2} ms ({:.0} %)  {:016x}",
        case.name,
        share(there, 1.0),
        share(back, 2.0),
        share(evaluated, 1.0),
        hash.finish()
    );
    decoder(case, &shape, &mut rng);
}

fn decoder(case: &Case, shape: &Shape, rng: &mut ChaCha8Rng) {
    let width = case.width;
    let layers: Vec<[Layer; 3]> = (0..case.decoder)
        .map(|_| {
            [Layer::attention(rng, width), Layer::attention(rng, width), Layer::feed_forward(rng, width)]
        })
        .collect();
    let blocks: Vec<DecoderBlockWeights<'_>> = layers
        .iter()
        .map(|[a, b, c]| DecoderBlockWeights {
            itself: a.as_attention(),
            memory: b.as_attention(),
            feed_forward: c.as_feed_forward(),
        })
        .collect();
    let x = drawn(rng, BATCH * width, 2.0);
    let memory = drawn(rng, BATCH * case.positions * width, 2.0);
    let gradient = drawn(rng, BATCH * width, 0.1);
    let input = DecoderInput { x: &x, memory: &memory, mask: None };
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut hash = DefaultHasher::new();
    for round in 0..ROUNDS {
        let dropout = (case.dropout > 0.0).then(|| Dropout::new(ChaCha8Rng::seed_from_u64(9), case.dropout));
        let start = Instant::now();
        let passed = decode(shape, &blocks, input, dropout, true);
        there.push(start.elapsed().as_secs_f64());
        let tape = passed.tape.expect("a tape was requested");
        let start = Instant::now();
        let found = decode_back(shape, &blocks, input, tape, gradient.clone());
        back.push(start.elapsed().as_secs_f64());
        if round == 0 {
            mix(&mut hash, &passed.values);
            mix(&mut hash, &found.x);
            mix(&mut hash, &found.memory);
            found.blocks.iter().for_each(|block| mix(&mut hash, &block.memory.projection));
        }
    }
    println!(
        "{:6} decoder: there {:.2} ms, back {:.2} ms  {:016x}",
        case.name,
        median(there),
        median(back),
        hash.finish()
    );
}
