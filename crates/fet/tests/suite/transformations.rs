//! What is computed in a cheaper way, against its definition, on every device: values and gradients.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::model::{Attention, Init, Pass};
use fet_core::parameters::host;
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

/// The output, and the gradients with respect to the input, the memory, the projection's weight and its bias.
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
fn absorbed_attention_is_attention() {
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        for (mask, dropout) in [(false, 0.0), (true, 0.0), (true, 0.4)] {
            let (ours, defined) =
                (figures(&device, mask, dropout, true), figures(&device, mask, dropout, false));
            for (index, (a, b)) in ours.iter().zip(&defined).enumerate() {
                let size = b.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                assert!(size > 0.0 && a.len() == b.len());
                let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // A few roundings of 32-bit floats.
                assert!(worst <= 4e-6 * size, "{} figure {index}: {worst} of {size}", backend.name);
            }
        }
    }
}
