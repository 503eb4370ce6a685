//! Checks that kernels never read values that an earlier call left in a reused workspace.

use fet_kernels::{
    AttentionWeights, BlockWeights, ChainInput, DecoderBlockWeights, DecoderInput, Dropout,
    FeedForwardWeights, Shape, backward, decode, decode_back, forward,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SEQUENCES: usize = 11;
const RECORDS: usize = 9;

/// Gain, bias, and two affine maps.
struct Layer([Vec<f32>; 6]);

impl Layer {
    fn new(width: usize, wide: usize, number: &mut impl FnMut() -> f32) -> Self {
        let sizes = [width, width, width * wide, wide, width * wide, width];
        Self(sizes.map(|size| (0..size).map(|_| number()).collect()))
    }

    fn attention(&self, width: usize) -> AttentionWeights<'_> {
        let [gain, bias, projection, projection_bias, output, output_bias] = &self.0;
        let output = &output[..width * width];
        AttentionWeights { gain, bias, projection, projection_bias, output, output_bias }
    }

    fn feed_forward(&self) -> FeedForwardWeights<'_> {
        let [gain, bias, hidden, hidden_bias, contraction, contraction_bias] = &self.0;
        FeedForwardWeights { gain, bias, hidden, hidden_bias, contraction, contraction_bias }
    }
}

/// Bits of all results and gradients of a chain of two blocks and a decoder of one; `number` draws every input.
fn bits(shape: Shape, mut number: impl FnMut() -> f32) -> Vec<u32> {
    let Shape { width, positions, .. } = shape;
    let layers: Vec<[Layer; 3]> = (0..2)
        .map(|_| [3 * width, 3 * width, 2 * width].map(|wide| Layer::new(width, wide, &mut number)))
        .collect();
    let blocks: Vec<BlockWeights<'_>> = layers
        .iter()
        .map(|[a, _, b]| BlockWeights { attention: a.attention(width), feed_forward: b.feed_forward() })
        .collect();
    let mut drawn = |count: usize| (0..count).map(|_| number()).collect::<Vec<f32>>();
    let (records, mask) = (drawn(RECORDS * width), drawn(SEQUENCES * positions));
    let slots: Vec<u32> = (0..SEQUENCES * positions).map(|place| (place * 5 % RECORDS) as u32).collect();
    let dropout = || Some(Dropout::new(ChaCha8Rng::seed_from_u64(3), 0.3));
    let input = ChainInput { records: &records, slots: &slots, mask: Some(&mask) };
    let passed = forward(&shape, &blocks, input, dropout(), true);
    let plain = forward(&shape, &blocks, input, None, false);
    let tape = passed.tape.expect("a tape was requested");
    let back = backward(&shape, &blocks, input, tape, drawn(SEQUENCES * positions * width));
    let mut all = vec![passed.values, plain.values, back.records.to_vec(), back.mask.expect("a mask")];
    for block in &back.blocks {
        all.push(block.attention.projection.to_vec());
        all.push(block.feed_forward.hidden.to_vec());
    }

    let [itself, memory, last] = &layers[0];
    let decoder = [DecoderBlockWeights {
        itself: itself.attention(width),
        memory: memory.attention(width),
        feed_forward: last.feed_forward(),
    }];
    let (x, values) = (drawn(SEQUENCES * width), drawn(SEQUENCES * positions * width));
    let input = DecoderInput { x: &x, memory: &values, mask: None };
    let passed = decode(&shape, &decoder, input, dropout(), true);
    let back = decode_back(&shape, &decoder, input, passed.tape.expect("a tape"), drawn(SEQUENCES * width));
    all.extend([passed.values, back.x.to_vec(), back.memory.to_vec()]);
    all.concat().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn never_reads_values_of_an_earlier_call() {
    let shape = Shape { width: 12, heads: 3, positions: 7 };
    let small = || {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        bits(shape, move || rng.random::<f32>() - 0.5)
    };
    let before = small();
    assert!(before.iter().all(|&bits| f32::from_bits(bits).is_finite()));
    // These calls leave NaN behind.
    for shape in [Shape { width: 40, heads: 4, positions: 33 }, shape] {
        let poisoned = bits(shape, || f32::NAN);
        assert!(poisoned.iter().any(|&bits| f32::from_bits(bits).is_nan()), "{shape:?}");
        assert_eq!(small(), before, "after {shape:?}");
    }
}
