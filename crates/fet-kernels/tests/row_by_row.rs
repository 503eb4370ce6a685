//! Compares embedding, mask and output layer of many rows with the results row by row, and with their definition in 64 bits.
//!
//! A row's values must not depend on the other rows or on the borders of parts, and gradients must be sums over rows.

use fet_kernels::{
    EmbeddingWeights, MaskInput, PerceptronWeights, PositionWeights, Records, embed, embed_back, linear,
    linear_back, mask, mask_back,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const WIDTH: usize = 10;
const KEYS: usize = 2;
const FEATURES: usize = 3;

fn drawn(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random::<f32>() - 0.5).collect()
}

/// Tolerance of sums in another order: some roundings of their largest part.
fn near(name: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let size = expected.iter().fold(1e-3f64, |size, value| size.max(value.abs()));
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() < 4e-6 * size,
            "{name} {index}: {found}, not {expected}"
        );
    }
}

struct Parameters {
    input: Vec<f32>,
    input_bias: Vec<f32>,
    frequencies: Vec<f32>,
    perceptron: [Vec<f32>; 4],
}

impl Parameters {
    fn new() -> Self {
        let sizes = [2 * WIDTH * WIDTH, 2 * WIDTH, 2 * WIDTH * WIDTH, WIDTH];
        Self {
            input: drawn(1, (KEYS + FEATURES) * WIDTH),
            input_bias: drawn(2, WIDTH),
            frequencies: drawn(3, KEYS * WIDTH / 2).iter().map(|value| 40.0 * value).collect(),
            perceptron: std::array::from_fn(|part| drawn(4 + part as u64, sizes[part])),
        }
    }

    fn weights(&self, encoded: bool) -> EmbeddingWeights<'_> {
        let [hidden, hidden_bias, output, output_bias] = &self.perceptron;
        let perceptron = PerceptronWeights { hidden, hidden_bias, output, output_bias };
        EmbeddingWeights {
            input: &self.input,
            input_bias: &self.input_bias,
            position: encoded.then_some(PositionWeights { frequencies: &self.frequencies, perceptron }),
        }
    }

    /// e of one record, in 64 bits.
    fn defined(&self, keys: &[f32], features: &[f32], encoded: bool) -> Vec<f64> {
        let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| f64::from(value)).collect() };
        let affine = |x: &[f64], weight: &[f32], bias: &[f32]| -> Vec<f64> {
            let outputs = bias.len();
            let of = |o: usize| -> f64 {
                x.iter().enumerate().map(|(i, x)| x * f64::from(weight[i * outputs + o])).sum()
            };
            (0..outputs).map(|o| of(o) + f64::from(bias[o])).collect()
        };
        let mut e = affine(&[wide(keys), wide(features)].concat(), &self.input, &self.input_bias);
        if encoded {
            let angles = affine(&wide(keys), &self.frequencies, &[0.0; WIDTH / 2]);
            let scale = (WIDTH as f64).sqrt();
            let waves: Vec<f64> = angles
                .iter()
                .map(|r| r.cos() / scale)
                .chain(angles.iter().map(|r| r.sin() / scale))
                .collect();
            let [hidden, hidden_bias, output, output_bias] = &self.perceptron;
            let gelu = |x: f64| x * 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
            let active: Vec<f64> = affine(&waves, hidden, hidden_bias).into_iter().map(gelu).collect();
            let more = affine(&active, output, output_bias);
            e.iter_mut().zip(more).for_each(|(e, more)| *e += more);
        }
        e
    }
}

/// Numbers of records: more than eight steps of 128, less than a step, and one.
#[test]
fn records_are_embedded_each_by_itself() {
    let parameters = Parameters::new();
    for (count, encoded) in [(1, true), (130, true), (130, false), (1_203, true)] {
        let (keys, features) = (drawn(10, count * KEYS), drawn(11, count * FEATURES));
        let records = |first: usize, count: usize| Records {
            keys: &keys[first * KEYS..(first + count) * KEYS],
            key_columns: KEYS,
            features: &features[first * FEATURES..(first + count) * FEATURES],
            feature_columns: FEATURES,
        };
        let weights = parameters.weights(encoded);
        let (all, tape) = embed(&weights, records(0, count));
        let gradient = drawn(12, count * WIDTH);
        let found = embed_back(&weights, records(0, count), &tape, &gradient);
        let mut sums: [Vec<f64>; 5] = Default::default();
        for record in 0..count {
            let own = record * WIDTH..(record + 1) * WIDTH;
            let (one, tape) = embed(&weights, records(record, 1));
            assert_eq!(*one, all[own.clone()], "record {record} of {count} does not depend on the others");
            let of = records(record, 1);
            near("embedded", &one, &parameters.defined(of.keys, of.features, encoded));
            let alone = embed_back(&weights, of, &tape, &gradient[own]);
            let position = alone.position.as_ref();
            let parts: [&[f32]; 5] = [
                &alone.input,
                &alone.input_bias,
                position.map_or(&[], |(frequencies, _)| frequencies),
                position.map_or(&[], |(_, perceptron)| &perceptron.hidden),
                position.map_or(&[], |(_, perceptron)| &perceptron.output),
            ];
            for (sum, part) in sums.iter_mut().zip(parts) {
                sum.resize(part.len(), 0.0);
                sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += f64::from(*value));
            }
        }
        near("W", &found.input, &sums[0]);
        near("b", &found.input_bias, &sums[1]);
        if let Some((frequencies, perceptron)) = &found.position {
            near("frequencies", frequencies, &sums[2]);
            near("hidden", &perceptron.hidden, &sums[3]);
            near("output", &perceptron.output, &sums[4]);
        }
        assert_eq!(found.position.is_some(), encoded);
    }
}

#[test]
fn masks_are_made_each_by_itself() {
    let (positions, wide, records) = (3, 12, 20);
    let inputs = positions * KEYS;
    let [hidden, hidden_bias, output, output_bias] =
        [inputs * wide, wide, wide * positions, positions].map(|size| drawn(size as u64, size));
    let weights = PerceptronWeights {
        hidden: &hidden,
        hidden_bias: &hidden_bias,
        output: &output,
        output_bias: &output_bias,
    };
    let keys = drawn(30, records * KEYS);
    // Two full groups of sixteen sequences, and some more.
    let slots: Vec<u32> = (0..35 * positions as u32).map(|place| place * 7 % records as u32).collect();
    let input = |slots| MaskInput { keys: &keys, key_columns: KEYS, slots, positions };
    let (all, tape) = mask(&weights, input(&slots));
    let gradient = drawn(31, slots.len());
    let found = mask_back(&weights, input(&slots), &tape, &gradient);
    let mut sum = vec![0.0f64; hidden.len()];
    for (place, one) in slots.chunks(positions).enumerate() {
        let own = place * positions..(place + 1) * positions;
        let (values, tape) = mask(&weights, input(one));
        assert_eq!(values, all[own.clone()], "sequence {place} does not depend on the others");
        let alone = mask_back(&weights, input(one), &tape, &gradient[own]);
        sum.iter_mut().zip(alone.hidden.iter()).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    near("hidden", &found.hidden, &sum);
}

#[test]
fn output_layers_are_affine_and_so_are_their_gradients() {
    for outputs in [1, 2, 17] {
        let (rows, inputs) = (5, 9);
        let (x, weight) = (drawn(40, rows * inputs), drawn(41, inputs * outputs));
        let (bias, gradient) = (drawn(42, outputs), drawn(43, rows * outputs));
        let at = |values: &[f32], columns: usize, row: usize, column: usize| {
            f64::from(values[row * columns + column])
        };
        let y = linear(&x, &weight, &bias);
        let of = |row: usize, o: usize| -> f64 {
            (0..inputs).map(|i| at(&x, inputs, row, i) * at(&weight, outputs, i, o)).sum()
        };
        let expected: Vec<f64> = (0..rows * outputs)
            .map(|p| of(p / outputs, p % outputs) + f64::from(bias[p % outputs]))
            .collect();
        near("y", &y, &expected);
        let (to_weight, to_bias, below) = linear_back(&x, &weight, &gradient, outputs);
        let of = |i: usize, o: usize| -> f64 {
            (0..rows).map(|row| at(&x, inputs, row, i) * at(&gradient, outputs, row, o)).sum()
        };
        near(
            "W",
            &to_weight,
            &(0..inputs * outputs).map(|p| of(p / outputs, p % outputs)).collect::<Vec<_>>(),
        );
        let of = |o: usize| -> f64 { (0..rows).map(|row| at(&gradient, outputs, row, o)).sum() };
        near("b", &to_bias, &(0..outputs).map(of).collect::<Vec<_>>());
        let of = |row: usize, i: usize| -> f64 {
            (0..outputs).map(|o| at(&gradient, outputs, row, o) * at(&weight, outputs, i, o)).sum()
        };
        near("x", &below, &(0..rows * inputs).map(|p| of(p / inputs, p % inputs)).collect::<Vec<_>>());
    }
}
