//! Compares the gradients of chains and decoders with central differences, along directions that cover every parameter.
//!
//! Dropout draws the same masks each time. The crate `fet` tests that the values equal those of the model.

use std::ops::Range;

use fet_kernels::{
    AttentionGradient, AttentionWeights, BlockWeights, ChainInput, DecoderBlockWeights, DecoderInput,
    Dropout, FeedForwardGradient, FeedForwardWeights, Shape, backward, decode, decode_back, forward,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const WIDTH: usize = 8;
const SEQUENCES: usize = 9;
const RECORDS: usize = 11;

/// Number of directions for each part, and for all parts together.
const DIRECTIONS: u64 = 4;

/// Length of a step along a unit direction: long enough to hide the rounding of the value, short enough to hide the third
/// derivative.
const STEP: f64 = 1e-2;

/// Absolute tolerance of a difference, in units of the gradient's length. A result is a sum of some 500 32-bit floats, and the
/// step divides its rounding. The largest measured error is a third of the tolerance.
const FLOOR: f64 = 5e-5;

/// Relative tolerance of a difference, for the third derivative.
const SHARE: f64 = 2e-3;

#[derive(Debug, Clone, Copy)]
struct Case {
    blocks: usize,
    heads: usize,
    positions: usize,
    dropout: f64,
    mask: bool,
    shared_norm: bool,
}

const CASES: [Case; 6] = {
    let plain = Case { blocks: 1, heads: 1, positions: 7, dropout: 0.0, mask: false, shared_norm: false };
    [
        plain,
        Case { heads: 2, mask: true, ..plain },
        Case { heads: 4, dropout: 0.3, mask: true, ..plain },
        Case { blocks: 2, heads: 2, dropout: 0.5, positions: 5, ..plain },
        Case { blocks: 2, heads: 2, dropout: 0.2, mask: true, shared_norm: true, ..plain },
        Case { blocks: 3, heads: 4, dropout: 0.1, mask: true, shared_norm: true, positions: 1 },
    ]
};

/// Offsets of inputs and parameters in one vector.
#[derive(Default)]
struct Layout {
    parts: Vec<Range<usize>>,
    values: Vec<f32>,
    /// The norm that all blocks share, if they do.
    norm: Option<[Range<usize>; 2]>,
}

/// Gain, bias and four more parameters.
type Layer = [Range<usize>; 6];

impl Layout {
    /// `count` values about `mean`.
    fn push(&mut self, count: usize, mean: f32) -> Range<usize> {
        let start = self.values.len();
        let mut rng = ChaCha8Rng::seed_from_u64(start as u64);
        self.values.extend((0..count).map(|_| mean + rng.random::<f32>() - 0.5));
        self.parts.push(start..start + count);
        start..start + count
    }

    fn layer(&mut self, shared: bool, sizes: [usize; 4]) -> Layer {
        let [gain, bias] = match self.norm.clone().filter(|_| shared) {
            Some(norm) => norm,
            None => [self.push(WIDTH, 1.0), self.push(WIDTH, 0.0)],
        };
        self.norm = Some([gain.clone(), bias.clone()]);
        let [a, b, c, d] = sizes.map(|size| self.push(size, 0.0));
        [gain, bias, a, b, c, d]
    }

    fn attention(&mut self, shared: bool) -> Layer {
        self.layer(shared, [3 * WIDTH * WIDTH, 3 * WIDTH, WIDTH * WIDTH, WIDTH])
    }

    fn feed_forward(&mut self, shared: bool) -> Layer {
        self.layer(shared, [2 * WIDTH * WIDTH, 2 * WIDTH, 2 * WIDTH * WIDTH, WIDTH])
    }
}

fn attention<'a>(values: &'a [f32], layer: &Layer) -> AttentionWeights<'a> {
    let [gain, bias, projection, projection_bias, output, output_bias] =
        layer.each_ref().map(|range| &values[range.clone()]);
    AttentionWeights { gain, bias, projection, projection_bias, output, output_bias }
}

fn feed_forward<'a>(values: &'a [f32], layer: &Layer) -> FeedForwardWeights<'a> {
    let [gain, bias, hidden, hidden_bias, contraction, contraction_bias] =
        layer.each_ref().map(|range| &values[range.clone()]);
    FeedForwardWeights { gain, bias, hidden, hidden_bias, contraction, contraction_bias }
}

fn chain<'a>(layers: &[[Layer; 2]], values: &'a [f32]) -> Vec<BlockWeights<'a>> {
    let block = |[first, second]: &[Layer; 2]| BlockWeights {
        attention: attention(values, first),
        feed_forward: feed_forward(values, second),
    };
    layers.iter().map(block).collect()
}

fn decoder<'a>(layers: &[[Layer; 3]], values: &'a [f32]) -> Vec<DecoderBlockWeights<'a>> {
    let block = |[first, second, third]: &[Layer; 3]| DecoderBlockWeights {
        itself: attention(values, first),
        memory: attention(values, second),
        feed_forward: feed_forward(values, third),
    };
    layers.iter().map(block).collect()
}

/// Adds each gradient at its offset; a shared norm gains several times.
fn add(total: &mut [f32], places: &[Range<usize>], found: &[&[f32]]) {
    for (place, found) in places.iter().zip(found) {
        assert_eq!(place.len(), found.len());
        total[place.clone()].iter_mut().zip(*found).for_each(|(sum, value)| *sum += value);
    }
}

fn add_attention(total: &mut [f32], layer: &Layer, found: &AttentionGradient) {
    let AttentionGradient { gain, bias, projection, projection_bias, output, output_bias } = found;
    add(total, layer, &[gain, bias, projection, projection_bias, output, output_bias]);
}

fn add_feed_forward(total: &mut [f32], layer: &Layer, found: &FeedForwardGradient) {
    let FeedForwardGradient { gain, bias, hidden, hidden_bias, contraction, contraction_bias } = found;
    add(total, layer, &[gain, bias, hidden, hidden_bias, contraction, contraction_bias]);
}

/// Weights of the results in the sum.
fn weights(count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..count).map(|_| rng.random::<f32>() - 0.5).collect()
}

fn dropout(case: &Case) -> Option<Dropout> {
    (case.dropout > 0.0).then(|| Dropout::new(ChaCha8Rng::seed_from_u64(2), case.dropout))
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Compares a gradient with differences of `value`, and checks that the gradient without any one part fails the comparison.
fn check(name: &str, layout: &Layout, gradient: &[f32], value: impl Fn(&[f32]) -> f64) {
    let mut found = Vec::new();
    let all = 0..layout.values.len();
    for (part, range) in layout.parts.iter().chain([&all]).enumerate() {
        for number in 0..DIRECTIONS {
            let mut rng = ChaCha8Rng::seed_from_u64(part as u64 * DIRECTIONS + number);
            let mut direction = vec![0.0f32; gradient.len()];
            direction[range.clone()].iter_mut().for_each(|x| *x = rng.random::<f32>() - 0.5);
            let length = dot(&direction, &direction).sqrt();
            direction.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
            let at = |step: f64| {
                let places = layout.values.iter().zip(&direction);
                value(&places.map(|(x, d)| (f64::from(*x) + step * f64::from(*d)) as f32).collect::<Vec<_>>())
            };
            found.push((part, (at(STEP) - at(-STEP)) / (2.0 * STEP), direction));
        }
    }
    let worst = |gradient: &[f32]| {
        let floor = FLOOR * dot(gradient, gradient).sqrt();
        let off = found.iter().map(|(part, numeric, direction)| {
            let analytic = dot(gradient, direction);
            ((numeric - analytic).abs() / (floor + SHARE * analytic.abs()), *part)
        });
        off.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are directions")
    };
    let (off, part) = worst(gradient);
    eprintln!("{name}: {off:.3} of the tolerance");
    assert!(off <= 1.0, "{name}: part {part} exceeds the tolerance: {off:.3}");
    for (part, range) in layout.parts.iter().enumerate() {
        let own = &gradient[range.clone()];
        if dot(own, own) > 1e-4 * dot(gradient, gradient) {
            let mut without = gradient.to_vec();
            without[range.clone()].fill(0.0);
            assert!(worst(&without).0 > 1.0, "{name}: the test does not notice that part {part} is missing");
        }
    }
}

fn chain_input<'a>(
    values: &'a [f32],
    records: &Range<usize>,
    slots: &'a [u32],
    mask: Option<&Range<usize>>,
) -> ChainInput<'a> {
    let mask = mask.map(|mask| &values[mask.clone()]);
    ChainInput { records: &values[records.clone()], slots, mask }
}

#[test]
fn chains_differentiate_what_they_compute() {
    for case in CASES {
        let Case { blocks, heads, positions, shared_norm, .. } = case;
        let shape = Shape { width: WIDTH, heads, positions };
        let mut layout = Layout::default();
        let records = layout.push(RECORDS * WIDTH, 0.0);
        let mask = case.mask.then(|| layout.push(SEQUENCES * positions, 0.0));
        let layers: Vec<_> =
            (0..blocks).map(|_| [layout.attention(shared_norm), layout.feed_forward(shared_norm)]).collect();
        // One record has several positions, one has none.
        let slots: Vec<u32> =
            (0..SEQUENCES * positions).map(|place| (place * place % (RECORDS - 1)) as u32).collect();
        let above = weights(SEQUENCES * positions * WIDTH);
        let run = |values: &[f32], taped| {
            let input = chain_input(values, &records, &slots, mask.as_ref());
            forward(&shape, &chain(&layers, values), input, dropout(&case), taped)
        };
        let tape = run(&layout.values, true).tape.expect("asked for");
        let input = chain_input(&layout.values, &records, &slots, mask.as_ref());
        let found = backward(&shape, &chain(&layers, &layout.values), input, tape, above.clone());
        let mut gradient = vec![0.0; layout.values.len()];
        add(&mut gradient, std::slice::from_ref(&records), &[&found.records]);
        assert_eq!(mask.is_some(), found.mask.is_some());
        if let (Some(mask), Some(found)) = (&mask, &found.mask) {
            add(&mut gradient, std::slice::from_ref(mask), &[found]);
        }
        for ([first, second], found) in layers.iter().zip(&found.blocks) {
            add_attention(&mut gradient, first, &found.attention);
            add_feed_forward(&mut gradient, second, &found.feed_forward);
        }
        check(&format!("{case:?}"), &layout, &gradient, |values| dot(&run(values, false).values, &above));
    }
}

#[test]
fn decoders_differentiate_what_they_compute() {
    for case in CASES {
        let Case { blocks, heads, positions, shared_norm, .. } = case;
        let shape = Shape { width: WIDTH, heads, positions };
        let mut layout = Layout::default();
        let x = layout.push(SEQUENCES * WIDTH, 0.0);
        let memory = layout.push(SEQUENCES * positions * WIDTH, 0.0);
        let layers: Vec<_> = (0..blocks)
            .map(|_| {
                let [itself, memory] = [(); 2].map(|()| layout.attention(shared_norm));
                [itself, memory, layout.feed_forward(shared_norm)]
            })
            .collect();
        // Not trained.
        let mask = case.mask.then(|| weights(SEQUENCES * positions));
        let above = weights(SEQUENCES * WIDTH);
        let run = |values: &[f32], taped| {
            let (x, memory) = (&values[x.clone()], &values[memory.clone()]);
            let input = DecoderInput { x, memory, mask: mask.as_deref() };
            decode(&shape, &decoder(&layers, values), input, dropout(&case), taped)
        };
        let tape = run(&layout.values, true).tape.expect("asked for");
        let input = DecoderInput {
            x: &layout.values[x.clone()],
            memory: &layout.values[memory.clone()],
            mask: mask.as_deref(),
        };
        let found = decode_back(&shape, &decoder(&layers, &layout.values), input, tape, above.clone());
        let mut gradient = vec![0.0; layout.values.len()];
        add(&mut gradient, &[x.clone(), memory.clone()], &[&found.x, &found.memory]);
        for ([first, second, third], found) in layers.iter().zip(&found.blocks) {
            add_attention(&mut gradient, first, &found.itself);
            add_attention(&mut gradient, second, &found.memory);
            add_feed_forward(&mut gradient, third, &found.feed_forward);
        }
        check(&format!("{case:?}"), &layout, &gradient, |values| dot(&run(values, false).values, &above));
    }
}
