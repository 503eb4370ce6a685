//! Compares optimised computations with their definitions on every device: values and gradients.

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_components::model::{Attention, Gelu, Init};
use fet_core::data::Task;
use fet_core::encoder::{Computation, Encoder, EncoderContext, NeighbourBatch, NeighbourLists};
use fet_core::method::{Memory, Method, PrimaryBatch, PrimaryContext};
use fet_core::model::{ModelShape, Pass};
use fet_core::objective::Objective;
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::host;
use fet_core::registry::Slot;
use fet_core::rng::{Purpose, stream};
use rand::RngExt;

use crate::support::devices;

const BATCH: usize = 3;
const POSITIONS: usize = 5;
const WIDTH: usize = 8;

fn random<const D: usize>(shape: [usize; D], round: u64, device: &Device) -> Tensor<D> {
    let mut rng = stream(31, 0, Purpose::Linking, round);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random::<f32>() - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Checks that the figures are equal, up to a few roundings of 32-bit floats.
fn same(name: &str, ours: &[Vec<f32>], defined: &[Vec<f32>]) {
    for (index, (a, b)) in ours.iter().zip(defined).enumerate() {
        let size = b.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(size > 0.0 && a.len() == b.len(), "{name}, figure {index}");
        let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= 4e-6 * size, "{name}, figure {index}: {worst} of {size}");
    }
}

/// Output, and the gradients with respect to the input, the memory, the projection's weight and its bias.
type Figures = [Vec<f32>; 5];

fn figures(device: &Device, mask: bool, dropout: f64, absorbed: bool) -> Figures {
    let mut attention =
        Attention::new(&mut Init::new(stream(31, 0, Purpose::Weights, 0), device), WIDTH, 2, dropout);
    let bias: Tensor<1> = random([3 * WIDTH], 5, device);
    attention.projection.bias =
        attention.projection.bias.map(|own| own.map(|_| bias.clone().detach().require_grad()));
    let input: Tensor<3> = random([BATCH, 1, WIDTH], 1, device).require_grad();
    let memory: Tensor<3> = random([BATCH, POSITIONS, WIDTH], 2, device).require_grad();
    let mask = mask.then(|| random([BATCH, POSITIONS], 3, device));
    let mut pass = Pass::training(stream(31, 0, Purpose::Dropout, 0));
    let output = if absorbed {
        attention.to_memory(input.clone(), memory.clone(), mask, &mut pass)
    } else {
        attention.to_memory_by_definition(input.clone(), memory.clone(), mask, &mut pass)
    };
    let mut gradients = (output.clone() * random([BATCH, 1, WIDTH], 4, device)).sum().backward();
    let weight = attention.projection.weight.val();
    let bias = attention.projection.bias.as_ref().map(|bias| bias.val()).expect("there is a bias");
    [
        host(output.without_autodiff()),
        host(input.grad_remove(&mut gradients).expect("the input takes part")),
        host(memory.grad_remove(&mut gradients).expect("the memory takes part")),
        host(weight.grad_remove(&mut gradients).expect("the weight takes part")),
        host(bias.grad_remove(&mut gradients).expect("the bias takes part")),
    ]
}

#[test]
fn absorbed_attention_equals_attention() {
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        for (mask, dropout) in [(false, 0.0), (true, 0.0), (true, 0.4)] {
            let (ours, defined) =
                (figures(&device, mask, dropout, true), figures(&device, mask, dropout, false));
            same(&backend.name, &ours, &defined);
        }
    }
}

/// Test case for a chain of blocks.
#[derive(Clone, Copy)]
struct EncoderCase {
    hidden: usize,
    /// Number of neighbours of a row.
    neighbours: usize,
    blocks: usize,
    heads: usize,
    dropout: f64,
    shared_norm: bool,
    dynamic_mask: bool,
    available: usize,
    /// Number of neighbours that the step sees: the last `shown`.
    shown: usize,
}

/// Returns the representation and the gradient of all parameters, for a transformer over three rows.
fn encoded(device: &Device, case: EncoderCase, computation: Computation) -> [Vec<f32>; 2] {
    let all = case.neighbours;
    let shape = ModelShape {
        hidden: case.hidden,
        heads: case.heads,
        dropout: case.dropout,
        positional_encoding: true,
        frequency_std: 1.0,
        shared_norm: case.shared_norm,
    };
    let sets = [
        ("kind", toml::Value::from("transformer")),
        ("blocks", toml::Value::from(case.blocks as i64)),
        ("dynamic_mask", toml::Value::from(case.dynamic_mask)),
    ];
    let table = sets.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let slot = Slot::<dyn Encoder>::from_table(table).expect("sound settings");
    let mut encoder = slot
        .build(&EncoderContext {
            device,
            weights: stream(32, 1, Purpose::Weights, 0),
            neighbours: all,
            key_columns: 2,
            feature_columns: 3,
            shape: &shape,
            optimizer: &OptimizerSettings::lamb(),
            computation,
        })
        .expect("sound settings");
    let slots: Vec<i32> = (0..3 * all as i32).map(|place| place * place % 9).collect();
    let places: Vec<usize> = (all - case.shown..all).collect();
    let shown: Vec<i32> = slots.chunks(all).flat_map(|row| places.iter().map(|&place| row[place])).collect();
    let tensor = |slots: Vec<i32>| {
        let length = slots.len();
        Tensor::<1, Int>::from_data(TensorData::new(slots, [length]), device)
    };
    let batch = NeighbourBatch {
        keys: random([9, 2], 6, device),
        features: random([9, 3], 7, device),
        slots: tensor(shown),
        rows: 3,
        neighbours: case.shown,
        available: case.available,
        similarities: None,
        listed: (case.shown < all).then(|| NeighbourLists { slots: tensor(slots), places }),
    };
    let mut pass = Pass::training(stream(32, 1, Purpose::Dropout, 0));
    let representation = encoder.forward(&batch, &mut pass, true);
    encoder.backward(random([3, case.shown, case.hidden], 8, &device.clone().without_autodiff()));
    assert!(encoder.learner().gradient().present.iter().all(|present| *present), "everything takes part");
    [host(representation), encoder.learner().gradient().values.clone()]
}

/// With the same parameters and dropout masks, tensors and kernels give the same representation and
/// gradients.
#[test]
fn fused_blocks_equal_blocks() {
    let plain = EncoderCase {
        hidden: 12,
        neighbours: 7,
        blocks: 1,
        heads: 1,
        dropout: 0.0,
        shared_norm: false,
        dynamic_mask: false,
        available: 7,
        shown: 7,
    };
    let cases = [
        plain,
        EncoderCase { heads: 3, dropout: 0.3, dynamic_mask: true, ..plain },
        EncoderCase { blocks: 2, heads: 2, dropout: 0.5, available: 5, ..plain },
        EncoderCase {
            blocks: 3,
            heads: 4,
            dropout: 0.1,
            shared_norm: true,
            dynamic_mask: true,
            available: 4,
            ..plain
        },
        EncoderCase {
            blocks: 2,
            heads: 2,
            dropout: 0.2,
            dynamic_mask: true,
            available: 4,
            shown: 4,
            ..plain
        },
        EncoderCase { heads: 2, dynamic_mask: true, available: 2, shown: 3, ..plain },
        // Sizes about whole vectors, and more rows of weights than the kernels take at a time.
        EncoderCase {
            hidden: 20,
            neighbours: 33,
            blocks: 2,
            heads: 2,
            dropout: 0.3,
            dynamic_mask: true,
            available: 33,
            shown: 33,
            ..plain
        },
        EncoderCase { hidden: 36, neighbours: 16, heads: 3, dropout: 0.2, available: 16, shown: 16, ..plain },
        EncoderCase { hidden: 18, neighbours: 17, dropout: 0.1, available: 9, shown: 17, ..plain },
    ];
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        for (number, case) in cases.into_iter().enumerate() {
            let defined = encoded(&device, case, Computation::default());
            for recompute in [false, true] {
                let ours = encoded(&device, case, Computation { fused: true, recompute });
                same(&format!("{}, case {number}", backend.name), &ours, &defined);
            }
        }
    }
}

/// Returns the output, the gradients of all parameters and of the memory, and the output in evaluation, for
/// FeT's primary over nine rows with seven neighbours.
fn decoded(
    device: &Device,
    sets: &[(&str, toml::Value)],
    wider: bool,
    available: usize,
    fused: bool,
) -> [Vec<f32>; 4] {
    let mut table: toml::Table = sets.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    table.insert("kind".into(), "fet".into());
    table.insert("hidden".into(), 12.into());
    let method = Slot::<dyn Method>::from_table(table).expect("sound settings").build(&()).expect("sound");
    let memory_width = if wider { 24 } else { 12 };
    let mut primary = method
        .primary(&PrimaryContext {
            device,
            weights: stream(33, 0, Purpose::Weights, 0),
            key_columns: 2,
            feature_columns: 3,
            objective: Objective { task: Task::Multiclass, outputs: 3, minimum: 0.0, range: 1.0 },
            parties: 2,
            positions: 7,
            memory_width,
            computation: Computation { fused, recompute: false },
        })
        .expect("sound settings");
    let batch = PrimaryBatch {
        keys: random([9, 2], 11, device),
        features: random([9, 3], 12, device),
        labels: (0..9).map(|row| (row % 3) as f32).collect(),
        weights: Vec::new(),
    };
    let tensor = random([9, 7, memory_width], 13, &device.clone().without_autodiff());
    let memory = Memory { tensor, available, similarities: Vec::new() };
    let mut pass = Pass::training(stream(33, 0, Purpose::Dropout, 0));
    let outcome = primary.train(&batch, Some(memory.clone()), &mut pass);
    assert!(primary.learner().gradient().present.iter().all(|present| *present), "everything takes part");
    [
        host(outcome.output),
        primary.learner().gradient().values.clone(),
        host(outcome.memory_gradient.expect("the memory takes part")),
        host(primary.predict(&batch, Some(memory))),
    ]
}

/// With the same parameters and dropout masks, tensors and kernels give the same predictions and gradients.
#[test]
fn fused_decoder_equals_the_decoder() {
    let cases = [
        (vec![("agg_blocks", 1.into()), ("heads", 1.into()), ("dropout", 0.0.into())], false, 7),
        (vec![("agg_blocks", 2.into()), ("heads", 3.into()), ("dropout", 0.3.into())], false, 5),
        (vec![("agg_blocks", 3.into()), ("heads", 4.into()), ("shared_norm", true.into())], true, 7),
    ];
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        for (number, (sets, wider, available)) in cases.iter().enumerate() {
            let figures = |fused| decoded(&device, sets, *wider, *available, fused);
            same(&format!("{}, case {number}", backend.name), &figures(true), &figures(false));
        }
    }
}

/// Φ(x) + x φ(x), from a table of the normal distribution (Abramowitz & Stegun, 26.1).
#[test]
fn the_derivative_of_gelu_is_exact_on_every_device() {
    let table =
        [(-1.0f32, -0.083_315_47), (0.0, 0.5), (0.5, 0.867_495_2), (1.0, 1.083_315_5), (2.0, 1.085_232)];
    for backend in devices() {
        let device = backend.device.autodiff();
        let x = Tensor::<1>::from_floats(table.map(|(x, _)| x), &device).require_grad();
        let mut gradients = Gelu::new(&device).forward(x.clone()).sum().backward();
        let found = host(x.grad_remove(&mut gradients).expect("a gradient"));
        for (found, (x, exact)) in found.iter().zip(table) {
            assert!((found - exact).abs() < 1e-5, "{}: {found} at {x}, not {exact}", backend.name);
        }
    }
}
