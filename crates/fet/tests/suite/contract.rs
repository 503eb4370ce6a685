//! Tests the laws of each slot, with one suite over every plug-in in the program.

mod aggregators;
mod attacks;
mod datasets;
mod encoders;
mod labels;
mod linkers;
mod mechanisms;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::registry::{Plugin, Slot, SlotKind, plugins};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use rand::RngExt;

/// Returns every plug-in of a slot with its default settings.
fn all<T>() -> Vec<Slot<T>>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let found: Vec<_> =
        plugins::<T>().iter().map(|p| Slot::with_defaults(p.kind).expect("sound defaults")).collect();
    assert!(!found.is_empty(), "the slot {} has plug-ins", T::SLOT);
    found
}

fn rng(round: u64) -> ChaCha8Rng {
    stream(11, 0, Purpose::Linking, round)
}

fn random<const D: usize>(shape: [usize; D], round: u64, device: &Device) -> Tensor<D> {
    let mut rng = rng(round);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random::<f32>() - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
