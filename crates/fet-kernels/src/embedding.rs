//! A party's embedding of its distinct records: e = W [key, features] + b + PE(key), and PE of learnable Fourier features:
//! W₂ GELU(W₁ f), f = [cos r, sin r]/√H, r = key·Wr (Li et al. 2021).

use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::math::{sin_cos, vectorised};
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::perceptron::{self, PerceptronGradient, PerceptronWeights, TransposedPerceptron};
use crate::rows::{add, add_rows, sized};
use crate::scratch::ScratchPool;

/// Number of records per step; both factors of a sum over them fit in cache.
const RECORDS: usize = 128;
/// Number of parts of a sum over records; it does not depend on the number of threads.
const PARTS: usize = 8;

/// The parameters of a positional encoding.
#[derive(Debug, Clone, Copy)]
pub struct PositionWeights<'a> {
    /// Wr, [m, H/2].
    pub frequencies: &'a [f32],
    /// W₁ and W₂, H → 2H → H.
    pub perceptron: PerceptronWeights<'a>,
}

/// The parameters of an embedding.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingWeights<'a> {
    /// W, [m + d, H].
    pub input: &'a [f32],
    /// b, H values.
    pub input_bias: &'a [f32],
    /// Positional encoding, if there is one.
    pub position: Option<PositionWeights<'a>>,
}

/// Their gradients.
#[derive(Debug)]
pub struct EmbeddingGradient {
    /// Gradient of W, [m + d, H].
    pub input: Buffer,
    /// Gradient of b, H values.
    pub input_bias: Buffer,
    /// Gradients of Wr and of the perceptron, if there is an encoding.
    pub position: Option<(Buffer, PerceptronGradient)>,
}

/// Input of an embedding.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// [U, m].
    pub keys: &'a [f32],
    /// m.
    pub key_columns: usize,
    /// [U, d].
    pub features: &'a [f32],
    /// d.
    pub feature_columns: usize,
}

/// Activations of a forward pass, kept for the backward pass.
#[derive(Debug)]
pub struct EmbeddingTape {
    /// The perceptron before its GELU, [U, 2H].
    hidden: Buffer,
}

impl EmbeddingWeights<'_> {
    fn width(&self) -> usize {
        self.input_bias.len()
    }

    fn check(&self, records: Records<'_>) {
        let width = self.width();
        assert_eq!(self.input.len(), (records.key_columns + records.feature_columns) * width, "W");
        if let Some(position) = &self.position {
            assert!(width.is_multiple_of(2), "an even width");
            assert_eq!(position.frequencies.len(), records.key_columns * width / 2, "the frequencies");
            position.perceptron.check(width, width);
        }
    }
}

impl Records<'_> {
    fn count(&self) -> usize {
        self.keys.len() / self.key_columns
    }

    fn columns(&self) -> usize {
        self.key_columns + self.feature_columns
    }

    fn keys(&self, first: usize, count: usize) -> &[f32] {
        &self.keys[first * self.key_columns..(first + count) * self.key_columns]
    }

    /// Keys and features of some records side by side, [n, m + d].
    fn joined<'a>(&self, first: usize, count: usize, out: &'a mut Vec<f32>) -> &'a [f32] {
        out.clear();
        for record in first..first + count {
            out.extend_from_slice(self.keys(record, 1));
            out.extend_from_slice(
                &self.features[record * self.feature_columns..(record + 1) * self.feature_columns],
            );
        }
        out
    }
}

/// Scratch memory for one step of records.
#[derive(Default)]
struct Scratch {
    perceptron: perceptron::Scratch,
    joined: Vec<f32>,
    angles: Vec<f32>,
    features: Vec<f32>,
    bias: Vec<f32>,
    features_gradient: Vec<f32>,
}

static POOL: ScratchPool<Scratch> = ScratchPool::new();

/// Embeds records: returns [U, H] and the tape of the backward pass.
///
/// # Panics
/// If sizes do not fit, or if the keys lack columns.
pub fn embed(weights: &EmbeddingWeights<'_>, records: Records<'_>) -> (Buffer, EmbeddingTape) {
    weights.check(records);
    let (width, count) = (weights.width(), records.count());
    let mut values = Buffer::any(count * width);
    let encoded = if weights.position.is_some() { count * width } else { 0 };
    // Empty without an encoding.
    let mut tape = EmbeddingTape { hidden: Buffer::any(2 * encoded) };
    let part = |wide: usize| (RECORDS * wide).max(1);
    let rows = values.par_chunks_mut(part(width)).enumerate();
    if weights.position.is_none() {
        rows.for_each_init(
            || POOL.borrow(),
            |borrowed, (index, out)| {
                let scratch = &mut **borrowed;
                let x = records.joined(index * RECORDS, out.len() / width, &mut scratch.joined);
                let right = View::new(weights.input, width);
                let bias = Into::Row(weights.input_bias);
                multiply(1.0, View::new(x, records.columns()), right, bias, ViewMut::new(out, width));
            },
        );
        return (values, tape);
    }
    let rows = rows.zip(tape.hidden.par_chunks_mut(part(2 * width)));
    rows.for_each_init(
        || POOL.borrow(),
        |borrowed, ((index, out), hidden)| {
            let scratch = &mut **borrowed;
            let Some(position) = &weights.position else { return };
            let (first, count) = (index * RECORDS, out.len() / width);
            let x = records.joined(first, count, &mut scratch.joined);
            scratch.bias.clear();
            scratch.bias.extend_from_slice(weights.input_bias);
            add(&mut scratch.bias, position.perceptron.output_bias);
            let right = View::new(weights.input, width);
            let bias = Into::Row(&scratch.bias);
            multiply(1.0, View::new(x, records.columns()), right, bias, ViewMut::new(out, width));
            let (angles, features) = (&mut scratch.angles, &mut scratch.features);
            let features = encode(position, records, (first, count), (angles, features));
            position.perceptron.forward(features, hidden, out, Into::Add, &mut scratch.perceptron);
        },
    );
    (values, tape)
}

/// f of some records, [n, H]. The backward pass recomputes it, because that is faster than storing it.
fn encode<'a>(
    position: &PositionWeights<'_>,
    records: Records<'_>,
    (first, count): (usize, usize),
    (angles, features): (&mut Vec<f32>, &'a mut Vec<f32>),
) -> &'a [f32] {
    let half = position.frequencies.len() / records.key_columns;
    let (angles, features) = (sized(angles, count * half), sized(features, 2 * count * half));
    let keys = View::new(records.keys(first, count), records.key_columns);
    multiply(1.0, keys, View::new(position.frequencies, half), Into::Set, ViewMut::new(angles, half));
    waves(angles, 2 * half, features);
    features
}

/// [cos r, sin r]/√H of each row of angles.
fn waves(angles: &[f32], width: usize, features: &mut [f32]) {
    let scale = 1.0 / (width as f32).sqrt();
    #[inline(always)]
    fn of_row(scale: f32, angles: &[f32], cosines: &mut [f32], sines: &mut [f32]) {
        for ((angle, cosine), sine) in angles.iter().zip(cosines).zip(sines) {
            let (sin, cos) = sin_cos(*angle);
            *cosine = cos * scale;
            *sine = sin * scale;
        }
    }
    vectorised(
        #[inline(always)]
        move || {
            for (angles, out) in angles.chunks_exact(width / 2).zip(features.chunks_exact_mut(width)) {
                let (cosines, sines) = out.split_at_mut(width / 2);
                of_row(scale, angles, cosines, sines);
            }
        },
    );
}

/// Turns the gradient of `features` = [cos r, sin r]/√H into the gradient of the angles.
fn waves_back(features: &[f32], gradient: &[f32], width: usize, angles: &mut [f32]) {
    #[inline(always)]
    fn of_row([cosines, sines, of_cosines, of_sines]: [&[f32]; 4], angles: &mut [f32]) {
        let waves = cosines.iter().zip(sines);
        for ((angle, (cosine, sine)), (of_cosine, of_sine)) in
            angles.iter_mut().zip(waves).zip(of_cosines.iter().zip(of_sines))
        {
            *angle = cosine * of_sine - sine * of_cosine;
        }
    }
    vectorised(
        #[inline(always)]
        move || {
            let rows = features.chunks_exact(width).zip(gradient.chunks_exact(width));
            for ((features, gradient), angles) in rows.zip(angles.chunks_exact_mut(width / 2)) {
                let (cosines, sines) = features.split_at(width / 2);
                let (of_cosines, of_sines) = gradient.split_at(width / 2);
                of_row([cosines, sines, of_cosines, of_sines], angles);
            }
        },
    );
}

/// Computes the gradient of an embedding's parameters from the gradient of the embedded records, [U, H].
///
/// # Panics
/// If the tape is not that of the same records.
pub fn embed_back(
    weights: &EmbeddingWeights<'_>,
    records: Records<'_>,
    tape: &EmbeddingTape,
    gradient: &[f32],
) -> EmbeddingGradient {
    weights.check(records);
    let (width, count) = (weights.width(), records.count());
    assert_eq!(gradient.len(), count * width, "the gradient of the embedded records");
    let transposed =
        weights.position.as_ref().map(|position| TransposedPerceptron::new(&position.perceptron));
    let part_size = count.div_ceil(PARTS);
    let parts: Vec<EmbeddingGradient> = gradient
        .par_chunks(part_size * width)
        .enumerate()
        .map(|(index, gradient)| {
            let mut found = EmbeddingGradient::zeros(weights);
            let mut borrowed = POOL.borrow();
            let scratch = &mut *borrowed;
            for (within, above) in gradient.chunks(RECORDS * width).enumerate() {
                let (first, count) = (index * part_size + within * RECORDS, above.len() / width);
                let x = records.joined(first, count, &mut scratch.joined);
                let above_view = View::new(above, width);
                let target = ViewMut::new(&mut found.input, width);
                multiply(1.0, View::new(x, records.columns()).transposed(), above_view, Into::Add, target);
                add_rows(&mut found.input_bias, above);
                let (Some(position), Some(transposed)) = (&weights.position, &transposed) else { continue };
                let Some((frequencies, perceptron)) = &mut found.position else { continue };
                let memory = (&mut scratch.angles, &mut scratch.features);
                let features = encode(position, records, (first, count), memory);
                let hidden = &tape.hidden[2 * first * width..2 * (first + count) * width];
                let below = sized(&mut scratch.features_gradient, count * width);
                let memory = &mut scratch.perceptron;
                let saved = perceptron::Saved { x: features, hidden };
                transposed.backward(saved, above, perceptron, Some(&mut *below), memory);
                let angles = sized(&mut scratch.angles, count * width / 2);
                waves_back(features, below, width, angles);
                let keys = View::new(records.keys(first, count), records.key_columns);
                let target = ViewMut::new(frequencies, width / 2);
                multiply(1.0, keys.transposed(), View::new(angles, width / 2), Into::Add, target);
            }
            found
        })
        .collect();
    let mut total = EmbeddingGradient::zeros(weights);
    total.add_all(&parts);
    total
}

impl EmbeddingGradient {
    fn zeros(weights: &EmbeddingWeights<'_>) -> Self {
        Self {
            input: Buffer::zeros(weights.input.len()),
            input_bias: Buffer::zeros(weights.input_bias.len()),
            position: weights.position.as_ref().map(|position| {
                let frequencies = Buffer::zeros(position.frequencies.len());
                (frequencies, PerceptronGradient::zeros(&position.perceptron))
            }),
        }
    }

    /// Adds the others in order.
    fn add_all(&mut self, others: &[Self]) {
        for other in others {
            add(&mut self.input, &other.input);
            add(&mut self.input_bias, &other.input_bias);
        }
        let Some((frequencies, perceptron)) = &mut self.position else { return };
        let parts: Vec<_> = others.iter().filter_map(|other| other.position.as_ref()).collect();
        parts.iter().for_each(|(part, _)| add(frequencies, part));
        perceptron.add_all(&parts.iter().map(|(_, part)| part).collect::<Vec<_>>());
    }
}
